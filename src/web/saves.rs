//! A chart as a file: the drawing, a picture of it, and its numbers.

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use super::{browser, chart, picture, sharing};

/// Rows of numbers for other programs, under the names of their columns.
pub fn csv(head: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines = format!("{head}\n");
    for row in rows {
        lines.push_str(&row.join(","));
        lines.push('\n');
    }
    lines
}

/// Three buttons; `name` is the files' name without its end.
#[component]
pub fn Saves(
    name: &'static str,
    svg: Signal<Option<String>>,
    size: Signal<(u32, u32)>,
    csv: Signal<String>,
) -> impl IntoView {
    let drawn = move || svg.get_untracked().map(|it| chart::standing_alone(&it));
    let save = move |event: MouseEvent| {
        let kind = browser::attribute_under(&event, "data-as");
        let file = format!("headroom-{name}.{kind}");
        match (&*kind, drawn()) {
            ("csv", _) => browser::download(&file, "text/csv", &csv.get_untracked()),
            ("svg", Some(svg)) => {
                // The drawing carries the run it is of.
                let address = browser::address(&browser::fragment());
                let carried = picture::metadata(&address, &sharing::origin(&browser::today()));
                let svg = svg.replacen('>', &format!(">{carried}"), 1);
                browser::download(&file, "image/svg+xml", &svg);
            }
            ("png", Some(svg)) => browser::download_png(&file, &svg, size.get_untracked()),
            _ => (),
        }
    };
    view! {
        <div class="actions" data-testid=format!("save-{name}") on:click=save>
            <button type="button" data-as="svg">"Download SVG"</button>
            <button type="button" data-as="png">"Download PNG"</button>
            <button type="button" data-as="csv">"Download CSV"</button>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_for_programs_has_a_line_for_each_row() {
        let row = |a: &str, b: &str| vec![a.to_string(), b.to_string()];
        assert_eq!(
            csv("a,b", [row("1", "2"), row("3", "4")]),
            "a,b\n1,2\n3,4\n"
        );
    }
}
