//! Commands against recorded runs: `truth`.

use std::fs;
use std::path::Path;

use super::answer::{Answer, Refusal, unreadable};
use super::args::Args;
use headroom_scenario::Problem;
use headroom_truth::{self as truth, Metric, Report};

pub(super) fn truth(args: &Args) -> Result<Answer, Refusal> {
    let file = args.positional(0);
    let records = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    if truth::are_posts(&records) {
        return answer(&truth::posts(&records));
    }
    if truth::are_failures(&records) {
        return diagnosed(file, &records, args);
    }
    let metric = match args.option("metric") {
        None => Metric::default(),
        Some(id) => Metric::from_id(id).ok_or_else(|| {
            Problem::new(
                "--metric",
                id,
                "allocated, reserved, expandable, forward, forward-peak, backward-peak, optimizer-peak, static or pinned",
            )
        })?,
    };
    let report = match args.option("recorded") {
        None => truth::score(&records, metric),
        Some(folder) => truth::score_recorded(&records, metric, |model| {
            let path = Path::new(folder).join(format!("{model}.json"));
            let read = fs::read_to_string(&path);
            read.map_err(|error| format!("{}: {error}", path.display()))
        }),
    };
    let title = args.option("title").unwrap_or(file);
    let text = match args.option("as") {
        None => lines(&report),
        Some("markdown") => {
            let words = title.split(|c: char| !c.is_ascii_alphanumeric());
            let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
            truth::markdown(&report, title, &format!("accuracy/{}.svg", words.join("-")))
        }
        Some("plot") => truth::plot(&report, title),
        Some("coverage") => truth::coverage(&report, title),
        Some(other) => Err(Problem::new("--as", other, "markdown, plot or coverage"))?,
    };
    let json = serde_json::to_string(&report)
        .map_err(|error| Refusal(vec![format!("the report cannot be written: {error}")]))?;
    Ok(Answer::with_json(text, format!("{json}\n")))
}

/// Scores diagnoses of recorded failures; their runs are in another file, by default in the same folder.
fn diagnosed(file: &str, records: &str, args: &Args) -> Result<Answer, Refusal> {
    let runs = match args.option("runs") {
        Some(given) => fs::read_to_string(given).map_err(|error| unreadable(given, &error))?,
        None => {
            let beside = Path::new(file);
            let stem = beside.file_stem().unwrap_or_default().to_string_lossy();
            let own = fs::read_to_string(beside.with_file_name(format!("{stem}_runs.jsonl")));
            own.or_else(|_| fs::read_to_string(beside.with_file_name("steps.jsonl")))
                .unwrap_or_default()
        }
    };
    answer(&truth::diagnoses(records, &runs))
}

/// The diagnoses, as text and as JSON.
fn answer(found: &(impl std::fmt::Display + serde::Serialize)) -> Result<Answer, Refusal> {
    let json = serde_json::to_string(found)
        .map_err(|error| Refusal(vec![format!("the diagnoses cannot be written: {error}")]))?;
    Ok(Answer::with_json(found.to_string(), format!("{json}\n")))
}

/// One line per case, then the summary.
fn lines(report: &Report) -> String {
    let mut lines = String::new();
    for row in &report.rows {
        lines.push_str(&match &row.unsupported {
            Some(why) => format!("{:<60} unsupported: {why}\n", row.id),
            None => format!(
                "{:<60} {:>14} {:>14} {:+.4}%\n",
                row.id,
                row.truth.unwrap_or(0),
                row.predicted.unwrap_or(0),
                row.error.unwrap_or(0.0)
            ),
        });
    }
    for (class, selected) in &report.selected {
        lines.push_str(&format!("{class:<10} {selected}\n"));
    }
    lines.push_str(&format!("{}\n", report.all));
    lines
}
