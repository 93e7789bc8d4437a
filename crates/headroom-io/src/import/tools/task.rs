//! The task that a file trains for: TRL's objectives, sampling and losses.

use super::super::take::KeyReader;
use headroom_base::document::Document;
use headroom_catalog::{ModelCategory, ModelEntry};
use headroom_scenario::{Case, LossKernel, Trainer, settings};

/// The task of a language model: LLaMA-Factory's `stage`, Axolotl's `rl`, ms-swift's
/// `rlhf_type`; TRL's files name a command's own keys alone.
pub fn objective(reader: &mut KeyReader) {
    let case = Case::of(&reader.imported.scenario);
    let language = |model: &ModelEntry| model.category == ModelCategory::Decoders;
    let language = case.model.is_some_and(language);
    let mut is_known = false;
    for key in ["rl", "rlhf_type", "stage"] {
        let Some(word) = reader.text(key) else {
            continue;
        };
        is_known = true;
        let by_factory = key == "stage";
        let found = match word {
            "pt" | "sft" => continue,
            _ if !language => None,
            // These keep a language model's logits, which is not modelled.
            "rm" | "ppo" if by_factory => None,
            "dpo" | "ipo" if by_factory => match reader.text("pref_loss") {
                Some("orpo") => Some("orpo"),
                Some("simpo") => Some("simpo"),
                _ => Some("dpo"),
            },
            "dpo" | "ipo" => Some("dpo"),
            "rm" | "reward" => Some("reward"),
            "kto" | "orpo" | "simpo" | "cpo" | "grpo" | "rloo" | "ppo" | "gkd" => Some(word),
            _ => None,
        };
        // How these tools compute log-probabilities; TRL's head, which Axolotl uses, creates no logits.
        let head = match (key, found) {
            ("stage", _) => "log-softmax",
            ("rlhf_type", Some("dpo" | "kto" | "grpo")) => "logits",
            _ => "fused",
        };
        match found {
            Some(found) => trained_for(reader, key, found, head),
            None => reader.mark_unused(key),
        }
    }
    if !is_known && language && reader.peek("reward_model") == Some(&Document::Bool(true)) {
        // Axolotl's switch.
        reader.value("reward_model");
        return trained_for(reader, "reward_model", "reward", "fused");
    }
    if !is_known
        && language
        && let Some((key, found)) = by_keys(reader)
    {
        reader.value(key);
        if key == "beta" {
            let note = "beta belongs to DPO, ORPO, CPO or KTO: the file does not say which, and DPO is assumed";
            reader.imported.notes.push(note.into());
        }
        trained_for(reader, key, found, "fused");
    }
}

/// One of TRL's trainers as patched by Unsloth, which creates no logits.
pub fn patched(reader: &mut KeyReader, key: &str, found: &str) {
    trained_for(reader, key, found, "fused");
}

/// Losses that only TRL's DPO has (trl/trainer/dpo_config.py).
const DPO_LOSSES: &[&str] = &[
    "sigmoid",
    "hinge",
    "ipo",
    "exo_pair",
    "nca_pair",
    "robust",
    "bco_pair",
    "sppo_hard",
    "aot",
    "aot_pair",
    "discopop",
    "apo_zero",
    "apo_down",
    "sigmoid_norm",
];

/// The task that TRL's keys imply, and the key that implies it.
fn by_keys(reader: &KeyReader) -> Option<(&'static str, &'static str)> {
    if reader.peek("desirable_weight").is_some() {
        return Some(("desirable_weight", "kto"));
    }
    match reader.peek("loss_type") {
        Some(Document::List(_)) => return Some(("loss_type", "dpo")),
        Some(Document::Text(name)) if DPO_LOSSES.contains(&name.as_str()) => {
            return Some(("loss_type", "dpo"));
        }
        _ => {}
    }
    let of_rloo = reader.peek("normalize_advantages").is_some();
    if reader.peek("num_generations").is_some() {
        return Some(("num_generations", if of_rloo { "rloo" } else { "grpo" }));
    }
    let by_trl = reader.imported.scenario.stack.trainer == Trainer::Trl;
    let weighs = matches!(reader.peek("beta"), Some(Document::Number(_)));
    (by_trl && weighs).then_some(("beta", "dpo"))
}

/// Takes the task, with the head of its loss, where all that goes with it is modelled.
fn trained_for(reader: &mut KeyReader, key: &str, found: &str, head: &str) {
    let problems = reader.imported.scenario.check().len();
    let before = reader.imported.draft.clone();
    let loss = reader.imported.scenario.training.loss;
    reader.set("task.objective", found);
    let by_liger = loss == LossKernel::LigerLinear && head != "log-softmax";
    // Some losses have no choice of a head.
    let has_head = settings::find("task.head")
        .is_some_and(|setting| setting.applies(&reader.imported.scenario));
    if has_head {
        reader.set("task.head", if by_liger { "liger" } else { head });
    }
    // The task brings its own.
    reader.set("training.loss", "library");
    if found == "grpo" || found == "rloo" {
        sampling(reader);
    }
    if reader.switch("precompute_ref_log_probs") == Some(true) {
        // Axolotl passes a copy to the trainer, which stays in memory; TRL's own command creates none.
        let passed = key == "rl";
        let by = if passed {
            "precomputed"
        } else {
            "precomputed-by-itself"
        };
        reader.set("task.reference", by);
    }
    // How a task's models are divided among GPUs, and its teacher, may not be modelled or known.
    if reader.imported.scenario.check().len() > problems {
        reader.imported.rewind(before);
        reader.mark_unused(key);
    }
}

/// How completions are sampled; Axolotl's keys are those of TRL below `trl`.
fn sampling(reader: &mut KeyReader) {
    for below in ["", "trl."] {
        for (key, field) in [
            ("num_generations", "task.generations"),
            ("max_completion_length", "task.completion"),
            ("max_prompt_length", "task.prompt"),
            ("num_iterations", "task.iterations"),
            ("steps_per_generation", "task.generation_batches"),
            ("vllm_gpu_memory_utilization", "task.vllm_share"),
            ("vllm_tensor_parallel_size", "task.vllm_tp"),
            ("cast_lm_head_to_fp32", "task.fp32_head"),
        ] {
            reader.copy(&format!("{below}{key}"), field);
        }
        round(reader, &format!("{below}generation_batch_size"));
        kl_term(reader, &format!("{below}beta"));
        if reader.switch(&format!("{below}use_vllm")) == Some(true) {
            let mode = reader.text(&format!("{below}vllm_mode"));
            let same = mode == Some("colocate");
            let sampler = if same { "vllm" } else { "vllm-server" };
            reader.set("task.sampler", sampler);
        }
        match reader.value(&format!("{below}sleep_level")) {
            Some(Document::Int(level)) if *level > 0 => reader.set("task.vllm_sleep", "on"),
            _ => {}
        }
        if reader.switch(&format!("{below}vllm_enable_sleep_mode")) == Some(true) {
            reader.set("task.vllm_sleep", "on");
        }
    }
    reader.copy("vllm.gpu_memory_utilization", "task.vllm_share");
    if reader.text("cache_implementation") == Some("static") {
        reader.set("task.sampler", "generate-static");
    }
}

/// The micro-batches in one generation batch of all GPUs.
fn round(reader: &mut KeyReader, key: &str) {
    let Some(Document::Int(rows)) = reader.value(key) else {
        return;
    };
    let scenario = &reader.imported.scenario;
    let gpus = u64::from(scenario.hardware.gpus.max(1));
    let at_once = gpus.saturating_mul(scenario.data.micro_batch).max(1);
    let batches = u64::try_from(*rows).unwrap_or(0) / at_once;
    if batches > 0 {
        reader.set("task.generation_batches", &batches.to_string());
    }
}

/// The reference model, which is kept only for a KL term.
fn kl_term(reader: &mut KeyReader, key: &str) {
    let has_kl = match reader.value(key) {
        Some(Document::Number(beta)) => *beta > 0.0,
        Some(Document::Int(beta)) => *beta > 0,
        _ => return,
    };
    let adapters = reader.imported.scenario.training.lora.is_some();
    let reference = match (has_kl, adapters) {
        (false, _) => "none",
        (true, true) => "adapters-off",
        (true, false) => "copy",
    };
    reader.set("task.reference", reference);
}
