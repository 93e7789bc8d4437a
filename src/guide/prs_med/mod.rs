//! PRS-Med: the guide of a re-implementation, with four configurations and a quick start by the card's size.

mod claims;
mod knobs;

use super::lab::{Changes, decimal, difference};
use super::{Guide, Lab};
use crate::estimate::Unsupported;
use crate::units::Bytes;

pub(super) const GUIDE: Guide = Guide {
    preset: "prs-med",
    document: "MEMORY_OPTIMIZATION.md of seanhuvaya/prs_med_mmrs at a75d09a",
    claims: claims::CLAIMS,
    knobs: knobs::KNOBS,
};

const NO_AMP: (&str, &str) = ("precision", "fp32");
const LAYERS: (&str, &str) = ("ckpt", "layers");
const ENCODER: (&str, &str) = ("dims", "checkpoint_encoder=1");
const FOUR_BITS: (&str, &str) = ("quant", "nf4-double");
/// "Configuration 1", with checkpointing that works.
const LEAST: Changes<'static> = &[("mb", "2"), ("accum", "4"), LAYERS, ENCODER];
/// The same with one sample: the most the guide can do.
const ONE: Changes<'static> = &[("mb", "1"), ("accum", "8"), LAYERS, ENCODER];

/// A peak in decimal units, as the guide counts.
fn gb(lab: &Lab, changes: Changes) -> Result<String, Unsupported> {
    Ok(decimal(lab.peak(changes)?))
}

/// "95.4 GB → 75.6 GB (−21 %)".
fn change(lab: &Lab, before: Changes, after: Changes) -> Result<String, Unsupported> {
    let (before, after) = (lab.peak(before)?, lab.peak(after)?);
    Ok(format!(
        "{} → {} ({})",
        decimal(before),
        decimal(after),
        difference(before, after)
    ))
}

/// How a variant stands on a card.
fn on(lab: &Lab, gpu: &str, changes: Changes) -> Result<String, Unsupported> {
    let all = [changes, &[("gpu", gpu)]].concat();
    lab.needs(&all)
}

/// A fixed tensor of the batch, in decimal units.
fn tensor(lab: &Lab, floats: u64) -> Result<String, Unsupported> {
    let batch = lab.scenario(&[])?.data.micro_batch;
    Ok(decimal(Bytes::new(4) * (floats * batch)))
}

/// What trained weights, their gradients and the optimizer's states come to.
fn trained(lab: &Lab, floats: u64) -> Result<String, Unsupported> {
    Ok(decimal(
        Bytes::new(4 * floats) * lab.estimate(&[])?.trainable,
    ))
}
