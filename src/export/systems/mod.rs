//! The five systems' own forms: commands and files as their repositories take them, what their knobs really do, and
//! the changes to their code that connect those that do nothing.

mod dreams;
mod gsa;
mod peptrm;
mod prs_med;
mod rna;

use super::common::{exports, file, script};
use super::header::header;
use super::{File, Target, shell};
use crate::catalog;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::guide::{self, Wiring};
use crate::order::Map;
use crate::scenario::{Problem, Scenario, presets, settings};

pub(super) const DREAMS: Target = dreams::TARGET;
pub(super) const GSA: Target = gsa::TARGET;
pub(super) const PEPTRM: Target = peptrm::TARGET;
pub(super) const PRS_MED: Target = prs_med::TARGET;
pub(super) const RNA: Target = rna::TARGET;

/// One system: its preset, its architecture, and what its flags and keys can say.
struct System {
    preset: &'static str,
    arch: &'static str,
    /// Settings that a flag or a key carries.
    said: &'static [&'static str],
    /// The model's dimensions that one carries, or that describe the data.
    dims: &'static [&'static str],
    /// Settings and dimensions that take a change to the system's code.
    patches: &'static [Patch],
}

/// A change to a system's code that makes it do what a setting asks for.
struct Patch {
    /// The setting's path, or `model.dims.` and a dimension.
    path: &'static str,
    /// The values that the change makes possible; empty where it takes any.
    values: &'static [&'static str],
    what: &'static str,
}

impl Patch {
    fn allows(&self, path: &str, value: &str) -> bool {
        self.path == path && (self.values.is_empty() || self.values.contains(&value))
    }
}

/// Sections whose settings describe the machine and what runs on it, whatever the system.
const ANYWHERE: &[&str] = &["hardware", "stack", "runtime"];

/// Settings of those sections that nothing but the system's own code could follow.
const NOWHERE: &[&str] = &["runtime.memory_fraction", "runtime.eval_batch"];

/// Settings that describe data or a wish, and are no knob of a run.
const DESCRIPTIONS: &[&str] = &[
    "model.id",
    "model.dims",
    "data.distribution",
    "data.mean",
    "data.p95",
    "data.max",
    "data.global_batch",
];

/// What a system was asked for.
struct Asked {
    /// Every dimension of its model, changed ones included.
    sizes: Map<String, u64>,
    /// Lines that say which change to the system's code this needs.
    needs: String,
}

impl Asked {
    fn size(&self, name: &str) -> u64 {
        self.sizes.get(name).copied().unwrap_or_default()
    }
}

impl System {
    /// The scenario in the system's words; or every field that the system does in one way only.
    fn asked(&self, scenario: &Scenario) -> Result<Asked, Vec<Problem>> {
        let id = &scenario.model.id;
        let Some(model) = catalog::model(id).filter(|it| it.arch == self.arch) else {
            let expected = format!("{}, or another model of that system", self.preset);
            return Err(vec![Problem::new("model.id", id, expected)]);
        };
        let base = presets::find(self.preset).map(presets::Preset::scenario);
        let base = base.unwrap_or_default();
        let mut problems = Vec::new();
        let mut needs = String::new();
        let mut need = |path: &str, value: &str| {
            let mut patches = self.patches.iter();
            let patch = patches.find(|patch| patch.allows(path, value));
            if let Some(patch) = patch {
                let what = patch.what;
                needs.push_str(&format!("Needs a change to the code: {path}: {what}\n"));
            }
            patch.is_some()
        };
        for setting in settings::all() {
            let path = setting.path;
            let anywhere = ANYWHERE.contains(&setting.section()) && !NOWHERE.contains(&path);
            let free = anywhere || DESCRIPTIONS.contains(&path);
            let (value, own) = (setting.get(scenario), setting.get(&base));
            let differs = setting.applies(scenario) && value != own;
            if differs && !free && !self.said.contains(&path) && !need(path, &value) {
                let expected = format!("{own}, which is all that this system does");
                problems.push(Problem::new(path, value, expected));
            }
        }
        let mut sizes = Map::new();
        for (name, values) in model.sizes() {
            sizes.insert(name.to_string(), values[0]);
        }
        for (name, size) in &scenario.model.dims {
            let field = format!("model.dims.{name}");
            let known = sizes.get(name) == Some(size) || self.dims.contains(&name.as_str());
            if !known && !need(&field, &size.to_string()) {
                let own = sizes.get(name).map_or("nothing".into(), u64::to_string);
                let expected = format!("{own}, which no flag of this system changes");
                problems.push(Problem::new(field, size.to_string(), expected));
            }
            sizes.insert(name.clone(), *size);
        }
        if problems.is_empty() {
            Ok(Asked { sizes, needs })
        } else {
            Err(problems)
        }
    }

    /// `launch.sh` around a command that runs in the system's own folder, and what its knobs really do.
    fn files(
        &self,
        target: &Target,
        scenario: &Scenario,
        estimate: &Estimate,
        asked: &Asked,
        command: &str,
        mut files: Vec<File>,
    ) -> Vec<File> {
        let header = header(target, scenario, estimate);
        let needs = yaml::comment(&asked.needs);
        let mut contents = shell::opening(&format!("{header}{needs}"));
        if !files.is_empty() {
            contents.push_str("here=$PWD\n");
        }
        contents.push_str("cd -- \"${REPOSITORY:?the folder where the system is checked out}\"\n");
        contents.push_str(&exports(scenario));
        contents.push_str(command);
        files.push(script("launch.sh", contents));
        files.extend(self.wiring());
        files
    }

    /// What the system's knobs really do, and the changes that connect those that do nothing.
    fn wiring(&self) -> Vec<File> {
        let Some(guide) = guide::find(self.preset) else {
            return Vec::new();
        };
        let mut notes = format!(
            "# What the knobs of {} do\n\nRead from {}.\n",
            self.preset, guide.document
        );
        let mut patches = String::new();
        for knob in guide.knobs {
            notes.push_str(&format!(
                "\n- `{}`: {}. {} ({})",
                knob.flag,
                knob.wiring.label(),
                knob.note,
                knob.source
            ));
            if !knob.patch.is_empty() {
                notes.push_str(" The change is in wiring.diff.");
                let why = match knob.wiring {
                    Wiring::Exists => "mends",
                    _ => "wires",
                };
                patches.push_str(&format!(
                    "# {why} {}\n{}\n",
                    knob.flag,
                    knob.patch.trim_end()
                ));
            }
        }
        notes.push('\n');
        let mut files = vec![file("wiring.md", notes)];
        if !patches.is_empty() {
            let head = "# Places are named by what stands there, not by line: make these changes by hand.\n";
            files.push(file("wiring.diff", format!("{head}{patches}")));
        }
        files
    }
}

/// A command of several lines: one option with its value on each.
fn command(words: &[&str], options: &[(&str, String)]) -> String {
    let mut text = shell::command(words);
    for (flag, value) in options {
        text.push_str(" \\\n  ");
        text.push_str(flag);
        if !value.is_empty() {
            text.push(' ');
            text.push_str(value);
        }
    }
    text.push_str(" \"$@\"\n");
    text
}

/// `exec python` or `torchrun`, for as many GPUs as there are.
fn starter(scenario: &Scenario) -> Vec<String> {
    let gpus = scenario.hardware.gpus;
    if gpus == 1 {
        return vec!["python".into()];
    }
    let words = ["torchrun".into(), format!("--nproc_per_node={gpus}")];
    words.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export;

    #[test]
    fn what_a_system_is_asked_for_is_in_its_files_or_refused() {
        #[track_caller]
        fn check(
            target: &str,
            preset: &str,
            changes: &[(&str, &str)],
            expected: Result<&[&str], &[&str]>,
        ) {
            let mut scenario = presets::find(preset)
                .map(presets::Preset::scenario)
                .unwrap_or_default();
            for (name, value) in changes {
                assert_eq!(settings::set(&mut scenario, name, value), Ok(()));
            }
            let target = export::target(target);
            let files = target.map(|it| (it.write)(&scenario, &Estimate::default()));
            match (files, expected) {
                (Some(Ok(files)), Ok(parts)) => {
                    let text: String = files.into_iter().map(|it| it.contents).collect();
                    for part in parts {
                        assert!(text.contains(part), "{part} is not in\n{text}");
                    }
                }
                (Some(Err(problems)), Err(fields)) => {
                    let found: Vec<&str> = problems.iter().map(|it| it.field.as_str()).collect();
                    assert_eq!(found, fields);
                }
                (files, _) => panic!("{files:?}"),
            }
        }
        let half = [
            "--batch_size 2 ",
            "--train_precision 32 ",
            "--num_devices 2 ",
            "--max_peaks_n 100 ",
        ];
        check("dreams", "dreams", &[], Ok(&half));
        let accumulated = [
            "Needs a change to the code: training.accumulation",
            "--batch_size 1 ",
        ];
        check(
            "dreams",
            "dreams",
            &[("accum", "2"), ("mb", "1")],
            Ok(&accumulated),
        );
        check(
            "dreams",
            "dreams",
            &[("precision", "amp-fp16")],
            Err(&["training.precision"]),
        );
        check("dreams", "gsa-512m", &[], Err(&["model.id"]));
        let low = [
            "micro_batch_size: 2",
            "gradient_accumulation_steps: 32",
            "precision: bf16",
            "k_max: 1024",
            "nproc_per_node=4",
        ];
        check("gsa", "gsa-512m", &[], Ok(&low));
        check(
            "gsa",
            "gsa-512m",
            &[("mb", "3"), ("accum", "21")],
            Ok(&["global_batch_size: 252"]),
        );
        check(
            "gsa",
            "gsa-512m",
            &[("optim", "sgd")],
            Err(&["training.optimizer"]),
        );
        check(
            "rna-3e-ffi",
            "rna-3e-ffi",
            &[("dims", "0e=16,1o=8,2e=4")],
            Ok(&["'16x0e + 8x1o + 4x2e'", "batch=${1:-2}"]),
        );
        check(
            "rna-3e-ffi",
            "rna-3e-ffi",
            &[("precision", "amp-fp16")],
            Ok(&["Needs a change to the code: training.precision"]),
        );
        check(
            "rna-3e-ffi",
            "rna-3e-ffi",
            &[("ckpt", "layers")],
            Err(&["training.checkpointing"]),
        );
        check(
            "prs-med",
            "prs-med",
            &[("mb", "2"), ("accum", "4")],
            Ok(&[
                "--batch_size 2 ",
                "--gradient_accumulation_steps 4 ",
                "--use_amp",
            ]),
        );
        check(
            "prs-med",
            "prs-med",
            &[("dims", "img=512")],
            Err(&["model.dims.img"]),
        );
        check(
            "prs-med",
            "prs-med",
            &[("ckpt", "layers")],
            Ok(&["--gradient_checkpointing", "Needs a change"]),
        );
        check(
            "peptrm",
            "peptrm",
            &[],
            Ok(&[
                "batch_size: 48",
                "use_ema: true",
                "num_latent_steps: 6",
                "+++ b/src/model/decoder.py",
            ]),
        );
        check(
            "peptrm",
            "peptrm",
            &[("dims", "bins=7500")],
            Ok(&["Needs a change to the code: model.dims.bins"]),
        );
    }
}
