//! Job files of clusters: Kubernetes' Job and Pod, Kubeflow's jobs, SkyPilot's task. What they run is a script like any other;
//! they say on how many GPUs.

use headroom_base::document::Document;
use headroom_scripts::File;

use super::{documents, sentence};

/// What a job file runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub script: File,
    /// The card, by its catalogue id.
    pub gpu: Option<&'static str>,
}

/// The job in a file; `None` where it is none.
pub fn read(file: &File) -> Option<Job> {
    // Most files are none, and need no second reading.
    if !["apiVersion", "\nrun:", "run:"]
        .iter()
        .any(|key| file.text.contains(key))
    {
        return None;
    }
    let document = documents::raw(&file.text)?;
    if document.get("apiVersion").is_some() && document.get("kind").is_some() {
        return kubernetes(file, &document);
    }
    let on_cloud = ["resources", "num_nodes"]
        .iter()
        .any(|key| document.get(key).is_some());
    match document.get("run") {
        Some(Document::Text(script)) if on_cloud => Some(skypilot(file, &document, script)),
        _ => None,
    }
}

fn job(file: &File, exports: &[(String, String)], script: &str, gpu: Option<&'static str>) -> Job {
    let exports = exports.iter();
    let lines = exports.map(|(name, value)| format!("export {name}={}", quoted(value)));
    let lines: Vec<String> = lines.chain([script.to_string()]).collect();
    Job {
        script: File {
            name: file.name.clone() + ".sh",
            text: lines.join("\n"),
        },
        gpu,
    }
}

fn kubernetes(file: &File, document: &Document) -> Option<Job> {
    let container = container(document, 0)?;
    let words = ["command", "args"]
        .iter()
        .flat_map(|key| texts(container.get(key)));
    let words: Vec<String> = words.collect();
    let script = match &words[..] {
        [shell, rest @ .., script]
            if shell
                .rsplit('/')
                .next()
                .is_some_and(|name| matches!(name, "sh" | "bash"))
                && rest
                    .last()
                    .is_some_and(|option| option.starts_with('-') && option.ends_with('c')) =>
        {
            script.clone()
        }
        words => words
            .iter()
            .map(|word| quoted(word))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let mut exports = Vec::new();
    if let Some(Document::List(variables)) = container.get("env") {
        for variable in variables {
            if let (Some(name), Some(value)) =
                (text(variable.get("name")), text(variable.get("value")))
            {
                exports.push((name, value));
            }
        }
    }
    let mut limits = ["resources", "resourcesPerNode"]
        .iter()
        .filter_map(|key| container.get(key)?.get("limits"));
    let gpus = limits.find_map(|limits| whole(limits.get("nvidia.com/gpu")));
    exports.extend(gpus.map(visible));
    // Kubeflow tells torchrun by variables.
    for (key, variable) in [
        ("numNodes", "PET_NNODES"),
        ("numProcPerNode", "PET_NPROC_PER_NODE"),
    ] {
        exports.extend(text(container.get(key)).map(|count| (variable.into(), count)));
    }
    if let Some(replicas) = document
        .get("spec")
        .and_then(|spec| spec.get("pytorchReplicaSpecs"))
    {
        let count = |role: &str| whole(replicas.get(role)?.get("replicas")).or(Some(1));
        let nodes = count("Master").unwrap_or(0) + count("Worker").unwrap_or(0);
        exports.push(("PET_NNODES".into(), nodes.max(1).to_string()));
        let each = document
            .get("spec")
            .and_then(|spec| text(spec.get("nprocPerNode")));
        exports.extend(each.map(|each| ("PET_NPROC_PER_NODE".into(), each)));
    }
    Some(job(file, &exports, &script, None))
}

/// The first map that says what is run.
fn container(document: &Document, depth: usize) -> Option<&Document> {
    const DEEPEST: usize = 12;
    if depth > DEEPEST {
        return None;
    }
    match document {
        Document::Map(entries) => {
            let runs = ["command", "args"]
                .iter()
                .any(|key| document.get(key).is_some());
            let below = || {
                entries
                    .iter()
                    .find_map(|entry| container(&entry.value, depth + 1))
            };
            if runs { Some(document) } else { below() }
        }
        Document::List(items) => items.iter().find_map(|item| container(item, depth + 1)),
        _ => None,
    }
}

fn skypilot(file: &File, document: &Document, script: &str) -> Job {
    let accelerators = document
        .get("resources")
        .and_then(|all| all.get("accelerators"));
    let (name, count) = match accelerators {
        Some(Document::Text(text)) => {
            let (name, count) = text.split_once(':').unwrap_or((text, "1"));
            (name.to_string(), count.trim().parse().unwrap_or(1))
        }
        Some(Document::Map(entries)) => entries.first().map_or((String::new(), 0), |entry| {
            (entry.key.clone(), whole(Some(&entry.value)).unwrap_or(1))
        }),
        _ => (String::new(), 0),
    };
    let mut exports = Vec::new();
    for key in ["envs", "env"] {
        if let Some(Document::Map(variables)) = document.get(key) {
            let known = variables.iter();
            exports
                .extend(known.filter_map(|one| Some((one.key.clone(), text(Some(&one.value))?))));
        }
    }
    let nodes = whole(document.get("num_nodes")).unwrap_or(1);
    exports.push(("SKYPILOT_NUM_NODES".into(), nodes.to_string()));
    if count > 0 {
        exports.push(("SKYPILOT_NUM_GPUS_PER_NODE".into(), count.to_string()));
        exports.push(visible(count));
    }
    // Clouds name cards as people do.
    let gpu = sentence::read(&name).gpu.value().copied();
    job(file, &exports, script, gpu)
}

/// The GPUs of a container are all that its processes see.
fn visible(count: u64) -> (String, String) {
    /// More than any machine has.
    const MOST: u64 = 64;
    let all: Vec<String> = (0..count.min(MOST)).map(|at| at.to_string()).collect();
    ("CUDA_VISIBLE_DEVICES".into(), all.join(","))
}

fn text(value: Option<&Document>) -> Option<String> {
    match value? {
        Document::Text(text) => Some(text.clone()),
        Document::Int(whole) => Some(whole.to_string()),
        Document::Bool(on) => Some(on.to_string()),
        _ => None,
    }
}

fn texts(value: Option<&Document>) -> Vec<String> {
    match value {
        Some(Document::List(items)) => items.iter().filter_map(|item| text(Some(item))).collect(),
        other => text(other).into_iter().collect(),
    }
}

fn whole(value: Option<&Document>) -> Option<u64> {
    text(value)?.parse().ok()
}

/// A word that the evaluator of scripts reads back as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading;
    use headroom_scripts::Alone;

    #[track_caller]
    fn check(text: &str, gpus: u64, gpu: Option<&str>) {
        let file = File {
            name: "job.yaml".into(),
            text: text.into(),
        };
        let facts = reading::file(&file, &Alone);
        assert_eq!(facts.refused, None);
        assert_eq!(facts.gpus.value(), Some(&gpus));
        assert_eq!(facts.gpu.value().copied(), gpu);
        assert_eq!(facts.micro_batch.value(), Some(&3));
        assert_eq!(
            facts.model.value().map(String::as_str),
            Some("Qwen/Qwen3-4B")
        );
    }

    #[test]
    fn job_files_run_their_script() {
        const TRL: &str = "trl sft --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 3 --dataset_name d";
        check(
            &format!(
                "name: a\nnum_nodes: 2\nresources:\n  accelerators: H100:8\nrun: |\n  accelerate launch --num_processes \
                 $(($SKYPILOT_NUM_NODES * $SKYPILOT_NUM_GPUS_PER_NODE)) --num_machines $SKYPILOT_NUM_NODES -m {TRL}\n"
            )
            .replace("-m trl sft", "-m trl.scripts.sft"),
            16,
            Some("h100-sxm5-80gb"),
        );
        check(
            &format!(
                "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n        - name: train\n          \
                 command: [bash, -c]\n          args:\n            - {TRL}\n          resources: {{limits: {{nvidia.com/gpu: 1}}}}\n"
            ),
            1,
            None,
        );
        check(
            "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nspec:\n  trainer:\n    numNodes: 2\n    \
                 numProcPerNode: 4\n    command: [torchrun, -m, trl.scripts.sft, --model_name_or_path, Qwen/Qwen3-4B, \
                 --per_device_train_batch_size, 3, --dataset_name, d]\n",
            8,
            None,
        );
    }
}
