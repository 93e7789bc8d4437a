//! The GitHub Action's steps, run as a runner runs them, on a repository with a changed configuration; and the pre-commit hook.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use serde_yaml::Value;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const FITS: &str = "version: 1\nmodel: {id: gpt2}\ndata: {micro_batch: 1}\n";
const TOO_LARGE: &str = "version: 1\nmodel: {id: gpt2}\ndata: {micro_batch: 32, sequence: 1024}\n";

#[test]
fn a_pull_request_gets_one_comment_and_the_job_ends_as_it_was_told() {
    let site = Site::start("comment");
    let runner = Runner::new("comment", &site);
    runner.commit(&[("run.yaml", FITS), ("other.yaml", TOO_LARGE)]);
    let base = runner.head();
    runner.commit(&[("run.yaml", TOO_LARGE)]);

    let ended = runner.job(&base, &[("files", "*.yaml"), ("gpu", "rtx-3060")]);
    assert_eq!(ended.code, 1, "{}", ended.said);
    // What the pull request does not change is not its business.
    assert!(!ended.said.contains("other.yaml"), "{}", ended.said);
    assert!(
        ended.said.contains("::error::a run does not fit"),
        "{}",
        ended.said
    );
    let comments = site.comments();
    assert_eq!(comments.len(), 1);
    for part in [
        "`run.yaml` — **does not fit**",
        "missing",
        "assuming",
        "#v=1",
        "gpu=rtx-3060",
    ] {
        assert!(comments[0].contains(part), "{part}: {}", comments[0]);
    }

    let ended = runner.job(&base, &[("files", "*.yaml"), ("gpu", "h100-sxm5-80gb")]);
    assert_eq!(ended.code, 0, "{}", ended.said);
    let comments = site.comments();
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].contains("**fits**"), "{}", comments[0]);
}

#[test]
fn failures_can_be_warnings() {
    let site = Site::start("warn");
    let runner = Runner::new("warn", &site);
    runner.commit(&[("run.yaml", TOO_LARGE), ("note.yaml", "a: 1\n")]);
    let base = runner.head();
    for (files, mode, code) in [
        ("run.yaml", "warn", 0),
        ("run.yaml", "fail-if-known", 1),
        ("note.yaml", "fail-if-known", 0),
        ("note.yaml", "fail", 2),
    ] {
        let inputs = [
            ("files", files),
            ("gpu", "rtx-3060"),
            ("on-failure", mode),
            ("changed", "false"),
        ];
        let ended = runner.job(&base, &inputs);
        assert_eq!(ended.code, code, "{files} {mode}: {}", ended.said);
    }
    // Nothing was changed.
    let ended = runner.job(&base, &[("files", "run.yaml"), ("gpu", "rtx-3060")]);
    assert!(
        ended.code == 0 && ended.said.contains("no run changed"),
        "{}",
        ended.said
    );
}

#[test]
fn a_program_with_another_hash_is_not_run() {
    let site = Site::start("hash");
    let runner = Runner::new("hash", &site);
    runner.commit(&[("run.yaml", FITS)]);
    let inputs = [("files", "run.yaml"), ("sha256", "00")];
    let ended = runner.job(&runner.head(), &inputs);
    assert_eq!(ended.code, 1);
    assert!(ended.said.contains("expected 00"), "{}", ended.said);
    assert_eq!(site.comments(), Vec::<String>::new());
}

#[test]
fn the_hook_checks_what_describes_a_run_and_leaves_the_rest() {
    let hooks: Value =
        serde_yaml::from_str(&headroom_testing::text(".pre-commit-hooks.yaml")).unwrap();
    let folder = folder("hook");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let (good, bad) = (write("good.yaml", FITS), write("bad.yaml", TOO_LARGE));
    let other = write("compose.yaml", "services: {db: {image: postgres}}\n");
    for hook in hooks.as_sequence().unwrap() {
        let entry = hook["entry"].as_str().unwrap();
        let arguments = entry.strip_prefix("headroom ").unwrap();
        let run = |files: &[&PathBuf]| {
            let program = Command::new(env!("CARGO_BIN_EXE_headroom"))
                .args(arguments.split(' '))
                .args(["--gpu", "rtx-3060"])
                .args(files)
                .output()
                .unwrap();
            program.status.code()
        };
        assert_eq!(run(&[&good, &other]), Some(0));
        assert_eq!(run(&[&good, &bad]), Some(1));
    }
    fs::remove_dir_all(folder).unwrap();
}

/// How a job ended, and what its steps printed.
struct Ended {
    code: i32,
    said: String,
}

/// A clone of a repository, and what a runner gives to an action.
struct Runner {
    folder: PathBuf,
    address: String,
}

impl Runner {
    fn new(name: &str, site: &Site) -> Self {
        let folder = folder(name);
        let runner = Self {
            folder,
            address: site.address.clone(),
        };
        runner.git(&["init", "--quiet"]);
        runner
    }

    fn git(&self, words: &[&str]) -> Output {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let done = Command::new("git")
            .args(identity)
            .args(words)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        done
    }

    fn commit(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(self.folder.join(name), text).unwrap();
            self.git(&["add", name]);
        }
        self.git(&["commit", "--quiet", "-m", "files"]);
    }

    fn head(&self) -> String {
        let done = self.git(&["rev-parse", "HEAD"]);
        String::from_utf8(done.stdout).unwrap().trim().into()
    }

    /// Runs the action's steps until one fails.
    fn job(&self, base: &str, inputs: &[(&str, &str)]) -> Ended {
        let action: Value = serde_yaml::from_str(&headroom_testing::text("action.yml")).unwrap();
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for (name, input) in action["inputs"].as_mapping().unwrap() {
            let name = name.as_str().unwrap();
            let value = inputs.iter().find(|(given, _)| *given == name);
            let default = input["default"].as_str().unwrap_or_default();
            let value = value.map_or(default, |(_, value)| value);
            known.insert(format!("inputs.{name}"), value.into());
        }
        for (name, value) in [
            ("github.token", "secret"),
            ("github.server_url", &self.address),
            ("github.action_repository", "acme/headroom"),
            ("github.event.pull_request.base.sha", base),
            ("github.event.pull_request.number", "7"),
        ] {
            known.insert(name.into(), value.into());
        }
        let temporary = self.folder.join(".git/runner");
        fs::create_dir_all(&temporary).unwrap();
        let mut said = String::new();
        for step in action["runs"]["steps"].as_sequence().unwrap() {
            let output = temporary.join("output");
            fs::write(&output, "").unwrap();
            let done = self.step(step, &known, &temporary, &output);
            said += &String::from_utf8_lossy(&done.stdout);
            said += &String::from_utf8_lossy(&done.stderr);
            let id = step["id"].as_str().unwrap_or_default();
            for line in fs::read_to_string(&output).unwrap().lines() {
                let (name, value) = line.split_once('=').unwrap();
                known.insert(format!("steps.{id}.outputs.{name}"), value.into());
            }
            let code = done.status.code().unwrap();
            if code != 0 {
                return Ended { code, said };
            }
        }
        Ended { code: 0, said }
    }

    fn step(
        &self,
        step: &Value,
        known: &BTreeMap<String, String>,
        temporary: &Path,
        output: &Path,
    ) -> Output {
        assert_eq!(step["shell"].as_str(), Some("bash"));
        let script = step["run"].as_str().unwrap();
        // An expression in a script would run what a pull request says.
        assert!(!script.contains("${{"), "{script}");
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        for (name, value) in step["env"].as_mapping().unwrap() {
            let value = filled(value.as_str().unwrap(), known);
            command.env(name.as_str().unwrap(), value);
        }
        command
            .env("RUNNER_TEMP", temporary)
            .env("GITHUB_OUTPUT", output)
            .env("GITHUB_STEP_SUMMARY", temporary.join("summary"))
            .env("GITHUB_ACTION_PATH", headroom_testing::root())
            .env("GITHUB_API_URL", format!("{}/api", self.address))
            .env("GITHUB_REPOSITORY", "acme/runs")
            .current_dir(&self.folder)
            .output()
            .unwrap()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A text with its `${{ … }}` replaced by what is known, or by nothing.
fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut parts = text.split("${{");
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (expression, rest) = part.split_once("}}").unwrap();
        filled += known.get(expression.trim()).map_or("", String::as_str);
        filled += rest;
    }
    filled
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("headroom-ci-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// GitHub as the action knows it: a release's files, and a pull request's comments.
struct Site {
    address: String,
    comments: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn start(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let comments = Arc::new(Mutex::new(Vec::new()));
        let (archive, sums) = release(name);
        let kept = Arc::clone(&comments);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &archive, &sums, &kept);
            }
        });
        Self { address, comments }
    }

    fn comments(&self) -> Vec<String> {
        self.comments.lock().unwrap().clone()
    }
}

/// An archive with a program, and its hash in the form of a release.
fn release(name: &str) -> (Vec<u8>, String) {
    let folder = folder(&format!("{name}-release"));
    let program = format!(
        "#!/bin/sh\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_headroom")
    );
    fs::create_dir_all(folder.join("headroom")).unwrap();
    fs::write(folder.join("headroom/headroom"), program).unwrap();
    let name = format!(
        "headroom-{VERSION}-{}-unknown-linux-musl.tar.gz",
        std::env::consts::ARCH
    );
    let script = format!("tar -czf {name} headroom && sha256sum {name}");
    let done = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&folder)
        .output()
        .unwrap();
    let archive = fs::read(folder.join(name)).unwrap();
    fs::remove_dir_all(folder).unwrap();
    (archive, String::from_utf8(done.stdout).unwrap())
}

fn answer(mut stream: TcpStream, archive: &[u8], sums: &str, comments: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut request = String::new();
    reader.read_line(&mut request).unwrap();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let text = || -> String {
        let body: Value = serde_yaml::from_slice(&body).unwrap();
        body["body"].as_str().unwrap().into()
    };
    let mut comments = comments.lock().unwrap();
    let words: Vec<&str> = request.split(' ').collect();
    let sent: Vec<u8> = match (words[0], words[1]) {
        ("GET", path) if path.ends_with(".tar.gz") => archive.into(),
        ("GET", path) if path.ends_with("/SHA256SUMS") => sums.into(),
        ("GET", "/api/repos/acme/runs/issues/7/comments?per_page=100&page=1") => {
            let each = comments.iter().enumerate();
            let each = each.map(|(id, body)| serde_json::json!({"id": id, "body": body}));
            serde_json::Value::Array(each.collect()).to_string().into()
        }
        ("POST", "/api/repos/acme/runs/issues/7/comments") => {
            comments.push(text());
            b"{}".to_vec()
        }
        ("PATCH", "/api/repos/acme/runs/issues/comments/0") => {
            comments[0] = text();
            b"{}".to_vec()
        }
        other => panic!("{other:?}"),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        sent.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&sent).unwrap();
}
