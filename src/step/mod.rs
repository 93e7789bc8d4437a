//! The training step: what a training loop does around a network's forward function.

mod optimizer;

use std::rc::Rc;

use crate::estimate::{Category, Phase};
use crate::nets::{Cx, Env, Net};
use crate::scenario::{Data, Precision, Training};
use crate::tape::{DType, Machine, Param, Tape, Trace};
use optimizer::OptimizerState;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run {
    pub trace: Trace,
    pub parameters: u64,
    pub trainable: u64,
    /// Where each step's event range ends forward of its last micro-batch.
    pub forward_ends: Vec<usize>,
}

/// Runs `steps` training steps of `net`.
pub fn run(net: &dyn Net, data: &Data, training: &Training, machine: Machine, steps: u32) -> Run {
    let (weights, autocast) = types(training.precision);
    let tape = Tape::new(machine);
    let cx = Cx::new(tape.clone(), Rc::new(Env::new(training.clone(), weights)));
    let mut state: Option<OptimizerState> = None;
    let mut forward_ends = Vec::new();
    for step in 0..steps {
        tape.mark(step, Phase::Setup);
        let accumulation = training.accumulation.max(1);
        let micro: Vec<_> = (0..accumulation).map(|_| net.batch(&cx, data)).collect();
        let mut kept_output = None;
        for batch in &micro {
            tape.mark(step, Phase::Forward);
            let output = tape.autocast(autocast, || net.forward(&cx, batch));
            let crate::nets::Output { loss, held } = output;
            // A script that keeps `outputs` frees the one before only when the name is bound again.
            kept_output = training.keep_outputs.then_some(held);
            let loss = if accumulation > 1 { loss.scale() } else { loss };
            let loss = if training.precision == Precision::AmpFp16 {
                loss.scale()
            } else {
                loss
            };
            forward_ends.push(tape.position());
            tape.mark(step, Phase::Backward);
            loss.backward();
        }
        tape.mark(step, Phase::Optimizer);
        let trainable: Vec<Rc<Param>> = tape
            .params()
            .into_iter()
            .filter(|param| param.trainable)
            .collect();
        state
            .get_or_insert_with(|| OptimizerState::new(training.optimizer))
            .step(&tape, &trainable);
        for param in &trainable {
            if training.zero_to_none {
                param.grad.take();
            }
        }
        drop(kept_output);
    }
    tape.mark(steps, Phase::Setup);
    let params = tape.params();
    let parameters = params.iter().map(|param| param.count).sum();
    let trainable = params
        .iter()
        .filter(|param| param.trainable)
        .map(|param| param.count)
        .sum();
    drop(params);
    let trace = tape.finish();
    Run {
        trace,
        parameters,
        trainable,
        forward_ends,
    }
}

/// The type weights are kept in, and the one autocast lowers to.
fn types(precision: Precision) -> (DType, Option<DType>) {
    match precision {
        Precision::Fp32 => (DType::F32, None),
        Precision::AmpBf16 => (DType::F32, Some(DType::BF16)),
        Precision::AmpFp16 => (DType::F32, Some(DType::F16)),
        Precision::Bf16 => (DType::BF16, None),
        Precision::Fp16 => (DType::F16, None),
        Precision::AmpBf16OnBf16 => (DType::BF16, Some(DType::BF16)),
    }
}

/// Marks memory that lives from step to step.
fn persistent(tensor: &crate::tape::Tensor) {
    tensor.set_category(Category::OptimizerStates);
}
