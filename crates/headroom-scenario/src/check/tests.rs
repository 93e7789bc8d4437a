use super::*;
use crate::Lora;

fn changed(changes: &str) -> Scenario {
    let mut scenario = Scenario::default();
    for change in changes.split_whitespace() {
        let (name, value) = change.split_once('=').unwrap();
        settings::set(&mut scenario, name, value).unwrap();
    }
    scenario
}

/// Each problem's field, and the name or number in its message that could be wrong: "field: part".
#[track_caller]
fn assert_problems(problems: &[Problem], expected: &[&str]) {
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, expected) in problems.iter().zip(expected) {
        let (field, part) = expected.split_once(": ").unwrap();
        let message = problem.to_string();
        assert!(
            problem.field() == field && message.contains(part),
            "{message}: {part}"
        );
    }
}

#[track_caller]
fn check(changes: &str, expected: &[&str]) {
    assert_problems(&changed(changes).check(), expected);
}

/// What is warned of while nothing is refused.
#[track_caller]
fn warns(changes: &str, expected: &[&str]) {
    check(changes, &[]);
    assert_problems(&changed(changes).warnings(), expected);
}

#[test]
fn all_problems_are_listed_at_once() {
    warns("", &[]);
    check(
        "use_cache=on ckpt=layers model=santacoder transformers=4.52",
        &[],
    );
    let problems = changed("gpu=v100-sxm2-32gb use_cache=on ckpt=layers gpus=6 tp=4").check();
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "training.precision is `amp-bf16`; expected fp32, amp-fp16 or fp16: Tesla V100 SXM2 32GB (Volta) has no bf16",
            "training.use_cache is `on`; expected off: the KV cache does not work with activation checkpointing",
            "hardware.gpus is `6`; expected a multiple of 4, the GPUs of one copy (tensor 4 × pipeline 1 × context 1)",
        ]
    );
}

#[test]
fn unknown_names_get_suggestions() {
    check("gpu=rtx-4091", &["hardware.gpu: rtx-4090?"]);
    check(
        "model=gpt",
        &["model.id: gpt-oss-20b, gpt-oss-120b or gpt2-xl?"],
    );
    check("model=mace-mp0-large", &["model.id: `mace` has none"]);
    warns("dims=layer=2", &["model.dims: layers?"]);
    check(
        "model=llama-3.1-8b dims=heads=10,kv=3",
        &["model.dims: 10 attention heads cannot share 3 key-value heads"],
    );
    warns("model=peptrm ckpt=layers", &[]);
    warns(
        "model=peptrm ckpt=keep-half",
        &["training.checkpointing: layers"],
    );
}

#[test]
fn a_card_must_have_what_the_run_needs() {
    check("gpu=my-own-card mem=24000", &[]);
    check("gpu=v100-sxm2-32gb precision=amp-fp16", &[]);
    check(
        "gpu=a100-sxm4-80gb fp8=on",
        &["training.fp8: NVIDIA A100 SXM4 80GB (Ampere)"],
    );
    check("gpu=h100-sxm5-80gb fp8=on", &[]);
    check(
        "gpu=a100-sxm4-80gb optim=adamw-fp8-ao",
        &["training.optimizer: 8.9"],
    );
    check(
        "attn=flash_attention_2 precision=fp32",
        &["training.attention: fp16 and bf16"],
    );
    let turing = "gpu=t4-16gb attn=flash_attention_2 precision=amp-fp16";
    check(turing, &["training.attention: Tesla T4 (Turing)"]);
    let old = "gpu=mine mem=12000 cc=5.2 precision=fp16 quant=nf4 lora=on";
    check(
        old,
        &["training.quantization: 6.0, which a GPU of compute capability 5.2"],
    );
    check("gpu=rtx-5090 torch=2.6", &["stack.torch: 2.7 or newer"]);
    check("optim=muon torch=2.8", &["stack.torch: 2.9 or newer"]);
    warns("gpus=2 os=windows", &["hardware.os: NCCL"]);
}

#[test]
fn a_layout_must_divide_the_model_and_the_gpus() {
    let llama = |changes: &str, expected: &[&str]| {
        check(&format!("model=llama-3.1-8b {changes}"), expected);
    };
    llama("gpus=8 nodes=2 tp=4", &[]);
    llama("gpus=3 tp=3", &["parallel.tp: 32 attention heads"]);
    llama("gpus=33 pp=33 accum=33", &["parallel.pp: 32 layers"]);
    let interleaved = "gpus=4 pp=4 schedule=interleaved vpp=2";
    llama(&format!("{interleaved} accum=10"), &[]);
    llama(
        &format!("{interleaved} accum=9"),
        &["training.accumulation: multiple of 2"],
    );
    llama("gpus=2 cp=2 seq=1022", &["data.sequence: multiple of 4"]);
    llama("gpus=4 ep=4", &["parallel.ep: no experts"]);
    check("gpus=8 nodes=3", &["hardware.nodes: 8 GPUs"]);
    llama(
        "gpus=8 par=fsdp2 optim=adamw-paged-8bit",
        &["training.optimizer: adamw-8bit-ao"],
    );
    llama(
        "gpus=8 offload=optimizer",
        &["parallel.offload: adamw-offload"],
    );
    let apart = "model=llama-3.1-8b gpus=16 nodes=2 tp=16";
    warns(apart, &["parallel.tp: at most 8"]);
}

#[test]
fn a_wanted_batch_is_met_exactly_or_to_the_nearest() {
    warns("mb=2 accum=32 gpus=4 global=256", &[]);
    let near = [
        "data.global_batch: multiple of 12, which accumulation can meet exactly: 3 × 21 × 4 = 252",
    ];
    warns("mb=3 accum=21 gpus=4 global=256", &near);
    warns("mb=3 gpus=4 global=256", &["training.accumulation: 21 for"]);
}

#[test]
fn samples_must_fit_the_model_and_each_other() {
    check("seq=1025", &["data.sequence: at most 1024"]);
    for model in ["roberta-base", "xlm-roberta-large", "mpnet-base"] {
        check(&format!("model={model} seq=512"), &[]);
        for beyond in [513, 514] {
            let asked = format!("model={model} seq={beyond}");
            check(&asked, &["data.sequence: at most 512"]);
        }
    }
    check("seq=2048 dims=ctx=2048", &[]);
    warns(
        "model=qwen2.5-0.5b seq=40000",
        &["data.sequence: at most 32768"],
    );
    check("dist=varying mean=400 p95=300 max=1000", &["data.p95: 400"]);
    check("packing=on mask=on", &["data.padding_mask: off"]);
}

#[test]
fn options_of_the_loop_must_work_together() {
    let in_backward = ["training.accumulation: 1", "training.clip: off"];
    check("optim_in_backward=on accum=2 clip=on", &in_backward);
    check("quant=nf4", &["training.quantization: none"]);
    check("lora_targets=", &["training.lora.targets: at least one"]);
    check(
        "max_split=10 gc=1 roundup=6 fraction=0",
        &[
            "runtime.max_split_size_mb: 20",
            "runtime.garbage_collection_threshold: below 1",
            "runtime.roundup_power2_divisions: power of two",
            "runtime.memory_fraction: above 0",
        ],
    );
    let unlimited = ["runtime.garbage_collection_threshold: runtime.memory_fraction below 1"];
    warns("gc=0.8", &unlimited);
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
fn no_scenario_makes_the_checks_panic() {
    let mut dice = headroom_testing::Dice::new(77);
    for _ in 0..1000 {
        let scenario = crate::sample::scenario(&mut dice);
        for problem in scenario.check().iter().chain(&scenario.warnings()) {
            assert!(settings::find(problem.field()).is_some(), "{problem}");
        }
    }
}

#[test]
fn data_parallel_in_one_process_refuses_what_it_cannot_copy() {
    let refuses = |change: &str, field: &str| {
        let found = changed(&format!("gpus=2 par=dp {change}")).check();
        assert!(
            found.iter().any(|problem| problem.field() == field),
            "{found:?}"
        );
    };
    for (change, field) in [
        ("tp=2", "parallel.tp"),
        ("nodes=2", "hardware.nodes"),
        ("offload=optimizer", "parallel.offload"),
        ("ckpt=offload", "training.checkpointing"),
        ("compile=model", "training.compile"),
        ("quant=nf4", "training.quantization"),
    ] {
        refuses(&format!("model=llama-3.2-1b {change}"), field);
    }
    refuses(
        "trainer=transformers precision=amp-bf16",
        "training.precision",
    );
    check("gpus=2 par=dp precision=amp-fp16", &[]);
}

#[test]
fn tasks_are_sharded_where_their_trainers_passes_are_modelled() {
    let base = "gpus=8 model=llama-3.2-1b training.loss=library task.head=fused";
    let fsdp2 = format!("{base} parallel.strategy=fsdp2");
    check(&format!("{fsdp2} task.objective=dpo"), &[]);
    let liger = format!("{fsdp2} task.objective=dpo task.head=liger");
    check(&liger, &["parallel.strategy: none or ddp"]);
    let sampled = format!("{fsdp2} task.objective=grpo");
    check(&sampled, &["task.sampler: vllm or vllm-server"]);
    let zero = "parallel.strategy=zero3 precision=bf16 task.objective=dpo lora=on";
    check(&format!("{base} {zero}"), &[]);
}
