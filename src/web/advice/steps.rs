//! Many steps with batches as they come: what is held beyond what is allocated, step by step.

use leptos::prelude::*;

use super::follow;
use super::jobs::Once;
use super::sheet::{Cell, Sheet};
use crate::allocator::Card;
use crate::estimate::{Prediction, Unsupported, own_card};
use crate::scenario::Scenario;
use crate::units::Bytes;
use crate::web::part::Part;
use crate::web::session::Session;
use crate::web::signals::memo;
use crate::web::worker::{Helper, JobKind};
use crate::web::{chart, saves, text};

pub const KIND: JobKind = JobKind {
    id: "steps",
    start: |scenario| Once::start(scenario, gone_through),
};

/// Enough to see what comes to be held; each size that is new is a run of the network.
const STEPS: usize = 40;

/// The steps in which more came to be held as rows, and all of them as points: what is held is marked.
fn gone_through(scenario: &Scenario) -> Result<Sheet, Unsupported> {
    let prediction = Prediction::new(scenario.clone());
    let sequence = prediction.many_steps(STEPS)?;
    let all = sequence.on(Card::UNLIMITED, &scenario.runtime);
    let mut sheet = Sheet::default();
    sheet.say(text::many_steps(STEPS, all.allocated(), all.reserved()));
    let on_card = sequence.on(own_card(&prediction.case()), &scenario.runtime);
    sheet.say(match on_card.failure {
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

const HEAD: &[&str] = &["Step", "Size of the batch", "Allocated", "Held"];

pub fn view(session: Session, width: ReadSignal<u32>) -> Part {
    let helper = Helper::new(KIND.id);
    let open = RwSignal::new(false);
    follow(session, helper, move || open.get());
    let sheet = memo(move || helper.reply.with(|it| Sheet::read(&it.lines)));
    let usable = move || session.estimate.get().and_then(|it| it.usable);
    let size = move || chart::size(width.get());
    let drawing = memo(move || {
        sheet.with(|it| chart::steps(&it.points, usable(), session.units.get(), size()))
    });
    let shown = move || {
        let done = helper.reply.with(|it| it.done);
        let working = format!("<p>{}</p>", text::WORKING);
        let table = |it: &Sheet| it.html(HEAD, 3, session.units.get());
        if done { sheet.with(table) } else { working }
    };
    let file = move || {
        let row = |it: &(Bytes, f64, bool)| {
            let what = if it.2 { "held" } else { "allocated" };
            vec![it.1.to_string(), what.into(), it.0.get().to_string()]
        };
        sheet.with(|it| saves::csv("step,measure,bytes", it.points.iter().map(row)))
    };
    let axis = move || {
        sheet.with(|it| text::steps_axis(&it.points, session.units.get()).unwrap_or_default())
    };
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="steps-title" data-testid="steps">
            <details class="more">
                <summary><h2 id="steps-title">{}</h2></summary>
                <p class="quiet">{}</p>
                <figure class="chart">
                    <p class="quiet"></p>
                    <div class="plot" aria-hidden="true"></div>
                </figure>
                <div class="scroller advice" role="status"></div>
                <slot name="saves"></slot>
            </details>
        </section>"#,
        text::MANY_STEPS,
        text::MANY_STEPS_ABOUT
    ))
    .class("", "stale", move || session.stale.get())
    .tells_open("details", open)
    .text("figure p", axis)
    .html(".plot", move || drawing.get().unwrap_or_default())
    .html(".advice", shown)
    .put(
        "saves",
        saves::view("steps", move || drawing.get(), size, file),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_many_sizes_say_what_comes_to_be_held() {
        let mut scenario = Scenario::default();
        for (name, value) in [
            ("dims", "layers=1,hidden=64,heads=2,vocab=100"),
            ("dist", "varying"),
            ("mean", "200"),
            ("p95", "450"),
            ("max", "1024"),
        ] {
            crate::scenario::settings::set(&mut scenario, name, value).unwrap();
        }
        let sheet = gone_through(&scenario).unwrap();
        assert_eq!(sheet.points.len(), 2 * STEPS);
        assert!(
            sheet.says.len() == 2 && sheet.rows.len() > 1,
            "{:?}",
            sheet.says
        );
        let crossed = Sheet::read(&sheet.lines());
        assert_eq!(crossed.points, sheet.points);
    }
}
