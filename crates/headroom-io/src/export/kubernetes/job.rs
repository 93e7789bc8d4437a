//! A core `Job`: one pod with all GPUs of a machine.

use super::super::common::{job_name, machines};
use super::super::header::header;
use super::super::job::job;
use super::super::{Files, Target, refuse};
use super::{IMAGE, IMAGE_NOTE, OLDER_IMAGE, SHARED_GIB, files, host_memory, limits, variables};
use headroom_base::document::Document;
use headroom_core::estimate::Estimate;
use headroom_scenario::Scenario;

pub(in super::super) const TARGET: Target = Target {
    id: "kubernetes",
    title: "Kubernetes Job",
    versions: "kubernetes 1.27 to 1.37",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut problems = refuse::fixed(scenario, &[&["hardware.nodes"]]);
    problems.extend(refuse::nvidia(scenario));
    let (job, machines) = match (job(scenario, estimate, &header), machines(scenario)) {
        (Ok(job), Ok(machines)) if problems.is_empty() => (job, machines),
        (job, _) => {
            problems.extend(job.err().unwrap_or_default());
            return Err(problems);
        }
    };
    let each = machines.each;
    let script = job.in_container(&format!("--standalone --nproc-per-node {each} "));
    Ok(files(
        "job.yaml",
        &header,
        &document(
            scenario,
            limits(each, Some(host_memory(scenario, estimate))),
            script,
            Volume::None,
        ),
    ))
}

/// What outlives a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Volume {
    None,
    /// At `/work`: code, data and checkpoints.
    Work,
}

/// The claim of a volume that outlives its pods.
const CLAIM: &str = "work";

/// The job of one pod with so many GPUs that runs a script of another program, whose host memory is its own.
pub(in super::super) fn of_program(
    scenario: &Scenario,
    each: u32,
    script: String,
    volume: Volume,
) -> Document {
    document(scenario, limits(each, None), script, volume)
}

/// The job of one pod that runs a script.
fn document(scenario: &Scenario, limits: Document, script: String, volume: Volume) -> Document {
    let mount = |path: &str, name: &str| Document::new().with("mountPath", path).with("name", name);
    let mut mounts = vec![mount("/dev/shm", "shm")];
    let image = match volume {
        Volume::None => IMAGE,
        Volume::Work => OLDER_IMAGE,
    };
    let mut container = Document::new()
        .with("name", "train")
        .with_note("image", image, IMAGE_NOTE)
        .with(
            "command",
            Document::List(vec!["bash".into(), "-c".into(), script.into()]),
        );
    let variables = variables(scenario);
    if variables != Document::List(vec![]) {
        container = container.with("env", variables);
    }
    let memory = Document::new()
        .with("medium", "Memory")
        .with("sizeLimit", format!("{SHARED_GIB}Gi"));
    // Processes pass batches and gradients through it, and a container's default is too small.
    let mut volumes = vec![Document::new().with("name", "shm").with("emptyDir", memory)];
    if volume == Volume::Work {
        let claim = Document::new().with_note("claimName", CLAIM, "a claim of yours");
        mounts.push(mount("/work", CLAIM));
        let volume = Document::new().with("name", CLAIM);
        volumes.push(volume.with("persistentVolumeClaim", claim));
    }
    let container = container
        .with("resources", Document::new().with("limits", limits))
        .with("volumeMounts", Document::List(mounts));
    let pod = Document::new()
        .with("restartPolicy", "Never")
        .with("containers", Document::List(vec![container]))
        .with("volumes", Document::List(volumes));
    let spec = Document::new()
        .with("backoffLimit", 0_u64)
        .with("template", Document::new().with("spec", pod));
    Document::new()
        .with("apiVersion", "batch/v1")
        .with("kind", "Job")
        .with("metadata", Document::new().with("name", job_name(scenario)))
        .with("spec", spec)
}
