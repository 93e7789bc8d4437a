//! An evaluation between two steps.

use super::{Evaluated, RunPlan, batch};
use crate::nets::{Cx, Net, Output};
use crate::tape::{Category, Phase};
use headroom_scenario::{Checkpointing, Data};

/// `model.eval()` and a forward pass under `torch.no_grad()`: no dropout, no checkpoints, and nothing kept for backward. The
/// loss is all that is looked at, as the trainers do unless they are given metrics of their own. Where the plan keeps more, a
/// second mark of the phase says where the pass ends, and what it kept is freed after it.
pub(crate) fn evaluate(net: &dyn Net, cx: &Cx, data: &Data, plan: &RunPlan, step: u32) {
    let keeps = plan.evaluated;
    let data = Data {
        micro_batch: plan.evaluation,
        ..data.clone()
    };
    let cx = cx.part(cx.env.weights, |training| {
        training.checkpointing = Checkpointing::None;
        training.keep_outputs = keeps != Evaluated::Loss;
    });
    let tape = &cx.tape;
    tape.evaluate(true);
    let batch = batch::loaded(net, &cx, &data);
    for tensor in &batch {
        tensor.set_category(Category::Inputs);
    }
    let forward = || cx.call(net, &batch);
    let Output { loss, held } = match keeps {
        Evaluated::Graphs => forward(),
        Evaluated::Loss | Evaluated::Outputs => tape.no_grad(forward),
    };
    drop(loss);
    let batch = match keeps {
        Evaluated::Loss => batch,
        Evaluated::Outputs | Evaluated::Graphs => {
            drop((batch, cx.env.shared.loop_variables.take()));
            tape.mark(step, Phase::Evaluation);
            Vec::new()
        }
    };
    drop(held);
    // What the model held as attributes of a graph that was never made.
    drop(tape.take_graph());
    drop(batch);
    tape.evaluate(false);
}
