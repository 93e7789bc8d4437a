//! What sets one optimizer apart from another: the columns of the table of optimizers.

use std::rc::Rc;

use super::lists::like;
use crate::tape::{Category, Param, Tape, Tensor};

/// One optimizer: what it keeps, what a step of it makes and moves, and where.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub params: ParamFilter,
    pub state_init: StateInit,
    /// What it keeps once for all parameters.
    pub shared: fn(&Tape) -> Vec<Tensor>,
    /// What it keeps for a parameter, in the order in which the library makes it.
    pub states: fn(&Tape, &Param) -> Vec<Tensor>,
    /// Temporaries of a step; each lives as long as the Python name that holds it.
    pub step: fn(&mut Step),
    pub work: Work,
    /// Bytes that it keeps of a parameter in the host's memory.
    pub host: fn(&Param) -> u64,
    /// Whether equal layers may be run once for all: not where what is done to a parameter depends on its place.
    pub folds: bool,
}

/// Which parameters a script gives it. `optimizer.zero_grad()` leaves the gradients of others where they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamFilter {
    All,
    /// Those of two dimensions.
    Matrices,
}

/// When the states are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateInit {
    /// `__init__` makes them, before the first step.
    AtConstruction,
    /// The first step makes all of them before it does anything else.
    InFirstStep,
    /// The first step makes each parameter's as its loop reaches it.
    InLoop,
}

/// A step under way.
pub(crate) struct Step<'a> {
    pub tape: &'a Tape,
    /// The parameters that have a gradient.
    pub params: &'a [Rc<Param>],
    /// Each parameter's states.
    pub states: &'a mut Vec<Vec<Tensor>>,
    /// No step was before it.
    pub first: bool,
}

/// The work of a step, for the time it takes.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// Reads and writes of memory, in units of the parameter's size.
    pub touches: f64,
    /// Additional bytes read and written per element.
    pub bytes: f64,
    pub launches: Launches,
    /// Over the link to the host instead of the GPU's own memory.
    pub on_host: bool,
}

/// How many kernels a step launches.
#[derive(Clone, Copy)]
pub(crate) enum Launches {
    /// For each parameter.
    Each(u64),
    /// For each list of parameters that one kernel takes.
    Lists(u64),
}

impl Work {
    /// Functions over lists of tensors (`torch._foreach_*`, fused kernels).
    pub(crate) const fn lists(touches: f64, functions: u64) -> Self {
        Self {
            touches,
            bytes: 0.0,
            launches: Launches::Lists(functions),
            on_host: false,
        }
    }

    /// Functions of each tensor by itself.
    pub(crate) const fn each(touches: f64, functions: u64) -> Self {
        Self {
            launches: Launches::Each(functions),
            ..Self::lists(touches, 0)
        }
    }

    /// The same with additional bytes per element, as for states that are not like the parameter.
    pub(crate) const fn with_bytes(self, bytes: f64) -> Self {
        Self { bytes, ..self }
    }

    /// The same over the link to the host.
    pub(crate) const fn on_host(self) -> Self {
        Self {
            on_host: true,
            ..self
        }
    }
}

impl Rule {
    /// An optimizer that keeps nothing and allocates nothing.
    pub(crate) const fn stateless(work: Work) -> Self {
        Self {
            params: ParamFilter::All,
            state_init: StateInit::InFirstStep,
            shared: |_| Vec::new(),
            states: |_, _| Vec::new(),
            step: |_| (),
            work,
            host: |_| 0,
            folds: true,
        }
    }

    /// One state like the parameter.
    pub(crate) const fn one_state(work: Work) -> Self {
        Self {
            states: |_, param| vec![like(param)],
            ..Self::stateless(work)
        }
    }

    /// Two states like the parameter.
    pub(crate) const fn two_states(work: Work) -> Self {
        Self {
            states: |_, param| vec![like(param), like(param)],
            ..Self::stateless(work)
        }
    }
}

/// States, marked as such.
pub(crate) fn as_states(states: Vec<Tensor>) -> Vec<Tensor> {
    for state in &states {
        state.set_category(Category::OptimizerStates);
    }
    states
}
