//! The fit map: micro-batch against sample size, each cell coloured by how it fits; a click takes it.

use leptos::prelude::*;
use web_sys::Event;

use super::part::Part;
use super::session::Session;
use super::signals::memo;
use super::tone::Tone;
use super::worker::{Helper, JobKind, Work};
use super::{browser, text};
use crate::estimate::{Band, Fit};
use crate::scenario::Scenario;
use crate::strategy::{FitMap, Size};
use crate::units::{Bytes, UnitStyle};

/// How a worker draws it up.
pub const KIND: JobKind = JobKind {
    id: "fit-map",
    start: |scenario| Box::new(FitMap::around(scenario)),
};

impl Work for FitMap {
    fn is_done(&self) -> bool {
        FitMap::is_done(self)
    }

    fn step(&mut self) {
        FitMap::step(self);
    }

    /// The card's usable memory, then a line for each cell.
    fn lines(&self) -> Vec<String> {
        let usable = self.usable.map(|it| it.get().to_string());
        let cell = |it: &Option<Band>| match it {
            Some(Band {
                low,
                expected,
                high,
            }) => format!("{} {} {}", low.get(), expected.get(), high.get()),
            None => String::new(),
        };
        [usable.unwrap_or_default()]
            .into_iter()
            .chain(self.cells.iter().map(cell))
            .collect()
    }
}

/// The map of a scenario with what a worker has found of it so far.
fn filled(scenario: &Scenario, lines: &[String]) -> FitMap {
    let mut map = FitMap::around(scenario);
    let number = |text: &str| text.parse().ok().map(Bytes::new);
    map.usable = lines.first().and_then(|it| number(it));
    let cell = |line: &String| {
        let mut numbers = line.split(' ').filter_map(number);
        Some(Band {
            low: numbers.next()?,
            expected: numbers.next()?,
            high: numbers.next()?,
        })
    };
    map.cells = lines.iter().skip(1).map(cell).collect();
    map
}

/// A cell's class and its words.
fn cell(band: Option<&Band>, usable: Option<Bytes>) -> (&'static str, &'static str) {
    match (band, usable) {
        (None, _) => ("none", "cannot run"),
        (Some(_), None) => ("open", "no card"),
        (Some(it), Some(usable)) => {
            let fit = Fit::of(*it, usable);
            (Tone::of_fit(fit).id(), fit.words())
        }
    }
}

/// The grid as a table of buttons, so that it is read, reached and pressed like one.
fn html(map: &FitMap, units: UnitStyle) -> String {
    let what = match map.size {
        Size::Sequence => text::TOKENS,
        Size::Image => text::PIXELS,
    };
    let most = map.cells.iter().flatten().map(|it| it.expected).max();
    let measure = map.usable.or(most).unwrap_or_default();
    let (_, unit) = units.scale(measure);
    let mut html = format!(
        "<table class=\"fit-map\"><thead><tr><th scope=\"col\">{} \\ {what}</th>",
        text::SAMPLES
    );
    for size in &map.sizes {
        html.push_str(&format!("<th scope=\"col\" class=\"number\">{size}</th>"));
    }
    html.push_str("</tr></thead><tbody>");
    let columns = map.sizes.len();
    for (row, batch) in map.batches.iter().enumerate() {
        html.push_str(&format!(
            "<tr><th scope=\"row\" class=\"number\">{batch}</th>"
        ));
        for (column, size) in map.sizes.iter().enumerate() {
            let known = map.cells.get(row * columns + column);
            let Some(band) = known else {
                html.push_str("<td class=\"wait\"></td>");
                continue;
            };
            let (class, words) = cell(band.as_ref(), map.usable);
            let here = if map.here() == Some((row, column)) {
                " aria-current=\"true\""
            } else {
                ""
            };
            match band {
                None => html.push_str(&format!(
                    "<td class=\"{class}\"><span class=\"aside\">{words}</span></td>"
                )),
                Some(band) => {
                    // Who speaks to a page says what is written on it: the name holds the written figure.
                    let figure = band.expected.beside(measure, units);
                    html.push_str(&format!(
                        "<td class=\"{class}\"><button type=\"button\"{here} data-cell=\"{row} {column}\" \
                         aria-label=\"{batch} × {size}: {figure} {unit} {words}\">{figure}</button></td>",
                    ));
                }
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

pub fn view(session: Session) -> Part {
    let helper = Helper::new(KIND.id);
    let open = RwSignal::new(false);
    super::advice::follow(session, helper, move || open.get());
    let map = memo(move || {
        helper
            .reply
            .with(|it| helper.about.with(|about| filled(about, &it.lines)))
    });
    let drawn = move || map.with(|it| html(it, session.units.get()));
    let take = move |event: Event| {
        let place = browser::attribute_under(&event, "data-cell");
        let found = place.split_once(' ').and_then(|(row, column)| {
            map.with_untracked(|it| it.at(row.parse().ok()?, column.parse().ok()?))
        });
        if let Some(scenario) = found {
            session.replace(scenario);
        }
    };
    let axis = move || {
        let axis = text::map_axis(session.units.get(), map.with(|it| it.usable));
        axis.unwrap_or_default()
    };
    Part::new(
        r#"<section class="panel" aria-labelledby="map-title" data-testid="map">
            <details class="more">
                <summary><h2 id="map-title">Which batch fits at which length</h2></summary>
                <p class="quiet"></p>
                <div class="scroller"></div>
            </details>
        </section>"#,
    )
    .class("", "stale", move || session.stale.get())
    .tells_open("details", open)
    .text("p", axis)
    .html(".scroller", drawn)
    .on(".scroller", "click", take)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_says_is_the_map_it_made() {
        let mut scenario = Scenario::default();
        scenario.model.dims = [("layers".to_string(), 1)].into();
        let mut map = FitMap::around(&scenario);
        for _ in 0..12 {
            map.step();
        }
        assert_eq!(filled(&scenario, &map.lines()), map);
    }

    #[test]
    fn a_cell_is_named_by_the_whole_of_its_range() {
        let band = Band {
            low: Bytes::gib(9.0),
            expected: Bytes::gib(10.0),
            high: Bytes::gib(11.0),
        };
        let check = |usable: Option<f64>, expected| {
            assert_eq!(cell(Some(&band), usable.map(Bytes::gib)).0, expected);
        };
        check(Some(11.0), "fits");
        check(Some(10.0), "close");
        check(Some(8.0), "over");
        check(None, "open");
        assert_eq!(cell(None, None).0, "none");
    }

    #[test]
    fn a_map_of_nothing_yet_is_a_grid_that_waits() {
        let html = html(&FitMap::around(&Scenario::default()), UnitStyle::Binary);
        assert!(html.contains("class=\"wait\"") && !html.contains("button"));
    }
}
