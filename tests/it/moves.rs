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
fn check(row: &str) {
    let (recorded, run) = row.split_once(": ").unwrap();
    let [_, id, before, after] = recorded.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{row}")
    };
    let [before, after] =
        [before, after].map(|bytes| bytes.replace('_', "").parse::<f64>().unwrap());
    let mut scenario = Scenario::default();
    settings::set(&mut scenario, "gpu", "a100-sxm4-80gb").unwrap();
    for setting in run.split_whitespace() {
        let (name, value) = setting.split_once('=').unwrap();
        settings::set(&mut scenario, name, value).unwrap();
    }
    let changed = (find_move(id).unwrap().apply)(&scenario).unwrap();
    let peak = |scenario: &Scenario| estimate(scenario).unwrap().allocated.expected.get() as f64;
    let predicted = [peak(&scenario), peak(&changed)];
    for (predicted, recorded) in predicted.iter().zip([before, after]) {
        let off = predicted / recorded - 1.0;
        assert!(off.abs() < 0.01, "{row}: {off:+.4}");
    }
    let saved = [1.0 - after / before, 1.0 - predicted[1] / predicted[0]];
    assert!((saved[0] - saved[1]).abs() < 0.01, "{row}: {saved:?}");
}

#[test]
fn checkpointing_saves_what_it_saved() {
    for row in [
        "llama3.2-1b_bf16_adamw_fused_b1_s8192 checkpointing 34_405_489_664 20_698_553_344: \
         model=llama-3.2-1b precision=bf16 optim=adamw-fused mb=1 seq=8192",
        "llama3.1-8b_bf16_adamw_b1_s2048_lora-r64 checkpointing 40_705_796_096 21_818_836_992: \
         model=llama-3.1-8b precision=bf16 mb=1 seq=2048 lora_rank=64 \
         lora_targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
        // The optimizer's step is the peak: nothing to save.
        "mistral-7b_bf16_adamw_b1_s4096 checkpointing 72_417_387_520 72_417_387_520: \
         model=mistral-7b-v0.1 precision=bf16 mb=1 seq=4096",
    ] {
        check(row);
    }
}

#[test]
fn fewer_adapters_save_what_they_saved() {
    // Recorded with rank 8 on the attention layers: adapters of rank 16 are half a percent of the run.
    check(
        "llama3.1-8b_bf16_ckpt_lora-r16 fewer-adapters 20_287_391_744 19_865_864_192: \
         model=llama-3.1-8b precision=bf16 mb=1 seq=2048 ckpt=layers lora_rank=16 \
         lora_targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
    );
}

#[test]
fn lower_precision_saves_what_it_saved() {
    for row in [
        "llama3.2-1b_amp_bf16 bf16 24_729_700_352 14_164_367_360: \
         model=llama-3.2-1b precision=amp-bf16 mb=1 seq=2048",
        "gpt2_amp_bf16 bf16 13_245_136_384 10_127_260_672: \
         model=gpt2 precision=amp-bf16 mb=8 seq=1024",
        "qwen3-0.6b_amp_bf16 bf16 25_272_236_032 19_319_382_016: \
         model=qwen3-0.6b precision=amp-bf16 mb=4 seq=1024",
        "gpt2_fp32_adamw_b4_s512 amp-bf16 4_905_056_256 4_640_047_616: \
         model=gpt2 precision=fp32 mb=4 seq=512",
        // Copies of weights come on top of fp32 ones: next to nothing is saved.
        "tinyllama-1.1b_fp32 amp-bf16 21_149_839_872 20_950_610_432: \
         model=tinyllama-1.1b precision=fp32 optim=adamw-fused mb=1 seq=2048",
        // The head's weights and their gradient are the peak: nothing at all.
        "llama3.1-8b_fp32_sgd_layers2 amp-bf16 11_912_005_632 11_912_005_632: \
         model=llama-3.1-8b dims=layers=2 precision=fp32 optim=sgd mb=1 seq=1024",
    ] {
        check(row);
    }
}

#[test]
fn optimizers_save_what_they_saved() {
    for row in [
        "gpt2_fp32_adamw_b1_s128 fused-adamw 2_494_238_720 2_305_610_752: \
         model=gpt2 precision=fp32 mb=1 seq=128",
        "gpt2_fp32_adamw_b1_s128 adafactor 2_494_238_720 1_313_128_448: \
         model=gpt2 precision=fp32 mb=1 seq=128",
        // Beside a loop over tensors the fused kernel saves nothing: it keeps its step counts on the device.
        "gpt2_fp32_adamw_loop_b1_s128 fused-adamw 2_305_534_976 2_305_610_752: \
         model=gpt2 precision=fp32 mb=1 seq=128 optim=adamw-loop",
        "llama3.2-1b_amp_bf16_clip fused-adamw 24_716_293_120 20_825_881_600: \
         model=llama-3.2-1b precision=amp-bf16 mb=1 seq=256 clip=on",
    ] {
        check(row);
    }
}

#[test]
fn fused_attention_saves_what_it_saved() {
    for row in [
        "gpt2_bf16_attn-eager sdpa 8_467_549_184 5_437_438_976: \
         model=gpt2 precision=bf16 mb=4 seq=1024 attn=eager",
        "gpt2_fp32_sgd_attn-eager sdpa 12_741_577_728 7_307_070_464: \
         model=gpt2 precision=fp32 optim=sgd mb=4 seq=1024 attn=eager",
        "tinyllama-1.1b_attn-eager sdpa 29_989_800_448 11_352_965_632: \
         model=tinyllama-1.1b precision=bf16 optim=adamw-fused mb=1 seq=2048 attn=eager",
    ] {
        check(row);
    }
}

#[test]
fn what_a_loop_keeps_is_saved_when_it_goes() {
    for row in [
        "gpt2_hold_outputs drop-outputs 5_316_055_040 4_904_349_696: \
         model=gpt2 precision=fp32 optim=adamw-fused mb=2 seq=1024 keep_outputs=on",
        "gpt2_use_cache no-cache 5_058_490_368 4_904_349_696: \
         model=gpt2 precision=fp32 optim=adamw-fused mb=2 seq=1024 use_cache=on",
        // With grouped keys of one layer at a time the peak lies elsewhere.
        "llama3.2-1b_use_cache no-cache 14_163_131_392 14_163_131_392: \
         model=llama-3.2-1b precision=bf16 optim=adamw-fused mb=2 seq=1024 use_cache=on",
        "gpt2_zero_none-False zero-to-none 8_002_409_984 7_497_441_792: \
         model=gpt2 precision=amp-bf16 mb=8 seq=512 zero_none=off",
        "gpt2_dropout no-dropout 8_467_549_184 6_571_337_216: \
         model=gpt2 precision=bf16 mb=4 seq=1024 attn=eager",
    ] {
        check(row);
    }
}
