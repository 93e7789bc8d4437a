//! Memory against time: each plan, each step on the way to one, and the run as it is, as points that can be pressed.

use leptos::prelude::*;

use super::Planned;
use super::proposal::{Kind, Proposal};
use super::strip::take;
use crate::shared::chart::{self, Front};
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_base::units::{Seconds, UnitStyle};

/// "fastest: 18.2 GiB, 16.8 s a step: checkpoint every layer".
fn readout(run: &Proposal, units: UnitStyle) -> String {
    let figures = [
        Some(run.needs.show(units)),
        run.seconds
            .map(|seconds| text::per_step(&Seconds::new(seconds).to_string())),
        (!run.fits).then(|| text::DOES_NOT_FIT.into()),
    ];
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    let steps = if run.steps.is_empty() {
        String::new()
    } else {
        format!(": {}", run.steps)
    };
    format!("{}, {}{steps}", run.name, figures.join(", "))
}

/// The chart; a point that is hovered or focused is read out below it.
#[component]
pub fn TimeMemory() -> impl IntoView {
    let session = Session::current();
    let planned = Planned::current();
    let size = chart::current_size();
    let runs = memo(move || {
        let timed = |run: &&Proposal| run.seconds.is_some();
        planned
            .found
            .with(|found| found.runs.iter().filter(timed).cloned().collect::<Vec<_>>())
    });
    let usable = move || session.estimate.get().and_then(|estimate| estimate.usable);
    let front = memo(move || {
        let points: Vec<_> = runs.with(|runs| {
            let point = |run: &Proposal| Some((run.needs, run.seconds?));
            runs.iter().filter_map(point).collect()
        });
        Front::of(&points, usable(), session.units.get())
    });
    let drawing = memo(move || front.with(|front| front.as_ref()?.svg(size.get())));
    let pointed = RwSignal::new(None::<String>);
    let said = move || {
        let units = session.units.get();
        let pointed = pointed.get();
        runs.with(|runs| {
            let run = runs.iter().find(|run| Some(&run.link) == pointed.as_ref());
            run.or_else(|| runs.iter().find(|run| run.kind == Kind::Now))
                .map(|run| readout(run, units))
        })
    };
    let axis = move || front.with(|front| Some(text::time_memory_axis(front.as_ref()?.unit())));
    view! {
        <figure class="chart time-memory" data-testid="time-memory" hidden=move || runs.with(|runs| runs.len() < 2)>
            <p class="quiet">{axis}</p>
            <div class="plot" on:pointerleave=move |_| pointed.set(None)>
                <div aria-hidden="true" inner_html=move || drawing.get().unwrap_or_default()></div>
                <For each=move || runs.get() key=|run| format!("{} {}", run.kind.id(), run.link) let(run)>
                    <Point run front pointed/>
                </For>
            </div>
            <figcaption class="readout">{said}</figcaption>
        </figure>
    }
}

/// A button at the run's place in the chart.
#[component]
fn Point(
    run: Proposal,
    front: Memo<Option<Front>>,
    pointed: RwSignal<Option<String>>,
) -> impl IntoView {
    let session = Session::current();
    let size = chart::current_size();
    let place = move || {
        let found =
            front.with(|front| Some(front.as_ref()?.place((run.needs, run.seconds?), size.get())));
        found.unwrap_or_default()
    };
    let left = move || format!("{:.2}%", place().0);
    let top = move || format!("{:.2}%", place().1);
    let look = StoredValue::new(run.link.clone());
    let look = move || pointed.set(Some(look.get_value()));
    let class = format!("point {}", run.kind.id());
    if run.kind == Kind::Now {
        return view! {
            <span class=class aria-hidden="true" style:left=left style:top=top on:pointerenter=move |_| look()></span>
        }
        .into_any();
    }
    let label = readout(&run, session.units.get_untracked());
    let title = label.clone();
    let link = run.link.clone();
    view! {
        <button
            type="button"
            class=class
            title=title
            aria-label=label
            style:left=left
            style:top=top
            on:pointerenter=move |_| look()
            on:focus=move |_| look()
            on:click=move |_| take(session, &link, "#place-change")
        ></button>
    }
    .into_any()
}
