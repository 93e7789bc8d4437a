//! A recorded run of the real allocator, replayed and compared: `headroom replay EVENTS.jsonl[.gz]`.

mod comparison;
mod report;

use std::io::{BufRead, BufReader, Read};
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
    let mut lines = Lines::new(lines).enumerate();
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

/// The lines of a file, each of a bounded length: a few bytes of gzip can be a line of gigabytes.
struct Lines<R> {
    reader: R,
}

impl<R: BufRead> Lines<R> {
    const LONGEST: u64 = 1 << 20;

    const fn new(reader: R) -> Self {
        Self { reader }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = std::io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        let mut limited = (&mut self.reader).take(Self::LONGEST);
        match limited.read_line(&mut line) {
            Err(error) => Some(Err(error)),
            Ok(0) => None,
            Ok(_) if limited.limit() == 0 && !line.ends_with('\n') => {
                let longest = format!("expected a line of less than {} bytes", Self::LONGEST);
                Some(Err(std::io::Error::other(longest)))
            }
            Ok(_) => Some(Ok(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::replay_lines;

    #[track_caller]
    fn check(events: &str, expected: &str) {
        let text = format!("{{\"id\": \"x\", \"config\": {{\"alloc\": \"\"}}}}\n{events}");
        let found = replay_lines(text.as_bytes()).map(|report| format!("{} events", report.events));
        let found = found.unwrap_or_else(|problem| problem);
        assert!(found.starts_with(expected), "{found}");
    }

    /// The recorder reads its counters where it catches the exception: the failed operation's own tensors are gone by then.
    #[test]
    fn a_failing_step_is_read_as_its_exception_is_caught() {
        const MIB: u64 = 1 << 20;
        let (big, room) = (20 * MIB, 44 * MIB);
        let first = format!("{{\"config\": {{}}, \"usable_bytes\": {room}}}\n");
        let requests = format!(
            "[\"a\",1,{big}]\n[\"a\",2,{big}]\n[\"oom\",{big},{}]\n",
            4 * MIB
        );
        let unwound = "[\"f\",2]\n[\"f\",1]\n";
        let all = 2 * big;
        let step = format!("[\"step\",0,1,{all},{big},{all},{all},{all},0,0,1,1,2]\n");
        let report = replay_lines(format!("{first}{requests}{unwound}{step}").as_bytes()).unwrap();
        assert_eq!(
            (report.steps, report.mismatches.len()),
            (1, 0),
            "{report:?}"
        );
    }

    #[test]
    fn hostile_files_take_no_memory() {
        check("[\"a\",1,512,65535]\n", "1 events");
        check("[\"a\",1,512,4294967295]\n[\"a\",2,512,0]\n", "2 events");
        let many = (0..1000).map(|stream| format!("[\"a\",{stream},512,{stream}]\n"));
        check(
            &many.collect::<String>(),
            "line 258: field 3 names more than 256 streams",
        );
        check(&" ".repeat(2 << 20), "line 2: expected a line of less than");
    }
}
