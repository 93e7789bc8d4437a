//! What a run does between steps: an evaluation, and a checkpoint read back.

use crate::nets::{Cx, Net, Output};
use crate::scenario::{Checkpointing, Data};
use crate::tape::{Category, DType, Tape};

/// `model.eval()` and a forward pass under `torch.no_grad()`: no dropout, no checkpoints, and nothing kept for backward. The
/// loss is all that is looked at, as the trainers do unless they are given metrics of their own.
pub fn evaluate(net: &dyn Net, cx: &Cx, data: &Data, samples: u64, autocast: Option<DType>) {
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
    let Output { loss, held } =
        tape.no_grad(|| tape.autocast(autocast, || net.forward(&cx, &batch)));
    drop((loss, held));
    // What the model held as attributes of a graph that was never made.
    drop(tape.take_graph());
    tape.evaluate(false);
}

/// `torch.load(path)` puts what was saved from the device back on the device, and `load_state_dict` copies it into the model:
/// for a moment the weights are there twice. An optimizer takes loaded states as they are.
pub fn load(tape: &Tape, adapters: bool) {
    let mut loaded = Vec::new();
    let mut params = tape.params();
    // PEFT saves adapters without their base.
    params.retain(|param| param.trainable || !adapters);
    tape.each(&params, |param| {
        let copy = tape.empty_as("torch.load", *param.data.layout(), param.data.dtype());
        copy.set_category(Category::Parameters);
        loaded.push(copy);
    });
}
