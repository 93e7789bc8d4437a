//! A newcomer finds any room in one step, and imports run one way: `ARCHITECTURE.md` links to each room, and no file
//! imports from a room above its own or stands in a circle of imports.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[path = "rooms/imports.rs"]
mod imports;
#[path = "rooms/tokens.rs"]
mod tokens;

use std::fs;
use std::path::Path;

use imports::Sources;

/// The rooms from the ground up: each may import those before it, and none after it.
const ORDER: &[&str] = &[
    "list",
    "order",
    "units",
    "dtype",
    "decimal",
    "document",
    "catalog",
    "mesh",
    "tape",
    "allocator",
    "scenario",
    "share",
    "parallel",
    "nets",
    "step",
    "estimate",
    "strategy",
    "guide",
    "export",
    "import",
    "truth",
    "cli",
    "web",
];

fn map() -> String {
    fs::read_to_string("ARCHITECTURE.md").unwrap()
}

#[test]
fn every_room_is_on_the_map() {
    let map = map();
    for entry in fs::read_dir("src").unwrap() {
        let path = entry.unwrap().path();
        let link = format!("]({})", path.display());
        assert!(map.contains(&link), "ARCHITECTURE.md lacks {link}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    for file in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(file).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            assert!(Path::new(target).exists(), "{file} links to {target}");
        }
    }
}

#[test]
fn the_map_stays_one_page() {
    assert!(map().lines().count() <= 200);
}

#[test]
fn every_room_has_its_place_in_the_order() {
    for entry in fs::read_dir("src").unwrap() {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap();
        let known = ORDER.contains(&room) || ["bin", "lib", "main"].contains(&room);
        assert!(known, "{room} has no place in the order of rooms");
    }
}

#[test]
fn no_import_runs_against_the_order_of_rooms() {
    let sources = Sources::read("src");
    assert!(sources.arrows().count() > 1000, "imports are not read");
    let against: Vec<String> = against(&sources);
    assert_eq!(against, Vec::<String>::new());
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let circles = Sources::read("src").circles();
    assert_eq!(circles, Vec::<Vec<String>>::new());
}

/// Imports from a room above the importing file's own, as `file -> file: name`.
fn against(sources: &Sources) -> Vec<String> {
    let level = |file: &str| {
        let room = file.strip_prefix("src/").unwrap_or(file);
        let room = room
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        ORDER.iter().position(|known| *known == room)
    };
    let mut found = Vec::new();
    for arrow in sources.arrows() {
        if let (Some(from), Some(to)) = (level(&arrow.from), level(&arrow.to))
            && to > from
        {
            found.push(arrow.to_string());
        }
    }
    found
}

/// The check is checked: a tape that took a phase from estimate, and two files that import each other.
#[test]
fn what_breaks_the_order_is_found() {
    let sources = Sources::of(&[
        ("src/lib.rs", "pub mod estimate; mod tape;"),
        ("src/tape/sample.rs", "use crate::estimate::Band;"),
        (
            "src/tape/mod.rs",
            "mod trace;\n#[cfg(test)]\npub(crate) mod sample;\nuse crate::estimate::{Band, Phase};",
        ),
        (
            "src/tape/trace.rs",
            "use super::param::Param;\n#[cfg(test)]\nmod tests { use crate::estimate::Band; }",
        ),
        (
            "src/tape/param.rs",
            "use super::trace;\npub struct Param(trace::Trace);",
        ),
        (
            "src/estimate/mod.rs",
            "mod outcome;\npub use outcome::*;\nuse crate::tape::trace::Trace;",
        ),
        (
            "src/estimate/outcome.rs",
            "pub struct Band;\npub enum Phase {}",
        ),
    ]);
    assert_eq!(
        against(&sources),
        [
            "src/tape/mod.rs -> src/estimate/mod.rs: Band",
            "src/tape/mod.rs -> src/estimate/mod.rs: Phase"
        ]
    );
    assert_eq!(
        sources.circles(),
        [[
            "src/estimate/mod.rs",
            "src/tape/mod.rs",
            "src/tape/param.rs",
            "src/tape/trace.rs"
        ]]
    );
}
