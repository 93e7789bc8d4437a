//! The networks of a layout: runs without their micro-batch, each with a bound on its step time.

use std::rc::Rc;

use super::super::edit::Edit;
use super::super::evaluate::{Evaluator, with, with_all};
use super::axes::{Axes, with_optional, with_toggles};

/// All runs that differ only by their micro-batch and their optimizer.
#[derive(Clone, Debug)]
pub struct Network {
    pub edits: Vec<Edit>,
    pub sizes: Rc<Vec<u64>>,
    /// The step time of no run of it is less.
    pub bound: f64,
    /// The peak with all samples at once, which orders networks by what they save of a sample.
    pub whole: u64,
}

/// Networks that have a layout, a precision and a loss in common.
#[derive(Debug)]
pub(super) struct Family {
    prefix: Vec<Edit>,
    sizes: Rc<Vec<u64>>,
    loss: Option<Edit>,
}

/// The families of a layout.
pub(super) fn families(evaluator: &mut Evaluator, axes: &Axes, layout: &[Edit]) -> Vec<Family> {
    let layout = with_all(&axes.always, layout);
    let sizes = Rc::new(evaluator.space.micro_batches(&layout));
    let family = |prefix: Vec<Edit>, loss| Family {
        prefix,
        sizes: sizes.clone(),
        loss,
    };
    let mut families = Vec::new();
    for precision in axes.precisions(evaluator) {
        let prefix = with_optional(&layout, precision);
        let compiled = evaluator.space.compiled().into_iter();
        families.extend(compiled.map(|edit| family(with(&prefix, edit), None)));
        let prefix = with_toggles(evaluator, &prefix);
        let losses = axes.losses.iter();
        families.extend(losses.map(|loss| family(prefix.clone(), *loss)));
    }
    families
}

/// The family's networks with their bounds.
pub(super) fn bounded(evaluator: &mut Evaluator, axes: &Axes, family: &Family) -> Vec<Network> {
    let prefix = with_optional(&family.prefix, family.loss);
    let pipelined = prefix
        .iter()
        .any(|edit| matches!(edit, Edit::Pipeline { .. }))
        || evaluator.space.run.parallel.pp > 1;
    // A pipeline is idle longer with few large micro-batches, so each size counts.
    let count = if pipelined { family.sizes.len() } else { 1 };
    let mut networks = Vec::new();
    for checkpointing in &axes.checkpointing {
        let edits = with_optional(&prefix, *checkpointing);
        let mut bound: Option<(f64, u64)> = None;
        for size in family.sizes.iter().take(count) {
            let whole = with(&edits, Edit::MicroBatch(*size));
            for optimizer in &axes.optimizers {
                let Some(quick) = evaluator.quick(&with_optional(&whole, *optimizer)) else {
                    continue;
                };
                let (least, peak) = bound.unwrap_or((f64::INFINITY, u64::MAX));
                let peak = peak.min(quick.peak.get());
                bound = Some((least.min(quick.seconds), peak));
            }
        }
        networks.extend(bound.map(|(bound, whole)| Network {
            edits,
            sizes: family.sizes.clone(),
            bound,
            whole,
        }));
    }
    networks
}
