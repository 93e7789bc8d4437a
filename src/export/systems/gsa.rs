//! Gated Sparse Attention: the whole YAML of `training/train.py`, read by OmegaConf, and its `torchrun` command.

use super::super::common::file;
use super::super::header::header;
use super::super::{Files, Target};
use super::{Patch, System, command, starter};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{Checkpointing, Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "gsa",
    title: "Gated Sparse Attention (its own YAML)",
    versions: "alfredcs/Gated-Sparse-Attention b23ccad (torch 2.2 and newer, omegaconf 2.3)",
    differs: "",
    write,
};

const SYSTEM: System = System {
    preset: "gsa-512m",
    arch: "gsa",
    said: &[
        "data.micro_batch",
        "data.sequence",
        "training.precision",
        "training.checkpointing",
        "training.accumulation",
    ],
    dims: &[
        "layers",
        "hidden",
        "heads",
        "kv",
        "ffn",
        "vocab",
        "ctx",
        "indexer",
        "indexer_heads",
        "k_base",
        "k_min",
        "k_max",
    ],
    patches: &[Patch {
        path: "model.dims.tied",
        values: &[],
        what: "tie_word_embeddings is not passed on from the YAML; wiring.diff passes it",
    }],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let asked = SYSTEM.asked(scenario)?;
    let training = &scenario.training;
    let precision = match training.precision {
        Precision::AmpBf16 => "bf16",
        Precision::AmpFp16 => "fp16",
        Precision::Fp32 => "fp32",
        other => {
            let expected = "amp-bf16, amp-fp16 or fp32 for this system";
            return Err(vec![Problem::new(
                "training.precision",
                other.id(),
                expected,
            )]);
        }
    };
    let checkpointing = match training.checkpointing {
        Checkpointing::None => false,
        Checkpointing::Layers => true,
        other => {
            let expected = "none or layers for this system";
            return Err(vec![Problem::new(
                "training.checkpointing",
                other.id(),
                expected,
            )]);
        }
    };
    let gates = Document::new()
        .with("d_indexer", asked.size("indexer"))
        .with("n_indexer_heads", asked.size("indexer_heads"))
        .with_note(
            "k_base",
            asked.size("k_base"),
            "does nothing while k is adaptive",
        )
        .with("k_min", asked.size("k_min"))
        .with_note("k_max", asked.size("k_max"), "what memory goes by")
        .with("use_value_gate", true)
        .with("use_output_gate", true)
        .with("use_adaptive_k", true);
    let model = Document::new()
        .with("d_model", asked.size("hidden"))
        .with("n_layers", asked.size("layers"))
        .with("n_heads", asked.size("heads"))
        .with("n_kv_heads", asked.size("kv"))
        .with("d_ffn", asked.size("ffn"))
        .with("vocab_size", asked.size("vocab"))
        .with("max_position_embeddings", asked.size("ctx"))
        .with("gsa", gates);
    let loop_ = Document::new()
        .with_note("optimizer", "adamw", "not read: it is always AdamW")
        .with("learning_rate", 3e-4)
        .with("min_learning_rate", 3e-5)
        .with("weight_decay", 0.1)
        .with("beta1", 0.9)
        .with("beta2", 0.95)
        .with("eps", 1e-8)
        .with("warmup_steps", 2000_u64)
        .with_note("lr_scheduler", "cosine", "not read: it is always a cosine")
        .with("max_steps", 100_000_u64)
        .with("micro_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with_note(
            "global_batch_size",
            scenario.effective_batch(),
            "not read: micro-batch × accumulation × GPUs",
        )
        .with_note(
            "max_seq_len",
            scenario.data.sequence,
            "cuts packed rows: the rest of a longer row is lost",
        )
        .with("precision", precision)
        .with("gradient_checkpointing", checkpointing)
        .with("grad_clip", 1.0)
        .with_note("indexer_warmup_steps", 1000_u64, "stored, not used")
        .with("indexer_lr_multiplier", 10.0);
    let data = Document::new()
        .with_note("local_dataset_path", "data/packed", "yours")
        .with("data_dir", "data")
        .with("dataset", "packed")
        .with("tokenizer", "Qwen/Qwen2.5-0.5B")
        .with("num_workers", scenario.runtime.workers)
        .with("use_packing", true);
    let logging = Document::new()
        .with("project", "headroom")
        .with_note(
            "log_interval",
            10_u64,
            "these three are read from the wrong section",
        )
        .with("eval_interval", 1000_u64)
        .with("save_interval", scenario.runtime.save_every.max(1));
    let document = Document::new()
        .with("model", model)
        .with("training", loop_)
        .with("data", data)
        .with("logging", logging);
    let header = header(&TARGET, scenario, estimate);
    let config = file("gsa.yaml", format!("{header}{}", yaml::write(&document)));
    let mut words = vec!["exec".to_string()];
    words.extend(starter(scenario));
    words.push("training/train.py".into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let options = [
        ("--config", "\"$here/gsa.yaml\"".to_string()),
        ("--output_dir", "\"$here/out\"".to_string()),
    ];
    let command = command(&words, &options);
    Ok(SYSTEM.files(&TARGET, scenario, estimate, &asked, &command, vec![config]))
}
