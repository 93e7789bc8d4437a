//! The command `steps`: many steps with batches as they come, through the allocator.

use super::args::Args;
use super::{Answer, Refusal, what};
use crate::allocator::Card;
use crate::document::Document;
use crate::estimate::{ManySteps, own_card, walk};
use crate::scenario::Problem;
use crate::units::Bytes;

/// More than this many say nothing new, and take long.
const MOST: usize = 5_000;

pub(super) fn steps(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let count = match args.option("steps") {
        None => 200,
        Some(given) => given
            .parse()
            .ok()
            .filter(|it| (1..=MOST).contains(it))
            .ok_or_else(|| Problem::new("--steps", given, format!("1 to {MOST}")))?,
    };
    let walk = walk(&scenario, count)?;
    let native = walk.on(Card::UNLIMITED, &scenario.runtime);
    let mut other = scenario.runtime.clone();
    other.expandable_segments = !other.expandable_segments;
    let other = walk.on(Card::UNLIMITED, &other);
    let on_card = walk.on(own_card(&scenario), &scenario.runtime);
    let (own, switched) = if scenario.runtime.expandable_segments {
        ("expandable segments", "plain segments")
    } else {
        ("plain segments", "expandable segments")
    };
    let mut text = format!(
        "{count} steps\n\n{}\n{}\n",
        in_words(own, &native),
        in_words(switched, &other)
    );
    text.push_str(&match &on_card.failure {
        Some((step, oom)) => format!(
            "\non this card step {} fails after {} times of giving everything back: {} asked for, {} free, {} held of which \
             {} is allocated\n",
            step + 1,
            on_card.retries,
            oom.tried,
            oom.free,
            oom.reserved,
            oom.allocated
        ),
        None => format!(
            "\non this card all of them run; it refuses {} times, and the allocator gives everything back\n",
            on_card.retries
        ),
    });
    text.push_str("\nsteps in which more came to be held:\n");
    let mut held = Bytes::ZERO;
    for (place, step) in native.steps.iter().enumerate() {
        if step.highest > held {
            held = step.highest;
            text.push_str(&format!(
                "  step {:<5} size {:<8} {:>10} allocated {:>10} held\n",
                place + 1,
                step.size,
                step.allocated.to_string(),
                held.to_string()
            ));
        }
    }
    let document = as_document(&native)
        .with("switched", as_document(&other))
        .with("on_card", as_document(&on_card));
    let mut answer = Answer::new(text, &document);
    answer.fits = on_card.failure.is_none();
    Ok(answer)
}

fn in_words(name: &str, it: &ManySteps) -> String {
    let (allocated, reserved) = (it.allocated(), it.reserved());
    let ratio = reserved.get() as f64 / allocated.get().max(1) as f64;
    format!("{name:<20} {allocated} allocated at most, {reserved} held: {ratio:.2} times as much")
}

fn as_document(it: &ManySteps) -> Document {
    let row = |it: &crate::estimate::StepMemory| {
        Document::new()
            .with("size", it.size)
            .with("allocated", it.allocated)
            .with("reserved", it.reserved)
            .with("highest", it.highest)
    };
    Document::new()
        .with("allocated", it.allocated())
        .with("reserved", it.reserved())
        .with("retries", it.retries)
        .with("failed_step", it.failure.map(|it| it.0 as u64))
        .with("steps", Document::List(it.steps.iter().map(row).collect()))
}
