//! An evaluation between two steps.

use super::batch;
use crate::nets::{Cx, Net, Output};
use crate::tape::Category;
use headroom_scenario::{Checkpointing, Data};

/// `model.eval()` and a forward pass under `torch.no_grad()`: no dropout, no checkpoints, and nothing kept for backward. The
/// loss is all that is looked at, as the trainers do unless they are given metrics of their own.
pub(crate) fn evaluate(net: &dyn Net, cx: &Cx, data: &Data, samples: u64) {
    let data = Data {
        micro_batch: samples,
        ..data.clone()
    };
    let cx = cx.part(cx.env.weights, |training| {
        training.checkpointing = Checkpointing::None;
        training.keep_outputs = false;
    });
    let tape = &cx.tape;
    tape.evaluate(true);
    let batch = batch::loaded(net, &cx, &data);
    for tensor in &batch {
        tensor.set_category(Category::Inputs);
    }
    let Output { loss, held } = tape.no_grad(|| cx.call(net, &batch));
    drop((loss, held));
    // What the model held as attributes of a graph that was never made.
    drop(tape.take_graph());
    tape.evaluate(false);
}
