//! Adam and AdamW (torch/optim/adam.py), and ADOPT.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::lists::{like, list};
use crate::tape::{AdamStep, DType, Param, Tape, Tensor};

/// The step that PyTorch chooses by itself.
pub(crate) fn by_default(tape: &Tape, params: &[Rc<Param>]) {
    match tape.machine().torch.adam {
        AdamStep::OneList => foreach(tape, params),
        AdamStep::TwoLists => two_lists(tape, params),
        AdamStep::Loop => for_loop(tape, params),
    }
}

/// The states of the fused kernel, which reads its step count on the device.
pub(crate) fn fused_states(tape: &Tape, param: &Param) -> Vec<Tensor> {
    let step = tape.empty("step", [0; 0], DType::F32);
    vec![step, like(param), like(param)]
}

/// `_multi_tensor_adam`: `exp_avg_sq_sqrt` of all parameters of one type exists at once.
pub(crate) fn foreach(tape: &Tape, params: &[Rc<Param>]) {
    let mut groups: BTreeMap<DType, Vec<Rc<Param>>> = BTreeMap::new();
    for param in params {
        groups
            .entry(param.data.dtype())
            .or_default()
            .push(param.clone());
    }
    let mut roots: Vec<Tensor> = Vec::new();
    for group in groups.values() {
        // The name is bound again only once the next group's list exists.
        let next = list(tape, "_foreach_sqrt", group);
        drop(std::mem::replace(&mut roots, next));
    }
}

/// The same in torch 2.0: `denom` and the roots exist at the same time.
pub(crate) fn two_lists(tape: &Tape, params: &[Rc<Param>]) {
    let roots = list(tape, "_foreach_sqrt", params);
    drop((list(tape, "_foreach_add", params), roots));
}

/// `_single_tensor_adam`: `denom` is a root and its quotient, and lives until the next parameter's takes its name.
pub(crate) fn for_loop(tape: &Tape, params: &[Rc<Param>]) {
    let mut denominator: Option<Tensor> = None;
    tape.each(params, |param| {
        let root = like(param);
        let quotient = like(param);
        drop(root);
        drop(denominator.replace(quotient));
    });
}

/// `_step_foreach` of pytorch_optimizer/optimizer/adopt.py: roots and normed gradients.
pub(crate) fn adopt(tape: &Tape, params: &[Rc<Param>]) {
    let roots = list(tape, "_foreach_sqrt", params);
    drop((list(tape, "_foreach_div", params), roots));
}

/// Moments in fp32 (`momentum_dtype` and `variance_dtype`, which transformers leaves at float32).
pub(crate) fn fp32_states(_: &Tape, param: &Param) -> Vec<Tensor> {
    let state = || param.data.empty_like("zeros_like", DType::F32);
    vec![state(), state()]
}

/// `AnyPrecisionAdamW.step`: `centered_variance` is a root and its quotient, and lives until the next parameter's takes its name.
pub(crate) fn any_precision(tape: &Tape, params: &[Rc<Param>]) {
    let mut centred: Option<Tensor> = None;
    tape.each(params, |param| {
        let root = param.data.empty_like("sqrt", DType::F32);
        let quotient = param.data.empty_like("div", DType::F32);
        drop(root);
        drop(centred.replace(quotient));
    });
}
