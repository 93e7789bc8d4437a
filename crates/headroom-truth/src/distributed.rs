//! Records of one rank of a run on several GPUs: what of it is modelled, and how it was run.

use serde_json::{Map, Value};

use super::simulated;
use super::world::world;
use headroom_core::step::{self, RunPlan};
use headroom_scenario::{Checkpointing, Objective, Precision, Quantization, Reference, Sampler};

type Object = Map<String, Value>;

/// A feature, and whether a record uses it.
type Feature = (&'static str, fn(&Object) -> bool);

/// What a record may use that is not modelled, each by the name that a refusal gives it.
const NOT_MODELLED: &[Feature] = &[
    ("DeepSpeed without ZeRO", |knobs| is_zero(knobs, 0)),
    (
        "selective checkpointing under a backward in two parts",
        |knobs| {
            let splits = ["zb", "zbv", "dualpipev"]
                .iter()
                .any(|name| is(knobs, "pp_sched", name));
            splits && (is(knobs, "ckpt", "sac_op") || is(knobs, "ckpt", "sac_2"))
        },
    ),
    ("recomputation of so many layers", |knobs| {
        let method = knobs.get("mg").and_then(|settings| settings.get("method"));
        let in_blocks = method.and_then(Value::as_str) == Some("block");
        is(knobs, "engine", "mg") && (in_blocks || of_megatron(knobs, "num"))
    }),
];

/// Runs three steps of a recorded rank.
pub fn run(knobs: &Object, dims: &Object) -> Result<step::Run, String> {
    let missing: Vec<&str> = NOT_MODELLED
        .iter()
        .filter(|(_, uses)| uses(knobs))
        .map(|(name, _)| *name)
        .collect();
    if !missing.is_empty() {
        return Err(format!("not modelled: {}", missing.join(", ")));
    }
    let (mut data, mut training) = simulated::settings(knobs)?;
    let task = task_of(knobs);
    let is_trl = task.is_some() || is(knobs, "trainer", "sft");
    if let Some(objective) = task {
        let number = |name: &str| knobs.get(name).and_then(Value::as_u64).unwrap_or(0);
        let task = &mut training.task;
        task.objective = objective;
        task.labelled = 1.0 - number("prompt") as f64 / number("seq").max(1) as f64;
        task.sampler = Sampler::VllmElsewhere;
        (task.prompt, task.completion) = (number("prompt"), number("completion"));
        task.reference = if objective == Objective::Grpo {
            Reference::None
        } else if training.lora.is_some() {
            Reference::AdaptersOff
        } else {
            Reference::Copy
        };
        data.padding_mask = false;
    } else if is_trl {
        // Its loop projects rows of a label alone, and what the recorder's device returns to the host is zeros: it counts none.
        training.task.objective = Objective::Sft;
        training.task.labelled = 0.0;
        // A mask of zeros is not all ones, so that it is not left out.
        data.padding_mask = true;
    }
    let shards_by_fsdp = is(knobs, "strategy", "fsdp2") || is(knobs, "strategy", "fsdp1");
    if (is_trl || is(knobs, "trainer", "hf")) && shards_by_fsdp {
        // A trainer's label says nothing of the types: the weights are loaded in one, autocast lowers to another.
        let loaded_half = is(knobs, "base_dtype", "bf16");
        training.precision = match (loaded_half, is(knobs, "amp", "bf16")) {
            (true, true) => Precision::AmpBf16OnBf16,
            (true, false) => Precision::Bf16,
            (false, true) => Precision::AmpBf16,
            (false, false) => Precision::Fp32,
        };
    }
    if let Some(quant) = knobs.get("quant").and_then(Value::as_str) {
        training.quantization = match quant {
            "nf4" => Quantization::Nf4,
            "nf4-dq" => Quantization::Nf4Double,
            "int8" => Quantization::Int8,
            other => return Err(format!("quantisation to {other} is not modelled")),
        };
        let prepared = knobs
            .get("lora")
            .and_then(|lora| lora.get("prep"))
            .and_then(Value::as_bool)
            != Some(false);
        if prepared && training.precision == Precision::AmpBf16OnBf16 {
            // `prepare_model_for_kbit_training`: whatever is not quantised is cast up.
            training.precision = Precision::AmpBf16;
        }
    }
    if is(knobs, "strategy", "ds") && !is(knobs, "precision", "fp32") {
        // `module.bfloat16()` or `module.half()`: all weights, adapters too.
        let fp16 = is(knobs, "precision", "fp16");
        training.precision = if fp16 {
            Precision::Fp16
        } else {
            Precision::Bf16
        };
        if let Some(lora) = &mut training.lora {
            lora.fp32_adapters = false;
        }
    }
    if is(knobs, "engine", "mg") {
        let recompute = knobs
            .get("mg")
            .and_then(|settings| settings.get("recompute"));
        if recompute.and_then(Value::as_str) == Some("full") {
            training.checkpointing = Checkpointing::Layers;
        }
        training.accumulation = knobs.get("pp_micro").and_then(Value::as_u64).unwrap_or(1);
    } else if beyond(knobs, "pp") {
        let micro_batches = knobs.get("pp_micro").and_then(Value::as_u64);
        training.accumulation = micro_batches.unwrap_or(1);
        training.keep_outputs = knobs.get("hold_pred").and_then(Value::as_bool) == Some(true);
    }
    let plan = RunPlan {
        world: world(knobs, dims)?,
        // These recordings answer what trainers read of their data through a `TorchDispatchMode`.
        dispatched: task.is_some(),
        looks_at_gradients: is_by_hand(knobs),
        ..RunPlan::first_steps(3)
    };
    simulated::run_with(knobs, dims, &data, &training, plan)
}

/// What a trainer of TRL trains for, where it is not supervised fine-tuning.
fn task_of(knobs: &Object) -> Option<Objective> {
    Some(match knobs.get("trainer").and_then(Value::as_str)? {
        "dpo" => Objective::Dpo,
        "kto" => Objective::Kto,
        "orpo" => Objective::Orpo,
        "reward" => Objective::Reward,
        "grpo" => Objective::Grpo,
        _ => return None,
    })
}

/// Whether a record is of the script with a loop of its own, which counts the gradients in its last step and still holds the last
/// of them when it asks what is allocated.
fn is_by_hand(knobs: &Object) -> bool {
    let named = |key: &str| knobs.get(key).is_some_and(Value::is_string);
    !named("engine") && !named("trainer")
}

fn is_zero(knobs: &Object, stage: u64) -> bool {
    is(knobs, "strategy", "ds") && knobs.get("zero").and_then(Value::as_u64) == Some(stage)
}

fn is(knobs: &Object, name: &str, value: &str) -> bool {
    knobs.get(name).and_then(Value::as_str) == Some(value)
}

/// Whether Megatron-Core is given more than one of something.
fn of_megatron(knobs: &Object, name: &str) -> bool {
    let settings = knobs.get("mg");
    settings
        .and_then(|settings| settings.get(name))
        .and_then(Value::as_u64)
        > Some(1)
}

fn beyond(knobs: &Object, degree: &str) -> bool {
    knobs.get(degree).and_then(Value::as_u64) > Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Metric, measured};

    const TINY: &str = r#"{"hidden": 2048, "layers": 22, "heads": 32, "kv": 4, "ffn": 5632, "vocab": 32000, "tied": false,
        "head_dim": 64, "family": "llama"}"#;

    /// Peak and end of forward of PyTorch 2.15 and its wrappers on one rank of a bookkeeping GPU.
    #[track_caller]
    fn check(knobs: &str, expected: [u64; 2]) {
        let read = |text| serde_json::from_str::<Object>(text).unwrap();
        let run = run(&read(knobs), &read(TINY)).unwrap();
        let found =
            [Metric::Allocated, Metric::Forward].map(|metric| measured(&run, metric).unwrap());
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(found.abs_diff(expected) <= 4096, "{found} for {expected}");
        }
    }

    #[test]
    fn wrappers_gather_and_reduce_as_recorded() {
        check(
            r#"{"precision": "fp32", "optim": "adamw_fused", "mb": 1, "seq": 512, "attn": "sdpa", "strategy": "fsdp2", "fsdp": 64, "mp_param": "bf16", "mp_reduce": "fp32"}"#,
            [1_983_453_696, 1_282_447_872],
        );
        check(
            r#"{"precision": "fp32", "optim": "adamw_fused", "mb": 2, "seq": 2048, "attn": "sdpa", "ckpt": true, "strategy": "fsdp2", "fsdp": 8, "mp_param": "bf16", "mp_reduce": "fp32", "reshard": false}"#,
            [5_885_658_624, 4_837_115_392],
        );
        check(
            r#"{"precision": "bf16", "optim": "adamw_fused", "mb": 2, "seq": 2048, "attn": "sdpa", "accum": 4, "strategy": "fsdp2", "fsdp": 8}"#,
            [12_884_459_520, 11_483_582_464],
        );
        check(
            r#"{"precision": "bf16", "optim": "adamw_fused", "mb": 2, "seq": 2048, "attn": "sdpa", "strategy": "ds", "dp": 8, "zero": 2}"#,
            [13_346_378_752, 12_297_834_496],
        );
    }

    /// The same of TinyLlama with fewer layers.
    #[track_caller]
    fn check_short(layers: u64, knobs: &str, expected: [u64; 2]) {
        let dims = TINY.replace(r#""layers": 22"#, &format!(r#""layers": {layers}"#));
        check_of(&dims, knobs, expected);
    }

    #[test]
    fn buckets_are_compressed_and_weights_resharded_to_fewer_as_recorded() {
        let ddp = |hook: &str| {
            format!(
                r#"{{"precision": "fp32", "optim": "adamw_fused", "mb": 1, "seq": 512, "attn": "sdpa", "strategy": "ddp", "dp": 8,
                    "comm_hook": "{hook}", "powersgd_rank": 2}}"#
            )
        };
        check_short(4, &ddp("fp16"), [6_276_130_304, 5_331_312_640]);
        check_short(4, &ddp("powersgd"), [7_900_071_424, 5_331_312_640]);
        check_short(
            8,
            r#"{"precision": "fp32", "optim": "adamw_fused", "mb": 1, "seq": 512, "attn": "sdpa", "strategy": "fsdp2", "fsdp": 8,
                "mp_param": "bf16", "mp_reduce": "fp32", "reshard": 2}"#,
            [2_166_563_328, 1_532_806_144],
        );
        check_short(
            8,
            r#"{"precision": "bf16", "optim": "adamw_fused", "mb": 2, "seq": 1024, "attn": "sdpa", "ckpt": true, "strategy": "ds",
                "dp": 8, "zero": 2, "trainer": "hf", "ds_cfg": {"_bf16": {"bf16_master_weights_and_grads": true}}}"#,
            [2_216_840_192, 1_692_568_064],
        );
    }

    /// The same of other models, within a thousandth.
    #[track_caller]
    fn check_of(dims: &str, knobs: &str, expected: [u64; 2]) {
        let read = |text| serde_json::from_str::<Object>(text).unwrap();
        let run = run(&read(knobs), &read(dims)).unwrap();
        let found =
            [Metric::Allocated, Metric::Forward].map(|metric| measured(&run, metric).unwrap());
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(
                found.abs_diff(expected) <= expected / 1000,
                "{found} for {expected}"
            );
        }
    }

    const ONE_B: &str = r#"{"hidden": 2048, "layers": 16, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true,
        "head_dim": 64, "family": "llama"}"#;

    #[test]
    fn stages_run_as_recorded() {
        check_of(
            ONE_B,
            r#"{"impl": "titan", "precision": "bf16", "optim": "adamw_fused", "mb": 1, "seq": 1024, "attn": "sdpa", "strategy": "pp", "engine": "pps",
                "pp": 4, "vpp": 2, "pp_stage": 3, "pp_micro": 8, "pp_sched": "zb"}"#,
            [8_758_108_160, 7_705_337_344],
        );
        check_of(
            ONE_B,
            r#"{"impl": "titan", "precision": "fp32", "optim": "adamw_fused", "mb": 1, "seq": 2048, "attn": "sdpa", "strategy": "pp", "engine": "pps",
                "pp": 2, "vpp": 2, "pp_stage": 1, "pp_micro": 4, "pp_sched": "interleaved", "fsdp": 4, "mp_param": "bf16", "mp_reduce": "fp32"}"#,
            [12_956_325_376, 10_854_979_072],
        );
        check_of(
            ONE_B,
            r#"{"impl": "titan", "precision": "bf16", "optim": "adamw_fused", "mb": 1, "seq": 1024, "attn": "sdpa", "ckpt": "full",
                "strategy": "pp", "engine": "pps", "pp": 4, "vpp": 2, "pp_stage": 0, "pp_micro": 8, "pp_sched": "zbv"}"#,
            [8_296_001_536, 7_047_786_496],
        );
    }

    #[test]
    fn stages_reserve_as_recorded() {
        // Each stage is gathered where the program computes, and reduces on a stream of its own.
        let read = |text| serde_json::from_str::<Object>(text).unwrap();
        let knobs = r#"{"impl": "titan", "precision": "fp32", "optim": "adamw_fused", "mb": 1, "seq": 2048, "attn": "sdpa", "strategy": "pp",
            "engine": "pps", "pp": 2, "vpp": 2, "pp_stage": 1, "pp_micro": 4, "pp_sched": "interleaved", "fsdp": 4, "mp_param": "bf16",
            "mp_reduce": "fp32"}"#;
        let run = run(&read(knobs), &read(ONE_B)).unwrap();
        let found = measured(&run, Metric::Reserved).unwrap();
        let expected = 14_575_206_400_u64;
        assert!(found.abs_diff(expected) < expected / 200, "{found}");
    }

    #[test]
    fn experts_are_dispatched_as_recorded() {
        check_of(
            r#"{"hidden": 2048, "layers": 4, "heads": 16, "kv": 4, "ffn": 5632, "vocab": 32000, "tied": false, "head_dim": 128, "experts": 8,
                "topk": 2, "family": "mixtral"}"#,
            r#"{"impl": "hf", "precision": "fp32", "optim": "adamw_fused", "mb": 1, "seq": 1024, "attn": "sdpa", "strategy": "ep", "engine": "moe",
                "fsdp": 8, "ep": 8, "mp_param": "bf16", "mp_reduce": "fp32"}"#,
            [3_149_118_464, 2_819_341_312],
        );
    }

    #[test]
    fn megatron_core_runs_as_recorded() {
        let dims = ONE_B.replace(r#""layers": 16"#, r#""layers": 8"#);
        let knobs = |more: &str| {
            format!(
                r#"{{"impl": "hf", "precision": "bf16", "optim": "adamw_fused", "mb": 1, "seq": 2048, "attn": "sdpa", "strategy": "megatron", "engine": "mg",
                    "pp_micro": 2, {more}}}"#
            )
        };
        check_of(
            &dims,
            &knobs(r#""dp": 4"#),
            [12_038_888_448, 11_512_431_104],
        );
        let full = r#""dp": 4, "tp": 2, "sp": true, "mg": {"recompute": "full"}"#;
        check_of(&dims, &knobs(full), [5_394_795_008, 5_132_037_632]);
    }
}
