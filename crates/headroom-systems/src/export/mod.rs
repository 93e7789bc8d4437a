//! Export targets of the five systems: commands and files for their own programs, what their knobs really do, and the
//! patches that connect those that do nothing.

mod dreams;
mod gsa;
mod monitor;
mod peptrm;
mod prs_med;
mod rna;
#[cfg(test)]
mod tests;
mod tier;

use std::collections::BTreeMap;

pub use tier::{Tier, tier_script};

use super::guide;
use headroom_base::document::yaml;
use headroom_catalog as catalog;
use headroom_core::estimate::Estimate;
use headroom_io::export::common::{Machines, exports, file, script};
use headroom_io::export::header::header;
use headroom_io::export::{File, Target, shell};
use headroom_scenario::systems::{Checkout, System};
use headroom_scenario::{Problem, Scenario, network, systems};
use monitor::{monitor, watching};

pub(super) const TARGETS: &[Target] = &[
    dreams::TARGET,
    gsa::TARGET,
    rna::TARGET,
    prs_med::TARGET,
    peptrm::TARGET,
];

/// A scenario as a system's program can run it, and the notes for the heads of its files.
struct Launch {
    system: &'static System,
    /// Every dimension of its model, changed ones included.
    sizes: BTreeMap<String, u64>,
    /// Settings that need `wiring.diff`, a line each.
    patch_notes: String,
    /// Differences from the author's own files, a line each.
    differences: String,
}

impl Launch {
    /// The scenario, if its model is one of a preset's system; or every setting that the system has no way to change.
    fn of(preset: &str, scenario: &Scenario) -> Result<Self, Vec<Problem>> {
        let id = &scenario.model.id;
        if let Some(network) = &scenario.model.network {
            let expected = "a model of the catalogue: a declared network has no code to run";
            let problem = Problem::new(network::FIELD, network.text(), expected);
            return Err(vec![problem]);
        }
        let system = systems::of(scenario).filter(|system| system.preset == preset);
        let (Some(system), Some(model)) = (system, catalog::model(id)) else {
            let expected = format!("{preset}, or another model that its program trains");
            return Err(vec![Problem::new("model.id", id, expected)]);
        };
        let support = system.support(scenario);
        if !support.refused.is_empty() {
            let problem =
                |[field, value, expected]: [String; 3]| Problem::new(field, value, expected);
            return Err(support.refused.into_iter().map(problem).collect());
        }
        let mut launch = Self {
            system,
            sizes: BTreeMap::new(),
            patch_notes: String::new(),
            differences: String::new(),
        };
        for setting in &support.patched {
            launch.needs_patch(setting);
        }
        for (name, values) in model.sizes() {
            launch.sizes.insert(name.to_string(), values[0]);
        }
        for (name, size) in &scenario.model.dims {
            launch.sizes.insert(name.clone(), *size);
        }
        Ok(launch)
    }

    fn size(&self, name: &str) -> u64 {
        self.sizes.get(name).copied().unwrap_or_default()
    }

    /// Notes that this needs the patch.
    fn needs_patch(&mut self, what: &str) {
        self.patch_notes
            .push_str(&format!("Needs wiring.diff: {what}\n"));
    }

    /// Adds a line to the differences.
    fn note(&mut self, what: &str) {
        self.differences.push_str(what);
        self.differences.push('\n');
    }

    /// The value, noted where it is not the author's.
    fn value(&mut self, name: &str, author: &str, value: impl ToString) -> String {
        let value = value.to_string();
        if value != author {
            let author = if author.is_empty() {
                "not given"
            } else {
                author
            };
            let ours = if value.is_empty() { "given" } else { &value };
            self.note(&format!("Not the author's: {name} {ours} ({author})"));
        }
        value
    }

    /// A size of the model, under the author's name for it.
    fn sized(&mut self, name: &str, size: &str, author: u64) -> u64 {
        let size = self.size(size);
        self.value(name, &author.to_string(), size);
        size
    }

    /// A flag that the author's command does not have, noted.
    fn flag(&mut self, name: &'static str, value: impl ToString) -> (&'static str, String) {
        let value = value.to_string();
        self.note(format!("Not the author's: {name} {value}").trim_end());
        (name, value)
    }

    /// The learning rate: the scenario's, or the author's. What another batch would ask for is noted.
    fn learning_rate(&mut self, scenario: &Scenario, author: f64) -> f64 {
        let base = self.system.base();
        let (own, batch) = (base.effective_batch(), scenario.effective_batch());
        let rate = scenario.training.learning_rate.unwrap_or(author);
        let ratio = batch as f64 / own.max(1) as f64;
        if own != batch && is_close(rate, author) {
            self.note(&format!(
                "The effective batch is {batch}, the author's {own}: the linear rule would make the learning rate {}, the \
                 square root {} (training.learning_rate)",
                short(author * ratio),
                short(author * ratio.sqrt())
            ));
        }
        rate
    }

    /// A learning rate as a flag's value, noted where it is not the author's.
    fn rate(
        &mut self,
        name: &'static str,
        scenario: &Scenario,
        author: &'static str,
    ) -> (&'static str, String) {
        let written = author.parse().unwrap_or_default();
        let rate = self.learning_rate(scenario, written);
        if is_close(rate, written) {
            return (name, author.into());
        }
        self.option(name, author, short(rate))
    }

    /// The optimizer steps of the run, if the program counts steps: those that are asked for, or those of its epochs.
    fn updates(&self, scenario: &Scenario, author: u64) -> Result<u64, Vec<Problem>> {
        let (runtime, data) = (&scenario.runtime, &scenario.data);
        match (runtime.max_steps, runtime.epochs) {
            (Some(steps), _)
                if runtime.max_steps != self.system.base().runtime.max_steps
                    || runtime.epochs.is_none() =>
            {
                Ok(steps.get())
            }
            (_, Some(epochs)) if data.samples > 0 => {
                let each = data.samples.div_ceil(scenario.effective_batch().max(1));
                Ok(each.saturating_mul(epochs.get()))
            }
            (_, Some(epochs)) => Err(refused(
                "runtime.epochs",
                &epochs.to_string(),
                "runtime.max_steps, or data.samples from which the steps of an epoch follow: this program counts steps",
            )),
            (None | Some(_), None) => Ok(author),
        }
    }

    /// A flag with its value, noted where that is not the author's.
    fn option(
        &mut self,
        name: &'static str,
        author: &str,
        value: impl ToString,
    ) -> (&'static str, String) {
        (name, self.value(name, author, value))
    }
}

fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= other.abs() * 1e-9
}

/// A rate with three figures: `1.41e-4`.
fn short(rate: f64) -> String {
    let text = format!("{rate:.2e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits}e{power}")
        }
        None => text,
    }
}

/// The answer where the program has no flag for a setting's value.
fn refused(field: &str, value: &str, expected: &str) -> Vec<Problem> {
    vec![Problem::new(field, value, expected)]
}

/// `launch.sh` around a command that runs in the system's own folder, and what its knobs really do.
fn files(
    target: &Target,
    scenario: &Scenario,
    estimate: &Estimate,
    launch: &Launch,
    command: &str,
    mut files: Vec<File>,
) -> Vec<File> {
    let header = header(target, scenario, estimate);
    let notes = yaml::comment(&format!("{}{}", launch.patch_notes, launch.differences));
    let mut contents = shell::opening(&format!("{header}{notes}"));
    if !launch.patch_notes.is_empty() || !files.is_empty() {
        contents.push_str("here=$PWD\n");
    }
    contents.push_str("cd -- \"${REPOSITORY:?the folder where the system is checked out}\"\n");
    if !launch.patch_notes.is_empty() {
        contents.push_str(&check_patch(launch.system));
    }
    contents.push_str(&exports(scenario));
    contents.push_str(command);
    files.push(script("launch.sh", contents));
    files.push(monitor());
    files.extend(wiring(launch.system, scenario));
    files
}

/// What the system's knobs really do, and the changes that connect those that do nothing.
fn wiring(system: &System, scenario: &Scenario) -> Vec<File> {
    let preset = system.preset;
    let Some(guide) = guide::find(preset) else {
        return Vec::new();
    };
    let commits = commits(system);
    let mut notes = format!(
        "# What the knobs of {preset} do\n\nRead from {}. {commits}\n",
        guide.document
    );
    for knob in guide.knobs() {
        notes.push_str(&format!(
            "\n- `{}`: {}. {} ({})",
            knob.flag,
            knob.wiring.label(),
            knob.note,
            knob.source
        ));
        if !knob.patched.is_empty() {
            notes.push_str(&format!(" With wiring.diff: `{}`.", knob.patched));
        }
    }
    notes.push_str("\n\n");
    notes.push_str(&watching(scenario));
    vec![
        file("wiring.md", notes),
        // `git apply` passes over what precedes the first file.
        file("wiring.diff", format!("{commits}\n\n{}", guide.patch)),
    ]
}

/// Ends the launch unless `wiring.diff` is applied to the code; where it does not apply, a folder with its commit is offered.
fn check_patch(system: &System) -> String {
    let Checkout { commit, .. } = system.code;
    let (short, folder) = (
        short_hash(commit),
        format!("{}-{}", system.preset, short_hash(commit)),
    );
    format!(
        "\
git apply --reverse --check -- \"$here/wiring.diff\" 2>/dev/null || {{
  if git apply --check -- \"$here/wiring.diff\" 2>/dev/null; then
    echo \"launch.sh: first apply the patch: git -C '$PWD' apply '$here/wiring.diff'\" >&2
  else
    echo \"launch.sh: wiring.diff is for {short}, and does not apply to $(git rev-parse --short HEAD)\" >&2
    echo \"a folder for it: git -C '$PWD' fetch origin {commit} && git -C '$PWD' worktree add ../{folder} {commit}\" >&2
    echo \"then: git -C '$PWD/../{folder}' apply '$here/wiring.diff' and REPOSITORY='$PWD/../{folder}' bash launch.sh\" >&2
  fi
  exit 1
}}
"
    )
}

/// A commit's first seven digits.
fn short_hash(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

/// The commits that a system's patch applies to.
fn commits(system: &System) -> String {
    let Checkout { commit, also, .. } = system.code;
    let others = if also.is_empty() {
        String::new()
    } else {
        format!(", and to {}", also.join(", "))
    };
    format!(
        "`wiring.diff` applies to {} of {}{others}.",
        short_hash(commit),
        system.code.repository
    )
}

/// A command of several lines: one option with its value on each.
fn command(start: &str, options: &[(&str, String)]) -> String {
    let mut text = start.to_string();
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

/// `exec` and the launcher of a Python script, one process for each GPU; with several machines, it is run on each.
fn starter(machines: &Machines, script: &str) -> String {
    let Machines { nodes, each } = machines;
    if *nodes > 1 {
        return format!(
            "exec torchrun --nnodes {nodes} --nproc-per-node {each} --node-rank \"${{NODE_RANK:?}}\" \\\n  \
             --master-addr \"${{MASTER_ADDR:?}}\" --master-port \"${{MASTER_PORT:-29500}}\" {script}"
        );
    }
    if *each > 1 {
        return format!("exec torchrun --standalone --nproc-per-node {each} {script}");
    }
    format!("exec python {script}")
}
