//! Optimizers: the states each keeps, and the temporaries of its step.
//!
//! `table.rs` has a row for each; one file a family has its functions, after the library's own loop.

mod adafactor;
mod adam;
mod adam_mini;
mod bitsandbytes;
mod came;
mod galore;
mod grokadamw;
mod lion;
mod lists;
mod lomo;
mod muon;
mod rule;
mod soap;
mod stable_adamw;
mod table;
mod torchao;

use std::rc::Rc;

use crate::tape::{DType, Param, Tape, Tensor};
use headroom_scenario::Optimizer;
use rule::{Launches, ParamFilter, Rule, StateInit, Step, as_states};
use table::rule;
pub(crate) use torchao::KEPT_ON_DEVICE;

/// An optimizer and the states it has made.
pub(crate) struct OptimizerState {
    rule: Rule,
    /// The states count as made before the first step.
    warm: bool,
    states: Option<States>,
}

struct States {
    /// Kept once for all parameters: alive as long as these are.
    _shared: Vec<Tensor>,
    each: Vec<Vec<Tensor>>,
    bytes: u64,
}

impl OptimizerState {
    pub(crate) fn new(kind: Optimizer, warm: bool) -> Self {
        Self {
            rule: rule(kind),
            warm,
            states: None,
        }
    }

    /// Whether a script gives it the parameter.
    pub(crate) fn steps(&self, param: &Param) -> bool {
        match self.rule.params {
            ParamFilter::All => true,
            ParamFilter::Matrices => param.data.shape().len() == 2,
        }
    }

    /// Bytes of all states that it has made.
    pub(crate) fn bytes(&self) -> u64 {
        self.states.as_ref().map_or(0, |states| states.bytes)
    }

    /// `optimizer.step()` over the parameters that have a gradient.
    pub(crate) fn step(&mut self, tape: &Tape, params: &[Rc<Param>]) {
        let has_gradient = |param: &&Rc<Param>| param.grad.borrow().is_some();
        let params: Vec<Rc<Param>> = params
            .iter()
            .filter(|param| self.steps(param))
            .filter(has_gradient)
            .cloned()
            .collect();
        let (rule, warm) = (self.rule, self.warm);
        let first = self.states.is_none() && !warm;
        let states = self.states.get_or_insert_with(|| {
            if warm || rule.state_init == StateInit::AtConstruction {
                tape.setting_up(|| States::made(&rule, tape, &params))
            } else if rule.state_init == StateInit::InFirstStep {
                States::made(&rule, tape, &params)
            } else {
                States::none()
            }
        });
        (rule.step)(&mut Step {
            tape,
            params: &params,
            states: &mut states.each,
            first,
        });
        launch(&rule, tape, &params);
    }
}

impl States {
    const fn none() -> Self {
        Self {
            _shared: Vec::new(),
            each: Vec::new(),
            bytes: 0,
        }
    }

    fn made(rule: &Rule, tape: &Tape, params: &[Rc<Param>]) -> Self {
        let shared = (rule.shared)(tape);
        let mut each = Vec::with_capacity(params.len());
        let mut bytes = 0_u64;
        tape.each(params, |param| {
            let states = as_states((rule.states)(tape, param));
            let own = states
                .iter()
                .map(Tensor::bytes)
                .fold(0, u64::saturating_add);
            bytes = bytes.saturating_add(own.saturating_mul(param.copies()));
            each.push(states);
        });
        Self {
            _shared: shared,
            each,
            bytes,
        }
    }
}

/// The kernels of a step, for the time they take.
fn launch(rule: &Rule, tape: &Tape, params: &[Rc<Param>]) {
    /// Tensors that `multi_tensor_apply` takes in one launch (`depth_to_max_tensors` of MultiTensorApply.cuh, four lists).
    const TENSORS_IN_A_LIST: u64 = 36;
    let (mut bytes, mut elements, mut tensors) = (0.0, 0.0, 0);
    for param in params {
        let copies = param.copies();
        bytes += param.data.bytes() as f64 * copies as f64;
        elements += param.data.numel() as f64 * copies as f64;
        tensors += copies;
    }
    let work = rule.work;
    let launches = match work.launches {
        Launches::Each(functions) => tensors.saturating_mul(functions),
        Launches::Lists(functions) => tensors
            .div_ceil(TENSORS_IN_A_LIST)
            .saturating_mul(functions),
    };
    tape.launches(
        if work.on_host {
            "host_step"
        } else {
            "optimizer"
        },
        DType::F32,
        [0.0, work.touches * bytes + work.bytes * elements],
        u32::try_from(launches).unwrap_or(u32::MAX),
    );
}

/// Bytes that an optimizer keeps in the host's memory: paged states, or those of an optimizer that steps there.
pub(crate) fn on_host(kind: Optimizer, params: &[Rc<Param>]) -> u64 {
    let host = rule(kind).host;
    let each = |param: &Rc<Param>| host(param).saturating_mul(param.copies());
    params.iter().map(each).fold(0, u64::saturating_add)
}

/// Whether an optimizer does the same to equal layers, so that they may be run once for all.
pub(crate) fn folds(kind: Optimizer) -> bool {
    rule(kind).folds
}

/// Whether its step is one operation that takes gradients, weights and states alike (`torch._fused_adamw_`).
pub(crate) fn is_one_kernel(kind: Optimizer) -> bool {
    matches!(kind, Optimizer::AdamWFused)
}

/// Whether it leaves gradients of parameters that it does not take from step to step.
pub(crate) fn leaves_gradients(kind: Optimizer) -> bool {
    rule(kind).params != ParamFilter::All
}
