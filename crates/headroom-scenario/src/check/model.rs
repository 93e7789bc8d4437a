//! Whether the model takes these sizes and lengths.

use super::{Case, Problems};
use crate::Distribution;
use crate::{NameKind, Problem, network};
use headroom_catalog::ModelCategory;

pub(super) fn pictures(case: &Case, problems: &mut Problems) {
    let reads = case.scenario.model.reads_pictures();
    if case.scenario.data.unread_image_size().is_some() && reads {
        problems.refuse("data.image_sizes", "a height and a width, such as 448x672");
    }
}

pub(super) fn model(case: &Case, problems: &mut Problems) {
    let id = &case.scenario.model.id;
    if let Some(network) = &case.scenario.model.network {
        let (model, data) = (&case.scenario.model, &case.scenario.data);
        if network.recording().is_some() {
            return;
        }
        if let Err(problem) = network.plan(&model.dims, data.micro_batch, data.sequence) {
            // Said of the field that the form has.
            let path = problem.field().strip_prefix(network::FIELD);
            let path = path.unwrap_or_default();
            let value = format!("{}={}", path.trim_start_matches('.'), problem.given());
            let problem = Problem::new(network::FIELD, value, problem.expected());
            problems.refused.push(problem);
        }
        let known = network.sizes();
        if let Some(name) = model
            .dims
            .keys()
            .find(|name| !known.contains(&name.as_str()))
        {
            let expected = format!("sizes that the network names, which {name} is not");
            problems.warn("model.dims", expected);
        }
        return;
    }
    match case.listed_model() {
        None => {
            problems.unknown(NameKind::Model, "model.id", id);
        }
        Some(entry) if !entry.runs => {
            let expected = format!(
                "a model with a forward function (`headroom catalog models`): `{}` has none here",
                entry.arch
            );
            problems.refuse("model.id", expected);
        }
        Some(entry) => {
            let dims = &case.scenario.model.dims;
            if !entry.graph.is_empty() && dims.keys().any(|name| name != entry.graph) {
                let expected = match entry.graph {
                    "sequence" => "none: this model runs as it was recorded".to_string(),
                    size => format!("{size} alone: this model runs as it was recorded"),
                };
                problems.refuse("model.dims", expected);
                return;
            }
            let changed = dims.contains_key("heads") || dims.contains_key("kv");
            if let (true, Some(heads), Some(kv)) = (changed, case.size("heads"), case.size("kv"))
                && (1..=heads).contains(&kv)
                && !heads.is_multiple_of(kv)
            {
                // Grouped queries: each key-value head serves equally many.
                let expected = format!(
                    "heads that kv divides: {heads} attention heads cannot share {kv} key-value heads"
                );
                problems.refuse("model.dims", expected);
            }
            let known: Vec<&str> = entry.sizes().iter().map(|(name, _)| *name).collect();
            let encodes = matches!(entry.arch, "dreams" | "llava" | "unet");
            let option = |name: &str| is_option(name) || encodes && name == "encoders";
            let strange = |name: &&String| !known.contains(&name.as_str()) && !option(name);
            if let Some(name) = case.scenario.model.dims.keys().find(strange) {
                let problem = Problem::unknown_name(NameKind::Dimension, "model.dims", name, known);
                problems.warned.push(problem);
            }
        }
    }
}

/// Dimensions that a forward function reads and that are in no entry's list.
fn is_option(name: &str) -> bool {
    let set = name
        .rsplit_once('_')
        .filter(|(_, part)| part.parse::<u64>().is_ok());
    matches!(
        name,
        "audio_classes"
            | "cls_width"
            | "drop"
            | "edges"
            | "feat"
            | "headless"
            | "labels"
            | "layer_vocab"
            | "nodes"
            | "qk_norm"
            | "sequence_classes"
            | "sliding_window"
            | "stages"
            | "v_layer_norms"
            | "tied"
            | "v_qk_norm"
    ) || matches!(
        set,
        Some((
            "full"
                | "v_features"
                | "v_global_layers"
                | "cross_layers"
                | "depths"
                | "heads"
                | "dims"
                | "global_layers"
                | "necks"
                | "reductions"
                | "sparse",
            _,
        ))
    )
}

/// Sequences, their distribution and their padding.
pub(super) fn lengths(case: &Case, problems: &mut Problems) {
    let data = &case.scenario.data;
    let sequence = data.sequence;
    if let Some(entry) = case.listed_model()
        && let Some(positions) = case.size("ctx").filter(|positions| *positions > 0)
        && let Some(places) = Some(entry.tokens_of(positions)).filter(|places| sequence > *places)
        && is_text(case)
    {
        if entry.traits.contains(&"learned-positions") {
            let expected = format!("at most {places}: the model has learned that many positions");
            problems.refuse("data.sequence", expected);
        } else {
            let expected = format!("at most {places}, the longest the model was trained for");
            problems.warn("data.sequence", expected);
        }
    }
    let given: Vec<(&str, u64)> = [
        ("data.mean", data.mean),
        ("data.p95", data.p95),
        ("data.max", data.max),
    ]
    .into_iter()
    .filter(|(_, amount)| *amount > 0)
    .collect();
    for pair in given.windows(2) {
        if pair[0].1 > pair[1].1 {
            problems.refuse(
                pair[1].0,
                format!("at least {}, which {} is", pair[0].1, pair[0].0),
            );
        }
    }
    match data.distribution {
        Distribution::Varying if given.is_empty() => {
            problems.warn(
                "data.distribution",
                "data.mean, data.p95 or data.max as well",
            );
        }
        Distribution::Fixed if !given.is_empty() => {
            problems.warn(
                "data.distribution",
                "varying or padded-to-max, where lengths are given",
            );
        }
        _ => {}
    }
    if data.distribution == Distribution::Varying
        && data.max > sequence
        && !data.packing
        && is_text(case)
    {
        let expected = format!(
            "at least {}, which data.max is: longer samples would be cut",
            data.max
        );
        problems.warn("data.sequence", expected);
    }
    if data.packing && data.padding_mask {
        problems.refuse(
            "data.padding_mask",
            "off: packed samples leave nothing to pad",
        );
    }
    if data.distribution == Distribution::PaddedToMax
        && !data.padding_mask
        && !data.packing
        && is_text(case)
    {
        problems.warn("data.padding_mask", "on: padded samples need a mask");
    }
}

/// Whether samples are sequences of tokens.
fn is_text(case: &Case) -> bool {
    let of_tokens = |category| {
        matches!(
            category,
            ModelCategory::Decoders
                | ModelCategory::Encoders
                | ModelCategory::EncoderDecoders
                | ModelCategory::VisionLanguage
                | ModelCategory::Proteins
        )
    };
    case.listed_model()
        .is_some_and(|entry| of_tokens(entry.category))
}
