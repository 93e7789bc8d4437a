//! The documentation's examples run, and its tables are the program's.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::process::Command;

use headroom_base::document::{json, yaml};
use headroom_catalog as catalog;
use headroom_core::estimate;
use headroom_scenario::{Case, document, schema};

const PATH: &str = "docs/scenario.md";

fn text() -> String {
    headroom_testing::text(PATH)
}

/// The code blocks of a kind, such as "yaml".
fn blocks(kind: &str) -> Vec<String> {
    let text = text();
    let opening = format!("```{kind}\n");
    let after = text.split(&opening).skip(1);
    after
        .map(|block| block.split("```").next().unwrap().into())
        .collect()
}

#[test]
fn example_files_are_valid() {
    let yaml = blocks("yaml");
    let json = blocks("json");
    assert_eq!((yaml.len(), json.len()), (5, 1));
    let documents = yaml.iter().map(|text| yaml::read(text));
    for document in documents.chain(json.iter().map(|text| json::read(text))) {
        let (scenario, problems) = document::read(&document.unwrap());
        assert_eq!((problems, scenario.check()), (vec![], vec![]));
        assert_eq!(scenario.warnings(), vec![]);
        assert!(estimate::quick_peak(&scenario).is_ok());
    }
}

#[test]
fn example_problems_are_the_ones_that_are_shown() {
    for text in blocks("yaml problems") {
        let (scenario, mut problems) = document::read(&yaml::read(&text).unwrap());
        problems.extend(scenario.check());
        let shown: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .collect();
        let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(found, shown);
    }
}

#[test]
fn example_warnings_are_the_ones_that_are_shown() {
    for text in blocks("yaml warnings") {
        let (scenario, problems) = document::read(&yaml::read(&text).unwrap());
        assert_eq!((problems, scenario.check()), (vec![], vec![]));
        let mut warnings = scenario.warnings();
        warnings.extend(estimate::unmatched(&Case::of(&scenario)).unwrap());
        let found: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let shown: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .collect();
        assert_eq!(found, shown);
    }
}

#[test]
fn example_commands_print_what_is_shown() {
    let mut run = 0;
    for block in blocks("console") {
        for example in block.split("$ headroom ").skip(1) {
            let (command, shown) = example.split_once('\n').unwrap();
            let words = command.split(' ').map(|word| word.trim_matches('\''));
            let output = Command::new(env!("CARGO_BIN_EXE_headroom"))
                .args(words)
                .output()
                .unwrap();
            let said = if shown.starts_with("headroom: ") {
                output.stderr
            } else {
                output.stdout
            };
            assert_eq!(String::from_utf8(said).unwrap(), shown, "{command}");
            run += 1;
        }
    }
    assert_eq!(run, 4);
}

#[test]
fn the_first_commands_of_a_stranger_work() {
    let folder = std::env::temp_dir().join(format!("headroom-readme-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = headroom_testing::text("README.md");
    let lines = text.lines();
    let commands: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("cargo run -q -- "))
        .map(|command| command.split('#').next().unwrap().trim())
        .collect();
    // What agents are told.
    let told = headroom_testing::text("public/llms.txt");
    let told = told
        .lines()
        .filter_map(|line| line.strip_prefix("    headroom "));
    let commands: Vec<&str> = commands.into_iter().chain(told).collect();
    for command in &commands {
        let output = Command::new(env!("CARGO_BIN_EXE_headroom"))
            .args(command.split(' ').map(|word| word.trim_matches('"')))
            .current_dir(&folder)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        // No answer hides what it assumed.
        let answers = command.starts_with("estimate");
        assert!(!answers || said.contains("\nassuming "), "{said}");
    }
    assert!(commands.len() > 10, "{commands:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_commonest_questions_are_answered_with_commands_that_run() {
    let folder = headroom_testing::root().join("docs/questions");
    let mut pages: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    let mut run = 0;
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        let blocks = text.split("```sh\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().unwrap());
        for command in blocks.flat_map(str::lines) {
            let words = command.strip_prefix("headroom ").unwrap().split(' ');
            let output = Command::new(env!("CARGO_BIN_EXE_headroom"))
                .args(words)
                .output()
                .unwrap();
            // 1: it does not fit, which is an answer.
            let answered = matches!(output.status.code(), Some(0 | 1));
            assert!(answered, "{}: {command}: {output:?}", page.display());
            run += 1;
        }
    }
    assert!(pages.len() >= 11 && run >= 20, "{} {run}", pages.len());
}

#[test]
fn the_tables_are_the_programs() {
    let fields = format!("\n{}", schema::markdown());
    let tables = [
        ("<!-- fields:", "<!-- end -->", fields),
        (
            "<!-- items:",
            "<!-- end items -->",
            schema::network_markdown(),
        ),
    ];
    for (begin, end, expected) in tables {
        let text = text();
        let (before, rest) = text.split_once(begin).unwrap();
        let (note, rest) = rest.split_once("-->\n").unwrap();
        let (table, after) = rest.split_once(end).unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let text = format!("{before}{begin}{note}-->\n{expected}{end}{after}");
            std::fs::write(headroom_testing::root().join(PATH), text).unwrap();
        } else {
            assert_eq!(
                table, expected,
                "write it anew: UPDATE_DOCS=1 cargo test -p gpu-headroom --test it docs"
            );
        }
    }
}

#[test]
fn every_size_of_a_research_system_is_explained() {
    let text = headroom_testing::text("docs/systems.md");
    for model in catalog::models() {
        if !["dreams", "gsa", "peptrm", "e3-pocket", "prs-med"].contains(&model.arch) {
            continue;
        }
        assert!(text.contains(&format!("`{}`", model.id)), "{}", model.id);
        for (size, _) in model.sizes() {
            assert!(text.contains(&format!("`{size}`")), "{}: {size}", model.id);
        }
    }
}

/// The commands in the tables of the guides' features, and whether the table says that they are refused.
fn shown_commands(folder: &str) -> Vec<(String, bool)> {
    /// The author's own scripts are not in this repository. The others take long without optimization; what they answer has
    /// tests of its own.
    const LEFT_OUT: [&str; 5] = ["import", "accumulate", "guide", "solve", "tiers"];
    let text = headroom_testing::text("docs/systems.md");
    let (_, rest) = text.split_once("## The guides' features").unwrap();
    let (tables, _) = rest.split_once("## Dimensions").unwrap();
    let mut commands = Vec::new();
    for row in tables.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, _, shown, result, _] = cells[..] else {
            continue;
        };
        let Some(command) = shown.strip_prefix("`headroom ") else {
            continue;
        };
        let command = command.trim_end_matches('`').replace("DIR", folder);
        if !LEFT_OUT
            .iter()
            .any(|left_out| command.starts_with(left_out))
        {
            commands.push((command, result.starts_with("works: refused")));
        }
    }
    commands.sort();
    commands.dedup();
    commands
}

#[test]
fn every_command_that_shows_a_guides_feature_runs() {
    let folder = std::env::temp_dir().join(format!("headroom-docs-{}", std::process::id()));
    let commands = shown_commands(folder.to_str().unwrap());
    for (command, refused) in &commands {
        let output = Command::new(env!("CARGO_BIN_EXE_headroom"))
            .args(command.split(' '))
            .output()
            .unwrap();
        // 1 says that the run does not fit.
        assert_eq!(output.status.code() == Some(2), *refused, "{command}");
        assert_eq!(output.stdout.is_empty(), *refused, "{command}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    assert!(commands.len() > 35, "{}", commands.len());
}

#[test]
fn links_of_the_guides_for_contributors_lead_somewhere() {
    let mut links = 0;
    for file in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"] {
        let text = headroom_testing::text(file);
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            let there = headroom_testing::root().join(target).exists();
            assert!(there, "{file} links to {target}");
            links += 1;
        }
    }
    assert!(links > 50, "{links}");
    assert!(headroom_testing::text("ARCHITECTURE.md").lines().count() <= 200);
}
