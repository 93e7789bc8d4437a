//! Published training speeds: a run in settings, and how many samples, tokens or steps it made in a second.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::score::{Report, Row, summary};
use crate::catalog::{self, ModelEntry};
use crate::estimate::Prediction;
use crate::scenario::{Case, ContextParallel, Scenario, Trainer, settings};

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

/// The same without what these sources say of rates.
fn scored(record: &Record, groups: [&str; 2], left_out: &dyn Fn(&str) -> bool) -> Row {
    let group = groups[usize::from(record.gpus != 1)];
    let micros = |seconds: f64| (seconds * 1e6).round() as u64;
    let found = scenario(record).and_then(|scenario| {
        let truth = published(record, &scenario)?;
        let step = Prediction::new(scenario).step_without(left_out);
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

/// Whether a source of the catalogue's rates is where a record was published: both name the project.
fn is_source(record: &Record, source: &str) -> bool {
    let repository = record.source.strip_prefix("github:");
    let repository = repository.and_then(|rest| rest.split('@').next());
    let project = repository.and_then(|repository| repository.rsplit('/').next());
    let mut words = source.split([' ', '/', ':', ',', '\'']);
    project.is_some_and(|project| words.any(|word| word == project))
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

/// The run as a scenario, or what of it no setting expresses.
fn scenario(record: &Record) -> Result<Scenario, String> {
    if let Some(reason) = record.settings.get("cannot").and_then(Value::as_str) {
        return Err(reason.into());
    }
    if record.compiled {
        return Err("torch.compile, whose fused kernels no setting says".into());
    }
    let mut scenario = Scenario::default();
    let mut set = |path: &str, value: &str| {
        settings::set(&mut scenario, path, value).map_err(|problem| problem.to_string())
    };
    let name = record.model.split(" cut to ").next();
    let model = name.and_then(catalog::model_named);
    let model = model.ok_or("the model is not in the catalogue")?;
    set("model.id", model.id)?;
    set("hardware.gpu", card(record).ok_or("no GPU")?)?;
    set("hardware.gpus", &record.gpus.to_string())?;
    set("hardware.nodes", &record.nodes.to_string())?;
    for name in ["torch", "transformers", "peft"] {
        if let Some(version) = record.stack.get(name) {
            let minor: Vec<&str> = version.split('.').take(2).collect();
            // Versions older than any listed are left to the default.
            let _ = set(&format!("stack.{name}"), &minor.join("."));
        }
    }
    let mut dims: Vec<String> = Vec::new();
    for (name, value) in &record.settings {
        match (name.as_str(), value) {
            ("image", _) => dims.push(format!("img={}", text(value))),
            ("dims", Value::Object(sizes)) => {
                dims.extend(sizes.iter().map(|(name, n)| format!("{name}={}", text(n))));
            }
            ("lora", Value::Object(adapters)) => {
                set("training.lora", "on")?;
                for (name, value) in adapters {
                    set(&format!("training.lora.{name}"), &text(value))?;
                }
            }
            ("parallel", Value::Object(layout)) => {
                for (name, value) in layout {
                    // Virtual stages and overlapped tensor parallelism: no setting expresses them yet.
                    if !matches!(name.as_str(), "vp" | "async_tp") {
                        set(&format!("parallel.{name}"), &text(value))?;
                    }
                }
            }
            // What feeds the run, and heads of a few classes, take no time that counts.
            ("loader" | "head" | "base" | "note", _) => {}
            _ => {
                let has_fp8 = record.settings.get("fp8") == Some(&Value::Bool(true));
                for (path, value) in setting(name, &text(value), model, has_fp8)? {
                    set(&path, &value)?;
                }
            }
        }
    }
    if !dims.is_empty() {
        set("model.dims", &dims.join(","))?;
    }
    if scenario.stack.trainer == Trainer::Megatron {
        // As the launchers of the records do (`--sequence-parallel`, `CP_COMM_TYPE:-a2a`).
        scenario.parallel.sequence_parallel = scenario.parallel.tp > 1;
        scenario.parallel.context = ContextParallel::Ulysses;
    }
    match scenario.check().first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(scenario),
    }
}

/// The settings of the scenario that one of the record comes to.
fn setting(
    name: &str,
    value: &str,
    model: &ModelEntry,
    has_fp8: bool,
) -> Result<Vec<(String, String)>, String> {
    let unknown = || Err(format!("{name} `{value}`, which no setting says"));
    let value = match (name, value) {
        ("micro_batch" | "sequence" | "padding_mask", _) => {
            return Ok(vec![(format!("data.{name}"), value.into())]);
        }
        ("packed", _) => return Ok(vec![("data.padding_mask".into(), "off".into())]),
        ("checkpointing", "every2") => {
            let every = ("training.checkpoint_every".into(), "2".into());
            return Ok(vec![
                ("training.checkpointing".into(), "layers".into()),
                every,
            ]);
        }
        // Apex' O2 keeps fp16 weights and fp32 masters, and what is in the type of Megatron and FSDP is in bf16.
        ("precision", "apex-O2-fp16") => "fp16",
        ("precision", "megatron-bf16" | "fsdp-bf16") => "bf16",
        ("precision", "fp32-conv-tf32") => "fp32",
        ("precision", "tf32") => return unknown(),
        ("loss", "fused-cross-entropy") => "liger",
        ("loss", "chunked") => "chunked-loss",
        // Fused kernels of the Foundation Model Stack do what Liger's do.
        ("kernels", "foak") => "liger",
        // Transformer Engine is what Megatron-Core builds its layers of: those of Llama's architecture are followed.
        ("kernels", "te") if model.arch == "llama" && !has_fp8 => {
            return Ok(vec![("stack.trainer".into(), "megatron".into())]);
        }
        ("kernels", "te") => return unknown(),
        (_, value) => value,
    };
    Ok(vec![(format!("training.{name}"), value.into())])
}

/// The card of a record. torchtitan's tables are of H100s with slower memory and a limit of 500 W, as they say; torchao's of products in
/// eight bits without compilation were made in torchtitan too (its pull request 778).
fn card(record: &Record) -> Option<&str> {
    let card = record.gpu.as_deref()?;
    let limited = record.note.contains("HBM2e") || record.source.contains("float8nocompile");
    Some(if limited && card.starts_with("h100-sxm5") {
        "h100-hbm2e-96gb"
    } else {
        card
    })
}

/// A value as settings are written.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "on".into(),
        Value::Bool(false) => "off".into(),
        other => other.to_string(),
    }
}

/// Adds the sums by architecture of the GPU, by kind of model and by precision, and with sources left out.
pub fn broken_down(report: &mut Report, records: &[Record]) {
    let groups = [
        "one GPU, its source left out",
        "several GPUs, their source left out",
    ];
    let without = records
        .iter()
        .map(|record| scored(record, groups, &|source| is_source(record, source)));
    let without: Vec<Row> = without.collect();
    let groups = without.iter().map(|row| (row.group.clone(), row));
    let mut sums: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for (group, row) in groups {
        sums.entry(group).or_default().push(row);
    }
    for (record, row) in records.iter().zip(&report.rows) {
        let precision = record.settings.get("precision").map_or("null".into(), text);
        for name in [architecture(record), record.family.clone(), precision] {
            sums.entry(name).or_default().push(row);
        }
    }
    let sums = sums.into_iter().map(|(name, rows)| (name, summary(&rows)));
    report.by.extend(sums.collect::<Vec<_>>());
}

fn architecture(record: &Record) -> String {
    let mut scenario = Scenario::default();
    let gpu = record.gpu.as_deref().unwrap_or_default();
    let _ = settings::set(&mut scenario, "hardware.gpu", gpu);
    let architecture = Case::of(&scenario).gpu.map(|gpu| gpu.architecture);
    architecture.unwrap_or("no GPU named").to_string()
}
