//! One step of a recorded loop: its network, with a batch of one size.

use serde_json::Value;

use super::size;
use crate::knobs::{Dims, Knobs};
use crate::simulated;
use headroom_core::estimate::STEPS;
use headroom_core::network::Folding;
use headroom_core::training::{self as step, Evaluated, RunPlan};

/// The network's sizes for batches of this size: edges of a graph, with nodes in proportion; pixels of an image's side, whose
/// network has attention at the lowest resolution.
fn sized(knobs: &Knobs, dims: &Dims, size: u64) -> Dims {
    let mut dims = dims.clone();
    let stages = dims.get("block_out").and_then(Value::as_array);
    let stages = stages.map_or(0, Vec::len);
    let only = |at: usize| (0..stages).map(|i| u64::from(i == at)).collect::<Value>();
    let added: Vec<(&str, Value)> = match knobs.kind.as_deref() {
        Some("gnn") => {
            let share = dims.remove("nodes_per_edge").and_then(|n| n.as_f64());
            let nodes = size as f64 * share.unwrap_or(0.0);
            vec![
                ("family", "sage".into()),
                ("edges", size.into()),
                ("nodes", (nodes as u64).into()),
            ]
        }
        Some("unet") => vec![
            ("family", "unet2d".into()),
            ("img", size.into()),
            ("channels", 4.into()),
            ("head_dim", 8.into()),
            ("down_attention", only(stages.saturating_sub(1))),
            ("up_attention", only(0)),
        ],
        // Networks that take images of any size.
        _ if dims.get("family").and_then(Value::as_str) == Some("tv") => {
            vec![("img", size.into())]
        }
        _ => Vec::new(),
    };
    dims.extend(added.into_iter().map(|(name, value)| (name.into(), value)));
    dims
}

/// Runs a few steps with batches of this size.
pub fn run(knobs: &Knobs, dims: &Dims, size: u64) -> Result<step::Run, String> {
    run_with(knobs, dims, size, RunPlan::first_steps(STEPS))
}

/// A step, and the evaluation of a batch of this size after it.
pub(super) fn evaluated(
    knobs: &Knobs,
    dims: &Dims,
    size: u64,
    evaluated: Evaluated,
) -> Result<step::Run, String> {
    let plan = RunPlan {
        evaluation: batch(knobs, size),
        evaluated,
        // A graph is freed as a whole, not layer by layer.
        folding: Folding::Nothing,
        ..RunPlan::first_steps(1)
    };
    run_with(knobs, dims, size, plan)
}

/// Vision transformers have one size of images, and the batch varies.
fn batch(knobs: &Knobs, size: u64) -> u64 {
    let batch = knobs.mb.unwrap_or(1);
    match knobs.kind.as_deref() {
        Some(kind) if kind.starts_with("vit") => batch.saturating_mul(size),
        _ => batch,
    }
}

fn run_with(knobs: &Knobs, dims: &Dims, size: u64, plan: RunPlan) -> Result<step::Run, String> {
    let (size, width) = size::sides(size);
    let dims = sized(knobs, dims, size);
    let mut knobs = Knobs {
        seq: Some(size),
        mb: Some(batch(knobs, size)),
        ..knobs.clone()
    };
    if dims.get("family").and_then(Value::as_str) == Some("tv") {
        knobs.model = knobs.kind.clone().unwrap_or_default();
    }
    let (mut data, training) = simulated::settings(&knobs, &dims)?;
    if let Some(width) = width {
        (data.height, data.width) = (size, width);
    }
    simulated::run_with(&knobs, &dims, &data, &training, plan)
}
