//! The timeline: allocated memory over one step, and what is there where you point.

use leptos::prelude::*;
use web_sys::Event;

use super::effects::once_rested;
use super::part::Part;
use super::session::Session;
use super::signals::memo;
use super::{browser, chart, markup, saves, text};
use crate::estimate::{self, At, Estimate, Instant, Phase, Prediction, TensorGroup};
use crate::units::{Bytes, UnitStyle};

/// "Instant 12 of 300, backward: 8.00 GiB".
pub fn readout(instants: &[Instant], at: usize, units: UnitStyle) -> Option<String> {
    let instant = instants.get(at)?;
    let phase = text::phase(instant.phase).to_ascii_lowercase();
    let (number, all) = (at + 1, instants.len());
    Some(format!(
        "Instant {number} of {all}, {phase}: {} allocated",
        instant.bytes.show(units)
    ))
}

/// Every instant, for other programs.
fn numbers_of(instants: &[Instant]) -> String {
    let row = |(index, it): (usize, &Instant)| {
        let phase = text::phase(it.phase).to_ascii_lowercase();
        vec![(index + 1).to_string(), phase, it.bytes.get().to_string()]
    };
    let rows = instants.iter().enumerate().map(row);
    saves::csv("instant,phase,allocated_bytes", rows)
}

pub fn view(session: Session, width: ReadSignal<u32>) -> Part {
    let estimate = session.estimate;
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
        let estimate = estimate.get()?;
        let before = session.ghost();
        let before = before.as_ref().map_or(&[][..], |it| &it.timeline);
        chart::timeline(&estimate.timeline, before, session.units.get(), size())
    });
    let count = move || estimate.with(|it| it.as_ref().map_or(0, |it| it.timeline.len()));
    // Where nobody points, the cursor rests on the peak.
    let pointed = RwSignal::new(None::<usize>);
    let at = memo(move || {
        let estimate = estimate.get()?;
        let (peak, _) = chart::peak(&estimate.timeline)?;
        Some(
            pointed
                .get()
                .filter(|it| *it < estimate.timeline.len())
                .unwrap_or(peak),
        )
    });
    let open = RwSignal::new(false);
    let numbers = move || {
        let estimate = open.get().then(|| estimate.get()).flatten();
        estimate
            .map(|it| table(&it, session.units.get()))
            .unwrap_or_default()
    };
    let file = move || {
        estimate
            .get()
            .map(|it| numbers_of(&it.timeline))
            .unwrap_or_default()
    };
    let said = move || readout(&estimate.get()?.timeline, at.get()?, session.units.get());
    let point = move |event: Event| {
        let index = browser::across(&event).and_then(|it| chart::instant_at(it, count(), size().0));
        pointed.set(index);
    };
    let said = move || said().unwrap_or_default();
    let scrub = move |event| pointed.set(browser::value_under(&event).parse().ok());
    let cursor = move || {
        let at = at.get().map(|it| chart::cursor_at(it, count(), size().0));
        format!("{:.3}%", at.unwrap_or_default())
    };
    let axis = move || {
        let whole = estimate.with(|it| it.as_ref().map(|it| it.allocated.expected));
        whole
            .map(|it| text::axis(session.units.get(), it))
            .unwrap_or_default()
    };
    Part::new(
        r#"<section class="panel on-paper" aria-labelledby="timeline-title">
            <header>
                <h2 id="timeline-title">Allocated memory through one step</h2>
                <p class="quiet"></p>
            </header>
            <figure class="chart" data-testid="timeline">
                <div class="plot" aria-hidden="true">
                    <div></div>
                    <svg class="overlay"><line class="cursor" y1="0" y2="100%"></line></svg>
                </div>
                <input class="scrubber" type="range" min="0" aria-label="Instant of the step">
                <figcaption class="readout"></figcaption>
            </figure>
            <slot name="alive"></slot>
            <details class="numbers same">
                <summary>The same in numbers</summary>
                <div></div>
                <slot name="saves"></slot>
            </details>
        </section>"#,
    )
    .class("", "stale", move || session.stale.get())
    .text("p", axis)
    .html(".plot div", move || drawing.get().unwrap_or_default())
    .on(".plot", "pointermove", point)
    .on(".plot", "pointerleave", move |_| pointed.set(None))
    .attribute(".cursor", "x1", cursor)
    .attribute(".cursor", "x2", cursor)
    .attribute("input", "max", move || {
        count().saturating_sub(1).to_string()
    })
    .value("input", move || at.get().unwrap_or_default().to_string())
    .attribute("input", "aria-valuetext", said)
    .on("input", "input", scrub)
    .text(".readout", said)
    .tells_open(".same", open)
    .html(".same div", numbers)
    .put("alive", alive_then(session, at))
    .put(
        "saves",
        saves::view("timeline", move || drawing.get(), size, file),
    )
}

/// What is alive at the instant, once the pointer rests.
fn alive_then(session: Session, at: Memo<Option<usize>>) -> Part {
    let open = RwSignal::new(false);
    let rested = RwSignal::new(None::<usize>);
    let rest = move || rested.set(at.get_untracked());
    once_rested(120, rest, move |_| {
        at.with(|_| ());
        open.get()
    });
    let shown = move || {
        let at = rested.get().filter(|_| open.get())?;
        let units = session.units.get();
        session
            .answer
            .with(|it| alive(it.prediction.as_deref()?, at, units))
    };
    let title = text::ALIVE;
    Part::new(&format!(
        r#"<details class="numbers" data-testid="alive">
            <summary>{title}</summary>
            <div class="scroller" tabindex="0" role="region" aria-label="{title}"></div>
        </details>"#
    ))
    .tells_open("", open)
    .html("div", move || shown().unwrap_or_default())
}

/// The largest groups of tensors at an instant.
pub fn alive(prediction: &Prediction, at: usize, units: UnitStyle) -> Option<String> {
    const MOST: usize = 12;
    let groups = prediction.tensors(At::Instant(at)).ok()?;
    let row = |group: &TensorGroup| {
        let (_, category, _) = text::category(group.category);
        let module = if group.module.is_empty() {
            text::OUTSIDE
        } else {
            &group.module
        };
        vec![
            category.into(),
            group.op.into(),
            module.into(),
            group.count.to_string(),
            group.total().show(units),
        ]
    };
    let mut rows: Vec<Vec<String>> = groups.iter().take(MOST).map(row).collect();
    let rest: Bytes = groups.iter().skip(MOST).map(TensorGroup::total).sum();
    if rest > Bytes::ZERO {
        let empty = String::new;
        rows.push(vec![
            text::SMALLER.into(),
            empty(),
            empty(),
            empty(),
            rest.show(units),
        ]);
    }
    let head = ["Kept as", "Made by", "In", "Tensors", "Together"];
    Some(markup::table("tensors", &head, 2, &rows))
}

/// Each phase's peak: the instants with names.
pub(super) fn table(estimate: &Estimate, units: UnitStyle) -> String {
    let line = |name: String, bytes: Bytes| vec![name, bytes.show(units)];
    let peak = |it: &estimate::Part<Phase>| line(text::peak_in(it.what), it.bytes);
    let mut rows: Vec<_> = estimate.phases.iter().map(peak).collect();
    rows.push(line(text::FORWARD_END.into(), estimate.forward_end));
    rows.push(line(text::BETWEEN.into(), estimate.between_steps));
    markup::table("", &["Instant", "Allocated"], 1, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::sample;

    #[test]
    fn an_instant_is_read_out_with_its_phase() {
        let instants = sample::estimate().timeline;
        let said = readout(&instants, 2, UnitStyle::Binary);
        assert_eq!(
            said.as_deref(),
            Some("Instant 3 of 5, backward: 8.00 GiB allocated")
        );
        assert_eq!(readout(&instants, 5, UnitStyle::Binary), None);
    }

    #[test]
    fn the_table_for_programs_has_every_instant() {
        let lines = numbers_of(&sample::estimate().timeline);
        assert_eq!(lines.lines().count(), 6);
        assert_eq!(lines.lines().nth(1), Some("1,forward,3221225472"));
    }
}
