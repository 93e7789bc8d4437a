//! Hostile names reach every program as they are, and run nothing.

use super::*;

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
