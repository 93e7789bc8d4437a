//! Runs over many steps of varying size: what was reserved, and at which step a GPU ran out of memory.

mod config;
mod network;
mod size;

use serde::Deserialize;
use serde_json::Value;

use super::knobs::{Dims, Knobs};
use super::metric::{Figure, Metric};
use super::record::Mixed;
use super::score::Row;
pub use config::{Config, Event};
use config::{Evaluation, Leak};
use headroom_base::units::Bytes;
use headroom_core::allocator::{Card, Settings};
use headroom_core::estimate::{
    Evaluations, LoopOptions, ManySteps, Retained, StepSequence, UncertaintySources,
};
use headroom_core::training::Evaluated;
pub use network::run;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Record {
    pub config: Config,
    pub dims: Dims,
    /// The size of each step: a sequence length, edges of a graph, pixels of an image's side.
    #[serde(deserialize_with = "size::list")]
    pub sizes: Vec<u64>,
    /// Those of the batches of all evaluations.
    #[serde(deserialize_with = "size::list")]
    pub eval_sizes: Vec<u64>,
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
    let known = ["seq_mult", "bs", "aux_loss", "unfreeze", "nockpt"];
    let schedule = (config.sched.as_ref()).filter(|event| !known.contains(&event.kind.as_str()));
    // A copy to the host leaves the GPU as it was.
    let save = (config.save.as_ref()).filter(|event| !matches!(&*event.mode, "cpu" | "gpu_copy"));
    let last = |every: Option<u64>| every.unwrap_or(0).saturating_sub(1);
    let eval = config.eval.as_ref().filter(|eval| kept(eval).is_none());
    let has_side_stream = !matches!(&config.side_stream, Mixed::Switch(false))
        && config.side_stream != Mixed::default();
    let leak = config.leak.as_ref();
    let is_known = |leak: &&Leak| LEAKS.contains(&leak.kind.as_str());
    let from_start = [
        (has_side_stream, "side_stream"),
        (leak.is_some_and(|leak| !is_known(&leak)), "leak"),
        (config.load.is_some(), "load"),
        (config.teacher.is_some(), "teacher"),
        (config.average.is_some(), "ema"),
    ];
    let all = [
        schedule.map(|event| (event.step, "sched")),
        eval.map(|eval| (last(eval.every), "eval")),
        (config.generation.as_ref()).map(|event| (last(event.every), "gen")),
        save.map(|event| (last(event.every), "save")),
    ];
    let from_start = from_start.into_iter().filter(|(is_there, _)| *is_there);
    let from_start = from_start.map(|(_, event)| (0, event));
    all.into_iter().flatten().chain(from_start).min()
}

/// What steps leave behind, by the names of the records.
const LEAKS: [&str; 5] = [
    "loss_detached",
    "logits_argmax",
    "window",
    "fixed",
    "logits",
];

/// What an evaluation keeps, where that is known.
fn kept(eval: &Evaluation) -> Option<Evaluated> {
    match (eval.keep.as_deref(), eval.grad) {
        (None, false) => Some(Evaluated::Loss),
        (Some("logits"), false) => Some(Evaluated::Outputs),
        (Some("logits"), true) => Some(Evaluated::Graphs),
        _ => None,
    }
}

/// Events between the steps of the recorded loop.
fn options(record: &Record) -> LoopOptions {
    const ID: u64 = 8;
    let config = &record.config;
    let leak = config.leak.clone().unwrap_or_default();
    let retained = |fixed, per_size, last| Retained {
        every: leak.every.unwrap_or(1),
        fixed: Bytes::new(fixed),
        per_size: Bytes::new(per_size),
        last,
    };
    let other_step = config.other.as_ref().map(|other| other.step);
    LoopOptions {
        empty_cache_every: config.empty_every,
        // What came before the first step is there in it.
        other_process: other_step
            .map(|step| usize::try_from(step).unwrap_or(0))
            .zip(record.other_took_bytes.map(Bytes::new)),
        retained: match leak.kind.as_str() {
            "loss_detached" => Some(retained(4, 0, usize::MAX)),
            "logits_argmax" => {
                let batch = config.knobs.mb.unwrap_or(1);
                Some(retained(0, ID * batch, usize::MAX))
            }
            "window" => Some(retained(leak.bytes, 0, leak.n)),
            "fixed" => Some(retained(leak.bytes, 0, usize::MAX)),
            _ => None,
        },
        retain_outputs_every: match leak.kind.as_str() {
            "logits" => leak.every.unwrap_or(1),
            _ => 0,
        },
        retain_outputs_from: leak.from,
        copy_weights_every: match &config.save {
            Some(save) if save.mode == "gpu_copy" => save.every.unwrap_or(0) as usize,
            _ => 0,
        },
        skip_on_oom: config.on_oom == "skip",
    }
}

/// Flags in the sizes of steps: a step after a change of settings, and one whose outputs are retained.
const CHANGED: u64 = 1 << 63;
const RETAINS: u64 = 1 << 62;

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
        "nockpt" => changed.ckpt = Mixed::Switch(false),
        _ => {}
    }
    if matches!(
        schedule.kind.as_str(),
        "bs" | "aux_loss" | "unfreeze" | "nockpt"
    ) {
        let later = sizes.iter_mut().skip(begins);
        later.for_each(|size| *size |= CHANGED);
    }
    let options = options(record);
    if options.retain_outputs_every > 0 {
        let retaining = (0..).zip(&mut sizes).skip(options.retain_outputs_from);
        retaining
            .filter(|(step, _)| step % options.retain_outputs_every == 0)
            .for_each(|(_, size)| *size |= RETAINS);
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
    if let Some((eval, kept)) = config
        .eval
        .as_ref()
        .and_then(|eval| Some((eval, kept(eval)?)))
    {
        let evaluations = Evaluations {
            every: eval.every.unwrap_or(0) as usize,
            batches: eval_batches(record, eval)?,
            keep_forever: eval.keep_forever,
        };
        sequence.evaluate::<String>(evaluations, &mut |size, read| {
            let knobs = Knobs {
                mb: eval.mb.or(config.knobs.mb),
                ..config.knobs.clone()
            };
            read(&network::evaluated(&knobs, &record.dims, size, kept)?.trace);
            Ok(())
        })?;
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

/// The sizes of each evaluation's batches: as recorded, or where all are equal as the settings say.
fn eval_batches(record: &Record, eval: &Evaluation) -> Result<Vec<Vec<u64>>, String> {
    let recorded = &record.eval_sizes;
    if !recorded.is_empty() {
        let batches = recorded.chunks(eval.n.max(1));
        return Ok(batches.map(<[u64]>::to_vec).collect());
    }
    let size = eval.dist.as_ref().filter(|sizes| !sizes.varies());
    let size = size.and_then(config::Distribution::largest);
    let size = size.ok_or("the sizes of its evaluations are not recorded")?;
    let every = eval.every.unwrap_or(0).max(1) as usize;
    Ok(vec![vec![size; eval.n]; record.sizes.len() / every])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::read_all;

    /// The most allocated and held in each step of recorded loops, as PyTorch 2.15 on a simulated GPU has it.
    #[test]
    fn each_step_needs_what_was_recorded() {
        let records: Vec<Record> = read_all(include_str!("../cases.jsonl"));
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
        assert_eq!(compared, 16);
    }
}
