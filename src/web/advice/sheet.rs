//! A table on its way from a worker to the page: as lines of text, and as HTML.

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

    /// The sentences and the table; the last `numbers` columns are numbers, and buttons stand behind them.
    pub fn html(&self, head: &[&str], numbers: usize, units: UnitStyle) -> String {
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
            html.push_str(&format!("<th scope=\"col\"{}>{name}</th>", class(column)));
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
            _ => return None,
        })
    }

    fn html(&self, units: UnitStyle) -> String {
        match self {
            Self::Text(text) => escape(text),
            Self::Note(text, note) => format!(
                "{} <span class=\"quiet\">{}</span>",
                escape(text),
                escape(note)
            ),
            Self::Size(bytes) => bytes.show(units),
            Self::Change(from, to) => compare::change(*from, *to, units),
        }
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
    fn a_sheet_is_shown_without_trust() {
        let html = sample().html(&["a", "b", "c", "d"], 2, UnitStyle::Binary);
        assert!(
            html.contains("a &lt;b&gt;") && html.contains("2.00 GiB") && html.contains("−1.00 GiB")
        );
        assert_eq!(html.matches("data-link=").count(), 1);
        assert_eq!(Sheet::default().html(&["a"], 0, UnitStyle::Binary), "");
    }
}
