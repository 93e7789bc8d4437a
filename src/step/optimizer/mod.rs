//! Optimizers: what each keeps from step to step, and what its step takes besides.
//!
//! One file a family, after the library's own loop: temporaries live as long as the Python names that hold them.

mod adafactor;
mod adam;
mod further;
mod lists;
mod muon;
mod quantised;
mod work;

use std::rc::Rc;

use crate::scenario::Optimizer;
use crate::tape::{AdamStep, Category, DType, Layout, Param, Tape, Tensor};
use lists::{chunked_list, list, same};

/// The states of an optimizer, made in its first step (or, for Adagrad, before it).
pub struct OptimizerState {
    kind: Optimizer,
    /// The states count as made before the first step.
    warm: bool,
    states: Option<Vec<Vec<Tensor>>>,
}

impl OptimizerState {
    pub fn new(kind: Optimizer, warm: bool) -> Self {
        Self {
            kind,
            warm,
            states: None,
        }
    }

    /// `optimizer.step()` over the parameters that have a gradient.
    pub fn step(&mut self, tape: &Tape, params: &[Rc<Param>]) {
        let kind = self.kind;
        let params: Vec<Rc<Param>> = params
            .iter()
            .filter(|param| takes(kind, param))
            .cloned()
            .collect();
        let first = self.states.is_none();
        if kind == Optimizer::AdafactorHf {
            let warm = self.warm;
            let states = self.states.get_or_insert_with(|| {
                if warm {
                    adafactor::warm_states(tape, &params)
                } else {
                    Vec::new()
                }
            });
            adafactor::transformers(tape, &params, states, first && !warm);
            work::of_step(kind, tape, &params);
            return;
        }
        if first {
            let make = || {
                let mut all = Vec::with_capacity(params.len() + 1);
                all.push(quantised::tables(kind, tape));
                tape.each(&params, |param| all.push(fresh(kind, tape, param)));
                all
            };
            // `Adagrad.__init__` makes its sums.
            self.states = Some(if self.warm || kind == Optimizer::Adagrad {
                tape.setting_up(make)
            } else {
                make()
            });
        }
        match kind {
            Optimizer::AdamW => match tape.machine().torch.adam {
                AdamStep::OneList => adam::foreach(tape, &params),
                AdamStep::TwoLists => adam::two_lists(tape, &params),
                AdamStep::Loop => adam::for_loop(tape, &params),
            },
            Optimizer::AdamWTwoLists => adam::two_lists(tape, &params),
            Optimizer::AdamWLoop => adam::for_loop(tape, &params),
            Optimizer::AdamWFused
            | Optimizer::Sgd
            | Optimizer::SgdMomentum
            | Optimizer::AdafactorHf
            | Optimizer::AdamW8bit
            | Optimizer::PagedAdamW
            | Optimizer::PagedAdamW8bit
            | Optimizer::AdamWOffload
            | Optimizer::AdamWOffloadGradients => {}
            Optimizer::AdamW8bitAo | Optimizer::AdamW4bitAo | Optimizer::AdamWFp8Ao => {
                quantised::torchao_step(kind, tape, &params);
            }
            Optimizer::LionLoop => further::lion(tape, &params),
            Optimizer::AdamMini => further::adam_mini(tape, &params),
            Optimizer::ScheduleFree => further::schedule_free(tape, &params),
            Optimizer::Adopt => further::adopt(tape, &params, first && !self.warm),
            Optimizer::Came => further::came(tape, &params),
            Optimizer::GaLore => further::galore(tape, &params),
            Optimizer::MuonAdamW => {
                let (matrices, rest): (Vec<_>, Vec<_>) = params
                    .iter()
                    .cloned()
                    .partition(|param| orthogonal(tape, param));
                muon::single(tape, &matrices);
                adam::foreach(tape, &rest);
            }
            // `_multi_tensor_adagrad`: `std` and `numerator`.
            Optimizer::Adagrad => drop((
                list(tape, "_foreach_sqrt", &params),
                list(tape, "_foreach_mul", &params),
            )),
            // `_multi_tensor_rmsprop`: `avg`.
            Optimizer::RmsProp => drop(list(tape, "_foreach_sqrt", &params)),
            // timm's `_multi_tensor_lion`, which is its default on CUDA too: `updates`.
            Optimizer::Lion | Optimizer::LionForeach => {
                chunked_list(tape, "_foreach_lerp", &params);
            }
            Optimizer::Adafactor => {
                // The first list is that of tables.
                let states = self.states.as_deref().and_then(|all| all.get(1..));
                adafactor::torch(tape, &params, states);
            }
            Optimizer::Muon => muon::single(tape, &params),
        }
        work::of_step(kind, tape, &params);
    }
}

/// What an optimizer keeps in the host's memory: paged states, or those of an optimizer that steps there.
pub fn on_host(kind: Optimizer, params: &[Rc<Param>]) -> u64 {
    let each = |param: &Rc<Param>| {
        let one = quantised::on_host(kind, param.data.numel(), param.data.bytes());
        one.saturating_mul(param.copies())
    };
    let trained = params.iter().filter(|param| param.trainable);
    trained.map(each).fold(0, u64::saturating_add)
}

fn takes(kind: Optimizer, param: &Param) -> bool {
    param.grad.borrow().is_some() && is_given(kind, param)
}

/// Whether a script gives it the parameter: Muon takes matrices only, and `optimizer.zero_grad()` leaves the gradients
/// of others where they are.
pub fn is_given(kind: Optimizer, param: &Param) -> bool {
    kind != Optimizer::Muon || param.data.shape().len() == 2
}

/// Whether the mixed recipe gives it to Muon: a matrix of a layer.
fn orthogonal(tape: &Tape, param: &Param) -> bool {
    let path = tape.path(param.scope);
    param.data.shape().len() == 2 && !path.contains("embed") && !path.contains("lm_head")
}

/// The states of one parameter, in the order its `_init_group` makes them.
fn fresh(kind: Optimizer, tape: &Tape, param: &Param) -> Vec<Tensor> {
    let states = match kind {
        Optimizer::MuonAdamW if orthogonal(tape, param) => vec![same(param)],
        Optimizer::AdamW
        | Optimizer::AdamWTwoLists
        | Optimizer::AdamWLoop
        | Optimizer::ScheduleFree
        | Optimizer::Adopt
        | Optimizer::MuonAdamW => vec![same(param), same(param)],
        // The fused kernel reads its step count on the device.
        Optimizer::AdamWFused => vec![
            tape.empty("step", [0; 0], DType::F32),
            same(param),
            same(param),
        ],
        Optimizer::SgdMomentum
        | Optimizer::Lion
        | Optimizer::LionForeach
        | Optimizer::Adagrad
        | Optimizer::RmsProp
        | Optimizer::Muon
        | Optimizer::LionLoop => {
            vec![same(param)]
        }
        Optimizer::AdamW8bit | Optimizer::PagedAdamW | Optimizer::PagedAdamW8bit => {
            quantised::bitsandbytes(kind, tape, param)
        }
        Optimizer::AdamW8bitAo | Optimizer::AdamW4bitAo | Optimizer::AdamWFp8Ao => {
            quantised::torchao(kind, tape, param)
        }
        // torchao's `CPUOffloadOptimizer` keeps tensors of fewer than 4096 elements on the device.
        Optimizer::AdamWOffload | Optimizer::AdamWOffloadGradients => {
            if param.data.numel() < 4096 {
                vec![same(param), same(param)]
            } else {
                Vec::new()
            }
        }
        Optimizer::AdamMini => further::adam_mini_states(tape, param),
        Optimizer::Came => further::came_states(tape, param),
        Optimizer::GaLore => further::galore_states(tape, param),
        Optimizer::Adafactor => adafactor::factors(tape, param),
        Optimizer::Sgd | Optimizer::AdafactorHf => Vec::new(),
    };
    for state in &states {
        state.set_category(Category::OptimizerStates);
    }
    states
}

/// A scalar on the device.
fn scalar(tape: &Tape) -> Tensor {
    tape.empty("scalar", [0; 0], DType::F32)
}

/// The layout of a factor: the last dimension, or the one before it, reduced to one.
fn reduced(param: &Param, from_end: usize) -> Layout {
    let shape = *param.data.shape();
    Layout::contiguous(shape.with(shape.len().saturating_sub(from_end), 1))
}
