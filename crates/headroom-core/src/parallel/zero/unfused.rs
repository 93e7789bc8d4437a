//! DeepSpeed without ZeRO: all weights on every rank, and where they have 16 bits, copies in fp32 that the optimizer steps
//! (deepspeed/runtime/fp16/unfused_optimizer.py; `buffered_allreduce_fallback` of deepspeed/runtime/engine.py).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::parallel::{Properties, Wrapper};
use crate::tape::{Category, DType, Param, Tape, Tensor};

/// `FP16_UnfusedOptimizer`, or the optimizer itself over weights in fp32.
#[derive(Debug)]
pub(crate) struct UnfusedOptimizer {
    tape: Tape,
    /// The copies have a type of their own.
    copies: bool,
    weights: RefCell<Vec<Tensor>>,
    /// Each trained parameter with what is stepped for it.
    stepped: RefCell<Vec<(Rc<Param>, Rc<Param>)>>,
    /// The micro-batch under way is the last of its step.
    boundary: Cell<bool>,
}

impl UnfusedOptimizer {
    pub(crate) fn new(tape: &Tape, copies: bool) -> Self {
        Self {
            tape: tape.clone(),
            copies,
            weights: RefCell::default(),
            stepped: RefCell::default(),
            boundary: Cell::new(true),
        }
    }

    /// Gradients are joined into tensors of this many elements, and of one more parameter (`allreduce_no_retain`).
    fn all_reduce(&self) {
        const BUCKET: u64 = 500_000_000;
        let mut joined = 0_u64;
        let mut dtype = DType::F32;
        let flatten = |numel: u64, dtype| drop(self.tape.empty("flatten", [numel], dtype));
        for (param, _) in self.stepped.borrow().iter().rev() {
            dtype = param.data.dtype();
            joined = joined.saturating_add(param.data.numel());
            if joined > BUCKET {
                flatten(joined, dtype);
                joined = 0;
            }
        }
        if joined > 0 {
            flatten(joined, dtype);
        }
    }
}

impl Wrapper for UnfusedOptimizer {
    fn properties(&self) -> Properties {
        Properties {
            shards_params: self.copies,
            clips: self.copies,
            folds: false,
            ..Properties::default()
        }
    }

    fn wrap(&self, tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let is_trained = |param: &&Rc<Param>| param.trainable && !param.is_buffer();
        if !self.copies {
            let trained = state.iter().filter(is_trained);
            let pairs = trained.map(|param| (param.clone(), param.clone()));
            self.stepped.replace(pairs.collect());
            return state;
        }
        let whole = |param: &Rc<Param>| {
            let weight = tape.empty_as(param.name, *param.data.layout(), param.data.dtype());
            weight.set_category(Category::Parameters);
            weight
        };
        tape.setting_up(|| {
            let weights = state.iter().filter(|param| !param.is_buffer());
            self.weights.replace(weights.map(whole).collect());
            state
                .iter()
                .map(|param| {
                    if !is_trained(&param) {
                        return param.clone();
                    }
                    let layout = *param.data.layout();
                    let bytes = param.data.numel().saturating_mul(DType::F32.bytes());
                    let copy = tape.master("clone", layout, DType::F32, bytes, param.count);
                    let pair = (param.clone(), copy.clone());
                    self.stepped.borrow_mut().push(pair);
                    copy
                })
                .collect()
        })
    }

    fn before_pass(&self, last: bool) {
        self.boundary.set(last);
    }

    fn after_backward(&self) {
        if self.boundary.get() {
            self.all_reduce();
        }
    }

    /// The norm takes each gradient in fp32, then all are copied to that type.
    fn before_step(&self) {
        if !self.copies {
            return;
        }
        let wide = |param: &Param| {
            let layout = *param.data.layout();
            self.tape.empty_as("to", layout, DType::F32)
        };
        for (param, _) in self.stepped.borrow().iter() {
            drop(wide(param));
        }
        for (param, copy) in self.stepped.borrow().iter() {
            let gradient = wide(param);
            gradient.set_category(Category::Gradients);
            copy.grad.replace(Some(gradient));
        }
    }

    fn after_step(&self) {
        if !self.copies {
            return;
        }
        for (param, copy) in self.stepped.borrow().iter() {
            copy.grad.take();
            param.grad.take();
        }
    }
}
