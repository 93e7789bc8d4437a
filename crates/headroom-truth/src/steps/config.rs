//! The settings of a recorded loop, as its records name them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::knobs::{Dims, Knobs};
use crate::record::Mixed;

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
    pub eval: Option<Evaluation>,
    #[serde(rename = "gen")]
    pub generation: Option<Event>,
    pub save: Option<Event>,
    pub sched: Option<Event>,
    pub leak: Option<Leak>,
    pub other: Option<OtherProcess>,
    pub side_stream: Mixed,
    /// What has no counterpart in a replay.
    pub load: Option<Value>,
    pub teacher: Option<Value>,
    #[serde(rename = "ema")]
    pub average: Option<Value>,
}

/// Batches without an update after every so many steps; their sizes are in the record.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Evaluation {
    pub every: Option<u64>,
    pub n: usize,
    pub mb: Option<u64>,
    pub dist: Option<Distribution>,
    pub keep: Option<String>,
    pub keep_forever: bool,
    /// `torch.no_grad()` was forgotten.
    pub grad: bool,
}

/// From which the sizes are drawn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Distribution {
    pub n: Option<u64>,
    pub hi: Option<u64>,
    pub list: Vec<Side>,
    pub outlier: Map<String, Value>,
}

/// What happens at one step, or every so many.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub every: Option<u64>,
    pub step: u64,
    pub kind: String,
    pub mode: String,
    pub mult: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Leak {
    pub kind: String,
    pub bytes: u64,
    pub n: usize,
    pub every: Option<usize>,
    pub from: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OtherProcess {
    /// Before the first where it is negative.
    pub step: i64,
}

impl Distribution {
    /// Whether its sizes differ.
    pub fn varies(&self) -> bool {
        self.hi.is_some() || self.list.len() > 1 || !self.outlier.is_empty()
    }

    pub fn largest(&self) -> Option<u64> {
        let outliers = self.outlier.values().filter_map(Value::as_u64);
        let listed = self.list.iter().map(|side| side.largest());
        let all = listed.chain(outliers);
        all.chain(self.n).chain(self.hi).max()
    }
}

/// A size as it is recorded: a number, or the height and the width of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Side {
    Number(u64),
    Image([u64; 2]),
}

impl Side {
    fn largest(self) -> u64 {
        match self {
            Self::Number(size) => size,
            Self::Image([height, width]) => height.max(width),
        }
    }
}
