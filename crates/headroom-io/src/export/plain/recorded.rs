//! A recorded model in `train.py`: constructed, fed and scored by the user's functions that its file names.

use super::super::{File, layout, refuse};
use headroom_base::document::Document;
use headroom_core::graph;
use headroom_scenario::network::{FIELD, Recording};
use headroom_scenario::{Parallelism, Problem, Scenario, Wrap};

/// The file of a scenario's recorded model.
pub(super) fn recording(scenario: &Scenario) -> Option<&Recording> {
    scenario.model.network.as_ref()?.recording()
}

/// The model's file has a name that a user's own modules hardly have: they are imported beside it.
pub(super) const MODEL: (&str, &str) = ("recorded_model.py", include_str!("recorded.py"));

/// A program that imports the model from the file of this name.
pub(super) fn importing(name: &str, program: &str) -> String {
    let module = name.trim_end_matches(".py");
    program
        .replace("from model import", &format!("from {module} import"))
        .replace("the model of model.py", &format!("the model of {name}"))
}

/// `launch.sh` that finds the user's modules in the folder it is started from, before it changes into its own.
pub(super) fn finding_modules(mut launch: File) -> File {
    const HERE: &str = "export PYTHONPATH=\"$PWD${PYTHONPATH:+:$PYTHONPATH}\"\n";
    if let Some(place) = launch.contents.find("\ncd -- ") {
        launch.contents.insert_str(place + 1, HERE);
    }
    launch
}

/// What its program cannot do with it.
pub(super) fn problems(scenario: &Scenario, recording: &Recording) -> Vec<Problem> {
    let fixed = [
        "training.quantization",
        "training.kernels",
        "training.loss",
        "training.channels_last",
        "runtime.eval_batch",
    ];
    let mut problems = refuse::fixed_fields(scenario, &fixed);
    let known = [Parallelism::Ddp, Parallelism::Fsdp2, Parallelism::Hsdp];
    match refuse::layout(scenario, &known) {
        Ok(shared) if shared.is_fsdp2() => problems.extend(divided(scenario)),
        shared => problems.extend(shared.err()),
    }
    if function(recording, "build").is_none() || function(recording, "batch").is_none() {
        let source = match recording.document().get("source") {
            Some(Document::Text(source)) => source.clone(),
            _ => String::new(),
        };
        let expected = "a file that names its functions: python headroom_record.py module:build --batch module:batch";
        problems.push(Problem::new(FIELD, source, expected));
    }
    problems
}

/// A function that the file names, as `module:name`. Anything but names is none: it becomes part of a program.
fn function(recording: &Recording, of: &str) -> Option<String> {
    let Some(Document::Text(text)) = recording.document().get("calls")?.get(of) else {
        return None;
    };
    let (module, name) = text.split_once(':')?;
    let is_name = |part: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !part.is_empty()
            && part.chars().all(word)
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    (module.split('.').all(is_name) && is_name(name)).then(|| text.clone())
}

/// The first keys of `train.yaml`: the model.
pub(super) fn opening(recording: &Recording) -> Document {
    let graph = graph::opened(recording);
    let classes = graph.iter().flat_map(|graph| graph.layer_classes());
    // As Python prints them, with the module's name in front.
    let layers = classes.filter_map(|class| class.rsplit('.').next());
    let mut layers: Vec<String> = layers.map(String::from).collect();
    layers.dedup();
    Document::new()
        .with("kind", "recorded")
        .with_note("build", function(recording, "build"), "makes the model")
        .with_note(
            "make_batch",
            function(recording, "batch"),
            "makes a batch of (micro-batch, length, device)",
        )
        .with_note(
            "compute_loss",
            function(recording, "loss"),
            "of (model, batch); null: the model returns it",
        )
        .with_note(
            "layers",
            layers,
            "classes that are checkpointed and sharded one by one",
        )
        .with("train_file", Document::Null)
}

/// Units that its file does not name.
fn divided(scenario: &Scenario) -> Option<Problem> {
    let wrap = layout::policy(scenario).wrap;
    let expected = "layers or root: the file of a recorded model names its layers alone";
    (!matches!(wrap, Wrap::Layers | Wrap::Root))
        .then(|| Problem::new("parallel.wrap", wrap.id(), expected))
}

#[cfg(test)]
mod tests {
    use super::super::TARGET;
    use super::*;
    use headroom_base::document::json;
    use headroom_core::estimate::estimate;
    use headroom_scenario::network::Network;
    use headroom_scenario::{Checkpointing, Precision};

    /// A run of a recorded model whose file names these functions.
    fn run(calls: Document) -> Scenario {
        let file = include_str!("../../../../headroom-core/src/nets/graph/fixtures/llama.json");
        let document = json::read(file).unwrap().with("calls", calls);
        let mut scenario = Scenario::default();
        scenario.model.network = Some(Network::recorded(Recording::new(document)));
        scenario.data.micro_batch = 2;
        scenario.data.sequence = 256;
        scenario.training.checkpointing = Checkpointing::Layers;
        scenario.training.precision = Precision::Bf16;
        scenario
    }

    fn written(scenario: &Scenario) -> Result<String, Vec<String>> {
        let files = (TARGET.write)(scenario, &estimate(scenario).unwrap());
        let config = |file: &crate::export::File| file.name == "train.yaml";
        match files {
            Ok(files) => Ok(files.into_iter().find(config).unwrap().contents),
            Err(problems) => Err(problems.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn plain_pytorch_calls_the_users_own_functions() {
        let calls = Document::new()
            .with("build", "my.models:build")
            .with("batch", "my.data:batch");
        let config = written(&run(calls)).unwrap();
        for line in [
            "kind: recorded",
            "build: \"my.models:build\"",
            "make_batch: \"my.data:batch\"",
            "compute_loss: null",
            "LlamaDecoderLayer",
            "checkpointing: layers",
        ] {
            assert!(config.contains(line), "{line} in\n{config}");
        }
    }

    #[test]
    fn the_users_modules_are_found_and_not_shadowed() {
        let calls = Document::new()
            .with("build", "model:build")
            .with("batch", "model:batch");
        let run = run(calls);
        let files = (TARGET.write)(&run, &estimate(&run).unwrap()).unwrap();
        let contents = |name: &str| {
            let file = files.iter().find(|file| file.name == name);
            file.map(|file| file.contents.as_str())
        };
        assert_eq!(contents("model.py"), None);
        assert!(contents("recorded_model.py").is_some());
        let program = contents("train.py").unwrap();
        assert!(program.contains("from recorded_model import batches"));
        assert!(!program.contains("from model import"));
        let launch = contents("launch.sh").unwrap();
        let place = |words: &str| launch.find(words).unwrap();
        assert!(place("export PYTHONPATH=\"$PWD") < place("\ncd -- "));
    }

    #[test]
    fn a_file_without_functions_is_refused_and_so_is_what_is_no_name() {
        #[track_caller]
        fn check(calls: Document) {
            let problems = written(&run(calls)).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains("module:build"), "{problems:?}");
        }
        check(Document::new());
        let calls = |build: &str| {
            Document::new()
                .with("build", build)
                .with("batch", "my:batch")
        };
        check(calls("my:build()"));
        check(calls("my"));
        check(calls("../my:build"));
    }
}
