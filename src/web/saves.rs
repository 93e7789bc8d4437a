//! A chart as a file: the drawing, a picture of it, and its numbers.

use leptos::prelude::untrack;

use super::part::Part;
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

/// Three buttons; `name` is the files' name without its end.
pub fn view(
    name: &'static str,
    svg: impl Fn() -> Option<String> + 'static,
    size: impl Fn() -> (u32, u32) + 'static,
    csv: impl Fn() -> String + 'static,
) -> Part {
    let chart = Chart {
        name,
        svg: Box::new(svg),
        size: Box::new(size),
        csv: Box::new(csv),
    };
    Part::new(&format!(
        r#"<div class="actions" data-testid="save-{name}">
            <button type="button" data-as="svg">Download SVG</button>
            <button type="button" data-as="png">Download PNG</button>
            <button type="button" data-as="csv">Download CSV</button>
        </div>"#
    ))
    .on("", "click", move |event| {
        let kind = browser::attribute_under(&event, "data-as");
        untrack(|| chart.save(&kind));
    })
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
        let drawn = (self.svg)().map(|it| chart::standing_alone(&it));
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
