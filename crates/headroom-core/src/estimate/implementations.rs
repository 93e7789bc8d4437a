//! Trainers with their own implementations of models instead of transformers'.

use crate::nets::Sizes;
use headroom_scenario::{
    Case, Checkpointing, Compile, ContextParallel, LossKernel, Parallelism, Precision, Scenario,
    Trainer, Training,
};

/// The architecture and the sizes of a case's model as its trainer implements it. A run with settings that are not modelled
/// in that implementation is counted with transformers'.
pub(super) fn of_trainer(
    case: &Case,
    architecture: &'static str,
    mut sizes: Sizes,
) -> (&'static str, Sizes) {
    let scenario = case.scenario;
    match (scenario.stack.trainer, architecture) {
        // Its head is not tied to the embedding.
        (Trainer::Torchtitan, "llama") if is_torchtitans(scenario) && !sizes.is_set("tied") => {
            ("torchtitan_llama3", sizes)
        }
        // Llama's layers; `--add-qkv-bias` and `--qk-layernorm`.
        (Trainer::Megatron, "llama" | "qwen2" | "qwen3") if is_megatron_core(scenario) => {
            sizes.set("qkv_bias", u64::from(architecture == "qwen2"));
            sizes.set("qk_norm", u64::from(architecture == "qwen3"));
            if sizes.is_set("tied") {
                sizes.set("shares_embeddings", 1);
            }
            sizes.set("transformer_engine", 1);
            ("megatron_gpt", sizes)
        }
        _ => (architecture, sizes),
    }
}

/// Whether all settings are within what is modelled. Neither implementation pads samples.
fn has_only(scenario: &Scenario, training: Training) -> bool {
    scenario.training == training && scenario.runtime.eval_batch.is_none()
}

fn is_torchtitans(scenario: &Scenario) -> bool {
    let training = &scenario.training;
    let compiles = matches!(training.compile, Compile::Nothing | Compile::Layers);
    compiles
        && has_only(
            scenario,
            Training {
                precision: training.precision,
                optimizer: training.optimizer,
                checkpointing: training.checkpointing,
                checkpoint_every: training.checkpoint_every,
                accumulation: training.accumulation,
                compile: training.compile,
                clip: training.clip,
                ..Training::default()
            },
        )
}

fn is_megatron_core(scenario: &Scenario) -> bool {
    let (training, parallel) = (&scenario.training, &scenario.parallel);
    // Weights in the compute dtype; the optimizer keeps fp32 master copies.
    let casts = matches!(
        training.precision,
        Precision::Bf16 | Precision::Fp16 | Precision::Fp32
    );
    let recomputes = matches!(
        training.checkpointing,
        Checkpointing::None | Checkpointing::Layers
    );
    // The fused one is Transformer Engine's.
    let loss = matches!(training.loss, LossKernel::Library | LossKernel::Liger);
    let strategy = matches!(
        parallel.strategy,
        Parallelism::None | Parallelism::Ddp | Parallelism::Zero1
    );
    // Only its exchange of heads is modelled.
    let context = parallel.cp <= 1 || parallel.context == ContextParallel::Ulysses;
    casts
        && recomputes
        && loss
        && strategy
        && context
        && has_only(
            scenario,
            Training {
                precision: training.precision,
                optimizer: training.optimizer,
                checkpointing: training.checkpointing,
                checkpoint_first: training.checkpoint_first,
                checkpoint_span: training.checkpoint_span,
                accumulation: training.accumulation,
                loss: training.loss,
                clip: training.clip,
                ..Training::default()
            },
        )
}

/// The note if a trainer's own model is not modelled with these settings.
pub(super) fn not_followed(case: &Case) -> Option<String> {
    let trainer = case.scenario.stack.trainer;
    let entry = case.model?;
    let has_own = matches!(trainer, Trainer::Torchtitan | Trainer::Megatron);
    let (architecture, _) = of_trainer(case, entry.arch, Sizes::from_entry(entry));
    (has_own && architecture == entry.arch).then(|| {
        format!(
            "stack.trainer {}: with these settings the model is counted as implemented in transformers; the trainer's own implementation saves different tensors",
            trainer.id()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::estimate;
    use headroom_scenario::settings;

    /// The architecture that is run, and whether something is said of it.
    #[track_caller]
    fn check(run: &str, expected: &str, noted: bool) {
        let mut scenario = Scenario::default();
        let model = "model=llama-3.1-8b gpu=h100-sxm5-80gb mb=1 seq=64";
        for word in model.split(' ').chain(run.split(' ')) {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        let case = Case::of(&scenario);
        let entry = case.model.unwrap();
        let (architecture, _) = of_trainer(&case, entry.arch, Sizes::from_entry(entry));
        assert_eq!(architecture, expected, "{run}");
        let notes = estimate(&scenario).unwrap().not_modelled;
        let found = notes.iter().any(|note| note.starts_with("stack.trainer "));
        assert_eq!(found, noted, "{run}: {notes:?}");
    }

    #[test]
    fn a_named_trainer_uses_its_own_implementation() {
        check("trainer=transformers", "llama", false);
        let titan = "trainer=torchtitan precision=amp-bf16";
        check(titan, "torchtitan_llama3", false);
        check(&format!("{titan} loss=chunked-head"), "llama", true);
        check(&format!("{titan} lora=on"), "llama", true);
        check(&format!("{titan} model=llama-3.2-1b"), "llama", true);
        let megatron = "trainer=megatron precision=bf16 optim=adamw-fused gpus=8";
        check(&format!("{megatron} par=zero1 tp=2"), "megatron_gpt", false);
        check(
            &format!("{megatron} par=ddp pp=2 accum=4"),
            "megatron_gpt",
            false,
        );
        for model in ["qwen2.5-7b", "qwen3-8b"] {
            let run = format!("{megatron} par=zero1 model={model}");
            check(&run, "megatron_gpt", false);
        }
        check(
            &format!("{megatron} par=zero1 model=qwen3-30b-a3b"),
            "qwen3_moe",
            true,
        );
        check("trainer=megatron precision=amp-bf16", "llama", true);
    }
}
