//! Memory against one setting: the curve, the card's line, and the largest value that still fits.

use leptos::ev::{Event, PointerEvent};
use leptos::prelude::*;
use leptos::reactive::spawn_local;

use super::chart::{Drawing, SavePicture};
use super::saves::Saves;
use super::session::Session;
use super::signals::{memo, once_rested};
use super::table::{Folded, Table};
use super::{browser, chart, saves, text};
use crate::estimate::{Band, Estimate, Fit, estimate};
use crate::order::sorted;
use crate::scenario::Scenario;
use crate::scenario::settings::{self, Setting, Value, ValueType};
use crate::units::{Bytes, UnitStyle};

/// What is known so far of the curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    pub points: Vec<(u64, Band)>,
    pub now: u64,
    pub usable: Option<Bytes>,
    pub largest: Largest,
}

/// The largest value that fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Largest {
    #[default]
    NotYetKnown,
    /// Not even the smallest fits.
    Nothing,
    Value(u64),
}

impl Curve {
    /// The highest thing to be drawn.
    pub fn top(&self) -> Bytes {
        let highest = self
            .points
            .iter()
            .map(|(_, band)| band.high)
            .max()
            .unwrap_or_default();
        // A card far above the curve would press it flat; its line is then left out.
        let usable = self
            .usable
            .filter(|usable| usable.get() / 3 < highest.get());
        highest.max(usable.unwrap_or_default())
    }
}

/// Settings that can be swept: whole numbers that mean something here.
fn sweepable(scenario: &Scenario) -> Vec<&'static Setting> {
    let first = ["data.micro_batch", "data.sequence", "training.lora.rank"];
    let all = settings::all().iter().filter(|setting| {
        matches!(setting.value_type, ValueType::Whole { .. })
            && matches!(setting.section(), "data" | "training")
            && setting.applies(scenario)
    });
    let place = |setting: &Setting| {
        first
            .iter()
            .position(|path| *path == setting.path)
            .unwrap_or(first.len())
    };
    sorted(all, |a, b| place(a).cmp(&place(b)))
}

fn range(setting: &Setting) -> (u64, u64) {
    match setting.value_type {
        ValueType::Whole { low, high } => (low, high),
        _ => (0, 0),
    }
}

/// Values from nothing to twice the present one, evenly.
fn values(setting: &Setting, now: u64) -> Vec<u64> {
    const POINTS: u64 = 12;
    let (low, high) = range(setting);
    let end = now.saturating_mul(2).max(POINTS);
    let values = (1..=POINTS)
        .map(|point| (u128::from(end) * u128::from(point) / u128::from(POINTS)) as u64)
        .chain([now])
        .map(|value| value.clamp(low, high));
    let mut values = sorted(values, u64::cmp);
    values.dedup();
    values
}

fn with(setting: &Setting, scenario: &Scenario, value: u64) -> Option<Estimate> {
    let mut scenario = scenario.clone();
    setting.set(&mut scenario, &value.to_string()).ok()?;
    estimate(&scenario).ok()
}

/// A search for the largest value that fits, one estimate at a time so that typing is never kept waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Search {
    fits: u64,
    fails: Option<u64>,
    most: u64,
}

impl Search {
    fn new((low, most): (u64, u64)) -> Self {
        let fits = low.saturating_sub(1);
        Self {
            fits,
            fails: None,
            most,
        }
    }

    /// The value to try next, or nothing where the answer is known.
    fn next(self) -> Option<u64> {
        let next = match self.fails {
            None => self
                .fits
                .saturating_mul(2)
                .max(self.fits + 1)
                .min(self.most),
            Some(fails) => self.fits + (fails - self.fits) / 2,
        };
        (next > self.fits).then_some(next)
    }

    fn learn(&mut self, value: u64, fits: bool) {
        if fits {
            self.fits = value;
        } else {
            self.fails = Some(value);
        }
    }
}

/// Works the curve out in the background, a piece at a time; `current` says whether anyone still wants it.
async fn work(
    setting: &'static Setting,
    scenario: Scenario,
    tell: impl Fn(Curve),
    current: impl Fn() -> bool,
) {
    let Value::Whole(now) = setting.value(&scenario) else {
        return;
    };
    let mut curve = Curve {
        now,
        ..Curve::default()
    };
    for value in values(setting, now) {
        browser::breathe().await;
        if !current() {
            return;
        }
        if let Some(estimate) = with(setting, &scenario, value) {
            curve.usable = estimate.usable;
            curve.points.push((value, estimate.device));
        }
    }
    tell(curve.clone());
    let mut search = Search::new(range(setting));
    while let Some(value) = search.next().filter(|_| curve.usable.is_some()) {
        browser::breathe().await;
        if !current() {
            return;
        }
        let fits =
            with(setting, &scenario, value).is_some_and(|estimate| estimate.fits == Some(true));
        search.learn(value, fits);
    }
    if curve.usable.is_some() {
        let fits = search.fits >= range(setting).0;
        curve.largest = if fits {
            Largest::Value(search.fits)
        } else {
            Largest::Nothing
        };
    }
    tell(curve);
}

#[component]
pub fn Sweep() -> impl IntoView {
    let session = Session::current();
    let path = RwSignal::new("data.micro_batch");
    let curve = RwSignal::new(Curve::default());
    let wanted = StoredValue::new(0_u32);
    let swept = move |scenario: &Scenario| {
        let setting = settings::find(path.get_untracked());
        setting.filter(|setting| setting.applies(scenario))
    };
    let start = move || {
        let scenario = session
            .answer
            .with_untracked(|answer| (*answer.scenario).clone());
        let Some(setting) = swept(&scenario) else {
            return;
        };
        let mine = wanted.get_value();
        let tell = move |found| {
            curve.try_set(found);
        };
        spawn_local(work(setting, scenario, tell, move || {
            wanted.try_get_value() == Some(mine)
        }));
    };
    // The curve is worked out while the person is not typing: what is under way ends at the next key.
    once_rested(150, start, move |_| {
        session.answer.with(|_| ());
        path.track();
        wanted.update_value(|number| *number = number.wrapping_add(1));
        true
    });
    let setting = move || settings::find(path.get());
    let paths = memo(move || {
        session
            .scenario
            .with(sweepable)
            .iter()
            .map(|setting| setting.path)
            .collect::<Vec<_>>()
    });
    let options = move || {
        let option = |path: &'static str| {
            let label = settings::find(path).map(|setting| setting.label);
            view! { <option value=path>{label}</option> }
        };
        paths.get().into_iter().map(option).collect_view()
    };
    let choose = move |event: Event| {
        if let Some(setting) = settings::find(&event_target_value(&event)) {
            path.set(setting.path);
        }
    };
    let size = chart::current_size();
    let drawing =
        memo(move || curve.with(|curve| chart::curve(curve, session.units.get(), size.get())));
    let axis = move || curve.with(|curve| axis(setting(), curve, session.units.get()));
    let table = move || {
        let head = vec![
            setting().map_or("", |setting| setting.label),
            "Low",
            "Expected",
            "High",
        ];
        let rows = curve.with(|curve| rows(curve, session.units.get()));
        view! { <Table class="" head numbers=3 rows/> }
    };
    view! {
        <section class="panel" class:stale=move || session.stale.get() aria-labelledby="sweep-title">
            <header>
                <h2 id="sweep-title">"Memory on the device against"</h2>
                <select
                    class="plain"
                    aria-labelledby="sweep-title"
                    data-testid="sweep"
                    prop:value=move || path.get()
                    on:change=choose
                >
                    {options}
                </select>
                <p class="quiet push">{axis}</p>
                <SavePicture name="sweep" svg=drawing size/>
            </header>
            <Plot setting=Signal::derive(setting) curve drawing/>
            <LargestThatFits setting=Signal::derive(setting) curve/>
            <Folded title=text::TABLE>
                {table}
                <Saves
                    name="sweep"
                    svg=move || drawing.get()
                    size=move || size.get()
                    csv=move || curve.with(numbers_of)
                />
            </Folded>
        </section>
    }
}

/// The drawing, and the values where one points.
#[component]
fn Plot(
    setting: Signal<Option<&'static Setting>>,
    curve: RwSignal<Curve>,
    drawing: Memo<Option<String>>,
) -> impl IntoView {
    let session = Session::current();
    let size = chart::current_size();
    // Where nobody points, the values are those of this scenario.
    let pointed = RwSignal::new(None::<usize>);
    let at = memo(move || {
        curve.with(|curve| {
            let own = curve
                .points
                .iter()
                .position(|(value, _)| *value == curve.now);
            pointed.get().filter(|at| *at < curve.points.len()).or(own)
        })
    });
    let last = move || curve.with(|curve| curve.points.last().map_or(1, |(value, _)| *value));
    let point = move |event: PointerEvent| {
        let x = browser::across(&event)
            .and_then(|across| chart::value_at(across, last(), size.get().0));
        pointed.set(x.and_then(|x| curve.with_untracked(|curve| nearest(curve, x))));
    };
    let cursor = move || {
        let value = curve.with(|curve| Some(curve.points.get(at.get()?)?.0));
        let place = value.map(|value| chart::place_of(value, last(), size.get().0));
        format!("{:.3}%", place.unwrap_or_default())
    };
    let value = move || {
        let value = curve.with(|curve| Some(curve.points.get(at.get()?)?.0));
        value.unwrap_or_default().to_string()
    };
    let scrub = move |event: Event| {
        let value = event_target_value(&event).parse().ok();
        pointed.set(value.and_then(|value| curve.with_untracked(|curve| nearest(curve, value))));
    };
    let said = memo(move || {
        let (setting, units) = (setting.get()?, session.units.get());
        curve.with(|curve| readout(setting, curve, at.get()?, units))
    });
    let key = KEY.map(|(drawn, name)| {
        view! {
            <li>
                <svg viewBox="0 0 16 12" inner_html=drawn></svg>
                {name}
            </li>
        }
    });
    view! {
        <figure class="chart" data-testid="sweep-chart">
            <div
                class="plot"
                aria-hidden="true"
                on:pointermove=point
                on:pointerleave=move |_| pointed.set(None)
            >
                <Drawing svg=drawing/>
                <svg class="overlay">
                    <line class="cursor" y1="0" y2="100%" x1=cursor x2=cursor></line>
                </svg>
            </div>
            <input
                class="scrubber"
                type="range"
                min="0"
                aria-label="Point of the curve"
                max=move || last().to_string()
                prop:value=value
                aria-valuetext=move || said.get()
                on:input=scrub
            />
            <figcaption class="readout">{move || said.get()}</figcaption>
            <ul class="key" aria-hidden="true">
                {key}
            </ul>
        </figure>
    }
}

/// The point whose value is nearest to one.
fn nearest(curve: &Curve, value: f64) -> Option<usize> {
    let away = |at: &usize| {
        let point = curve.points.get(*at).map_or(0.0, |(own, _)| *own as f64);
        ((point - value).abs() * 1000.0) as u64
    };
    (0..curve.points.len()).min_by_key(away)
}

/// "Micro-batch 12: 17.2 GiB (16.8–17.9)".
fn readout(setting: &Setting, curve: &Curve, at: usize, units: UnitStyle) -> Option<String> {
    let (value, band) = curve.points.get(at)?;
    let [low, high] = [band.low, band.high].map(|bytes| bytes.beside(band.expected, units));
    let expected = band.expected.show(units);
    let fits = curve
        .usable
        .map(|usable| format!(", {}", Fit::of(*band, usable).words()));
    let fits = fits.unwrap_or_default();
    Some(format!(
        "{} {value}: {expected} ({low}–{high}){fits}",
        setting.label
    ))
}

/// The largest value that fits, and a button that takes it.
#[component]
fn LargestThatFits(
    setting: Signal<Option<&'static Setting>>,
    curve: RwSignal<Curve>,
) -> impl IntoView {
    let session = Session::current();
    let largest = memo(move || curve.with(|curve| (curve.largest, curve.now)));
    let said = move || largest_text(setting.get()?, largest.get().0);
    let button = move || {
        let (Largest::Value(value), now) = largest.get() else {
            return None;
        };
        let setting = setting.get().filter(|_| value != now)?;
        let apply = move |_| {
            session.enter(setting, &value.to_string());
            session.leave(setting);
        };
        Some(view! {
            <button type="button" data-testid="use-largest" on:click=apply>
                {format!("Use {value}")}
            </button>
        })
    };
    view! {
        <div class="actions largest" aria-live="polite">
            <p>{said}</p>
            {button}
        </div>
    }
}

/// What the drawing's marks mean.
const KEY: [(&str, &str); 4] = [
    (
        r#"<path class="line-main" d="M0 6h16" stroke-width="2"/>"#,
        "expected",
    ),
    (
        r#"<rect class="fill-main" y="1" width="16" height="10"/>"#,
        "range",
    ),
    (
        r#"<path class="line-limit" d="M0 6h16" stroke-width="2"/>"#,
        "usable on the card",
    ),
    (
        r#"<circle class="fill-peak" cx="8" cy="6" r="4"/>"#,
        "this scenario",
    ),
];

/// Every point, for other programs.
fn numbers_of(curve: &Curve) -> String {
    let row = |(value, band): &(u64, Band)| {
        let numbers = [band.low, band.expected, band.high].map(Bytes::get);
        [*value]
            .into_iter()
            .chain(numbers)
            .map(|number| number.to_string())
            .collect()
    };
    saves::csv(
        "value,low_bytes,expected_bytes,high_bytes",
        curve.points.iter().map(row),
    )
}

fn rows(curve: &Curve, units: UnitStyle) -> Vec<Vec<String>> {
    let row = |(value, band): &(u64, Band)| {
        let shown = [band.low, band.expected, band.high].map(|bytes| bytes.show(units));
        [value.to_string()].into_iter().chain(shown).collect()
    };
    curve.points.iter().map(row).collect()
}

/// What the axes of a sweep show.
fn axis(setting: Option<&Setting>, curve: &Curve, units: UnitStyle) -> Option<String> {
    let setting = setting?;
    let across = match setting.unit {
        "" => setting.label.to_ascii_lowercase(),
        unit => unit.to_string(),
    };
    Some(format!(
        "Memory ({}) by {across}",
        units.scale(curve.top()).1
    ))
}

fn largest_text(setting: &Setting, largest: Largest) -> Option<String> {
    let name = setting.label.to_ascii_lowercase();
    match largest {
        Largest::NotYetKnown => None,
        Largest::Value(value) => Some(format!("Largest {name} that fits: {value}.")),
        Largest::Nothing => Some(format!("Even the smallest {name} does not fit.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_largest_that_fits() {
        for largest in [0, 1, 2, 3, 7, 8, 100, 4095, 5000] {
            let mut search = Search::new((1, 5000));
            let mut tries = 0;
            while let Some(value) = search.next() {
                assert!((1..=5000).contains(&value));
                search.learn(value, value <= largest);
                tries += 1;
            }
            assert_eq!(search.fits, largest);
            assert!(tries < 30, "{tries}");
        }
    }

    #[test]
    fn values_hold_the_present_one_and_stay_in_range() {
        let batch = settings::find("data.micro_batch").unwrap();
        let check = |now, expected: &[u64]| assert_eq!(values(batch, now), expected);
        check(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        check(24, &[4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48]);
        for now in [1, 5, 13, 999, 1_000_000] {
            let all = values(batch, now);
            assert!(all.contains(&now) && all.iter().all(|value| (1..=1_000_000).contains(value)));
            assert!(all.len() <= 13);
        }
    }

    #[test]
    fn the_nearest_point_is_read_out() {
        let band = |gib| Band {
            low: Bytes::gib(gib),
            expected: Bytes::gib(gib + 1.0),
            high: Bytes::gib(gib + 2.0),
        };
        let curve = Curve {
            points: vec![(1, band(1.0)), (8, band(8.0)), (12, band(12.0))],
            now: 8,
            usable: Some(Bytes::gib(12.0)),
            largest: Largest::NotYetKnown,
        };
        assert_eq!(nearest(&curve, 9.4), Some(1));
        assert_eq!(nearest(&Curve::default(), 1.0), None);
        let batch = settings::find("data.micro_batch").unwrap();
        let said = readout(batch, &curve, 2, UnitStyle::Binary).unwrap();
        assert_eq!(
            said,
            "Micro-batch 12: 13.0 GiB (12.0–14.0), probably does not fit"
        );
    }

    #[test]
    fn what_is_asked_for_most_is_first() {
        let paths: Vec<_> = sweepable(&Scenario::default())
            .iter()
            .map(|setting| setting.path)
            .collect();
        assert_eq!(paths[..2], ["data.micro_batch", "data.sequence"]);
        assert!(!paths.contains(&"training.lora.rank"));
    }
}
