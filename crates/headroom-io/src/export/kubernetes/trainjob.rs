//! Kubeflow's `TrainJob`: on several machines, which the operator finds.

use super::super::common::{job_name, machines};
use super::super::header::header;
use super::super::job::job;
use super::super::{Files, Target, refuse};
use super::{IMAGE, IMAGE_NOTE, files, host_memory, limits, variables};
use headroom_base::document::Document;
use headroom_core::estimate::Estimate;
use headroom_scenario::Scenario;

pub(in super::super) const TARGET: Target = Target {
    id: "trainjob",
    title: "Kubeflow TrainJob",
    versions: "kubeflow trainer 2.0 to 2.3 (trainer.kubeflow.org/v1alpha1)",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut problems: Vec<_> = refuse::nvidia(scenario).into_iter().collect();
    let (job, machines) = match (job(scenario, estimate, &header), machines(scenario)) {
        (Ok(job), Ok(machines)) if problems.is_empty() => (job, machines),
        (job, machines) => {
            problems.extend(job.err().unwrap_or_default());
            problems.extend(machines.err());
            return Err(problems);
        }
    };
    let each = machines.each;
    let resources = limits(each, Some(host_memory(scenario, estimate)));
    let runtime = Document::new()
        .with("apiGroup", "trainer.kubeflow.org")
        .with("kind", "ClusterTrainingRuntime")
        .with("name", "torch-distributed");
    let mut trainer = Document::new()
        .with_note("image", IMAGE, IMAGE_NOTE)
        .with("numNodes", machines.nodes)
        .with("numProcPerNode", each)
        // The operator tells torchrun about the other machines through environment variables.
        .with("command", Document::List(vec!["bash".into(), "-c".into()]))
        .with("args", Document::List(vec![job.in_container("").into()]))
        .with(
            "resourcesPerNode",
            Document::new()
                .with("requests", resources.clone())
                .with("limits", resources),
        );
    let variables = variables(scenario);
    if variables != Document::List(vec![]) {
        trainer = trainer.with("env", variables);
    }
    let document = Document::new()
        .with("apiVersion", "trainer.kubeflow.org/v1alpha1")
        .with("kind", "TrainJob")
        .with("metadata", Document::new().with("name", job_name(scenario)))
        .with(
            "spec",
            Document::new()
                .with("runtimeRef", runtime)
                .with("trainer", trainer),
        );
    Ok(files("trainjob.yaml", &header, &document))
}
