//! The scripts that start trainers which are checkouts of a repository.

use std::num::NonZero;

use super::super::common::{exports, machines, script};
use super::super::{File, shell};
use headroom_scenario::{Problem, Scenario};

/// Steps of a run that says none.
const STEPS: u64 = 1000;

/// A program that is a checkout.
pub(in super::super) struct Checkout {
    /// The variable that names its folder.
    pub variable: &'static str,
    /// The folder beside the files otherwise.
    pub folder: &'static str,
    pub repository: &'static str,
    pub commit: &'static str,
}

impl Checkout {
    /// A file of it as one word of a shell.
    pub fn path(&self, file: &str) -> String {
        format!("\"${}/{file}\"", self.variable)
    }

    /// Where it is from, and the variable.
    pub fn lines(&self) -> String {
        let Self {
            variable,
            folder,
            repository,
            commit,
        } = self;
        format!(
            "# git clone https://github.com/{repository} {folder} && git -C {folder} checkout {commit}\n\
             {variable}=\"${{{variable}:-{folder}}}\"\n"
        )
    }
}

/// `launch.sh`: `before` lines, and a file of the checkout once for each GPU through `accelerate launch`.
pub(in super::super) fn launch(
    header: &str,
    scenario: &Scenario,
    checkout: &Checkout,
    before: &str,
    accelerate: &[&str],
    file: &str,
    words: &[&str],
) -> Result<File, Problem> {
    let machines = machines(scenario)?;
    let all = machines.nodes.saturating_mul(machines.each).to_string();
    let nodes = machines.nodes.to_string();
    let mut launcher = vec![
        "accelerate",
        "launch",
        "--num_processes",
        &all,
        "--num_machines",
        &nodes,
    ];
    if all != "1" {
        launcher.push("--multi_gpu");
    }
    launcher.extend(["--dynamo_backend", "no"]);
    launcher.extend(accelerate);
    let place = if machines.nodes > 1 {
        " --machine_rank \"${NODE_RANK:?}\" \\\n  --main_process_ip \"${MASTER_ADDR:?}\" \
         --main_process_port \"${MASTER_PORT:-29500}\""
    } else {
        ""
    };
    let words = shell::command(words);
    let gap = if words.starts_with("--") && words.contains('\n') {
        " \\\n  "
    } else {
        " "
    };
    let text = format!(
        "{}{}{}{before}exec {}{place} \\\n  {}{gap}{words} \"$@\"\n",
        shell::opening(header),
        exports(scenario),
        checkout.lines(),
        shell::command(&launcher),
        checkout.path(file),
    );
    Ok(script("launch.sh", text))
}

/// The same of a file that Python runs by itself.
pub(in super::super) fn alone(
    header: &str,
    scenario: &Scenario,
    checkout: &Checkout,
    file: &str,
    words: &[&str],
) -> File {
    let text = format!(
        "{}{}{}exec python {} {} \"$@\"\n",
        shell::opening(header),
        exports(scenario),
        checkout.lines(),
        checkout.path(file),
        shell::command(words),
    );
    script("launch.sh", text)
}

/// Optimizer steps of the run.
pub(in super::super) fn steps(scenario: &Scenario) -> u64 {
    scenario.runtime.max_steps.map_or(STEPS, NonZero::get)
}
