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
    refuses("", "does this training run fit");
    refuses(
        "estimat",
        "command is `estimat`; expected one of estimate, fit,",
    );
    refuses("estimate", "headroom estimate is ``; expected WHAT\n");
    refuses(
        "estimate gpt2-smal",
        "WHAT is `gpt2-smal`; expected a preset, a model, a file or -; did you mean gpt2-small?\n",
    );
    refuses(
        "estimate gpt2-small --sett mb=1",
        "option is `--sett`; expected a known option; did you mean --set?\n",
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
        "truth no-such-file",
        "FILE is `no-such-file`; expected a readable file (",
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
        "ladder gpt2-small --margin much",
        "--margin is `much`; expected percent from 0 to 95\n",
    );
    refuses(
        "solve gpt2-small --for peaks",
        "--for is `peaks`; expected gpu, gpus, checkpointing,",
    );
    refuses(
        "search gpt2-small --cost love",
        "--cost is `love`; expected free, time or results\n",
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
    prints("--help", "headroom: does this training run fit");
    prints("--version", "headroom 0.");
    let commands = "estimate plan fit ladder moves tiers solve search accumulate gpus time export import link open truth presets \
                    catalog schema";
    for name in commands.split(' ') {
        prints(&format!("{name} --help"), &format!("headroom {name}"));
    }
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
    for (arguments, stdout) in [
        ("presets", "dreams "),
        ("presets --json", "{\n  \"presets\": ["),
        ("schema", "{\n  \"type\": \"object\""),
        ("catalog --json", "{\n  \"gpus\": ["),
        ("catalog stacks", "Axolotl 0.21"),
        ("catalog methods", "adapter    aqlm"),
        ("plan TIGHT", "as it is: needs "),
        ("plan TIGHT --json", "{\n  \"now\": {"),
        (
            "plan TIGHT --keep optim --program plain",
            "as it is: needs ",
        ),
        ("ladder TIGHT --margin 10", "as it is: needs "),
        ("ladder TIGHT --json", "{\n  \"device\": {"),
        ("tiers TIGHT", "safe        up to 70 %: micro-batch "),
        (
            "solve TIGHT --for data.sequence --multiple 64",
            "largest data.sequence ",
        ),
        ("solve TIGHT --for gpu --set mb=2", "smallest GPU "),
        ("time TIGHT", "a step takes "),
        ("accumulate TIGHT --batch 100 --rate 3e-4", ""),
        (
            "search TIGHT --cost free --set mb=4 --json",
            "{\n  \"best\": {",
        ),
    ] {
        prints(
            &arguments.replace("TIGHT", "gpt2-small --set mb=64"),
            stdout,
        );
    }
    check(
        "solve gpt2-small --for layers --set mem=1",
        1,
        "no layers fits; ",
        "",
    );
}
