//! What is exported does what it says, whatever a scenario is called.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod hostile;
mod moves;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use headroom_advice::MOVES;
use headroom_base::document::{json, yaml};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, Estimate, Phase};
use headroom_io::export::{self, File, shell};
use headroom_io::import;
use headroom_scenario::share;
use headroom_scenario::{Scenario, presets, settings};
use headroom_testing::slow;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("headroom-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn estimate() -> Estimate {
    let band = Band {
        low: Bytes::mib(900),
        expected: Bytes::mib(1000),
        high: Bytes::mib(1100),
    };
    Estimate {
        allocated: band,
        reserved: band,
        device: band,
        phase: Phase::Backward,
        ..Estimate::default()
    }
}

/// Every target, those of the systems included.
fn targets() -> &'static [export::Target] {
    headroom_systems::install();
    export::targets()
}

/// A scenario that the target can express, in which every text that it can pass on is the given one.
fn expressible(target: &str, text: &str) -> Scenario {
    let mut scenario = named(text);
    if let Some((_, preset)) = SYSTEMS.iter().find(|(id, _)| *id == target) {
        // No name of a scenario but the card's reaches these.
        scenario = presets::find(preset).unwrap().scenario();
        scenario.hardware.gpu = text.into();
        return scenario;
    }
    let known = [("model", "llama-3.1-8b"), ("lora", "off")];
    let changes: &[(&str, &str)] = match target {
        "swift" => &[("mask", "on")],
        "skypilot" => &[("gpu", "h100-sxm5")],
        "unsloth" => &[
            ("gpus", "1"),
            ("optim", "adamw-8bit"),
            ("kernels", "fused-norms"),
            ("loss", "liger"),
            ("clip", "on"),
        ],
        "verl" => &[
            ("task", "grpo"),
            ("sampler", "vllm"),
            ("generations", "2"),
            ("clip", "on"),
        ],
        "deepspeed" => &[("precision", "amp-bf16"), ("par", "zero1")],
        "torchtune" => &[("precision", "bf16"), ("par", "fsdp2")],
        "torchtitan" => &[
            ("precision", "amp-bf16"),
            ("clip", "on"),
            ("loss", "chunked-checkpoint"),
        ],
        "megatron" => &[("precision", "amp-bf16"), ("optim", "adamw-fused")],
        "kohya" => &[("model", "sdxl-unet"), ("lora", "off")],
        "diffusers" => &[
            ("model", "sdxl-unet"),
            ("lora", "off"),
            ("precision", "amp-bf16"),
        ],
        "musubi" => &[
            ("model", "wan2.1-t2v-1.3b"),
            ("lora", "on"),
            ("lora_targets", "to_q,to_k,to_v,to_out.0,net.0.proj,net.2"),
        ],
        "ai-toolkit" | "onetrainer" => &[("model", "sdxl-unet"), ("lora", "off"), ("gpus", "1")],
        "simpletuner" => &[
            ("model", "sdxl-unet"),
            ("lora", "off"),
            ("precision", "bf16"),
        ],
        "diffusion-pipe" => &[
            ("model", "flux.1-dev"),
            ("lora", "off"),
            ("precision", "bf16"),
        ],
        _ => &[],
    };
    let common = [
        ("freeze", ""),
        ("train_only", ""),
        ("lora_exclude", ""),
        ("precision", "amp-bf16-on-bf16"),
        ("ckpt", "layers"),
        ("gpus", "2"),
    ];
    let own_models = ["torchtune", "torchtitan", "megatron"].contains(&target);
    let known = if own_models { &known[..] } else { &[] };
    for (name, value) in common.iter().chain(known).chain(changes) {
        settings::set(&mut scenario, name, value).unwrap();
    }
    scenario
}

/// A scenario in which every text is the given one.
fn named(text: &str) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.model.id = text.into();
    scenario.hardware.gpu = text.into();
    let word = text.replace([' ', ','], "_");
    for list in ["freeze", "train_only", "lora_targets", "lora_exclude"] {
        settings::set(&mut scenario, list, &word).unwrap();
    }
    settings::set(&mut scenario, "expandable", "on").unwrap();
    scenario
}

fn write(files: &[File], folder: &Path) {
    for file in files {
        assert!(!file.name.contains('/'));
        fs::write(folder.join(file.name), &file.contents).unwrap();
    }
}

fn bash(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("bash")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs shellcheck on scripts where the machine has it, as `scripts/test` sees to.
#[track_caller]
fn shellcheck(scripts: &[PathBuf]) {
    if let Ok(output) = Command::new("shellcheck").args(scripts).output() {
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}

/// The presets that run the five systems, by the target that writes their own files.
const SYSTEMS: &[(&str, &str)] = &[
    ("dreams", "dreams"),
    ("gsa", "gsa-512m"),
    ("rna-3e-ffi", "rna-3e-ffi"),
    ("prs-med", "prs-med"),
    ("peptrm", "peptrm"),
];

fn set(scenario: &mut Scenario, words: &str) {
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        settings::set(scenario, name, value).unwrap();
    }
}

/// What the target's own file says, read as another program's: without the link in its header.
fn read_back(files: &[File]) -> Option<Scenario> {
    let is_yaml = |name: &str| {
        Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "yaml")
    };
    let file = files.iter().find(|file| is_yaml(file.name))?;
    let document = yaml::read(&file.contents).ok()?;
    Some(import::read(&document, &Scenario::default()).scenario)
}

#[test]
fn what_a_target_cannot_express_is_refused_by_name() {
    #[track_caller]
    fn check(target: &str, changes: &str, fields: &str) {
        let mut scenario = Scenario::default();
        set(&mut scenario, changes);
        let written = (export::target(target).unwrap().write)(&scenario, &estimate());
        let problems = written.err().unwrap_or_default();
        let found: Vec<&str> = problems
            .iter()
            .map(headroom_scenario::Problem::field)
            .collect();
        assert_eq!(found.join(" "), fields, "{target} {changes}");
    }
    for target in ["plain", "hf", "trl", "accelerate", "llama-factory"] {
        check(target, "", "");
        check(target, "optim=muon", "training.optimizer");
    }
    check("plain", "freeze=wte ema=on dims=layers=2", "");
    for target in ["hf", "trl", "accelerate", "axolotl", "llama-factory"] {
        let changes = "freeze=wte ema=on dims=layers=2 precision=bf16";
        check(target, changes, "model.dims training.freeze training.ema");
    }
    check("accelerate", "gpus=8 cp=2 par=fsdp2", "");
    check("accelerate", "gpus=8 cp=2 par=hsdp", "");
    let fields = "parallel.strategy training.attention";
    check("accelerate", "gpus=8 cp=2 par=ddp attn=eager", fields);
    for target in ["trl", "axolotl"] {
        let zero = "gpus=8 cp=2 par=zero2 precision=amp-bf16-on-bf16";
        check(target, zero, "parallel.cp");
    }
    check("axolotl", "", "training.precision");
    check("axolotl", "precision=bf16", "");
    check("llama-factory", "lora=on", "training.precision");
    check("trl", "lora_fp32=off", "training.lora.fp32_adapters");
    check("hf", "lora_fp32=off", "");
}

#[test]
fn tasks_are_written_in_each_programs_words_and_read_back() {
    /// What no file says: the data's own lengths and labels.
    const UNSAID: &[&str] = &["task.prompt", "task.labelled"];
    const ADAPTERS: &str = "lora=on precision=amp-bf16-on-bf16";
    const GROUPS: &str = "task=grpo generations=4 completion=64 generation_batches=1 iterations=2";
    #[track_caller]
    fn check(row: &str) {
        let (run, expected) = row.split_once(" -> ").unwrap();
        let (target, changes) = run.split_once(' ').unwrap();
        let changes = &changes
            .replace("ADAPTERS", ADAPTERS)
            .replace("GROUPS", GROUPS);
        let mut scenario = Scenario::default();
        set(
            &mut scenario,
            "model=qwen2.5-0.5b gpu=h100-sxm5 seq=512 mb=4 accum=2 precision=bf16 ckpt=layers",
        );
        scenario.data.padding_mask = !changes.contains("generations");
        set(&mut scenario, changes);
        assert_eq!(scenario.check(), vec![], "{target} {changes}");
        let files = (export::target(target).unwrap().write)(&scenario, &estimate());
        let files = files.unwrap_or_else(|problems| panic!("{target} {changes} {problems:?}"));
        let lines: Vec<&str> = (files.iter())
            .flat_map(|file| file.contents.lines())
            .map(str::trim)
            .collect();
        for line in expected.split(" | ") {
            let found = lines.iter().any(|known| known.starts_with(line));
            assert!(found, "{target} {changes}: {line} in {lines:#?}");
        }
        let read = read_back(&files).unwrap();
        // A reward model's file and TRL's have no key of their own.
        if target == "trl" && changes.contains("task=reward") {
            return;
        }
        for setting in settings::all() {
            let of_task = setting.section() == "task" && !UNSAID.contains(&setting.path);
            if of_task && setting.applies(&scenario) {
                let (value, path) = (setting.get(&scenario), setting.path);
                assert_eq!(setting.get(&read), value, "{target} {changes} {path}");
            }
        }
    }
    for row in [
        "trl task=dpo -> loss_type | precompute_ref_log_probs: false",
        "trl task=dpo reference=precomputed-by-itself -> precompute_ref_log_probs: true",
        "trl task=kto -> desirable_weight: 1.0",
        "trl task=reward ADAPTERS -> lora_task_type: SEQ_CLS",
        "trl GROUPS reference=copy sampler=vllm vllm_share=0.4 vllm_sleep=on -> reward_funcs: [rewards.reward] | \
         def reward( | beta: 0.04 | vllm_mode: colocate",
        "trl task=rloo generations=2 generation_batches=1 reference=none -> normalize_advantages: false",
        "axolotl task=dpo reference=precomputed -> rl: dpo | precompute_ref_log_probs: true",
        "axolotl task=kto ADAPTERS reference=auto -> rl: kto | remove_unused_columns: false",
        "axolotl task=orpo -> rl: orpo",
        "axolotl task=simpo ADAPTERS -> rl: simpo | cpo_alpha: 0.0",
        "axolotl GROUPS ADAPTERS reference=adapters-off sampler=vllm vllm_share=0.4 -> rl: grpo | \
         generation_batch_size: 4 | gpu_memory_utilization: 0.4 | def reward(",
        "llama-factory task=dpo task_head=log-softmax -> stage: dpo | pref_loss: sigmoid | \"ranking\": true",
        "llama-factory task=orpo task_head=log-softmax -> stage: dpo | pref_loss: orpo",
        "llama-factory task=simpo task_head=log-softmax ADAPTERS -> pref_loss: simpo",
        "llama-factory task=kto task_head=log-softmax -> stage: kto | \"kto_tag\": \"label\"",
        "swift task=dpo task_head=logits -> rlhf_type: dpo | exec swift rlhf",
        "swift task=kto task_head=logits -> rlhf_type: kto",
        "swift task=orpo -> rlhf_type: orpo",
        "swift task=cpo -> rlhf_type: cpo",
        "swift task=reward -> rlhf_type: rm",
        "swift GROUPS task_head=logits reference=none sampler=vllm vllm_sleep=on -> rlhf_type: grpo | \
         sleep_level: 1 | beta: 0.0",
    ] {
        check(row);
    }
}

#[test]
fn other_tasks_are_a_script_for_unsloth() {
    #[track_caller]
    fn check(row: &str) {
        let (changes, expected) = row.split_once(" -> ").unwrap();
        let mut scenario = presets::find("qwen-1.5b-dpo-24gb").unwrap().scenario();
        set(&mut scenario, "optim=adamw-8bit kernels=fused-norms");
        set(&mut scenario, changes);
        assert_eq!(scenario.check(), vec![], "{changes}");
        let files = (export::target("unsloth").unwrap().write)(&scenario, &estimate()).unwrap();
        let lines: Vec<&str> = files
            .iter()
            .flat_map(|file| file.contents.lines())
            .collect();
        for line in expected.split(" | ") {
            let found = lines.iter().any(|known| known.trim().starts_with(line));
            assert!(found, "{changes}: {line} in {lines:#?}");
        }
    }
    for row in [
        "task=dpo -> task: dpo | max_length: 1024 | model, tokenizer = FastLanguageModel | exec python train.py",
        "task=kto quant=nf4 -> task: kto | load_in_4bit: true",
        "task=grpo generations=8 reference=none sampler=vllm vllm_share=0.4 -> task: grpo | \
         fast_inference: true | gpu_memory_utilization: 0.4 | beta: 0.0 | num_generations: 8",
    ] {
        check(row);
    }
}

#[test]
fn groups_of_completions_are_prompts_to_verl() {
    let mut scenario = presets::find("qwen-1.5b-grpo-24gb").unwrap().scenario();
    set(
        &mut scenario,
        "gpus=8 par=ddp mb=4 accum=4 generations=8 generation_batches=8 sampler=vllm vllm_share=0.4 vllm_sleep=on",
    );
    assert_eq!(scenario.check(), vec![]);
    let files = (export::target("verl").unwrap().write)(&scenario, &estimate()).unwrap();
    let lines: Vec<&str> = files
        .iter()
        .flat_map(|file| file.contents.lines())
        .collect();
    for line in [
        "  adv_estimator: grpo",
        // 4 rows of each of 8 micro-batches on 8 cards, in groups of 8.
        "  train_batch_size: 32",
        "    ppo_mini_batch_size: 16",
        "    ppo_micro_batch_size_per_gpu: 4",
        "    gpu_memory_utilization: 0.4",
        "    free_cache_engine: true",
        "    lora_rank: 16",
        "  n_gpus_per_node: 8",
    ] {
        let found = lines.iter().any(|known| known.starts_with(line));
        assert!(found, "{line} in {lines:#?}");
    }
}

#[test]
fn a_task_is_refused_where_a_program_does_it_otherwise() {
    #[track_caller]
    fn check(target: &str, changes: &str, field: &str) {
        let mut scenario = Scenario::default();
        set(
            &mut scenario,
            "model=qwen2.5-0.5b gpu=h100-sxm5 mb=4 accum=2 precision=bf16 ckpt=layers mask=on",
        );
        set(&mut scenario, changes);
        let written = (export::target(target).unwrap().write)(&scenario, &estimate());
        let problems = written.err().unwrap_or_default();
        let found: Vec<&str> = (problems.iter())
            .map(headroom_scenario::Problem::field)
            .collect();
        assert_eq!(found, [field], "{target} {changes}");
    }
    check("trl", "task=orpo", "task.objective");
    check("trl", "task=dpo task_head=logits", "task.head");
    check("trl", "task=dpo reference=precomputed", "task.reference");
    check("trl", "task=dpo reference_type=fp32", "task.reference_type");
    check("trl", "task=kto mb=1", "data.micro_batch");
    check("trl", "task=grpo generations=1", "task.generations");
    check("axolotl", "task=reward", "task.objective");
    check("axolotl", "task=dpo task_head=logits", "task.head");
    check("axolotl", "task=kto", "training.lora");
    check(
        "axolotl",
        "task=grpo generations=16 gpus=2 par=ddp lora=on precision=amp-bf16-on-bf16 completion=64",
        "task.generations",
    );
    check("llama-factory", "task=dpo", "task.head");
    check("llama-factory", "task=reward", "task.objective");
    check("llama-factory", "task=ppo", "task.objective");
    check(
        "llama-factory",
        "task=dpo task_head=log-softmax precision=amp-bf16",
        "task.reference_type",
    );
    check("llama-factory", "task=sft", "task.head");
    check("swift", "task=dpo", "task.head");
    check("swift", "task=gkd", "task.objective");
    check("plain", "task=dpo", "task.objective");
    let verl = "task=grpo precision=amp-bf16 sampler=vllm generations=2 clip=on mask=off";
    check("verl", &format!("{verl} clip=off"), "training.clip");
    check("verl", &format!("{verl} sampler=generate"), "task.sampler");
    check("verl", &format!("{verl} generations=3"), "task.generations");
    check("verl", &format!("{verl} optim=muon"), "training.optimizer");
}

#[test]
fn a_pod_may_use_the_hosts_memory_that_its_run_needs() {
    let limit = |of_steps: f64| {
        let mut estimate = estimate();
        estimate.parameters = 1 << 30;
        estimate.host.processes = 2;
        estimate.host.total.high = Bytes::gib(of_steps);
        let scenario = share::read("v=1&gpus=2").scenario;
        let files = (export::target("kubernetes").unwrap().write)(&scenario, &estimate).unwrap();
        let job = files.iter().find(|file| file.name == "job.yaml").unwrap();
        let memory = job
            .contents
            .lines()
            .find(|line| line.trim().starts_with("memory: "))
            .unwrap();
        memory.trim().to_string()
    };
    let note = "  # of the host: the run's own, Python's, and to load the model";
    // Twice 8 GiB for a process and 16 GiB that they share; fp32 weights are 4 GiB for each.
    assert_eq!(limit(1.0), format!("memory: \"40Gi\"{note}"));
    assert_eq!(limit(100.0), format!("memory: \"132Gi\"{note}"));
}
