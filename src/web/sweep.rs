//! Memory against one setting: the curve, the card's line, and the largest value that still fits.

use leptos::prelude::*;
use leptos::reactive::spawn_local;

use super::effects::once_rested;
use super::part::Part;
use super::session::Session;
use super::{browser, chart, markup, saves};
use crate::estimate::{Band, Estimate, estimate};
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
        let usable = self.usable.filter(|it| it.get() / 3 < highest.get());
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
            .position(|it| *it == setting.path)
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
        let fits = with(setting, &scenario, value).is_some_and(|it| it.fits == Some(true));
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

pub fn view(session: Session, width: ReadSignal<u32>) -> Part {
    let path = RwSignal::new("data.micro_batch");
    let curve = RwSignal::new(Curve::default());
    let wanted = StoredValue::new(0_u32);
    let swept = move |scenario: &Scenario| {
        let setting = settings::find(path.get_untracked());
        setting.filter(|it| it.applies(scenario))
    };
    let start = move || {
        let scenario = session.answer.with_untracked(|it| (*it.scenario).clone());
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
        wanted.update_value(|it| *it = it.wrapping_add(1));
        true
    });
    let setting = move || settings::find(path.get());
    let options = move || {
        let option = |it: &&Setting| {
            let chosen = if it.path == path.get_untracked() {
                " selected"
            } else {
                ""
            };
            format!(
                "<option value=\"{}\"{chosen}>{}</option>",
                it.path,
                markup::escape(it.label)
            )
        };
        session
            .scenario
            .with(sweepable)
            .iter()
            .map(option)
            .collect()
    };
    let choose = move |event| {
        if let Some(setting) = settings::find(&browser::value_under(&event)) {
            path.set(setting.path);
        }
    };
    let drawing =
        move || curve.with(|it| chart::curve(it, session.units.get(), chart::size(width.get())));
    let open = RwSignal::new(false);
    let numbers = move || {
        if !open.get() {
            return String::new();
        }
        curve.with(|it| table(it, setting(), session.units.get()))
    };
    let file = move || curve.with(numbers_of);
    // The words, and what a button may take.
    let largest = move || {
        let setting = setting()?;
        let largest = curve.with(|it| it.largest);
        let value = match largest {
            Largest::Value(value) => Some(value),
            _ => None,
        };
        Some((setting, largest_text(setting, largest)?, value))
    };
    let said = move || {
        let Some((_, said, value)) = largest() else {
            return String::new();
        };
        let button =
            |it| format!("<button type=\"button\" data-testid=\"use-largest\">Use {it}</button>");
        format!(
            "<p>{}</p>{}",
            markup::escape(&said),
            value.map(button).unwrap_or_default()
        )
    };
    let apply = move |event| {
        let pressed = browser::attribute_under(&event, "data-testid") == "use-largest";
        if let Some((setting, _, Some(value))) = untrack(largest).filter(|_| pressed) {
            session.enter(setting, &value.to_string());
            session.leave(setting);
        }
    };
    let axis =
        move || curve.with(|it| axis(setting(), it, session.units.get()).unwrap_or_default());
    let key =
        KEY.map(|(drawn, name)| format!("<li><svg viewBox=\"0 0 16 12\">{drawn}</svg>{name}</li>"));
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="sweep-title">
            <header>
                <h2 id="sweep-title">Memory on the device against</h2>
                <select class="plain" aria-labelledby="sweep-title" data-testid="sweep"></select>
                <p class="quiet push"></p>
            </header>
            <figure class="chart" data-testid="sweep-chart">
                <div class="plot" aria-hidden="true"></div>
                <ul class="key" aria-hidden="true">{}</ul>
            </figure>
            <div class="actions largest" aria-live="polite"></div>
            <details class="numbers">
                <summary>The same in numbers</summary>
                <div></div>
                <slot name="saves"></slot>
            </details>
        </section>"#,
        key.concat()
    ))
    .class("", "stale", move || session.stale.get())
    .html("select", options)
    .on("select", "change", choose)
    .text(".push", axis)
    .html(".plot", move || drawing().unwrap_or_default())
    .html(".largest", said)
    .on(".largest", "click", apply)
    .tells_open("details", open)
    .html("details div", numbers)
    .put(
        "saves",
        saves::view("sweep", drawing, move || chart::size(width.get()), file),
    )
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
            .map(|it| it.to_string())
            .collect()
    };
    saves::csv(
        "value,low_bytes,expected_bytes,high_bytes",
        curve.points.iter().map(row),
    )
}

fn table(curve: &Curve, setting: Option<&Setting>, units: UnitStyle) -> String {
    let row = |(value, band): &(u64, Band)| {
        let shown = [band.low, band.expected, band.high].map(|it| it.show(units));
        [value.to_string()].into_iter().chain(shown).collect()
    };
    let rows: Vec<_> = curve.points.iter().map(row).collect();
    let name = setting.map_or("", |it| it.label);
    markup::table("", &[name, "Low", "Expected", "High"], 3, &rows)
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
            assert!(all.contains(&now) && all.iter().all(|it| (1..=1_000_000).contains(it)));
            assert!(all.len() <= 13);
        }
    }

    #[test]
    fn what_is_asked_for_most_is_first() {
        let paths: Vec<_> = sweepable(&Scenario::default())
            .iter()
            .map(|it| it.path)
            .collect();
        assert_eq!(paths[..2], ["data.micro_batch", "data.sequence"]);
        assert!(!paths.contains(&"training.lora.rank"));
    }
}
