//! Model types that answer by recorded graphs of the catalogue: a graph is of one configuration.

use super::model_types::pairs;
use crate::catalog;
use crate::document::Document;
use crate::import::Imported;
use crate::scenario::{Problem, Scenario};

/// A `model_type`, a model of the catalogue, and the values that its recorded graph is of. What transformers' class has
/// where a file says nothing bears a `?`.
type Row = (&'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "detr",
        "detr-resnet-50",
        "d_model?=256 encoder_layers?=6 decoder_layers?=6 encoder_ffn_dim?=2048 decoder_ffn_dim?=2048 num_queries?=100 \
         backbone?=resnet50 dilation?=false auxiliary_loss?=false",
    ),
    (
        "longformer",
        "longformer-base-4096",
        "hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 vocab_size=50265 \
         attention_window?=512,512,512,512,512,512,512,512,512,512,512,512",
    ),
    (
        "mamba2",
        "mamba2-130m",
        "hidden_size=768 num_hidden_layers=24 num_heads=24 state_size?=128 vocab_size=50288 n_groups=1 chunk_size?=256",
    ),
    (
        "mamba2",
        "mamba2-370m",
        "hidden_size=1024 num_hidden_layers=48 num_heads=32 state_size?=128 vocab_size=50288 n_groups=1 chunk_size?=256",
    ),
    (
        "patchtst",
        "patchtst-etth1",
        "d_model?=128 num_hidden_layers?=3 num_attention_heads=16 ffn_dim?=512 context_length=512 patch_length=12 patch_stride=12 \
         num_input_channels=7 prediction_length=96",
    ),
    (
        "segformer",
        "segformer-b0",
        "depths?=2,2,2,2 hidden_sizes?=32,64,160,256 num_attention_heads?=1,2,5,8 sr_ratios?=8,4,2,1 decoder_hidden_size?=256",
    ),
    (
        "xlnet",
        "xlnet-base-cased",
        "d_model=768 n_layer=12 n_head=12 d_inner=3072 vocab_size?=32000",
    ),
];

/// The run of a model whose graph is of this configuration; of the nearest otherwise, with what it would have to be.
/// `None` for types that have no graph.
pub(super) fn read(document: &Document, model_type: &str) -> Option<Imported> {
    let rows = ROWS.iter().filter(|(kind, _, _)| *kind == model_type);
    let judged = rows.filter_map(|(_, id, values)| {
        let entry = catalog::model(id).filter(|entry| entry.runs)?;
        Some((entry, differences(document, id, values)))
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
    use crate::document::json;

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
    fn every_row_names_a_model_with_a_graph() {
        for (_, id, values) in ROWS {
            let graph = catalog::model(id).map(|entry| entry.graph);
            assert!(graph.is_some_and(|graph| !graph.is_empty()), "{id}");
            assert!(pairs(values).count() >= 4, "{id}");
        }
    }
}
