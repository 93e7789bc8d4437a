//! The command line: the same library, in a terminal.

use std::process::ExitCode;

#[allow(clippy::print_stdout)]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let Some(path) = args.get(2) else {
        return ExitCode::from(2);
    };
    let Ok(text) = std::fs::read_to_string(path) else {
        return ExitCode::from(2);
    };
    let metric = args
        .get(3)
        .and_then(|id| headroom::truth::Metric::from_id(id))
        .unwrap_or_default();
    let report = headroom::truth::score(&text, metric);
    for row in &report.rows {
        match &row.unsupported {
            Some(why) => println!("{:<60} unsupported: {why}", row.id),
            None => println!(
                "{:<60} {:>14} {:>14} {:+.4}%",
                row.id,
                row.truth.unwrap_or(0),
                row.predicted.unwrap_or(0),
                row.error.unwrap_or(0.0)
            ),
        }
    }
    println!("{}", report.all);
    ExitCode::SUCCESS
}
