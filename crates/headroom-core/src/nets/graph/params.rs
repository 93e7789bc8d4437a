//! A recorded model's parameters, buffers and linear modules, made as this run requires.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Mutex;

use super::super::Cx;
use super::plan::Linear;
use super::program::{Declared, Role};
use super::types::dims;
use crate::tape::{DType, Param, Tensor};

/// A tensor of the model.
#[derive(Clone)]
pub(super) enum Held {
    Param(Rc<Param>),
    Buffer(Tensor),
}

impl Held {
    pub(crate) fn tensor(&self) -> Tensor {
        match self {
            Self::Param(param) => param.tensor(),
            Self::Buffer(buffer) => buffer.clone(),
        }
    }

    pub(crate) fn is_trainable(&self) -> bool {
        matches!(self, Self::Param(param) if param.trainable)
    }
}

/// A parameter or a buffer, made at its first use.
pub(super) fn held(cx: &Cx, declared: &Declared) -> Held {
    declare(&cx.root(), &declared.modules, declared)
}

/// Runs a linear module, with the adapter and the quantised weight that the run requests.
pub(super) fn linear_module(cx: &Cx, declared: &Declared, linear: &Linear, x: &Tensor) -> Tensor {
    fn inside(cx: &Cx, modules: &[String], linear: &Linear, out: u64, x: &Tensor) -> Tensor {
        match modules {
            [] => x.clone(),
            [name] if linear.turned => cx.conv1d(known_name(name), x, out),
            [name] => cx.linear(known_name(name), x, out, linear.bias),
            [first, rest @ ..] => cx.module_named(first, |cx| inside(cx, rest, linear, out, x)),
        }
    }
    let out = declared.shape.get(usize::from(linear.turned));
    let out = out.copied().unwrap_or(1);
    inside(&cx.root(), &declared.modules, linear, out, x)
}

/// A module's name for as long as the program runs: adapters ask for modules by their names, of which there are few.
fn known_name(name: &str) -> &'static str {
    const MOST: usize = 1024;
    const LONGEST: usize = 64;
    static ALL: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let Ok(mut all) = ALL.lock() else {
        return "linear";
    };
    if let Some(found) = all.get(name) {
        return found;
    }
    if all.len() >= MOST || name.len() > LONGEST {
        return "linear";
    }
    let kept: &'static str = Box::leak(name.into());
    all.insert(kept);
    kept
}

/// Makes a parameter or a buffer in its module.
fn declare(cx: &Cx, modules: &[String], declared: &Declared) -> Held {
    if let Some((first, rest)) = modules.split_first() {
        return cx.module_named(first, |cx| declare(cx, rest, declared));
    }
    let Some(name) = KNOWN.iter().find(|known| **known == declared.name) else {
        return cx.module_named(&declared.name, |cx| made(cx, "data", declared));
    };
    made(cx, name, declared)
}

/// Names of parameters that appear in paths unchanged; others are shown as modules with one parameter.
const KNOWN: &[&str] = &[
    "weight",
    "bias",
    "in_proj_weight",
    "in_proj_bias",
    "running_mean",
    "running_var",
    "num_batches_tracked",
    "gamma",
    "inv_freq",
    "position_ids",
    "weight_ih",
    "weight_hh",
    "bias_ih",
    "bias_hh",
];

fn made(cx: &Cx, name: &'static str, declared: &Declared) -> Held {
    let shape = dims(&declared.shape);
    let dtype = weight_type(cx, declared);
    match declared.role {
        Role::Buffer => Held::Buffer(cx.buffer(name, shape, dtype)),
        Role::Frozen => Held::Param(cx.frozen().param_of(name, shape, dtype)),
        Role::Trained => Held::Param(cx.param_of(name, shape, dtype)),
    }
}

/// The type that a recorded floating parameter has in this run.
fn weight_type(cx: &Cx, declared: &Declared) -> DType {
    let lowers = matches!(cx.env.weights, DType::BF16 | DType::F16);
    match declared.dtype {
        dtype if dtype.is_floating() && lowers => cx.env.weights,
        DType::F32 if declared.role != Role::Buffer => cx.env.weights,
        dtype => dtype,
    }
}
