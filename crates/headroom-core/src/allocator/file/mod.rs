//! A recorded run of the real allocator, replayed and compared: `headroom replay EVENTS.jsonl[.gz]`.

mod comparison;
mod report;

use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use comparison::{Comparison, Header};
pub use report::{FileReport, Mismatch};

/// Replays the file at `path`; an error names the line and what was expected there.
pub fn replay(path: &Path) -> Result<FileReport, String> {
    let name = path.display();
    let file = std::fs::File::open(path).map_err(|error| format!("{name}: {error}"))?;
    let mut reader = BufReader::new(file);
    let start = reader
        .fill_buf()
        .map_err(|error| format!("{name}: {error}"))?;
    let report = if start.starts_with(&[0x1f, 0x8b]) {
        replay_lines(BufReader::new(MultiGzDecoder::new(reader)))
    } else {
        replay_lines(reader)
    };
    report.map_err(|error| format!("{name}: {error}"))
}

/// Replays the lines of an uncompressed file.
pub fn replay_lines(lines: impl BufRead) -> Result<FileReport, String> {
    let mut lines = lines.lines().enumerate();
    let Some((_, first)) = lines.next() else {
        return Err("line 1: expected the run's configuration, found nothing".into());
    };
    let first = first.map_err(|error| format!("line 1: {error}"))?;
    let header: Header =
        serde_json::from_str(&first).map_err(|error| format!("line 1: {error}"))?;
    let mut comparison = Comparison::new(header)?;
    for (number, line) in lines {
        let number = number + 1;
        let line = line.map_err(|error| format!("line {number}: {error}"))?;
        comparison
            .line(number, &line)
            .map_err(|error| format!("line {number}: {error}"))?;
    }
    comparison.settle_outside_release();
    Ok(comparison.report)
}
