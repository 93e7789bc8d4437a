//! The fit map: micro-batch against sample size, each cell coloured by how it fits; a click applies it.

use leptos::prelude::*;

use super::session::Session;
use super::signals::memo;
use super::tone::Tone;
use super::worker::{Helper, JobKind, Work};
use super::{browser, text};
use headroom_advice::{FitMap, Size};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, Fit};
use headroom_scenario::Scenario;

/// The worker's job.
pub const KIND: JobKind = JobKind {
    id: "fit-map",
    start: |scenario, _| Box::new(FitMap::around(scenario)),
};

impl Work for FitMap {
    fn is_done(&self) -> bool {
        FitMap::is_done(self)
    }

    fn step(&mut self) {
        FitMap::step(self);
    }

    /// The GPU's usable memory, then a line for each cell.
    fn lines(&self) -> Vec<String> {
        let usable = self.usable.map(|bytes| bytes.get().to_string());
        let cell = |band: &Option<Band>| match band {
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

/// The map of a scenario with the worker's results so far.
fn filled(scenario: &Scenario, lines: &[String]) -> FitMap {
    let mut map = FitMap::around(scenario);
    let number = |text: &str| text.parse().ok().map(Bytes::new);
    map.usable = lines.first().and_then(|line| number(line));
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

/// A cell's class and label.
fn cell(band: Option<&Band>, usable: Option<Bytes>) -> (&'static str, &'static str) {
    match (band, usable) {
        (None, _) => ("none", "cannot run"),
        (Some(_), None) => ("open", "GPU unknown"),
        (Some(band), Some(usable)) => {
            let fit = Fit::of(*band, usable);
            (Tone::of_fit(fit).id(), fit.label())
        }
    }
}

/// The grid as a table of buttons, accessible by keyboard and screen reader.
#[component]
pub fn Map() -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    let open = RwSignal::new(false);
    super::follow::follow_preferences(session, helper, move || open.get());
    let map = memo(move || {
        helper
            .reply
            .with(|reply| helper.about.with(|about| filled(about, &reply.lines)))
    });
    let axis = move || text::map_axis(session.units.get(), map.with(|map| map.usable));
    view! {
        <section
            class="panel"
            class:stale=move || session.stale.get()
            aria-labelledby="map-title"
            data-testid="map"
        >
            <details
                class="more"
                on:toggle=move |event| open.set(browser::is_open(&event))
            >
                <summary>
                    <h3 id="map-title">"Which batch fits at which length"</h3>
                </summary>
                <p class="quiet">{axis}</p>
                <div class="scroller">
                    <Grid map/>
                </div>
            </details>
        </section>
    }
}

#[component]
fn Grid(map: Memo<FitMap>) -> impl IntoView {
    // The cells keep their elements, and so the focus, while their numbers arrive.
    let axes = memo(move || map.with(|map| (map.batches.clone(), map.sizes.clone(), map.size)));
    let grid = move || {
        let (batches, sizes, size) = axes.get();
        let what = match size {
            Size::Sequence => text::TOKENS,
            Size::Image => text::PIXELS,
        };
        let title = |size: &u64| {
            view! {
                <th scope="col" class="number">
                    {*size}
                </th>
            }
        };
        let row = |(row, batch): (usize, &u64)| {
            let cells = sizes.iter().enumerate().map(|(column, size)| {
                view! { <Cell map row column name=format!("{batch} × {size}")/> }
            });
            view! {
                <tr>
                    <th scope="row" class="number">
                        {*batch}
                    </th>
                    {cells.collect_view()}
                </tr>
            }
        };
        view! {
            <table class="fit-map">
                <thead>
                    <tr>
                        <th scope="col">{format!("{} \\ {what}", text::SAMPLES)}</th>
                        {sizes.iter().map(title).collect_view()}
                    </tr>
                </thead>
                <tbody>{batches.iter().enumerate().map(row).collect_view()}</tbody>
            </table>
        }
    };
    view! { {grid} }
}

/// One cell; a click applies it.
#[component]
fn Cell(map: Memo<FitMap>, row: usize, column: usize, name: String) -> impl IntoView {
    let session = Session::current();
    let known =
        memo(move || map.with(|map| map.cells.get(row * map.sizes.len() + column).copied()));
    let found = memo(move || map.with(|map| (map.usable, map.current() == Some((row, column)))));
    let measure = memo(move || {
        map.with(|map| {
            let most = map.cells.iter().flatten().map(|band| band.expected).max();
            map.usable.or(most).unwrap_or_default()
        })
    });
    let take = move |_| {
        if let Some(scenario) = map.with_untracked(|map| map.at(row, column)) {
            session.replace(scenario);
        }
    };
    let class = move || {
        known
            .get()
            .map_or("wait", |band| cell(band.as_ref(), found.get().0).0)
    };
    let content = move || {
        let band = known.get()?;
        let (usable, here) = found.get();
        let (_, words) = cell(band.as_ref(), usable);
        let Some(band) = band else {
            return Some(view! { <span class="aside">{words}</span> }.into_any());
        };
        let (units, measure) = (session.units.get(), measure.get());
        // Voice control uses the visible text, so the accessible name contains the figure.
        let figure = band.expected.show_in_unit_of(measure, units);
        let (_, unit) = units.scale(measure);
        let button = view! {
            <button
                type="button"
                data-cell=format!("{row} {column}")
                aria-current=here.then_some("true")
                aria-label=format!("{name}: {figure} {unit} {words}")
                on:click=take
            >
                {figure.clone()}
            </button>
        };
        Some(button.into_any())
    };
    view! { <td class=class>{content}</td> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_round_trips_as_text() {
        let mut scenario = Scenario::default();
        scenario.model.dims = [("layers".to_string(), 1)].into();
        let mut map = FitMap::around(&scenario);
        for _ in 0..12 {
            map.step();
        }
        assert_eq!(filled(&scenario, &map.lines()), map);
    }

    #[test]
    fn a_cell_is_labelled_by_its_range() {
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
}
