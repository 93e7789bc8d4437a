//! Memory against one setting: the curve, the GPU's line, and the largest value that fits.

mod curve;

pub use curve::KIND;
use curve::{Curve, Largest};

use leptos::ev::Event;
use leptos::prelude::*;

use crate::shared::chart::{SavePicture, Scrubber};
use crate::shared::follow::follow;
use crate::shared::saves::Saves;
use crate::shared::session::Session;
use crate::shared::signals::{memo, memo_after};
use crate::shared::table::{Folded, Table};
use crate::shared::worker::Helper;
use crate::shared::{chart, saves};
use crate::text;
use headroom_base::order::sorted;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{Band, Fit};
use headroom_scenario::Scenario;
use headroom_scenario::settings::{self, Setting, ValueType};

/// Settings that can be swept: integers with an effect here.
fn sweepable(scenario: &Scenario) -> Vec<&'static Setting> {
    let first = [
        "data.micro_batch",
        "data.sequence",
        "data.frames",
        "data.height",
        "training.lora.rank",
    ];
    let all = settings::all().iter().filter(|setting| {
        matches!(setting.value_type, ValueType::Whole { .. })
            && matches!(setting.section(), "data" | "training")
            && text::applies(setting, scenario)
    });
    let place = |setting: &Setting| {
        first
            .iter()
            .position(|path| *path == setting.path)
            .unwrap_or(first.len())
    };
    sorted(all, |a, b| place(a).cmp(&place(b)))
}

#[component]
pub fn Sweep() -> impl IntoView {
    let session = Session::current();
    let path = RwSignal::new("data.micro_batch");
    let helper = Helper::new(KIND.id);
    follow(session, helper, || true, move || path.get().into());
    // The previous curve stays until the next is known, so the layout does not shift.
    let curve = memo_after(move |before: Option<&Curve>| {
        let read = helper.reply.with(|reply| Curve::read(&reply.lines));
        read.or_else(|| before.cloned()).unwrap_or_default()
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
    let drawing = memo(move || curve.with(|curve| draw(curve, session.units.get(), size.get())));
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
                <h3 id="sweep-title">"Memory on the device against"</h3>
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

/// The chart, and the values under the pointer.
#[component]
fn Plot(
    setting: Signal<Option<&'static Setting>>,
    curve: Memo<Curve>,
    drawing: Memo<Option<String>>,
) -> impl IntoView {
    let session = Session::current();
    let size = chart::current_size();
    // Without a pointer, the values of the current scenario.
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
    let go_to = move |x| pointed.set(curve.with_untracked(|curve| nearest(curve, x)));
    let point = move |across: Option<f64>| match across
        .and_then(|across| chart::value_at(across, last(), size.get().0))
    {
        Some(x) => go_to(x),
        None => pointed.set(None),
    };
    let scrub = move |value: u64| go_to(value as f64);
    let shown = move || curve.with(|curve| Some(curve.points.get(at.get()?)?.0));
    let cursor = Signal::derive(move || {
        let place = |value| chart::place_of(value, last(), size.get().0);
        shown().map(place).unwrap_or_default()
    });
    let value = Signal::derive(move || shown().unwrap_or_default());
    let ends = Signal::derive(move || {
        let place = |value| chart::place_of(value, last(), size.get().0);
        (place(0), place(last()))
    });
    let max = Signal::derive(last);
    let readout = memo(move || {
        let (setting, units) = (setting.get()?, session.units.get());
        curve.with(|curve| self::readout(setting, curve, at.get()?, units))
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
            <Scrubber label="Point of the curve" svg=drawing size value max cursor ends point scrub readout/>
            <ul class="key" aria-hidden="true">
                {key}
            </ul>
        </figure>
    }
}

/// The point closest to a value.
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
    let [low, high] =
        [band.low, band.high].map(|bytes| bytes.show_in_unit_of(band.expected, units));
    let expected = band.expected.show(units);
    let fits = curve
        .usable
        .map(|usable| format!(", {}", Fit::of(*band, usable).label()));
    let fits = fits.unwrap_or_default();
    Some(format!(
        "{} {value}: {expected} ({low}–{high}){fits}",
        setting.label
    ))
}

/// The largest value that fits, and a button that applies it.
#[component]
fn LargestThatFits(setting: Signal<Option<&'static Setting>>, curve: Memo<Curve>) -> impl IntoView {
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

/// The legend.
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
        "usable on the GPU",
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

fn draw(curve: &Curve, units: UnitStyle, size: (u32, u32)) -> Option<String> {
    chart::curve(&curve.points, curve.now, curve.usable, units, size)
}

/// The title of a sweep's chart.
fn axis(setting: Option<&Setting>, curve: &Curve, units: UnitStyle) -> Option<String> {
    let setting = setting?;
    let across = match setting.unit {
        "" => setting.label.to_ascii_lowercase(),
        unit => unit.to_string(),
    };
    let unit = chart::curve_unit(&curve.points, curve.usable, units);
    Some(format!("Memory ({unit}) by {across}"))
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
    fn the_closest_point_is_read_out() {
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
    fn jobs_are_in_order_of_priority() {
        let paths: Vec<_> = sweepable(&Scenario::default())
            .iter()
            .map(|setting| setting.path)
            .collect();
        assert_eq!(paths[..2], ["data.micro_batch", "data.sequence"]);
        assert!(!paths.contains(&"training.lora.rank"));
    }
}
