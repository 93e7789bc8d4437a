//! A recorded network: what a model's own forward pass did on a machine without a GPU, replayed on the tape.
//!
//! `headroom record` prints the Python module that records; `docs/record.md` describes the file.

mod program;
mod read;
mod replay;
mod size;
mod stream;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::rc::Rc;

pub use program::Graph;
pub use read::{from_document, is_recorded, read};

use super::{Cx, ModelError, Net, Output};
use crate::scenario::{
    Checkpointing, Data, Kernels, LossKernel, Precision, Quantization, Training,
};
use crate::tape::Tensor;
use program::{Kind, Program, Step};
use replay::Replay;

/// The Python module that records a model.
pub const RECORDER: &str = include_str!("headroom_record.py");

/// The network of a recorded model.
pub fn net(graph: Rc<Graph>) -> Box<dyn Net> {
    Box::new(Recorded {
        graph,
        sizes: Cell::default(),
    })
}

#[derive(Debug)]
struct Recorded {
    graph: Rc<Graph>,
    /// The batch and the length of the batch made last.
    sizes: Cell<(u64, u64)>,
}

impl Recorded {
    /// The program for a run, first of those recorded at this very length.
    fn program(&self, training: &Training, sizes: (u64, u64)) -> Option<&Rc<Program>> {
        let kind = match training.precision {
            Precision::Fp32 => Kind::Plain,
            Precision::AmpBf16 | Precision::AmpFp16 => Kind::Autocast,
            Precision::Bf16 | Precision::Fp16 => Kind::Half,
            // Weights of 64 bits, and autocast on weights of 16, are not recorded.
            Precision::Fp64 | Precision::AmpBf16OnBf16 => return None,
        };
        let (batch, length) = sizes;
        let fits = |known: &[u64], size: u64| known.len() > 1 || known == [size];
        let mut suited = self.graph.programs.iter().filter(|program| {
            program.kind == kind && fits(&program.batches, batch) && fits(&program.lengths, length)
        });
        let recorded = suited
            .clone()
            .find(|program| program.lengths.contains(&length));
        recorded.or_else(|| suited.next())
    }
}

impl Net for Recorded {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.sizes.set((data.micro_batch, data.sequence));
        let sizes = self.sizes.get();
        let Some(program) = self.program(&cx.env.training, sizes) else {
            return Vec::new();
        };
        let types = replay::Types::at(program, sizes);
        let parts = program.steps.forward.iter().filter_map(|step| match step {
            Step::Batch(value) => Some(types.get(*value)),
            _ => None,
        });
        parts
            .map(|part| cx.tape.empty_as("batch", part.layout, part.dtype))
            .collect()
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let params = self.parameters(cx);
        if cx.tape.declaring() {
            return Output::empty(cx);
        }
        let sizes = self.sizes.get();
        match self.program(&cx.env.training, sizes) {
            Some(program) => Replay::run(cx, program, sizes, params, batch),
            None => Output::empty(cx),
        }
    }

    fn supports(&self, data: &Data, training: &Training) -> Result<(), ModelError> {
        let sizes = (data.micro_batch, data.sequence);
        if let Some((setting, _)) = unplayed(training).into_iter().find(|(_, asked)| *asked) {
            return Err(ModelError::NotReplayed(setting));
        }
        if self.program(training, sizes).is_some() {
            return Ok(());
        }
        let programs = self.graph.programs.iter();
        let mut recorded: Vec<_> = programs
            .flat_map(|program| program.batches.iter().zip(&program.lengths))
            .map(|(batch, length)| (*batch, *length))
            .collect();
        recorded.sort_unstable();
        recorded.dedup();
        Err(ModelError::NotRecorded { sizes, recorded })
    }
}

/// What changes a forward pass itself, with whether a run asks for it: a recording shows the pass as it was.
fn unplayed(training: &Training) -> [(&'static str, bool); 8] {
    let computed = matches!(
        training.checkpointing,
        Checkpointing::None | Checkpointing::Offload
    );
    [
        ("training.checkpointing", !computed),
        ("training.lora", training.lora.is_some()),
        (
            "training.quantization",
            training.quantization != Quantization::None,
        ),
        ("training.prompt_tokens", training.prompt_tokens > 0),
        ("training.channels_last", training.channels_last),
        ("training.kernels", training.kernels != Kernels::Library),
        ("training.loss", training.loss != LossKernel::Library),
        ("training.keep_outputs", training.keep_outputs),
    ]
}

impl Recorded {
    /// The parameters and buffers by the numbers of their memory, made at their first use.
    fn parameters(&self, cx: &Cx) -> Vec<(u32, replay::Held)> {
        let all = self.graph.params.iter();
        all.map(|declared| {
            (
                declared.slot,
                replay::declare(cx, &declared.modules, declared),
            )
        })
        .collect()
    }
}
