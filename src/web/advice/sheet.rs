//! A table on its way from a worker to the page: as lines of text, and as HTML.

use std::cmp::Ordering;

use crate::order::sorted;
use crate::scenario::Scenario;
use crate::share;
use crate::units::{Bytes, UnitStyle};
use crate::web::compare;
use crate::web::markup::escape;
use crate::web::text;

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

/// What the heads of a table's columns do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    Plain,
    /// They are buttons that put the rows in order.
    Sort(Option<Order>),
}

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
    /// Places of a drawing: memory, seconds, and whether it is the one that is proposed.
    pub points: Vec<(Bytes, f64, bool)>,
}

impl Sheet {
    pub fn say(&mut self, text: impl Into<String>) {
        self.says.push(text.into());
    }

    pub fn row(&mut self, scenario: Option<&Scenario>, cells: Vec<Cell>) {
        let link = scenario.map(share::write);
        self.rows.push(Row { cells, link });
    }

    pub fn lines(&self) -> Vec<String> {
        let says = self.says.iter().map(|it| format!("say\t{}", flat(it)));
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<_> = row.cells.iter().map(Cell::write).collect();
            let link = row.link.as_deref().unwrap_or_default();
            format!("row\t{link}\t{}", cells.join("\t"))
        });
        let points = self.points.iter().map(|(bytes, seconds, best)| {
            format!("point\t{}\t{seconds}\t{}", bytes.get(), u8::from(*best))
        });
        says.chain(rows).chain(points).collect()
    }

    pub fn read(lines: &[String]) -> Self {
        let mut sheet = Self::default();
        for line in lines {
            let mut parts = line.split('\t');
            match parts.next() {
                Some("say") => sheet.says.extend(parts.next().map(String::from)),
                Some("row") => {
                    let link = parts.next().filter(|it| !it.is_empty()).map(String::from);
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

    /// The sentences and the table; the last `numbers` columns are numbers, and buttons stand behind them.
    pub fn html(&self, head: &[&str], numbers: usize, units: UnitStyle) -> String {
        self.html_with(head, numbers, units, Heads::Plain)
    }

    /// The same with heads that may do something.
    pub fn html_with(
        &self,
        head: &[&str],
        numbers: usize,
        units: UnitStyle,
        heads: Heads,
    ) -> String {
        let mut html = String::new();
        for it in &self.says {
            html.push_str(&format!("<p>{}</p>", escape(it)));
        }
        if self.rows.is_empty() {
            return html;
        }
        let class = |column| {
            if column + numbers >= head.len() {
                " class=\"number\""
            } else {
                ""
            }
        };
        html.push_str("<table class=\"plain-table\"><thead><tr>");
        for (column, name) in head.iter().enumerate() {
            let mut name = (*name).to_string();
            let mut sorted = String::new();
            if let Heads::Sort(order) = heads {
                let sign = match order.filter(|it| it.0 == column) {
                    Some((_, true)) => "descending",
                    Some((_, false)) => "ascending",
                    None => "none",
                };
                sorted = format!(" aria-sort=\"{sign}\"");
                name = format!("<button type=\"button\" data-sort=\"{column}\">{name}</button>");
            }
            html.push_str(&format!(
                "<th scope=\"col\"{sorted}{}>{name}</th>",
                class(column)
            ));
        }
        html.push_str("<td></td></tr></thead><tbody>");
        for row in &self.rows {
            html.push_str("<tr>");
            for (column, cell) in row.cells.iter().enumerate() {
                let (tag, scope) = if column == 0 {
                    ("th", " scope=\"row\"")
                } else {
                    ("td", "")
                };
                // The last cell of a short row takes the place of those it has not.
                let missing = if column + 1 == row.cells.len() {
                    head.len() - head.len().min(column)
                } else {
                    1
                };
                let span = if missing > 1 {
                    format!(" colspan=\"{missing}\"")
                } else {
                    String::new()
                };
                html.push_str(&format!(
                    "<{tag}{scope}{span}{}>{}</{tag}>",
                    class(column),
                    cell.html(units)
                ));
            }
            let button = row.link.as_ref().map(|link| {
                format!(
                    "<button type=\"button\" data-link=\"{}\">{}</button>",
                    escape(link),
                    text::APPLY
                )
            });
            html.push_str(&format!("<td>{}</td></tr>", button.unwrap_or_default()));
        }
        html.push_str("</tbody></table>");
        html
    }
}

/// Text without what parts lines and cells.
fn flat(text: &str) -> String {
    text.replace(['\t', '\n', '\u{1f}'], " ")
}

impl Cell {
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

    fn html(&self, units: UnitStyle) -> String {
        match self {
            Self::Text(text) | Self::Shown(_, text) => escape(text),
            Self::Note(text, note) => format!(
                "{} <span class=\"quiet\">{}</span>",
                escape(text),
                escape(note)
            ),
            Self::Size(bytes) => bytes.show(units),
            Self::Change(from, to) => compare::change(*from, *to, units),
        }
    }

    /// What rows are ordered by: a number, or words.
    fn key(&self) -> (Option<f64>, &str) {
        match self {
            Self::Text(text) => (text.parse().ok(), text),
            Self::Note(text, _) => (None, text),
            Self::Size(bytes) | Self::Change(_, bytes) => (Some(bytes.get() as f64), ""),
            Self::Shown(value, _) => (Some(*value), ""),
        }
    }
}

/// Numbers before words, for words in their place say that there is no number.
fn in_order(a: &Cell, b: &Cell, largest_first: bool) -> Ordering {
    let turned = |it: Ordering| if largest_first { it.reverse() } else { it };
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
        let mut sheet = sample();
        sheet.sort((3, true));
        let html = sheet.html_with(
            &["a", "b"],
            1,
            UnitStyle::Binary,
            Heads::Sort(Some((1, true))),
        );
        assert!(html.contains("aria-sort=\"descending\" class=\"number\"><button"));
        assert_eq!(html.matches("data-sort").count(), 2);
    }

    #[test]
    fn a_sheet_is_shown_without_trust() {
        let html = sample().html(&["a", "b", "c", "d", "e"], 3, UnitStyle::Binary);
        assert!(
            html.contains("a &lt;b&gt;") && html.contains("2.00 GiB") && html.contains("−1.00 GiB")
        );
        assert_eq!(html.matches("data-link=").count(), 1);
        assert_eq!(Sheet::default().html(&["a"], 0, UnitStyle::Binary), "");
    }
}
