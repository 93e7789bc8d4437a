//! Records of peaks that others measured on real GPUs and published: a run in words, and one number in a named metric.

mod diffusion;
mod job;
mod litgpt;
mod megatron;
mod network;
mod peft;
mod sources;
mod torchtune;
mod training;
mod vision;
mod words;

use serde_json::Value;

use super::{Row, score};
use headroom_base::mesh::Rank;
use headroom_base::units::Bytes;
use headroom_core::allocator::Settings;
use headroom_core::estimate::{Band, Doubts, Peaks, software};
use headroom_core::parallel::World;
use headroom_core::step;
use headroom_core::tape::Machine;
use headroom_scenario::Data;

/// The metric of a record: what its number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Allocated,
    Reserved,
    /// What the driver shows: reserved and the context.
    Device,
    /// One of these, which the source does not say.
    Unnamed,
}

/// What is predicted of a run, by what may be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Predicted {
    allocated: u64,
    reserved: u64,
    device: u64,
}

impl Predicted {
    /// The figure that is counted; of a metric that is not named the middle one.
    const fn counted(self, counts: Counts) -> u64 {
        match counts {
            Counts::Allocated => self.allocated,
            Counts::Reserved | Counts::Unnamed => self.reserved,
            Counts::Device => self.device,
        }
    }

    /// The range of the figure; where the metric is not named, from the least of them to the most.
    fn band(self, counts: Counts, record: &Value) -> Band {
        let of = |counts: Counts| {
            let uncertainty = doubts(record, counts).uncertainty();
            uncertainty.band(Bytes::new(self.counted(counts)))
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
}

const GIB: f64 = (1_u64 << 30) as f64;

/// The number measured, in bytes.
fn truth(record: &Value) -> Option<u64> {
    let gib = record["measured_gib"].as_f64()?;
    (gib > 0.0).then_some((gib * GIB) as u64)
}

pub fn is_record(record: &Value) -> bool {
    record["measured_gib"].is_number() && record["metric"].is_string()
}

/// The score of a record.
pub fn row(record: &Value, id: &str) -> Row {
    let group = record["category"].as_str().unwrap_or("none");
    let counts = counts(&text(record, "metric"));
    let predicted = counts.and_then(|counts| Ok((counts, predict(record)?)));
    let row = match (predicted, truth(record)) {
        (Err(reason), _) => Row::unsupported(id, group, reason),
        (Ok(_), None) => Row::unsupported(id, group, "the record lacks the metric".into()),
        (Ok((counts, predicted)), Some(truth)) => {
            let band = predicted.band(counts, record);
            let error = |predicted: u64| Row::scored(id, group, truth, predicted).error;
            let Predicted {
                allocated,
                reserved,
                device,
            } = predicted;
            let each = (counts == Counts::Unnamed)
                .then(|| [allocated, reserved, device].map(|figure| error(figure).unwrap_or(0.0)));
            Row {
                against: each,
                kind: kind(record, counts),
                ..Row::scored(id, group, truth, predicted.counted(counts)).within(Some(band))
            }
        }
    };
    Row {
        class: class(record),
        ..row
    }
}

/// The metric of a record that is held to the targets: one GPU, a named metric, confidence 4 or 5; and of those whose metric is not
/// named, on however many GPUs.
fn class(record: &Value) -> Option<&'static str> {
    let counts = counts(&text(record, "metric")).ok()?;
    let sure = is_sure(record);
    let alone = record["n_gpus"].as_u64() == Some(1);
    (sure && (alone || counts == Counts::Unnamed)).then_some(match counts {
        Counts::Allocated => "allocated",
        Counts::Reserved => "reserved",
        Counts::Device => "nvidia-smi",
        Counts::Unnamed => score::UNNAMED,
    })
}

/// Where a record's band is counted: by its metric, and apart for one GPU and several. Of those in whose figures confidence is low,
/// nowhere.
fn kind(record: &Value, counts: Counts) -> Option<&'static str> {
    let alone = record["n_gpus"].as_u64() == Some(1);
    is_sure(record).then_some(match (counts, alone) {
        (Counts::Allocated, true) => "allocated, one GPU",
        (Counts::Allocated, false) => "allocated, several GPUs",
        (Counts::Reserved, true) => "reserved, one GPU",
        (Counts::Reserved, false) => "reserved, several GPUs",
        (Counts::Device, true) => "nvidia-smi, one GPU",
        (Counts::Device, false) => "nvidia-smi, several GPUs",
        (Counts::Unnamed, true) => "metric not named, one GPU",
        (Counts::Unnamed, false) => "metric not named, several GPUs",
    })
}

/// A confidence of 4 or 5.
fn is_sure(record: &Value) -> bool {
    record["confidence"].as_u64().unwrap_or(0) >= 4
}

/// What a record leaves open.
fn doubts(record: &Value, counts: Counts) -> Doubts {
    let framework = text(record, "framework");
    let task = text(record, "task");
    let torch = sources::stack(record).torch;
    let pinned = ["fms", "litgpt", "lit-gpt"];
    // Automodel trains models of transformers, whose version its guide does not name.
    let named = framework.contains("torch ") && !framework.contains("automodel")
        || framework.contains("nightly")
        || pinned.iter().any(|name| framework.contains(name));
    let category = text(record, "category");
    let vision = category.starts_with("vision");
    Doubts {
        unruled: false,
        convolutions: vision && !text(record, "model").contains("vit"),
        reserved: matches!(counts, Counts::Reserved | Counts::Device),
        driver: counts == Counts::Device,
        unnamed_software: !named,
        older_torch: torch < (2, 4),
        compiled: record["compile"].as_bool() == Some(true),
        stand_in: (category == "llm_peft" && !task.starts_with("lora {"))
            || task.contains("\"use_dora\": true")
            || task.contains("gptq")
            || text(record, "other").contains("-foak") && task.contains("nf4")
            || text(record, "attention_impl").contains("flex")
            || text(record, "model").contains("mixtral")
            || network::first_qwen(&text(record, "model"))
            || text(record, "model").starts_with("dit-"),
        longest: ["<=512", "variable", "maximum"].iter().any(|word| {
            text(record, "notes").contains(word) || text(record, "other").contains(word)
        }),
        evaluations: text(record, "other").contains("inside the max"),
    }
}

/// Predicts from the description of a run.
fn predict(record: &Value) -> Result<Predicted, String> {
    let settings = Settings {
        expandable_segments: sources::expandable_segments(record),
        ..Settings::default()
    };
    let first = job::world(record)?;
    let needs = |world: World| {
        let peaks = Peaks::replayed(&run_on(record, world)?.trace, &settings);
        Ok(Predicted {
            allocated: peaks.highest().map_or(0, |peak| peak.bytes),
            reserved: peaks.reserved,
            device: peaks.reserved + context(record),
        })
    };
    // Of a pipeline the fullest stage is the one that is told.
    let stages = (0..first.mesh.stages.max(1)).map(|stage| World {
        rank: Rank {
            stage,
            ..first.rank
        },
        ..first
    });
    stages.map(needs).try_fold(
        Predicted::default(),
        |most: Predicted, next: Result<Predicted, String>| {
            let next = next?;
            Ok(Predicted {
                allocated: most.allocated.max(next.allocated),
                reserved: most.reserved.max(next.reserved),
                device: most.device.max(next.device),
            })
        },
    )
}

/// Runs the described training step, on the first rank.
pub fn run(record: &Value) -> Result<step::Run, String> {
    run_on(record, job::world(record)?)
}

fn run_on(record: &Value, world: World) -> Result<step::Run, String> {
    let (net, language) = network::network(record)?;
    let data = Data {
        micro_batch: record["micro_batch"]
            .as_u64()
            .ok_or("the record does not say the micro-batch")?
            .saturating_mul(vision::clips(record)),
        sequence: record["seq_len"].as_u64().unwrap_or(1),
        padding_mask: false,
        ..Data::default()
    };
    if language && record["seq_len"].as_u64().is_none() {
        return Err("the record does not say the sequence length as a number".into());
    }
    let training = training::training(record)?;
    let steps = if litgpt::is_record(record) && litgpt::early(record) {
        1
    } else {
        3
    };
    let plan = step::RunPlan {
        world,
        libraries: sources::libraries(record),
        ..step::RunPlan::first_steps(steps)
    };
    Ok(step::run(&*net, &data, &training, machine(record), plan))
}

fn text(record: &Value, name: &str) -> String {
    record[name].as_str().unwrap_or_default().to_lowercase()
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

/// The CUDA context of the card and the software: 1343 MiB on a V100 with CUDA 11.2, measured in the same document as the
/// records that count it (huggingface/transformers, docs/source/en/perf_train_gpu_one.mdx); else what newer drivers take.
fn context(record: &Value) -> u64 {
    let mib = if text(record, "gpu").contains("v100") {
        1343
    } else {
        500
    };
    mib << 20
}

fn machine(record: &Value) -> Machine {
    let gpu = text(record, "gpu");
    let of = |capability, multiprocessors| Machine {
        capability,
        multiprocessors,
        torch: software::torch(&sources::stack(record)),
        ..Machine::default()
    };
    // Multiprocessors: the vendor's data sheets, as in the catalogue of GPUs.
    if gpu.contains("b200") {
        of((10, 0), 148)
    } else if gpu.contains("h100") || gpu.contains("h200") {
        of((9, 0), 132)
    } else if gpu.contains("l40s") {
        of((8, 9), 142)
    } else if gpu.contains("4070ti") {
        of((8, 9), 66)
    } else if gpu.contains("a10g") {
        of((8, 6), 80)
    } else if gpu.contains("v100") {
        of((7, 0), 80)
    } else if gpu.contains("t4") {
        of((7, 5), 40)
    } else {
        of((8, 0), 108)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record in fms-acceleration's benchmarks, packed to so many tokens, is predicted within 0.1 %.
    #[track_caller]
    fn check(
        (model, sequence): (&str, u64),
        [task, precision, kernels]: [&str; 3],
        [gpus, micro_batch]: [u64; 2],
        gib: f64,
    ) {
        let how = if gpus == 1 {
            "none".to_string()
        } else {
            format!("FSDP1 FULL_SHARD x{gpus}")
        };
        let record = serde_json::json!({
            "framework": "fms-hf-tuning, transformers 4.48, torch 2.4, peft 0.13, bnb 0.43",
            "model": model, "gpu": "A100", "n_gpus": gpus,
            "parallelism": how, "task": task, "precision": precision, "fused_or_chunked_ce": kernels,
            "optimizer": "adamw_torch", "activation_checkpointing": "full", "micro_batch": micro_batch, "seq_len": sequence,
            "metric": "max_allocated", "measured_gib": gib,
        });
        let predicted = predict(&record).unwrap().allocated as f64 / GIB;
        assert!((predicted / gib - 1.0).abs() < 0.001, "{predicted} {gib}");
    }

    #[test]
    fn fsdp1_of_accelerate_needs_what_was_measured() {
        let mistral = ("mistralai/Mistral-7B-v0.1", 4096);
        let lora = "lora r=16 alpha=16 dropout=0.1 targets=q_proj k_proj v_proj o_proj";
        // scripts/benchmarks/refs/a100_80gb.csv and a100_80gb_liger.csv: frozen units keep their inputs and gradients,
        let frozen = [lora, "bfloat16 weights, no autocast", "none"];
        check(mistral, frozen, [2, 4], 20.4517);
        // and what is trained under autocast is kept in fp32.
        let autocast = ["full finetune", "bfloat16 weights + bf16 autocast", "none"];
        check(mistral, autocast, [2, 4], 67.4602);
    }

    #[test]
    fn what_accelerate_returns_in_fp32_is_counted() {
        let santacoder = ("bigcode/gpt_bigcode-santacoder", 2048);
        let task = "qlora (bnb nf4 base) r=16 alpha=16 dropout=0.1 targets=c_attn";
        let run = |kernels| [task, "bfloat16 weights + bf16 autocast", kernels];
        check(santacoder, run("none"), [1, 8], 16.2858);
        check(
            santacoder,
            run("foak (Unsloth Triton cross-entropy)"),
            [1, 8],
            13.2852,
        );
    }
}
