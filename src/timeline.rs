//! The timeline: allocated memory over one step, and what is there where you point.

use leptos::ev::{Event, PointerEvent};
use leptos::prelude::*;

use super::chart::{Course, Drawing, SavePicture};
use super::colours::CATEGORIES;
use super::saves::Saves;
use super::session::{Answer, Session};
use super::signals::{memo, once_rested};
use super::table::{Folded, Swatch, Table};
use super::{browser, chart, saves, text};
use headroom_base::order::sorted;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{
    self, At, Category, Estimate, Instant, Phase, Prediction, TensorGroup,
};

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
            let course = Course {
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
    // Where nobody points, the cursor rests on the peak.
    let pointed = RwSignal::new(None::<usize>);
    let at = memo(move || {
        let estimate = estimate.get()?;
        let (peak, _) = chart::peak(&estimate.timeline)?;
        let pointed = pointed.get().filter(|at| *at < estimate.timeline.len());
        Some(pointed.unwrap_or(peak))
    });
    let said = memo(move || {
        let at = at.get()?;
        let units = session.units.get();
        let said = readout(&estimate.get()?.timeline, at, units)?;
        let parts = course.with(|course| course.get(at).map(|parts| largest(parts, units)));
        Some(format!("{said}{}", parts.unwrap_or_default()))
    });
    let point = move |event: PointerEvent| {
        let across = browser::across(&event);
        pointed.set(across.and_then(|across| chart::instant_at(across, count(), size.get().0)));
    };
    let scrub = move |event: Event| pointed.set(event_target_value(&event).parse().ok());
    let cursor = move || {
        let at = at
            .get()
            .map(|at| chart::cursor_at(at, count(), size.get().0));
        format!("{:.3}%", at.unwrap_or_default())
    };
    let axis = move || {
        let whole = estimate.with(|estimate| Some(estimate.as_ref()?.allocated.expected));
        whole.map(|whole| text::axis(session.units.get(), whole))
    };
    let table = move || {
        let rows = estimate
            .get()
            .map(|estimate| rows(&estimate, session.units.get()));
        view! {
            <Table class="" head=vec!["Instant", "Allocated"] numbers=1 rows=rows.unwrap_or_default()/>
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
                <h3 id="timeline-title">"Allocated memory through one step"</h3>
                <p class="quiet">{axis}</p>
                <SavePicture name="timeline" svg=drawing size/>
            </header>
            <figure class="chart" data-testid="timeline">
                <div
                    class="plot"
                    aria-hidden="true"
                    on:pointermove=point
                    on:pointerleave=move |_| pointed.set(None)
                >
                    <Drawing svg=drawing size/>
                    <svg class="overlay">
                        <line class="cursor" y1="0" y2="100%" x1=cursor x2=cursor></line>
                    </svg>
                </div>
                <input
                    class="scrubber"
                    type="range"
                    min="0"
                    aria-label="Instant of the step"
                    max=move || count().saturating_sub(1).to_string()
                    prop:value=move || at.get().unwrap_or_default().to_string()
                    aria-valuetext=move || said.get()
                    on:input=scrub
                />
                <figcaption class="readout">{move || said.get()}</figcaption>
                <Key course/>
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

/// The colours that are in the drawing, by name.
#[component]
fn Key(course: Memo<Vec<Parts>>) -> impl IntoView {
    let shown = memo(move || {
        let is_in = |category: &Category| {
            course.with(|course| course.iter().flatten().any(|part| part.what == *category))
        };
        CATEGORIES.into_iter().filter(is_in).collect::<Vec<_>>()
    });
    let item = |category: Category| {
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

/// The three largest parts of an instant, in words.
fn largest(parts: &Parts, units: UnitStyle) -> String {
    let parts = sorted(parts.iter(), |one, other| other.bytes.cmp(&one.bytes));
    let said = parts.iter().take(3).map(|part| {
        let (_, label, _) = text::category(part.what);
        format!("{} {}", label.to_ascii_lowercase(), part.bytes.show(units))
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() {
        return String::new();
    }
    format!(": {}", said.join(", "))
}

/// What is alive at the instant, once the pointer rests.
#[component]
fn Alive(at: Memo<Option<usize>>) -> impl IntoView {
    let session = Session::current();
    let rested = RwSignal::new(at.get_untracked());
    let rest = move || rested.set(at.get_untracked());
    once_rested(120, rest, move |first| {
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

/// Each phase's peak: the instants with names.
pub(super) fn rows(estimate: &Estimate, units: UnitStyle) -> Vec<Vec<String>> {
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
    use crate::sample;

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
