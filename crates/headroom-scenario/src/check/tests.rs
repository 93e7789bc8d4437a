use super::*;
use crate::{Lora, presets};

fn changed(changes: &[(&str, &str)]) -> Scenario {
    let mut scenario = Scenario::default();
    for (name, value) in changes {
        settings::set(&mut scenario, name, value).unwrap();
    }
    scenario
}

fn lines(problems: Vec<Problem>) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// What is refused, in these words.
#[track_caller]
fn check(changes: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(lines(changed(changes).check()), expected);
}

/// What is warned of, in these words, while nothing is refused.
#[track_caller]
fn warns(changes: &[(&str, &str)], expected: &[&str]) {
    let scenario = changed(changes);
    assert_eq!(lines(scenario.check()), Vec::<String>::new());
    assert_eq!(lines(scenario.warnings()), expected);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    check(&[], &[]);
    warns(&[], &[]);
    let caches = [("use_cache", "on"), ("ckpt", "layers")];
    let bigcode = [("model", "santacoder"), ("transformers", "4.52")];
    check(&[&caches[..], &bigcode].concat(), &[]);
    check(
        &[
            ("gpu", "v100-sxm2-32gb"),
            ("use_cache", "on"),
            ("ckpt", "layers"),
            ("gpus", "6"),
            ("tp", "4"),
        ],
        &[
            "training.precision is `amp-bf16`; expected fp32, amp-fp16 or fp16: Tesla V100 SXM2 32GB (Volta) has no bf16",
            "training.use_cache is `on`; expected off: the KV cache does not work with activation checkpointing",
            "hardware.gpus is `6`; expected a multiple of 4, the GPUs of one copy (tensor 4 × pipeline 1 × context 1)",
        ],
    );
}

#[test]
fn names_that_are_not_known_say_what_is_near() {
    check(
        &[("gpu", "rtx-4091")],
        &["hardware.gpu is `rtx-4091`; expected a known GPU; did you mean rtx-4090?"],
    );
    check(
        &[("model", "gpt")],
        &["model.id is `gpt`; expected a known model; did you mean gpt2, gpt2-xl or gpt-j-6b?"],
    );
    check(
        &[("model", "mamba2-2.7b")],
        &[
            "model.id is `mamba2-2.7b`; expected a model with a forward function (`headroom catalog models`): `mamba2` has none here",
        ],
    );
    warns(
        &[("dims", "layer=2")],
        &["model.dims is `layer`; expected a dimension of this model; did you mean layers?"],
    );
    warns(&[("model", "peptrm"), ("ckpt", "layers")], &[]);
    warns(
        &[("model", "peptrm"), ("ckpt", "keep-half")],
        &[
            "training.checkpointing is `keep-half`; expected layers: this network recomputes entire steps, so every mode but \
             none and offload is the same",
        ],
    );
}

#[test]
fn a_card_must_have_what_the_run_needs() {
    check(&[("gpu", "my own card"), ("mem", "24000")], &[]);
    check(&[("gpu", "v100-sxm2-32gb"), ("precision", "amp-fp16")], &[]);
    check(
        &[("gpu", "a100-sxm4-80gb"), ("fp8", "on")],
        &[
            "training.fp8 is `on`; expected off: NVIDIA A100 SXM4 80GB (Ampere) has no fp8, which came with Ada and Hopper",
        ],
    );
    check(&[("gpu", "h100-sxm5-80gb"), ("fp8", "on")], &[]);
    check(
        &[("gpu", "a100-sxm4-80gb"), ("optim", "adamw-fp8-ao")],
        &[
            "training.optimizer is `adamw-fp8-ao`; expected another: AdamW fp8 (torchao) needs compute capability 8.9, which NVIDIA A100 SXM4 80GB (Ampere) has not",
        ],
    );
    check(
        &[("attn", "flash_attention_2"), ("precision", "fp32")],
        &[
            "training.attention is `flash_attention_2`; expected sdpa or eager: FlashAttention 2 computes in fp16 and bf16 only",
        ],
    );
    check(
        &[
            ("gpu", "t4-16gb"),
            ("attn", "flash_attention_2"),
            ("precision", "amp-fp16"),
        ],
        &[
            "training.attention is `flash_attention_2`; expected sdpa or eager: FlashAttention 2 needs Ampere or newer, which Tesla T4 (Turing) is not",
        ],
    );
    check(
        &[
            ("gpu", "mine"),
            ("mem", "12000"),
            ("cc", "5.2"),
            ("precision", "fp16"),
            ("quant", "nf4"),
            ("lora", "on"),
        ],
        &[
            "training.quantization is `nf4`; expected another: QLoRA (NF4) needs compute capability 6.0, which a card of compute capability 5.2 has not",
        ],
    );
    check(
        &[("gpu", "rtx-5090"), ("torch", "2.6")],
        &[
            "stack.torch is `2.6`; expected 2.7 or newer, the first built for GeForce RTX 5090 (Blackwell)",
        ],
    );
    check(
        &[("optim", "muon"), ("torch", "2.8")],
        &["stack.torch is `2.8`; expected 2.9 or newer: Muon came with it"],
    );
    warns(
        &[("gpus", "2"), ("os", "windows")],
        &[
            "hardware.os is `windows`; expected linux or wsl for several GPUs: PyTorch on Windows has no NCCL",
        ],
    );
}

#[test]
fn a_layout_must_divide_what_it_divides() {
    let llama = ("model", "llama-3.1-8b");
    check(&[llama, ("gpus", "8"), ("nodes", "2"), ("tp", "4")], &[]);
    check(
        &[llama, ("gpus", "3"), ("tp", "3")],
        &["parallel.tp is `3`; expected a divisor of the model's 32 attention heads"],
    );
    check(
        &[llama, ("gpus", "33"), ("pp", "33"), ("accum", "33")],
        &["parallel.pp is `33`; expected at most the model's 32 layers"],
    );
    let interleaved = [
        llama,
        ("gpus", "4"),
        ("pp", "4"),
        ("schedule", "interleaved"),
    ];
    let in_rounds =
        |micro_batches| [&interleaved[..], &[("vpp", "2"), ("accum", micro_batches)]].concat();
    check(&in_rounds("10"), &[]);
    check(
        &in_rounds("9"),
        &[
            "training.accumulation is `9`; expected a multiple of 2: this schedule runs micro-batches in rounds of that size",
        ],
    );
    check(
        &[llama, ("gpus", "2"), ("cp", "2"), ("seq", "1022")],
        &["data.sequence is `1022`; expected a multiple of 4, twice parallel.cp"],
    );
    check(
        &[llama, ("gpus", "4"), ("ep", "4")],
        &["parallel.ep is `4`; expected 1: the model has no experts"],
    );
    check(
        &[("gpus", "8"), ("nodes", "3")],
        &["hardware.nodes is `3`; expected a divisor of 8 GPUs"],
    );
    check(
        &[
            llama,
            ("gpus", "8"),
            ("par", "fsdp2"),
            ("optim", "adamw-paged-8bit"),
        ],
        &[
            "training.optimizer is `adamw-paged-8bit`; expected adamw-fused, adamw-8bit-ao or another: bitsandbytes' optimizers do not run on FSDP's sharded weights",
        ],
    );
    check(
        &[llama, ("gpus", "8"), ("offload", "optimizer")],
        &[
            "parallel.offload is `optimizer`; expected none: only ZeRO and FSDP keep anything on the host (for one GPU, see adamw-offload)",
        ],
    );
    warns(
        &[llama, ("gpus", "16"), ("nodes", "2"), ("tp", "16")],
        &[
            "parallel.tp is `16`; expected at most 8, the GPUs of one machine: between machines it is slow",
        ],
    );
}

#[test]
fn a_wanted_batch_is_met_exactly_or_to_the_nearest() {
    warns(
        &[
            ("mb", "2"),
            ("accum", "32"),
            ("gpus", "4"),
            ("global", "256"),
        ],
        &[],
    );
    warns(
        &[
            ("mb", "3"),
            ("accum", "21"),
            ("gpus", "4"),
            ("global", "256"),
        ],
        &[
            "data.global_batch is `256`; expected a multiple of 12, which accumulation can meet exactly: 3 × 21 × 4 = 252, −1.6 % of 256 is the nearest",
        ],
    );
    warns(
        &[("mb", "3"), ("gpus", "4"), ("global", "256")],
        &[
            "training.accumulation is `1`; expected 21 for the wanted batch: 3 × 21 × 4 = 252, −1.6 % of 256",
        ],
    );
}

#[test]
fn samples_must_fit_the_model_and_each_other() {
    check(
        &[("seq", "1025")],
        &[
            "data.sequence is `1025`; expected at most 1024: the model has learned that many positions",
        ],
    );
    check(&[("seq", "2048"), ("dims", "ctx=2048")], &[]);
    warns(
        &[("model", "qwen2.5-0.5b"), ("seq", "40000")],
        &[
            "data.sequence is `40000`; expected at most 32768, the longest the model was trained for",
        ],
    );
    check(
        &[
            ("dist", "varying"),
            ("mean", "400"),
            ("p95", "300"),
            ("max", "1000"),
        ],
        &["data.p95 is `300`; expected at least 400, which data.mean is"],
    );
    check(
        &[("packing", "on"), ("mask", "on")],
        &["data.padding_mask is `on`; expected off: packed samples leave nothing to pad"],
    );
}

#[test]
fn a_loop_must_be_able_to_do_all_it_does() {
    check(
        &[("optim_in_backward", "on"), ("accum", "2"), ("clip", "on")],
        &[
            "training.accumulation is `2`; expected 1: optimizer-in-backward frees gradients, so they cannot accumulate",
            "training.clip is `on`; expected off: optimizer-in-backward cannot wait for the global gradient norm",
        ],
    );
    check(
        &[("quant", "nf4")],
        &[
            "training.quantization is `nf4`; expected none (or training.lora on): quantized weights cannot be trained",
        ],
    );
    check(
        &[("lora_targets", "")],
        &["training.lora.targets is ``; expected at least one layer's name"],
    );
    check(
        &[
            ("max_split", "10"),
            ("gc", "1"),
            ("roundup", "6"),
            ("fraction", "0"),
        ],
        &[
            "runtime.max_split_size_mb is `10`; expected 0 or at least 20",
            "runtime.garbage_collection_threshold is `1`; expected a number below 1",
            "runtime.roundup_power2_divisions is `6`; expected 0 or a power of two",
            "runtime.memory_fraction is `0`; expected a number above 0",
        ],
    );
    warns(
        &[("gc", "0.8")],
        &[
            "runtime.garbage_collection_threshold is `0.8`; expected runtime.memory_fraction below 1: without a limit the threshold has no effect",
        ],
    );
}

#[test]
fn values_out_of_range_are_found_however_they_got_there() {
    let mut scenario = Scenario {
        version: 9,
        ..Scenario::default()
    };
    scenario.data.micro_batch = 0;
    scenario.hardware.nodes = 0;
    scenario.model.id = String::new();
    scenario.training.lora = Some(Lora {
        rank: u64::MAX,
        dropout: f64::NAN,
        ..Lora::default()
    });
    let fields: Vec<String> = scenario
        .check()
        .into_iter()
        .map(|problem| problem.field().to_string())
        .collect();
    let expected = [
        "hardware.nodes",
        "model.id",
        "data.micro_batch",
        "training.lora.rank",
        "training.lora.dropout",
        "version",
        "model.id",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn no_scenario_makes_the_checks_panic_and_presets_pass_them() {
    let mut dice = crate::sample::Dice::new(77);
    for _ in 0..1000 {
        let scenario = crate::sample::scenario(&mut dice);
        for problem in scenario.check().iter().chain(&scenario.warnings()) {
            assert!(settings::find(problem.field()).is_some(), "{problem}");
        }
    }
    for preset in presets::all() {
        assert_eq!(
            lines(preset.scenario().check()),
            Vec::<String>::new(),
            "{}",
            preset.id
        );
        assert_eq!(
            lines(preset.scenario().warnings()),
            Vec::<String>::new(),
            "{}",
            preset.id
        );
    }
}

#[test]
fn one_process_for_all_gpus_takes_what_it_can_copy() {
    let two = [("gpus", "2"), ("par", "dp")];
    let refuses = |name, value, field: &str| {
        let changes = [&two[..], &[("model", "llama-3.2-1b"), (name, value)]].concat();
        let found = changed(&changes).check();
        assert!(
            found.iter().any(|problem| problem.field() == field),
            "{found:?}"
        );
    };
    refuses("tp", "2", "parallel.tp");
    refuses("nodes", "2", "hardware.nodes");
    refuses("offload", "optimizer", "parallel.offload");
    refuses("ckpt", "offload", "training.checkpointing");
    refuses("compile", "model", "training.compile");
    refuses("quant", "nf4", "training.quantization");
    let trainer = [
        &two[..],
        &[("trainer", "transformers"), ("precision", "amp-bf16")],
    ]
    .concat();
    let expected = "training.precision";
    assert!(
        changed(&trainer)
            .check()
            .iter()
            .any(|problem| problem.field() == expected)
    );
    let plain = [&two[..], &[("precision", "amp-fp16")]].concat();
    assert!(changed(&plain).check().is_empty());
}

#[test]
fn tasks_are_divided_where_their_trainers_passes_are_followed() {
    let base = [
        ("gpus", "8"),
        ("model", "llama-3.2-1b"),
        ("training.loss", "library"),
        ("task.head", "fused"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&base[..], more].concat();
    let fsdp2 = ("parallel.strategy", "fsdp2");
    check(&with(&[fsdp2, ("task.objective", "dpo")]), &[]);
    check(
        &with(&[fsdp2, ("task.objective", "dpo"), ("task.head", "liger")]),
        &[
            "parallel.strategy is `fsdp2`; expected none or ddp: how Liger's loss takes the weight of a divided head is not modelled",
        ],
    );
    check(
        &with(&[fsdp2, ("task.objective", "grpo")]),
        &[
            "task.sampler is `generate`; expected vllm or vllm-server: how a divided model samples is not modelled",
        ],
    );
    check(
        &with(&[
            ("parallel.strategy", "zero3"),
            ("precision", "bf16"),
            ("task.objective", "dpo"),
            ("lora", "on"),
        ]),
        &[],
    );
}
