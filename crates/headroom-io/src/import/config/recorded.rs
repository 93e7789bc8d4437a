//! Model types that answer by single models of the catalogue, most by their recorded graphs: a graph is of one configuration.

use super::graph_rows::ROWS;
use super::model_types::pairs;
use crate::import::Imported;
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_scenario::{Problem, Scenario};

/// The run of a model whose graph is of this configuration; of the nearest otherwise, with what it would have to be.
/// `None` for types that have no graph.
pub(super) fn read(document: &Document, model_type: &str) -> Option<Imported> {
    let rows = ROWS.iter().filter(|row| row.model_type == model_type);
    let judged = rows.filter_map(|row| {
        let entry = catalog::model(row.id).filter(|entry| entry.runs)?;
        Some((entry, differences(document, row.id, row.values)))
    });
    let (entry, problems) = judged.min_by_key(|(_, problems)| problems.len())?;
    Some(Imported {
        scenario: Scenario::of_model(entry),
        problems,
        ..Imported::default()
    })
}

fn differences(document: &Document, id: &str, values: &'static str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (key, value) in pairs(values) {
        let (name, may_lack) = match key.strip_suffix('?') {
            Some(name) => (name, true),
            None => (key, false),
        };
        let found = name
            .split('.')
            .try_fold(document, |part, name| part.get(name));
        let given = match found {
            None | Some(Document::Null) if may_lack => continue,
            found => found.map(listed).unwrap_or_default(),
        };
        if given != value {
            let expected = format!(
                "{value}, of which {id} has a recorded graph; `headroom record` records others"
            );
            problems.push(Problem::new(name, given, expected));
        }
    }
    problems
}

/// A value as text, those of a list with commas between.
fn listed(value: &Document) -> String {
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

    #[test]
    fn every_row_names_a_model_that_runs() {
        for row in ROWS {
            let runs = catalog::model(row.id).is_some_and(|entry| entry.runs);
            assert!(runs, "{}", row.id);
            assert!(pairs(row.values).count() >= 4, "{}", row.id);
        }
    }
}
