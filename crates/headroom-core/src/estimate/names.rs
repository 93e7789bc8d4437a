//! Checks the layer and parameter names of a scenario against its network.

use std::rc::Rc;

use super::Unsupported;
use super::engine::Engine;
use crate::nets::{Cx, Env, Libraries, construct};
use crate::tape::{Folding, Machine, Tape};
use headroom_base::order::distinct;
use headroom_scenario::{Case, Data, Lora, NameKind, Problem, Quantization, Training, settings};

/// Patterns that match nothing: adapter targets without a layer, frozen parts without a parameter. Empty if the scenario
/// has no names.
pub fn unmatched(case: &Case) -> Result<Vec<Problem>, Unsupported> {
    if has_names(&case.scenario.training) {
        parameters(case).map(|paths| unmatched_in(case, &paths))
    } else {
        Ok(Vec::new())
    }
}

const fn has_names(training: &Training) -> bool {
    let Training {
        lora,
        freeze,
        train_only,
        ..
    } = training;
    lora.is_some() || !freeze.is_empty() || !train_only.is_empty()
}

fn unmatched_in(case: &Case, paths: &[String]) -> Vec<Problem> {
    let Training {
        lora,
        freeze,
        train_only,
        ..
    } = &case.scenario.training;
    let mut found = Vec::new();
    if let Some(lora) = lora {
        let layers = layers(paths);
        let named = |target: &str| {
            let mut modules = paths.iter().filter_map(|path| path.strip_suffix(".weight"));
            modules.any(|module| Lora::names(target, module))
        };
        for target in &lora.targets {
            if !named(target) {
                found.push(Problem::unknown_name(
                    NameKind::Layer,
                    "training.lora.targets",
                    target,
                    layers.iter().copied().filter(adaptable),
                ));
            }
        }
        let excluded = lora
            .exclude
            .iter()
            .map(|part| ("training.lora.exclude", part));
        // A tied head has no parameter of its own until it is copied.
        let copied = lora
            .modules_to_save
            .iter()
            .filter(|name| *name != "lm_head")
            .map(|part| ("training.lora.modules_to_save", part));
        let excluded = excluded.chain(copied);
        found.extend(excluded.filter_map(|(field, part)| missing(field, part, paths)));
    }
    let frozen = freeze.iter().map(|part| ("training.freeze", part));
    let trained = train_only.iter().map(|part| ("training.train_only", part));
    found.extend(
        frozen
            .chain(trained)
            .filter_map(|(field, part)| missing(field, part, paths)),
    );
    found
}

/// Settings that run but are most likely mistakes, such as names that match nothing.
pub(super) fn warnings(case: &Case) -> Vec<Problem> {
    let mut all = case.scenario.warnings();
    let training = &case.scenario.training;
    let is_quantized = training.quantization != Quantization::None;
    if has_names(training) || is_quantized {
        let paths = parameters(case).unwrap_or_default();
        all.extend(unmatched_in(case, &paths));
        all.extend(unquantized_experts(case, &paths).filter(|_| is_quantized));
    }
    all
}

/// A quantized base of whose experts nothing is quantized: `replace_with_bnb_linear` (transformers/integrations/bitsandbytes.py)
/// takes linear layers, and since transformers 5 a layer's experts are one parameter of three dimensions.
fn unquantized_experts(case: &Case, paths: &[String]) -> Option<Problem> {
    let whole = |path: &String| path.contains(".experts.") && !path.ends_with(".weight");
    let field = "training.quantization";
    let expected = "the experts to stay in 16 bits: transformers 5 keeps those of a layer in one tensor, and only linear \
                    layers are quantized";
    paths.iter().any(whole).then(|| {
        let value = settings::find(field).map(|setting| setting.get(case.scenario));
        Problem::new(field, value.unwrap_or_default(), expected)
    })
}

/// Why nothing is trained: a run without gradients is no training run.
pub(super) fn nothing_trained(case: &Case) -> Unsupported {
    let scenario = case.scenario;
    let why = unmatched(case).ok().and_then(|all| all.into_iter().next());
    let problem = why.unwrap_or_else(|| {
        let field = match &scenario.training {
            Training { lora: Some(_), .. } => "training.lora.targets",
            Training { freeze, .. } if !freeze.is_empty() => "training.freeze",
            _ => "training.train_only",
        };
        let value = settings::find(field).map(|setting| setting.get(scenario));
        let expected = "a value that leaves at least one parameter trainable";
        Problem::new(field, value.unwrap_or_default(), expected)
    });
    Unsupported::NothingTrained(problem)
}

fn missing(field: &str, part: &str, paths: &[String]) -> Option<Problem> {
    let matches = paths.iter().any(|path| path.contains(part));
    (!matches).then(|| {
        let parts = distinct(paths.iter().flat_map(|path| path.split('.')));
        let named = parts
            .iter()
            .copied()
            .filter(|part| !part.starts_with(|c: char| c.is_ascii_digit()));
        Problem::unknown_name(NameKind::Parameter, field, part, named)
    })
}

/// The names of a decoder's linear layers except its head: PEFT's `all-linear`.
pub fn linear_layers(case: &Case) -> Result<Vec<String>, Unsupported> {
    const OTHERS: &[&str] = &[
        "norm", "ln", "embed", "wte", "wpe", "head", "router", "rotary", "conv", "embd",
    ];
    let paths = parameters(case)?;
    let plain =
        |layer: &&str| *layer != "gate" && !OTHERS.iter().any(|other| layer.contains(other));
    Ok(layers(&paths)
        .into_iter()
        .filter(plain)
        .map(String::from)
        .collect())
}

/// The projections of a network's attention, which adapters are put on most; empty if it names them otherwise. Of
/// `TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING` in peft/utils/constants.py and of diffusers' training scripts.
pub fn attention_projections(case: &Case) -> Result<Vec<String>, Unsupported> {
    const NAMES: &[&[&str]] = &[
        &["q_proj", "k_proj", "v_proj", "o_proj"],
        &["q_proj", "k_proj", "v_proj", "out_proj"],
        &["to_q", "to_k", "to_v", "to_out.0"],
        &["q", "k", "v", "o"],
        &["query", "key", "value"],
        &["query_key_value"],
        &["c_attn"],
        &["Wqkv"],
        &["qkv_proj"],
        &["qkv"],
    ];
    let paths = parameters(case)?;
    let has = |name: &&str| {
        let mut modules = paths.iter().filter_map(|path| path.strip_suffix(".weight"));
        modules.any(|module| Lora::names(name, module))
    };
    let found = NAMES.iter().find(|names| names.iter().all(has));
    let found = found.copied().unwrap_or_default();
    Ok(found.iter().map(|name| (*name).to_string()).collect())
}

/// The names of modules with a weight matrix.
fn layers(paths: &[String]) -> Vec<&str> {
    let modules = paths.iter().filter_map(|path| path.strip_suffix(".weight"));
    distinct(modules.filter_map(|module| module.rsplit('.').next()))
}

fn adaptable(layer: &&str) -> bool {
    !layer.contains("norm") && !layer.starts_with("ln")
}

/// The paths of the network's parameters and buffers, without adapters.
fn parameters(case: &Case) -> Result<Vec<String>, Unsupported> {
    let scenario = case.scenario;
    let engine = Engine::of(case)?;
    let training = Training {
        lora: None,
        freeze: Vec::new(),
        train_only: Vec::new(),
        ..scenario.training.clone()
    };
    let data = Data {
        micro_batch: 1,
        ..scenario.data.clone()
    };
    let env = Env::new(training, Libraries::NEWEST, Folding::FromSecond);
    let cx = Cx::new(Tape::new(Machine::default()), Rc::new(env));
    let model = construct(engine.net(), &cx, &data);
    Ok(model
        .state()
        .iter()
        .map(|param| model.path(param))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::estimate;
    use headroom_base::units::Bytes;
    use headroom_scenario::settings::ValueType;
    use headroom_scenario::{Scenario, presets};

    fn changed(changes: &[(&str, &str)]) -> Scenario {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        scenario
    }

    #[test]
    fn an_unmatched_name_gets_a_suggestion() {
        #[track_caller]
        fn check(changes: &[(&str, &str)], expected: &[&str]) {
            let scenario = changed(changes);
            let found = unmatched(&Case::of(&scenario)).unwrap();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
        let llama = ("model", "llama-3.2-1b");
        check(&[llama], &[]);
        check(&[llama, ("lora", "on"), ("freeze", "embed_tokens")], &[]);
        check(
            &[llama, ("lora_targets", "q_proj,o_porj")],
            &[
                "training.lora.targets is `o_porj`; expected a layer of the model; did you mean o_proj?",
            ],
        );
        check(
            &[("lora_targets", "query")],
            &[
                "training.lora.targets is `query`; expected a layer of the model: c_attn, c_fc, c_proj, wpe, wte",
            ],
        );
        check(
            &[("freeze", "wte,layer.0"), ("train_only", "atn")],
            &[
                "training.freeze is `layer.0`; expected part of a parameter's path, such as attn",
                "training.train_only is `atn`; expected part of a parameter's path; did you mean attn?",
            ],
        );
    }

    #[test]
    fn a_run_that_trains_nothing_is_refused() {
        let check = |changes: &[(&str, &str)], expected: &str| {
            let refused = estimate(&changed(changes)).unwrap_err();
            assert_eq!(refused.to_string(), expected);
        };
        check(
            &[("lora_targets", "q_proj")],
            "nothing is trained: training.lora.targets is `q_proj`; expected a layer of the model; did you mean c_proj?",
        );
        check(
            &[("freeze", "transformer")],
            "nothing is trained: training.freeze is `transformer`; expected a value that leaves at least one parameter trainable",
        );
    }

    #[test]
    fn every_field_at_its_ends_is_estimated_or_refused() {
        let small = changed(&[
            ("model", "llama-3.2-1b"),
            ("dims", "layers=2,vocab=512"),
            ("seq", "64"),
            ("mb", "2"),
        ]);
        for setting in settings::all() {
            let values: Vec<String> = match setting.value_type {
                ValueType::Whole { low, high } => {
                    [low, low + 1, high].map(|value| value.to_string()).into()
                }
                ValueType::Number { low, high } => {
                    [low, high].map(|value| value.to_string()).into()
                }
                ValueType::Switch => ["on", "off"].map(String::from).into(),
                ValueType::Choice(choices) => {
                    choices.iter().map(|choice| choice.id.into()).collect()
                }
                _ => vec![setting.get(&small)],
            };
            for value in values {
                let mut scenario = small.clone();
                if setting.set(&mut scenario, &value).is_err() {
                    continue;
                }
                let refused = scenario.check();
                let needed = crate::estimate::quick_peak(&scenario);
                let fine = needed.is_ok_and(|bytes| bytes > Bytes::ZERO);
                assert!(fine || !refused.is_empty(), "{} {value}", setting.path);
            }
        }
    }

    #[test]
    fn presets_name_existing_layers() {
        for preset in presets::all() {
            let scenario = preset.scenario();
            let found = unmatched(&Case::of(&scenario)).unwrap();
            assert_eq!(found, vec![], "{}", preset.id);
        }
    }
}
