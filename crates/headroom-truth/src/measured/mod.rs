//! Published peaks of real GPUs: a run described in prose, and one number in a named metric.

mod descriptions;
mod detection;
mod diffusion;
mod job;
mod litgpt;
mod megatron;
mod network;
mod repository;
mod segmentation;
mod sources;
mod torchtune;
mod training;
mod vision;
mod yolo;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::record::Mixed;
use super::score::{self, GIB, Row};
use headroom_base::units::Bytes;
use headroom_core::World;
use headroom_core::allocator::Settings;
use headroom_core::estimate::{Band, Peaks, UncertaintySources, software};
use headroom_core::network::Machine;
use headroom_core::training::{self as step, RunPlan};
use headroom_scenario::Data;

/// A published run.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Record {
    id: Text,
    category: Text,
    source_repo_or_url: Text,
    file: Text,
    gpu: Text,
    n_gpus: Mixed,
    framework: Text,
    model: Text,
    model_dims: Map<String, Value>,
    task: Text,
    precision: Text,
    optimizer: Text,
    micro_batch: Mixed,
    seq_len: Mixed,
    image_size: Mixed,
    grad_accum: Mixed,
    activation_checkpointing: Text,
    attention_impl: Text,
    parallelism: Text,
    compile: Mixed,
    fused_or_chunked_ce: Text,
    other: Text,
    notes: Text,
    metric: Text,
    measured_gib: f64,
    confidence: u64,
}

/// Text, compared in lower case.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "String")]
struct Text {
    lower: String,
    written: String,
}

impl From<String> for Text {
    fn from(written: String) -> Self {
        let lower = written.to_lowercase();
        Self { lower, written }
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.lower
    }
}

impl Text {
    fn contains_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.contains(part))
    }
}

impl Record {
    fn dim(&self, name: &str) -> Option<u64> {
        self.model_dims.get(name)?.as_u64()
    }

    /// A confidence of 4 or 5.
    fn is_sure(&self) -> bool {
        self.confidence >= 4
    }

    fn is_alone(&self) -> bool {
        self.n_gpus.number() == Some(1)
    }
}

/// What a record's number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Allocated,
    Reserved,
    /// What the driver shows: reserved and the context.
    Device,
    /// One of these: the source does not name it.
    Unnamed,
}

impl Counts {
    /// Where its figure is among those of `predict`; of a metric that is not named the middle one.
    const fn place(self) -> usize {
        match self {
            Self::Allocated => 0,
            Self::Reserved | Self::Unnamed => 1,
            Self::Device => 2,
        }
    }
}

/// The range of the figure; where the metric is not named, from the least of them to the most.
fn band(record: &Record, predicted: [u64; 3], counts: Counts) -> Band {
    let of = |counts: Counts| {
        let uncertainty = doubts(record, counts).uncertainty();
        uncertainty.band(Bytes::new(predicted[counts.place()]))
    };
    match counts {
        Counts::Unnamed => Band {
            low: of(Counts::Allocated).low,
            high: of(Counts::Device).high,
            ..of(Counts::Reserved)
        },
        named => of(named),
    }
}

/// The score of a record.
pub fn row(record: &Record, id: &str) -> Row {
    let group = match &*record.category.written {
        "" => "none",
        category => category,
    };
    let counts = counts(&record.metric);
    let predicted = counts.clone().and_then(|_| predict(record));
    let row = match (counts.clone(), predicted) {
        (Err(reason), _) | (_, Err(reason)) => Row::unsupported(id, group, reason),
        _ if record.measured_gib <= 0.0 => {
            Row::unsupported(id, group, "the record lacks the metric".into())
        }
        (Ok(counts), Ok(predicted)) => {
            let truth = (record.measured_gib * GIB) as u64;
            let error = |predicted: u64| Row::scored(id, group, truth, predicted).error;
            let against = || predicted.map(|figure| error(figure).unwrap_or(0.0));
            let band = band(record, predicted, counts);
            Row {
                against: (counts == Counts::Unnamed).then(against),
                kind: kind(record, counts),
                ..Row::scored(id, group, truth, predicted[counts.place()]).within(Some(band))
            }
        }
    };
    Row {
        class: counts.ok().and_then(|counts| class(record, counts)),
        ..row
    }
}

/// The metric of a record that is held to the targets: one GPU, a named metric, confidence 4 or 5; and of those whose metric is not
/// named, on however many GPUs.
fn class(record: &Record, counts: Counts) -> Option<&'static str> {
    let is_held = record.is_sure() && (record.is_alone() || counts == Counts::Unnamed);
    is_held.then_some(match counts {
        Counts::Allocated => "allocated",
        Counts::Reserved => "reserved",
        Counts::Device => "nvidia-smi",
        Counts::Unnamed => score::UNNAMED,
    })
}

/// Where a record's band is counted: by its metric, and separately for one GPU and several. Records of low confidence are not
/// counted.
fn kind(record: &Record, counts: Counts) -> Option<&'static str> {
    let [one, several] = match counts {
        Counts::Allocated => ["allocated, one GPU", "allocated, several GPUs"],
        Counts::Reserved => ["reserved, one GPU", "reserved, several GPUs"],
        Counts::Device => ["nvidia-smi, one GPU", "nvidia-smi, several GPUs"],
        Counts::Unnamed => [
            "metric not named, one GPU",
            "metric not named, several GPUs",
        ],
    };
    let kind = if record.is_alone() { one } else { several };
    record.is_sure().then_some(kind)
}

/// What a record leaves open.
fn doubts(record: &Record, counts: Counts) -> UncertaintySources {
    let Record {
        framework,
        model,
        task,
        category,
        other,
        ..
    } = record;
    // Automodel trains models of transformers, whose version its guide does not name.
    let is_named = framework.contains("torch ") && !framework.contains("automodel")
        || framework.contains_any(&["nightly", "fms", "litgpt", "lit-gpt"]);
    let lengths = ["<=512", "variable", "maximum"];
    UncertaintySources {
        kernels_without_model: false,
        convolutions: category.starts_with("vision") && !model.contains("vit"),
        reserved: matches!(counts, Counts::Reserved | Counts::Device),
        driver: counts == Counts::Device,
        unnamed_software: !is_named,
        older_torch: sources::stack(record).torch < (2, 4),
        compiled: record.compile.switch() == Some(true),
        stand_in: (&**category == "llm_peft" && !task.starts_with("lora {"))
            || task.contains_any(&["\"use_dora\": true", "gptq"])
            || other.contains("-foak") && task.contains("nf4")
            || record.attention_impl.contains("flex")
            || model.contains("mixtral")
            || repository::first_qwen(model)
            || model.starts_with("dit-"),
        longest: record.notes.contains_any(&lengths) || other.contains_any(&lengths),
        evaluations: other.contains("inside the max"),
    }
}

/// Predicts what is allocated, what is reserved, and what the driver shows; of a pipeline its fullest stage's.
fn predict(record: &Record) -> Result<[u64; 3], String> {
    let settings = Settings {
        expandable_segments: sources::expandable_segments(record),
        ..Settings::default()
    };
    let first = job::world(record)?;
    let mut most = [0; 3];
    for stage in 0..first.mesh.stages.max(1) {
        let mut world = first;
        world.rank.stage = stage;
        let peaks = Peaks::replayed(&run_on(record, world)?.trace, &settings);
        let allocated = peaks.highest().map_or(0, |peak| peak.bytes);
        let needs = [allocated, peaks.reserved, peaks.reserved + context(record)];
        for (most, need) in most.iter_mut().zip(needs) {
            *most = need.max(*most);
        }
    }
    Ok(most)
}

/// Runs the described training step, on the first rank.
pub fn run(record: &Record) -> Result<step::Run, String> {
    run_on(record, job::world(record)?)
}

fn run_on(record: &Record, world: World) -> Result<step::Run, String> {
    let (net, language) = network::network(record)?;
    let micro_batch = record.micro_batch.number();
    let micro_batch = micro_batch.ok_or("the record does not say the micro-batch")?;
    let sequence = record.seq_len.number();
    let mut data = Data {
        micro_batch: micro_batch.saturating_mul(vision::clips(record)),
        sequence: sequence.unwrap_or(1),
        padding_mask: false,
        ..Data::default()
    };
    diffusion::resize(record, &mut data);
    if language && sequence.is_none() {
        return Err("the record does not say the sequence length as a number".into());
    }
    let training = training::training(record)?;
    let is_one_step =
        litgpt::is_record(record) && litgpt::early(record) || diffusion::is_one_step(record);
    let plan = RunPlan {
        world,
        libraries: sources::libraries(record),
        ..RunPlan::first_steps(if is_one_step { 1 } else { 3 })
    };
    Ok(step::run(&*net, &data, &training, machine(record), plan))
}

fn counts(metric: &str) -> Result<Counts, String> {
    Ok(match metric {
        "max_allocated" | "max_active" => Counts::Allocated,
        "max_reserved" => Counts::Reserved,
        _ if metric.starts_with("nvidia-smi") => Counts::Device,
        _ if metric.starts_with("unspecified") => Counts::Unnamed,
        other => return Err(format!("the metric `{other}` is not a named one")),
    })
}

/// The CUDA context: 1343 MiB on a V100 with CUDA 11.2, measured in the same document as the records that count it
/// (huggingface/transformers, docs/source/en/perf_train_gpu_one.mdx); else that of newer drivers.
fn context(record: &Record) -> u64 {
    let is_v100 = record.gpu.contains("v100");
    (if is_v100 { 1343 } else { 500 }) << 20
}

fn machine(record: &Record) -> Machine {
    // Multiprocessors: the vendor's data sheets, as in the catalogue of GPUs.
    let gpus = [
        ("b200", (10, 0), 148),
        ("h100", (9, 0), 132),
        ("h200", (9, 0), 132),
        ("l40s", (8, 9), 142),
        ("4070ti", (8, 9), 66),
        ("a10g", (8, 6), 80),
        ("v100", (7, 0), 80),
        ("t4", (7, 5), 40),
        ("", (8, 0), 108),
    ];
    let (_, capability, multiprocessors) = (gpus.into_iter())
        .find(|(name, ..)| record.gpu.contains(name))
        .unwrap_or_default();
    Machine {
        capability,
        multiprocessors,
        torch: software::torch(&sources::stack(record)),
        ..Machine::default()
    }
}
