//! A network's text as editable rows: each statement with its fields, valid or not.
//!
//! The text is the only state. Rows are parsed from it leniently, and every edit produces a text again, so undo, links and
//! the text form need no extra code.

use headroom_scenario::Problem;
use headroom_scenario::network::{FIELD, ItemType, Position, item_types, statements};

/// A statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The path of its field.
    pub at: String,
    pub kind: String,
    pub fields: Vec<(String, String)>,
}

impl Row {
    /// Its kind, if known.
    pub fn known(&self) -> Option<&'static ItemType> {
        item_types().iter().find(|known| known.name == self.kind)
    }

    pub fn place(&self) -> Position {
        self.known().map_or(Position::Layer, |known| known.place)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(key, _)| key == name);
        field.map(|(_, value)| value.as_str())
    }
}

/// The rows of a text.
pub fn rows(text: &str) -> Vec<Row> {
    let row = |(at, statement): (String, &str)| {
        let mut words = statement.split(',').map(str::trim);
        let kind = words.next().unwrap_or_default().to_string();
        let field = |word: &str| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key.trim().to_string(), value.trim().to_string())
        };
        let fields = words.map(field).collect();
        Row { at, kind, fields }
    };
    statements(text).map(row).collect()
}

/// The text of rows.
pub fn text(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let mut text = row.kind.clone();
        for (key, value) in &row.fields {
            text.push_str(&format!(",{key}={value}"));
        }
        text
    };
    rows.iter().map(row).collect::<Vec<_>>().join(";")
}

/// The typed text, with separators replaced, so that it stays in its field and is rejected there.
fn plain(typed: &str) -> String {
    typed.replace([',', ';', '='], "?")
}

/// Sets a field of a row; an empty value removes it, so that the default applies.
pub fn set(rows: &mut [Row], at: usize, field: &str, value: &str) {
    let Some(row) = rows.get_mut(at) else {
        return;
    };
    let value = plain(value.trim());
    let place = row.fields.iter().position(|(key, _)| key == field);
    match place {
        Some(place) if value.is_empty() => {
            row.fields.remove(place);
        }
        Some(place) => row.fields[place].1 = value,
        None if value.is_empty() => {}
        None => row.fields.push((field.into(), value)),
    }
}

/// Sets the name or the value of a named size.
pub fn set_size(rows: &mut [Row], at: usize, index: usize, name: Option<&str>, value: &str) {
    let size = rows.get_mut(at).and_then(|row| row.fields.get_mut(index));
    if let Some((key, size)) = size {
        *key = name.map_or_else(|| key.clone(), |name| plain(name.trim()));
        if name.is_none() {
            *size = plain(value.trim());
        }
    }
}

/// The range of a row's block: a part includes its layers.
fn block(rows: &[Row], at: usize) -> (usize, usize) {
    let rest = rows.iter().skip(at + 1);
    let layers = rest
        .take_while(|row| row.place() == Position::Layer)
        .count();
    match rows.get(at).map(Row::place) {
        Some(Position::Part) => (at, at + 1 + layers),
        _ => (at, at + 1),
    }
}

/// Removes a row; a part goes with its layers.
pub fn remove(rows: &mut Vec<Row>, at: usize) {
    let (from, to) = block(rows, at);
    if to <= rows.len() {
        rows.drain(from..to);
    }
}

/// Moves a row past its neighbour, a part past a whole part, and a layer into the next part at the end of its own. Returns
/// its new index, or the old one if it cannot move.
pub fn shift(rows: &mut [Row], at: usize, up: bool) -> usize {
    let Some(place) = rows.get(at).map(Row::place) else {
        return at;
    };
    let (from, to) = block(rows, at);
    let fits = |row: Option<&Row>| match (place, row.map(Row::place)) {
        // The first part must stay before the first layer.
        (Position::Layer, Some(Position::Part)) => {
            !up || rows
                .get(..at - 1)
                .is_some_and(|row| row.iter().any(|row| row.place() == Position::Part))
        }
        (Position::Layer, other) => other == Some(Position::Layer),
        (Position::Part, other) => other == Some(Position::Part),
        (Position::Tensor, other) => other == Some(Position::Tensor),
        (Position::Top, _) => false,
    };
    if up {
        let other = if place == Position::Part {
            let before = rows.get(..at).unwrap_or_default();
            before.iter().rposition(|row| row.place() == Position::Part)
        } else {
            at.checked_sub(1)
        };
        let Some(other) = other.filter(|at| fits(rows.get(*at))) else {
            return at;
        };
        rows[other..to].rotate_right(to - from);
        other
    } else {
        if !fits(rows.get(to)) {
            return at;
        }
        let (_, end) = if place == Position::Part {
            block(rows, to)
        } else {
            (to, to + 1)
        };
        rows[from..end].rotate_left(to - from);
        from + end - to
    }
}

/// Adds a row of a kind: a layer at the end of the part at `part`. Returns the row's index.
pub fn add(rows: &mut Vec<Row>, kind: &str, part: usize) -> usize {
    let first = |names: &[&str]| {
        let found = rows.iter().position(|row| names.contains(&&*row.kind));
        found.unwrap_or(rows.len())
    };
    let at = match kind {
        "sizes" => 0,
        "input" => usize::from(rows.first().is_some_and(|row| row.kind == "sizes")),
        "part" => first(&["tensor", "loss"]),
        "tensor" => first(&["loss"]),
        "loss" => rows.len(),
        _ => block(rows, part).1.min(rows.len()),
    };
    let same = rows.iter().filter(|row| row.kind == kind).count() + 1;
    let name = format!("{kind}{same}");
    // Valid initial values, since required fields have no default.
    let fields: &[(&str, &str)] = match kind {
        "sizes" => &[("width", "512")],
        "part" => &[("name", &name)],
        "tensor" => &[("name", &name), ("shape", "batch")],
        "embedding" => &[("rows", "32000"), ("width", "512")],
        "linear" => &[("out", "512")],
        "attention" => &[("heads", "8")],
        "mlp" => &[("width", "2048")],
        "conv" => &[("out", "64")],
        _ => &[],
    };
    let fields = fields.iter().map(|(key, it)| ((*key).into(), (*it).into()));
    let row = Row {
        at: String::new(),
        kind: kind.into(),
        fields: fields.collect(),
    };
    rows.insert(at, row);
    at
}

/// Adds a named size.
pub fn add_size(rows: &mut [Row], at: usize) {
    if let Some(row) = rows.get_mut(at) {
        let name = format!("size{}", row.fields.len() + 1);
        row.fields.push((name, "1".into()));
    }
}

/// Removes a named size.
pub fn remove_size(rows: &mut [Row], at: usize, index: usize) {
    if let Some(row) = rows.get_mut(at)
        && index < row.fields.len()
    {
        row.fields.remove(index);
    }
}

/// An error and its position: the row and its field. Without a row it concerns the whole network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub row: Option<usize>,
    pub field: String,
    pub message: String,
}

/// Assigns problems to the rows whose paths they name.
pub fn marks(rows: &[Row], problems: &[Problem]) -> Vec<Mark> {
    let mark = |problem: &Problem| {
        let owns = |row: &Row| {
            let rest = problem.field().strip_prefix(&row.at)?;
            (rest.is_empty() || rest.starts_with('.')).then_some(rest.len())
        };
        let own = rows.iter().enumerate();
        let own = own.filter_map(|(at, row)| Some((owns(row)?, at))).min();
        let (field, row) = match own {
            Some((rest, at)) => {
                let start = problem.field().len() - rest;
                (problem.field().get(start + 1..), Some(at))
            }
            None => (problem.field().strip_prefix(FIELD), None),
        };
        let field = field.unwrap_or_default().trim_start_matches('.');
        let name = if field.is_empty() { "" } else { ": " };
        Mark {
            row,
            field: field.into(),
            message: format!("{field}{name}expected {}.", problem.expected()),
        }
    };
    problems.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::network::{Network, problems};
    use std::collections::BTreeMap;

    const TEXT: &str = "sizes,h=8;input,kind=values,shape=batch:4:h;part,name=a;norm;linear,out=h;part,name=b;mlp,width=4*h;tensor,name=t,shape=batch;tensor,name=u,shape=h;loss";

    #[track_caller]
    fn check(edit: impl FnOnce(&mut Vec<Row>), expected: &str) {
        let mut rows = rows(TEXT);
        edit(&mut rows);
        assert_eq!(text(&rows), expected);
    }

    #[test]
    fn rows_are_the_text() {
        check(|_| (), TEXT);
        let odd = "part;?;what,is=this;linear,out=";
        assert_eq!(text(&rows(odd)), odd);
        assert_eq!(rows(""), []);
    }

    #[test]
    fn typing_sets_a_field_and_an_empty_text_removes_it() {
        let with = |from: &str, to: &str| TEXT.replace(from, to);
        check(
            |all| set(all, 4, "out", " 2*h "),
            &with("out=h;part", "out=2*h;part"),
        );
        check(|all| set(all, 4, "out", ""), &with(",out=h;part", ";part"));
        check(
            |all| set(all, 4, "bias", "off"),
            &with("out=h;part", "out=h,bias=off;part"),
        );
        check(
            |all| set(all, 4, "out", "1;2,a=3"),
            &with("out=h;part", "out=1?2?a?3;part"),
        );
        check(
            |all| set_size(all, 0, 0, Some("w"), ""),
            &with("h=8", "w=8"),
        );
        check(|all| set_size(all, 0, 0, None, "9"), &with("h=8", "h=9"));
        check(|all| add_size(all, 0), &with("h=8", "h=8,size2=1"));
        check(|all| remove_size(all, 0, 0), &with("sizes,h=8", "sizes"));
        check(|all| set(all, 99, "out", "1"), TEXT);
    }

    #[test]
    fn parts_move_with_their_layers() {
        let moved = "sizes,h=8;input,kind=values,shape=batch:4:h;part,name=b;mlp,width=4*h;part,name=a;norm;linear,out=h;tensor,name=t,shape=batch;tensor,name=u,shape=h;loss";
        check(|all| assert_eq!(shift(all, 2, false), 4), moved);
        check(|all| assert_eq!(shift(all, 5, true), 2), moved);
        let gone = TEXT.replace("part,name=a;norm;linear,out=h;", "");
        check(|all| remove(all, 2), &gone);
    }

    #[test]
    fn rows_move_only_to_valid_positions() {
        for (at, up) in [
            (0, true),
            (0, false),
            (1, false),
            (2, true),
            (3, true),
            (5, false),
            (6, false),
            (7, true),
            (8, false),
            (9, true),
            (99, true),
        ] {
            check(|all| assert_eq!(shift(all, at, up), at), TEXT);
        }
        let swapped = TEXT.replace("norm;linear,out=h", "linear,out=h;norm");
        check(|all| assert_eq!(shift(all, 3, false), 4), &swapped);
        let over = TEXT.replace("linear,out=h;part,name=b", "part,name=b;linear,out=h");
        check(|all| assert_eq!(shift(all, 4, false), 5), &over);
        let back = TEXT.replace("part,name=b;mlp,width=4*h", "mlp,width=4*h;part,name=b");
        check(|all| assert_eq!(shift(all, 6, true), 5), &back);
    }

    #[test]
    fn added_rows_are_valid() {
        for kind in item_types() {
            let mut rows = rows("part,name=a");
            let at = add(&mut rows, kind.name, 0);
            assert_eq!(rows[at].kind, kind.name);
            let read = Network::parse(&text(&rows));
            assert_eq!(read.err(), None, "{}", kind.name);
        }
        check(
            |all| assert_eq!(add(all, "dropout", 2), 5),
            &TEXT.replace("out=h;part", "out=h;dropout;part"),
        );
    }

    #[test]
    fn problems_are_assigned_to_their_fields() {
        #[track_caller]
        fn check(text: &str, row: Option<usize>, message: &str) {
            let found = problems(text, &BTreeMap::default(), 2, 16);
            let marks = marks(&rows(text), &found);
            assert_eq!((marks[0].row, &*marks[0].message), (row, message));
        }
        check(
            "part,name=a;linear",
            Some(1),
            "out: expected a size such as 384, hidden or 4*hidden.",
        );
        check(
            "input,kind=values,shape=batch:8;part,name=a;norm;part,name=b,repeat=x",
            Some(3),
            "repeat: expected a size that is named: batch, sequence.",
        );
        check(
            "norm",
            None,
            "parts: expected at least one part, such as part,name=body.",
        );
    }
}
