//! The command `steps`: replays many steps with varying batches through the allocator.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::what::Given;
use headroom_base::document::Document;
use headroom_base::units::Bytes;
use headroom_core::allocator::Card;
use headroom_core::estimate::{ManySteps, Prediction, StepMemory, own_card};
use headroom_scenario::Problem;

/// More steps show nothing new and take long.
const MOST: usize = 5_000;

pub(super) fn steps(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let scenario = given.scenario();
    let count = match args.option("steps") {
        None => 200,
        Some(given) => given
            .parse()
            .ok()
            .filter(|count| (1..=MOST).contains(count))
            .ok_or_else(|| Problem::new("--steps", given, format!("1 to {MOST}")))?,
    };
    let prediction = Prediction::new(scenario.clone());
    let scenario = prediction.scenario();
    let sequence = prediction.many_steps(count)?;
    let native = sequence.on(Card::UNLIMITED, &scenario.runtime);
    let mut other = scenario.runtime.clone();
    other.expandable_segments = !other.expandable_segments;
    let other = sequence.on(Card::UNLIMITED, &other);
    let on_card = sequence.on(own_card(&prediction.case()), &scenario.runtime);
    let (own, switched) = if scenario.runtime.expandable_segments {
        ("expandable segments", "plain segments")
    } else {
        ("plain segments", "expandable segments")
    };
    let mut text = format!(
        "{count} steps\n\n{}\n{}\n",
        line(own, &native),
        line(switched, &other)
    );
    text.push_str(&match &on_card.failure {
        Some((step, oom)) => format!(
            "\non this GPU step {} runs out of memory after {} retries: tried to allocate {}, {} free, {} reserved, of \
             which {} is allocated\n",
            step + 1,
            on_card.retries,
            oom.tried,
            oom.free,
            oom.reserved,
            oom.allocated
        ),
        None => format!(
            "\non this GPU all steps run, with {} allocator retries\n",
            on_card.retries
        ),
    });
    text.push_str(&super::estimate::grows(prediction.estimate()?));
    text.push_str("\nsteps that increased reserved memory:\n");
    let mut reserved = Bytes::ZERO;
    for (place, step) in native.steps.iter().enumerate() {
        if step.reserved_peak > reserved {
            reserved = step.reserved_peak;
            text.push_str(&format!(
                "  step {:<5} size {:<8} {:>10} allocated {:>10} reserved\n",
                place + 1,
                step.size,
                step.allocated_peak.to_string(),
                reserved.to_string()
            ));
        }
    }
    let document = as_document(&native)
        .with("switched", as_document(&other))
        .with("on_card", as_document(&on_card));
    let mut answer = Answer::new(text, &document);
    answer.fits = on_card.failure.is_none() && prediction.estimate()?.full_in_epoch.is_none();
    Ok(answer)
}

fn line(name: &str, steps: &ManySteps) -> String {
    let (allocated, reserved) = (steps.allocated(), steps.reserved());
    let ratio = reserved.get() as f64 / allocated.get().max(1) as f64;
    format!(
        "{name:<20} peak of {allocated} allocated, {reserved} reserved: {ratio:.2} times as much"
    )
}

fn as_document(all: &ManySteps) -> Document {
    let row = |step: &StepMemory| {
        Document::new()
            .with("size", step.size)
            .with("allocated", step.allocated_peak)
            .with("reserved", step.reserved_end)
            .with("highest", step.reserved_peak)
    };
    Document::new()
        .with("allocated", all.allocated())
        .with("reserved", all.reserved())
        .with("retries", all.retries)
        .with("failed_step", all.failure.map(|(step, _)| step as u64))
        .with("steps", Document::List(all.steps.iter().map(row).collect()))
}
