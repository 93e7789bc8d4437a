//! Runs over many steps of varying size: what was reserved, and at which step a GPU ran out of memory.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::knobs::{Dims, Knobs};
use super::metric::{Figure, Metric};
use super::record::Mixed;
use super::score::Row;
use super::simulated;
use headroom_base::units::Bytes;
use headroom_core::allocator::{Card, Settings};
use headroom_core::estimate::{
    LoopOptions, ManySteps, Retained, STEPS, StepSequence, UncertaintySources,
};
use headroom_core::training::{self as step, RunPlan};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Record {
    pub config: Config,
    pub dims: Dims,
    /// The size of each step: a sequence length, edges of a graph, pixels of an image's side.
    pub sizes: Vec<u64>,
    /// What the GPU had for PyTorch, where it had a limit.
    pub usable_bytes: Option<u64>,
    pub other_took_bytes: Option<u64>,
    pub alloc_after_model: u64,
    summary: Summary,
    oom: Option<Failure>,
    pub series_cols: Vec<String>,
    pub series: Vec<Vec<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    steps_done: u64,
    num_ooms: Option<u64>,
    peak_allocated: Option<u64>,
    peak_reserved: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    step: u64,
}

/// The loop's settings beyond those of its steps.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    #[serde(flatten)]
    pub knobs: Knobs,
    pub dist: Option<Distribution>,
    pub ov: Dims,
    pub alloc: String,
    pub frac: Option<f64>,
    pub ctx_mb: u64,
    pub empty_every: usize,
    pub on_oom: String,
    pub eval: Option<Event>,
    #[serde(rename = "gen")]
    pub generation: Option<Event>,
    pub save: Option<Event>,
    pub sched: Option<Event>,
    pub leak: Option<Leak>,
    pub other: Option<OtherProcess>,
    pub side_stream: Mixed,
}

/// From which the sizes are drawn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Distribution {
    n: Option<u64>,
    hi: Option<u64>,
    list: Vec<u64>,
    outlier: Map<String, Value>,
}

/// What happens at one step, or every so many.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub every: Option<u64>,
    step: u64,
    kind: String,
    mode: String,
    mult: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Leak {
    kind: String,
    bytes: u64,
    n: usize,
    every: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OtherProcess {
    /// Before the first where it is negative.
    step: i64,
}

impl Distribution {
    /// Whether its sizes differ.
    pub fn varies(&self) -> bool {
        self.hi.is_some() || self.list.len() > 1 || !self.outlier.is_empty()
    }

    pub fn largest(&self) -> Option<u64> {
        let outliers = self.outlier.values().filter_map(Value::as_u64);
        let all = self.list.iter().copied().chain(outliers);
        all.chain(self.n).chain(self.hi).max()
    }
}

/// Compares the peaks; of a run on a GPU with a limit, the step at which it failed, or how many steps it ran.
pub fn row(record: &Record, id: &str, metric: Metric) -> Row {
    let summary = &record.summary;
    let has_limit = record.usable_bytes.is_some();
    let group = match (has_limit, summary.num_ooms) {
        (false, _) => "no limit",
        (true, Some(0)) => "a card that suffices",
        (true, _) => "a card that refuses",
    };
    let found = match replayed(record) {
        Ok(found) => found,
        Err(reason) => return Row::unsupported(id, group, reason),
    };
    if has_limit {
        let failed = record.oom.as_ref().map(|failure| failure.step);
        let truth = failed.unwrap_or(summary.steps_done);
        return Row::scored(id, group, truth, found.steps.len() as u64);
    }
    let [allocated, reserved] =
        UncertaintySources::default().bands(found.allocated(), found.reserved());
    let (truth, band) = match metric {
        Metric::Allocated => (summary.peak_allocated, allocated),
        Metric::Reserved | Metric::Expandable => (summary.peak_reserved, reserved),
        Metric::Forward | Metric::Phase(_) | Metric::Static | Metric::Pinned => (None, allocated),
    };
    let predicted = Figure {
        bytes: band.expected.get(),
        band: Some(band),
    };
    Row::compared(id, group, Ok(predicted), truth)
}

/// The first step with an event that is not modelled, and the event.
fn first_unmodelled_event(config: &Config) -> Option<(u64, &'static str)> {
    // Longer samples are in the sizes.
    let known = ["seq_mult", "bs", "aux_loss", "unfreeze"];
    let schedule = (config.sched.as_ref()).filter(|event| !known.contains(&event.kind.as_str()));
    // A copy to the host leaves the GPU as it was.
    let save = (config.save.as_ref()).filter(|event| !matches!(&*event.mode, "cpu" | "gpu_copy"));
    let last = |event: &Event| event.every.unwrap_or(0).saturating_sub(1);
    let has_side_stream = !matches!(&config.side_stream, Mixed::Switch(false))
        && config.side_stream != Mixed::default();
    let all = [
        schedule.map(|event| (event.step, "sched")),
        config.eval.as_ref().map(|event| (last(event), "eval")),
        save.map(|event| (last(event), "save")),
        has_side_stream.then_some((0, "side_stream")),
    ];
    all.into_iter().flatten().min()
}

/// Events between the steps of the recorded loop.
fn options(record: &Record) -> LoopOptions {
    const ID: u64 = 8;
    let config = &record.config;
    let leak = config.leak.clone().unwrap_or_default();
    let retained = |fixed, per_size, last| Retained {
        fixed: Bytes::new(fixed),
        per_size: Bytes::new(per_size),
        last,
    };
    let other_step = config.other.as_ref().map(|other| other.step);
    LoopOptions {
        empty_cache_every: config.empty_every,
        other_process: other_step
            .and_then(|step| usize::try_from(step).ok())
            .zip(record.other_took_bytes.map(Bytes::new)),
        retained: match leak.kind.as_str() {
            "loss_detached" => Some(retained(4, 0, usize::MAX)),
            "logits_argmax" => {
                let batch = config.knobs.mb.unwrap_or(1);
                Some(retained(0, ID * batch, usize::MAX))
            }
            "window" => Some(retained(leak.bytes, 0, leak.n)),
            _ => None,
        },
        retain_outputs_every: match leak.kind.as_str() {
            "logits" => leak.every.unwrap_or(1),
            _ => 0,
        },
        copy_weights_every: match &config.save {
            Some(save) if save.mode == "gpu_copy" => save.every.unwrap_or(0) as usize,
            _ => 0,
        },
        skip_on_oom: config.on_oom == "skip",
    }
}

/// Flags in the sizes of steps: a step after a change of settings, and one whose outputs are retained.
const CHANGED: u64 = 1 << 40;
const RETAINS: u64 = 1 << 41;

/// The record's steps, on its GPU.
pub fn replayed(record: &Record) -> Result<ManySteps, String> {
    let config = &record.config;
    let mut sizes = record.sizes.clone();
    let schedule = config.sched.clone().unwrap_or_default();
    let begins = schedule.step as usize;
    let mut changed = config.knobs.clone();
    match schedule.kind.as_str() {
        "bs" => {
            let batch = changed.mb.unwrap_or(1);
            changed.mb = Some(batch.saturating_mul(schedule.mult.unwrap_or(1)));
        }
        "aux_loss" => changed.aux_loss = true,
        "unfreeze" => changed.freeze = Vec::new(),
        _ => {}
    }
    if matches!(schedule.kind.as_str(), "bs" | "aux_loss" | "unfreeze") {
        let later = sizes.iter_mut().skip(begins);
        later.for_each(|size| *size |= CHANGED);
    }
    let options = options(record);
    if options.retain_outputs_every > 0 {
        let retaining = sizes.iter_mut().step_by(options.retain_outputs_every);
        retaining.for_each(|size| *size |= RETAINS);
    }
    let context = Bytes::mib(config.ctx_mb);
    let card = match record.usable_bytes {
        None => Card::UNLIMITED,
        Some(usable) => Card {
            total: Some(Bytes::new(usable) + context),
            context,
            ..Card::UNLIMITED
        },
    };
    let run_of = |size: u64| {
        let is_changed = size & CHANGED != 0;
        let knobs = if is_changed { &changed } else { &config.knobs };
        let mut knobs = knobs.clone();
        knobs.hold_outputs |= size & RETAINS != 0;
        run(&knobs, &record.dims, size & !CHANGED & !RETAINS)
    };
    let unfreezes = schedule.kind == "unfreeze";
    let first = sizes.get(begins).copied().filter(|_| unfreezes);
    let mut sequence = StepSequence::record::<String>(sizes, 1, &mut |size, read| {
        read(&run_of(size)?.trace);
        Ok(())
    })?;
    if let Some(size) = first {
        sequence.restart_at(begins, &run_of(size)?.trace);
    }
    let found = sequence.replay(&settings(config), card, &options);
    match first_unmodelled_event(config) {
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

fn settings(config: &Config) -> Settings {
    let (settings, _) = Settings::parse(&config.alloc);
    Settings {
        memory_fraction: config.frac,
        ..settings
    }
}

/// Replays steps of these sizes in limited memory, without events between them.
pub fn undisturbed(
    config: &Config,
    dims: &Dims,
    sizes: Vec<u64>,
    usable: Bytes,
) -> Result<ManySteps, String> {
    let sequence = StepSequence::record::<String>(sizes, 1, &mut |size, read| {
        read(&run(&config.knobs, dims, size)?.trace);
        Ok(())
    })?;
    let settings = Settings {
        memory_fraction: None,
        ..settings(config)
    };
    let options = LoopOptions {
        empty_cache_every: config.empty_every,
        ..LoopOptions::default()
    };
    Ok(sequence.replay(&settings, Card::usable(usable), &options))
}

/// The network's sizes for batches of this size: edges of a graph, with nodes in proportion; pixels of an image's side, whose
/// network has attention at the lowest resolution.
fn sized(knobs: &Knobs, dims: &Dims, size: u64) -> Dims {
    let mut dims = dims.clone();
    let stages = dims.get("block_out").and_then(Value::as_array);
    let stages = stages.map_or(0, Vec::len);
    let only = |at: usize| (0..stages).map(|i| u64::from(i == at)).collect::<Value>();
    let added: Vec<(&str, Value)> = match knobs.kind.as_deref() {
        Some("gnn") => {
            let share = dims.remove("nodes_per_edge").and_then(|n| n.as_f64());
            let nodes = size as f64 * share.unwrap_or(0.0);
            vec![
                ("family", "sage".into()),
                ("edges", size.into()),
                ("nodes", (nodes as u64).into()),
            ]
        }
        Some("unet") => vec![
            ("family", "unet2d".into()),
            ("img", size.into()),
            ("channels", 4.into()),
            ("head_dim", 8.into()),
            ("down_attention", only(stages.saturating_sub(1))),
            ("up_attention", only(0)),
        ],
        _ => Vec::new(),
    };
    dims.extend(added.into_iter().map(|(name, value)| (name.into(), value)));
    dims
}

/// Runs a few steps with batches of this size.
pub fn run(knobs: &Knobs, dims: &Dims, size: u64) -> Result<step::Run, String> {
    let dims = sized(knobs, dims, size);
    let mut knobs = Knobs {
        seq: Some(size),
        ..knobs.clone()
    };
    // Images have one size, and the batch varies.
    if knobs
        .kind
        .as_deref()
        .is_some_and(|kind| kind.starts_with("vit"))
    {
        knobs.mb = Some(knobs.mb.unwrap_or(1).saturating_mul(size));
    }
    let (data, training) = simulated::settings(&knobs, &dims)?;
    simulated::run_with(&knobs, &dims, &data, &training, RunPlan::first_steps(STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::read_all;

    /// The most allocated and held in each step of recorded loops, as PyTorch 2.15 on a simulated GPU has it.
    #[test]
    fn each_step_needs_what_was_recorded() {
        let records: Vec<Record> = read_all(include_str!("cases.jsonl"));
        let mut compared = 0;
        for record in records.iter().filter(|record| !record.series.is_empty()) {
            let found = replayed(record).unwrap();
            assert_eq!(found.steps.len(), record.series.len());
            for (found, expected) in found.steps.iter().zip(&record.series) {
                let found = [found.allocated_peak, found.reserved_peak].map(Bytes::get);
                // A loop that retains outputs frees its loss, which is one number.
                let off = [0, 1].map(|i| found[i].abs_diff(expected[i].as_u64().unwrap()));
                assert!(off.iter().all(|off| *off <= 512), "{found:?} {expected:?}");
                compared += 1;
            }
        }
        assert_eq!(compared, 8);
    }
}
