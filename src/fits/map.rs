//! The fit map: micro-batch against sample size, each cell coloured by how it fits; a click applies it.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

use crate::shared::browser;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::tone::Tone;
use crate::shared::worker::{Helper, JobKind, Work};
use crate::text;
use headroom_advice::{FitMap, Rows, Size};
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

/// The map: one control, whose cells the arrow keys reach.
#[component]
pub fn Map() -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    crate::shared::follow::follow_preferences(session, helper, || true);
    let map = memo(move || {
        helper
            .reply
            .with(|reply| helper.about.with(|about| filled(about, &reply.lines)))
    });
    let title = move || {
        let (rows, size) = map.with(|map| (map.rows, map.size));
        match (rows, size) {
            (Rows::Frames, _) => text::MAP_OF_VIDEOS,
            (Rows::Batch, Size::Sequence) => text::MAP,
            (Rows::Batch, _) => text::MAP_OF_PICTURES,
        }
    };
    let axis = move || text::map_axis(session.units.get(), map.with(|map| map.usable));
    view! {
        <section
            class="panel fit"
            class:stale=move || session.stale.get()
            aria-labelledby="map-title"
            data-testid="map"
        >
            <header>
                <h2 class="title" id="map-title">{title}</h2>
                <p class="quiet">{axis}</p>
            </header>
            <div class="scroller">
                <Grid map/>
            </div>
        </section>
    }
}

/// Where an arrow key leads from a cell.
fn moved(
    key: &str,
    (row, column): (usize, usize),
    (rows, columns): (usize, usize),
) -> Option<(usize, usize)> {
    let last = |count: usize| count.saturating_sub(1);
    Some(match key {
        "ArrowDown" => ((row + 1).min(last(rows)), column),
        "ArrowUp" => (row.saturating_sub(1), column),
        "ArrowRight" => (row, (column + 1).min(last(columns))),
        "ArrowLeft" => (row, column.saturating_sub(1)),
        "Home" => (row, 0),
        "End" => (row, last(columns)),
        _ => return None,
    })
}

const fn named(rows: Rows) -> &'static str {
    match rows {
        Rows::Batch => text::SAMPLES,
        Rows::Frames => text::FRAMES,
    }
}

const fn sized(size: Size) -> &'static str {
    match size {
        Size::Sequence => text::TOKENS,
        Size::Image | Size::Resolution => text::PIXELS,
    }
}

#[component]
fn Grid(map: Memo<FitMap>) -> impl IntoView {
    let session = Session::current();
    // The cells keep their elements, and so the focus, while their numbers arrive.
    let axes = memo(move || {
        map.with(|map| {
            let titles = (0..map.sizes.len()).map(|column| map.title(column));
            let heads = [named(map.rows), sized(map.size)];
            (map.batches.clone(), titles.collect::<Vec<_>>(), heads)
        })
    });
    let stop = RwSignal::new((0, 0));
    let take = move |(row, column): (usize, usize)| {
        if let Some(scenario) = map.with_untracked(|map| map.at(row, column)) {
            session.replace(scenario);
        }
    };
    let on_key = move |event: KeyboardEvent| {
        let (at, key) = (stop.get_untracked(), event.key());
        let size = axes.with_untracked(|(batches, sizes, _)| (batches.len(), sizes.len()));
        if matches!(key.as_str(), "Enter" | " ") {
            take(at);
        } else if let Some((row, column)) = moved(&key, at, size) {
            stop.set((row, column));
            browser::focus(&format!("[data-cell='{row} {column}']"));
        } else {
            return;
        }
        event.prevent_default();
    };
    let grid = move || {
        let (batches, sizes, [rows, columns]) = axes.get();
        let title = |size: &String| {
            view! {
                <th scope="col" class="number">
                    {size.clone()}
                </th>
            }
        };
        let row = |(row, batch): (usize, &u64)| {
            let cells = sizes.iter().enumerate().map(|(column, size)| {
                let press = move || {
                    stop.set((row, column));
                    take((row, column));
                };
                view! { <Cell map row column stop press name=format!("{batch} × {size}")/> }
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
            <table class="fit-map" role="grid" aria-labelledby="map-title" on:keydown=on_key>
                <thead>
                    <tr>
                        <th scope="col">{format!("{rows} \\ {columns}")}</th>
                        {sizes.iter().map(title).collect_view()}
                    </tr>
                </thead>
                <tbody>{batches.iter().enumerate().map(row).collect_view()}</tbody>
            </table>
        }
    };
    view! { {grid} }
}

/// One cell; a press applies it.
#[component]
fn Cell(
    map: Memo<FitMap>,
    row: usize,
    column: usize,
    stop: RwSignal<(usize, usize)>,
    press: impl Fn() + 'static,
    name: String,
) -> impl IntoView {
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
    let class = move || {
        known
            .get()
            .map_or("wait", |band| cell(band.as_ref(), found.get().0).0)
    };
    // The figure, and what it says to whoever does not see its colour.
    let told = memo(move || {
        let band = known.get()?;
        let (_, words) = cell(band.as_ref(), found.get().0);
        let Some(band) = band else {
            return Some(("–".into(), format!("{name}: {words}")));
        };
        let (units, measure) = (session.units.get(), measure.get());
        let figure = band.expected.show_in_unit_of(measure, units);
        let (_, unit) = units.scale(measure);
        let label = format!("{name}: {figure} {unit} {words}");
        Some((figure, label))
    });
    let label = move || told.get().map(|told| told.1);
    view! {
        <td
            class=class
            role="gridcell"
            data-cell=format!("{row} {column}")
            tabindex=move || if stop.get() == (row, column) { "0" } else { "-1" }
            aria-current=move || found.get().1.then_some("true")
            aria-label=label
            title=label
            on:click=move |_| press()
        >
            {move || told.get().map(|told| told.0)}
        </td>
    }
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
    fn arrow_keys_stay_within_the_map() {
        let check = |key, from, expected| assert_eq!(moved(key, from, (3, 4)), expected);
        check("ArrowDown", (2, 1), Some((2, 1)));
        check("ArrowRight", (0, 0), Some((0, 1)));
        check("ArrowLeft", (1, 0), Some((1, 0)));
        check("End", (1, 0), Some((1, 3)));
        check("Tab", (1, 0), None);
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
