//! Real posts of failures with the cause that their thread found: how often the doctor finds it from the text alone, and whether
//! the thread's fix is among its advice.

use serde::{Deserialize, Serialize};

use super::record::read_all;
use headroom_advice::doctor::{Cause, Change, Findings, diagnose};

/// A recorded post.
#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    id: Option<String>,
    text: String,
    cause: String,
    #[serde(default)]
    accept: Vec<Option<String>>,
    #[serde(default)]
    fix_kind: Option<String>,
}

/// One post and the doctor's ranking of its causes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Post {
    pub id: String,
    /// The record's cause, and what else it accepts.
    pub causes: Vec<String>,
    /// Causes with their shares, the likeliest first.
    pub ranking: Vec<(&'static str, f64)>,
    /// Whether the fix that ended the failure is among the advice; `None` without a fix.
    pub helped: Option<bool>,
}

/// The diagnosed posts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Posts {
    pub failures: Vec<Post>,
}

/// Whether the text's first record is a post.
pub fn are_posts(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| !read_all::<Record>(line).is_empty())
}

/// Diagnoses every post from its text alone.
pub fn posts(text: &str) -> Posts {
    Posts {
        failures: read_all(text).into_iter().map(post).collect(),
    }
}

fn post(record: Record) -> Post {
    let diagnosis = diagnose(&Findings::parse(&record.text).unwrap_or_default(), None);
    let fix = record.fix_kind.as_deref().unwrap_or("none");
    let is_advised = diagnosis
        .changes
        .iter()
        .any(|change| fixes(*change).contains(&fix));
    let accepted = record.accept.into_iter().flatten();
    Post {
        id: record.id.unwrap_or_else(|| "?".into()),
        causes: std::iter::once(record.cause).chain(accepted).collect(),
        ranking: (diagnosis.ranking.iter())
            .map(|ranked| (recorded(ranked.cause), ranked.confidence))
            .collect(),
        helped: (fix != "none").then_some(is_advised),
    }
}

/// A cause as the records name it.
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
        Cause::Logits => "logits_or_loss",
        Cause::OtherProcess => "other_process",
        Cause::WrongDevice => "wrong_device_all_on_gpu0",
        Cause::HostMemory => "dataloader_host_ram",
        Cause::SharedMemory => "shm",
        Cause::LibraryBug => "library_bug",
        Cause::NotOutOfMemory => "not_oom",
        Cause::Unknown => "unknown",
    }
}

/// What the records call a change.
const fn fixes(change: Change) -> &'static [&'static str] {
    match change {
        Change::SmallerBatch => &["batch"],
        Change::ShorterLength | Change::BoundBoxes => &["length"],
        Change::Checkpointing => &["ckpt"],
        Change::SmallerOptimizer => &["optim"],
        Change::Offload => &["offload"],
        Change::RaiseLimit | Change::SamplerShare => &["fraction"],
        Change::FusedLoss => &["loss"],
        Change::LongestFirst => &["longest"],
        Change::Detach | Change::ResetMetrics => &["detach"],
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
    /// Whether one of the first `of_first` causes is right. Records accept some causes by the name of their class.
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
        let mut tally = |name: &str, all: &[bool]| {
            let right = all.iter().filter(|is_right| **is_right).count();
            let share = 100.0 * right as f64 / all.len().max(1) as f64;
            writeln!(f, "{name} {right} of {} ({share:.0} %)", all.len())
        };
        let right = |posts: &[&Post], of_first| -> Vec<bool> {
            posts.iter().map(|post| post.right(of_first)).collect()
        };
        let all: Vec<&Post> = self.failures.iter().collect();
        tally("first      right", &right(&all, 1))?;
        tally("in three   right", &right(&all, 3))?;
        let helped: Vec<bool> = all.iter().filter_map(|post| post.helped).collect();
        tally("the thread's fix among the advice:", &helped)?;
        for bounds in [0.0, 0.3, 0.45, 0.6, 0.75, f64::INFINITY].windows(2) {
            let sure = |post: &&&Post| post.ranking.first().map_or(0.0, |first| first.1);
            let in_bin = |post: &&&Post| (bounds[0]..bounds[1]).contains(&sure(post));
            let bin: Vec<&Post> = all.iter().filter(in_bin).copied().collect();
            if !bin.is_empty() {
                let name = format!("sure from {:.2}: right", bounds[0]);
                tally(&name, &right(&bin, 1))?;
            }
        }
        Ok(())
    }
}
