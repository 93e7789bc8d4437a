//! The rows of a network as fields and buttons. Each carries the number of its row, by which the panel hears of it.

use super::rows::{Mark, Row};
use crate::scenario::network::{Field, FieldType, Position, item_types};
use crate::web::markup::escape;
use crate::web::text;

/// The id of a field; without a field, that of the row's hint.
pub fn id(row: usize, field: &str) -> String {
    format!("net-{row}-{field}")
}

/// The id of the field that holds a row's value of that name: of named sizes the value's.
pub fn field_id(at: usize, row: &Row, name: &str) -> String {
    let size = row.fields.iter().position(|(key, _)| key == name);
    match size.filter(|_| row.kind == "sizes") {
        Some(index) => id(at, &format!("{}{index}", text::SIZE_VALUE)),
        None => id(at, name),
    }
}

/// All rows, parts with their layers inside, and what can be added.
pub fn html(rows: &[Row], marks: &[Mark]) -> String {
    let mut html = String::new();
    let mut part = None;
    for (at, row) in rows.iter().enumerate() {
        if row.place() != Position::Layer {
            end_part(&mut html, &mut part);
        }
        let of = |it: &&Mark| it.row == Some(at);
        write_row(&mut html, at, row, marks.iter().find(of));
        if row.place() == Position::Part {
            part = Some(at);
        }
    }
    end_part(&mut html, &mut part);
    let missing = |name: &str| rows.iter().all(|it| it.kind != name);
    html.push_str("<li class=\"add\">");
    for kind in item_types() {
        let more = match kind.place {
            Position::Part | Position::Tensor => true,
            Position::Top => missing(kind.name),
            Position::Layer => false,
        };
        if more {
            push_add(&mut html, kind.name, 0);
        }
    }
    html.push_str("</li>");
    html
}

/// Behind a part's last layer: what can be added to it.
fn end_part(html: &mut String, part: &mut Option<usize>) {
    if let Some(at) = part.take() {
        html.push_str("<li class=\"add layer\">");
        for kind in item_types().iter().filter(|it| it.place == Position::Layer) {
            push_add(html, kind.name, at);
        }
        html.push_str("</li>");
    }
}

fn push_add(html: &mut String, kind: &str, part: usize) {
    html.push_str(&format!(
        "<button type=\"button\" data-do=\"add\" data-row=\"{part}\" data-kind=\"{kind}\">+ {kind}</button>"
    ));
}

fn write_row(html: &mut String, at: usize, row: &Row, mark: Option<&Mark>) {
    let class = match row.place() {
        Position::Top => "top",
        Position::Part => "part",
        Position::Layer => "layer",
        Position::Tensor => "tensor",
    };
    let kind = escape(&row.kind);
    let name = row.get("name").map(escape).unwrap_or_default();
    html.push_str(&format!(
        "<li class=\"{class}\"><fieldset><legend>{kind} <span class=\"aside\">{name} {}</span></legend>",
        at + 1
    ));
    match row.known() {
        Some(known) if known.name == "sizes" => push_sizes(html, at, row, mark),
        Some(known) => {
            for field in known.fields {
                push_field(html, at, row, field, mark);
            }
        }
        None => {}
    }
    html.push_str("</fieldset><span class=\"row-tools\">");
    let tool = |html: &mut String, what: &str, name: &str, sign: &str| {
        html.push_str(&format!(
            "<button type=\"button\" class=\"plain\" data-do=\"{what}\" data-row=\"{at}\" \
             aria-label=\"{name} {kind} {}\">{sign}</button>",
            at + 1
        ));
    };
    if row.place() != Position::Top {
        tool(html, "up", text::MOVE_UP, "↑");
        tool(html, "down", text::MOVE_DOWN, "↓");
    }
    tool(html, "remove", text::REMOVE, "×");
    let says = mark.map(|it| escape(&it.says)).unwrap_or_default();
    html.push_str(&format!(
        "</span><p class=\"hint wrong\" id=\"{}\">{says}</p></li>",
        id(at, "")
    ));
}

/// The attributes that all fields have.
fn attributes(at: usize, field: &str, mark: Option<&Mark>) -> String {
    let wrong = mark.is_some_and(|it| it.field == field);
    format!(
        "id=\"{}\" data-row=\"{at}\" data-field=\"{}\" aria-describedby=\"{}\" aria-invalid=\"{wrong}\"",
        escape(&id(at, field)),
        escape(field),
        id(at, "")
    )
}

fn push_field(html: &mut String, at: usize, row: &Row, field: &Field, mark: Option<&Mark>) {
    let Field {
        name,
        takes,
        default,
    } = field;
    let given = row.get(name);
    let attributes = attributes(at, name, mark);
    let control = match takes {
        FieldType::Switch => {
            let on = matches!(given.unwrap_or(default), "on" | "true" | "yes" | "1");
            let checked = if on { " checked" } else { "" };
            format!("<input type=\"checkbox\" {attributes}{checked}>")
        }
        FieldType::OneOf(words) => {
            let chosen = given.unwrap_or(default);
            let word = |word: &&str| {
                let selected = if *word == chosen { " selected" } else { "" };
                format!("<option{selected}>{word}</option>")
            };
            let words: String = words.iter().map(word).collect();
            format!("<select {attributes}>{words}</select>")
        }
        FieldType::Size | FieldType::Shape | FieldType::Share | FieldType::Name => {
            let size = if *takes == FieldType::Shape { 18 } else { 8 };
            let value = escape(given.unwrap_or_default());
            format!(
                "<input type=\"text\" size=\"{size}\" autocomplete=\"off\" spellcheck=\"false\" \
                 placeholder=\"{default}\" value=\"{value}\" {attributes}>"
            )
        }
    };
    html.push_str(&format!("<label>{name}{control}</label>"));
}

/// Named sizes: a name and a value each, by the number of the size.
fn push_sizes(html: &mut String, at: usize, row: &Row, mark: Option<&Mark>) {
    for (index, (name, value)) in row.fields.iter().enumerate() {
        let wrong = mark.is_some_and(|it| it.field == *name);
        let input = |what: &str, shown: &str, size: u32| {
            let wrong = wrong && what == text::SIZE_VALUE;
            format!(
                "<input type=\"text\" size=\"{size}\" autocomplete=\"off\" spellcheck=\"false\" id=\"{}\" \
                 data-row=\"{at}\" data-size=\"{index}\" data-what=\"{what}\" aria-label=\"{what} {}\" \
                 aria-describedby=\"{}\" aria-invalid=\"{wrong}\" value=\"{}\">",
                id(at, &format!("{what}{index}")),
                index + 1,
                id(at, ""),
                escape(shown)
            )
        };
        html.push_str(&format!(
            "<span class=\"size\">{}={}<button type=\"button\" class=\"plain\" data-do=\"remove-size\" data-row=\"{at}\" \
             data-size=\"{index}\" aria-label=\"{} {}\">×</button></span>",
            input(text::SIZE_NAME, name, 8),
            input(text::SIZE_VALUE, value, 6),
            text::REMOVE,
            escape(name)
        ));
    }
    html.push_str(&format!(
        "<button type=\"button\" data-do=\"add-size\" data-row=\"{at}\">{}</button>",
        text::ADD_SIZE
    ));
}

#[cfg(test)]
mod tests {
    use super::super::rows::rows;
    use super::*;

    #[test]
    fn every_field_of_every_kind_is_there_and_nothing_is_trusted() {
        let all: Vec<_> = item_types().iter().map(|it| it.name).collect();
        let shown = html(&rows(&all.join(";")), &[]);
        for (at, kind) in item_types().iter().enumerate() {
            for field in kind.fields {
                assert!(shown.contains(&format!("id=\"{}\"", id(at, field.name))));
            }
        }
        let odd = html(&rows("\"<b>,a=<i>;sizes,<b>=<i>;linear,out=\"<i>"), &[]);
        assert!(!odd.contains("<b>") && !odd.contains("<i>") && !odd.contains("\"\"<"));
    }

    #[test]
    fn what_is_wrong_stands_at_its_field() {
        let mark = Mark {
            row: Some(1),
            field: "out".into(),
            says: "out: expected <a size>.".into(),
        };
        let shown = html(&rows("part,name=a;linear"), &[mark]);
        assert_eq!(shown.matches("aria-invalid=\"true\"").count(), 1);
        assert!(shown.contains("id=\"net-1-\">out: expected &lt;a size&gt;.</p>"));
    }
}
