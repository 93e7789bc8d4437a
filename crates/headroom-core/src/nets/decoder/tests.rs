//! Peaks of whole runs in rounded bytes, compared with those that the real libraries reached
//! (PyTorch 2.15, transformers 5.23, PEFT 0.21 on a bookkeeping GPU with two steps or more).

use crate::nets::recorded::{Case, check, sizes, training};
use headroom_scenario::{Attention, Checkpointing, Lora, Optimizer, Precision, Training};

#[test]
fn peaks_equal_those_of_the_libraries() {
    let small = sizes("hidden=1024 layers=4 heads=16 kv=16 ffn=2816 vocab=8000 head_dim=64");
    let small = Case::new("llama", &small).batch(4, 1024);
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    check(&small.clone().trained(&plain), 1_335_599_104);
    let amp = training(Precision::AmpBf16, Optimizer::Sgd);
    check(&small.trained(&amp), 1_766_713_344);
    let qwen3 = sizes("hidden=4096 layers=2 heads=32 kv=8 ffn=12288 vocab=151936 head_dim=128");
    let case = Case::new("qwen3", &qwen3).batch(1, 1024);
    check(&case.trained(&plain), 6_530_635_776);
    let gemma2 =
        sizes("hidden=2304 layers=2 heads=8 kv=4 ffn=9216 vocab=256000 head_dim=256 tied=1");
    let eager = Training {
        attention: Attention::Eager,
        ..plain
    };
    let case = Case::new("gemma2", &gemma2).batch(1, 1024);
    check(&case.trained(&eager), 5_674_549_248);
}

/// A family at a small size: its sizes besides those that all share, and the peak.
#[track_caller]
fn family(name: &str, further: &[(&str, u64)], expected: u64) {
    let shared = sizes("hidden=1024 layers=3 heads=16 kv=16 ffn=2816 vocab=8000 head_dim=64");
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    let case = Case::new(name, &shared).with(further);
    check(&case.batch(2, 512).trained(&plain), expected);
}

#[test]
fn every_family_has_its_own_peak() {
    let (tied, wide) = (("tied", 1), ("ffn", 4096));
    family("granite", &[tied, ("kv", 4)], 326_368_256);
    let gemma = [tied, ("heads", 8), ("kv", 1), ("head_dim", 256), wide];
    family("gemma", &gemma, 421_588_480);
    let gemma3 = sizes("tied=1 layers=7 heads=4 kv=1 head_dim=256");
    family("gemma3_text", &gemma3, 826_750_464);
    let eye = sizes(
        "hidden=512 layers=2 heads=4 head_dim=256 ffn=1024 vocab=8064 tied=1 v_layers=2 \
         v_hidden=288 v_heads=4 v_ffn=512 img=224 patch=14",
    );
    let windows = [("kv", 2), ("image_tokens", 64), ("window", 128)];
    let pictured = [&eye[..], &windows, &[("global_every", 2)]].concat();
    family("gemma3", &pictured, 236_704_256);
    let pictured = [&eye[..], &[("kv", 1), ("proj", 512)]].concat();
    family("paligemma", &pictured, 186_441_216);
    let rows = sizes(
        "hidden=512 layers=2 heads=4 kv=2 head_dim=128 ffn=1024 vocab=8064 tied=1 v_layers=2 \
         v_hidden=320 v_heads=4 v_ffn=640 img=252 patch=14",
    );
    family("qwen2_vl", &rows, 187_841_536);
    let windows = [&rows[..], &[("v_global_layers", 1)]].concat();
    family("qwen2_5_vl", &windows, 194_467_840);
    let sinks =
        sizes("hidden=512 layers=2 heads=8 kv=2 ffn=512 vocab=8064 window=128 experts=8 topk=2");
    family("gpt_oss", &sinks, 233_050_112);
    let triangle = sizes("tied=1 hidden=512 layers=2 heads=8 kv=8 ffn=2048 vocab=8064 ctx=1024");
    family("gpt_neo", &triangle, 238_504_960);
    family("phi", &[wide, ("rotary", 32)], 383_151_616);
    family("gpt_neox", &[wide, ("rotary", 16)], 324_402_176);
    family("gpt_bigcode", &[tied, wide, ("kv", 1)], 287_530_496);
    family("olmo", &[tied], 330_707_968);
    family("olmo2", &[("kv", 4)], 389_052_928);
    family("starcoder2", &[tied, wide, ("kv", 2)], 280_844_288);
    family("cohere", &[tied], 345_240_576);
    family("stablelm", &[("rotary", 16), ("qkv_bias", 1)], 338_521_088);
    let stablelm2 = sizes("rotary=16 kv=4 qkv_bias=1 qk_norm=1 parallel=1");
    family("stablelm", &stablelm2, 315_404_288);
    let smollm3 = [tied, ("layers", 8), ("kv", 4)];
    family("smollm3", &smollm3, 664_928_256);
    family("glm", &[("kv", 2), ("rotary", 32)], 345_972_736);
    family("glm4", &[("kv", 2), ("rotary", 32)], 383_758_336);
    family("opt", &[tied, wide], 280_733_696);
    let opt_350m = [tied, wide, ("pre_norm", 0), ("proj", 512)];
    family("opt", &opt_350m, 274_626_560);
    family("falcon", &[tied, wide, ("kv", 1)], 262_414_336);
    let newer = [tied, wide, ("kv", 4), ("new_block", 1)];
    family("falcon", &newer, 282_898_432);
}

#[test]
fn mixtures_have_theirs() {
    let experts = |n, chosen| [("experts", n), ("topk", chosen), ("moe_ffn", 704)];
    let pair = [("layers", 2), ("kv", 4)];
    let of = |parts: &[&[(&'static str, u64)]]| parts.concat();
    let qwen2 = of(&[&pair, &experts(8, 2), &[("shared_ffn", 2816)]]);
    family("qwen2_moe", &qwen2, 388_539_392);
    family("qwen3_moe", &of(&[&pair, &experts(16, 4)]), 428_815_360);
    let latent = sizes("dense_layers=1 kv_rank=256 nope_dim=64 rope_dim=32 v_dim=64");
    let second = of(&[&experts(8, 2), &latent, &[("shared_ffn", 1408)]]);
    family("deepseek_v2", &second, 453_309_952);
    let glm = sizes("kv=4 dense_layers=1 rotary=32 qk_norm=1 shared_ffn=704");
    let glm = of(&[&glm, &experts(8, 2)]);
    family("glm4_moe", &glm, 430_052_352);
    let third = [("shared_ffn", 704), ("q_rank", 384)];
    let third = of(&[&experts(8, 2), &latent, &third]);
    family("deepseek_v3", &third, 439_064_064);
}

#[test]
fn adapters_and_checkpoints_too() {
    let targets = [
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ];
    let gemma2 =
        sizes("hidden=2304 layers=26 heads=8 kv=4 ffn=9216 vocab=256000 head_dim=256 tied=1");
    let adapted = Training {
        attention: Attention::Eager,
        checkpointing: Checkpointing::Layers,
        lora: Some(Lora {
            rank: 16,
            targets: targets.map(String::from).to_vec(),
            ..Lora::default()
        }),
        ..training(Precision::Bf16, Optimizer::AdamW)
    };
    let case = Case::new("gemma2", &gemma2).batch(2, 1024);
    check(&case.trained(&adapted), 13_091_655_680);
}

#[test]
fn blocks_of_older_files_have_theirs() {
    let shared = sizes("hidden=512 heads=8 ffn=2048 vocab=8000 ctx=1024");
    let plain = training(Precision::Bf16, Optimizer::Sgd);
    let wide = training(Precision::Fp32, Optimizer::Sgd);
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        ..training(Precision::AmpBf16, Optimizer::AdamW)
    };
    let adapted = Training {
        lora: Some(Lora {
            rank: 8,
            targets: vec!["query_key_value".to_string()],
            ..Lora::default()
        }),
        ..training(Precision::Bf16, Optimizer::AdamW)
    };
    let (tied, turned) = (("tied", 1), ("rotary", 32));
    let cases = [
        ("bloom", tied, 3, 2, &plain, 254_472_192),
        ("bloom", tied, 5, 2, &checkpointed, 397_215_744),
        ("bloom", tied, 3, 2, &adapted, 236_269_568),
        ("gptj", turned, 3, 2, &plain, 300_113_920),
        ("gptj", turned, 5, 2, &checkpointed, 479_624_704),
        ("mpt", tied, 3, 1, &wide, 181_193_728),
        ("mpt", tied, 5, 2, &checkpointed, 396_621_824),
    ];
    for (name, further, layers, batch, training, expected) in cases {
        let case = Case::new(name, &shared).with(&[further, ("layers", layers)]);
        check(&case.batch(batch, 512).trained(training), expected);
    }
}
