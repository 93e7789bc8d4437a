//! Two scenarios side by side: the settings that differ, and the memory of both on one scale.

use leptos::prelude::*;

use crate::fits::gauge::{Piece, pieces};
use crate::shared::browser;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::table::Table;
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::Estimate;
use headroom_io::export;
use headroom_scenario::{Scenario, settings};

/// The settings that differ: label, value in A, current value.
pub fn differences(kept: &Scenario, now: &Scenario) -> Vec<Vec<String>> {
    let differs = |setting: &&settings::Setting| {
        setting.get(kept) != setting.get(now) || setting.applies(kept) != setting.applies(now)
    };
    let shown = |setting: &settings::Setting, scenario| {
        if setting.applies(scenario) {
            export::shown(setting, scenario)
        } else {
            "–".into()
        }
    };
    settings::all()
        .iter()
        .filter(|setting| setting.applies(kept) || setting.applies(now))
        .filter(differs)
        .map(|setting| {
            vec![
                setting.label.into(),
                shown(setting, kept),
                shown(setting, now),
            ]
        })
        .collect()
}

/// "+1.20 GiB", "−3.00 MiB" or "same".
pub fn change(from: Bytes, to: Bytes, units: UnitStyle) -> String {
    match from.cmp(&to) {
        std::cmp::Ordering::Less => format!("+{}", (to - from).show(units)),
        std::cmp::Ordering::Greater => format!("−{}", (from - to).show(units)),
        std::cmp::Ordering::Equal => "same".into(),
    }
}

/// Each part of either: its label, A, current, and the change; the total last.
pub fn rows(kept: &Estimate, now: &Estimate, units: UnitStyle) -> Vec<Vec<String>> {
    let (kept_pieces, now_pieces) = (pieces(kept), pieces(now));
    let size = |all: &[(Piece, Bytes)], piece| {
        let found = all.iter().find(|(other, _)| *other == piece);
        found.map_or(Bytes::ZERO, |(_, bytes)| *bytes)
    };
    let gone = kept_pieces
        .iter()
        .filter(|(piece, _)| now_pieces.iter().all(|(other, _)| other != piece));
    let mut rows: Vec<_> = now_pieces
        .iter()
        .chain(gone)
        .map(|(piece, _)| {
            let (from, to) = (size(&kept_pieces, *piece), size(&now_pieces, *piece));
            vec![
                piece.describe().1.into(),
                from.show(units),
                to.show(units),
                change(from, to, units),
            ]
        })
        .collect();
    let (from, to) = (kept.device.expected, now.device.expected);
    rows.push(vec![
        text::WHOLE.into(),
        from.show(units),
        to.show(units),
        change(from, to, units),
    ]);
    rows
}

/// A bar's parts in percent of the longer bar: class, start and width.
fn bar(estimate: &Estimate, longest: Bytes) -> Vec<(&'static str, f64, f64)> {
    let at = |bytes: Bytes| bytes.get() as f64 / longest.get().max(1) as f64 * 100.0;
    let mut start = Bytes::ZERO;
    let piece = |(piece, bytes): (Piece, Bytes)| {
        let placed = (piece.describe().0, at(start), at(bytes));
        start += bytes;
        placed
    };
    pieces(estimate).into_iter().map(piece).collect()
}

/// One line below the verdict while comparing, so that whoever opens the link sees it first.
#[component]
pub fn CompareBanner() -> impl IntoView {
    let session = Session::current();
    let words = memo(move || {
        let kept = session.kept_answer.with(|answer| answer.estimate.clone())?;
        let now = session.estimate.get()?;
        session.kept.with(Option::is_some).then(|| {
            let (from, to) = (kept.device.expected, now.device.expected);
            let kept = session.kept_answer.with(|answer| answer.scenario.clone());
            let differ = session
                .answer
                .with(|answer| differences(&kept, &answer.scenario).len());
            text::compared(&change(from, to, session.units.get()), differ)
        })
    });
    move || {
        words.get().map(|words| {
            let go = move |_| browser::focus_soon("#compare-title".into());
            view! {
                <p class="banner" data-testid="compare-banner">
                    {words}" "
                    <button type="button" class="plain" on:click=go>{text::SEE_COMPARISON}</button>
                </p>
            }
        })
    }
}

/// What has changed since a scenario was kept as A; absent until one is.
#[component]
pub fn Compare() -> impl IntoView {
    let session = Session::current();
    let kept = memo(move || session.kept.with(Option::is_some));
    view! {
        <Show when=move || kept.get()>
            <section class="panel on-paper" aria-labelledby="compare-title" data-testid="compare">
                <Comparison/>
            </section>
        </Show>
    }
}

/// A button that keeps the run on the screen as A.
#[component]
pub fn KeepAsA() -> impl IntoView {
    let session = Session::current();
    let keep = move |_| {
        session.keep();
        browser::focus_soon("#compare-title".into());
    };
    view! {
        <button type="button" class="plain" data-testid="keep" title=text::COMPARE on:click=keep>
            {text::KEEP_AS_A}
        </button>
    }
}

#[component]
fn Comparison() -> impl IntoView {
    let session = Session::current();
    let both = memo(move || {
        let kept = session.kept_answer.with(|answer| answer.estimate.clone())?;
        Some((kept, session.estimate.get()?))
    });
    let bars = move || {
        let (kept, now) = both.get()?;
        let longest = kept.device.expected.max(now.device.expected);
        let units = session.units.get();
        let rows = [("A", kept), (text::NOW, now)].map(|(name, estimate)| {
            view! { <OneBar name pieces=bar(&estimate, longest) needs=estimate.device.expected.show(units)/> }
        });
        Some(view! { <dl class="bars">{rows.collect_view()}</dl> })
    };
    let named = move || {
        let kept = session.kept_answer.with(|answer| answer.scenario.clone());
        let all = session
            .answer
            .with(|answer| differences(&kept, &answer.scenario));
        if all.is_empty() {
            view! { <p class="quiet">{text::NO_DIFFERENCE}</p> }.into_any()
        } else {
            view! { <Table class="plain-table" head=vec!["Setting", "A", "Now"] numbers=0 rows=all/> }.into_any()
        }
    };
    let weighed = move || {
        let (kept, now) = both.get()?;
        let rows = rows(&kept, &now, session.units.get());
        Some(
            view! { <Table class="plain-table" head=vec!["Memory", "A", "Now", "Change"] numbers=3 rows/> },
        )
    };
    let stop = move |_| {
        session.kept.set(None);
        browser::focus_soon("[data-testid=keep]".into());
    };
    view! {
        <header>
            <h3 id="compare-title" tabindex="-1">{text::COMPARED}</h3>
            <button type="button" on:click=move |_| session.swap()>{text::SWAP}</button>
            <button type="button" on:click=stop>{text::STOP_COMPARING}</button>
        </header>
        {bars}
        <div class="pair">
            <div>{named}</div>
            <div>{weighed}</div>
        </div>
    }
}

/// A bar on the common scale; the tables below have the numbers.
#[component]
fn OneBar(
    name: &'static str,
    pieces: Vec<(&'static str, f64, f64)>,
    needs: String,
) -> impl IntoView {
    let piece = |(id, start, width): (&'static str, f64, f64)| {
        view! {
            <rect class=format!("segment part-{id}") x=format!("{start:.3}%") width=format!("{width:.3}%") height="100%"/>
        }
    };
    let pieces = pieces.into_iter().map(piece).collect_view();
    view! {
        <dt>{name}</dt>
        <dd><svg class="bar" aria-hidden="true">{pieces}</svg></dd>
        <dd class="number">{needs}</dd>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;

    #[test]
    fn differences_are_listed_by_setting() {
        let kept = Scenario::default();
        let mut now = kept.clone();
        assert_eq!(differences(&kept, &now), Vec::<Vec<String>>::new());
        now.data.micro_batch = 4;
        assert_eq!(
            differences(&kept, &now),
            [["Micro-batch", "8", "4"].map(String::from).to_vec()]
        );
        now.training.lora = Some(headroom_scenario::Lora::default());
        let named = differences(&kept, &now);
        assert!(
            named.contains(&["Adapter rank", "–", "16"].map(String::from).to_vec()),
            "{named:?}"
        );
    }

    #[test]
    fn changes_have_a_sign() {
        let check = |from, to, expected: &str| {
            assert_eq!(
                change(Bytes::mib(from), Bytes::mib(to), UnitStyle::Binary),
                expected
            );
        };
        check(1, 3, "+2.00 MiB");
        check(3, 1, "−2.00 MiB");
        check(3, 3, "same");
    }

    #[test]
    fn parts_of_both_have_a_row_and_the_total_is_last() {
        let kept = sample::estimate();
        let mut now = sample::estimate();
        now.breakdown.remove(0);
        let rows = rows(&kept, &now, UnitStyle::Binary);
        let names: Vec<_> = rows.iter().map(|row| row[0].as_str()).collect();
        let expected = [
            "Parameters",
            "Held by the allocator",
            "CUDA context",
            "Activations",
            "Total on GPU",
        ];
        assert_eq!(names, expected);
        assert_eq!(rows[3][3], "−5.00 GiB");
    }

    #[test]
    fn both_bars_share_one_scale() {
        let estimate = sample::estimate();
        let end = |longest| {
            bar(&estimate, longest)
                .iter()
                .map(|piece| piece.2)
                .sum::<f64>()
        };
        assert!((end(Bytes::gib(10.0)) - 100.0).abs() < 1e-6);
        assert!((end(Bytes::gib(20.0)) - 50.0).abs() < 1e-6);
    }
}
