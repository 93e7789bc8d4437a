//! What moves are predicted to save, against what they saved: pairs of recorded steps that differ in one thing.
//!
//! The peaks are `max_memory_allocated` of steady steps of torch 2.15 and transformers 5.23 on an A100's kernels, recorded event by
//! event; names are those of the cases in `tests/data/truth_simulated.jsonl.gz`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::find_move;
use headroom_core::estimate::estimate;
use headroom_scenario::{Scenario, settings};

/// Applies the move to the run and compares both peaks with the recorded ones, within a hundredth, and the saving itself
/// within a hundredth of the run's memory.
#[track_caller]
fn check(case: &str, run: &str, id: &str, recorded: [u64; 2]) {
    let mut scenario = Scenario::default();
    settings::set(&mut scenario, "gpu", "a100-sxm4-80gb").unwrap();
    for setting in run.split_whitespace() {
        let (name, value) = setting.split_once('=').unwrap();
        settings::set(&mut scenario, name, value).unwrap();
    }
    let changed = (find_move(id).unwrap().apply)(&scenario).unwrap();
    let peak = |scenario: &Scenario| estimate(scenario).unwrap().allocated.expected.get() as f64;
    let [before, after] = recorded.map(|bytes| bytes as f64);
    let predicted = [peak(&scenario), peak(&changed)];
    for (predicted, recorded) in predicted.iter().zip([before, after]) {
        let off = predicted / recorded - 1.0;
        assert!(off.abs() < 0.01, "{case}, {id}: {off:+.4}");
    }
    let saved = [1.0 - after / before, 1.0 - predicted[1] / predicted[0]];
    assert!(
        (saved[0] - saved[1]).abs() < 0.01,
        "{case}, {id}: {saved:?}"
    );
}

#[test]
fn checkpointing_saves_what_it_saved() {
    check(
        "llama3.2-1b_bf16_adamw_fused_b1_s8192",
        "model=llama-3.2-1b precision=bf16 optim=adamw-fused mb=1 seq=8192",
        "checkpointing",
        [34_405_489_664, 20_698_553_344],
    );
    check(
        "llama3.1-8b_bf16_adamw_b1_s2048_lora-r64",
        "model=llama-3.1-8b precision=bf16 mb=1 seq=2048 lora_rank=64 \
         lora_targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
        "checkpointing",
        [40_705_796_096, 21_818_836_992],
    );
    // The optimizer's step is the peak: nothing to save.
    check(
        "mistral-7b_bf16_adamw_b1_s4096",
        "model=mistral-7b-v0.1 precision=bf16 mb=1 seq=4096",
        "checkpointing",
        [72_417_387_520, 72_417_387_520],
    );
}

#[test]
fn fewer_adapters_save_what_they_saved() {
    // Recorded with rank 8 on the attention layers: adapters of rank 16 are half a percent of the run.
    check(
        "llama3.1-8b_bf16_ckpt_lora-r16",
        "model=llama-3.1-8b precision=bf16 mb=1 seq=2048 ckpt=layers lora_rank=16 \
         lora_targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
        "fewer-adapters",
        [20_287_391_744, 19_865_864_192],
    );
}

#[test]
fn lower_precision_saves_what_it_saved() {
    let llama = "model=llama-3.2-1b precision=amp-bf16 mb=1 seq=2048";
    check(
        "llama3.2-1b_amp_bf16",
        llama,
        "bf16",
        [24_729_700_352, 14_164_367_360],
    );
    let gpt2 = "model=gpt2 precision=amp-bf16 mb=8 seq=1024";
    check(
        "gpt2_amp_bf16",
        gpt2,
        "bf16",
        [13_245_136_384, 10_127_260_672],
    );
    let qwen = "model=qwen3-0.6b precision=amp-bf16 mb=4 seq=1024";
    check(
        "qwen3-0.6b_amp_bf16",
        qwen,
        "bf16",
        [25_272_236_032, 19_319_382_016],
    );
    let fp32 = "model=gpt2 precision=fp32 mb=4 seq=512";
    check(
        "gpt2_fp32_adamw_b4_s512",
        fp32,
        "amp-bf16",
        [4_905_056_256, 4_640_047_616],
    );
    // Copies of weights come on top of fp32 ones: next to nothing is saved.
    let tiny = "model=tinyllama-1.1b precision=fp32 optim=adamw-fused mb=1 seq=2048";
    check(
        "tinyllama-1.1b_fp32",
        tiny,
        "amp-bf16",
        [21_149_839_872, 20_950_610_432],
    );
    // The head's weights and their gradient are the peak: nothing at all.
    let wide = "model=llama-3.1-8b dims=layers=2 precision=fp32 optim=sgd mb=1 seq=1024";
    check(
        "llama3.1-8b_fp32_sgd_layers2",
        wide,
        "amp-bf16",
        [11_912_005_632, 11_912_005_632],
    );
}

#[test]
fn optimizers_save_what_they_saved() {
    let gpt2 = "model=gpt2 precision=fp32 mb=1 seq=128";
    check(
        "gpt2_fp32_adamw_b1_s128",
        gpt2,
        "fused-adamw",
        [2_494_238_720, 2_305_610_752],
    );
    check(
        "gpt2_fp32_adamw_b1_s128",
        gpt2,
        "adafactor",
        [2_494_238_720, 1_313_128_448],
    );
    // Beside a loop over tensors the fused kernel saves nothing: it keeps its step counts on the device.
    let by_loop = "model=gpt2 precision=fp32 mb=1 seq=128 optim=adamw-loop";
    check(
        "gpt2_fp32_adamw_loop_b1_s128",
        by_loop,
        "fused-adamw",
        [2_305_534_976, 2_305_610_752],
    );
    let clipped = "model=llama-3.2-1b precision=amp-bf16 mb=1 seq=256 clip=on";
    check(
        "llama3.2-1b_amp_bf16_clip",
        clipped,
        "fused-adamw",
        [24_716_293_120, 20_825_881_600],
    );
}

#[test]
fn fused_attention_saves_what_it_saved() {
    let gpt2 = "model=gpt2 precision=bf16 mb=4 seq=1024 attn=eager";
    check(
        "gpt2_bf16_attn-eager",
        gpt2,
        "sdpa",
        [8_467_549_184, 5_437_438_976],
    );
    let fp32 = "model=gpt2 precision=fp32 optim=sgd mb=4 seq=1024 attn=eager";
    check(
        "gpt2_fp32_sgd_attn-eager",
        fp32,
        "sdpa",
        [12_741_577_728, 7_307_070_464],
    );
    let tiny = "model=tinyllama-1.1b precision=bf16 optim=adamw-fused mb=1 seq=2048 attn=eager";
    check(
        "tinyllama-1.1b_attn-eager",
        tiny,
        "sdpa",
        [29_989_800_448, 11_352_965_632],
    );
}

#[test]
fn what_a_loop_keeps_is_saved_when_it_goes() {
    let held = "model=gpt2 precision=fp32 optim=adamw-fused mb=2 seq=1024 keep_outputs=on";
    check(
        "gpt2_hold_outputs",
        held,
        "drop-outputs",
        [5_316_055_040, 4_904_349_696],
    );
    let cached = "model=gpt2 precision=fp32 optim=adamw-fused mb=2 seq=1024 use_cache=on";
    check(
        "gpt2_use_cache",
        cached,
        "no-cache",
        [5_058_490_368, 4_904_349_696],
    );
    // With grouped keys of one layer at a time the peak lies elsewhere.
    let llama = "model=llama-3.2-1b precision=bf16 optim=adamw-fused mb=2 seq=1024 use_cache=on";
    check(
        "llama3.2-1b_use_cache",
        llama,
        "no-cache",
        [14_163_131_392, 14_163_131_392],
    );
    let zeros = "model=gpt2 precision=amp-bf16 mb=8 seq=512 zero_none=off";
    check(
        "gpt2_zero_none-False",
        zeros,
        "zero-to-none",
        [8_002_409_984, 7_497_441_792],
    );
    let drops = "model=gpt2 precision=bf16 mb=4 seq=1024 attn=eager";
    check(
        "gpt2_dropout",
        drops,
        "no-dropout",
        [8_467_549_184, 6_571_337_216],
    );
}
