//! A table that the worker sends to the page as lines of text.

use std::cmp::Ordering;

use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_scenario::Scenario;
use headroom_scenario::share;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    /// A main text and a less prominent explanation.
    Note(String, String),
    /// A name, and a list of what makes it up, each with a less prominent explanation.
    Steps(String, Vec<(String, String)>),
    Size(Bytes),
    /// A quantity before and after.
    Change(Bytes, Bytes),
    /// A quantity, and how it is shown.
    Shown(f64, String),
}

/// The column by which a table is sorted, and whether in descending order.
pub type Order = (usize, bool);

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A row, and the scenario that its button applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    pub link: Option<String>,
}

/// A job's output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Sentences above the table.
    pub messages: Vec<String>,
    pub rows: Vec<Row>,
    /// Points of a chart: memory, seconds, and whether it is the proposed one.
    pub points: Vec<(Bytes, f64, bool)>,
}

impl Sheet {
    pub fn line(&mut self, text: impl Into<String>) {
        self.messages.push(text.into());
    }

    pub fn row(&mut self, scenario: Option<&Scenario>, cells: Vec<Cell>) {
        let link = scenario.map(share::write);
        self.rows.push(Row { cells, link });
    }

    /// A row whose button opens a link; none if that is empty.
    pub fn link(&mut self, link: &str, cells: Vec<Cell>) {
        let link = (!link.is_empty()).then(|| link.to_string());
        self.rows.push(Row { cells, link });
    }

    pub fn lines(&self) -> Vec<String> {
        let messages = self
            .messages
            .iter()
            .map(|line| format!("say\t{}", flat(line)));
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<_> = row.cells.iter().map(Cell::write).collect();
            let link = row.link.as_deref().unwrap_or_default();
            format!("row\t{link}\t{}", cells.join("\t"))
        });
        let points = self.points.iter().map(|(bytes, seconds, best)| {
            format!("point\t{}\t{seconds}\t{}", bytes.get(), u8::from(*best))
        });
        messages.chain(rows).chain(points).collect()
    }

    pub fn read(lines: &[String]) -> Self {
        let mut sheet = Self::default();
        for line in lines {
            let mut parts = line.split('\t');
            match parts.next() {
                Some("say") => sheet.messages.extend(parts.next().map(String::from)),
                Some("row") => {
                    let link = parts
                        .next()
                        .filter(|link| !link.is_empty())
                        .map(String::from);
                    let cells = parts.filter_map(Cell::read).collect();
                    sheet.rows.push(Row { cells, link });
                }
                Some("point") => {
                    let mut next = || parts.next()?.parse::<f64>().ok();
                    if let (Some(bytes), Some(seconds), Some(best)) = (next(), next(), next()) {
                        sheet
                            .points
                            .push((Bytes::new(bytes as u64), seconds, best > 0.0));
                    }
                }
                _ => {}
            }
        }
        sheet
    }

    /// Sorts the rows by a column; stable.
    pub fn sort(&mut self, (column, largest_first): Order) {
        let rows = std::mem::take(&mut self.rows);
        self.rows = sorted(rows, |a, b| {
            match (a.cells.get(column), b.cells.get(column)) {
                (Some(a), Some(b)) => in_order(a, b, largest_first),
                (a, b) => b.is_some().cmp(&a.is_some()),
            }
        });
    }
}

/// Text without line and cell separators.
fn flat(text: &str) -> String {
    text.replace(['\t', '\n', '\u{1e}', '\u{1f}'], " ")
}

impl Row {
    /// The tag of the variant.
    pub fn key(&self) -> String {
        let cells: Vec<_> = self.cells.iter().map(Cell::write).collect();
        format!(
            "{} {}",
            self.link.as_deref().unwrap_or_default(),
            cells.join("\t")
        )
    }
}

impl Cell {
    /// Its main text.
    pub fn title(&self) -> String {
        match self {
            Self::Text(text)
            | Self::Note(text, _)
            | Self::Steps(text, _)
            | Self::Shown(_, text) => text.clone(),
            Self::Size(_) | Self::Change(..) => String::new(),
        }
    }

    /// Whether it is a quantity.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Size(_) | Self::Change(..) | Self::Shown(..))
    }

    fn write(&self) -> String {
        match self {
            Self::Text(text) => format!("t{}", flat(text)),
            Self::Note(text, note) => format!("n{}\u{1f}{}", flat(text), flat(note)),
            Self::Steps(text, steps) => {
                let entry = |(what, why): &(String, String)| {
                    format!("\u{1f}{}\u{1e}{}", flat(what), flat(why))
                };
                format!(
                    "l{}{}",
                    flat(text),
                    steps.iter().map(entry).collect::<String>()
                )
            }
            Self::Size(bytes) => format!("b{}", bytes.get()),
            Self::Change(from, to) => format!("c{}\u{1f}{}", from.get(), to.get()),
            Self::Shown(value, text) => format!("s{value}\u{1f}{}", flat(text)),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut rest = text.chars();
        let kind = rest.next()?;
        let rest = rest.as_str();
        let bytes = |text: &str| text.parse().ok().map(Bytes::new);
        Some(match (kind, rest.split_once('\u{1f}')) {
            ('t', _) => Self::Text(rest.into()),
            ('l', _) => {
                let mut fields = rest.split('\u{1f}');
                let name = fields.next()?.into();
                let entry = |field: &str| {
                    let (what, why) = field.split_once('\u{1e}')?;
                    Some((what.into(), why.into()))
                };
                Self::Steps(name, fields.filter_map(entry).collect())
            }
            ('n', Some((text, note))) => Self::Note(text.into(), note.into()),
            ('b', _) => Self::Size(bytes(rest)?),
            ('c', Some((from, to))) => Self::Change(bytes(from)?, bytes(to)?),
            ('s', Some((value, text))) => Self::Shown(value.parse().ok()?, text.into()),
            _ => return None,
        })
    }

    /// A sort key: a number, or text.
    fn key(&self) -> (Option<f64>, &str) {
        match self {
            Self::Text(text) => (text.parse().ok(), text),
            Self::Note(text, _) | Self::Steps(text, _) => (None, text),
            Self::Size(bytes) => (Some(bytes.get() as f64), ""),
            // The largest saving is the smallest number.
            Self::Change(from, to) => (Some(to.get() as f64 - from.get() as f64), ""),
            Self::Shown(value, _) => (Some(*value), ""),
        }
    }
}

/// Numbers before text: text means that there is no number.
fn in_order(a: &Cell, b: &Cell, largest_first: bool) -> Ordering {
    let turned = |ordering: Ordering| {
        if largest_first {
            ordering.reverse()
        } else {
            ordering
        }
    };
    match (a.key(), b.key()) {
        ((Some(a), _), (Some(b), _)) => turned(a.total_cmp(&b)),
        ((Some(_), _), _) => Ordering::Less,
        (_, (Some(_), _)) => Ordering::Greater,
        ((_, a), (_, b)) => turned(a.cmp(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sheet {
        let mut sheet = Sheet::default();
        sheet.line("a <b>\nc");
        let size = Bytes::gib(2.0);
        sheet.row(
            Some(&Scenario::default()),
            vec![
                Cell::Note("one\ttwo".into(), "why".into()),
                Cell::Steps("x".into(), vec![("do".into(), "why".into())]),
                Cell::Size(size),
                Cell::Change(size, Bytes::gib(1.0)),
                Cell::Shown(0.5, "half".into()),
            ],
        );
        sheet.row(None, vec!["".into()]);
        sheet.points = vec![(size, 0.25, true)];
        sheet
    }

    #[test]
    fn a_sheet_round_trips_as_lines() {
        let sheet = sample();
        let mut read = Sheet::read(&sheet.lines());
        assert_eq!(read.lines(), sheet.lines());
        assert_eq!(read.messages, ["a <b> c"]);
        assert_eq!(read.points.pop(), Some((Bytes::gib(2.0), 0.25, true)));
        assert_eq!(read.rows[1].cells, [Cell::Text(String::new())]);
        assert_eq!(
            Sheet::read(&["row".into(), "point\tx".into(), "?".into()]).points,
            []
        );
    }

    #[test]
    fn rows_are_sorted_with_missing_values_last() {
        #[track_caller]
        fn check(order: Order, expected: &str) {
            let mut sheet = Sheet::default();
            for (name, size) in [("b", "10"), ("a", "–"), ("c", "9")] {
                sheet.row(None, vec![name.into(), size.into()]);
            }
            sheet.sort(order);
            let names = sheet.rows.iter().map(|row| row.cells[0].key().1);
            assert_eq!(names.collect::<String>(), expected);
        }
        check((0, false), "abc");
        check((0, true), "cba");
        check((1, false), "cba");
        check((1, true), "bca");
        check((7, true), "bac");
    }
}
