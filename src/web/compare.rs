//! Two scenarios side by side: what differs between them, by name, and what that does to memory, on one scale.

use leptos::prelude::*;

use super::gauge::{Piece, pieces};
use super::part::Part;
use super::session::Session;
use super::signals::memo;
use super::{markup, text};
use crate::estimate::Estimate;
use crate::scenario::{Scenario, settings};
use crate::units::{Bytes, UnitStyle};

/// The settings that differ: label, in the kept scenario, now.
pub fn differences(kept: &Scenario, now: &Scenario) -> Vec<Vec<String>> {
    let differs = |setting: &&settings::Setting| {
        setting.get(kept) != setting.get(now) || setting.applies(kept) != setting.applies(now)
    };
    let shown = |setting: &settings::Setting, scenario| {
        if setting.applies(scenario) {
            setting.get(scenario)
        } else {
            "–".into()
        }
    };
    settings::all()
        .iter()
        .filter(|it| it.applies(kept) || it.applies(now))
        .filter(differs)
        .map(|it| vec![it.label.into(), shown(it, kept), shown(it, now)])
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

/// Each piece of either: its label, then, now, and the change; the whole last.
pub fn rows(kept: &Estimate, now: &Estimate, units: UnitStyle) -> Vec<Vec<String>> {
    let (kept_pieces, now_pieces) = (pieces(kept), pieces(now));
    let size = |all: &[(Piece, Bytes)], piece| {
        let found = all.iter().find(|(it, _)| *it == piece);
        found.map_or(Bytes::ZERO, |(_, bytes)| *bytes)
    };
    let gone = kept_pieces
        .iter()
        .filter(|(piece, _)| now_pieces.iter().all(|(it, _)| it != piece));
    let mut rows: Vec<_> = now_pieces
        .iter()
        .chain(gone)
        .map(|(piece, _)| {
            let (from, to) = (size(&kept_pieces, *piece), size(&now_pieces, *piece));
            vec![
                piece.words().1.into(),
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

/// A bar's pieces in percent of the longer of two: class, start and width.
fn bar(estimate: &Estimate, longest: Bytes) -> Vec<(&'static str, f64, f64)> {
    let at = |bytes: Bytes| bytes.get() as f64 / longest.get().max(1) as f64 * 100.0;
    let mut start = Bytes::ZERO;
    let piece = |(piece, bytes): (Piece, Bytes)| {
        let placed = (piece.words().0, at(start), at(bytes));
        start += bytes;
        placed
    };
    pieces(estimate).into_iter().map(piece).collect()
}

/// Keeps the present scenario as A, or shows what has changed since.
pub fn view(session: Session) -> Part {
    let kept = memo(move || session.kept.with(Option::is_some));
    Part::new(r#"<section class="panel" aria-labelledby="compare-title" data-testid="compare"></section>"#)
        .class("", "on-paper", move || kept.get())
        .shows("", move || {
            Some(if kept.get() {
                comparison(session)
            } else {
                keep(session)
            })
        })
}

fn keep(session: Session) -> Part {
    Part::new(&format!(
        r#"<header>
            <h2 id="compare-title">Compare</h2>
            <button type="button" data-testid="keep">Keep this as A</button>
        </header>
        <p class="quiet">{}</p>"#,
        text::COMPARE
    ))
    .on("button", "click", move |_| session.keep())
}

fn comparison(session: Session) -> Part {
    let both = move || {
        let kept = session.kept_answer.with(|it| it.estimate.clone())?;
        Some((kept, session.estimate.get()?))
    };
    let drawn = move || both().map(|(kept, now)| bars(&kept, &now, session.units.get()));
    let named = move || {
        let kept = session.kept_answer.with(|it| it.scenario.clone());
        let all = session.answer.with(|it| differences(&kept, &it.scenario));
        if all.is_empty() {
            format!("<p class=\"quiet\">{}</p>", text::NO_DIFFERENCE)
        } else {
            markup::table("plain-table", &["Setting", "A", "Now"], 0, &all)
        }
    };
    let weighed = move || {
        let (kept, now) = both()?;
        let rows = rows(&kept, &now, session.units.get());
        Some(markup::table(
            "plain-table",
            &["Memory", "A", "Now", "Change"],
            3,
            &rows,
        ))
    };
    Part::new(
        r#"<header>
            <h2 id="compare-title">Compared with A</h2>
            <button type="button" class="swap">Swap</button>
            <button type="button" class="stop">Stop comparing</button>
        </header>
        <div class="drawn"></div>
        <div class="pair">
            <div class="named"></div>
            <div class="weighed"></div>
        </div>"#,
    )
    .on(".swap", "click", move |_| session.swap())
    .on(".stop", "click", move |_| session.kept.set(None))
    .html(".drawn", move || drawn().unwrap_or_default())
    .html(".named", named)
    .html(".weighed", move || weighed().unwrap_or_default())
}

/// Both on one scale; the tables beneath hold the numbers.
fn bars(kept: &Estimate, now: &Estimate, units: UnitStyle) -> String {
    let longest = kept.device.expected.max(now.device.expected);
    let mut html = String::from("<dl class=\"bars\">");
    for (name, estimate) in [("A", kept), ("Now", now)] {
        html.push_str(&format!(
            "<dt>{name}</dt><dd><svg class=\"bar\" aria-hidden=\"true\">"
        ));
        for (id, start, width) in bar(estimate, longest) {
            html.push_str(&format!(
                "<rect class=\"segment part-{id}\" x=\"{start:.3}%\" width=\"{width:.3}%\" height=\"100%\"/>"
            ));
        }
        let needs = estimate.device.expected.show(units);
        html.push_str(&format!("</svg></dd><dd class=\"number\">{needs}</dd>"));
    }
    html.push_str("</dl>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::sample;

    #[test]
    fn differences_are_named_by_their_settings() {
        let kept = Scenario::default();
        let mut now = kept.clone();
        assert_eq!(differences(&kept, &now), Vec::<Vec<String>>::new());
        now.data.micro_batch = 4;
        assert_eq!(
            differences(&kept, &now),
            [["Micro-batch", "8", "4"].map(String::from).to_vec()]
        );
        now.training.lora = Some(crate::scenario::Lora::default());
        let named = differences(&kept, &now);
        assert!(
            named.contains(&["Adapter rank", "–", "16"].map(String::from).to_vec()),
            "{named:?}"
        );
    }

    #[test]
    fn changes_carry_their_sign() {
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
    fn pieces_of_either_have_a_row_and_the_whole_is_last() {
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
            "On the device",
        ];
        assert_eq!(names, expected);
        assert_eq!(rows[3][3], "−5.00 GiB");
    }

    #[test]
    fn both_bars_share_one_scale() {
        let estimate = sample::estimate();
        let end = |longest| bar(&estimate, longest).iter().map(|it| it.2).sum::<f64>();
        assert!((end(Bytes::gib(10.0)) - 100.0).abs() < 1e-6);
        assert!((end(Bytes::gib(20.0)) - 50.0).abs() < 1e-6);
    }
}
