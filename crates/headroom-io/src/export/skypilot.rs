//! SkyPilot: a task that finds machines with these GPUs and runs `torchrun` on them.

use super::common::{environment, file, job_name, machines, script};
use super::header::header;
use super::job::job;
use super::{Files, Target, refuse, shell};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Case, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "skypilot",
    title: "SkyPilot",
    versions: "skypilot 0.8 to 0.14",
    differs: "",
    write,
};

/// The catalogue's GPUs and SkyPilot's names for them (skypilot 0.14.1, names that occur in its sources).
const NAMES: &[(&str, &str)] = &[
    ("a10-24gb", "A10"),
    ("a100-pcie-40gb", "A100"),
    ("a100-pcie-80gb", "A100-80GB"),
    ("a100-sxm4-40gb", "A100"),
    ("a100-sxm4-80gb", "A100-80GB"),
    ("a10g-24gb", "A10G"),
    ("a30-24gb", "A30"),
    ("a40-48gb", "A40"),
    ("b200-180gb", "B200"),
    ("b300-288gb", "B300"),
    ("gh200-96gb", "GH200"),
    ("h100-pcie-80gb", "H100"),
    ("h100-sxm5-80gb", "H100"),
    ("h200-sxm-141gb", "H200"),
    ("l4-24gb", "L4"),
    ("l40-48gb", "L40"),
    ("l40s-48gb", "L40S"),
    ("p100-pcie-16gb", "P100"),
    ("rtx-3090-24gb", "RTX3090"),
    ("rtx-4090-24gb", "RTX4090"),
    ("rtx-5090-32gb", "RTX5090"),
    ("rtx-6000-ada-48gb", "RTX6000-Ada"),
    ("rtx-a5000-24gb", "RTXA5000"),
    ("rtx-a6000-48gb", "RTXA6000"),
    ("t4-16gb", "T4"),
    ("v100-pcie-16gb", "V100"),
    ("v100-sxm2-16gb", "V100"),
    ("v100-sxm2-32gb", "V100-32GB"),
];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut problems: Vec<Problem> = refuse::nvidia(scenario).into_iter().collect();
    let job = job(scenario, estimate, &header);
    let (card, mut job, machines) = match (card(scenario), job, machines(scenario)) {
        (Ok(card), Ok(job), Ok(machines)) if problems.is_empty() => (card, job, machines),
        (card, job, machines) => {
            problems.extend(card.err());
            problems.extend(job.err().unwrap_or_default());
            problems.extend(machines.err());
            return Err(problems);
        }
    };
    let each = machines.each;
    let envs = environment(scenario).into_iter();
    let envs: Document = envs.map(|(name, value)| (name, value.into())).collect();
    let run = format!(
        "set -euo pipefail\n\
         first=$(head -n 1 <<<\"$SKYPILOT_NODE_IPS\")\n\
         torchrun --nnodes \"$SKYPILOT_NUM_NODES\" --nproc-per-node {each} --node-rank \"$SKYPILOT_NODE_RANK\" \\\n  \
         --master-addr \"$first\" --master-port 8008 {}\n",
        job.quoted()
    );
    let mut task = Document::new()
        .with("name", job_name(scenario))
        .with("num_nodes", machines.nodes)
        .with(
            "resources",
            Document::new().with("accelerators", format!("{card}:{each}")),
        );
    if envs != Document::new() {
        task = task.with("envs", envs);
    }
    let task = task
        .with("workdir", ".")
        .with("setup", format!("{}\n", job.install()))
        .with("run", run);
    job.files
        .push(file("task.yaml", format!("{header}{}", yaml::write(&task))));
    let opening = shell::opening(&header);
    job.files.push(script(
        "launch.sh",
        format!("{opening}exec sky launch task.yaml \"$@\"\n"),
    ));
    Ok(job.files)
}

/// SkyPilot's name of the GPU.
pub(super) fn card(scenario: &Scenario) -> Result<&'static str, Problem> {
    let card = Case::of(scenario)
        .gpu
        .and_then(|gpu| NAMES.iter().find(|(id, _)| *id == gpu.id));
    card.map(|(_, name)| *name).ok_or_else(|| {
        let expected = "a GPU that SkyPilot has a name for, such as h100-sxm5 or rtx-4090";
        Problem::new("hardware.gpu", &scenario.hardware.gpu, expected)
    })
}
