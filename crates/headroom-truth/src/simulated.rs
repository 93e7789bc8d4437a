//! Records of runs on a bookkeeping GPU: settings as `knobs`, the model as `dims`.

use serde_json::{Map, Value};

use super::auxiliary::WithAuxiliary;
use super::world::world;
use headroom_base::units::Bytes;
use headroom_core::allocator::Settings;
use headroom_core::estimate::{Band, Doubts, Peaks, Phase};
use headroom_core::nets::{self, Sizes};
use headroom_core::step;
use headroom_core::tape::Machine;
use headroom_scenario::{
    Attention, Checkpointing, Compile, CompileMode, Data, Lora, Optimizer, Precision, Training,
};

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    #[default]
    Allocated,
    Reserved,
    Expandable,
    /// Allocated when the last forward ends.
    Forward,
    /// The peak of a phase of the last step.
    Phase(Phase),
    /// Allocated between steps.
    Static,
    /// What offload keeps in the host's memory, in pages that stay in place.
    Pinned,
}

impl Metric {
    pub fn from_id(id: &str) -> Option<Self> {
        Some(match id {
            "allocated" => Self::Allocated,
            "reserved" => Self::Reserved,
            "expandable" => Self::Expandable,
            "forward" => Self::Forward,
            "forward-peak" => Self::Phase(Phase::Forward),
            "backward-peak" => Self::Phase(Phase::Backward),
            "optimizer-peak" => Self::Phase(Phase::Optimizer),
            "static" => Self::Static,
            "pinned" => Self::Pinned,
            _ => return None,
        })
    }

    pub fn truth(self, record: &Value) -> Option<u64> {
        match self {
            Self::Allocated => record["peak_allocated"].as_u64(),
            Self::Reserved => record["peak_reserved"].as_u64(),
            Self::Expandable => [&record["sim"]["expandable"], &record["expandable"]]
                .iter()
                .find_map(|of| of["peak_reserved"].as_u64()),
            Self::Forward => record["fwd_end"].as_u64(),
            Self::Static => record["static_end"].as_u64(),
            Self::Pinned => record["host_pinned"]["allocated_peak"]
                .as_u64()
                // Where it is pageable, nothing but batches is pinned.
                .filter(|_| record["knobs"]["pin"] != Value::Bool(false)),
            Self::Phase(phase) => {
                let name = match phase {
                    Phase::Forward => "forward",
                    Phase::Backward => "backward",
                    Phase::Optimizer => "optimizer",
                    Phase::Evaluation => "evaluation",
                    Phase::Setup | Phase::Generation | Phase::Reference | Phase::Resume => {
                        return None;
                    }
                };
                record["phase_peaks"][name].as_u64()
            }
        }
    }
}

type Object = Map<String, Value>;

/// What a metric reads of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub bytes: u64,
    /// The range that is stated for it; none but of what is allocated and reserved.
    pub band: Option<Band>,
}

/// What is in doubt of a recorded network, as of a scenario's.
pub fn doubts(knobs: &Object, dims: &Object) -> Doubts {
    let family = dims.get("family").or_else(|| knobs.get("model"));
    let family = family.and_then(Value::as_str).unwrap_or_default();
    Doubts::of(&architecture(family, knobs))
}

pub fn predict(knobs: &Object, dims: &Object, metric: Metric) -> Result<Figure, String> {
    let replayed = knobs.get("mode").and_then(Value::as_str) == Some(REPLAYED);
    let of_last_step = matches!(metric, Metric::Forward | Metric::Phase(_) | Metric::Static);
    if replayed && of_last_step {
        return Err("the last step replays CUDA graphs, which count as not allocated".into());
    }
    figure(&run(knobs, dims)?, metric, doubts(knobs, dims))
}

/// What a metric reads of a run, of which this is in doubt.
pub fn figure(run: &step::Run, metric: Metric, doubts: Doubts) -> Result<Figure, String> {
    let settings = match metric {
        Metric::Expandable => Settings::expandable(),
        _ => Settings::default(),
    };
    let peaks = Peaks::replayed(&run.trace, &settings);
    let allocated = peaks.highest().map_or(0, |peak| peak.bytes);
    let [of_allocated, of_reserved] =
        doubts.bands(Bytes::new(allocated), Bytes::new(peaks.reserved));
    let band = match metric {
        Metric::Allocated => Some(of_allocated),
        Metric::Reserved | Metric::Expandable => Some(of_reserved),
        _ => None,
    };
    let predicted = match metric {
        Metric::Allocated => peaks.highest().map(|peak| peak.bytes),
        Metric::Forward => peaks
            .phases
            .iter()
            .rev()
            .find(|peak| peak.mark.phase == Phase::Forward)
            .map(|peak| peak.end),
        Metric::Phase(phase) => {
            let of_phase = peaks.phases.iter().filter(|peak| peak.mark.phase == phase);
            let last = of_phase.clone().map(|peak| peak.mark.step).max();
            of_phase
                .filter(|peak| Some(peak.mark.step) == last)
                .map(|peak| peak.bytes)
                .max()
        }
        Metric::Static => peaks.phases.last().map(|peak| peak.end),
        Metric::Pinned => Some(run.pinned).filter(|pinned| *pinned > 0),
        Metric::Reserved | Metric::Expandable => Some(peaks.reserved),
    };
    let bytes = predicted.ok_or_else(|| "nothing was run".to_string())?;
    Ok(Figure { bytes, band })
}

/// The same without its range.
#[cfg(test)]
pub fn measured(run: &step::Run, metric: Metric) -> Result<u64, String> {
    figure(run, metric, Doubts::default()).map(|figure| figure.bytes)
}

/// Runs three steps of a recorded case, as the recording did.
pub fn run(knobs: &Object, dims: &Object) -> Result<step::Run, String> {
    let (mut data, mut training) = settings(knobs)?;
    if dims.get("family").and_then(Value::as_str) == Some("llava") {
        // The recorder gives LLaVA neither a mask nor a cache, whatever the record's settings say.
        data.padding_mask = false;
        training.use_cache = false;
    }
    let plan = step::RunPlan {
        world: world(knobs, dims)?,
        ..step::RunPlan::first_steps(3)
    };
    run_with(knobs, dims, &data, &training, plan)
}

/// The same with settings from elsewhere.
pub fn run_with(
    knobs: &Object,
    dims: &Object,
    data: &Data,
    training: &Training,
    plan: step::RunPlan,
) -> Result<step::Run, String> {
    let family = dims
        .get("family")
        .and_then(Value::as_str)
        .ok_or("the record names no family")?;
    if !training.budget_is_known(family) {
        return Err("what a compiled graph keeps within this memory budget is not known".into());
    }
    let mut sizes = Sizes::default();
    for (name, value) in dims {
        match value {
            Value::Number(n) => sizes.set(
                name,
                n.as_u64()
                    .ok_or_else(|| format!("`{name}` is not a whole number"))?,
            ),
            Value::Bool(on) => sizes.set(name, u64::from(*on)),
            Value::Array(all) => {
                sizes.set_list(name, all.iter().filter_map(Value::as_u64).collect());
            }
            // A choice, such as the `cls` of a head.
            Value::String(choice) => sizes.set(&format!("{name}={choice}"), 1),
            _ => {}
        }
    }
    if let (Some(width), Some(heads)) = (sizes.get("hidden"), sizes.get("heads"))
        && family == "phi3"
    {
        // The recorder does not tell Phi-3 of a head's width, which leaves it at an equal share.
        sizes.set("head_dim", width / heads.max(1));
    }
    if knobs.get("norm").and_then(Value::as_str) == Some("manual") {
        sizes.set("python_norms", 1);
    }
    if knobs.get("engine").and_then(Value::as_str) == Some("mg") {
        megatron(knobs, &mut sizes);
    }
    let net =
        nets::build(&architecture(family, knobs), &sizes).map_err(|error| error.to_string())?;
    let net = match knobs.get("aux_loss").and_then(Value::as_bool) {
        Some(true) => Box::new(WithAuxiliary(net)),
        _ => net,
    };
    let machine = machine(knobs);
    let plan = step::RunPlan {
        mode: match knobs.get("train_mode").and_then(Value::as_bool) {
            Some(false) => step::ModelMode::Eval,
            _ => step::ModelMode::Train,
        },
        ..plan
    };
    Ok(step::run(&*net, data, training, machine, plan))
}

/// What a record of Megatron-Core says of the model.
fn megatron(knobs: &Object, sizes: &mut Sizes) {
    let of = |name: &str| knobs.get("mg").and_then(|settings| settings.get(name));
    let is = |name: &str, value: &str| of(name).and_then(Value::as_str) == Some(value);
    let is_off = |name: &str| of(name).and_then(Value::as_bool) == Some(false);
    let switches = [
        ("gpt", is("arch", "gpt")),
        ("shares_embeddings", is_off("untied")),
        ("drops", of("dropout").and_then(Value::as_f64) > Some(0.0)),
        ("plain_attention", is("attn", "local")),
        ("recompute_core_attention", is("recompute", "selective")),
        ("separate_accumulation", is_off("gaf")),
    ];
    for (name, on) in switches {
        if on {
            sizes.set(name, 1);
        }
    }
}

/// The models of torchvision and timm are told apart by name, as `tv:resnet50`, `timm:resnet50`.
fn architecture(family: &str, knobs: &Object) -> String {
    let model = knobs
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if knobs.get("engine").and_then(Value::as_str) == Some("mg") {
        "megatron_gpt".to_string()
    } else if knobs.get("impl").and_then(Value::as_str) == Some("titan") {
        "torchtitan_llama3".to_string()
    } else if model.starts_with(&format!("{family}:")) {
        model.to_string()
    } else if matches!(family, "tv" | "timm") {
        format!("{family}:{model}")
    } else {
        family.to_string()
    }
}

fn machine(knobs: &Object) -> Machine {
    let cudnn_workspace = knobs.get("cudnn_ws").and_then(Value::as_u64).unwrap_or(0);
    // Some recordings compile and time no kernels.
    let tunes = knobs.get("kernels").and_then(Value::as_str) != Some("noop");
    match knobs.get("sm").and_then(Value::as_u64) {
        Some(90) => Machine {
            capability: (9, 0),
            multiprocessors: 132,
            cudnn_workspace,
            tunes,
            ..Machine::default()
        },
        _ => Machine {
            cudnn_workspace,
            tunes,
            ..Machine::default()
        },
    }
}

/// The mode whose steps replay CUDA graphs from the third on: then only what leaves a graph counts as allocated.
const REPLAYED: &str = "reduce-overhead";

/// What a record compiles.
fn compile(knobs: &Object) -> Compile {
    let text = |name: &str| knobs.get(name).and_then(Value::as_str).unwrap_or_default();
    let how = match text("compile") {
        "whole" => Compile::Model,
        "block" => Compile::Layers,
        _ => return Compile::Nothing,
    };
    match knobs.get("budget").and_then(Value::as_f64) {
        Some(budget) if budget <= 0.0 && how == Compile::Model => Compile::ModelAgain,
        _ => how,
    }
}

pub fn settings(knobs: &Object) -> Result<(Data, Training), String> {
    let text = |name: &str| knobs.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag =
        |name: &str, default: bool| knobs.get(name).and_then(Value::as_bool).unwrap_or(default);
    let number = |name: &str| knobs.get(name).and_then(Value::as_u64).unwrap_or(1);
    let data = Data {
        micro_batch: number("mb"),
        sequence: number("seq"),
        padding_mask: flag("mask", false),
        ..Data::default()
    };
    let precision = match text("precision") {
        "fp32" => Precision::Fp32,
        "bf16" => Precision::Bf16,
        "fp16" => Precision::Fp16,
        "amp_bf16" => Precision::AmpBf16,
        "amp_fp16" => Precision::AmpFp16,
        "amp_bf16_basebf16" => Precision::AmpBf16OnBf16,
        other => return Err(format!("precision `{other}` is not known")),
    };
    let optimizer = match text("optim") {
        // A compiled step makes no lists of temporaries, as the fused kernel makes none.
        "adamw" if flag("opt_compile", false) => Optimizer::AdamWFused,
        "adamw" | "adam" => Optimizer::AdamW,
        "adamw_fused" => Optimizer::AdamWFused,
        "adamw_loop" => Optimizer::AdamWLoop,
        "sgd" => Optimizer::Sgd,
        "sgdm" => Optimizer::SgdMomentum,
        "adafactor" => Optimizer::Adafactor,
        "adafactor_hf" => Optimizer::AdafactorHf,
        "lion" => Optimizer::Lion,
        "lion_foreach" => Optimizer::LionForeach,
        "adagrad" => Optimizer::Adagrad,
        "rmsprop" => Optimizer::RmsProp,
        "muon" => Optimizer::Muon,
        other => return Err(format!("optimizer `{other}` is not known")),
    };
    // The recorder tells T5 and Swin nothing of attention, which leaves them at the libraries' default.
    let untold = ["t5-", "swin-"];
    let told = !untold.iter().any(|name| text("model").starts_with(name));
    let attention = match text("attn") {
        "eager" if told => Attention::Eager,
        "sdpa" | "eager" => Attention::Sdpa,
        other => return Err(format!("attention `{other}` is not known")),
    };
    let names = |value: Option<&Value>| -> Vec<String> {
        value
            .and_then(Value::as_array)
            .map(|all| {
                all.iter()
                    .filter_map(|name| name.as_str().map(String::from))
                    .collect()
            })
            .unwrap_or_default()
    };
    let frozen = names(knobs.get("freeze"));
    let (freeze, train_only) = match frozen.split_first() {
        Some((first, rest)) if first == "all_but" => (Vec::new(), rest.to_vec()),
        _ => (frozen, Vec::new()),
    };
    let lora = knobs
        .get("lora")
        .and_then(Value::as_object)
        .map(|lora| Lora {
            rank: lora.get("r").and_then(Value::as_u64).unwrap_or(8),
            targets: names(lora.get("targets")),
            // The records write a regular expression around one module's name.
            exclude: lora
                .get("exclude")
                .and_then(Value::as_str)
                .map(|pattern| pattern.trim_matches(['.', '*']).to_string())
                .into_iter()
                .collect(),
            dropout: lora.get("drop").and_then(Value::as_f64).unwrap_or(0.0),
            fp32_adapters: !flag("lora_bf16", false),
            ..Lora::default()
        });
    let training = Training {
        precision,
        compile: compile(knobs),
        memory_budget: knobs
            .get("budget")
            .and_then(Value::as_f64)
            .filter(|budget| *budget > 0.0)
            .unwrap_or(1.0),
        compile_mode: match text("mode") {
            "" | "default" => CompileMode::Default,
            REPLAYED => CompileMode::ReduceOverhead,
            mode => return Err(format!("torch.compile's mode `{mode}` is not modelled")),
        },
        optimizer,
        attention,
        checkpointing: match text("ckpt") {
            "full" | "sac_2" => Checkpointing::Layers,
            "sac_op" => Checkpointing::KeepHalf,
            _ if flag("ckpt", false) => Checkpointing::Layers,
            _ => Checkpointing::None,
        },
        checkpoint_every: if text("ckpt") == "sac_2" { 2 } else { 1 },
        accumulation: number("accum"),
        lora,
        freeze,
        train_only,
        dropout: flag("dropout", true),
        clip: flag("clip", false),
        ema: flag("ema", false),
        zero_to_none: flag("zero_none", true),
        zero_late: flag("zg_before_bwd", false),
        keep_outputs: flag("hold_outputs", false),
        use_cache: flag("use_cache", false),
        channels_last: flag("chlast", false),
        ..Training::default()
    };
    Ok((data, training))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peaks and the end of forward of PyTorch 2.15 on a bookkeeping GPU.
    #[track_caller]
    fn check(knobs: &str, dims: &str, expected: [u64; 4]) {
        let read = |text| serde_json::from_str::<Object>(text).unwrap();
        let run = run(&read(knobs), &read(dims)).unwrap();
        let metrics = [
            Metric::Allocated,
            Metric::Forward,
            Metric::Reserved,
            Metric::Expandable,
        ];
        let found = metrics.map(|metric| measured(&run, metric).unwrap());
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(found.abs_diff(expected) <= 4096, "{found} for {expected}");
        }
    }

    #[test]
    fn layers_checkpointed_within_checkpointed_stages() {
        check(
            r#"{"precision": "amp_bf16", "optim": "sgdm", "mb": 16, "attn": "sdpa", "ckpt": true}"#,
            r#"{"embed": 96, "depths": [2, 2, 6, 2], "heads": [3, 6, 12, 24], "window": 7, "img": 224, "family": "swin"}"#,
            [701_901_824, 296_585_728, 966_787_072, 880_803_840],
        );
    }

    #[test]
    fn weights_laid_out_anew_leave_holes() {
        check(
            r#"{"model": "resnet18", "precision": "amp_bf16", "optim": "adamw_loop", "mb": 32, "attn": "sdpa",
                "chlast": true}"#,
            r#"{"img": 224, "classes": 1000, "family": "tv"}"#,
            [584_602_624, 572_068_352, 689_963_008, 603_979_776],
        );
    }

    #[test]
    fn modules_that_evaluate_neither_drop_nor_checkpoint() {
        check(
            r#"{"precision": "amp_bf16", "optim": "adamw", "mb": 1, "seq": 1024, "attn": "sdpa", "ckpt": true, "accum": 4,
                "lora": {"r": 8, "targets": ["q_proj", "v_proj"], "drop": 0.05}, "sm": 90, "train_mode": false}"#,
            r#"{"hidden": 2048, "layers": 1, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true,
                "head_dim": 64, "family": "llama"}"#,
            [3_615_554_560, 2_563_431_936, 3_944_742_912, 3_909_091_328],
        );
    }

    #[test]
    fn optimizers_meet_parameters_in_the_constructors_order() {
        check(
            r#"{"precision": "amp_bf16", "optim": "adafactor", "mb": 4, "seq": 128, "attn": "eager"}"#,
            r#"{"hidden": 3072, "layers": 1, "heads": 24, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true,
                "head_dim": 128, "family": "llama"}"#,
            [5_612_878_336, 3_346_449_408, 6_457_131_008, 7_178_551_296],
        );
    }
    #[test]
    fn a_table_is_adapted_by_rows_of_a_transpose() {
        check(
            r#"{"precision": "bf16", "optim": "adamw", "mb": 4, "seq": 1024, "attn": "sdpa",
                "lora": {"r": 8, "targets": ["embed_tokens", "q_proj"]}}"#,
            r#"{"hidden": 2048, "layers": 2, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true,
                "head_dim": 64, "family": "llama"}"#,
            [7_810_285_568, 3_607_625_728, 9_024_045_056, 8_980_004_864],
        );
    }

    #[test]
    fn clips_constructor_makes_the_texts_model_first() {
        let sizes = r#"{"v_hidden": 768, "v_layers": 3, "v_heads": 12, "v_ffn": 3072, "img": 224, "patch": 32, "t_hidden": 512,
            "t_layers": 3, "t_heads": 8, "t_ffn": 2048, "vocab": 49408, "ctx": 77, "proj": 512, "family": "clip"}"#;
        check(
            r#"{"precision": "amp_bf16", "optim": "adamw", "mb": 64, "attn": "sdpa", "freeze": ["all_but", "projection"]}"#,
            sizes,
            [397_228_544, 282_332_672, 436_207_616, 419_430_400],
        );
        check(
            r#"{"precision": "fp32", "optim": "adamw_loop", "mb": 16, "attn": "sdpa"}"#,
            &sizes.replace(r#""v_layers": 3"#, r#""v_layers": 4"#),
            [1_277_757_440, 1_164_011_520, 1_656_750_080, 1_402_994_688],
        );
    }

    #[test]
    fn what_shrinks_a_blocks_input_is_made_before_the_block() {
        check(
            r#"{"model": "timm:resnet50", "precision": "fp32", "optim": "sgd", "mb": 2, "attn": "sdpa", "ckpt": true,
                "dropout": false, "hold_outputs": true, "chlast": true, "sm": 90}"#,
            r#"{"img": 224, "classes": 1000, "family": "timm"}"#,
            [276_496_384, 168_472_576, 325_058_560, 291_504_128],
        );
    }
    #[test]
    fn diffusers_checkpoints_in_any_mode() {
        check(
            r#"{"precision": "bf16", "optim": "sgd", "mb": 4, "attn": "sdpa", "ckpt": true, "train_mode": false}"#,
            r#"{"img": 32, "channels": 4, "ctx_len": 77, "ctx_dim": 64, "block_out": [64, 64, 128, 128],
                "layers_per_block": 2, "heads": 8, "family": "unet"}"#,
            [73_599_488, 43_627_520, 77_594_624, 77_594_624],
        );
    }
    #[test]
    fn kept_outputs_keep_the_leaves_of_their_graph() {
        check(
            r#"{"precision": "amp_bf16", "optim": "adafactor", "mb": 3, "seq": 333, "attn": "sdpa", "mask": true, "ckpt": true,
                "lora": {"r": 64, "drop": 0.05, "targets": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                "down_proj"]}, "dropout": false, "hold_outputs": true}"#,
            r#"{"hidden": 1024, "layers": 2, "heads": 16, "kv": 8, "ffn": 3072, "vocab": 151936, "tied": true, "head_dim": 128,
                "family": "qwen3"}"#,
            [3_212_997_632, 1_997_370_880, 4_139_778_048, 3_869_245_440],
        );
    }

    /// Compiled runs: allocated peak and what is allocated when forward ends, within a number of thousandths.
    #[track_caller]
    fn check_compiled(knobs: &str, dims: &str, expected: [u64; 2], thousandths: u64) {
        let read = |text| serde_json::from_str::<Object>(text).unwrap();
        let run = run(&read(knobs), &read(dims)).unwrap();
        let found = [Metric::Allocated, Metric::Forward].map(|metric| measured(&run, metric));
        for (found, expected) in found.into_iter().zip(expected) {
            let found = found.unwrap();
            let off = found.abs_diff(expected);
            assert!(
                off <= expected / 1000 * thousandths,
                "{found} for {expected}"
            );
        }
    }

    #[test]
    fn a_compiled_model_keeps_the_smallest_cut() {
        check_compiled(
            r#"{"model": "llama3.2-1b", "precision": "amp_bf16", "optim": "adamw", "mb": 4, "seq": 1024, "compile": "whole",
                "attn": "sdpa", "dropout": true}"#,
            r#"{"hidden": 2048, "layers": 4, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true, "head_dim":
                64, "family": "llama"}"#,
            [11_648_089_088, 9_546_742_272],
            1,
        );
    }

    #[test]
    fn a_graph_break_keeps_the_logits_of_the_step_before() {
        check_compiled(
            r#"{"model": "gpt2", "precision": "amp_bf16", "optim": "adamw", "mb": 8, "seq": 1024, "compile": "whole", "attn":
                "sdpa", "dropout": true}"#,
            r#"{"hidden": 768, "layers": 6, "heads": 12, "vocab": 50257, "ctx": 1024, "family": "gpt2"}"#,
            [5_114_338_304, 4_290_157_056],
            3,
        );
    }

    #[test]
    fn a_compiled_model_without_budget_computes_all_again() {
        check_compiled(
            r#"{"model": "llama3.2-1b", "precision": "bf16", "optim": "adamw", "mb": 4, "seq": 1024, "compile": "whole", "budget": 0.0,
                "attn": "sdpa", "dropout": true}"#,
            r#"{"hidden": 2048, "layers": 4, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true, "head_dim":
                64, "family": "llama"}"#,
            [7_484_017_152, 3_036_853_760],
            3,
        );
    }

    #[test]
    fn compiled_layers_leave_the_loss_as_it_is() {
        check_compiled(
            r#"{"model": "llama3.2-1b", "precision": "bf16", "optim": "adamw", "mb": 4, "seq": 1024, "compile": "block",
                "attn": "sdpa", "dropout": true}"#,
            r#"{"hidden": 2048, "layers": 4, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true, "head_dim":
                64, "family": "llama"}"#,
            [10_652_026_880, 6_449_367_040],
            1,
        );
    }

    #[test]
    fn compiled_checkpoints_keep_the_inputs_of_layers() {
        check_compiled(
            r#"{"model": "llama3.2-1b", "precision": "bf16", "optim": "adamw", "mb": 4, "seq": 1024, "compile": "whole",
                "ckpt": true, "attn": "sdpa", "dropout": true}"#,
            r#"{"hidden": 2048, "layers": 4, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256, "tied": true, "head_dim":
                64, "family": "llama"}"#,
            [6_273_891_328, 4_172_544_512],
            1,
        );
    }

    #[test]
    fn compiled_convolutions_keep_their_inputs_and_results() {
        check_compiled(
            r#"{"model": "resnet50", "precision": "amp_fp16", "optim": "sgdm", "mb": 64, "compile": "whole", "attn": "sdpa",
                "dropout": true}"#,
            r#"{"img": 224, "classes": 1000, "family": "tv"}"#,
            [2_930_648_576, 2_918_060_544],
            8,
        );
    }
}
