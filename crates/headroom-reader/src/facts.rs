//! `Facts`: what an expert reads from an input.

use super::fact::Fact;
use super::names;
use super::shape::{Shape, Sized};
use super::words::{
    Adapter, Attention, Checkpointing, Compute, Offload, Strategy, Task, Trained, Wanted, Weights,
};

/// What is known of a run, before anything is assumed. Sizes are those of one GPU, `gpus` those of the whole job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// As written: an id, a path, a name.
    pub model: Fact<String>,
    /// Its sizes, where they are written out instead of a name.
    pub shape: Option<Shape>,
    /// An entry of the catalogue in other sizes, where the program's file composes the network.
    pub composed: Option<Sized>,
    /// The program, by its id.
    pub trainer: Fact<&'static str>,
    pub task: Fact<Task>,
    pub micro_batch: Fact<u64>,
    pub accumulation: Fact<u64>,
    /// Sequences of an optimizer step on all GPUs together, where a micro-batch is a part of it.
    pub batch_of_all: Fact<u64>,
    /// Tokens of a sequence: prompt and completion together where completions are sampled.
    pub sequence: Fact<u64>,
    pub prompt: Fact<u64>,
    pub completion: Fact<u64>,
    pub height: Fact<u64>,
    pub width: Fact<u64>,
    pub frames: Fact<u64>,
    /// The card, by its catalogue id.
    pub gpu: Fact<&'static str>,
    /// GB of a card that is not named.
    pub card_gib: Fact<u64>,
    pub gpus: Fact<u64>,
    /// Those of them that train, where others generate or judge.
    pub trained_on: Fact<u64>,
    pub nodes: Fact<u64>,
    pub strategy: Fact<Strategy>,
    pub offload: Fact<Offload>,
    pub weights: Fact<Weights>,
    /// Whether the scales of a four-bit base are quantised too.
    pub double_quantised: Fact<bool>,
    /// The frozen base of adapters, where `weights` are the adapters'.
    pub base_dtype: Fact<Weights>,
    pub compute: Fact<Compute>,
    /// `None`: the weights themselves are trained.
    pub adapter: Fact<Option<Adapter>>,
    pub rank: Fact<u64>,
    /// Whether adapters are in fp32 over a base of 16 bits.
    pub fp32_adapters: Fact<bool>,
    pub targets: Fact<Vec<String>>,
    pub trained: Fact<Trained>,
    /// In the program's own word, such as `adamw_bnb_8bit`.
    pub optimizer: Fact<String>,
    /// Whether each weight is updated as soon as its gradient is there.
    pub optimizer_in_backward: Fact<bool>,
    /// Whether a moving average of the weights is kept.
    pub ema: Fact<bool>,
    /// Beside tensor parallelism.
    pub sequence_parallel: Fact<bool>,
    pub checkpointing: Fact<Checkpointing>,
    /// Layers that are checkpointed together.
    pub checkpoint_span: Fact<u64>,
    /// Of how many layers a segment of them is checkpointed.
    pub checkpoint_every: Fact<u64>,
    /// The first layers of a pipeline's stage, which alone are checkpointed.
    pub checkpoint_first: Fact<u64>,
    pub attention: Fact<Attention>,
    pub liger: Fact<bool>,
    /// Apple's cut cross-entropy.
    pub cut_cross_entropy: Fact<bool>,
    pub packing: Fact<bool>,
    pub compile: Fact<bool>,
    pub evaluation: Fact<bool>,
    /// Completions of a prompt.
    pub samples: Fact<u64>,
    /// The share of a card that vLLM takes beside training; `None`: no vLLM on the training cards.
    pub vllm: Fact<Option<f64>>,
    /// Whether a reference shares the GPUs that train.
    pub reference: Fact<bool>,
    /// Whether the critic's parameters and optimizer states stay on these GPUs while the policy is updated.
    pub critic_stays: Fact<bool>,
    /// Rows of a pass that takes log-probabilities before the update.
    pub scored_rows: Fact<u64>,
    /// Whether it gives its memory back while the model is trained.
    pub vllm_sleeps: Fact<bool>,
    /// Whether parameters and optimizer states are in host memory while completions are sampled.
    pub offloads_to_sample: Fact<bool>,
    pub text_encoders_trained: Fact<bool>,
    pub cached_latents: Fact<bool>,
    pub cached_text: Fact<bool>,
    pub blocks_swapped: Fact<u64>,
    pub wanted: Option<Wanted>,
    /// Keys that change memory and that no setting expresses, with what they do.
    pub not_modelled: Vec<String>,
    /// Keys that were not read and whose effect on memory is unknown.
    pub unread: Vec<String>,
    /// What its user must say besides what is plainly missing, and why.
    pub asks: Vec<(Ask, String)>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why this is no training run that can be estimated.
    pub refused: Option<String>,
    /// Whether it is refused because no program is known that reads it.
    pub unrecognised: bool,
}

/// What a user may have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    Model,
    Batch,
    Sequence,
    Resolution,
    Frames,
    Gpus,
    Strategy,
    Trained,
    Adapter,
    Vocabulary,
    BaseConfig,
}

impl Ask {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Batch => "batch",
            Self::Sequence => "sequence",
            Self::Resolution => "resolution",
            Self::Frames => "frames",
            Self::Gpus => "gpus",
            Self::Strategy => "strategy",
            Self::Trained => "trained",
            Self::Adapter => "adapter",
            Self::Vocabulary => "vocabulary",
            Self::BaseConfig => "base config",
        }
    }
}

impl Facts {
    pub fn of(trainer: &'static str) -> Self {
        Self {
            trainer: Fact::follows(trainer, "its form"),
            ..Self::default()
        }
    }

    /// The catalogue's entry of its network, by its name or by the sizes that are written out.
    pub fn network(&self) -> Option<&'static str> {
        if let Some(composed) = &self.composed {
            return Some(composed.model);
        }
        let by_sizes = self.shape.and_then(|shape| shape.catalogue());
        by_sizes.or_else(|| names::named(self.model.value()?).catalogue)
    }

    /// Its sizes, where the catalogue has its kind of network in other sizes only.
    pub fn sized(&self) -> Option<Sized> {
        self.shape.as_ref().and_then(Shape::sized)
    }

    /// Whether anything about a run was understood.
    pub fn says_something(&self) -> bool {
        let blank = Self {
            unread: self.unread.clone(),
            notes: self.notes.clone(),
            ..Self::default()
        };
        *self != blank
    }

    pub fn refuse(why: impl Into<String>) -> Self {
        Self {
            refused: Some(why.into()),
            ..Self::default()
        }
    }

    /// What no program's reader knows; a reader of keys alone may still.
    pub fn unrecognised(why: impl Into<String>) -> Self {
        Self {
            unrecognised: true,
            ..Self::refuse(why)
        }
    }

    /// Takes from a part what this leaves open, such as the strategy of accelerate's file.
    pub fn fill(&mut self, part: Self) {
        macro_rules! fill {
            ($($field:ident),+) => { $(self.$field = std::mem::take(&mut self.$field).or(part.$field);)+ };
        }
        fill!(
            model,
            task,
            micro_batch,
            accumulation,
            batch_of_all,
            sequence,
            prompt,
            completion,
            height,
            width,
            frames,
            gpu,
            card_gib,
            gpus,
            nodes,
            strategy,
            offload,
            weights,
            base_dtype,
            compute,
            adapter,
            rank,
            fp32_adapters,
            targets,
            trained,
            optimizer,
            optimizer_in_backward,
            ema,
            sequence_parallel,
            checkpointing,
            checkpoint_span,
            checkpoint_every,
            checkpoint_first,
            attention,
            liger,
            cut_cross_entropy,
            packing,
            compile,
            evaluation,
            samples,
            vllm,
            vllm_sleeps,
            scored_rows,
            reference,
            critic_stays,
            offloads_to_sample,
            trained_on,
            text_encoders_trained,
            cached_latents,
            cached_text,
            blocks_swapped
        );
        self.shape = self.shape.or(part.shape);
        self.composed = self.composed.take().or(part.composed);
        self.not_modelled.extend(part.not_modelled);
        self.unread.extend(part.unread);
        self.notes.extend(part.notes);
    }

    pub fn ask(&mut self, ask: Ask, why: impl Into<String>) {
        if self.asks.iter().all(|(known, _)| *known != ask) {
            self.asks.push((ask, why.into()));
        }
    }
}
