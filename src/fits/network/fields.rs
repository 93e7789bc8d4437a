//! The rows of a network as fields and buttons.

use leptos::prelude::*;

use super::editor::Editor;
use super::rows::{Mark, Row};
use crate::text;
use headroom_scenario::network::{Field, FieldType, Position, item_types};

/// The id of a field, or of the row's hint without a field.
pub fn id(row: usize, field: &str) -> String {
    format!("net-{row}-{field}")
}

/// Whether an error is at this field of this row.
fn is_at(mark: &Mark, at: usize, field: &str) -> bool {
    mark.row == Some(at) && mark.field == field
}

/// A line of the list: a row, or the buttons that add one.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Row(usize, Row),
    /// After the last layer of the part at this index.
    AddLayer(usize),
    Add(Vec<&'static str>),
}

/// All lines: parts with their layers, and the buttons that add rows.
pub fn lines(rows: &[Row]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut part: Option<usize> = None;
    for (at, row) in rows.iter().enumerate() {
        if row.place() != Position::Layer {
            lines.extend(part.take().map(Line::AddLayer));
        }
        lines.push(Line::Row(at, row.clone()));
        if row.place() == Position::Part {
            part = Some(at);
        }
    }
    lines.extend(part.map(Line::AddLayer));
    let missing = |name: &str| rows.iter().all(|row| row.kind != name);
    let can_add = item_types().iter().filter(|kind| match kind.place {
        Position::Part | Position::Tensor => true,
        Position::Top => missing(kind.name),
        Position::Layer => false,
    });
    lines.push(Line::Add(can_add.map(|kind| kind.name).collect()));
    lines
}

#[component]
pub fn OneLine(line: Line) -> impl IntoView {
    match line {
        Line::Row(at, row) => view! { <OneRow at row/> }.into_any(),
        Line::AddLayer(part) => {
            let layers = item_types()
                .iter()
                .filter(|kind| kind.place == Position::Layer);
            let kinds = layers.map(|kind| kind.name).collect();
            view! { <li class="add layer"><Add part kinds/></li> }.into_any()
        }
        Line::Add(kinds) => view! { <li class="add"><Add part=0 kinds/></li> }.into_any(),
    }
}

#[component]
fn Add(part: usize, kinds: Vec<&'static str>) -> impl IntoView {
    let editor = Editor::current();
    let button = move |kind: &'static str| {
        view! {
            <button type="button" data-do="add" data-row=part data-kind=kind on:click=move |_| editor.add(part, kind)>
                "+ "{kind}
            </button>
        }
    };
    kinds.into_iter().map(button).collect_view()
}

#[component]
fn OneRow(at: usize, row: Row) -> impl IntoView {
    let editor = Editor::current();
    let place = row.place();
    let class = match place {
        Position::Top => "top",
        Position::Part => "part",
        Position::Layer => "layer",
        Position::Tensor => "tensor",
    };
    let fields = match row.known() {
        Some(known) if known.name == "sizes" => view! { <Sizes at row=row.clone()/> }.into_any(),
        Some(known) => {
            let field = |field: &'static Field| {
                let given = row.get(field.name).map(String::from);
                view! { <OneField at field given/> }
            };
            known.fields.iter().map(field).collect_view().into_any()
        }
        None => ().into_any(),
    };
    let explain = move |_| {
        let rows = editor.rows();
        let known = rows.get(at).and_then(Row::known);
        editor.about.set(known.map_or("", |known| known.about));
    };
    let name = row.get("name").unwrap_or_default().to_string();
    let kind = row.kind.clone();
    let tool = move |what: &'static str,
                     name: &'static str,
                     sign: &'static str,
                     press: fn(Editor, usize)| {
        let label = format!("{name} {} {}", row.kind, at + 1);
        view! {
            <button type="button" class="plain" data-do=what data-row=at aria-label=label on:click=move |_| press(editor, at)>
                {sign}
            </button>
        }
    };
    let moves = (place != Position::Top).then(|| {
        let up = tool("up", text::MOVE_UP, "↑", Editor::up);
        let down = tool("down", text::MOVE_DOWN, "↓", Editor::down);
        view! { {up}{down} }
    });
    let remove = tool("remove", text::REMOVE, "×", Editor::remove);
    let message = move || {
        let of = |mark: &&Mark| mark.row == Some(at);
        editor
            .marks
            .with(|marks| marks.iter().find(of).map(|mark| mark.message.clone()))
    };
    view! {
        <li class=class on:focusin=explain>
            <fieldset>
                <legend>{kind}" "<span class="aside">{name}" "{at + 1}</span></legend>
                {fields}
            </fieldset>
            <span class="row-tools">{moves}{remove}</span>
            <p class="hint wrong" id=id(at, "")>{message}</p>
        </li>
    }
}

#[component]
fn OneField(at: usize, field: &'static Field, given: Option<String>) -> impl IntoView {
    let editor = Editor::current();
    let Field {
        name,
        takes,
        default,
    } = *field;
    let wrong = move || {
        editor
            .marks
            .with(|marks| marks.iter().any(|mark| is_at(mark, at, name)).to_string())
    };
    let (own, hint) = (id(at, name), id(at, ""));
    let typed = move |value: String| editor.typed(at, name, &value);
    let rest = move |_| editor.session.end_edit();
    let control = match takes {
        FieldType::Switch => {
            let on = matches!(
                given.as_deref().unwrap_or(default),
                "on" | "true" | "yes" | "1"
            );
            view! {
                <input type="checkbox" id=own data-row=at data-field=name aria-describedby=hint aria-invalid=wrong
                    checked=on on:change:target=move |event| typed(if event.target().checked() { "on" } else { "off" }.into())/>
            }
            .into_any()
        }
        FieldType::OneOf(words) => {
            let chosen = given.unwrap_or_else(|| default.into());
            let word =
                |word: &&'static str| view! { <option selected=*word == chosen>{*word}</option> };
            let words = words.iter().map(word).collect_view();
            view! {
                <select id=own data-row=at data-field=name aria-describedby=hint aria-invalid=wrong
                    on:change:target=move |event| typed(event.target().value())>
                    {words}
                </select>
            }
            .into_any()
        }
        FieldType::Size | FieldType::Shape | FieldType::Share | FieldType::Name => {
            let size = if takes == FieldType::Shape { "18" } else { "8" };
            view! {
                <input type="text" size=size autocomplete="off" spellcheck="false" placeholder=default
                    value=given.unwrap_or_default() id=own data-row=at data-field=name aria-describedby=hint
                    aria-invalid=wrong on:input:target=move |event| typed(event.target().value()) on:change=rest/>
            }
            .into_any()
        }
    };
    view! { <label>{name}{control}</label> }
}

/// Named sizes: a name and a value each, by index.
#[component]
fn Sizes(at: usize, row: Row) -> impl IntoView {
    let editor = Editor::current();
    let size = move |(index, (name, value)): (usize, (String, String))| {
        let marked = name.clone();
        let wrong = move || {
            editor.marks.with(|marks| {
                marks
                    .iter()
                    .any(|mark| is_at(mark, at, &marked))
                    .to_string()
            })
        };
        let typed_name = move |value: String| editor.typed_size(at, index, Some(&value), "");
        let typed_value = move |value: String| editor.typed_size(at, index, None, &value);
        let rest = move |_| editor.session.end_edit();
        let label = |what: &str| format!("{what} {}", index + 1);
        let own = |what: &str| id(at, &format!("{what}{index}"));
        let remove = format!("{} {name}", text::REMOVE);
        view! {
            <span class="size">
                <input type="text" size="8" autocomplete="off" spellcheck="false" id=own(text::SIZE_NAME)
                    aria-label=label(text::SIZE_NAME) aria-describedby=id(at, "") value=name
                    on:input:target=move |event| typed_name(event.target().value()) on:change=rest/>
                "="
                <input type="text" size="6" autocomplete="off" spellcheck="false" id=own(text::SIZE_VALUE)
                    aria-label=label(text::SIZE_VALUE) aria-describedby=id(at, "") aria-invalid=wrong value=value
                    on:input:target=move |event| typed_value(event.target().value()) on:change=rest/>
                <button type="button" class="plain" aria-label=remove on:click=move |_| editor.remove_size(at, index)>"×"</button>
            </span>
        }
    };
    view! {
        {row.fields.into_iter().enumerate().map(size).collect_view()}
        <button type="button" data-do="add-size" data-row=at on:click=move |_| editor.add_size(at)>{text::ADD_SIZE}</button>
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::rows;
    use super::*;

    #[test]
    fn rows_are_under_their_parts_with_add_buttons() {
        let check = |network: &str, expected: &str| {
            let line = |line: &Line| match line {
                Line::Row(at, row) => format!("{at}{}", row.kind),
                Line::AddLayer(part) => format!("+{part}"),
                Line::Add(kinds) => format!("+{}", kinds.join("/")),
            };
            let lines: Vec<_> = lines(&rows(network)).iter().map(line).collect();
            assert_eq!(lines.join(" "), expected, "{network}");
        };
        check(
            "sizes,a=1;input;part;linear;part;loss",
            "0sizes 1input 2part 3linear +2 4part +4 5loss +part/tensor",
        );
        check(
            "part;linear",
            "0part 1linear +0 +sizes/input/part/tensor/loss",
        );
    }
}
