//! What is trained for: the task and its loss.

use super::Writer;
use crate::fact::{self, Fact};
use crate::facts::Facts;
use crate::words::Task;
use headroom_catalog::{ModelCategory, model};

/// Programs whose PPO updates a critic by itself, before or after the policy.
pub const CRITICS_APART: &[&str] = &["verl", "openrlhf", "skyrl", "nemo-rl"];

impl Writer {
    pub(super) fn task(&mut self, facts: &Facts) {
        let Fact::Known { value, origin } = &facts.task else {
            return;
        };
        let category = facts.network().and_then(model).map(|model| model.category);
        let of_text = category.is_some_and(|category| {
            use ModelCategory::{Decoders, Encoders, TextEncoders};
            matches!(category, Decoders | Encoders | TextEncoders)
        });
        // The head of a causal language model alone is fused with its loss.
        let fuses = matches!(self.tool, "trl" | "unsloth" | "sentence")
            && category.is_none_or(|category| category == ModelCategory::Decoders);
        let objective = match value {
            Task::Sft if fuses => "sft",
            Task::Dpo => "dpo",
            Task::Kto => "kto",
            Task::Orpo => "orpo",
            Task::Cpo => "cpo",
            Task::Simpo => "simpo",
            Task::Reward => "reward",
            Task::Grpo => "grpo",
            Task::Rloo => "rloo",
            // Their critic is a model with an update of its own; the policy's is that of GRPO.
            Task::Ppo if CRITICS_APART.contains(&self.tool) => "grpo",
            Task::Ppo => "ppo",
            Task::Distillation => "distillation",
            // The model's own loss.
            Task::Pretraining
            | Task::MaskedLm
            | Task::Diffusion
            | Task::SelfDistillation
            | Task::Seq2Seq
            | Task::Sft
            | Task::Ctc => "pretraining",
            // A network of images has its classes' head and loss.
            Task::Classification if category == Some(ModelCategory::Vision) => "pretraining",
            Task::Classification
            | Task::TokenClassification
            | Task::Regression
            | Task::QuestionAnswering
            | Task::Reranking
            | Task::Contrastive
                if of_text =>
            {
                value.word()
            }
            other => {
                self.leave(format!("task: {other}"));
                return;
            }
        };
        self.set("task.objective", objective, origin);
        self.brings_loss = objective != "pretraining";
        if matches!(value, Task::Grpo | Task::Rloo | Task::Ppo) {
            self.whole("task.prompt", &facts.prompt);
            self.whole("task.completion", &facts.completion);
            self.generations(facts);
            self.sampler(facts);
            if objective != "ppo" {
                self.whole("task.scored_rows", &facts.scored_rows);
                self.reference(facts);
            }
        }
    }

    fn reference(&mut self, facts: &Facts) {
        let Fact::Known { value, origin } = &facts.reference else {
            return;
        };
        let adapted = matches!(facts.adapter.value(), Some(Some(_)));
        let kind = match (*value, adapted) {
            (false, _) => "none",
            (true, true) => "adapters-off",
            (true, false) => "copy",
        };
        self.set("task.reference", kind, origin);
    }

    /// vLLM on the cards that train, or on others.
    fn sampler(&mut self, facts: &Facts) {
        let Fact::Known { value, origin } = &facts.vllm else {
            return;
        };
        let apart = facts.trained_on.value().is_some_and(|own| {
            let all = facts.gpus.value();
            all.is_some_and(|all| own < all)
        });
        let Some(share) = value.filter(|_| !apart) else {
            self.set("task.sampler", "vllm-server", origin);
            return;
        };
        self.set("task.sampler", "vllm", origin);
        self.set("task.vllm_share", share.to_string(), origin);
        let Fact::Known {
            value: sleeps,
            origin,
        } = &facts.vllm_sleeps
        else {
            return;
        };
        self.set(
            "task.vllm_sleep",
            if *sleeps { "on" } else { "off" },
            origin,
        );
        if let (
            true,
            Fact::Known {
                value: true,
                origin,
            },
        ) = (*sleeps, &facts.offloads_to_sample)
        {
            self.set("task.sampling_offload", "both", origin);
        }
    }

    /// Completions of a prompt: programs whose micro-batches are rows of any group need no whole groups.
    pub(super) fn generations(&mut self, facts: &Facts) {
        let whole = |fact: &Fact<u64>| fact.value().copied().unwrap_or(1).max(1);
        let samples = whole(&facts.samples);
        let rows = [&facts.micro_batch, &facts.accumulation, &facts.gpus].map(whole);
        let rows = rows.into_iter().fold(1, u64::saturating_mul);
        let groups = matches!(facts.task.value(), Some(Task::Grpo | Task::Rloo));
        if groups && (facts.micro_batch.is_unsaid() || rows.is_multiple_of(samples)) {
            self.whole("task.generations", &facts.samples);
        } else if groups {
            self.set(
                "task.generations",
                "1",
                &fact::Origin::Follows(format!("{rows} rows are no groups of {samples}")),
            );
        }
    }

    /// The loss of a trainer after pre-training is its task's, by Liger or not.
    pub(super) fn loss(&mut self, facts: &Facts) {
        const CHUNKED: &[Task] = &[Task::Dpo, Task::Orpo, Task::Cpo, Task::Simpo, Task::Grpo];
        let (true, Some(task)) = (self.brings_loss, facts.task.value()) else {
            return;
        };
        let (liger, by) = match &facts.liger {
            Fact::Known { value, origin } => (*value, origin.clone()),
            _ => (false, fact::Origin::Follows("its own loss".into())),
        };
        if liger && *task == Task::Sft {
            // Its forward takes the place of the fused head.
            let by = fact::Origin::Follows("Liger's forward has the loss".into());
            self.set("task.objective", "pretraining", &by);
            return;
        }
        if liger && CHUNKED.contains(task) {
            self.set("task.head", "liger", &by);
        }
        self.set("training.loss", "library", &by);
    }
}
