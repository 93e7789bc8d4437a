//! A chart as a file: SVG, PNG and CSV.

use std::rc::Rc;

use leptos::prelude::*;

use crate::shared::{browser, chart, origin};

/// A CSV of numbers with column names.
pub fn csv(head: &str, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines = format!("{head}\n");
    for row in rows {
        lines.push_str(&row.join(","));
        lines.push('\n');
    }
    lines
}

/// Three buttons that save a chart; `name` is the file name without its extension.
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
        let drawn = (self.svg)().map(|svg| chart::self_contained(&svg));
        match (kind, drawn) {
            ("csv", _) => browser::download(&file, "text/csv", &(self.csv)()),
            ("svg", Some(svg)) => {
                // The drawing contains its run as a link.
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
