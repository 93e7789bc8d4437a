//! The training task: its loss, its reference or teacher model, and what it samples.

use super::{
    EvaluationOutput, LmHead, Objective, Reference, ReferenceDtype, Sampler, SamplingOffload,
};

#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of a trainer, free of the others"
)]
pub struct Task {
    pub objective: Objective,
    pub head: LmHead,
    /// The share of a sample's tokens that have a label.
    pub labelled: f64,
    pub reference: Reference,
    pub reference_type: ReferenceDtype,
    /// A catalogue id.
    pub teacher: String,
    /// GKD learns from the student's own completions (`lmbda=1`).
    pub on_policy: bool,
    /// Tokens of a prompt, where completions are sampled.
    pub prompt: u64,
    /// Tokens that are sampled after it.
    pub completion: u64,
    /// Completions of each prompt.
    pub generations: u64,
    /// Micro-batches that one round of sampling is for; zero is those of one optimizer step.
    pub generation_batches: u64,
    /// How often a round's completions are learned from.
    pub iterations: u64,
    pub sampler: Sampler,
    /// The share of the card's memory that vLLM takes.
    pub vllm_share: f64,
    /// GPUs that one vLLM is spread over.
    pub vllm_tp: u64,
    /// vLLM releases its memory during training.
    pub vllm_sleep: bool,
    /// What leaves the card while completions are sampled.
    pub sampling_offload: SamplingOffload,
    /// Rows of a pass that takes log-probabilities before the update; zero for a micro-batch.
    pub scored_rows: u64,
    /// The head is cast to fp32 (`cast_lm_head_to_fp32`).
    pub fp32_head: bool,
    pub evaluated: EvaluationOutput,
    /// Batches of an evaluation.
    pub evaluation_batches: u64,
    /// The reference's pass comes before the policy's.
    pub reference_first: bool,
    /// The loop's name for the policy's logits lives until backward is over.
    pub keeps_logits: bool,
    /// `output_scores`: the scores of every sampled token stay.
    pub keeps_scores: bool,
    /// `num_labels` of a head for classes.
    pub classes: u64,
    /// Hard negatives of each query, besides the other passages of the batch.
    pub negatives: u64,
    /// Tokens of a query; zero for as many as a passage has.
    pub query: u64,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            objective: Objective::default(),
            head: LmHead::default(),
            labelled: 1.0,
            reference: Reference::default(),
            reference_type: ReferenceDtype::default(),
            teacher: "qwen2.5-1.5b".into(),
            on_policy: false,
            prompt: 256,
            completion: 256,
            generations: 8,
            generation_batches: 0,
            iterations: 1,
            sampler: Sampler::default(),
            vllm_share: 0.3,
            vllm_tp: 1,
            vllm_sleep: false,
            sampling_offload: SamplingOffload::None,
            scored_rows: 0,
            fp32_head: false,
            evaluated: EvaluationOutput::default(),
            evaluation_batches: 4,
            reference_first: false,
            keeps_logits: false,
            keeps_scores: false,
            classes: 2,
            negatives: 0,
            query: 0,
        }
    }
}

impl Objective {
    /// Whether completions are sampled in each round of training.
    pub const fn samples(self) -> bool {
        matches!(
            self,
            Self::Grpo | Self::Rloo | Self::Ppo | Self::Distillation | Self::Generation
        )
    }

    /// Whether a micro-batch is of pairs, so that twice as many rows pass through the model.
    pub const fn pairs(self) -> bool {
        matches!(
            self,
            Self::Dpo | Self::Orpo | Self::Cpo | Self::SimPo | Self::Reward
        )
    }

    /// Whether a reference's log-probabilities take part in the loss.
    pub const fn refers(self) -> bool {
        matches!(
            self,
            Self::Dpo | Self::Kto | Self::Grpo | Self::Rloo | Self::Ppo
        )
    }

    /// Whether it trains a head or embeddings of its own over hidden states, in a plain loop.
    pub const fn trains_head(self) -> bool {
        matches!(
            self,
            Self::Classification
                | Self::TokenClassification
                | Self::Regression
                | Self::Reranking
                | Self::QuestionAnswering
                | Self::Contrastive
        )
    }

    /// Whether that head has classes to choose from.
    pub const fn has_classes(self) -> bool {
        matches!(self, Self::Classification | Self::TokenClassification)
    }

    /// Whether it learns from a teacher's distribution.
    pub const fn has_teacher(self) -> bool {
        matches!(self, Self::Gkd | Self::Distillation)
    }

    /// Whether its trainer asks for every layer's hidden states (`output_hidden_states=True`), which the output then holds.
    pub const fn keeps_hidden_states(self) -> bool {
        matches!(self, Self::Ppo)
    }

    /// Whether the model is trained at all.
    pub const fn trains(self) -> bool {
        !matches!(self, Self::Generation | Self::Evaluation)
    }
}
