//! The one door to activation checkpointing: which regions of a network a run wraps, and what they keep.

use std::rc::Rc;

use super::Cx;
use crate::tape::{SavePolicy, Tensor};
use headroom_scenario::{Checkpointing, Compile};

/// A stretch of forward that a network's own code can wrap in `torch.utils.checkpoint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// A module at this index of a list: `checkpoint_every` counts these.
    Layer(usize),
    /// Several layers of a list, one after the other.
    Segment,
    /// A block outside counted lists, such as one step of a recursion.
    Block,
    /// A block of convolutions. Selective policies keep none of its results, so they leave it as it is.
    Convolutions,
    /// A chunk of a loss whose kernel checkpoints it, whatever the layers do.
    LossChunk,
}

/// What a region computes from its inputs. Behind a pointer, so that the checkpointing of regions is compiled once and
/// not for each network: the page downloads every copy.
pub(super) type Body = dyn Fn(&Cx, Vec<Tensor>) -> Vec<Tensor>;

impl Cx {
    /// Runs a region on its inputs, checkpointed where the run requests it.
    pub fn block(
        &self,
        region: Region,
        inputs: Vec<Tensor>,
        body: impl Fn(&Self, Vec<Tensor>) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        self.shared_block(region, inputs, Rc::new(body))
    }

    /// A region with one input and one output.
    pub fn unary_block(
        &self,
        region: Region,
        input: &Tensor,
        body: impl Fn(&Self, &Tensor) -> Tensor + 'static,
    ) -> Tensor {
        let body = move |cx: &Self, inputs: Vec<Tensor>| {
            inputs.iter().map(|input| body(cx, input)).collect()
        };
        let outputs = self.block(region, vec![input.clone()], body);
        outputs.into_iter().next().unwrap_or_else(|| input.clone())
    }

    pub(super) fn shared_block(
        &self,
        region: Region,
        inputs: Vec<Tensor>,
        body: Rc<Body>,
    ) -> Vec<Tensor> {
        let Some(keep) = self.checkpoints(region) else {
            return body(self, inputs);
        };
        let cx = self.clone();
        let segment = move |inputs: &[Tensor]| body(&cx, inputs.to_vec());
        let is_layer = matches!(region, Region::Layer(_));
        if is_layer && keep == SavePolicy::Nothing && self.env.libraries.reentrant {
            self.tape.checkpoint_reentrant(inputs, segment)
        } else {
            self.tape.selective_checkpoint(keep, inputs, segment)
        }
    }

    /// The mode in force here. Modules of transformers checkpoint while they train, not while they evaluate.
    pub fn checkpointing(&self) -> Checkpointing {
        if self.tape.evaluating() && !self.in_any_mode {
            Checkpointing::None
        } else {
            self.env.training.checkpointing
        }
    }

    /// Whether layers are compiled around their checkpoints: selective ones are tags of operations in the graph.
    pub(super) fn compiles_checkpoints(&self) -> bool {
        use Checkpointing::{KeepAttention, KeepHalf, KeepMatmuls};
        let selective = matches!(
            self.env.training.checkpointing,
            KeepAttention | KeepHalf | KeepMatmuls
        );
        selective && self.env.training.compile == Compile::Layers
    }

    /// Whether the run computes any of its layers again; offloaded activations are only copied back.
    pub fn recomputes(&self) -> bool {
        kept_by(self.env.training.checkpointing).is_some()
    }

    /// Whether a layer is among those of its stage that are checkpointed (`recompute_method` "block" in
    /// megatron/core/transformer/transformer_block.py).
    fn is_early(&self, index: usize) -> bool {
        let most = self.env.training.checkpoint_first;
        let first = self.env.groups.stages.first.get();
        most == 0 || (index as u64).saturating_sub(first) < most
    }

    /// What a checkpointed region keeps; `None` where it is not checkpointed.
    fn checkpoints(&self, region: Region) -> Option<SavePolicy> {
        let training = &self.env.training;
        match region {
            Region::Layer(_) if self.in_segment => None,
            Region::Segment => kept_by(self.checkpointing()),
            Region::Layer(index) => {
                // Of each `n` layers, the last one.
                let every = training.checkpoint_every.max(1);
                let wrapped = (index as u64 + 1).is_multiple_of(every) && self.is_early(index);
                kept_by(self.checkpointing()).filter(|_| wrapped)
            }
            Region::Block => kept_by(training.checkpointing),
            Region::Convolutions => {
                kept_by(training.checkpointing).filter(|keep| *keep == SavePolicy::Nothing)
            }
            Region::LossChunk => Some(SavePolicy::Nothing),
        }
    }
}

/// What a mode keeps of the regions that it checkpoints; `None` where it computes nothing again.
fn kept_by(mode: Checkpointing) -> Option<SavePolicy> {
    match mode {
        Checkpointing::None | Checkpointing::Offload => None,
        Checkpointing::Layers => Some(SavePolicy::Nothing),
        Checkpointing::KeepAttention => Some(SavePolicy::Attention),
        Checkpointing::KeepMatmuls => Some(SavePolicy::Products),
        Checkpointing::KeepHalf => Some(SavePolicy::HalfProducts),
    }
}
