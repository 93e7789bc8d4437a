//! What is exported does what it says, whatever a scenario is called.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

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

/// Text that has broken scripts and files before.
const HOSTILE: &[&str] = &[
    "$(touch canary)",
    "`touch canary`",
    "'; touch canary; '",
    "\"; touch canary; \"",
    "a\\",
    "it's",
    "a b",
    "#",
    "--help",
    "-rf",
    "~",
    "*",
    "!!",
    "${IFS}",
    "&& touch canary",
    "| touch canary",
    "> canary",
    "größe 模型 🦀",
    "no",
    "null",
    "- a",
    "a: b",
    "{a}",
    "%TAG",
    "\u{202e}txt",
];

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
        "deepspeed" => &[("precision", "amp-bf16")],
        "torchtune" => &[("precision", "bf16"), ("par", "fsdp2")],
        "torchtitan" => &[
            ("precision", "amp-bf16"),
            ("clip", "on"),
            ("loss", "chunked-checkpoint"),
        ],
        "megatron" => &[("precision", "amp-bf16"), ("optim", "adamw-fused")],
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

#[test]
fn quoted_words_reach_a_program_as_they_are() {
    let folder = folder("words");
    for breaks in ["\n", "\t", "\r\n", "\u{1b}[0m"] {
        let text = HOSTILE.join(breaks);
        let line = format!("printf '%s\\0' x {}", shell::quote(&text));
        assert_eq!(bash(&folder, &["-c", &line]), format!("x\0{text}\0"));
    }
    let words = [&["printf", "%s\\0", "x"], HOSTILE].concat();
    let expected = format!("x\0{}\0", HOSTILE.join("\0"));
    assert_eq!(bash(&folder, &["-c", &shell::command(&words)]), expected);
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        0,
        "a canary was made"
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn no_name_runs_as_a_command_or_breaks_a_file() {
    let folder = folder("canary");
    let stub = folder.join("torchrun");
    fs::write(
        &stub,
        "#!/bin/sh\nprintf '%s\\n' \"$@\" \"$PYTORCH_ALLOC_CONF\" \"$PYTORCH_CUDA_ALLOC_CONF\"\n",
    )
    .unwrap();
    bash(&folder, &["-c", "chmod +x torchrun"]);
    for text in HOSTILE {
        let mut scripts = Vec::new();
        for target in targets() {
            let scenario = expressible(target.id, text);
            let files = (target.write)(&scenario, &estimate());
            let files = files.unwrap_or_else(|problems| panic!("{} {problems:?}", target.id));
            let at = folder.join("out").join(target.id);
            fs::create_dir_all(&at).unwrap();
            write(&files, &at);
            for file in &files {
                assert!(
                    !file.contents.contains('\u{202e}'),
                    "text that runs backwards"
                );
                let kind = Path::new(file.name).extension();
                if kind.is_some_and(|ending| ending == "sh" || ending == "sbatch") {
                    bash(&at, &["-n", file.name]);
                    scripts.push(at.join(file.name));
                }
                if kind.is_some_and(|ending| ending == "json") {
                    json::read(&file.contents).unwrap();
                }
                if kind.is_some_and(|ending| ending == "yaml") {
                    let document = yaml::read(&file.contents).unwrap();
                    // Comments aside, writing it again gives the same document.
                    let again = yaml::read(&yaml::write(&document)).unwrap();
                    assert_eq!(again, document);
                }
                let link = file
                    .contents
                    .lines()
                    .find_map(|line| line.strip_prefix("# Scenario: "));
                if let Some(link) = link {
                    assert!(link.len() <= 1000);
                    let opened = share::read(link);
                    assert_eq!(opened.problems, vec![], "{link}");
                    assert_eq!(opened.scenario, scenario);
                }
            }
        }
        shellcheck(&scripts);
        fs::remove_dir_all(folder.join("out")).unwrap();
        let scenario = named(text);
        let files = (export::target("plain").unwrap().write)(&scenario, &estimate()).unwrap();
        write(&files, &folder);
        let line = "PATH=\"$PWD:$PATH\" bash launch.sh --dry";
        let expandable = "expandable_segments:True";
        let expected = format!(
            "--standalone\n--nproc-per-node\n1\ntrain.py\ntrain.yaml\n--dry\n{expandable}\n{expandable}\n"
        );
        assert_eq!(bash(&folder, &["-c", line]), expected);
        let config = fs::read_to_string(folder.join("train.yaml")).unwrap();
        let config = yaml::read(&config).unwrap();
        assert_eq!(config.get("model"), Some(&(*text).into()));
    }
    let mut left: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let files = "adapters.py launch.sh model.py prepare.py torchrun train.py train.yaml";
    assert_eq!(left.join(" "), files);
    fs::remove_dir_all(&folder).unwrap();
}

/// Pieces of names that are put together at random: what shells, Python, YAML and links take for their own.
const PIECES: &[&str] = &[
    "';touch canary;'",
    "\";touch canary;\"",
    "\ntouch canary\n",
    "\r\ntouch canary",
    "$(touch canary)",
    "`touch canary`",
    "<(touch canary)",
    "$'\\x60touch canary\\x60'",
    "\nEOF\ntouch canary\n",
    "\n'EOF'\n",
    "');__import__('os').system('touch canary');('",
    "\"\"\";__import__('os').system('touch canary')#",
    "'''+__import__('os').system('touch canary')+'''",
    "!!python/object/apply:os.system ['touch canary']",
    "\n- !!python/name:os.system\n",
    "{{ touch }}",
    "${{ github.token }}",
    "%(here)s",
    "\\",
    "\\\n",
    "\u{2028}",
    "\u{85}",
    "\u{feff}",
    "\u{1b}[2J",
    "\u{7f}",
    "</script>",
    "#",
    "@file",
    "a=b",
    " -o x",
];

/// A name of a few pieces.
fn hostile(dice: &mut impl FnMut(usize) -> usize) -> String {
    let count = 1 + dice(3);
    let pieces = (0..count).map(|_| match dice(2) {
        0 => HOSTILE[dice(HOSTILE.len())],
        _ => PIECES[dice(PIECES.len())],
    });
    // Longer names are refused before anything is written.
    let name: String = pieces.collect();
    name.chars().take(settings::LONGEST_NAME).collect()
}

/// What the parsers of other programs say of every file below a folder; empty where nothing is wrong.
fn parsed_by_others(folder: &Path) -> String {
    const SCRIPT: &str = r#"
import ast, json, pathlib, sys
try:
    import tomllib
except ImportError:
    tomllib = None
for path in pathlib.Path(sys.argv[1]).rglob("*"):
    if path.suffix not in (".json", ".toml", ".py"):
        continue
    text = path.read_bytes().decode()
    try:
        if path.suffix == ".json":
            json.loads(text)
        elif path.suffix == ".toml" and tomllib:
            tomllib.loads(text)
        elif path.suffix == ".py":
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and "system" in ast.dump(node.func):
                    print(path, "calls", ast.unparse(node))
    except Exception as error:
        print(path, error)
"#;
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .arg(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// What bash says of every script below a folder, read and then run where every program but `touch` does nothing; some watch
/// without end.
fn run_by_bash(folder: &Path) -> String {
    const SCRIPT: &str = r#"
shopt -s globstar nullglob
printf 'command_not_found_handle() { return 0; }\n' > nothing
mkdir programs && ln -s "$(command -v touch)" programs/touch
for script in "$PWD"/**/*.sh "$PWD"/**/*.sbatch; do
    bash -n "$script" || echo "$script"
    cd "${script%/*}"
    timeout 1 env -i PATH="$OLDPWD/programs" BASH_ENV="$OLDPWD/nothing" "$BASH" "$script" </dev/null >/dev/null 2>&1
    cd "$OLDPWD"
done
"#;
    bash(folder, &["-c", SCRIPT])
}

fn paths_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            all.push(path);
        }
    }
    all
}

/// Whether a value says of what type it is, which makes some readers construct it.
fn has_tag(value: &serde_yaml::Value) -> bool {
    use serde_yaml::Value;
    match value {
        Value::Tagged(_) => true,
        Value::Sequence(items) => items.iter().any(has_tag),
        Value::Mapping(entries) => entries
            .iter()
            .any(|(key, value)| has_tag(key) || has_tag(value)),
        _ => false,
    }
}

/// `HEADROOM_CASES=6262` tries as many as when this was first asked; a few are always tried.
#[test]
fn hostile_names_go_through_every_export_unharmed() {
    const BATCH: usize = 100;
    let asked = std::env::var("HEADROOM_CASES").ok();
    let most: usize = asked.and_then(|text| text.parse().ok()).unwrap_or(24);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut dice = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % most.max(1) as u64) as usize
    };
    let folder = folder("hostile");
    let (mut files_written, mut tried) = (0, 0);
    while tried < most {
        let batch = folder.join("batch");
        fs::create_dir_all(&batch).unwrap();
        for number in 0..BATCH.min(most - tried) {
            let target = &targets()[tried % targets().len()];
            let text = hostile(&mut dice);
            let word = text.replace(|c: char| c.is_control() || c.is_whitespace(), "_");
            let mut scenario = expressible(target.id, &word);
            for name in [&mut scenario.model.id, &mut scenario.hardware.gpu] {
                if *name == word {
                    name.clone_from(&text);
                }
            }
            for (target, files) in export::all(&scenario, &estimate()) {
                let Ok(files) = files else { continue };
                let at = batch.join(number.to_string()).join(target.id);
                fs::create_dir_all(&at).unwrap();
                write(&files, &at);
                files_written += files.len();
                for file in &files {
                    let kind = Path::new(file.name).extension();
                    if kind.is_some_and(|kind| kind == "yaml" || kind == "yml") {
                        for part in serde_yaml::Deserializer::from_str(&file.contents) {
                            let value: Result<serde_yaml::Value, _> =
                                serde::Deserialize::deserialize(part);
                            let sound = value.as_ref().is_ok_and(|value| !has_tag(value));
                            assert!(sound, "{} {text:?}: {value:?}", target.id);
                        }
                    }
                }
            }
            tried += 1;
        }
        assert_eq!(run_by_bash(&batch), "");
        assert_eq!(parsed_by_others(&batch), "");
        let made = paths_below(&batch);
        let canary = made.iter().find(|path| path.ends_with("canary"));
        assert_eq!(canary, None);
        fs::remove_dir_all(&batch).unwrap();
    }
    assert!(files_written > 4 * most, "{files_written} files of {most}");
    fs::remove_dir_all(&folder).unwrap();
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

/// The presets that run the five systems, by the target that writes their own files.
const SYSTEMS: &[(&str, &str)] = &[
    ("dreams", "dreams"),
    ("gsa", "gsa-512m"),
    ("rna-3e-ffi", "rna-3e-ffi"),
    ("prs-med", "prs-med"),
    ("peptrm", "peptrm"),
];

/// Changes to a run that give each move something to do.
const VARIATIONS: &[&str] = &[
    "",
    "precision=fp32",
    "precision=fp32 gpu=t4",
    "precision=amp-bf16",
    "precision=bf16",
    "keep_outputs=on",
    "use_cache=on",
    "zero_none=off",
    "ema=on",
    "runtime.eval_batch=64",
    "attn=eager",
    "gpus=2 par=ddp",
    "gpus=2 par=dp",
    "mask=on",
    "mask=on dist=padded-to-max mean=300 p95=900",
    "kernels=liger",
    "loss=liger-linear",
    "loss=library",
    "loss=library precision=bf16",
    "optim=adamw",
    "optim=adamw precision=bf16",
    "lora=on precision=fp32",
    "lora=on precision=bf16 lora_fp32=off",
    "lora=on lora_rank=16 precision=amp-bf16-on-bf16",
    "lora=on lora_dropout=0.1 precision=amp-bf16-on-bf16",
    "lora=on lora_targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj precision=amp-bf16-on-bf16",
    "model=llava-1.5-7b seq=1024",
];

fn set(scenario: &mut Scenario, words: &str) {
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        settings::set(scenario, name, value).unwrap();
    }
}

/// A run that this target can write, or nearly, with one of the variations.
fn varied(target: &str, variation: &str) -> Scenario {
    let mut scenario = Scenario::default();
    if let Some((_, preset)) = SYSTEMS.iter().find(|(id, _)| *id == target) {
        scenario = presets::find(preset).unwrap().scenario();
    } else {
        set(
            &mut scenario,
            "model=llama-3.1-8b precision=bf16 gpu=h100-sxm5 seq=1024",
        );
        let own = match target {
            "swift" => "mask=on",
            "deepspeed" => "precision=amp-bf16",
            "torchtitan" => "precision=amp-bf16 clip=on loss=chunked-checkpoint",
            "verl" => "task=grpo sampler=vllm generations=2 mb=4 clip=on precision=amp-bf16",
            "megatron" => "precision=amp-bf16 optim=adamw-fused",
            "unsloth" => {
                "lora=on precision=amp-bf16-on-bf16 optim=adamw-8bit kernels=fused-norms loss=liger clip=on"
            }
            _ => "",
        };
        set(&mut scenario, own);
    }
    set(&mut scenario, variation);
    scenario
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
fn a_program_runs_the_moves_that_its_files_can_express() {
    /// Programs whose own file is read back.
    const READ: &[&str] = &["trl", "axolotl", "llama-factory", "hf", "torchtune"];
    /// Settings that a file of theirs does not hold: the launch script has the first, rows without padding mean the second.
    const UNREAD: &[&str] = &["runtime.expandable_segments", "data.packing"];
    #[track_caller]
    fn check(ids: &[&str], moves: &str) {
        for id in ids {
            let target = targets().iter().find(|known| known.id == *id).unwrap();
            let mut found: Vec<&str> = Vec::new();
            for (step, variation) in MOVES
                .iter()
                .flat_map(|step| VARIATIONS.iter().map(move |variation| (step, variation)))
            {
                let before = varied(target.id, variation);
                let Some(after) = (step.apply)(&before) else {
                    continue;
                };
                if !target.change(&before, &after).is_expressed() {
                    continue;
                }
                if !found.contains(&step.id) {
                    found.push(step.id);
                }
                // Nothing that the move changed is lost on the way through the file.
                let files = (target.write)(&after, &estimate()).unwrap();
                if READ.contains(&target.id) {
                    let read = read_back(&files).unwrap();
                    for setting in settings::all() {
                        let value = setting.get(&after);
                        let is_said = !UNREAD.contains(&setting.path);
                        if is_said && setting.get(&before) != value {
                            let id = target.id;
                            assert_eq!(setting.get(&read), value, "{id} {} {variation}", step.id);
                        }
                    }
                }
            }
            assert_eq!(found.join(" "), moves, "{}", target.id);
        }
    }
    if !slow() {
        return;
    }
    let always = "drop-outputs no-cache zero-to-none expandable-segments fused-adamw";
    let wider = "amp-bf16 amp-fp16 bf16-base no-adapter-dropout";
    let trained = format!("paged-adamw {wider}");
    check(
        &[
            "plain",
            "slurm",
            "kubernetes",
            "trainjob",
            "skypilot",
            "ray",
        ],
        &format!(
            "{always} bucket-view eval-batch sdpa liger-kernels liger-loss chunked-loss optimizer-in-backward keep-matmuls \
             keep-half checkpoint-half keep-attention checkpointing chunked-head ema-on-host paged-adamw \
             offload-activations offload-optimizer {wider} bf16-adapters adamw-8bit paged-adamw-8bit half-rank freeze-embeddings packing no-dropout bf16 fewer-adapters adafactor lora qlora \
             half-sequence"
        ),
    );
    check(
        &["hf", "accelerate"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing {trained} bf16-adapters adamw-8bit paged-adamw-8bit \
             half-rank packing bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["deepspeed"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing paged-adamw amp-bf16 amp-fp16 bf16-adapters adamw-8bit \
             paged-adamw-8bit half-rank packing adafactor half-sequence"
        ),
    );
    check(
        &["trl"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing chunked-head {trained} adamw-8bit paged-adamw-8bit \
             half-rank packing bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["axolotl"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing paged-adamw bf16-base no-adapter-dropout adamw-8bit \
             paged-adamw-8bit half-rank bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["llama-factory"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing {trained} adamw-8bit paged-adamw-8bit half-rank packing \
             bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["swift"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing {trained} adamw-8bit paged-adamw-8bit half-rank bf16 \
             fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["lightning"],
        &format!(
            "{always} bucket-view sdpa liger-kernels liger-loss chunked-loss keep-matmuls keep-half checkpoint-half \
             keep-attention checkpointing chunked-head {trained} bf16-adapters adamw-8bit paged-adamw-8bit half-rank \
             freeze-embeddings packing no-dropout bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["torchtune"],
        &format!(
            "{always} sdpa chunked-loss optimizer-in-backward checkpointing paged-adamw adamw-8bit paged-adamw-8bit \
             half-rank packing bf16 half-sequence"
        ),
    );
    check(
        &["torchtitan"],
        &format!(
            "{always} sdpa liger-loss keep-half checkpointing chunked-head amp-bf16 packing bf16 half-sequence"
        ),
    );
    check(
        &["megatron"],
        &format!("{always} sdpa checkpointing amp-bf16 amp-fp16 packing half-sequence"),
    );
    check(
        &["unsloth"],
        "drop-outputs no-cache zero-to-none expandable-segments sdpa liger-loss checkpointing bf16-base no-adapter-dropout adamw-8bit \
         half-rank packing fewer-adapters qlora half-sequence",
    );
    check(
        &["verl"],
        "drop-outputs no-cache zero-to-none expandable-segments fused-adamw checkpointing paged-adamw vllm-sleep amp-bf16 bf16-base \
         no-adapter-dropout adamw-8bit paged-adamw-8bit half-rank fewer-adapters lora half-sequence",
    );
    check(
        &["dreams"],
        "drop-outputs no-cache zero-to-none expandable-segments reset-metrics sdpa freeze-encoder fewer-peaks",
    );
    check(
        &["gsa"],
        "no-cache zero-to-none sdpa amp-bf16 amp-fp16 fewer-keys",
    );
    check(
        &["rna-3e-ffi"],
        "drop-outputs no-cache zero-to-none sdpa amp-fp16 no-dropout fewer-edges half-irreps",
    );
    check(
        &["prs-med"],
        "no-cache zero-to-none sdpa checkpointing checkpoint-encoder amp-fp16 no-adapter-dropout half-rank four-bit-base",
    );
    check(
        &["peptrm"],
        "drop-outputs no-cache zero-to-none expandable-segments sdpa checkpointing amp-bf16 amp-fp16 no-dropout \
         fewer-peaks fewer-bins",
    );
}
