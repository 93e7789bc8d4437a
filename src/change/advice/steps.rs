//! Many steps with varying batches: reserved and allocated memory, step by step.

use leptos::prelude::*;

use super::changes::Once;
use super::sheet::{Cell, Sheet};
use super::table::SheetTable;
use crate::shared::follow::follow_preferences;
use crate::shared::preferences::Limits;
use crate::shared::saves::Saves;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::worker::{Helper, JobKind};
use crate::shared::{chart, saves};
use crate::text;
use headroom_base::units::Bytes;
use headroom_core::allocator::Card;
use headroom_core::estimate::{Prediction, Unsupported, own_card};
use headroom_scenario::Scenario;

pub const KIND: JobKind = JobKind {
    id: "steps",
    start: |scenario, limits| Once::start(scenario, limits, many_steps),
};

/// Enough for reserved memory to level off; each new size costs a run of the network.
const STEPS: usize = 40;

/// The steps that increased reserved memory as rows, and all steps as points, with reserved memory marked.
fn many_steps(scenario: &Scenario, _: Limits) -> Result<Sheet, Unsupported> {
    let prediction = Prediction::new(scenario.clone());
    let sequence = prediction.many_steps(STEPS)?;
    let all = sequence.on(Card::UNLIMITED, &scenario.runtime);
    let mut sheet = Sheet::default();
    sheet.line(text::many_steps(STEPS, all.allocated(), all.reserved()));
    let on_card = sequence.on(own_card(&prediction.case()), &scenario.runtime);
    sheet.line(match on_card.failure {
        Some((step, _)) => text::step_fails(step + 1, on_card.retries),
        None => text::steps_run(on_card.retries),
    });
    let mut held = Bytes::ZERO;
    for (at, step) in (1_u32..).zip(&all.steps) {
        for (bytes, is_held) in [(step.allocated_peak, false), (step.reserved_peak, true)] {
            sheet.points.push((bytes, f64::from(at), is_held));
        }
        if step.reserved_peak > held {
            held = step.reserved_peak;
            let sizes = [step.allocated_peak, held].map(Cell::Size);
            let row = [at.to_string(), step.size.to_string()].map(Cell::Text);
            sheet.row(None, row.into_iter().chain(sizes).collect());
        }
    }
    Ok(sheet)
}

const HEAD: &[&str] = &["Step", "Batch size", "Allocated", "Reserved"];

/// Reserved memory over many steps, as a chart and a table.
#[component]
pub fn ManySteps(width: ReadSignal<u32>) -> impl IntoView {
    let session = Session::current();
    let helper = Helper::new(KIND.id);
    let open = RwSignal::new(false);
    follow_preferences(session, helper, move || open.get());
    let sheet = memo(move || helper.reply.with(|reply| Sheet::read(&reply.lines)));
    let usable = move || session.estimate.get().and_then(|estimate| estimate.usable);
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
        sheet.with(|sheet| chart::steps(&sheet.points, usable(), session.units.get(), size()))
    });
    let working = move || (!helper.reply.with(|reply| reply.done)).then_some(text::WORKING);
    let file = move || {
        let row = |(bytes, step, is_held): &(Bytes, f64, bool)| {
            let what = if *is_held { "reserved" } else { "allocated" };
            vec![step.to_string(), what.into(), bytes.get().to_string()]
        };
        sheet.with(|sheet| saves::csv("step,measure,bytes", sheet.points.iter().map(row)))
    };
    let axis = move || {
        sheet.with(|sheet| text::steps_axis(&sheet.points, session.units.get()).unwrap_or_default())
    };
    view! {
        <section class="panel" aria-labelledby="steps-title" data-testid="steps" class:stale=move || session.stale.get()>
            <details class="more" on:toggle=move |event| crate::shared::signals::track_open(&event, open)>
                <summary><h3 id="steps-title">{text::MANY_STEPS}</h3></summary>
                <p class="quiet">{text::MANY_STEPS_ABOUT}</p>
                <figure class="chart">
                    <p class="quiet">{axis}</p>
                    <div class="plot" aria-hidden="true" inner_html=move || drawing.get().unwrap_or_default()></div>
                </figure>
                <div class="scroller advice" role="status" tabindex="0" aria-labelledby="steps-title">
                    <p>{working}</p>
                    <SheetTable sheet head=HEAD focus="#steps-title"/>
                </div>
                <Saves name="steps" svg=move || drawing.get() size csv=file/>
            </details>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varying_steps_report_reserved_memory() {
        let mut scenario = Scenario::default();
        for (name, value) in [
            ("dims", "layers=1,hidden=64,heads=2,vocab=100"),
            ("dist", "varying"),
            ("mean", "200"),
            ("p95", "450"),
            ("max", "1024"),
        ] {
            headroom_scenario::settings::set(&mut scenario, name, value).unwrap();
        }
        let sheet = many_steps(&scenario, Limits::default()).unwrap();
        assert_eq!(sheet.points.len(), 2 * STEPS);
        assert!(
            sheet.messages.len() == 2 && sheet.rows.len() > 1,
            "{:?}",
            sheet.messages
        );
        let crossed = Sheet::read(&sheet.lines());
        assert_eq!(crossed.points, sheet.points);
    }
}
