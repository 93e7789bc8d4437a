//! A chart as a file: the drawing, a picture of it, and its numbers.

use std::rc::Rc;

use leptos::prelude::*;

use super::{browser, chart, origin};

/// Rows of numbers for other programs, under the names of their columns.
pub fn csv(head: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines = format!("{head}\n");
    for row in rows {
        lines.push_str(&row.join(","));
        lines.push('\n');
    }
    lines
}

/// Three buttons that save a chart; `name` is the files' name without its end.
#[component]
pub fn Saves(
    name: &'static str,
    svg: impl Fn() -> Option<String> + 'static,
    size: impl Fn() -> (u32, u32) + 'static,
    csv: impl Fn() -> String + 'static,
) -> impl IntoView {
    let chart = Rc::new(Chart {
        name,
        svg: Box::new(svg),
        size: Box::new(size),
        csv: Box::new(csv),
    });
    let save = move |kind: &'static str| {
        let chart = Rc::clone(&chart);
        move |_| untrack(|| chart.save(kind))
    };
    view! {
        <div class="actions" data-testid=format!("save-{name}")>
            <button type="button" data-as="svg" on:click=save("svg")>"Download SVG"</button>
            <button type="button" data-as="png" on:click=save("png")>"Download PNG"</button>
            <button type="button" data-as="csv" on:click=save("csv")>"Download CSV"</button>
        </div>
    }
}

/// What can be saved.
struct Chart {
    name: &'static str,
    svg: Box<dyn Fn() -> Option<String>>,
    size: Box<dyn Fn() -> (u32, u32)>,
    csv: Box<dyn Fn() -> String>,
}

impl Chart {
    fn save(&self, kind: &str) {
        let file = format!("headroom-{}.{kind}", self.name);
        let drawn = (self.svg)().map(|svg| chart::standing_alone(&svg));
        match (kind, drawn) {
            ("csv", _) => browser::download(&file, "text/csv", &(self.csv)()),
            ("svg", Some(svg)) => {
                // The drawing carries the run it is of.
                let address = browser::address(&browser::fragment());
                let carried = origin::metadata(&address, &origin::origin(&browser::today()));
                let svg = svg.replacen('>', &format!(">{carried}"), 1);
                browser::download(&file, "image/svg+xml", &svg);
            }
            ("png", Some(svg)) => browser::download_png(&file, &svg, (self.size)()),
            _ => (),
        }
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
