//! Ray: a job that a running cluster takes, with `torchrun` on one of its machines.

use super::common::{environment, file, machines, script};
use super::header::header;
use super::job::job;
use super::{Files, Target, refuse, shell};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::Scenario;

pub(super) const TARGET: Target = Target {
    id: "ray",
    title: "Ray job",
    versions: "ray 2.9 to 2.60",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut problems = refuse::fixed(scenario, &[&["hardware.nodes"]]);
    let (mut job, machines) = match (job(scenario, estimate, &header), machines(scenario)) {
        (Ok(job), Ok(machines)) if problems.is_empty() => (job, machines),
        (job, _) => {
            problems.extend(job.err().unwrap_or_default());
            return Err(problems);
        }
    };
    let each = machines.each.to_string();
    let envs = environment(scenario).into_iter();
    let envs: Document = envs.map(|(name, value)| (name, value.into())).collect();
    let mut environment = Document::new().with("pip", job.packages.clone());
    if envs != Document::new() {
        environment = environment.with("env_vars", envs);
    }
    let mut words = vec!["ray", "job", "submit", "--working-dir", "."];
    words.extend(["--runtime-env", "environment.yaml"]);
    words.extend(["--entrypoint-num-gpus", &each, "--"]);
    words.extend(["torchrun", "--standalone", "--nproc-per-node", &each]);
    words.extend(job.words.iter().map(String::as_str));
    let submit = shell::command(&words);
    let opening = shell::opening(&header);
    job.files.push(file(
        "environment.yaml",
        format!("{header}{}", yaml::write(&environment)),
    ));
    job.files.push(script(
        "launch.sh",
        format!("{opening}# RAY_ADDRESS names the cluster.\nexec {submit} \"$@\"\n"),
    ));
    Ok(job.files)
}
