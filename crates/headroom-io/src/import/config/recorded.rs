//! Model types that answer by single models of the catalogue, most by their recorded graphs: a graph is of one configuration.

use crate::import::Imported;
use headroom_base::document::Document;
use headroom_catalog::{self as catalog, Configuration};
use headroom_scenario::Problem;

/// The run of a model whose graph is of this configuration; of the nearest otherwise, with what it would have to be.
/// `None` for types that have no graph.
pub(super) fn read(document: &Document, model_type: &str) -> Option<Imported> {
    let of_type = catalog::configurations()
        .iter()
        .filter(|configuration| configuration.model_type == model_type);
    let judged = of_type.filter_map(|configuration| {
        let entry = catalog::model(configuration.model).filter(|entry| entry.runs)?;
        Some((entry, differences(document, configuration)))
    });
    let (entry, problems) = judged.min_by_key(|(_, problems)| problems.len())?;
    let mut imported = Imported::default();
    imported.set("model.id", entry.id, super::TOOL, "model_type");
    let sequence = imported.scenario.data.sequence;
    if let Some(places) = entry.longest().filter(|places| *places < sequence) {
        imported.set(
            "data.sequence",
            &places.to_string(),
            super::TOOL,
            "model_type",
        );
    }
    imported.problems = problems;
    Some(imported)
}

fn differences(document: &Document, configuration: &Configuration) -> Vec<Problem> {
    let required = configuration.required.iter().map(|pair| (pair, true));
    let defaults = configuration.defaults.iter().map(|pair| (pair, false));
    let mut problems = Vec::new();
    for ((name, value), is_required) in required.chain(defaults) {
        let found = name
            .split('.')
            .try_fold(document, |part, name| part.get(name));
        let given = match found {
            None | Some(Document::Null) if !is_required => continue,
            found => found.map(listed).unwrap_or_default(),
        };
        if given != *value {
            let expected = format!(
                "{value}, of which {} has a recorded graph; `headroom record` records others",
                configuration.model
            );
            problems.push(Problem::new(*name, given, expected));
        }
    }
    problems
}

/// A value as text, those of a list with commas between.
pub(super) fn listed(value: &Document) -> String {
    match value {
        Document::List(all) => {
            let all: Vec<String> = all.iter().map(listed).collect();
            all.join(",")
        }
        Document::Bool(value) => value.to_string(),
        Document::Int(value) => value.to_string(),
        Document::Number(value) => value.to_string(),
        Document::Text(value) => value.clone(),
        Document::Null | Document::Map(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_base::document::json;

    #[track_caller]
    fn check(text: &str, id: &str, problems: &[&str]) {
        let document = json::read(text).unwrap();
        let Some(Document::Text(kind)) = document.get("model_type") else {
            panic!("{text}")
        };
        let imported = read(&document, kind).unwrap();
        let found: Vec<String> = imported.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            (imported.scenario.model.id.as_str(), found),
            (id, problems.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn a_configuration_answers_by_the_graph_that_was_recorded_of_it() {
        check(
            r#"{"model_type": "detr", "num_queries": 100}"#,
            "detr-resnet-50",
            &[],
        );
        check(
            r#"{"model_type": "xlnet", "d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}"#,
            "xlnet-base-cased",
            &[],
        );
        check(
            r#"{"model_type": "segformer", "depths": [3, 4, 6, 3], "decoder_hidden_size": null}"#,
            "segformer-b0",
            &[
                "depths is `3,4,6,3`; expected 2,2,2,2, of which segformer-b0 has a recorded graph; `headroom record` records others",
            ],
        );
        assert!(read(&Document::new(), "llama").is_none());
    }
}
