//! A checkpoint that is read back, as when a run is resumed.

use std::rc::Rc;

use crate::nets::Model;
use crate::tape::{Category, Param};

/// `torch.load(path)` puts what was saved from the device back on the device, and `load_state_dict` copies it into the model:
/// for a moment the weights exist twice. An optimizer uses loaded states directly.
pub(crate) fn load(model: &Model, adapters: bool) {
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
