//! The command line's contract: what it prints, and how it ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::process::{Command, Output, Stdio};

fn headroom(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headroom"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs it and compares the exit code and the two streams' beginnings.
#[track_caller]
fn check(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let output = headroom(arguments);
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{out}\n{err}"
    );
    assert!(out.starts_with(stdout), "{arguments:?} printed\n{out}");
    assert!(err.starts_with(stderr), "{arguments:?} said\n{err}");
}

#[test]
fn bad_input_ends_with_2_and_names_the_field_the_value_and_what_was_expected() {
    check(&[], 2, "", "headroom: does this training run fit");
    check(
        &["estimat"],
        2,
        "",
        "headroom: command is `estimat`; expected one of estimate, fit, ladder, moves,",
    );
    check(
        &["estimate"],
        2,
        "",
        "headroom: headroom estimate is ``; expected WHAT\n",
    );
    check(
        &["estimate", "gpt2-smal"],
        2,
        "",
        "headroom: WHAT is `gpt2-smal`; expected a preset, a model, a file or -; did you mean gpt2-small?\n",
    );
    check(
        &["estimate", "gpt2-small", "--sett", "mb=1"],
        2,
        "",
        "headroom: option is `--sett`; expected a known option; did you mean --set?\n",
    );
    check(
        &[
            "estimate",
            "gpt2-small",
            "--set",
            "mb=0",
            "--set",
            "data.seq=9",
            "--set",
            "x",
        ],
        2,
        "",
        "headroom: data.micro_batch is `0`; expected a whole number from 1 to 1000000\n\
         headroom: data.seq is `9`; expected a known field; did you mean data.sequence?\n\
         headroom: --set is `x`; expected path=value\n",
    );
    check(
        &["export", "gpt2-small", "--target", "fax"],
        2,
        "",
        "headroom: --target is `fax`; expected one of plain, hf, trl, accelerate, deepspeed,",
    );
    check(
        &["truth", "no-such-file"],
        2,
        "",
        "headroom: FILE is `no-such-file`; expected a readable file (",
    );
    check(
        &["truth", "Cargo.toml", "--metric", "x"],
        2,
        "",
        "headroom: --metric is `x`; expected allocated, reserved, expandable, forward, forward-peak, backward-peak, optimizer-peak, static or pinned\n",
    );
}

#[test]
fn a_model_is_a_scenario_and_its_software_brings_defaults() {
    check(
        &["link", "llama-3.2-1b", "--set", "mb=2"],
        0,
        "#v=1&data=1&model=llama-3.2-1b&mb=2\n",
        "",
    );
    check(
        &["link", "bert-base-uncased"],
        0,
        "#v=1&data=1&model=bert-base-uncased&seq=512\n",
        "",
    );
    // What is set by hand stays, wherever it stands.
    check(
        &[
            "link",
            "llama-3.2-1b",
            "--set",
            "ckpt=none",
            "--set",
            "trainer=trl",
        ],
        0,
        "#v=1&data=1&model=llama-3.2-1b&seq=1024&precision=amp-bf16&optim=adamw-fused&attn=sdpa&ckpt=none&\
         loss=chunked-checkpoint&clip=on&zero_none=on&trainer=trl\n",
        "",
    );
}

#[test]
fn help_is_there_for_every_command() {
    check(&["--help"], 0, "headroom: does this training run fit", "");
    check(&["--version"], 0, "headroom 0.", "");
    for name in [
        "estimate",
        "fit",
        "ladder",
        "moves",
        "tiers",
        "solve",
        "search",
        "accumulate",
        "gpus",
        "time",
        "export",
        "import",
        "link",
        "open",
        "truth",
        "presets",
        "catalog",
        "schema",
    ] {
        check(&[name, "--help"], 0, &format!("headroom {name}"), "");
    }
}

#[test]
fn links_and_files_are_two_forms_of_one_scenario() {
    check(&["link", "gpt2-small"], 0, "#v=1&data=1\n", "");
    check(
        &["link", "gpt2-small", "--set", "mb=4", "--set", "lora=on"],
        0,
        "#v=1&data=1&mb=4&precision=amp-bf16-on-bf16&lora=on\n",
        "",
    );
    check(
        &["link", "gpt2-small", "--set=mb=4", "--json"],
        0,
        "{\n  \"link\": \"#v=1&data=1&mb=4\"\n}\n",
        "",
    );
    let folder = std::env::temp_dir().join(format!("headroom-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("scenario.yaml");
    let path = file.to_str().unwrap();
    let link = "#v=1&data=1&gpus=2&mb=3&lora=on&lora_rank=4&freeze=wte";
    for extra in [&[][..], &["--json"]] {
        let opened = headroom(&[&["open", link], extra].concat());
        assert_eq!(opened.status.code(), Some(0));
        std::fs::write(&file, &opened.stdout).unwrap();
        check(&["link", path], 0, &format!("{link}\n"), "");
        let imported = headroom(&[&["import", path], extra].concat());
        assert_eq!(imported.stdout, opened.stdout);
    }
    check(
        &["open", "#v=1&data=0&mb=3&colour=red"],
        0,
        "version: 1\n",
        "headroom: colour is `red`; expected a known field; `headroom schema` lists them\n\
         headroom: the link was made with data 0, this is 1: numbers may differ\n",
    );
    std::fs::write(&file, "data: {micro_batch: 0, sequenze: 3}\nmodel: [").unwrap();
    check(
        &["import", path],
        2,
        "",
        "headroom: not readable as YAML, JSON or TOML: ",
    );
    std::fs::write(&file, "data: {micro_batch: 0, sequenze: 3}\n").unwrap();
    check(
        &["estimate", path],
        2,
        "",
        "headroom: data.sequenze is `3`; expected a known field; did you mean data.sequence?\n\
         headroom: data.micro_batch is `0`; expected a whole number from 1 to 1000000\n",
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn lists_are_for_people_and_for_programs() {
    check(&["presets"], 0, "dreams ", "");
    check(&["presets", "--json"], 0, "{\n  \"presets\": [", "");
    check(&["schema"], 0, "{\n  \"type\": \"object\"", "");
    check(&["catalog", "--json"], 0, "{\n  \"gpus\": [", "");
    check(&["catalog", "stacks"], 0, "Axolotl 0.21", "");
    check(&["catalog", "methods"], 0, "adapter    aqlm", "");
}

#[test]
fn what_to_change_is_said_in_words_and_as_json() {
    let tight = ["gpt2-small", "--set", "mb=64"];
    let with = |command: &str, more: &[&str]| -> Vec<String> {
        let all = [&[command][..], &tight, more].concat();
        all.into_iter().map(String::from).collect()
    };
    let runs = |command: &str, more: &[&str], code: i32, stdout: &str| {
        let arguments = with(command, more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        check(&arguments, code, stdout, "");
    };
    runs("ladder", &["--margin", "10"], 0, "as it is: needs ");
    runs("ladder", &["--json"], 0, "{\n  \"device\": {");
    runs("tiers", &[], 0, "safe        up to 70 %: micro-batch ");
    runs(
        "solve",
        &["--for", "data.sequence", "--multiple", "64"],
        0,
        "largest data.sequence ",
    );
    runs(
        "solve",
        &["--for", "layers", "--set", "mem=1"],
        1,
        "no layers fits; ",
    );
    runs(
        "solve",
        &["--for", "gpu", "--set", "mb=2"],
        0,
        "smallest GPU ",
    );
    runs("time", &[], 0, "a step takes ");
    runs("accumulate", &["--batch", "100", "--rate", "3e-4"], 0, "");
    runs(
        "search",
        &["--cost", "free", "--set", "mb=4", "--json"],
        0,
        "{\n  \"best\": {",
    );
    let refused = |arguments: &[&str], stderr: &str| check(arguments, 2, "", stderr);
    refused(
        &["ladder", "gpt2-small", "--margin", "much"],
        "headroom: --margin is `much`; expected percent from 0 to 95\n",
    );
    refused(
        &["solve", "gpt2-small", "--for", "peaks"],
        "headroom: --for is `peaks`; expected gpu, gpus, checkpointing, a whole number of the scenario, such as \
         data.sequence, or a dimension of the model: layers, hidden,",
    );
    refused(
        &["search", "gpt2-small", "--cost", "love"],
        "headroom: --cost is `love`; expected free, time or results\n",
    );
    refused(
        &["accumulate", "gpt2-small", "--rule", "cubic"],
        "headroom: --rule is `cubic`; expected linear, sqrt or none\n",
    );
}
