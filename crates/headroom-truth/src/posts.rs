//! Real posts of failures whose thread tells the cause: how often the doctor finds it from the text alone, and whether the
//! thread's fix is among its advice.

use serde::Serialize;
use serde_json::Value;

use headroom_advice::doctor::{Cause, Change, Findings, diagnose};

/// One post as the doctor saw it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Post {
    pub id: String,
    /// The record's cause, and what else it accepts.
    pub causes: Vec<String>,
    /// Causes with their shares, the likeliest first.
    pub ranking: Vec<(&'static str, f64)>,
    /// Whether what ended the failure is among the advice; nothing where nothing did.
    pub helped: Option<bool>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Posts {
    pub failures: Vec<Post>,
}

/// Whether the text's first record is a post.
pub fn are_posts(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let record = first.and_then(|line| serde_json::from_str::<Value>(line).ok());
    record.is_some_and(|record| record["text"].is_string() && record["cause"].is_string())
}

/// Diagnoses every post from its text alone.
pub fn posts(text: &str) -> Posts {
    let records = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Posts {
        failures: records.map(|record| post(&record)).collect(),
    }
}

fn post(record: &Value) -> Post {
    let text = record["text"].as_str().unwrap_or_default();
    let diagnosis = diagnose(&Findings::parse(text).unwrap_or_default(), None);
    let accepted = record["accept"].as_array().into_iter().flatten();
    let accepted = accepted.filter_map(Value::as_str);
    let fix = record["fix_kind"].as_str().unwrap_or("none");
    let advised = |change: &Change| fixes(*change).contains(&fix);
    Post {
        id: record["id"].as_str().unwrap_or("?").into(),
        causes: record["cause"]
            .as_str()
            .into_iter()
            .chain(accepted)
            .map(String::from)
            .collect(),
        ranking: diagnosis
            .ranking
            .iter()
            .map(|ranked| (recorded(ranked.cause), ranked.confidence))
            .collect(),
        helped: (fix != "none").then(|| diagnosis.changes.iter().any(advised)),
    }
}

/// A cause in the words of the records.
const fn recorded(cause: Cause) -> &'static str {
    match cause {
        Cause::Capacity => "capacity",
        Cause::Outlier => "batch_or_length_outlier",
        Cause::Leak => "leak",
        Cause::Fragmentation => "fragmentation",
        Cause::Evaluation => "evaluation_or_generation",
        Cause::Checkpoint => "checkpoint_save_or_load",
        Cause::Schedule => "something_begins",
        Cause::OptimizerStep => "optimizer_first_step",
        Cause::Attention => "attention_quadratic",
        Cause::OtherProcess => "other_process",
        Cause::WrongDevice => "wrong_device_all_on_gpu0",
        Cause::HostMemory => "dataloader_host_ram",
        Cause::SharedMemory => "shm",
        Cause::LibraryBug => "library_bug",
        Cause::NotOutOfMemory => "not_oom",
        Cause::Unknown => "unknown",
    }
}

/// The records' words for what a change does.
const fn fixes(change: Change) -> &'static [&'static str] {
    match change {
        Change::SmallerBatch => &["batch"],
        Change::ShorterLength => &["length"],
        Change::Checkpointing => &["ckpt"],
        Change::SmallerOptimizer => &["optim"],
        Change::Offload => &["offload"],
        Change::RaiseLimit | Change::SamplerShare => &["fraction"],
        Change::LongestFirst => &["longest"],
        Change::Detach => &["detach"],
        Change::ExpandableSegments => &["expandable"],
        Change::NoGradient => &["nograd"],
        Change::LoadOnHost => &["mapcpu"],
        Change::StopOthers => &["kill"],
        Change::ChooseDevice => &["device"],
        Change::HostMemory => &["ram"],
        Change::SharedMemory => &["shm"],
        Change::OtherVersion => &["version"],
        Change::CheckOnHost => &["cpu"],
        Change::CheckShapes => &["shape"],
        Change::MetalLimit => &["mps"],
        Change::OtherFramework => &["refuse"],
        Change::NewEvent
        | Change::WholeError
        | Change::BalanceStages
        | Change::LeaveRoom
        | Change::FirstError => &[],
    }
}

impl Post {
    /// Whether one of the first so many causes is right; records accept some classes of causes by the words for them.
    fn right(&self, of_first: usize) -> bool {
        let class = |cause: &str| match cause {
            "evaluation_or_generation" | "checkpoint_save_or_load" | "something_begins" => {
                "schedule"
            }
            "other_process" => "other-process",
            "wrong_device_all_on_gpu0" => "wrong-device",
            "not_oom" | "library_bug" => "unknown",
            _ => "",
        };
        let first = self.ranking.iter().take(of_first);
        first.into_iter().any(|(cause, _)| {
            let accepts = |accepted: &String| accepted == cause || *accepted == class(cause);
            self.causes.iter().any(accepts)
        })
    }
}

impl std::fmt::Display for Posts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for post in &self.failures {
            let ranking: Vec<String> = post
                .ranking
                .iter()
                .take(3)
                .map(|(cause, share)| format!("{cause} {share:.2}"))
                .collect();
            let wrong = if post.right(1) { " " } else { "!" };
            writeln!(
                f,
                "{wrong}{:<52} {:<26} {}",
                post.id,
                post.causes.join(" or "),
                ranking.join(", ")
            )?;
        }
        let share = |right: usize, all: usize| 100.0 * right as f64 / all.max(1) as f64;
        let all = self.failures.len();
        for (name, of_first) in [("first", 1), ("in three", 3)] {
            let right = self
                .failures
                .iter()
                .filter(|post| post.right(of_first))
                .count();
            writeln!(
                f,
                "{name:<10} right {right} of {all} ({:.0} %)",
                share(right, all)
            )?;
        }
        let fixed: Vec<bool> = self
            .failures
            .iter()
            .filter_map(|post| post.helped)
            .collect();
        let helped = fixed.iter().filter(|helped| **helped).count();
        writeln!(
            f,
            "the thread's fix among the advice: {helped} of {} ({:.0} %)",
            fixed.len(),
            share(helped, fixed.len())
        )?;
        for low in [0.0, 0.3, 0.45, 0.6, 0.75] {
            let in_bin = |post: &&Post| {
                let sure = post.ranking.first().map_or(0.0, |first| first.1);
                sure >= low && (low >= 0.75 || sure < low + if low == 0.0 { 0.3 } else { 0.15 })
            };
            let bin: Vec<&Post> = self.failures.iter().filter(in_bin).collect();
            if bin.is_empty() {
                continue;
            }
            let right = bin.iter().filter(|post| post.right(1)).count();
            writeln!(
                f,
                "sure from {low:.2}: right {right} of {} ({:.0} %)",
                bin.len(),
                share(right, bin.len())
            )?;
        }
        Ok(())
    }
}
