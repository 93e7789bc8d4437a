//! Peaks of models outside the decoder family, next to those of the libraries over three steps.

use super::recorded::{Case, check, sizes, training};
use headroom_scenario::{Attention, Checkpointing, Lora, Optimizer, Precision, Training};

/// A model over three steps.
fn case(architecture: &str, sizes: &[(&str, u64)], batch: (u64, u64), training: &Training) -> Case {
    Case::new(architecture, sizes)
        .batch(batch.0, batch.1)
        .trained(training)
        .three_steps()
}

const DEBERTA: &str = "layers=3 hidden=256 heads=4 ffn=1024 vocab=4000 buckets=64";

#[test]
fn content_and_positions_attend_to_each_other() {
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    check(
        &case("deberta", &sizes(DEBERTA), (4, 256), &plain),
        109_641_216,
    );
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::AmpBf16, Optimizer::AdamW)
    };
    check(
        &case("deberta", &sizes(DEBERTA), (4, 256), &checkpointed),
        96_514_560,
    );
}

#[test]
fn two_towers_without_class_tokens() {
    let sizes = sizes(
        "v_layers=3 v_hidden=128 v_heads=4 v_ffn=512 t_layers=3 t_hidden=128 t_heads=4 t_ffn=512 \
         img=224 patch=16 vocab=1000 ctx=64 proj=128",
    );
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    check(&case("siglip", &sizes, (8, 0), &plain), 42_535_424);
}

const T5_BASE: &str = "layers=12 hidden=768 heads=12 ffn=3072 vocab=32128 head_dim=64";

#[test]
fn the_adafactor_of_transformers_reduces_full_tables() {
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::Bf16, Optimizer::AdafactorHf)
    };
    check(
        &case("t5", &sizes(T5_BASE), (16, 256), &checkpointed),
        1_303_075_328,
    );
}

#[test]
fn kept_outputs_hold_the_cache() {
    let sizes = sizes("layers=3 hidden=1024 heads=16 ffn=4096 vocab=32128 head_dim=64");
    let kept = Training {
        use_cache: true,
        keep_outputs: true,
        accumulation: 2,
        ..training(Precision::AmpFp16, Optimizer::SgdMomentum)
    };
    check(&case("t5", &sizes, (32, 64), &kept), 2_438_117_888);
}

#[test]
fn gradients_of_parameters_outside_muon_stay() {
    let sizes = sizes("hidden=768 layers=12 heads=12 vocab=50257 ctx=1024");
    let frozen = Training {
        freeze: ["wte", "wpe", "bias", "ln_"].map(String::from).to_vec(),
        ..training(Precision::Fp32, Optimizer::Muon)
    };
    check(&case("gpt2", &sizes, (1, 128), &frozen), 1_206_991_872);
}

#[test]
fn checkpointed_inputs_ask_for_gradients_though_all_below_is_frozen() {
    let sizes = sizes(
        "v_hidden=768 v_layers=12 v_heads=12 v_ffn=3072 img=224 patch=32 t_hidden=512 t_layers=12 \
         t_heads=8 t_ffn=2048 vocab=49408 ctx=77 proj=512",
    );
    let projections = Training {
        train_only: vec!["projection".to_string()],
        checkpointing: Checkpointing::Layers,
        zero_to_none: false,
        ..training(Precision::Fp32, Optimizer::Adagrad)
    };
    check(&case("clip", &sizes, (8, 0), &projections), 682_867_712);
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
    let mistral = sizes("hidden=4096 layers=3 heads=32 kv=8 ffn=14336 vocab=32000 head_dim=128");
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
    check(
        &case("mistral", &mistral, (4, 1024), &adapted),
        7_494_071_296,
    );
    let gpt2 = sizes("hidden=768 layers=2 heads=12 vocab=50257 ctx=1024");
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
    check(&case("gpt2", &gpt2, (1, 200), &head), 419_438_080);
}

#[test]
fn masked_tokens_are_told_from_replaced_ones() {
    let small = sizes("layers=3 hidden=256 embedding=128 heads=4 ffn=1024 vocab=30522");
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::AmpBf16, Optimizer::AdamW)
    };
    check(
        &case("electra", &small, (4, 256), &checkpointed),
        128_859_648,
    );
    let eager = Training {
        attention: Attention::Eager,
        ..training(Precision::Bf16, Optimizer::Sgd)
    };
    check(&case("electra", &small, (4, 256), &eager), 67_634_176);
}

/// Over two steps, to the byte, where segments are expandable: their sizes are not rounded up.
#[test]
fn further_models_of_transformers_and_timm() {
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    let wide = training(Precision::Fp32, Optimizer::Sgd);
    let mixed = training(Precision::AmpBf16, Optimizer::AdamW);
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..mixed.clone()
    };
    let check_all = |name: &str,
                     sizes: &[(&str, u64)],
                     batch: u64,
                     sequence: u64,
                     cases: &[(u64, &Training, u64)]| {
        for (layers, training, expected) in cases {
            let case = Case::new(name, sizes).with(&[("layers", *layers)]);
            check(&case.batch(batch, sequence).trained(training), *expected);
        }
    };
    let base = [("hidden", 768), ("heads", 12), ("ffn", 3072)];
    let large = sizes("hidden=1024 heads=16 ffn=2730 img=448 patch=14");
    let beit = [(3, &plain, 136_656_896), (5, &checkpointed, 740_979_200)];
    check_all("beit", &base, 4, 0, &beit);
    let eva = [(3, &plain, 405_788_672), (5, &checkpointed, 1_318_990_848)];
    check_all("eva", &large, 2, 0, &eva);
    let mae = [(3, &wide, 248_468_480), (3, &checkpointed, 582_427_648)];
    let two = [&base[..], &[("d_layers", 2)]].concat();
    check_all("vit_mae", &two, 4, 0, &mae);
    check_all("deit", &base, 4, 0, &[(3, &wide, 243_687_936)]);
    let dinov2 = [(3, &plain, 168_121_344), (5, &checkpointed, 755_133_952)];
    let fine = [&base[..], &[("patch", 14)]].concat();
    check_all("dinov2_hf", &fine, 4, 0, &dinov2);
    let mpnet = [(3, &plain, 289_276_416), (3, &mixed, 670_134_784)];
    let words = [&base[..], &[("vocab", 8000)]].concat();
    check_all("mpnet", &words, 4, 256, &mpnet);
    let pair = sizes("hidden=512 heads=8 ffn=2048 vocab=8000 ctx=512");
    let marian = [(2, &wide, 232_088_064), (3, &checkpointed, 525_444_608)];
    check_all("marian", &pair, 4, 256, &marian);
    let mbart = [(2, &plain, 120_075_264), (3, &checkpointed, 533_956_096)];
    check_all("mbart", &pair, 4, 256, &mbart);
}
