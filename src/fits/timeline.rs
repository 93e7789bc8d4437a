//! The timeline: allocated memory over one step, and the tensors at the pointer.

use leptos::prelude::*;

use crate::fits::phases::PhasePeaks;
use crate::shared::chart::{SavePicture, Scrubber, TimelineData};
use crate::shared::colours::CATEGORIES;
use crate::shared::saves::Saves;
use crate::shared::session::{Answer, Session};
use crate::shared::signals::{debounced, memo};
use crate::shared::table::{Folded, Swatch, Table};
use crate::shared::{chart, saves};
use crate::text;
use headroom_base::order::sorted;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{
    self, At, Category, Estimate, Instant, Phase, Prediction, TensorGroup,
};

/// "Event 12 of 300, backward: 8.00 GiB".
pub fn readout(instants: &[Instant], at: usize, units: UnitStyle) -> Option<String> {
    let instant = instants.get(at)?;
    let phase = text::phase(instant.phase).to_ascii_lowercase();
    let (number, all) = (at + 1, instants.len());
    Some(format!(
        "Event {number} of {all}, {phase}: {} allocated",
        instant.bytes.show(units)
    ))
}

/// Every instant as CSV.
fn numbers_of(instants: &[Instant]) -> String {
    let row = |(index, instant): (usize, &Instant)| {
        let phase = text::phase(instant.phase).to_ascii_lowercase();
        vec![
            (index + 1).to_string(),
            phase,
            instant.bytes.get().to_string(),
        ]
    };
    let rows = instants.iter().enumerate().map(row);
    saves::csv("instant,phase,allocated_bytes", rows)
}

#[component]
pub fn Timeline() -> impl IntoView {
    let session = Session::current();
    let size = chart::current_size();
    let estimate = memo(move || session.settled.with(|answer| answer.estimate.clone()));
    let course = memo(move || {
        let course = |answer: &Answer| answer.prediction.as_ref()?.timeline_by_category().ok();
        session.settled.with(course).unwrap_or_default()
    });
    let drawing = memo(move || {
        let estimate = estimate.get()?;
        let before = session.ghost();
        let drawn = |parts: &Vec<Parts>| {
            let course = TimelineData {
                instants: &estimate.timeline,
                parts,
                before: before.as_ref().map_or(&[][..], |before| &before.timeline),
                usable: estimate.usable,
            };
            chart::timeline(course, session.units.get(), size.get())
        };
        course.with(drawn)
    });
    let count = move || {
        estimate.with(|estimate| {
            estimate
                .as_ref()
                .map_or(0, |estimate| estimate.timeline.len())
        })
    };
    // Without a pointer, the cursor is at the peak.
    let pointed = RwSignal::new(None::<usize>);
    let at = memo(move || {
        let estimate = estimate.get()?;
        let (peak, _) = chart::peak(&estimate.timeline)?;
        let pointed = pointed.get().filter(|at| *at < estimate.timeline.len());
        Some(pointed.unwrap_or(peak))
    });
    let readout = memo(move || {
        let at = at.get()?;
        let units = session.units.get();
        let shown = self::readout(&estimate.get()?.timeline, at, units)?;
        let parts = course.with(|course| course.get(at).map(|parts| largest(parts, units)));
        Some(format!("{shown}{}", parts.unwrap_or_default()))
    });
    let point = move |across: Option<f64>| {
        pointed.set(across.and_then(|across| chart::instant_at(across, count(), size.get().0)));
    };
    let scrub = move |at: u64| pointed.set(usize::try_from(at).ok());
    let cursor = Signal::derive(move || {
        let place = |at| chart::cursor_at(at, count(), size.get().0);
        at.get().map(place).unwrap_or_default()
    });
    let ends = Signal::derive(move || {
        let place = |at| chart::cursor_at(at, count(), size.get().0);
        (place(0), place(count().saturating_sub(1)))
    });
    let value = Signal::derive(move || at.get().unwrap_or_default() as u64);
    let max = Signal::derive(move || count().saturating_sub(1) as u64);
    let axis = move || {
        let whole = estimate.with(|estimate| Some(estimate.as_ref()?.allocated.expected));
        whole.map(|whole| text::axis(session.units.get(), whole))
    };
    let omitted = move || {
        let drawn = estimate.with(|estimate| {
            let instants = estimate.as_ref().map(|estimate| &estimate.timeline);
            instants.map_or(0, |instants| chart::passes(instants))
        });
        let all = session
            .settled
            .with(|answer| answer.scenario.training.accumulation);
        (drawn > 0 && (drawn as u64) < all).then(|| text::passes_drawn(drawn, all))
    };
    let table = move || {
        let rows = estimate
            .get()
            .map(|estimate| rows(&estimate, session.units.get()));
        view! {
            <Table class="" head=vec!["Event", "Allocated"] numbers=1 rows=rows.unwrap_or_default()/>
        }
    };
    let file = move || {
        estimate
            .get()
            .map(|estimate| numbers_of(&estimate.timeline))
    };
    view! {
        <section
            class="panel on-paper"
            class:stale=move || session.stale.get()
            aria-labelledby="timeline-title"
        >
            <header>
                <h3 id="timeline-title">"Allocated memory over one step"</h3>
                <p class="quiet">{axis} {omitted}</p>
                <SavePicture name="timeline" svg=drawing size/>
            </header>
            <figure class="chart" data-testid="timeline">
                <Scrubber label="Event of the step" svg=drawing size value max cursor ends point scrub readout/>
                <Key course/>
                <PhasePeaks estimate course/>
            </figure>
            <Alive at/>
            <Folded title=text::TABLE class="numbers same">
                {table}
                <Saves
                    name="timeline"
                    svg=move || drawing.get()
                    size=move || size.get()
                    csv=move || file().unwrap_or_default()
                />
            </Folded>
        </section>
    }
}

type Parts = Vec<estimate::Part<Category>>;

/// The legend of the drawing's colours.
#[component]
fn Key(course: Memo<Vec<Parts>>) -> impl IntoView {
    let shown = memo(move || {
        let is_in = |category: &Category| {
            course.with(|course| course.iter().flatten().any(|part| part.what == *category))
        };
        CATEGORIES.into_iter().filter(is_in).collect::<Vec<_>>()
    });
    let item = move |category: Category| {
        let (id, label, _) = text::category(category);
        view! {
            <li>
                <Swatch part=id/>
                {label}
            </li>
        }
    };
    view! {
        <ul class="key" aria-hidden="true">
            {move || shown.get().into_iter().map(item).collect_view()}
        </ul>
    }
}

/// The three largest parts of an instant, as text.
fn largest(parts: &Parts, units: UnitStyle) -> String {
    let parts = sorted(parts.iter(), |one, other| other.bytes.cmp(&one.bytes));
    let shown = parts.iter().take(3).map(|part| {
        let label = match text::category(part.what).1 {
            name @ "vLLM" => name.into(),
            label => label.to_ascii_lowercase(),
        };
        format!("{label} {}", part.bytes.show(units))
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    format!(": {}", shown.join(", "))
}

/// The tensors at the instant, once the pointer rests.
#[component]
fn Alive(at: Memo<Option<usize>>) -> impl IntoView {
    let session = Session::current();
    let rested = RwSignal::new(at.get_untracked());
    let rest = move || rested.set(at.get_untracked());
    debounced(120, rest, move |first| {
        at.with(|_| ());
        !first
    });
    let table = move || {
        let at = rested.get()?;
        let units = session.units.get();
        let read = |answer: &Answer| alive(answer.prediction.as_deref()?, at, units);
        let rows = session.settled.with(read)?;
        let head = vec!["Kept as", "Made by", "In", "Tensors", "Total"];
        Some(view! { <Table class="tensors" head numbers=2 rows/> })
    };
    view! {
        <Folded title=text::ALIVE testid="alive">
            <div class="scroller" tabindex="0" role="region" aria-label=text::ALIVE>
                {table}
            </div>
        </Folded>
    }
}

/// The largest groups of tensors at an instant.
pub fn alive(prediction: &Prediction, at: usize, units: UnitStyle) -> Option<Vec<Vec<String>>> {
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
        let rest = rest.show(units);
        rows.push(vec![text::SMALLER.into(), empty(), empty(), empty(), rest]);
    }
    Some(rows)
}

/// The peak of each phase.
pub(crate) fn rows(estimate: &Estimate, units: UnitStyle) -> Vec<Vec<String>> {
    let line = |name: String, bytes: Bytes| vec![name, bytes.show(units)];
    let peak = |part: &estimate::Part<Phase>| line(text::peak_in(part.what), part.bytes);
    let mut rows: Vec<_> = estimate.phases.iter().map(peak).collect();
    rows.push(line(text::FORWARD_END.into(), estimate.forward_end));
    rows.push(line(text::BETWEEN.into(), estimate.between_steps));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;

    #[test]
    fn the_readout_of_an_instant_has_its_phase() {
        let instants = sample::estimate().timeline;
        let shown = readout(&instants, 2, UnitStyle::Binary);
        assert_eq!(
            shown.as_deref(),
            Some("Event 3 of 5, backward: 8.00 GiB allocated")
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
