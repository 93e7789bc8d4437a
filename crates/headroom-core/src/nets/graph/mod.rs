//! A recorded network: what a model's own forward pass did on a machine without a GPU, replayed on the tape.
//!
//! `headroom record` prints the Python module that records; `docs/record.md` describes the file.

mod params;
mod plan;
mod program;
mod prune;
mod read;
mod region;
mod replay;
mod size;
mod store;
mod stream;
#[cfg(test)]
mod tests;
mod types;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub use program::Graph;
pub use read::{from_document, is_recorded, read};
pub use store::{insert, keep, opened, shipped};

use super::{Cx, ModelError, Net, Output};
use crate::tape::Tensor;
use headroom_scenario::{
    Checkpointing, Data, Kernels, LossKernel, Precision, Quantization, Training,
};
use plan::Plan;
use program::{Declared, Instruction, Program, RecordedPrecision};
use replay::{Replay, Replayed};

/// The Python module that records a model.
pub const RECORDER: &str = include_str!("headroom_record.py");

/// The network of a recorded model.
pub fn net(graph: Rc<Graph>) -> Box<dyn Net> {
    of_length(graph, None)
}

/// The same, with a size of the model as the length of its graph, in place of the length of its samples.
pub fn of_length(graph: Rc<Graph>, length: Option<(&'static str, u64)>) -> Box<dyn Net> {
    Box::new(Recorded {
        graph,
        length,
        sizes: Cell::default(),
        plans: RefCell::default(),
    })
}

#[derive(Debug)]
struct Recorded {
    graph: Rc<Graph>,
    /// The name of the size that is the length.
    length: Option<(&'static str, u64)>,
    /// The batch and the length of the batch made last.
    sizes: Cell<(u64, u64)>,
    /// Of the programs that were run.
    plans: RefCell<Vec<(Rc<Program>, Rc<Plan>)>>,
}

impl Recorded {
    /// The batch and the length of a run.
    fn sizes(&self, data: &Data) -> (u64, u64) {
        let length = self.length.map_or(data.sequence, |(_, length)| length);
        (data.micro_batch, length)
    }

    /// The program for a run, first of those recorded at this very length.
    fn program(&self, precision: Precision, sizes: (u64, u64)) -> Option<&Rc<Program>> {
        let kind = match precision {
            Precision::Fp32 => RecordedPrecision::Plain,
            Precision::AmpBf16 | Precision::AmpFp16 => RecordedPrecision::Autocast,
            Precision::Bf16 | Precision::Fp16 => RecordedPrecision::Half,
            // Weights of 64 bits, and autocast on weights of 16, are not recorded.
            Precision::Fp64 | Precision::AmpBf16OnBf16 | Precision::AmpFp16OnFp16 => return None,
        };
        let (batch, length) = sizes;
        let fits = |known: &[u64], size: u64| known.len() > 1 || known == [size];
        let alike = self
            .graph
            .programs
            .iter()
            .filter(|program| program.kind == kind && fits(&program.batches, batch));
        // Operations that were only found at greater lengths hold beyond these, too, and likewise below.
        let passed = |program: &Program| {
            let (Some(low), Some(high)) =
                (program.lengths.iter().min(), program.lengths.iter().max())
            else {
                return true;
            };
            alike.clone().any(|other| {
                let all = |is: &dyn Fn(&u64) -> bool| other.lengths.iter().all(is);
                length > *high && all(&|known| known > high && *known < length)
                    || length < *low && all(&|known| known < low && *known > length)
            })
        };
        let mut suited = alike
            .clone()
            .filter(|program| fits(&program.lengths, length) && !passed(program));
        let recorded = suited
            .clone()
            .find(|program| program.lengths.contains(&length));
        recorded.or_else(|| suited.next())
    }
}

impl Net for Recorded {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let sizes = self.sizes(data);
        self.sizes.set(sizes);
        let Some(program) = self.program(precision(cx), sizes) else {
            return Vec::new();
        };
        let types = types::Types::at(program, sizes);
        let parts = program.steps.forward.iter().filter_map(|step| match step {
            Instruction::Batch(value) => Some(types.get(*value)),
            _ => None,
        });
        parts
            .map(|part| cx.tape.empty_as("batch", part.layout, part.dtype))
            .collect()
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let sizes = self.sizes.get();
        let Some(program) = self.program(precision(cx), sizes) else {
            return Output::empty(cx);
        };
        let plan = self.plan(program);
        let replayed = Replayed {
            graph: self.graph.clone(),
            program: program.clone(),
            plan,
            sizes,
            by_module: changes_modules(&cx.env.training),
            by_layer: cx.recomputes() || cx.env.wrapper.properties().shards_params,
        };
        if cx.tape.declaring() {
            replayed.declare(cx);
            return Output::empty(cx);
        }
        Replay::run(cx, replayed, batch)
    }

    fn supports(&self, data: &Data, training: &Training) -> Result<(), ModelError> {
        let sizes = self.sizes(data);
        let plan = self
            .program(training.precision, sizes)
            .map(|program| self.plan(program));
        let unreplayable = unreplayable(training, plan.as_deref());
        if let Some((setting, _)) = unreplayable.into_iter().find(|(_, asked)| *asked) {
            return Err(ModelError::NotReplayed(setting));
        }
        if self.program(training.precision, sizes).is_some() {
            return Ok(());
        }
        let programs = self.graph.programs.iter();
        let mut recorded: Vec<_> = programs
            .flat_map(|program| program.batches.iter().zip(&program.lengths))
            .map(|(batch, length)| (*batch, *length))
            .collect();
        recorded.sort_unstable();
        recorded.dedup();
        let length = self.length.map_or("data.sequence", |(name, _)| name);
        Err(ModelError::NotRecorded {
            sizes,
            length,
            recorded,
        })
    }
}

/// The precision of a forward pass: a wrapper that casts weights by itself needs no autocast.
fn precision(cx: &Cx) -> Precision {
    match cx.env.training.precision {
        Precision::AmpBf16 if !cx.env.wrapper.properties().keeps_autocast => Precision::Bf16,
        Precision::AmpFp16 if !cx.env.wrapper.properties().keeps_autocast => Precision::Fp16,
        precision => precision,
    }
}

/// Whether a run has linear modules other than the recorded ones.
fn changes_modules(training: &Training) -> bool {
    training.lora.is_some() || training.quantization != Quantization::None
}

/// Settings that change the forward pass, which a recording cannot replay, and whether the run uses them.
fn unreplayable(training: &Training, plan: Option<&Plan>) -> [(&'static str, bool); 9] {
    let computed = matches!(
        training.checkpointing,
        Checkpointing::None | Checkpointing::Offload
    );
    // A policy keeps results of operations as PyTorch dispatches them; a recording names some of them otherwise.
    let selective = matches!(
        training.checkpointing,
        Checkpointing::KeepAttention | Checkpointing::KeepHalf | Checkpointing::KeepMatmuls
    );
    let lacks_layers = || plan.is_some_and(|plan| !plan.has_layers());
    // Files of an earlier recorder do not name what the model returns.
    let lacks_outputs = || plan.is_some_and(|plan| !plan.returns());
    let lacks_linears = || plan.is_some_and(|plan| !plan.has_linears());
    [
        (
            "training.checkpointing",
            selective || (!computed && lacks_layers()),
        ),
        ("training.lora", training.lora.is_some() && lacks_linears()),
        (
            "training.quantization",
            training.quantization != Quantization::None && lacks_linears(),
        ),
        ("training.prompt_tokens", training.prompt_tokens > 0),
        ("training.channels_last", training.channels_last),
        ("training.kernels", training.kernels != Kernels::Library),
        ("training.loss", training.loss != LossKernel::Library),
        (
            "training.keep_outputs",
            training.keep_outputs && lacks_outputs(),
        ),
        ("training.fp32_norms", training.fp32_norms),
    ]
}

impl Recorded {
    fn plan(&self, program: &Rc<Program>) -> Rc<Plan> {
        let mut plans = self.plans.borrow_mut();
        if let Some((_, plan)) = plans.iter().find(|(known, _)| Rc::ptr_eq(known, program)) {
            return plan.clone();
        }
        let plan = Rc::new(Plan::of(&self.graph, program));
        plans.push((program.clone(), plan.clone()));
        plan
    }
}

impl Replayed {
    /// Makes all parameters and buffers, each in its module.
    fn declare(&self, cx: &Cx) {
        let mut rest = self.graph.params.as_slice();
        while let Some(first) = rest.first() {
            let layer = self.by_layer.then(|| self.graph.layer_of(first)).flatten();
            let same = |param: &&Declared| layer.is_some() && self.graph.layer_of(param) == layer;
            let count = rest.iter().take_while(same).count().max(1);
            let (group, later) = rest.split_at(count);
            match layer {
                Some((path, _)) => {
                    let run = |cx: &Cx| group.iter().for_each(|param| self.make(cx, param));
                    cx.root().in_layer(&path, &run);
                }
                None => group.iter().for_each(|param| self.make(cx, param)),
            }
            rest = later;
        }
    }

    fn make(&self, cx: &Cx, param: &Declared) {
        if !(self.by_module && self.plan.holds(param.slot)) {
            params::held(cx, param);
            return;
        }
        let is_weight = |linear: &&plan::Linear| {
            let weight = self.graph.params.get(linear.param);
            weight.is_some_and(|weight| weight.slot == param.slot)
        };
        if let Some(linear) = self.plan.linears().iter().find(is_weight) {
            let inner = param.shape.get(usize::from(!linear.turned));
            let width = inner.copied().unwrap_or(1);
            let x = cx.tape.empty("recorded", [1, width], cx.env.weights);
            params::linear_module(cx, param, linear, &x);
        }
    }
}
