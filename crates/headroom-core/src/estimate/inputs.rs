//! The tensors of a micro-batch: the arguments of the model's forward function.

use std::rc::Rc;

use super::Unsupported;
use super::engine::Engine;
use crate::nets::{Cx, Env, Libraries};
use crate::tape::{Folding, Machine, Tape};
use headroom_scenario::{Case, Training};

/// One input tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The name of the argument, such as `input_ids`.
    pub name: &'static str,
    /// Its shape for one micro-batch.
    pub shape: Vec<u64>,
    /// Floating point; the others are integer indices.
    pub is_floating: bool,
}

/// The tensors of a micro-batch, in the order of their creation.
pub fn inputs(case: &Case) -> Result<Vec<Input>, Unsupported> {
    let scenario = case.scenario;
    let engine = Engine::of(case)?;
    let training = Training {
        // In another memory format an image would be a copy.
        channels_last: false,
        ..scenario.training.clone()
    };
    let env = Env::new(training, Libraries::NEWEST, Folding::Nothing);
    let tape = Tape::new(Machine::default());
    let cx = Cx::new(tape.clone(), Rc::new(env));
    let batch = engine.net().batch(&cx, &scenario.data);
    let tensors: Vec<_> = batch
        .iter()
        .map(|tensor| (tensor.shape().to_vec(), tensor.dtype().is_floating()))
        .collect();
    drop((batch, cx));
    let trace = tape.finish();
    let names = trace
        .storages
        .iter()
        .map(|storage| trace.source(storage).op);
    let named = names.zip(tensors);
    Ok(named
        .map(|(name, (shape, is_floating))| Input {
            name,
            shape,
            is_floating,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::presets;

    #[test]
    fn inputs_have_the_names_and_shapes_that_the_model_takes() {
        #[track_caller]
        fn check(preset: &str, expected: &str) {
            let scenario = presets::find(preset).unwrap().scenario();
            let found = inputs(&Case::of(&scenario)).unwrap();
            let shown: Vec<String> = found
                .iter()
                .map(|input| format!("{} {:?}", input.name, input.shape))
                .collect();
            assert_eq!(shown.join(", "), expected);
        }
        check(
            "bert-base-8gb",
            "input_ids [32, 128], labels [32, 128], position_ids [32, 128], attention_mask [32, 128]",
        );
        check(
            "whisper-small-16gb",
            "labels [4, 448], input_features [4, 80, 3000]",
        );
        check("resnet-50-16gb", "image [128, 3, 224, 224], labels [128]");
    }
}
