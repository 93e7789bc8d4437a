//! What a run does between steps: an evaluation, and a checkpoint read back.

use std::rc::Rc;

use crate::nets::{Cx, Model, Net, Output};
use crate::scenario::{Checkpointing, Data};
use crate::tape::{Category, Param};

/// `model.eval()` and a forward pass under `torch.no_grad()`: no dropout, no checkpoints, and nothing kept for backward. The
/// loss is all that is looked at, as the trainers do unless they are given metrics of their own.
pub fn evaluate(net: &dyn Net, cx: &Cx, data: &Data, samples: u64) {
    let data = Data {
        micro_batch: samples,
        ..data.clone()
    };
    let cx = cx.part(cx.env.weights, |it| {
        it.checkpointing = Checkpointing::None;
        it.keep_outputs = false;
    });
    let tape = &cx.tape;
    tape.evaluate(true);
    let batch = net.batch(&cx, &data);
    for tensor in &batch {
        tensor.set_category(Category::Inputs);
    }
    let Output { loss, held } = tape.no_grad(|| cx.autocast(|| net.forward(&cx, &batch)));
    drop((loss, held));
    // What the model held as attributes of a graph that was never made.
    drop(tape.take_graph());
    tape.evaluate(false);
}

/// `torch.load(path)` puts what was saved from the device back on the device, and `load_state_dict` copies it into the model:
/// for a moment the weights are there twice. An optimizer takes loaded states as they are.
pub fn load(model: &Model, adapters: bool) {
    let tape = &model.tape;
    let mut loaded = Vec::new();
    // PEFT saves adapters without their base.
    let saved = |param: &&Rc<Param>| param.trainable || !adapters;
    tape.each(model.state().iter().filter(saved), |param| {
        let copy = tape.empty_as("torch.load", *param.data.layout(), param.data.dtype());
        copy.set_category(Category::Parameters);
        loaded.push(copy);
    });
}
