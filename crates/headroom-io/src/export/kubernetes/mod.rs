//! Kubernetes: a `Job` on one machine, and Kubeflow's `TrainJob` on one or more.

mod job;
mod trainjob;

pub(super) use job::{TARGET as JOB, Volume, of_program};
pub(super) use trainjob::TARGET as TRAINJOB;

use super::common::environment;
use super::{File, shell};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_base::units::Bytes;
use headroom_core::estimate::Estimate;
use headroom_scenario::{Precision, Scenario};

/// It has Python and a compiler; PyTorch's own version is installed in it, so that it is the one computed for.
const IMAGE: &str = "python:3.12";
/// For versions pinned before Python 3.12.
const OLDER_IMAGE: &str = "python:3.11";
const IMAGE_NOTE: &str = "one of yours with the packages in it starts faster";

/// The container's variables.
fn variables(scenario: &Scenario) -> Document {
    let variable =
        |(name, value): (&str, String)| Document::new().with("name", name).with("value", value);
    Document::List(environment(scenario).into_iter().map(variable).collect())
}

/// What a pod of so many processes may use: a GPU for each, and host memory if it is known.
fn limits(processes: u32, memory: Option<Bytes>) -> Document {
    let gpus = Document::new().with("nvidia.com/gpu", processes.to_string());
    match memory {
        None => gpus,
        Some(memory) => {
            let size = format!("{}Gi", memory.get().div_ceil(1 << 30));
            gpus.with_note(
                "memory",
                size,
                "of the host: the run's own, Python's, and to load the model",
            )
        }
    }
}

/// Memory-backed files of a pod, which count as its memory.
const SHARED_GIB: u64 = 16;

/// The host memory of a pod. One that uses more than its limit is killed, so each term is the largest that it may be.
fn host_memory(scenario: &Scenario, estimate: &Estimate) -> Bytes {
    /// Python with PyTorch and CUDA's libraries, and a program's own data.
    const PROCESS_GIB: u64 = 8;
    let processes = estimate.host.processes.max(1);
    let width = match scenario.training.precision {
        Precision::Bf16 | Precision::Fp16 | Precision::AmpBf16OnBf16 | Precision::AmpFp16OnFp16 => {
            2
        }
        Precision::Fp64 => 8,
        _ => 4,
    };
    // Each process reads the whole model before it moves or shards it (`build` in plain/causal.py), and steps only after that.
    let loaded = Bytes::new(estimate.parameters.saturating_mul(width)) * processes;
    let own = Bytes::gib((PROCESS_GIB * processes + SHARED_GIB) as f64);
    loaded.max(estimate.host.total.high) + own
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
