//! Records of post-training, generation, compilation and low precision: the type of weights and of autocast stand apart.

use serde_json::{Map, Value};

use super::{extra, simulated};
use headroom_core::step;
use headroom_scenario::{
    BesideType, Checkpointing, Data, EvaluationOutput, Kernels, LmHead, Lora, Objective, Optimizer,
    Precision, Reference, Sampler, Task, Training,
};

type Object = Map<String, Value>;

/// Whether the settings are of such a record.
pub fn is_record(knobs: &Object) -> bool {
    knobs.contains_key("wdtype")
}

/// Runs a recorded case, as the recording did.
pub fn run(knobs: &Object, dims: &Object) -> Result<step::Run, String> {
    let knobs = Knobs(knobs);
    if !knobs.text("trainer").is_empty() {
        // These recordings answer what trainers read of their data through a `TorchDispatchMode`.
        return task(knobs, dims, of_trainer(knobs)?, true);
    }
    if !knobs.text("kind").is_empty() {
        return task(knobs, dims, by_hand(knobs)?, false);
    }
    let mut dims = dims.clone();
    if matches!(
        dims.get("family").and_then(Value::as_str),
        Some("gemma2" | "gemma3_text")
    ) {
        // The recorder leaves the window at the default of the class.
        dims.entry("sliding_window").or_insert_with(|| 4096.into());
    }
    let mut plain = knobs.0.clone();
    if let Some(Value::Bool(on)) = knobs.0.get("compile") {
        plain.insert("compile".into(), if *on { "whole" } else { "none" }.into());
    }
    let precision = match precision(knobs.text("wdtype"), knobs.text("amp"))? {
        Precision::Bf16 => "bf16",
        Precision::Fp32 => "fp32",
        Precision::AmpBf16 => "amp_bf16",
        _ => "amp_bf16_basebf16",
    };
    plain.insert("precision".into(), precision.into());
    extra::run(&plain, &dims)
}

/// A record's settings.
#[derive(Clone, Copy)]
struct Knobs<'a>(&'a Object);

impl<'a> Knobs<'a> {
    fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }
    fn number(self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(1)
    }
    fn on(self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
    /// Settings within one of them.
    fn inside(self, name: &str) -> Option<Knobs<'a>> {
        self.0.get(name).and_then(Value::as_object).map(Knobs)
    }
    fn float(self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }
}

/// The precision of weights kept in one type under autocast to another.
fn precision(weights: &str, autocast: &str) -> Result<Precision, String> {
    Ok(match (weights, autocast) {
        ("bf16", "") => Precision::Bf16,
        ("fp32", "") => Precision::Fp32,
        ("fp32", "bf16") => Precision::AmpBf16,
        ("bf16", "bf16") => Precision::AmpBf16OnBf16,
        _ => {
            return Err(format!(
                "weights in `{weights}` under `{autocast}` are not known"
            ));
        }
    })
}

fn task(
    knobs: Knobs,
    dims: &Object,
    (data, training): (Data, Training),
    dispatched: bool,
) -> Result<step::Run, String> {
    let steps = knobs.number("steps").clamp(2, 3) as u32;
    simulated::run_with(
        knobs.0,
        dims,
        &data,
        &training,
        step::RunPlan {
            dispatched,
            ..step::RunPlan::first_steps(steps)
        },
    )
}

fn data(knobs: Knobs) -> Data {
    Data {
        micro_batch: knobs.number("mb"),
        sequence: knobs.number("seq"),
        ..Data::default()
    }
}

fn training(knobs: Knobs, precision: Precision, task: Task) -> Training {
    Training {
        precision,
        optimizer: Optimizer::AdamWFused,
        checkpointing: if knobs.on("ckpt") {
            Checkpointing::Layers
        } else {
            Checkpointing::None
        },
        accumulation: knobs.number("accum"),
        clip: true,
        task,
        ..Training::default()
    }
}

/// The mean of the lengths that rows are cut to, as shares of the sequence.
fn mean_length(knobs: Knobs) -> Option<f64> {
    let lengths = knobs.0.get("lens")?.as_array()?;
    let sum: f64 = lengths.iter().filter_map(Value::as_f64).sum();
    Some(sum / lengths.len().max(1) as f64)
}

/// TRL's own trainers (`post.py`).
fn of_trainer(knobs: Knobs) -> Result<(Data, Training), String> {
    let none = Object::new();
    let args = knobs.inside("args").unwrap_or(Knobs(&none));
    let known = [
        "assistant_only_loss",
        "beta",
        "cast_lm_head_to_fp32",
        "cpo_alpha",
        "lmbda",
        "loss_type",
        "loss_weights",
        "max_grad_norm",
        "max_length",
        "num_iterations",
        "optim",
        "packing",
        "padding_free",
        "precompute_ref_log_probs",
        "seq_kd",
        "steps_per_generation",
        "temperature",
        "use_weighting",
    ];
    if let Some(name) = args.0.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("the trainer's argument `{name}` is not modelled"));
    }
    let mut data = data(knobs);
    data.packing = args.on("packing") || args.on("padding_free");
    let share = mean_length(knobs);
    data.padding_mask = share.is_some() && !data.packing;
    let sequence = data.sequence.max(1) as f64;
    let (prompt, completion) = (knobs.number("prompt"), knobs.number("completion"));
    let answer = match knobs.text("data") {
        _ if !matches!(knobs.text("trainer"), "sft" | "gkd") => 1.0 - prompt as f64 / sequence,
        "conv" => 1.0 - (prompt + 1) as f64 / sequence,
        "pc" => 1.0 - prompt as f64 / sequence,
        _ if knobs.text("trainer") == "gkd" => 1.0 - (prompt + 1) as f64 / sequence,
        _ => 1.0,
    };
    let adapters = knobs.inside("peft").map(lora).transpose()?;
    let trainer = knobs.text("trainer");
    let objective = match trainer {
        "sft" => Objective::Sft,
        "dpo" => Objective::Dpo,
        "kto" => Objective::Kto,
        "orpo" => Objective::Orpo,
        "cpo" if args.text("loss_type") == "simpo" => Objective::SimPo,
        "simpo" => Objective::SimPo,
        "cpo" => Objective::Cpo,
        "reward" => Objective::Reward,
        "grpo" => Objective::Grpo,
        "rloo" => Objective::Rloo,
        "gkd" => Objective::Gkd,
        "distill" => Objective::Distillation,
        other => return Err(format!("the trainer `{other}` is not modelled")),
    };
    let beta = args.float("beta").unwrap_or(match objective {
        Objective::Grpo => 0.0,
        _ => 0.05,
    });
    let reference_type = match knobs.text("ref_dtype") {
        "bf16" => BesideType::Bf16,
        "fp32" => BesideType::Fp32,
        // By name a reference is loaded in fp32.
        _ if matches!(objective, Objective::Grpo | Objective::Rloo) => BesideType::Fp32,
        _ if objective.has_teacher() => BesideType::Bf16,
        _ => BesideType::Same,
    };
    let teacher = knobs.inside("teacher");
    let on_policy = args.float("lmbda").is_some_and(|share| share >= 1.0) || args.on("seq_kd");
    let task = Task {
        objective,
        labelled: answer * share.unwrap_or(1.0),
        reference: if args.on("precompute_ref_log_probs") {
            Reference::Precomputed
        } else if beta == 0.0 && matches!(objective, Objective::Grpo | Objective::Rloo) {
            Reference::None
        } else if adapters.is_some() {
            Reference::AdaptersOff
        } else {
            Reference::Copy
        },
        reference_type,
        teacher: teacher.map_or("", |teacher| teacher.text("model")).into(),
        on_policy,
        // The prompt of a conversation has a token more, with which the answer begins.
        prompt: if objective == Objective::Gkd {
            prompt + 1
        } else {
            prompt
        },
        completion,
        generations: knobs.number("num_gen"),
        generation_batches: args
            .0
            .get("steps_per_generation")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        iterations: args.number("num_iterations"),
        fp32_head: args.on("cast_lm_head_to_fp32"),
        ..Task::default()
    };
    let precision = precision(knobs.text("wdtype"), "bf16")?;
    let mut training = training(knobs, precision, task);
    training.lora = adapters;
    if knobs.on("liger") {
        training.kernels = Kernels::Liger;
    }
    training.optimizer = match args.text("optim") {
        "" | "adamw_torch_fused" => Optimizer::AdamWFused,
        "adamw_torch" => Optimizer::AdamW,
        "adafactor" => Optimizer::AdafactorHf,
        "sgd" => Optimizer::Sgd,
        other => return Err(format!("the optimizer `{other}` is not modelled")),
    };
    Ok((data, training))
}

fn lora(given: Knobs) -> Result<Lora, String> {
    let known = ["r", "lora_alpha", "target_modules", "lora_dropout"];
    if let Some(name) = given.0.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("`{name}` of adapters is not modelled"));
    }
    let all = [
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ];
    let targets = match given.0.get("target_modules") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|name| name.as_str().map(String::from))
            .collect(),
        _ => all.map(String::from).to_vec(),
    };
    Ok(Lora {
        rank: given.0.get("r").and_then(Value::as_u64).unwrap_or(16),
        targets,
        dropout: given.float("lora_dropout").unwrap_or(0.0),
        ..Lora::default()
    })
}

/// Loops of one's own over library models (`hand.py`).
fn by_hand(knobs: Knobs) -> Result<(Data, Training), String> {
    let none = Object::new();
    let further = knobs.inside("fk").unwrap_or(Knobs(&none));
    let known = [
        "acc",
        "batches",
        "bf16",
        "cache",
        "full",
        "loss_only",
        "metrics",
        "num_return",
        "old",
        "preprocess",
        "sample",
        "scores",
        "temp",
    ];
    if let Some(name) = further
        .0
        .keys()
        .find(|name| !known.contains(&name.as_str()))
    {
        return Err(format!("`{name}` of a loop of one's own is not modelled"));
    }
    let kind = knobs.text("kind");
    let objective = match kind {
        "dpo_logits" | "liger_dpo" => Objective::Dpo,
        "grpo_logits" | "liger_grpo" => Objective::Grpo,
        "liger_orpo" => Objective::Orpo,
        "liger_cpo" => Objective::Cpo,
        "liger_simpo" => Objective::SimPo,
        "ppo" => Objective::Ppo,
        "gen" => Objective::Generation,
        "eval" => Objective::Evaluation,
        other => return Err(format!("the loop `{other}` is not modelled")),
    };
    let mut data = data(knobs);
    let given = |name: &str| further.0.get(name).and_then(Value::as_bool);
    let metrics = given("metrics");
    let batches = further
        .0
        .get("batches")
        .and_then(Value::as_u64)
        .unwrap_or(4);
    let accumulated = further.0.get("acc").and_then(Value::as_u64);
    let task = Task {
        objective,
        head: if kind.starts_with("liger") {
            LmHead::Liger
        } else {
            LmHead::Logits
        },
        reference: if knobs.on("ref") {
            Reference::Copy
        } else {
            Reference::None
        },
        prompt: knobs.number("prompt"),
        completion: knobs.number("completion"),
        iterations: if further.on("old") { 2 } else { 1 },
        sampler: match (objective, further.text("cache")) {
            (Objective::Generation, "static") => Sampler::Static,
            (Objective::Generation, "") | (Objective::Ppo, _) => Sampler::Generate,
            (Objective::Generation, other) => {
                return Err(format!("the cache `{other}` is not modelled"));
            }
            // Completions are given.
            _ => Sampler::VllmElsewhere,
        },
        keeps_scores: further.on("scores"),
        evaluated: if further.on("loss_only") || metrics == Some(false) {
            EvaluationOutput::Loss
        } else if further.on("preprocess") {
            EvaluationOutput::Preprocessed
        } else {
            EvaluationOutput::Logits
        },
        evaluation_batches: accumulated.map_or(batches, |each| each.min(batches)),
        ..Task::default()
    };
    let autocast = match (objective, knobs.text("amp")) {
        // transformers' trainer runs it with `bf16=True`.
        (Objective::Evaluation, _) if given("bf16") == Some(false) => "",
        (Objective::Evaluation, _) => "bf16",
        (_, amp) => amp,
    };
    if objective == Objective::Generation {
        data.micro_batch *= further
            .0
            .get("num_return")
            .and_then(Value::as_u64)
            .unwrap_or(1);
    }
    let precision = precision(knobs.text("wdtype"), autocast)?;
    Ok((data, training(knobs, precision, task)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulated::Metric;

    /// Peaks, and what is allocated when forward ends, of TRL 1.16 and PEFT 0.21 under torch 2.15, within a thousandth.
    #[track_caller]
    fn check(knobs: &str, dims: &str, expected: [Option<u64>; 2]) {
        let read = |text| serde_json::from_str::<Object>(text).unwrap();
        let run = run(&read(knobs), &read(dims)).unwrap();
        for (metric, expected) in [Metric::Allocated, Metric::Forward]
            .into_iter()
            .zip(expected)
        {
            let Some(expected) = expected else { continue };
            let found = simulated::measured(&run, metric).unwrap();
            assert!(
                found.abs_diff(expected) <= expected / 1000,
                "{found} for {expected}"
            );
        }
    }

    const QWEN: &str = r#"{"hidden": 896, "layers": 24, "heads": 14, "kv": 2, "ffn": 4864, "vocab": 151936,
        "tied": true, "head_dim": 64, "family": "qwen2"}"#;
    const LLAMA: &str = r#"{"hidden": 2048, "layers": 16, "heads": 32, "kv": 8, "ffn": 8192, "vocab": 128256,
        "tied": true, "head_dim": 64, "family": "llama"}"#;

    #[test]
    fn completions_alone_are_projected() {
        check(
            r#"{"trainer": "sft", "wdtype": "fp32", "mb": 8, "seq": 1024, "prompt": 512, "ckpt": true, "data": "pc",
                "steps": 3, "num_gen": 8, "completion": 256, "accum": 1}"#,
            QWEN,
            [Some(9_007_844_864), Some(6_711_488_000)],
        );
    }

    #[test]
    fn a_reference_runs_while_the_policys_graph_lives() {
        check(
            r#"{"trainer": "dpo", "wdtype": "bf16", "mb": 1, "seq": 1024, "prompt": 256, "peft": {"r": 16,
                "lora_alpha": 32, "target_modules": "all-linear"}, "data": "lm", "steps": 3, "num_gen": 8,
                "completion": 256, "accum": 1}"#,
            r#"{"hidden": 1536, "layers": 28, "heads": 12, "kv": 2, "ffn": 8960, "vocab": 151936, "tied": true, "head_dim": 128, "family": "qwen2"}"#,
            [Some(9_874_470_400), Some(9_735_791_104)],
        );
    }

    #[test]
    fn completions_are_sampled_and_scored() {
        check(
            r#"{"trainer": "grpo", "wdtype": "bf16", "mb": 8, "seq": 1024, "prompt": 256, "data": "lm", "steps": 2,
                "num_gen": 8, "completion": 96, "accum": 1}"#,
            QWEN,
            [Some(7_787_154_432), Some(6_913_892_864)],
        );
    }

    #[test]
    fn a_reward_model_has_no_logits() {
        check(
            r#"{"trainer": "reward", "wdtype": "bf16", "mb": 4, "seq": 1024, "prompt": 256, "ckpt": true,
                "data": "lm", "steps": 3, "num_gen": 8, "completion": 256, "accum": 1}"#,
            QWEN,
            [Some(4_343_471_616), Some(3_392_079_872)],
        );
    }

    #[test]
    fn two_models_give_all_their_logits() {
        check(
            r#"{"trainer": "gkd", "wdtype": "bf16", "mb": 2, "seq": 1024, "prompt": 256, "ckpt": true,
                "args": {"lmbda": 1.0}, "data": "lm", "steps": 2, "num_gen": 8, "completion": 64,
                "teacher": {"model": "qwen2.5-1.5b"}, "accum": 1}"#,
            QWEN,
            [Some(12_770_218_496), Some(8_859_426_816)],
        );
    }

    #[test]
    fn logits_of_completions_are_kept_in_fp32() {
        check(
            r#"{"kind": "grpo_logits", "wdtype": "bf16", "amp": "bf16", "mb": 8, "seq": 1024, "prompt": 256,
                "completion": 256, "ckpt": true, "optim": "adamw_fused", "steps": 3}"#,
            QWEN,
            [Some(6_918_215_168), Some(4_428_911_616)],
        );
    }

    #[test]
    fn chunked_losses_make_gradients_in_forward() {
        check(
            r#"{"kind": "liger_grpo", "wdtype": "bf16", "amp": "bf16", "mb": 8, "seq": 1024, "prompt": 256,
                "completion": 256, "ckpt": true, "optim": "adamw_fused", "steps": 3}"#,
            QWEN,
            [Some(4_292_707_840), None],
        );
        check(
            r#"{"kind": "liger_dpo", "wdtype": "bf16", "amp": "bf16", "mb": 2, "seq": 1024, "prompt": 256,
                "completion": 256, "ckpt": true, "optim": "adamw_fused", "ref": true, "steps": 3}"#,
            LLAMA,
            [Some(12_959_498_240), Some(10_769_800_192)],
        );
    }

    #[test]
    fn a_cache_grows_with_each_token() {
        check(
            r#"{"kind": "gen", "wdtype": "bf16", "mb": 8, "seq": 1024, "prompt": 512, "completion": 64,
                "optim": "adamw_fused", "steps": 3}"#,
            LLAMA,
            [Some(2_876_513_280), None],
        );
    }

    #[test]
    fn metrics_join_the_logits_of_all_batches() {
        check(
            r#"{"kind": "eval", "wdtype": "bf16", "mb": 4, "seq": 512, "prompt": 256, "completion": 256,
                "optim": "adamw_fused", "steps": 3}"#,
            QWEN,
            [Some(10_955_780_096), None],
        );
    }

    #[test]
    fn further_adapters_and_optimizers_take_what_was_recorded() {
        let of = |layers: u64| LLAMA.replace("\"layers\": 16", &format!("\"layers\": {layers}"));
        let check_with = |layers, further: &str, expected: [u64; 2]| {
            let knobs = format!(
                r#"{{"wdtype": "bf16", "mb": 2, "seq": 1024, "attn": "sdpa", "steps": 3, {further}}}"#
            );
            check(&knobs, &of(layers), expected.map(Some));
        };
        let peft = |kind: &str| {
            format!(r#""optim": "adamw", "feature": "peft", "fk": {{"kind": "{kind}"}}"#)
        };
        check_with(4, &peft("road"), [6_334_023_680, 4_232_693_760]);
        check_with(4, &peft("ptuning"), [4_886_526_976, 2_743_254_528]);
        check_with(4, r#""optim": "lomo""#, [5_089_150_976, 2_987_821_056]);
        check_with(4, r#""optim": "adalomo""#, [5_090_450_944, 2_989_120_512]);
        check_with(
            8,
            r#""optim": "adamw", "feature": "qat", "fk": {}"#,
            [14_176_679_936, 12_075_350_016],
        );
    }

    #[test]
    fn products_of_few_bits_keep_what_torchao_saves() {
        let small = LLAMA
            .replace("\"layers\": 16", "\"layers\": 4")
            .replace("\"vocab\": 128256", "\"vocab\": 8192");
        let check_with = |weights: &str, further: &str, expected: [u64; 2]| {
            let knobs = format!(
                r#"{{{weights}, "mb": 2, "seq": 1024, "attn": "sdpa", "optim": "adamw", "steps": 3, "sm": 90, {further}}}"#
            );
            check(&knobs, &small, expected.map(Some));
        };
        let half = r#""wdtype": "bf16""#;
        let mixed = r#""wdtype": "fp32", "amp": "bf16""#;
        let float8 =
            |recipe: &str| format!(r#""feature": "float8", "fk": {{"recipe": "{recipe}"}}"#);
        let int8 = |kind: &str| format!(r#""feature": "int8", "fk": {{"kind": "{kind}"}}"#);
        let (bf16, nvfp4) = (2_551_687_168, r#""feature": "nvfp4""#);
        check_with(half, &float8("tensorwise"), [2_702_663_680, bf16]);
        check_with(half, &float8("rowwise"), [2_702_743_552, bf16]);
        check_with(half, &float8("rowwise_with_gw_hp"), [2_685_888_512, bf16]);
        check_with(mixed, &float8("rowwise"), [5_201_306_624, 4_322_056_192]);
        check_with(half, r#""feature": "mxfp8""#, [2_685_888_512, bf16]);
        check_with(half, &int8("mp"), [2_685_888_512, bf16]);
        check_with(mixed, &int8("mp"), [4_942_796_800, 4_808_595_456]);
        // Four and eight bits of inputs, and of weights beside them.
        check_with(half, nvfp4, [2_715_830_272, 2_581_628_928]);
        check_with(mixed, nvfp4, [5_201_335_296, 4_251_334_656]);
        check_with(half, &int8("bitnet"), [2_912_508_928, 2_761_531_392]);
        check_with(mixed, &int8("bitnet"), [4_565_438_464, 4_431_237_120]);
    }

    #[test]
    fn bases_of_other_libraries_keep_what_their_layers_save() {
        let small = LLAMA
            .replace("\"layers\": 16", "\"layers\": 4")
            .replace("\"vocab\": 128256", "\"vocab\": 8192");
        let check_with = |further: &str, expected: [u64; 2]| {
            let knobs = format!(
                r#"{{"wdtype": "bf16", "mb": 2, "seq": 1024, "attn": "sdpa", "optim": "adamw", "steps": 3, {further}}}"#
            );
            check(&knobs, &small, expected.map(Some));
        };
        // Their layers, with the libraries' own kernels left out.
        let packed = |lib: &str, checkpointed: bool, expected| {
            let further =
                format!(r#""ckpt": {checkpointed}, "feature": "qlora", "fk": {{"lib": "{lib}"}}"#);
            check_with(&further, expected);
        };
        packed("gptq", false, [2_166_364_160, 2_032_162_816]);
        packed("gptq", true, [774_597_632, 311_920_640]);
        packed("awq", false, [1_884_989_440, 1_750_788_096]);
        packed("awq", true, [728_628_224, 311_564_288]);
        packed("aqlm", false, [1_848_969_216, 1_714_767_872]);
        packed("aqlm", true, [659_184_640, 275_544_064]);
        let peft = |kind: &str| format!(r#""feature": "peft", "fk": {{"kind": "{kind}"}}"#);
        check_with(&peft("c3a"), [2_311_981_056, 1_891_919_872]);
        check_with(&peft("boft"), [1_605_498_880, 1_471_297_536]);
    }

    #[test]
    fn a_compiled_graph_keeps_what_its_budget_allows() {
        let llama = LLAMA.replace("\"layers\": 16", "\"layers\": 4");
        let cases: [(&str, &str, u64, u64, f64, u64); 3] = [
            (&llama, "bf16", 4, 1024, 0.3, 3_736_291_328),
            (&llama, "bf16", 4, 1024, 0.5, 4_201_854_976),
            (&llama, "bf16", 4, 1024, 0.8, 4_899_162_112),
        ];
        let read = |text: &str| serde_json::from_str::<Object>(text).unwrap();
        let mut errors = Vec::new();
        for (dims, precision, batch, sequence, budget, expected) in cases {
            let knobs = format!(
                r#"{{"precision": "{precision}", "optim": "adamw", "mb": {batch}, "seq": {sequence}, "compile": "whole",
                    "budget": {budget}, "attn": "sdpa", "dropout": true, "steps": 4}}"#
            );
            let run = simulated::run(&read(&knobs), &read(dims)).unwrap();
            let found = simulated::measured(&run, Metric::Forward).unwrap();
            errors.push((100.0 * (found as f64 / expected as f64 - 1.0)).round());
        }
        assert!(errors.iter().all(|error| error.abs() <= 1.0), "{errors:?}");
    }

    #[test]
    fn pairs_are_trained_on_all_logits() {
        check(
            r#"{"trainer": "simpo", "wdtype": "bf16", "mb": 2, "seq": 1024, "prompt": 256, "ckpt": true,
                "args": {"loss_type": "simpo", "cpo_alpha": 0.0}, "data": "lm", "steps": 3, "num_gen": 8,
                "completion": 256, "accum": 1}"#,
            QWEN,
            [Some(8_162_539_520), Some(5_675_639_296)],
        );
    }
}
