//! Published training speeds: a run in settings, and how many samples, tokens or steps it made in a second.

use std::collections::BTreeMap;

use serde_json::Value;

use super::score::{Report, Row, summary};
use headroom_catalog as catalog;
use headroom_core::estimate::Prediction;
use headroom_scenario::{Case, ContextParallel, Scenario, Trainer, settings};

/// Whether the record is of a training speed.
pub fn is_record(record: &Value) -> bool {
    record["metric"].is_string() && record["value"].is_number() && record["settings"].is_object()
}

/// The score of a record: a step in microseconds.
pub fn row(record: &Value, id: &str) -> Row {
    let group = match record["gpus"].as_u64() {
        Some(1) => "one GPU",
        _ => "several GPUs",
    };
    match step(record) {
        Err(reason) => Row::unsupported(id, group, reason),
        Ok(StepSeconds {
            truth,
            low,
            expected,
            high,
        }) => Row {
            inside: Some(low <= truth && truth <= high),
            ..Row::scored(id, group, micros(truth), micros(expected))
        },
    }
}

fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

/// A step's published and its predicted seconds.
struct StepSeconds {
    truth: f64,
    low: f64,
    expected: f64,
    high: f64,
}

fn step(record: &Value) -> Result<StepSeconds, String> {
    step_without(record, &|_| false)
}

/// The same where nothing is known from these sources.
fn step_without(record: &Value, left_out: &dyn Fn(&str) -> bool) -> Result<StepSeconds, String> {
    let scenario = scenario(record)?;
    let truth = published(record, &scenario)?;
    let prediction = Prediction::new(scenario);
    let step = prediction
        .step_without(left_out)
        .map_err(|reason| reason.to_string())?;
    Ok(StepSeconds {
        truth,
        low: step.low.get(),
        expected: step.expected.get(),
        high: step.high.get(),
    })
}

/// Whether a source of the catalogue's rates is where a record was published: both name the project.
fn is_source(record: &Value, source: &str) -> bool {
    let published = record["source"].as_str().unwrap_or_default();
    let repository = published.strip_prefix("github:");
    let repository = repository.and_then(|rest| rest.split('@').next());
    let project = repository.and_then(|repository| repository.rsplit('/').next());
    let mut words = source.split([' ', '/', ':', ',', '\'']);
    project.is_some_and(|project| words.any(|word| word == project))
}

/// Each record scored without what its own source said of rates.
fn left_out(records: &[Value]) -> Vec<Row> {
    let rows = records.iter().map(|record| {
        let group = match record["gpus"].as_u64() {
            Some(1) => "one GPU, its source left out",
            _ => "several GPUs, their source left out",
        };
        let id = record["id"].as_str().unwrap_or_default();
        match step_without(record, &|source| is_source(record, source)) {
            Err(reason) => Row::unsupported(id, group, reason),
            Ok(step) => Row {
                inside: Some(step.low <= step.truth && step.truth <= step.high),
                ..Row::scored(id, group, micros(step.truth), micros(step.expected))
            },
        }
    });
    rows.collect()
}

/// The published figure as seconds of an optimizer step.
fn published(record: &Value, scenario: &Scenario) -> Result<f64, String> {
    let value = record["value"].as_f64().filter(|value| *value > 0.0);
    let value = value.ok_or("no figure")?;
    let samples = scenario.effective_batch() as f64;
    let tokens = samples * scenario.data.sequence as f64;
    let gpus = f64::from(scenario.hardware.gpus);
    Ok(match record["metric"].as_str().unwrap_or_default() {
        "seconds_per_step" => value,
        "seconds_per_micro_batch" => value * scenario.training.accumulation as f64,
        "steps_per_second" => 1.0 / value,
        "samples_per_second" | "images_per_second" => samples / value,
        "tokens_per_second" => tokens / value,
        "tokens_per_second_per_gpu" => tokens / value / gpus,
        metric => return Err(format!("the metric `{metric}` is not known")),
    })
}

/// The run as a scenario, or what of it no setting says.
fn scenario(record: &Value) -> Result<Scenario, String> {
    let given = &record["settings"];
    if let Some(reason) = given["cannot"].as_str() {
        return Err(reason.into());
    }
    if record["compiled"] == Value::Bool(true) {
        return Err("torch.compile, whose fused kernels no setting says".into());
    }
    let mut scenario = Scenario::default();
    let mut set = |path: &str, value: &str| {
        settings::set(&mut scenario, path, value).map_err(|problem| problem.to_string())
    };
    let name = record["model"].as_str().ok_or("no model")?;
    let name = name.split(" cut to ").next().unwrap_or(name);
    let model = catalog::model_named(name).ok_or("the model is not in the catalogue")?;
    set("model.id", model.id)?;
    set("hardware.gpu", card(record).ok_or("no GPU")?)?;
    for key in ["gpus", "nodes"] {
        set(&format!("hardware.{key}"), &text(&record[key]))?;
    }
    for key in ["torch", "transformers", "peft"] {
        let version = record["stack"][key].as_str();
        let tuned = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
        if let Some(version) = version.map(tuned) {
            // Versions older than any listed are left to the default.
            let _ = set(&format!("stack.{key}"), &version);
        }
    }
    let fp8 = given["fp8"] == Value::Bool(true);
    let given = given.as_object().ok_or("no settings")?;
    let mut dims: Vec<String> = Vec::new();
    for (key, value) in given {
        let value_text = text(value);
        let taken = match key.as_str() {
            "micro_batch" | "sequence" => set(&format!("data.{key}"), &value_text),
            "padding_mask" => set("data.padding_mask", switch(value)),
            "packed" => set("data.padding_mask", "off"),
            "accumulation" => set("training.accumulation", &value_text),
            "image" => {
                dims.push(format!("img={value_text}"));
                Ok(())
            }
            "dims" => {
                let all = value.as_object().into_iter().flatten();
                dims.extend(all.map(|(name, size)| format!("{name}={}", text(size))));
                Ok(())
            }
            "clip"
            | "channels_last"
            | "fp8"
            | "ema"
            | "dropout"
            | "fp32_norms"
            | "optimizer_in_backward" => set(&format!("training.{key}"), switch(value)),
            "precision" => set("training.precision", precision(&value_text)?),
            "optimizer" | "quantization" | "attention" => {
                set(&format!("training.{key}"), &value_text)
            }
            "checkpointing" if value_text == "every2" => set("training.checkpointing", "layers")
                .and_then(|()| set("training.checkpoint_every", "2")),
            "checkpointing" => set("training.checkpointing", &value_text),
            "loss" => set("training.loss", loss(&value_text)),
            "kernels" if value_text == "library" => Ok(()),
            // Fused kernels of the Foundation Model Stack do what Liger's do.
            "kernels" if value_text == "foak" => set("training.kernels", "liger"),
            // Transformer Engine is what Megatron-Core builds its layers of: those of Llama's architecture are followed.
            "kernels" if value_text == "te" && model.arch == "llama" && !fp8 => {
                set("stack.trainer", "megatron")
            }
            "kernels" => Err(format!("kernels `{value_text}`, which no setting says")),
            "lora" => lora(value, &mut set),
            "parallel" => layout(value, &mut set),
            // What feeds the run, and heads of a few classes, take no time that counts.
            "loader" | "head" | "base" | "note" => Ok(()),
            _ => Err(format!("`{key}`, which no setting says")),
        };
        taken?;
    }
    if !dims.is_empty() {
        set("model.dims", &dims.join(","))?;
    }
    if scenario.stack.trainer == Trainer::Megatron {
        // As the launchers of the records ask (`--sequence-parallel`, `CP_COMM_TYPE:-a2a`).
        scenario.parallel.sequence_parallel = scenario.parallel.tp > 1;
        scenario.parallel.context = ContextParallel::Ulysses;
    }
    match scenario.check().first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(scenario),
    }
}

/// The card of a record. torchtitan's tables are of H100s with slower memory and a limit of 500 W, as they say; torchao's of products in
/// eight bits without compilation were made in torchtitan too (its pull request 778).
fn card(record: &Value) -> Option<&str> {
    const LIMITED: &str = "h100-hbm2e-96gb";
    let card = record["gpu"].as_str()?;
    let says = |key: &str, words: &str| record[key].as_str().is_some_and(|it| it.contains(words));
    let limited = says("note", "HBM2e") || says("source", "float8nocompile");
    Some(if limited && card.starts_with("h100-sxm5") {
        LIMITED
    } else {
        card
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const fn switch(value: &Value) -> &'static str {
    if matches!(value, Value::Bool(true)) {
        "on"
    } else {
        "off"
    }
}

/// Weights and arithmetic in the records' words: Megatron, Apex and FSDP keep a second copy in fp32, which the optimizer alone
/// touches.
fn precision(word: &str) -> Result<&'static str, String> {
    Ok(match word {
        "fp32" | "fp32-conv-tf32" => "fp32",
        "amp-fp16" => "amp-fp16",
        "amp-bf16" => "amp-bf16",
        "amp-bf16-on-bf16" => "amp-bf16-on-bf16",
        "bf16" | "megatron-bf16" | "fsdp-bf16" => "bf16",
        "apex-O2-fp16" => "fp16",
        other => return Err(format!("precision `{other}`, which no setting says")),
    })
}

fn loss(word: &str) -> &str {
    match word {
        "fused-cross-entropy" => "liger",
        "chunked" => "chunked-loss",
        other => other,
    }
}

type Set<'a> = dyn FnMut(&str, &str) -> Result<(), String> + 'a;

fn lora(given: &Value, set: &mut Set) -> Result<(), String> {
    set("training.lora", "on")?;
    for key in ["rank", "targets", "dropout"] {
        if !given[key].is_null() {
            set(&format!("training.lora.{key}"), &text(&given[key]))?;
        }
    }
    if given["fp32_adapters"].is_boolean() {
        set(
            "training.lora.fp32_adapters",
            switch(&given["fp32_adapters"]),
        )?;
    }
    Ok(())
}

fn layout(given: &Value, set: &mut Set) -> Result<(), String> {
    for (key, value) in given.as_object().into_iter().flatten() {
        match key.as_str() {
            "reshard" => set("parallel.reshard", switch(value))?,
            "strategy" | "tp" | "pp" | "cp" | "ep" | "offload" => {
                set(&format!("parallel.{key}"), &text(value))?;
            }
            // Stages in turn and exchanges beside products: no setting says them yet.
            "vp" | "async_tp" => {}
            other => return Err(format!("`parallel.{other}`, which no setting says")),
        }
    }
    Ok(())
}

/// Adds the sums by architecture of the GPU, by kind of model and by precision, and with sources left out.
pub fn broken_down(report: &mut Report, records: &[Value]) {
    let without = left_out(records);
    let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &without {
        groups.entry(&row.group).or_default().push(row);
    }
    for (group, rows) in groups {
        report.by.insert(group.into(), summary(&rows));
    }
    for key in ["architecture", "family", "precision"] {
        let word = |record: &Value| match key {
            "architecture" => architecture(record),
            "family" => text(&record["family"]),
            _ => text(&record["settings"]["precision"]),
        };
        let mut words: Vec<String> = records.iter().map(word).collect();
        words.sort_unstable();
        words.dedup();
        for wanted in words {
            let pairs = report.rows.iter().zip(records);
            let rows: Vec<&Row> = pairs
                .filter(|(_, record)| word(record) == wanted)
                .map(|(row, _)| row)
                .collect();
            report.by.insert(wanted, summary(&rows));
        }
    }
}

fn architecture(record: &Value) -> String {
    let mut scenario = Scenario::default();
    let gpu = record["gpu"].as_str().unwrap_or_default();
    let _ = settings::set(&mut scenario, "hardware.gpu", gpu);
    let architecture = Case::of(&scenario).gpu.map(|gpu| gpu.architecture);
    architecture.unwrap_or("no GPU named").to_string()
}
