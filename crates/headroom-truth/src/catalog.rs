//! The catalogue checked against itself and against the forward functions.

use std::collections::BTreeMap;
use std::rc::Rc;

use headroom_catalog::{Gpu, ModelEntry, gpus, methods, models, stacks};
use headroom_core::network::{self as nets, Cx, Env, Libraries, Sizes, construct};
use headroom_core::network::{Folding, Machine, Tape};
use headroom_scenario::{Data, Training};

/// The state of the catalogue.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub gpus: usize,
    pub models: usize,
    /// Models whose forward function creates exactly their number of parameters.
    pub exact: Vec<&'static str>,
    pub mismatches: Vec<Mismatch>,
    /// Architectures without a forward function, with the number of their models; those are not offered.
    pub without_forward: BTreeMap<&'static str, usize>,
    /// Numbers that name no source, as `entry: number`.
    pub missing_sources: Vec<String>,
}

/// A model whose forward function creates another number of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub id: &'static str,
    pub arch: &'static str,
    pub expected: u64,
    /// Or why the forward function was not built.
    pub counted: Result<u64, String>,
}

/// Counts every model that has a forward function, and looks for a source of every number.
pub fn check() -> Report {
    let mut report = Report {
        gpus: gpus().len(),
        models: models().len(),
        missing_sources: missing_sources(),
        ..Report::default()
    };
    for model in models() {
        if !nets::has(model.arch) && model.graph.is_empty() {
            *report.without_forward.entry(model.arch).or_default() += 1;
            continue;
        }
        let counted = count(model);
        if counted == Ok(model.parameters) {
            report.exact.push(model.id);
        } else {
            report.mismatches.push(Mismatch {
                id: model.id,
                arch: model.arch,
                expected: model.parameters,
                counted,
            });
        }
    }
    report
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.mismatches.is_empty() && self.missing_sources.is_empty()
    }
}

/// The parameters that a model's forward function makes.
pub fn count(model: &ModelEntry) -> Result<u64, String> {
    let mut sizes = Sizes::from_entry(model);
    if sizes.is_set("headless") {
        sizes.set("head=none", 1);
    }
    if !model.graph.is_empty() {
        let graph = headroom_core::graph::shipped(model.id).ok_or("its graph is not here")?;
        return Ok(graph.parameters());
    }
    let net = nets::build(model.arch, &sizes).map_err(|error| error.to_string())?;
    let training = Training {
        dropout: false,
        ..Training::default()
    };
    let data = Data {
        micro_batch: 1,
        sequence: 16,
        padding_mask: false,
        ..Data::default()
    };
    let env = Env::new(training, Libraries::NEWEST, Folding::FromSecond);
    let cx = Cx::new(Tape::new(Machine::default()), Rc::new(env));
    Ok(nets::count(construct(&*net, &cx, &data).parameters()))
}

fn missing_sources() -> Vec<String> {
    let mut missing = Vec::new();
    for gpu in gpus() {
        for (name, number) in gpu.numbers() {
            if number.get().is_some() && Gpu::sources(number).next().is_none() {
                missing.push(format!("{}: {name}", gpu.id));
            }
        }
    }
    for stack in stacks() {
        for fact in stack.all_facts() {
            if fact.sources().next().is_none() {
                missing.push(format!("{}: {}", stack.id, fact.key));
            }
        }
    }
    for method in methods() {
        if method.sources().next().is_none() {
            missing.push(format!("{:?} {}", method.kind, method.id));
        }
    }
    for model in models() {
        if model.sources().next().is_none() {
            missing.push(format!("{}: sizes", model.id));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_catalog::model;

    #[track_caller]
    fn counts(id: &str, expected: Result<u64, &str>) {
        let counted = model(id).map(count);
        assert_eq!(counted, Some(expected.map_err(String::from)));
    }

    #[test]
    fn a_forward_function_creates_the_published_count() {
        counts("gpt2", Ok(124_439_808));
        counts("gpt2-xl", Ok(1_557_611_200));
        counts("llama-3.2-1b", Ok(1_235_814_400));
        counts("qwen3-0.6b", Ok(596_049_920));
    }

    #[test]
    fn a_missing_forward_function_is_reported() {
        let mut unheard_of = *model("gpt2").unwrap();
        unheard_of.arch = "unheard_of";
        let expected = "no forward function for the architecture `unheard_of`";
        assert_eq!(count(&unheard_of), Err(expected.into()));
    }
}
