//! A configuration file of torchtitan (TOML, until its releases took configurations in Python).

use super::Imported;
use super::take::KeyReader;
use crate::export;
use headroom_base::document::Document;

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let has = |table: &str, keys: &[&str]| {
        let table = document.get(table);
        table.is_some_and(|table| keys.iter().any(|key| table.get(key).is_some()))
    };
    has("model", &["flavor"]) && has("training", &["seq_len", "local_batch_size", "batch_size"])
}

/// The default scenario with the file's settings and the program's defaults.
pub fn read(document: &Document) -> Imported {
    let mut reader = KeyReader::new(document);
    reader.trainer("torchtitan");
    // Such files are of releases before 0.3, which computed all logits at once.
    reader.set("training.loss", "library");
    model(&mut reader);
    for key in ["batch_size", "local_batch_size"] {
        reader.copy(&format!("training.{key}"), "data.micro_batch");
    }
    reader.copy("training.seq_len", "data.sequence");
    reader.clip("training.max_norm");
    precision(&mut reader);
    optimizer(&mut reader);
    checkpointing(&mut reader);
    let compiled = [
        reader.switch("compile.enable"),
        reader.switch("training.compile"),
    ];
    let parts = reader.value("compile.components");
    let layers = !matches!(parts, Some(Document::List(parts)) if !parts.contains(&"model".into()));
    if compiled.contains(&Some(true)) && layers {
        reader.set("training.compile", "layers");
    }
    layout(&mut reader);
    accumulation(&mut reader);
    reader.finish(WITHOUT_EFFECT)
}

/// Tables and keys without an effect on memory.
const WITHOUT_EFFECT: &[&str] = &[
    "job",
    "metrics",
    "profiling",
    "lr_scheduler",
    "checkpoint",
    "comm",
    "fault_tolerance",
    "experimental",
    "validation.enable",
    "model.tokenizer_path",
    "model.hf_assets_path",
    "model.print_after_conversion",
    "optimizer.lr",
    "optimizer.eps",
    "optimizer.beta1",
    "optimizer.beta2",
    "optimizer.weight_decay",
    "training.steps",
    "training.dataset",
    "training.dataset_path",
    "training.seed",
    "training.deterministic",
    "training.gc_freq",
    "training.gc_debug",
    "debug",
];

/// The catalogue's model by torchtitan's name and flavor: `llama3` and `8B` are its `llama3_8b`.
fn model(reader: &mut KeyReader) {
    let name = reader.text("model.name").unwrap_or_default();
    let flavor = reader.text("model.flavor").unwrap_or_default();
    let configuration = format!("{name}_{flavor}")
        .to_ascii_lowercase()
        .replace(['.', '-'], "_");
    let found = export::torchtitan_model(&configuration);
    reader.model("model.flavor", &format!("{name} {flavor}"), found);
    // Converters that replace layers.
    match reader.value("model.converters") {
        Some(Document::List(converters)) if converters.as_slice() == ["float8".into()] => {
            reader.set("training.fp8", "on");
        }
        Some(Document::List(converters)) if converters.is_empty() => {}
        Some(_) => reader.mark_unused("model.converters"),
        None => {}
    }
}

fn precision(reader: &mut KeyReader) {
    let weights = reader.text("training.dtype").unwrap_or("float32");
    let compute = reader
        .text("training.mixed_precision_param")
        .unwrap_or("bfloat16");
    match (weights, compute) {
        ("bfloat16", "bfloat16") => reader.set("training.precision", "bf16"),
        ("float32", "bfloat16") => reader.set("training.precision", "amp-bf16"),
        ("float32", "float32") => reader.set("training.precision", "fp32"),
        _ => reader.mark_unused("training.dtype"),
    }
    match reader.text("training.mixed_precision_reduce") {
        Some("bfloat16") => reader.set("parallel.reduce_dtype", "bf16"),
        Some("float32") => reader.set("parallel.reduce_dtype", "fp32"),
        Some(_) => reader.mark_unused("training.mixed_precision_reduce"),
        None => {}
    }
}

fn optimizer(reader: &mut KeyReader) {
    let implementation = reader.text("optimizer.implementation").unwrap_or("fused");
    match (
        reader.text("optimizer.name").unwrap_or("AdamW"),
        implementation,
    ) {
        ("Adam" | "AdamW", "fused") => reader.set("training.optimizer", "adamw-fused"),
        ("Adam" | "AdamW", "foreach") => reader.set("training.optimizer", "adamw"),
        ("Adam" | "AdamW", "for-loop") => reader.set("training.optimizer", "adamw-loop"),
        _ => reader.mark_unused("optimizer.name"),
    }
    reader.copy(
        "optimizer.early_step_in_backward",
        "training.optimizer_in_backward",
    );
}

fn checkpointing(reader: &mut KeyReader) {
    let option = reader.value("activation_checkpoint.selective_ac_option");
    match reader
        .text("activation_checkpoint.mode")
        .unwrap_or("selective")
    {
        "none" => reader.set("training.checkpointing", "none"),
        "full" => reader.set("training.checkpointing", "layers"),
        "selective" => match option {
            Some(Document::Text(option)) if option == "op" => {
                reader.set("training.checkpointing", "keep-half");
            }
            // The default is "2" (torchtitan/config/job_config.py, `ActivationCheckpoint`).
            None => {
                reader.set("training.checkpointing", "layers");
                reader.set("training.checkpoint_every", "2");
            }
            // One in so many layers is recomputed.
            Some(Document::Text(every)) if every.parse::<u16>().is_ok_and(|every| every > 0) => {
                reader.set("training.checkpointing", "layers");
                reader.set("training.checkpoint_every", every);
            }
            Some(_) => reader.mark_unused("activation_checkpoint.selective_ac_option"),
        },
        _ => reader.mark_unused("activation_checkpoint.mode"),
    }
}

/// How the GPUs share the work.
fn layout(reader: &mut KeyReader) {
    let mut degree = |name: &str| match reader.value(&format!("parallelism.{name}_degree")) {
        Some(Document::Int(degree)) => *degree,
        _ => 1,
    };
    let replicas = degree("data_parallel_replicate").clamp(1, 100_000);
    let shards = degree("data_parallel_shard");
    let others = ["tensor_parallel", "pipeline_parallel", "context_parallel"];
    let alone = others.into_iter().fold(replicas, |gpus, name| {
        gpus.saturating_mul(degree(name).clamp(1, 100_000))
    });
    let gpus = if shards < 0 {
        // As many as are left of those it is started with: `run_train.sh` starts eight.
        let gpus = if 8 % alone == 0 { 8 } else { alone };
        reader.imported.notes.push(format!(
            "data_parallel_shard_degree uses all available GPUs: {gpus} are assumed, set hardware.gpus"
        ));
        gpus
    } else {
        alone.saturating_mul(shards.max(1))
    };
    reader.set("hardware.gpus", &gpus.to_string());
    for (name, field) in [
        ("tensor_parallel", "parallel.tp"),
        ("pipeline_parallel", "parallel.pp"),
        ("context_parallel", "parallel.cp"),
        ("expert_parallel", "parallel.ep"),
    ] {
        reader.copy(&format!("parallelism.{name}_degree"), field);
    }
    let sharded = gpus > alone;
    match (sharded, replicas) {
        (true, 1) => reader.set("parallel.strategy", "fsdp2"),
        (true, _) => reader.set("parallel.strategy", "hsdp"),
        (false, _) => reader.set("parallel.strategy", "ddp"),
    }
    match reader.text("parallelism.fsdp_reshard_after_forward") {
        Some("never") => reader.set("parallel.reshard", "off"),
        Some("always") => reader.set("parallel.reshard", "on"),
        Some("default") | None => {}
        Some(_) => reader.mark_unused("parallelism.fsdp_reshard_after_forward"),
    }
    if reader.switch("training.enable_cpu_offload") == Some(true) {
        reader.set("parallel.offload", "parameters");
    }
    if reader.imported.scenario.parallel.tp > 1 {
        // Both are on unless they are turned off.
        let split = reader.switch("parallelism.disable_loss_parallel") != Some(true);
        reader.set("parallel.loss_parallel", if split { "on" } else { "off" });
        reader.set("parallel.sequence_parallel", "on");
    }
    if reader.imported.scenario.parallel.pp > 1 {
        pipeline(reader);
    }
}

/// Gradients accumulate up to the global batch, if the file has one.
fn accumulation(reader: &mut KeyReader) {
    let Some(Document::Int(samples)) = reader.value("training.global_batch_size") else {
        return;
    };
    let Ok(samples) = u64::try_from(*samples) else {
        return;
    };
    let scenario = &reader.imported.scenario;
    let at_once = scenario
        .data
        .micro_batch
        .saturating_mul(scenario.replicas());
    let passes = samples / at_once.max(1);
    if passes > 1 {
        reader.set("training.accumulation", &passes.to_string());
    }
}

/// The schedule of a pipeline, and the micro-batches into which it cuts a batch.
fn pipeline(reader: &mut KeyReader) {
    let schedule = reader
        .text("parallelism.pipeline_parallel_schedule")
        .unwrap_or("1F1B");
    let known = match schedule {
        "GPipe" => "gpipe",
        "1F1B" => "1f1b",
        "Interleaved1F1B" => "interleaved",
        "LoopedBFS" => "bfs",
        "InterleavedZeroBubble" => "zero-bubble",
        "ZBVZeroBubble" => "zbv",
        "DualPipeV" => "dualpipev",
        _ => return reader.mark_unused("parallelism.pipeline_parallel_schedule"),
    };
    reader.set("parallel.schedule", known);
    let size = match reader.value("parallelism.pipeline_parallel_microbatch_size") {
        Some(Document::Int(size)) => u64::try_from(*size).unwrap_or(1).max(1),
        _ => 1,
    };
    let batch = reader.imported.scenario.data.micro_batch;
    reader.set(
        "training.accumulation",
        &batch.div_ceil(size).max(1).to_string(),
    );
    reader.set("data.micro_batch", &size.min(batch).max(1).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_base::document::toml;
    use headroom_scenario::{Draft, resolve::resolve, settings};

    #[track_caller]
    fn check(text: &str, changes: &[(&str, &str)], unused_keys: &[&str]) {
        let document = toml::read(text).unwrap();
        assert!(recognises(&document));
        let imported = read(&document);
        let mut expected = Draft::default();
        for (name, value) in changes {
            let setting = settings::named(name).unwrap();
            expected.change(setting, value).unwrap();
        }
        let expected = resolve(&expected).scenario;
        assert_eq!(
            (imported.scenario, imported.problems),
            (expected, vec![]),
            "{text}"
        );
        assert_eq!(imported.unused_keys, unused_keys);
        assert_eq!(imported.question, None);
    }

    #[test]
    fn a_configuration_of_torchtitan_is_read() {
        check(
            "[job]\ndump_folder = \"./outputs\"\n[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = []\n[optimizer]\nname = \"AdamW\"\n\
             lr = 3e-4\n[training]\nbatch_size = 1\nseq_len = 8192\nmax_norm = 1.0\n[parallelism]\ndata_parallel_replicate_degree = 1\n\
             data_parallel_shard_degree = -1\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = 'selective'\n\
             selective_ac_option = 'op'\n[float8]\nfilter_fqns = \"output\"",
            &[
                ("trainer", "torchtitan"),
                ("loss", "library"),
                ("model", "llama-3.1-8b"),
                ("mb", "1"),
                ("seq", "8192"),
                ("clip", "on"),
                ("precision", "amp-bf16"),
                ("optim", "adamw-fused"),
                ("ckpt", "keep-half"),
                ("gpus", "8"),
                ("tp", "2"),
                ("par", "fsdp2"),
                ("loss_parallel", "on"),
                ("sp", "on"),
            ],
            &["float8.filter_fqns"],
        );
        check(
            "[model]\nname = \"qwen3\"\nflavor = \"0.6B\"\n[training]\nlocal_batch_size = 4\nseq_len = 4096\ndtype = \"bfloat16\"\n\
             [parallelism]\ndata_parallel_shard_degree = 1\n[activation_checkpoint]\nmode = \"none\"\n[compile]\nenable = true\n\
             components = [\"model\", \"loss\"]\n[optimizer]\nimplementation = \"foreach\"\nearly_step_in_backward = true",
            &[
                ("trainer", "torchtitan"),
                ("loss", "library"),
                ("model", "qwen3-0.6b"),
                ("mb", "4"),
                ("seq", "4096"),
                ("precision", "bf16"),
                ("optim", "adamw"),
                ("optim_in_backward", "on"),
                ("ckpt", "none"),
                ("compile", "layers"),
            ],
            &[],
        );
    }

    #[test]
    fn a_flavor_that_is_not_known_is_asked_for() {
        let text =
            "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n[training]\nseq_len = 2048";
        let imported = read(&toml::read(text).unwrap());
        let question = imported.question.unwrap().to_string();
        assert!(
            question.starts_with("model.flavor is `llama3 debugmodel`"),
            "{question}"
        );
    }
}
