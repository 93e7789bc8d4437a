//! A configuration file of torchtitan (TOML, until its releases took configurations in Python).

use super::Imported;
use super::take::Take;
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

/// The default scenario with what the file says, and what the program does unasked.
pub fn read(document: &Document) -> Imported {
    let mut take = Take::new(document);
    take.trainer("torchtitan");
    // Such files are of releases before 0.3, which computed all logits at once.
    take.set("training.loss", "library");
    model(&mut take);
    for key in ["batch_size", "local_batch_size"] {
        take.copy(&format!("training.{key}"), "data.micro_batch");
    }
    take.copy("training.seq_len", "data.sequence");
    take.clip("training.max_norm");
    precision(&mut take);
    optimizer(&mut take);
    checkpointing(&mut take);
    let compiled = [
        take.switch("compile.enable"),
        take.switch("training.compile"),
    ];
    let parts = take.value("compile.components");
    let layers = !matches!(parts, Some(Document::List(parts)) if !parts.contains(&"model".into()));
    if compiled.contains(&Some(true)) && layers {
        take.set("training.compile", "layers");
    }
    layout(&mut take);
    accumulation(&mut take);
    take.finish(WITHOUT_EFFECT)
}

/// Tables and keys that say nothing of memory.
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
fn model(take: &mut Take) {
    let name = take.text("model.name").unwrap_or_default();
    let flavor = take.text("model.flavor").unwrap_or_default();
    let configuration = format!("{name}_{flavor}")
        .to_ascii_lowercase()
        .replace(['.', '-'], "_");
    let found = export::torchtitan_model(&configuration);
    take.model("model.flavor", &format!("{name} {flavor}"), found);
    // What a converter puts in place of layers.
    match take.value("model.converters") {
        Some(Document::List(converters)) if converters.as_slice() == ["float8".into()] => {
            take.set("training.fp8", "on");
        }
        Some(Document::List(converters)) if converters.is_empty() => {}
        Some(_) => take.leave("model.converters"),
        None => {}
    }
}

fn precision(take: &mut Take) {
    let weights = take.text("training.dtype").unwrap_or("float32");
    let compute = take
        .text("training.mixed_precision_param")
        .unwrap_or("bfloat16");
    match (weights, compute) {
        ("bfloat16", "bfloat16") => take.set("training.precision", "bf16"),
        ("float32", "bfloat16") => take.set("training.precision", "amp-bf16"),
        ("float32", "float32") => take.set("training.precision", "fp32"),
        _ => take.leave("training.dtype"),
    }
    match take.text("training.mixed_precision_reduce") {
        Some("bfloat16") => take.set("parallel.reduce_dtype", "bf16"),
        Some("float32") => take.set("parallel.reduce_dtype", "fp32"),
        Some(_) => take.leave("training.mixed_precision_reduce"),
        None => {}
    }
}

fn optimizer(take: &mut Take) {
    let implementation = take.text("optimizer.implementation").unwrap_or("fused");
    match (
        take.text("optimizer.name").unwrap_or("AdamW"),
        implementation,
    ) {
        ("Adam" | "AdamW", "fused") => take.set("training.optimizer", "adamw-fused"),
        ("Adam" | "AdamW", "foreach") => take.set("training.optimizer", "adamw"),
        ("Adam" | "AdamW", "for-loop") => take.set("training.optimizer", "adamw-loop"),
        _ => take.leave("optimizer.name"),
    }
    take.copy(
        "optimizer.early_step_in_backward",
        "training.optimizer_in_backward",
    );
}

fn checkpointing(take: &mut Take) {
    let option = take.value("activation_checkpoint.selective_ac_option");
    match take
        .text("activation_checkpoint.mode")
        .unwrap_or("selective")
    {
        "none" => take.set("training.checkpointing", "none"),
        "full" => take.set("training.checkpointing", "layers"),
        "selective" => match option {
            None => take.set("training.checkpointing", "keep-half"),
            Some(Document::Text(option)) if option == "op" => {
                take.set("training.checkpointing", "keep-half");
            }
            // Every so many layers one is made again.
            Some(Document::Text(every)) if every.parse::<u16>().is_ok_and(|every| every > 0) => {
                take.set("training.checkpointing", "layers");
                take.set("training.checkpoint_every", every);
            }
            Some(_) => take.leave("activation_checkpoint.selective_ac_option"),
        },
        _ => take.leave("activation_checkpoint.mode"),
    }
}

/// How the GPUs share the work.
fn layout(take: &mut Take) {
    let mut degree = |name: &str| match take.value(&format!("parallelism.{name}_degree")) {
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
        take.imported.notes.push(format!(
            "data_parallel_shard_degree is all the GPUs that there are: {gpus} are taken, set hardware.gpus"
        ));
        gpus
    } else {
        alone.saturating_mul(shards.max(1))
    };
    take.set("hardware.gpus", &gpus.to_string());
    for (name, field) in [
        ("tensor_parallel", "parallel.tp"),
        ("pipeline_parallel", "parallel.pp"),
        ("context_parallel", "parallel.cp"),
        ("expert_parallel", "parallel.ep"),
    ] {
        take.copy(&format!("parallelism.{name}_degree"), field);
    }
    let sharded = gpus > alone;
    match (sharded, replicas) {
        (true, 1) => take.set("parallel.strategy", "fsdp2"),
        (true, _) => take.set("parallel.strategy", "hsdp"),
        (false, _) => take.set("parallel.strategy", "ddp"),
    }
    match take.text("parallelism.fsdp_reshard_after_forward") {
        Some("never") => take.set("parallel.reshard", "off"),
        Some("always") => take.set("parallel.reshard", "on"),
        Some("default") | None => {}
        Some(_) => take.leave("parallelism.fsdp_reshard_after_forward"),
    }
    if take.switch("training.enable_cpu_offload") == Some(true) {
        take.set("parallel.offload", "parameters");
    }
    if take.imported.scenario.parallel.tp > 1 {
        // Both are on unless they are turned off.
        let split = take.switch("parallelism.disable_loss_parallel") != Some(true);
        take.set("parallel.loss_parallel", if split { "on" } else { "off" });
        take.set("parallel.sequence_parallel", "on");
    }
    if take.imported.scenario.parallel.pp > 1 {
        pipeline(take);
    }
}

/// Micro-batches are added up until the global batch is reached, where the file names one.
fn accumulation(take: &mut Take) {
    let Some(Document::Int(samples)) = take.value("training.global_batch_size") else {
        return;
    };
    let Ok(samples) = u64::try_from(*samples) else {
        return;
    };
    let scenario = &take.imported.scenario;
    let at_once = scenario
        .data
        .micro_batch
        .saturating_mul(scenario.replicas());
    let passes = samples / at_once.max(1);
    if passes > 1 {
        take.set("training.accumulation", &passes.to_string());
    }
}

/// The schedule of a pipeline, and the micro-batches into which it cuts a batch.
fn pipeline(take: &mut Take) {
    let schedule = take
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
        _ => return take.leave("parallelism.pipeline_parallel_schedule"),
    };
    take.set("parallel.schedule", known);
    let size = match take.value("parallelism.pipeline_parallel_microbatch_size") {
        Some(Document::Int(size)) => u64::try_from(*size).unwrap_or(1).max(1),
        _ => 1,
    };
    let batch = take.imported.scenario.data.micro_batch;
    take.set(
        "training.accumulation",
        &batch.div_ceil(size).max(1).to_string(),
    );
    take.set("data.micro_batch", &size.min(batch).max(1).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_base::document::toml;
    use headroom_scenario::{Scenario, settings, stack};

    #[track_caller]
    fn check(text: &str, changes: &[(&str, &str)], not_taken: &[&str]) {
        let document = toml::read(text).unwrap();
        assert!(recognises(&document));
        let imported = read(&document);
        let mut expected = Scenario::default();
        for (name, value) in changes {
            stack::choose(settings::named(name).unwrap(), &mut expected, value).unwrap();
        }
        assert_eq!(
            (imported.scenario, imported.problems),
            (expected, vec![]),
            "{text}"
        );
        assert_eq!(imported.not_taken, not_taken);
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
