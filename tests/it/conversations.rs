//! What people ask in a sentence, carried to its end: a plan that fits, exported for the programs that it names.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom::run;
use serde_json::Value;

fn headroom(words: &[&str]) -> (u8, Value) {
    let words: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
    let outcome = run(&words);
    let json = serde_json::from_str(&outcome.stdout);
    let json = json.unwrap_or_else(|_| panic!("{words:?}: {outcome:?}"));
    (outcome.code, json)
}

fn all<'a>(answer: &'a Value, list: &str) -> Vec<&'a Value> {
    answer[list].as_array().into_iter().flatten().collect()
}

/// Some plan has each of these changes, and every plan is a run that fits and that its programs can start.
#[track_caller]
fn check(sentence: &str, changes: &[&str]) {
    let (_, answer) = headroom(&["plan", sentence, "--json"]);
    let lists = ["plans", "unlock", "cards"];
    let plans: Vec<&Value> = lists.iter().flat_map(|list| all(&answer, list)).collect();
    assert!(!plans.is_empty(), "{sentence}");
    let made = plans.iter().flat_map(|plan| all(plan, "changes"));
    let made: Vec<&str> = made.filter_map(|change| change["id"].as_str()).collect();
    for change in changes {
        let has = made.iter().any(|id| id.split('+').any(|id| id == *change));
        assert!(has, "{sentence}: {change} is not among {made:?}");
    }
    for plan in plans {
        let link = plan["link"].as_str().unwrap();
        let (code, estimate) = headroom(&["estimate", link, "--json"]);
        assert_eq!(code, 0, "{sentence}: {link}");
        assert_eq!(estimate["device"], plan["device"], "{sentence}: {link}");
        for program in all(plan, "programs") {
            let program = program.as_str().unwrap();
            let (code, files) = headroom(&["export", link, "--target", program, "--json"]);
            let written = files["files"].as_object().map_or(0, serde_json::Map::len);
            assert!(code == 0 && written > 0, "{sentence}: {program}: {files}");
        }
    }
}

#[test]
fn people_leave_with_a_run_that_fits_and_starts() {
    check(
        "I want to finetune Qwen2.5-7B on my RTX 3090",
        &["kernels-liger", "compile-model"],
    );
    check(
        "gemma 3 27b lora on one H100, sequence 16k",
        &["bf16-base", "loss-liger-linear"],
    );
    check(
        "DPO of Mistral 7B on 2 A100 80GB",
        &["precomputed-reference"],
    );
    check("flux lora on a 24 GB card", &["block-swap"]);
    check("wan 2.1 14b lora on 4090 480p", &["block-swap"]);
    check(
        "llama 3.1 8b full on 4x A100 40GB, 8k context",
        &["offload-parameters"],
    );
    check("Qwen3-30B-A3B full fine tune on 8 H200", &["fsdp2", "ep-8"]);
    check("qwen2.5-vl 7b full finetune rtx 4090", &["qlora"]);
    check(
        "whisper large v3 finetune on a 16GB T4",
        &["checkpointing-layers"],
    );
    check(
        "bert base classification on 8gb gpu, batch 64",
        &["micro-batch"],
    );
    check(
        "pretrain gpt2 124M on one 3090 with batch 512, 1024 tokens",
        &["micro-batch"],
    );
    check("phi-4 lora on 3090", &["qlora"]);
    check(
        "deepseek r1 distill qwen 14b lora on 2 rtx 3090",
        &["fsdp2"],
    );
    check("unsloth llama 3.2 3b colab T4", &[]);
    check(
        "my sdxl dreambooth lora runs out of memory on a 3060 12gb",
        &[],
    );
    check("gemma 2 9b full on 2 a100 80gb", &["adamw-8bit-ao"]);
}

#[test]
fn a_question_is_answered_by_the_plan() {
    #[track_caller]
    fn check(sentence: &str, list: &str) {
        let (code, answer) = headroom(&["plan", sentence, "--json"]);
        assert!(code == 0 && !answer[list].is_null(), "{sentence}: {answer}");
    }
    check(
        "how many A100 80GB do I need to fully fine tune Qwen2.5 7B?",
        "fewest",
    );
    check("cheapest gpu for sdxl lora", "cards");
    check("max context for llama 3.2 1b qlora on a 4060 8gb", "value");
    check("largest batch for gpt2 on a 3090", "value");
}

/// A run that a program cannot start as it is becomes one that it can, and what that changes is said.
#[test]
fn plans_for_one_program_are_runs_of_that_program() {
    #[track_caller]
    fn check(sentence: &str, program: &str, changed: &[&str]) {
        let (_, answer) = headroom(&["plan", sentence, "--program", program, "--json"]);
        let made: Vec<&str> = all(&answer, "for_program")
            .into_iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(made, changed, "{sentence}");
        let plans = all(&answer, "plans");
        assert!(!plans.is_empty(), "{sentence}");
        for plan in plans {
            let link = plan["link"].as_str().unwrap();
            let (code, _) = headroom(&["export", link, "--target", program, "--json"]);
            assert_eq!(code, 0, "{link}");
        }
    }
    check(
        "#v=1&gpu=h100-sxm5-80gb&gpus=8&model=llama-3.1-8b&mb=8",
        "torchtitan",
        &[
            "Language-model loss: chunked logits and cross-entropy, checkpointed",
            "Gradient clipping: on",
        ],
    );
    check("#v=1&gpu=rtx-4090-24gb&model=gpt2&mb=8", "plain", &[]);
}
