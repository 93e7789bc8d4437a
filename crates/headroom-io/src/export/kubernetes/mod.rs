//! Kubernetes: a `Job` on one machine, and Kubeflow's `TrainJob` on one or more.

mod job;
mod trainjob;

pub(super) use job::{TARGET as JOB, Volume, document as job};
pub(super) use trainjob::TARGET as TRAINJOB;

use super::common::environment;
use super::{File, shell};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_scenario::Scenario;

/// It has Python and a compiler; PyTorch's own version is installed in it, so that it is the one computed for.
const IMAGE: &str = "python:3.12";
/// For what was pinned before Python 3.12.
const OLDER_IMAGE: &str = "python:3.11";
const IMAGE_NOTE: &str = "one of yours with the packages in it starts faster";

/// The container's variables.
fn variables(scenario: &Scenario) -> Document {
    let variable =
        |(name, value): (&str, String)| Document::new().with("name", name).with("value", value);
    Document::List(environment(scenario).into_iter().map(variable).collect())
}

fn gpus(number: u32) -> Document {
    Document::new().with("nvidia.com/gpu", number.to_string())
}

/// The file for the cluster, and the command that sends it there.
fn files(name: &'static str, header: &str, document: &Document) -> Vec<File> {
    let words = ["kubectl", "create", "-f", name];
    let submit = format!(
        "{}exec {} \"$@\"\n",
        shell::opening(header),
        shell::command(&words)
    );
    vec![
        super::common::file(name, format!("{header}{}", yaml::write(document))),
        super::common::script("launch.sh", submit),
    ]
}
