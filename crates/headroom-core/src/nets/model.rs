//! The constructed model: what optimizers, wrappers, checks and counts ask of it.

use std::rc::Rc;

use super::{Cx, Net};
use crate::tape::{Param, Tape};
use headroom_scenario::Data;

/// A model that is constructed and has not run yet: its parameters and buffers, as large as they are on this GPU and in the
/// order of its constructors.
#[derive(Debug)]
pub struct Model {
    pub tape: Tape,
    state: Vec<Rc<Param>>,
}

/// Constructs the model: traces its forward function once on the tape in the declaration
/// pass, so that the first real forward finds every parameter made. Only the shapes of `data` matter.
pub fn construct(net: &dyn Net, cx: &Cx, data: &Data) -> Model {
    let tape = cx.tape.clone();
    let wrapper = &cx.env.wrapper;
    let declare = || {
        tape.declare(|| {
            let batch = net.batch(cx, data);
            let stages = &cx.env.groups.stages.own;
            if stages.is_empty() {
                drop(cx.call(net, &batch));
            }
            for &stage in stages {
                drop(cx.stage(stage, |cx| cx.call(net, &batch)));
                drop(cx.env.groups.stages.sent.take());
            }
        })
    };
    let state = if wrapper.properties().shards_params {
        tape.on_meta(declare)
    } else {
        declare()
    };
    tape.finish_construction(&state, cx.env.training.channels_last);
    let state = wrapper.wrap(&tape, state);
    Model { tape, state }
}

impl Model {
    /// Parameters and buffers, as in `state_dict()`.
    pub fn state(&self) -> &[Rc<Param>] {
        &self.state
    }

    /// `parameters()`.
    pub fn parameters(&self) -> impl Iterator<Item = &Rc<Param>> {
        self.state.iter().filter(|param| !param.is_buffer())
    }

    /// The parameters that require a gradient.
    pub fn trainable(&self) -> impl Iterator<Item = &Rc<Param>> {
        self.state.iter().filter(|param| param.trainable)
    }

    /// The path of a parameter, such as `transformer.h.0.attn.weight`.
    pub fn path(&self, param: &Param) -> String {
        format!("{}.{}", self.tape.path(param.scope), param.name)
    }
}

/// How many numbers these parameters hold, with those of equal layers.
pub fn count<'a>(params: impl Iterator<Item = &'a Rc<Param>>) -> u64 {
    params.map(|param| param.count).fold(0, u64::saturating_add)
}

/// The bytes of these parameters, with those of equal layers.
pub(crate) fn bytes<'a>(params: impl Iterator<Item = &'a Rc<Param>>) -> u64 {
    params
        .map(|param| param.data.bytes().saturating_mul(param.copies()))
        .fold(0, u64::saturating_add)
}
