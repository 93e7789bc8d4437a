//! A table on its way from a worker to the page, as lines of text.

use std::cmp::Ordering;

use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_scenario::Scenario;
use headroom_scenario::share;

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    /// What stands out, and what explains it more quietly.
    Note(String, String),
    Size(Bytes),
    /// What a quantity was and what it becomes.
    Change(Bytes, Bytes),
    /// A quantity, and how it is shown.
    Shown(f64, String),
}

/// By which column a table's rows stand, and whether the largest comes first.
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

/// A row, and the scenario that pressing its button takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    pub link: Option<String>,
}

/// What a job has to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Sentences above the table.
    pub says: Vec<String>,
    pub rows: Vec<Row>,
    /// What is folded away beneath the table: a title, and what is under it.
    pub asides: Vec<(String, String)>,
    /// Places of a drawing: memory, seconds, and whether it is the one that is proposed.
    pub points: Vec<(Bytes, f64, bool)>,
}

impl Sheet {
    pub fn say(&mut self, text: impl Into<String>) {
        self.says.push(text.into());
    }

    pub fn aside(&mut self, title: String, text: String) {
        self.asides.push((title, text));
    }

    pub fn row(&mut self, scenario: Option<&Scenario>, cells: Vec<Cell>) {
        let link = scenario.map(share::write);
        self.rows.push(Row { cells, link });
    }

    pub fn lines(&self) -> Vec<String> {
        let says = self.says.iter().map(|line| format!("say\t{}", flat(line)));
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<_> = row.cells.iter().map(Cell::write).collect();
            let link = row.link.as_deref().unwrap_or_default();
            format!("row\t{link}\t{}", cells.join("\t"))
        });
        let points = self.points.iter().map(|(bytes, seconds, best)| {
            format!("point\t{}\t{seconds}\t{}", bytes.get(), u8::from(*best))
        });
        let asides = self.asides.iter();
        let asides = asides.map(|(title, text)| format!("aside\t{}\t{}", flat(title), flat(text)));
        says.chain(rows).chain(asides).chain(points).collect()
    }

    pub fn read(lines: &[String]) -> Self {
        let mut sheet = Self::default();
        for line in lines {
            let mut parts = line.split('\t');
            match parts.next() {
                Some("say") => sheet.says.extend(parts.next().map(String::from)),
                Some("row") => {
                    let link = parts
                        .next()
                        .filter(|link| !link.is_empty())
                        .map(String::from);
                    let cells = parts.filter_map(Cell::read).collect();
                    sheet.rows.push(Row { cells, link });
                }
                Some("aside") => {
                    let pair = parts.next().zip(parts.next());
                    sheet
                        .asides
                        .extend(pair.map(|(title, text)| (title.into(), text.into())));
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

    /// Puts the rows in order of a column; equal ones stay as they are.
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

/// What all lists hold: said once above rows that show what differs.
pub fn shared(lists: &[Vec<String>]) -> Vec<String> {
    let Some((first, rest)) = lists.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let everywhere = |item: &&String| rest.iter().all(|list| list.contains(item));
    first.iter().filter(everywhere).cloned().collect()
}

/// Text without what parts lines and cells.
fn flat(text: &str) -> String {
    text.replace(['\t', '\n', '\u{1f}'], " ")
}

impl Row {
    /// What tells it from the others.
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
    /// Its main words.
    pub fn title(&self) -> String {
        match self {
            Self::Text(text) | Self::Note(text, _) | Self::Shown(_, text) => text.clone(),
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
            ('n', Some((text, note))) => Self::Note(text.into(), note.into()),
            ('b', _) => Self::Size(bytes(rest)?),
            ('c', Some((from, to))) => Self::Change(bytes(from)?, bytes(to)?),
            ('s', Some((value, text))) => Self::Shown(value.parse().ok()?, text.into()),
            _ => return None,
        })
    }

    /// What rows are ordered by: a number, or words.
    fn key(&self) -> (Option<f64>, &str) {
        match self {
            Self::Text(text) => (text.parse().ok(), text),
            Self::Note(text, _) => (None, text),
            Self::Size(bytes) => (Some(bytes.get() as f64), ""),
            // What saves most is the least.
            Self::Change(from, to) => (Some(to.get() as f64 - from.get() as f64), ""),
            Self::Shown(value, _) => (Some(*value), ""),
        }
    }
}

/// Numbers before words, for words in their place say that there is no number.
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
        sheet.say("a <b>\nc");
        let size = Bytes::gib(2.0);
        sheet.row(
            Some(&Scenario::default()),
            vec![
                Cell::Note("one\ttwo".into(), "why".into()),
                "x".into(),
                Cell::Size(size),
                Cell::Change(size, Bytes::gib(1.0)),
                Cell::Shown(0.5, "half".into()),
            ],
        );
        sheet.row(None, vec!["".into()]);
        sheet.aside("too small".into(), "a\tb".into());
        sheet.points = vec![(size, 0.25, true)];
        sheet
    }

    #[test]
    fn a_sheet_crosses_as_lines() {
        let sheet = sample();
        let mut read = Sheet::read(&sheet.lines());
        assert_eq!(read.lines(), sheet.lines());
        assert_eq!(read.says, ["a <b> c"]);
        assert_eq!(read.points.pop(), Some((Bytes::gib(2.0), 0.25, true)));
        assert_eq!(read.rows[1].cells, [Cell::Text(String::new())]);
        assert_eq!(read.asides, [("too small".into(), "a b".into())]);
        assert_eq!(
            Sheet::read(&["row".into(), "point\tx".into(), "?".into()]).points,
            []
        );
    }

    #[test]
    fn rows_stand_in_order_and_what_has_no_number_last() {
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

    #[test]
    fn what_all_have_in_common_is_found() {
        let lists = |all: &[&[&str]]| -> Vec<Vec<String>> {
            all.iter()
                .map(|list| list.iter().map(ToString::to_string).collect())
                .collect()
        };
        let check = |all: &[&[&str]], expected: &[&str]| assert_eq!(shared(&lists(all)), expected);
        check(&[&["a", "b"], &["b", "c"], &["b"]], &["b"]);
        check(&[&["a"]], &[]);
        check(&[], &[]);
    }
}
