//! Sentence Transformers' `model.fit(…)` (its trainer's form is read as a trainer). Defaults are those of `fit_mixin.py` and
//! `cross_encoder/fit_mixin.py`.

use headroom_scripts::python::{Call, Module, Value};

use super::{calls, launched};
use crate::fact::Fact;
use crate::facts::Facts;
use crate::program::{Form, Program, Source};
use crate::words::{
    Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "sentence-transformers",
    name: "Sentence Transformers",
    read,
};

const DEFAULT: &str = "Sentence Transformers' fit";

fn read(source: &Source) -> Option<Facts> {
    let Form::Python { module, launch } = &source.form else {
        return None;
    };
    let classes = ["SentenceTransformer", "CrossEncoder", "SparseEncoder"];
    let fit = module
        .calls
        .iter()
        .find(|call| calls::is_method(module, call, &classes, "fit"))?;
    let made = calls::maker(module, fit);
    let cross = made.map_or(fit.path.contains("CrossEncoder"), |call| {
        call.path.ends_with("CrossEncoder")
    });
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(
        if cross {
            Task::Reranking
        } else {
            Task::Contrastive
        },
        "fit",
    );
    facts.model = made.map_or_else(
        || Fact::Unknown("the model is made elsewhere".into()),
        |call| model(module, call),
    );
    facts.micro_batch = batch(module);
    facts.accumulation = Fact::default_of(1, DEFAULT);
    facts.sequence = length(module, made);
    let keys = calls::keys(fit);
    facts.compute = keys
        .switch("use_amp")
        .map(|on| {
            if on {
                Compute::Fp16Autocast
            } else {
                Compute::Fp32
            }
        })
        .or_default(Compute::Fp32, DEFAULT);
    facts.weights = Fact::default_of(Weights::Fp32, DEFAULT);
    facts.adapter = Fact::default_of(None, DEFAULT);
    facts.trained = Fact::default_of(Trained::All, DEFAULT);
    facts.optimizer = keys
        .text("optimizer_class")
        .map(|name| {
            name.rsplit('.')
                .next()
                .unwrap_or(&name)
                .to_ascii_lowercase()
        })
        .or_default("adamw".into(), DEFAULT);
    facts.checkpointing = Fact::default_of(Checkpointing::Off, DEFAULT);
    facts.evaluation = Fact::read(keys.has("evaluator"), "evaluator");
    if let Some(launch) = launch {
        launched::counts(launch, &mut facts);
    }
    if facts.strategy.is_unsaid() {
        facts.gpus = Fact::default_of(1, DEFAULT);
        facts.strategy = Fact::default_of(Strategy::from(DataParallel::None), DEFAULT);
    }
    facts.offload = std::mem::take(&mut facts.offload).or_default(Offload::None, DEFAULT);
    Some(facts)
}

/// The first argument of the class, or of the `models.Transformer` that it is put together from.
fn model(module: &Module, made: &Call) -> Fact<String> {
    let transformer = module
        .calls
        .iter()
        .find(|call| call.path.ends_with("models.Transformer"));
    let named = |call: &Call| {
        let value = call
            .args
            .first()
            .or_else(|| calls::named(call, "model_name_or_path"))
            .or_else(|| calls::named(call, "model_name"))?;
        match value {
            Value::Text(name) => Some(Fact::read(name.clone(), call.path.clone())),
            Value::Unknown(why) => Some(Fact::Unknown(why.clone())),
            _ => None,
        }
    };
    let found = named(made).or_else(|| named(transformer?));
    found
        .unwrap_or_else(|| Fact::Unknown("the model is made elsewhere".into()))
        // A name alone is one of its own models.
        .map(|name| {
            if name.contains(['/', '\\', '.']) {
                name
            } else {
                format!("sentence-transformers/{name}")
            }
        })
}

fn batch(module: &Module) -> Fact<u64> {
    let loader = module
        .calls
        .iter()
        .find(|call| call.path.ends_with("DataLoader"));
    loader.map_or(Fact::Unsaid, |call| {
        let keys = calls::keys(call);
        keys.whole("batch_size")
            .or_default(1, "PyTorch's DataLoader")
    })
}

fn length(module: &Module, made: Option<&Call>) -> Fact<u64> {
    let assigned = module
        .assigned
        .iter()
        .find_map(|(name, value)| match value {
            Value::Int(length) if name.ends_with("max_seq_length") => u64::try_from(*length).ok(),
            _ => None,
        });
    let transformer = module
        .calls
        .iter()
        .find(|call| call.path.ends_with("models.Transformer"));
    let given = made
        .into_iter()
        .chain(transformer)
        .map(calls::keys)
        .map(|keys| keys.whole("max_seq_length").or(keys.whole("max_length")))
        .find(|length| !length.is_unsaid());
    let assigned = assigned.map_or(Fact::Unsaid, |length| Fact::read(length, "max_seq_length"));
    assigned
        .or(given.unwrap_or_default())
        .or_default(512, "the encoder's own max_seq_length")
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn batch_and_length_are_those_of_its_loader_and_model() {
        check(
            "train.py",
            "from sentence_transformers import SentenceTransformer, losses\n\
             from torch.utils.data import DataLoader\n\
             model = SentenceTransformer('all-MiniLM-L6-v2')\n\
             model.max_seq_length = 200\n\
             loader = DataLoader([], shuffle=True, batch_size=48)\n\
             model.fit(train_objectives=[(loader, losses.CosineSimilarityLoss(model))], epochs=1, use_amp=True)\n",
            &[
                ("outcome", "estimate"),
                ("model", "sentence-transformers/all-MiniLM-L6-v2"),
                ("micro_batch", "48"),
                ("sequence", "200"),
                ("compute", "fp16 autocast"),
                ("task", "contrastive"),
            ],
        );
    }
}
