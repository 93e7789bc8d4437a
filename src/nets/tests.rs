//! Peaks of whole runs of models outside the decoder family, in rounded bytes, beside those that the real libraries
//! reached (PyTorch 2.15, transformers 5.23, PEFT 0.21 on a bookkeeping GPU, the peak over three steps).

use super::{Sizes, build};
use crate::allocator::Settings;
use crate::estimate::Peaks;
use crate::scenario::{Attention, Checkpointing, Data, Lora, Optimizer, Precision, Training};
use crate::step::{Course, run};
use crate::tape::Machine;

#[track_caller]
fn check(
    family: &str,
    sizes: &[(&'static str, u64)],
    (micro_batch, sequence): (u64, u64),
    training: &Training,
    expected: u64,
) {
    let mut all = Sizes::default();
    for (name, value) in sizes {
        all.set(name, *value);
    }
    let data = Data {
        micro_batch,
        sequence,
        padding_mask: false,
        ..Data::default()
    };
    let net = build(family, &all).unwrap();
    let course = Course::from_the_start(3);
    let run = run(&*net, &data, training, Machine::default(), course);
    let peak = Peaks::replayed(&run.trace, &Settings::expandable())
        .highest()
        .map_or(0, |peak| peak.bytes);
    // Scalars that only decide a branch are not all made.
    let off = peak.abs_diff(expected);
    assert!(off <= 4096, "{family}: {peak} instead of {expected}");
}

fn training(precision: Precision, optimizer: Optimizer) -> Training {
    Training {
        precision,
        optimizer,
        ..Training::default()
    }
}

const DEBERTA: [(&str, u64); 6] = [
    ("layers", 3),
    ("hidden", 256),
    ("heads", 4),
    ("ffn", 1024),
    ("vocab", 4000),
    ("buckets", 64),
];

#[test]
fn content_and_positions_attend_to_each_other() {
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    check("deberta", &DEBERTA, (4, 256), &plain, 109_641_216);
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::AmpBf16, Optimizer::AdamW)
    };
    check("deberta", &DEBERTA, (4, 256), &checkpointed, 96_514_560);
}

#[test]
fn two_towers_without_class_tokens() {
    let sizes = [
        ("v_layers", 3),
        ("v_hidden", 128),
        ("v_heads", 4),
        ("v_ffn", 512),
        ("t_layers", 3),
        ("t_hidden", 128),
        ("t_heads", 4),
        ("t_ffn", 512),
        ("img", 224),
        ("patch", 16),
        ("vocab", 1000),
        ("ctx", 64),
        ("proj", 128),
    ];
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    check("siglip", &sizes, (8, 0), &plain, 42_535_424);
}

const T5_BASE: [(&str, u64); 6] = [
    ("layers", 12),
    ("hidden", 768),
    ("heads", 12),
    ("ffn", 3072),
    ("vocab", 32_128),
    ("head_dim", 64),
];

#[test]
fn the_adafactor_of_transformers_reduces_whole_tables() {
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::Bf16, Optimizer::AdafactorHf)
    };
    check("t5", &T5_BASE, (16, 256), &checkpointed, 1_303_075_328);
}

#[test]
fn kept_outputs_hold_the_cache() {
    let sizes = [
        ("layers", 3),
        ("hidden", 1024),
        ("heads", 16),
        ("ffn", 4096),
        ("vocab", 32_128),
        ("head_dim", 64),
    ];
    let kept = Training {
        use_cache: true,
        keep_outputs: true,
        accumulation: 2,
        ..training(Precision::AmpFp16, Optimizer::SgdMomentum)
    };
    check("t5", &sizes, (32, 64), &kept, 2_438_117_888);
}

#[test]
fn gradients_that_muon_is_not_given_stay() {
    let sizes = [
        ("hidden", 768),
        ("layers", 12),
        ("heads", 12),
        ("vocab", 50_257),
        ("ctx", 1024),
    ];
    let frozen = Training {
        freeze: ["wte", "wpe", "bias", "ln_"].map(String::from).to_vec(),
        ..training(Precision::Fp32, Optimizer::Muon)
    };
    check("gpt2", &sizes, (1, 128), &frozen, 1_206_991_872);
}

#[test]
fn checkpointed_inputs_ask_for_gradients_though_all_below_is_frozen() {
    let sizes = [
        ("v_hidden", 768),
        ("v_layers", 12),
        ("v_heads", 12),
        ("v_ffn", 3072),
        ("img", 224),
        ("patch", 32),
        ("t_hidden", 512),
        ("t_layers", 12),
        ("t_heads", 8),
        ("t_ffn", 2048),
        ("vocab", 49_408),
        ("ctx", 77),
        ("proj", 512),
    ];
    let projections = Training {
        train_only: vec!["projection".to_string()],
        checkpointing: Checkpointing::Layers,
        zero_to_none: false,
        ..training(Precision::Fp32, Optimizer::Adagrad)
    };
    check("clip", &sizes, (8, 0), &projections, 682_867_712);
}

#[test]
fn an_adapter_drops_whatever_the_model_does() {
    let targets = [
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ];
    let sizes = [
        ("hidden", 4096),
        ("layers", 3),
        ("heads", 32),
        ("kv", 8),
        ("ffn", 14_336),
        ("vocab", 32_000),
        ("head_dim", 128),
    ];
    let adapted = Training {
        dropout: false,
        accumulation: 2,
        lora: Some(Lora {
            rank: 8,
            targets: targets.map(String::from).to_vec(),
            dropout: 0.05,
            ..Lora::default()
        }),
        ..training(Precision::Fp16, Optimizer::AdamW)
    };
    check("mistral", &sizes, (4, 1024), &adapted, 7_494_071_296);
    let gpt2 = [
        ("hidden", 768),
        ("layers", 2),
        ("heads", 12),
        ("vocab", 50_257),
        ("ctx", 1024),
    ];
    let head = Training {
        accumulation: 3,
        checkpointing: Checkpointing::Layers,
        lora: Some(Lora {
            rank: 8,
            targets: vec!["lm_head".to_string()],
            dropout: 0.05,
            fp32_adapters: false,
            ..Lora::default()
        }),
        ..training(Precision::AmpBf16, Optimizer::Adafactor)
    };
    check("gpt2", &gpt2, (1, 200), &head, 419_438_080);
}

#[test]
fn tokens_are_told_from_those_that_replaced_them() {
    let small = [
        ("layers", 3),
        ("hidden", 256),
        ("embedding", 128),
        ("heads", 4),
        ("ffn", 1024),
        ("vocab", 30_522),
    ];
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::AmpBf16, Optimizer::AdamW)
    };
    check("electra", &small, (4, 256), &checkpointed, 128_859_648);
    let eager = Training {
        attention: Attention::Eager,
        ..training(Precision::Bf16, Optimizer::Sgd)
    };
    check("electra", &small, (4, 256), &eager, 67_634_176);
}
