//! The command line's contract: what it prints, and how it ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::process::{Command, Output, Stdio};

fn headroom(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headroom"))
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs it and compares the exit code and the two streams' beginnings.
#[track_caller]
fn check(arguments: &str, code: i32, stdout: &str, stderr: &str) {
    let output = headroom(arguments);
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let found = output.status.code();
    assert_eq!(found, Some(code), "{arguments}\n{out}\n{err}");
    assert!(out.starts_with(stdout), "{arguments} printed\n{out}");
    assert!(err.starts_with(stderr), "{arguments} said\n{err}");
}

#[track_caller]
fn prints(arguments: &str, stdout: &str) {
    check(arguments, 0, stdout, "");
}

#[track_caller]
fn refuses(arguments: &str, stderr: &str) {
    check(arguments, 2, "", &format!("headroom: {stderr}"));
}

#[test]
fn bad_input_ends_with_2_and_names_the_field_the_value_and_what_was_expected() {
    check("", 2, "", "Does this training run fit");
    for words in ["estimat", "help estimat", "estimat --help"] {
        refuses(words, "unknown command `estimat`; did you mean estimate?\n");
    }
    refuses(
        "--verison",
        "unknown option `--verison`; did you mean --version?\n",
    );
    refuses(
        "estimate",
        "estimate needs WHAT, the run: a preset, a model's name,",
    );
    refuses(
        "truth one two",
        "`two` is one word too many: `headroom truth FILE`; `headroom help truth` explains it\n",
    );
    refuses(
        "estimate gpt2-small --set",
        "--set needs a value: --set path=value\n",
    );
    refuses(
        "estimate gpt2-small --batchsize 4",
        "unknown option `--batchsize`; did you mean --batch-size?\n",
    );
    refuses(
        "estimate gpt2-small --gpu 49090",
        "hardware.gpu is `49090`; expected a known GPU; did you mean rtx-3090,",
    );
    refuses(
        "estimate gpt2-smal",
        "no preset, model or file has the name `gpt2-smal`; did you mean gpt2-small?\n",
    );
    refuses(
        "estimate --model nope",
        "no preset, model or file has the name `nope`; `headroom presets` and `headroom catalog models` list them\n",
    );
    refuses(
        "estimate gpt2-small --sett mb=1",
        "unknown option `--sett`; did you mean --set?\n",
    );
    refuses(
        "estimate gpt2-small --set mb=0 --set data.seq=9 --set x",
        "data.micro_batch is `0`; expected a whole number from 1 to 1000000\n\
         headroom: data.seq is `9`; expected a known field; did you mean data.sequence?\n\
         headroom: --set is `x`; expected path=value\n",
    );
    refuses(
        "export gpt2-small --target fax",
        "--target is `fax`; expected one of plain, hf, trl, accelerate, deepspeed,",
    );
    refuses(
        "export gpt2-small --target trll",
        "--target is `trll`; expected one of plain, hf, trl,",
    );
    refuses("export gpt2-small", "--target is needed: one of plain, hf,");
    refuses(
        "truth no-such-file",
        "cannot read `no-such-file`: no such file\n",
    );
    refuses(
        "estimate nowhere.yaml",
        "no preset, model or file has the name `nowhere.yaml`;",
    );
    refuses(
        "estimate full fine-tune of a 7B",
        "model? `7B` is a size of many models, such as qwen",
    );
    refuses(
        "open gpt2",
        "LINK is `gpt2`; expected a link, as `headroom link`",
    );
    refuses(
        "doctor",
        "nothing to diagnose: pipe the failed run's log into it",
    );
    refuses(
        "estimate gpt2-small --precision bf61",
        "training.precision is `bf61`; expected one of fp32, amp-bf16, amp-fp16, bf16, fp16, amp-bf16-on-bf16, \
         amp-fp16-on-fp16, fp64; did you mean bf16?\n",
    );
    refuses(
        "truth Cargo.toml --metric x",
        "--metric is `x`; expected allocated, reserved,",
    );
    refuses(
        "plan gpt2-small --allow anything",
        "--allow is `anything`; expected one of identical, rounding, same-batch, changes\n",
    );
    refuses(
        "plan gpt2-small --keep colour",
        "colour is ``; expected a known field",
    );
    refuses(
        "plan gpt2-small --margin much",
        "--margin is `much`; expected percent from 0 to 95\n",
    );
    refuses(
        "solve gpt2-small --for peaks",
        "--for is `peaks`; expected gpu, gpus, checkpointing,",
    );
    refuses(
        "accumulate gpt2-small --rule cubic",
        "--rule is `cubic`; expected linear, sqrt or none\n",
    );
}

#[test]
fn a_model_is_a_scenario_and_its_software_brings_defaults() {
    prints(
        "link llama-3.2-1b --set mb=2",
        "#v=1&data=1&model=llama-3.2-1b&mb=2\n",
    );
    prints(
        "link bert-base-uncased",
        "#v=1&data=1&model=bert-base-uncased&seq=512\n",
    );
    // What is set by hand stays, wherever it stands.
    prints(
        "link llama-3.2-1b --set ckpt=none --set trainer=trl",
        "#v=1&data=1&model=llama-3.2-1b&seq=1024&precision=amp-bf16&optim=adamw-fused&attn=sdpa&ckpt=none&\
         loss=chunked-checkpoint&clip=on&zero_none=on&trainer=trl\n",
    );
}

#[test]
fn help_is_there_for_every_command() {
    prints("--help", "Does this training run fit");
    prints("help", "Does this training run fit");
    prints("--version", "headroom 0.");
    let commands = "estimate plan fit moves tiers solve layout accumulate gpus time export import check link open truth \
                    calibrate doctor probe presets catalog schema completions man";
    for name in commands.split(' ') {
        let explained = headroom(&format!("help {name}"));
        let help = String::from_utf8(explained.stdout).unwrap();
        assert!(help.contains(&format!("Usage: headroom {name}")), "{help}");
        prints(&format!("{name} --help"), &help);
        prints(&format!("man {name}"), ".ie");
    }
}

#[test]
fn common_settings_are_options_that_help_lists() {
    let help = String::from_utf8(headroom("estimate --help").stdout).unwrap();
    for flag in
        "model gpu gpus batch seq lora lora-rank precision optimizer strategy trainer".split(' ')
    {
        assert!(help.contains(&format!("--{flag}")), "{flag}: {help}");
    }
    let link = "#v=1&data=1&gpu=h100-sxm5-80gb&gpus=2&model=llama-3.2-1b&mb=2&seq=2048\n";
    for options in [
        "llama-3.2-1b --gpu h100-sxm5-80gb --gpus 2 --batch 2 --seq 2048",
        "--model llama-3.2-1b --gpu=h100-sxm5-80gb --num-gpus 2 --batch-size 2 --max-seq-length 2048",
        "llama-3.2-1b --seq 1 --hardware.gpu h100-sxm5-80gb --set gpus=2 --set batch_size=2 --seq_len 2048",
        "--set gpus=2 --set data.micro_batch=2 --seq 2048 --gpu h100-sxm5-80gb -- llama-3.2-1b",
    ] {
        prints(&format!("link {options}"), link);
    }
    let adapters = |options: &str| headroom(&format!("link llama-3.2-1b {options}")).stdout;
    let expected = adapters("--set lora=on --set lora_rank=8");
    assert_eq!(adapters("--lora --lora-rank 8"), expected);
    assert_eq!(adapters("--lora=on --rank 8"), expected);
    assert_eq!(adapters("--lora=off"), adapters(""));
    // Their own options of these names come first.
    prints("layout gpt2-small --gpus 2", "");
    prints("accumulate gpt2-small --batch 64 --micro-batch 4", "");
}

#[test]
fn what_is_wrong_is_json_too() {
    check(
        "estimate gpt2-small --set mb=0 --json",
        2,
        "{\n  \"errors\": [\n    \"data.micro_batch is `0`; expected",
        "headroom: data.micro_batch is `0`",
    );
    check(
        "estimate gpt2-small --nothing --json",
        2,
        "{\n  \"errors\": [",
        "headroom: unknown option `--nothing`",
    );
}

#[test]
fn a_pipe_gets_neither_colour_nor_drawing() {
    for words in [
        "estimate gpt2-small",
        "help",
        "estimate --help",
        "fit gpt2-small",
    ] {
        let output = headroom(words).stdout;
        assert!(!output.contains(&0x1b), "{words}");
    }
}

#[test]
fn completions_know_commands_and_common_settings() {
    for (shell, start) in [
        ("bash", "_headroom() {"),
        ("zsh", "#compdef headroom"),
        ("fish", "# Print an optspec"),
        ("powershell", "\nusing namespace"),
    ] {
        let words = format!("completions {shell}");
        prints(&words, start);
        let script = String::from_utf8(headroom(&words).stdout).unwrap();
        for word in ["estimate", "doctor", "lora-rank", "seq"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(script.len() < 400_000, "{shell}: {}", script.len());
    }
    refuses(
        "completions csh",
        "SHELL is `csh`; expected one of bash, zsh, fish, powershell",
    );
    // In a shell: a word, an option of the command.
    let script = "source <(\"$0\" completions bash); COMP_WORDS=(headroom \"$1\" \"$2\"); COMP_CWORD=$3; \
                  _headroom headroom \"${COMP_WORDS[$3]}\" \"$1\"; echo \"${COMPREPLY[@]}\"";
    for (first, second, at, expected) in [
        ("estim", "", "1", "estimate"),
        ("estimate", "--lora-r", "2", "--lora-rank"),
    ] {
        let shell = Command::new("bash")
            .args([
                "-c",
                script,
                env!("CARGO_BIN_EXE_headroom"),
                first,
                second,
                at,
            ])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(shell.stdout).unwrap().trim(), expected);
    }
}

#[test]
fn an_export_that_is_of_no_use_says_so() {
    check(
        "export llama-3.1-8b --target plain --gpu 4090 --precision fp32",
        0,
        "==> ",
        "headroom: warning: this run needs ",
    );
    let folder = std::env::temp_dir().join(format!("headroom-none-{}", std::process::id()));
    // No program evaluates nothing but this.
    let words = format!(
        "export gpt2 --objective generation --target all --out {}",
        folder.display()
    );
    check(&words, 1, "", "headroom: ");
    assert!(!folder.exists());
}

#[test]
fn nothing_from_a_file_drives_the_terminal() {
    let folder = std::env::temp_dir().join(format!("headroom-raw-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.yaml");
    let text = "model_name_or_path: gpt2\nper_device_train_batch_size: 1\noptim: adamw_torch\n\
                \"\\e]0;gone\\a\\u202e key\": 1\n\"two\\nheadroom: fits\": 2\n";
    std::fs::write(&file, text).unwrap();
    for command in ["estimate", "import", "check"] {
        let output = headroom(&format!("{command} {}", file.display()));
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8(all).unwrap();
        assert!(all.contains("gone"), "{command}: {all}");
        assert!(
            !all.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{command}: {all}"
        );
        assert!(!all.contains("\nheadroom: fits"), "{command}: {all}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_of_unknown_keys_is_answered_in_a_page() {
    let folder = std::env::temp_dir().join(format!("headroom-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.yaml");
    let keys = (0..20_000).map(|key| format!("key_{key}: 1\n"));
    let start = "model_name_or_path: gpt2\nper_device_train_batch_size: 1\noptim: adamw_torch\n";
    std::fs::write(&file, start.to_string() + &keys.collect::<String>()).unwrap();
    for command in ["estimate", "check", "import"] {
        let output = headroom(&format!("{command} {}", file.display()));
        let all = [output.stdout, output.stderr].concat();
        assert!(all.len() < 20_000, "{command}: {}", all.len());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(unix)]
#[test]
fn an_export_does_not_write_through_links() {
    let folder = std::env::temp_dir().join(format!("headroom-links-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kept = folder.join("kept");
    std::fs::write(&kept, "mine").unwrap();
    for name in ["train.py", "all.zip"] {
        std::os::unix::fs::symlink(&kept, folder.join(name)).unwrap();
    }
    let folder_text = folder.display();
    for (words, option) in [
        (
            format!("export gpt2 --target plain --out {folder_text}"),
            "--out",
        ),
        (format!("export gpt2 --zip {folder_text}/all.zip"), "--zip"),
    ] {
        let output = headroom(&words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains(option) && said.contains("is a symbolic link"),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(2));
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "mine");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_probe_log_becomes_a_record_that_is_scored() {
    let folder = std::env::temp_dir().join(format!("headroom-record-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (log, record) = (folder.join("probe.jsonl"), folder.join("record.jsonl"));
    let step = |at: i64, peak: u64| {
        format!(
            "{{\"step\": {at}, \"size\": 1, \"phase\": \"forward\", \"peak_allocated\": {peak}, \"peak_reserved\": 9000000000, \
             \"allocated\": 1900000000, \"phase_peaks\": {{\"forward\": 7, \"backward\": {peak}}}}}\n"
        )
    };
    let start = "{\"headroom_probe\": 1, \"step\": -1, \"torch\": \"2.9.0\", \"gpu\": \"RTX 4090\", \"outside\": 5, \
                 \"peak_allocated\": 0, \"cwd\": \"/home/someone\"}\n";
    let lines = [
        start.into(),
        step(0, 9_999_999_999),
        step(1, 8_000_000_000),
        step(2, 8_000_000_001),
    ];
    std::fs::write(&log, lines.concat()).unwrap();
    let words = format!("probe --record {} --scenario gpt2 --batch 4", log.display());
    let printed = headroom(&words).stdout;
    let text = String::from_utf8(printed.clone()).unwrap();
    for part in [
        "\"peak_allocated\":8000000001",
        "\"steps\":2",
        "\"torch\":\"2.9.0\"",
        "\"link\":\"#v=1&",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("someone"), "{text}");
    std::fs::write(&record, printed).unwrap();
    let scored = headroom(&format!("truth {} --json", record.display()));
    let scored: serde_json::Value = serde_json::from_slice(&scored.stdout).unwrap();
    let estimate = headroom("estimate gpt2 --batch 4 --json");
    let estimate: serde_json::Value = serde_json::from_slice(&estimate.stdout).unwrap();
    assert_eq!(scored["rows"][0]["true"], 8_000_000_001_u64);
    assert_eq!(
        scored["rows"][0]["predicted"],
        estimate["allocated"]["expected"]
    );
    refuses(
        &format!("probe --record {}", log.display()),
        "--scenario is needed: the run that was measured",
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn links_and_files_are_two_forms_of_one_scenario() {
    prints("link gpt2-small", "#v=1&data=1\n");
    prints(
        "link gpt2-small --set mb=4 --set lora=on",
        "#v=1&data=1&mb=4&precision=amp-bf16-on-bf16&lora=on\n",
    );
    let json = "{\n  \"link\": \"#v=1&data=1&mb=4\"\n}\n";
    prints("link gpt2-small --set=mb=4 --json", json);
    let folder = std::env::temp_dir().join(format!("headroom-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("scenario.yaml");
    let path = file.to_str().unwrap();
    let link = "#v=1&data=1&gpus=2&mb=3&lora=on&lora_rank=4&freeze=wte";
    for extra in ["", "--json"] {
        let opened = headroom(&format!("open {link} {extra}"));
        assert_eq!(opened.status.code(), Some(0));
        std::fs::write(&file, &opened.stdout).unwrap();
        prints(&format!("link {path}"), &format!("{link}\n"));
        let imported = headroom(&format!("import {path} {extra}"));
        assert_eq!(imported.stdout, opened.stdout);
    }
    check(
        "open #v=1&data=0&mb=3&colour=red",
        0,
        "version: 1\n",
        "headroom: colour is `red`; expected a known field; `headroom schema` lists them\n\
         headroom: the link was made with data version 0, this is 1: numbers may differ\n",
    );
    std::fs::write(&file, "data: {micro_batch: 0, sequenze: 3}\nmodel: [").unwrap();
    refuses(
        &format!("import {path}"),
        "not readable as YAML, JSON or TOML: ",
    );
    std::fs::write(&file, "data: {micro_batch: 0, sequenze: 3}\n").unwrap();
    refuses(
        &format!("estimate {path}"),
        "data.sequenze is `3`; expected a known field; did you mean data.sequence?\n\
         headroom: data.micro_batch is `0`; expected a whole number from 1 to 1000000\n",
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_list_and_every_question_is_answered() {
    let assumed = "assuming 1024 tokens, bf16 autocast over fp32 weights, AdamW, no checkpointing (preset gpt2-small)\n";
    for (arguments, stdout) in [
        ("presets", "dreams "),
        ("presets --json", "{\n  \"presets\": ["),
        ("schema", "{\n  \"type\": \"object\""),
        ("catalog --json", "{\n  \"gpus\": ["),
        ("catalog stacks", "Axolotl 0.21"),
        ("catalog methods", "adapter    aqlm"),
        ("plan TIGHT", "ASSUMEDas it is: needs "),
        ("plan TIGHT --json", "{\n  \"now\": {"),
        (
            "plan TIGHT --keep optim --program plain",
            "ASSUMEDas it is: needs ",
        ),
        ("plan TIGHT --margin 10", "ASSUMEDas it is: needs "),
        (
            "tiers TIGHT",
            "ASSUMEDsafe to maximum, up to 98 %: micro-batch ",
        ),
        (
            "solve TIGHT --for data.sequence --multiple 64",
            "ASSUMEDlargest data.sequence ",
        ),
        ("solve TIGHT --for gpu --set mb=2", "ASSUMEDsmallest GPU "),
        ("time TIGHT", "ASSUMEDa step takes "),
        ("accumulate TIGHT --batch 100 --rate 3e-4", ""),
    ] {
        prints(
            &arguments.replace("TIGHT", "gpt2-small --set mb=64"),
            &stdout.replace("ASSUMED", assumed),
        );
    }
    check(
        "solve gpt2-small --for layers --set mem=1",
        1,
        "assuming batch 8 × 1024 tokens, bf16 autocast over fp32 weights, AdamW, no checkpointing (preset gpt2-small)\n\
         no layers fits; ",
        "",
    );
}

#[test]
fn the_doctor_offers_plans_for_the_run_that_failed_unless_it_fits() {
    let name = format!("headroom-doctor-{}.txt", std::process::id());
    let file = std::env::temp_dir().join(name);
    let text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 12.27 GiB. GPU 0 has a total capacity of \
                23.51 GiB of which 11.20 GiB is free.";
    std::fs::write(&file, text).unwrap();
    let asked = |scenario: &str| {
        let output = headroom(&format!("doctor {} --scenario {scenario}", file.display()));
        String::from_utf8(output.stdout).unwrap()
    };
    let failing = asked("#v=1&data=1&mb=64");
    assert!(
        failing.contains("\nwhat makes this run fit:\n") && failing.contains("fewest changes: "),
        "{failing}"
    );
    let fitting = asked("#v=1&data=1&mb=1");
    assert!(!fitting.contains("what makes this run fit"), "{fitting}");
    std::fs::remove_file(&file).unwrap();
}
