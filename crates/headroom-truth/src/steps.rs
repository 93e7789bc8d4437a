//! Records of runs over many steps of varying size: what was reserved, and at which step a card ran out of memory.

use serde_json::{Map, Value};

use super::score::Row;
use super::simulated::{self, Metric};
use headroom_base::units::Bytes;
use headroom_core::allocator::{Card, Settings};
use headroom_core::estimate::{Doubts, LoopOptions, ManySteps, Retained, STEPS, StepSequence};
use headroom_core::step::{self, RunPlan};

/// Whether the record is of many steps: its settings count them, and it lists their sizes.
pub fn is_record(record: &Value) -> bool {
    record["config"]["steps"].is_number() && record["sizes"].is_array()
}

/// Compares the peaks; of a run on a card, the step at which it failed, or how many steps it ran.
pub fn row(record: &Value, id: &str, metric: Metric) -> Row {
    let on_card = record["usable_bytes"].is_number();
    let group = match (on_card, record["summary"]["num_ooms"].as_u64()) {
        (false, _) => "no limit",
        (true, Some(0)) => "a card that suffices",
        (true, _) => "a card that refuses",
    };
    let found = match replayed(record) {
        Ok(found) => found,
        Err(reason) => return Row::unsupported(id, group, reason),
    };
    let summary = &record["summary"];
    if on_card {
        let truth = match record["oom"]["step"].as_u64() {
            Some(failed) => failed,
            None => summary["steps_done"].as_u64().unwrap_or(0),
        };
        return Row::scored(id, group, truth, found.steps.len() as u64);
    }
    let [allocated, reserved] = Doubts::default().bands(found.allocated(), found.reserved());
    let (name, band) = match metric {
        Metric::Allocated => ("peak_allocated", allocated),
        Metric::Reserved | Metric::Expandable => ("peak_reserved", reserved),
        Metric::Forward | Metric::Phase(_) | Metric::Static | Metric::Pinned => {
            let reason = "the record lacks the metric".into();
            return Row::unsupported(id, group, reason);
        }
    };
    match summary[name].as_u64() {
        Some(truth) => Row::scored(id, group, truth, band.expected.get()).within(Some(band)),
        None => Row::unsupported(id, group, "the record lacks the metric".into()),
    }
}

/// The first step that is not like the others in a way that nothing here runs, and what happens then.
fn unlike(config: &Map<String, Value>) -> Option<(u64, &'static str)> {
    let set = |name: &str| {
        let absent = |value: &&Value| value.is_null() || **value == Value::Bool(false);
        config.get(name).filter(|value| !absent(value))
    };
    let kind = |event: &Value| {
        event["kind"]
            .as_str()
            .map(str::to_owned)
            .unwrap_or_default()
    };
    // The sizes tell longer samples themselves.
    let known = ["seq_mult", "bs", "aux_loss", "unfreeze"];
    let schedule = set("sched").filter(|event| !known.contains(&kind(event).as_str()));
    // What is copied to the host leaves the card as it was.
    let save = set("save").filter(|event| event["mode"] != "cpu" && event["mode"] != "gpu_copy");
    let last_of = |event: &Value| {
        event["every"]
            .as_u64()
            .map_or(0, |every| every.saturating_sub(1))
    };
    let all = [
        schedule.map(|event| (event["step"].as_u64().unwrap_or(0), "sched")),
        set("eval").map(|event| (last_of(event), "eval")),
        save.map(|event| (last_of(event), "save")),
        set("side_stream").map(|_| (0, "side_stream")),
    ];
    all.into_iter().flatten().min()
}

/// What the recorded loop does beside its steps.
fn options(record: &Value) -> LoopOptions {
    const ID: u64 = 8;
    let config = &record["config"];
    let (leak, batch) = (&config["leak"], config["mb"].as_u64().unwrap_or(1));
    let retained = |fixed, per_size, last| Retained {
        fixed: Bytes::new(fixed),
        per_size: Bytes::new(per_size),
        last,
    };
    LoopOptions {
        empty_cache_every: config["empty_every"].as_u64().unwrap_or(0) as usize,
        other_process: config["other"]["step"]
            .as_u64()
            .zip(record["other_took_bytes"].as_u64())
            .map(|(step, bytes)| (step as usize, Bytes::new(bytes))),
        retained: match leak["kind"].as_str() {
            Some("loss_detached") => Some(retained(4, 0, usize::MAX)),
            Some("logits_argmax") => Some(retained(0, ID * batch, usize::MAX)),
            Some("window") => Some(retained(
                leak["bytes"].as_u64().unwrap_or(0),
                0,
                leak["n"].as_u64().unwrap_or(0) as usize,
            )),
            _ => None,
        },
        retain_outputs_every: match leak["kind"].as_str() {
            Some("logits") => leak["every"].as_u64().unwrap_or(1) as usize,
            _ => 0,
        },
        copy_weights_every: match config["save"]["mode"].as_str() {
            Some("gpu_copy") => config["save"]["every"].as_u64().unwrap_or(0) as usize,
            _ => 0,
        },
        skip_on_oom: config["on_oom"] == "skip",
    }
}

/// Flags in the sizes of steps: a step after a change of settings, and one whose outputs are retained.
const CHANGED: u64 = 1 << 40;
const RETAINS: u64 = 1 << 41;

/// The record's steps, on its card.
pub fn replayed(record: &Value) -> Result<ManySteps, String> {
    let config = record["config"].as_object().ok_or("no settings")?;
    let mut sizes: Vec<u64> = record["sizes"]
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let schedule = &config.get("sched").cloned().unwrap_or_default();
    let mut changed = config.clone();
    let begins = schedule["step"].as_u64().unwrap_or(0) as usize;
    let changes = match schedule["kind"].as_str() {
        Some("bs") => {
            let batch = config.get("mb").and_then(Value::as_u64).unwrap_or(1);
            let multiple = schedule["mult"].as_u64().unwrap_or(1);
            changed.insert("mb".into(), batch.saturating_mul(multiple).into());
            true
        }
        Some("aux_loss") => {
            changed.insert("aux_loss".into(), true.into());
            true
        }
        Some("unfreeze") => changed.remove("freeze").is_some(),
        _ => false,
    };
    if changes {
        sizes
            .iter_mut()
            .skip(begins)
            .for_each(|size| *size |= CHANGED);
    }
    let options = options(record);
    if options.retain_outputs_every > 0 {
        sizes
            .iter_mut()
            .step_by(options.retain_outputs_every)
            .for_each(|size| *size |= RETAINS);
    }
    let settings = settings(config);
    let context = config.get("ctx_mb").and_then(Value::as_u64).unwrap_or(0);
    let context = Bytes::mib(context);
    let card = match record["usable_bytes"].as_u64() {
        None => Card::UNLIMITED,
        Some(usable) => Card {
            total: Some(Bytes::new(usable) + context),
            context,
            ..Card::UNLIMITED
        },
    };
    let run_of = |size: u64| {
        let knobs = if size & CHANGED == 0 {
            config
        } else {
            &changed
        };
        let mut knobs = knobs.clone();
        if size & RETAINS != 0 {
            knobs.insert("hold_outputs".into(), true.into());
        }
        run(&knobs, &record["dims"], size & !CHANGED & !RETAINS)
    };
    let unfreezes = schedule["kind"] == "unfreeze";
    let first = sizes.get(begins).copied().filter(|_| unfreezes);
    let mut sequence = StepSequence::record::<String>(sizes, 1, &mut |size, read| {
        read(&run_of(size)?.trace);
        Ok(())
    })?;
    if let Some(size) = first {
        sequence.restart_at(begins, &run_of(size)?.trace);
    }
    let found = sequence.replay(&settings, card, &options);
    match unlike(config) {
        // It had failed before.
        Some((step, _))
            if found
                .failure
                .is_some_and(|failure| (failure.0 as u64) < step) =>
        {
            Ok(found)
        }
        Some((_, event)) => Err(format!("something happens between its steps (`{event}`)")),
        None => Ok(found),
    }
}

fn settings(config: &Map<String, Value>) -> Settings {
    let text = config.get("alloc").and_then(Value::as_str);
    let (settings, _) = Settings::parse(text.unwrap_or_default());
    Settings {
        memory_fraction: config.get("frac").and_then(Value::as_f64),
        ..settings
    }
}

/// Steps of these sizes with so much memory, and nothing that happens between them.
pub fn undisturbed(
    config: &Map<String, Value>,
    dims: &Value,
    sizes: Vec<u64>,
    usable: Bytes,
) -> Result<ManySteps, String> {
    let sequence = StepSequence::record::<String>(sizes, 1, &mut |size, read| {
        read(&run(config, dims, size)?.trace);
        Ok(())
    })?;
    let settings = Settings {
        memory_fraction: None,
        ..settings(config)
    };
    let options = LoopOptions {
        empty_cache_every: config
            .get("empty_every")
            .and_then(Value::as_u64)
            .unwrap_or(0) as usize,
        ..LoopOptions::default()
    };
    Ok(sequence.replay(&settings, Card::usable(usable), &options))
}

/// The sizes of the network that takes batches of this size: a graph's are edges, and so many nodes come with each; an
/// image's are pixels of a side, and its network attends at the lowest resolution.
fn sized(config: &Map<String, Value>, dims: &Map<String, Value>, size: u64) -> Map<String, Value> {
    let mut dims = dims.clone();
    let widths = dims.get("block_out").and_then(Value::as_array);
    let stages = widths.map_or(0, Vec::len);
    let mut set = |name: &str, value: Value| dims.insert(name.into(), value);
    match config.get("kind").and_then(Value::as_str) {
        Some("gnn") => {
            let share = set("nodes_per_edge", Value::Null).and_then(|value| value.as_f64());
            let nodes = size as f64 * share.unwrap_or(0.0);
            set("family", "sage".into());
            set("edges", size.into());
            set("nodes", (nodes as u64).into());
        }
        Some("unet") => {
            set("family", "unet2d".into());
            set("img", size.into());
            set("channels", 4.into());
            set("head_dim", 8.into());
            let only = |at: usize| (0..stages).map(|i| u64::from(i == at)).collect::<Value>();
            set("down_attention", only(stages.saturating_sub(1)));
            set("up_attention", only(0));
        }
        _ => {}
    }
    dims
}

/// Some steps with batches of this size.
pub fn run(config: &Map<String, Value>, dims: &Value, size: u64) -> Result<step::Run, String> {
    let dims = &sized(
        config,
        dims.as_object().ok_or("the record names no sizes")?,
        size,
    );
    let mut knobs = config.clone();
    knobs.insert("seq".into(), size.into());
    let (data, training) = simulated::settings(&knobs)?;
    simulated::run_with(&knobs, dims, &data, &training, RunPlan::first_steps(STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most allocated and held in each step of a recorded loop, as PyTorch 2.15 on a bookkeeping GPU has it.
    #[track_caller]
    fn check(config: &str, dims: &str, sizes: &[u64], expected: &[[u64; 2]]) {
        let record = serde_json::json!({
            "config": serde_json::from_str::<Value>(config).unwrap(),
            "dims": serde_json::from_str::<Value>(dims).unwrap(),
            "sizes": sizes,
        });
        let found = replayed(&record).unwrap();
        assert_eq!(found.steps.len(), expected.len());
        for (found, expected) in found.steps.iter().zip(expected) {
            let found = [found.allocated_peak.get(), found.reserved_peak.get()];
            // A loop that retains outputs frees its loss, which is one number.
            let off = [0, 1].map(|i| found[i].abs_diff(expected[i]));
            assert!(off.iter().all(|off| *off <= 512), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn graphs_of_any_number_of_edges() {
        check(
            r#"{"kind": "gnn", "precision": "fp32", "optim": "adamw", "mb": 1, "attn": "sdpa", "clip": true}"#,
            r#"{"feat": 128, "hidden": 256, "layers": 2, "classes": 47, "nodes_per_edge": 0.25}"#,
            &[55_286, 152_697, 199_445],
            &[
                [133_390_336, 161_480_704],
                [367_289_856, 438_304_768],
                [477_795_328, 643_825_664],
            ],
        );
    }

    #[test]
    fn images_of_any_resolution() {
        check(
            r#"{"kind": "unet", "precision": "fp32", "optim": "adamw", "mb": 2, "attn": "sdpa", "clip": true}"#,
            r#"{"block_out": [32, 64], "layers_per_block": 2}"#,
            &[64, 48],
            &[[114_144_768, 127_926_272], [77_273_600, 127_926_272]],
        );
    }

    #[test]
    fn retained_outputs() {
        check(
            r#"{"kind": "llama", "precision": "bf16", "optim": "adamw", "mb": 8, "attn": "sdpa", "mask": true, "clip": true,
                "leak": {"kind": "logits", "every": 5}}"#,
            r#"{"hidden": 768, "layers": 8, "heads": 12, "kv": 12, "ffn": 2048, "vocab": 32000, "tied": false,
                "head_dim": 64, "family": "llama"}"#,
            &[256; 3],
            &[
                [1_735_290_368, 1_784_676_352],
                [2_167_880_192, 2_308_964_352],
                [2_167_880_192, 2_308_964_352],
            ],
        );
    }
}
