//! Gated Sparse Attention: the YAML of `training/train.py`, read by OmegaConf, and its `torchrun` command.

use std::num::NonZero;

use super::{Launch, command, files, refused, starter};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_io::export::common::{file, machines};
use headroom_io::export::header::header;
use headroom_io::export::{Files, Target};
use headroom_scenario::{Checkpointing, Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "gsa",
    title: "Gated Sparse Attention (its own YAML)",
    versions: "alfredcs/Gated-Sparse-Attention b23ccad (torch 2.2 and newer, omegaconf 2.3)",
    differs: "",
    write,
};

const PRESET: &str = "gsa-512m";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut launch = Launch::of(PRESET, scenario)?;
    let training = &scenario.training;
    let precision = match training.precision {
        Precision::AmpBf16 => "bf16",
        Precision::AmpFp16 => "fp16",
        Precision::Fp32 => "fp32",
        other => {
            return Err(refused(
                "training.precision",
                other.id(),
                "amp-bf16, amp-fp16 or fp32 for this system",
            ));
        }
    };
    let checkpointing = match training.checkpointing {
        Checkpointing::None => false,
        Checkpointing::Layers => true,
        other => {
            return Err(refused(
                "training.checkpointing",
                other.id(),
                "none or layers for this system",
            ));
        }
    };
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    // The configuration asserts k_min <= k_base <= k_max: the unused ones are adapted to the one in use.
    let names = ["k_min", "k_base", "k_max"];
    let keys = in_order(
        names.map(|name| launch.size(name)),
        launch.size("adaptive") > 0,
    );
    for (name, size) in names.into_iter().zip(keys) {
        launch.sizes.insert(name.into(), size);
    }
    let mut sized = |key: &str, dim: &str, author: u64| launch.sized(key, dim, author);
    let gates = Document::new()
        .with("d_indexer", sized("d_indexer", "indexer", 64))
        .with(
            "n_indexer_heads",
            sized("n_indexer_heads", "indexer_heads", 4),
        )
        .with_note(
            "k_base",
            sized("k_base", "k_base", 512),
            "does nothing while k is adaptive",
        )
        .with("k_min", sized("k_min", "k_min", 64))
        .with_note(
            "k_max",
            sized("k_max", "k_max", 1024),
            "what memory goes by",
        )
        .with(
            "use_value_gate",
            sized("use_value_gate", "value_gate", 1) > 0,
        )
        .with(
            "use_output_gate",
            sized("use_output_gate", "output_gate", 1) > 0,
        )
        .with("use_adaptive_k", sized("use_adaptive_k", "adaptive", 1) > 0);
    let tied = sized("tie_word_embeddings", "tied", 0) > 0;
    let mut model = Document::new()
        .with("d_model", sized("d_model", "hidden", 512))
        .with("n_layers", sized("n_layers", "layers", 8))
        .with("n_heads", sized("n_heads", "heads", 8))
        .with("n_kv_heads", sized("n_kv_heads", "kv", 2))
        .with("d_ffn", sized("d_ffn", "ffn", 1536))
        .with("vocab_size", sized("vocab_size", "vocab", 151_936))
        .with(
            "max_position_embeddings",
            sized("max_position_embeddings", "ctx", 8192),
        )
        .with("gsa", gates);
    if tied {
        model = model.with("tie_word_embeddings", true);
    }
    let (data, runtime) = (&scenario.data, &scenario.runtime);
    let effective = scenario.effective_batch();
    let clip = if training.clip { 1.0 } else { 0.0 };
    // The trainer takes 0 for a divisor.
    let save = runtime.save_every.map_or(u64::from(u32::MAX), NonZero::get);
    launch.value("micro_batch_size", "2", data.micro_batch);
    launch.value("gradient_accumulation_steps", "32", training.accumulation);
    launch.value("global_batch_size", "256", effective);
    launch.value("max_seq_len", "1024", data.sequence);
    launch.value("precision", "bf16", precision);
    launch.value("gradient_checkpointing", "true", checkpointing);
    launch.value("grad_clip", "1", clip);
    launch.value("num_workers", "4", runtime.workers);
    launch.value("save_interval", "5000", save);
    launch.value("GPUs", "4", scenario.hardware.gpus);
    let rate = launch.learning_rate(scenario, 3e-4);
    let updates = launch.updates(scenario, 100_000)?;
    launch.value("learning_rate", "0.0003", rate);
    launch.value("max_steps", "100000", updates);
    let reduces_once =
        training.accumulation > 1 && scenario.hardware.gpus > 1 && !scenario.parallel.sync_each;
    let mut loop_ = Document::new()
        .with_note("optimizer", "adamw", "not read: it is always AdamW")
        .with("learning_rate", rate)
        .with("min_learning_rate", (rate * 1e11).round() / 1e12)
        .with("weight_decay", 0.1)
        .with("beta1", 0.9)
        .with("beta2", 0.95)
        .with("eps", 1e-8)
        .with("warmup_steps", 2000_u64)
        .with_note("lr_scheduler", "cosine", "not read: it is always a cosine")
        .with("max_steps", updates)
        .with("micro_batch_size", data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with_note(
            "global_batch_size",
            effective,
            "not read: micro-batch × accumulation × GPUs",
        )
        .with_note(
            "max_seq_len",
            data.sequence,
            "cuts packed rows: the rest of a longer row is lost",
        )
        .with("precision", precision)
        .with("gradient_checkpointing", checkpointing)
        .with("grad_clip", clip)
        .with_note("indexer_warmup_steps", 1000_u64, "stored, not used")
        .with("indexer_lr_multiplier", 10.0)
        .with_note("log_interval", 10_u64, "the trainer reads it here")
        .with_note("save_interval", save, "the trainer reads it here");
    if reduces_once {
        loop_ = loop_.with("no_sync", true);
    }
    let data = Document::new()
        .with_note(
            "local_dataset_path",
            "/data/hf_datasets/SlimPajama-627B",
            "read where data_dir is not there",
        )
        .with_note(
            "data_dir",
            "${oc.env:DATA_ROOT,data}/packed",
            "train.bin and metadata.json",
        )
        .with("dataset", "cerebras/SlimPajama-627B")
        .with("tokenizer", "Qwen/Qwen2.5-7B")
        .with("num_workers", runtime.workers)
        .with("use_packing", true);
    let logging = Document::new()
        .with("project", "gsa-pretrain")
        .with_note("log_interval", 10_u64, "these three are not read here")
        .with("eval_interval", 1000_u64)
        .with("save_interval", save);
    let document = Document::new()
        .with("model", model)
        .with("training", loop_)
        .with("data", data)
        .with("logging", logging);
    let header = header(&TARGET, scenario, estimate);
    let differs = yaml::comment(&launch.differences);
    let text = format!("{header}{differs}{}", yaml::write(&document));
    let options = [
        ("--config", "\"$here/gsa.yaml\"".to_string()),
        ("--output_dir", "outputs/gsa-512m".to_string()),
    ];
    let command = command(&starter(&machines, "training/train.py"), &options);
    let config = file("gsa.yaml", text);
    Ok(files(
        &TARGET,
        scenario,
        estimate,
        &launch,
        &command,
        vec![config],
    ))
}

/// k_min, k_base and k_max, changed where they are not in this order: the last stays while k is adaptive, else the second.
fn in_order([k_min, k_base, k_max]: [u64; 3], adaptive: bool) -> [u64; 3] {
    let (k_base, k_max) = if adaptive {
        (k_base.min(k_max), k_max)
    } else {
        (k_base, k_max.max(k_base))
    };
    [k_min.min(k_base), k_base, k_max]
}
