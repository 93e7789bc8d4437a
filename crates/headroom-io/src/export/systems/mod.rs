//! The five systems' own forms: commands and files as their repositories take them, what their knobs really do, and
//! the changes to their code that connect those that do nothing.

mod checkout;
mod dreams;
mod gsa;
mod monitor;
mod peptrm;
mod prs_med;
mod rna;
#[cfg(test)]
mod tests;
mod tier;

pub(super) use checkout::checkout;
pub use tier::{Tier, tier_script};

use super::common::{Machines, exports, file, script};
use super::header::header;
use super::{File, Target, shell};
use crate::guide;
use headroom_base::document::yaml;
use headroom_base::order::Map;
use headroom_catalog as catalog;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Problem, Scenario, network, systems};
use monitor::{monitor, watching};

pub(super) const DREAMS: Target = dreams::TARGET;
pub(super) const GSA: Target = gsa::TARGET;
pub(super) const PEPTRM: Target = peptrm::TARGET;
pub(super) const PRS_MED: Target = prs_med::TARGET;
pub(super) const RNA: Target = rna::TARGET;

/// What a system was asked for.
struct Asked {
    /// Every dimension of its model, changed ones included.
    sizes: Map<String, u64>,
    /// What of this needs `wiring.diff`, a line each.
    needs: String,
    /// What is otherwise than in the author's own files, a line each.
    differs: String,
}

impl Asked {
    fn size(&self, name: &str) -> u64 {
        self.sizes.get(name).copied().unwrap_or_default()
    }

    /// Notes that this takes the patch.
    fn need(&mut self, what: &str) {
        self.needs.push_str(&format!("Needs wiring.diff: {what}\n"));
    }

    /// Notes what the run does besides.
    fn note(&mut self, what: &str) {
        self.differs.push_str(what);
        self.differs.push('\n');
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
            self.differs
                .push_str(&format!("Not the author's: {name} {ours} ({author})\n"));
        }
        value
    }

    /// A size of the model, under the author's name for it.
    fn sized(&mut self, name: &str, size: &str, author: u64) -> u64 {
        let size = self.size(size);
        self.value(name, &author.to_string(), size);
        size
    }

    /// Notes a flag that the author does not give.
    fn flag(&mut self, name: &'static str, value: impl ToString) -> (&'static str, String) {
        let value = value.to_string();
        self.differs
            .push_str(format!("Not the author's: {name} {value}").trim_end());
        self.differs.push('\n');
        (name, value)
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

/// The target that writes the own files of the system that a scenario runs.
pub(super) fn own(scenario: &Scenario) -> Option<&'static Target> {
    let system = systems::of(scenario)?;
    let own = match system.preset {
        dreams::PRESET => "dreams",
        gsa::PRESET => "gsa",
        rna::PRESET => "rna-3e-ffi",
        prs_med::PRESET => "prs-med",
        _ => "peptrm",
    };
    super::target(own)
}

/// The scenario in the words of a preset's system; or every field that the system does in one way only.
fn asked(preset: &str, scenario: &Scenario) -> Result<Asked, Vec<Problem>> {
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
    let found = system.asked(scenario);
    if !found.refused.is_empty() {
        let problem = |[field, value, expected]: [String; 3]| Problem::new(field, value, expected);
        return Err(found.refused.into_iter().map(problem).collect());
    }
    let mut asked = Asked {
        sizes: Map::new(),
        needs: String::new(),
        differs: String::new(),
    };
    for needed in &found.patched {
        asked.need(needed);
    }
    for (name, values) in model.sizes() {
        asked.sizes.insert(name.to_string(), values[0]);
    }
    for (name, size) in &scenario.model.dims {
        asked.sizes.insert(name.clone(), *size);
    }
    Ok(asked)
}

/// The answer where the system has no word for a setting's value.
fn refused(field: &str, value: &str, expected: &str) -> Vec<Problem> {
    vec![Problem::new(field, value, expected)]
}

/// `launch.sh` around a command that runs in the system's own folder, and what its knobs really do.
fn files(
    preset: &str,
    target: &Target,
    scenario: &Scenario,
    estimate: &Estimate,
    asked: &Asked,
    command: &str,
    mut files: Vec<File>,
) -> Vec<File> {
    let header = header(target, scenario, estimate);
    let notes = yaml::comment(&format!("{}{}", asked.needs, asked.differs));
    let mut contents = shell::opening(&format!("{header}{notes}"));
    if !asked.needs.is_empty() || !files.is_empty() {
        contents.push_str("here=$PWD\n");
    }
    contents.push_str("cd -- \"${REPOSITORY:?the folder where the system is checked out}\"\n");
    if !asked.needs.is_empty() {
        contents.push_str(CHECK_PATCH);
    }
    contents.push_str(&exports(scenario));
    contents.push_str(command);
    files.push(script("launch.sh", contents));
    files.push(monitor());
    files.extend(wiring(preset, scenario));
    files
}

/// What the system's knobs really do, and the changes that connect those that do nothing.
fn wiring(preset: &str, scenario: &Scenario) -> Vec<File> {
    let Some(guide) = guide::find(preset) else {
        return Vec::new();
    };
    let mut notes = format!(
        "# What the knobs of {} do\n\nRead from {}. `wiring.diff` is for `git apply` at that commit.\n",
        preset, guide.document
    );
    for knob in guide.knobs {
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
        file("wiring.diff", guide.patch.into()),
    ]
}

/// Ends the launch where what it needs of `wiring.diff` is not in the code.
const CHECK_PATCH: &str = "\
git apply --reverse --check -- \"$here/wiring.diff\" 2>/dev/null || {
  echo \"launch.sh: first apply the patch: git -C '$PWD' apply '$here/wiring.diff'\" >&2
  exit 1
}
";

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

/// `exec` and what starts a Python script once for each GPU; where there are more machines, it is run on each of them.
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
