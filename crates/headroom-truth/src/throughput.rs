//! Published training speeds: a run in settings, and how many samples, tokens or steps it made in a second.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::score::{Report, Row, summary};
use headroom_catalog as catalog;
use headroom_core::estimate::Prediction;
use headroom_scenario::{Case, Compile, ContextParallel, Scenario, Trainer, settings};

#[derive(Debug, Deserialize)]
pub struct Record {
    #[serde(default)]
    id: String,
    model: String,
    #[serde(default)]
    gpu: Option<String>,
    gpus: u64,
    nodes: u64,
    settings: Map<String, Value>,
    metric: String,
    value: f64,
    #[serde(default)]
    stack: BTreeMap<String, String>,
    #[serde(default)]
    compiled: bool,
    #[serde(default)]
    family: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    note: String,
}

/// The score of a record: a step in microseconds.
pub fn row(record: &Record) -> Row {
    scored(record, ["one GPU", "several GPUs"], &|_| false)
}

/// The same without the rates from these sources.
fn scored(record: &Record, groups: [&str; 2], left_out: &dyn Fn(&str) -> bool) -> Row {
    let group = groups[usize::from(record.gpus != 1)];
    let micros = |seconds: f64| (seconds * 1e6).round() as u64;
    let found = scenario(record).and_then(|scenario| {
        let truth = published(record, &scenario)?;
        let step = Prediction::new(scenario).step_time_without(left_out);
        Ok((truth, step.map_err(|reason| reason.to_string())?))
    });
    match found {
        Err(reason) => Row::unsupported(&record.id, group, reason),
        Ok((truth, step)) => Row {
            inside: Some(step.low.get() <= truth && truth <= step.high.get()),
            ..Row::scored(
                &record.id,
                group,
                micros(truth),
                micros(step.expected.get()),
            )
        },
    }
}

/// Whether a source of the catalogue's rates is the project that published a record.
fn is_source(record: &Record, source: &str) -> bool {
    let repository = record.source.strip_prefix("github:");
    let repository = repository.and_then(|rest| rest.split('@').next());
    let project = repository.and_then(|repository| repository.rsplit('/').next());
    let mut terms = source.split([' ', '/', ':', ',', '\'']);
    project.is_some_and(|project| terms.any(|term| term == project))
}

/// The published figure as seconds of an optimizer step.
fn published(record: &Record, scenario: &Scenario) -> Result<f64, String> {
    let value = record.value;
    if value <= 0.0 {
        return Err("no figure".into());
    }
    let samples = scenario.effective_batch() as f64;
    let tokens = samples * scenario.data.sequence as f64;
    let gpus = f64::from(scenario.hardware.gpus);
    Ok(match record.metric.as_str() {
        "seconds_per_step" => value,
        "seconds_per_micro_batch" => value * scenario.training.accumulation as f64,
        "steps_per_second" => 1.0 / value,
        "samples_per_second" | "images_per_second" => samples / value,
        "tokens_per_second" => tokens / value,
        "tokens_per_second_per_gpu" => tokens / value / gpus,
        metric => return Err(format!("the metric `{metric}` is not known")),
    })
}

/// The run as a scenario, or the reason that no settings express it.
fn scenario(record: &Record) -> Result<Scenario, String> {
    if let Some(reason) = record.settings.get("cannot").and_then(Value::as_str) {
        return Err(reason.into());
    }
    let mut scenario = Scenario::default();
    let mut set = |path: &str, value: &str| {
        settings::set(&mut scenario, path, value).map_err(|problem| problem.to_string())
    };
    // A record of a model that its trainer defines by sizes names the network that these are sizes of: llm-foundry's MPT does what
    // OPT does, in PyTorch's attention kernels, which transformers' MPT does not call.
    let base = record.settings.get("base").and_then(Value::as_str);
    let name = base.or(record.model.split(" cut to ").next());
    let model = name.and_then(catalog::model_named);
    let model = model.ok_or("the model is not in the catalogue")?;
    set("model.id", model.id)?;
    set("hardware.gpu", gpu_id(record).ok_or("no GPU")?)?;
    set("hardware.gpus", &record.gpus.to_string())?;
    set("hardware.nodes", &record.nodes.to_string())?;
    for name in ["torch", "transformers", "peft"] {
        if let Some(version) = record.stack.get(name) {
            let minor: Vec<&str> = version.split('.').take(2).collect();
            // Versions older than any listed are left to the default.
            let _ = set(&format!("stack.{name}"), &minor.join("."));
        }
    }
    if record.settings.contains_key("lora") {
        set("training.lora", "on")?;
    }
    let has_fp8 = record.settings.get("fp8") == Some(&Value::Bool(true));
    let mut dims: Vec<String> = Vec::new();
    for (name, value) in &flat(&record.settings) {
        if let Some(dim) = name.strip_prefix("dims.") {
            dims.push(format!("{dim}={value}"));
            continue;
        }
        let own = match name.as_str() {
            "micro_batch" | "sequence" | "padding_mask" => format!("data.{name}"),
            layout if layout.starts_with("parallel.") => name.clone(),
            _ => format!("training.{name}"),
        };
        let (path, value) = match (name.as_str(), value.as_str()) {
            ("image", _) => {
                dims.push(format!("img={value}"));
                continue;
            }
            // The input pipeline and heads of a few classes take no time that counts; no setting expresses virtual stages
            // and overlapped tensor parallelism yet.
            ("loader" | "head" | "base" | "note" | "parallel.vp" | "parallel.async_tp", _) => {
                continue;
            }
            ("packed", _) => ("data.padding_mask", "off"),
            ("checkpointing", "every2") => {
                set("training.checkpoint_every", "2")?;
                (&*own, "layers")
            }
            // Apex' O2 keeps fp16 weights and fp32 masters, and what is in the type of Megatron and FSDP is in bf16.
            ("precision", "apex-O2-fp16") => (&*own, "fp16"),
            ("precision", "megatron-bf16" | "fsdp-bf16") => (&*own, "bf16"),
            ("precision", "fp32-conv-tf32") => (&*own, "fp32"),
            ("loss", "chunked") => (&*own, "chunked-loss"),
            // Fused kernels of the Foundation Model Stack do what Liger's do.
            ("loss", "fused-cross-entropy") | ("kernels", "foak") => (&*own, "liger"),
            // Megatron-Core builds its layers of Transformer Engine: those of Llama's architecture are followed.
            ("kernels", "te") if model.arch == "llama" && !has_fp8 => ("stack.trainer", "megatron"),
            ("kernels", "te") | ("precision", "tf32") => {
                return Err(format!("{name} `{value}`, which no setting says"));
            }
            (_, value) => (&*own, value),
        };
        set(path, value)?;
    }
    if !dims.is_empty() {
        set("model.dims", &dims.join(","))?;
    }
    if scenario.stack.trainer == Trainer::Megatron {
        // As the launchers of the records do (`--sequence-parallel`, `CP_COMM_TYPE:-a2a`).
        scenario.parallel.sequence_parallel = scenario.parallel.tp > 1;
        scenario.parallel.context = ContextParallel::Ulysses;
    }
    if record
        .stack
        .get("trainer")
        .is_some_and(|trainer| trainer == "torchtitan")
    {
        // Its tensor parallelism is always with sequence parallelism, and with loss parallelism unless that is switched off
        // (torchtitan/models/llama3/infra/parallelize.py, `disable_loss_parallel`).
        scenario.parallel.sequence_parallel = scenario.parallel.tp > 1;
        scenario.parallel.loss_parallel = scenario.parallel.tp > 1;
        // Its own network, where it has one of the model.
        let mut own = scenario.clone();
        own.stack.trainer = Trainer::Torchtitan;
        if own.check().is_empty() {
            scenario = own;
        }
    }
    let accepted = |scenario: Scenario| match scenario.check().first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(scenario),
    };
    if record.compiled {
        // Most compile block by block. A model whose fused kernels are not known runs at least as fast as its eager ones.
        let mut compiled = scenario.clone();
        compiled.training.compile = Compile::Layers;
        if let Ok(compiled) = accepted(compiled) {
            return Ok(compiled);
        }
    }
    accepted(scenario)
}

/// The catalogue id of a record's GPU. torchtitan's tables state H100s with slower memory and a limit of 500 W; torchao's tables of
/// eight-bit products without compilation were made in torchtitan too (its pull request 778).
fn gpu_id(record: &Record) -> Option<&str> {
    let gpu = record.gpu.as_deref()?;
    let limited = record.note.contains("HBM2e") || record.source.contains("float8nocompile");
    Some(if limited && gpu.starts_with("h100-sxm5") {
        "h100-hbm2e-96gb"
    } else {
        gpu
    })
}

/// Names and values, those of nested objects as `parallel.tp`.
fn flat(settings: &Map<String, Value>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, value) in settings {
        let value = match value {
            Value::Object(inner) => {
                let inner = flat(inner).into_iter();
                all.extend(inner.map(|(of, value)| (format!("{name}.{of}"), value)));
                continue;
            }
            Value::String(text) => text.clone(),
            Value::Bool(on) => (if *on { "on" } else { "off" }).into(),
            other => other.to_string(),
        };
        all.push((name.clone(), value));
    }
    all
}

/// Adds summaries by GPU architecture, kind of model and precision, and those without the record's own source.
pub fn broken_down(report: &mut Report, records: &[Record]) {
    let groups = [
        "one GPU, its source left out",
        "several GPUs, their source left out",
    ];
    let without = records
        .iter()
        .map(|record| scored(record, groups, &|source| is_source(record, source)));
    let without: Vec<Row> = without.collect();
    let mut sums: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &without {
        sums.entry(&row.group).or_default().push(row);
    }
    for (record, row) in records.iter().zip(&report.rows) {
        let precision = record.settings.get("precision").and_then(Value::as_str);
        let names = [
            architecture(record),
            &record.family,
            precision.unwrap_or("null"),
        ];
        for name in names {
            sums.entry(name).or_default().push(row);
        }
    }
    let sums = sums
        .into_iter()
        .map(|(name, rows)| (name.to_string(), summary(&rows)));
    let mut sums: Vec<_> = sums.collect();
    for (name, rows) in [
        ("ratios of pairs", &report.rows),
        ("ratios of pairs, their source left out", &without),
    ] {
        let ratios = ratios(records, rows);
        let ratios: Vec<&Row> = ratios.iter().collect();
        sums.push((name.to_string(), summary(&ratios)));
    }
    report.by.extend(sums);
}

/// How one change changes the speed, of all pairs of a source's records that differ in one setting: what advice compares. The rows
/// are those of the records, and a ratio is in millionths.
fn ratios(records: &[Record], rows: &[Row]) -> Vec<Row> {
    let known: Vec<(&Record, BTreeMap<String, String>, u64, u64)> = records
        .iter()
        .zip(rows)
        .filter_map(|(record, row)| {
            let (truth, predicted) = (row.truth?, row.predicted?);
            (truth > 0 && predicted > 0).then(|| (record, described(record), truth, predicted))
        })
        .collect();
    let mut all = Vec::new();
    for (at, (record, settings, truth, predicted)) in known.iter().enumerate() {
        for (other, others, other_truth, other_predicted) in &known[at + 1..] {
            if record.source != other.source || differences(settings, others) != 1 {
                continue;
            }
            let ratio = |one: u64, two: u64| (one as f64 / two as f64 * 1e6).round() as u64;
            let id = format!("{} / {}", record.id, other.id);
            let (truth, predicted) = (
                ratio(*truth, *other_truth),
                ratio(*predicted, *other_predicted),
            );
            all.push(Row::scored(&id, "ratios of pairs", truth, predicted));
        }
    }
    all
}

/// A record as names and values.
fn described(record: &Record) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = flat(&record.settings).into_iter().collect();
    let gpus = [("gpus", record.gpus), ("nodes", record.nodes)];
    all.extend(gpus.map(|(name, count)| (name.to_string(), count.to_string())));
    all.insert("gpu".into(), record.gpu.clone().unwrap_or_default());
    all.insert("model".into(), record.model.clone());
    all.insert("metric".into(), record.metric.clone());
    all.insert("compiled".into(), record.compiled.to_string());
    all
}

/// The number of names whose values differ.
fn differences(one: &BTreeMap<String, String>, two: &BTreeMap<String, String>) -> usize {
    let changed = one
        .iter()
        .filter(|(name, value)| two.get(*name) != Some(*value));
    let added = two.keys().filter(|name| !one.contains_key(*name));
    changed.count() + added.count()
}

fn architecture(record: &Record) -> &'static str {
    let mut scenario = Scenario::default();
    let gpu = record.gpu.as_deref().unwrap_or_default();
    let _ = settings::set(&mut scenario, "hardware.gpu", gpu);
    let architecture = Case::of(&scenario).gpu.map(|gpu| gpu.architecture);
    architecture.unwrap_or("no GPU named")
}
