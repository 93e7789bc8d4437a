//! `Net`, what every model is: the tensors of its batch, and a forward function over them.

use super::language_model::LanguageModel;
use super::text_encoder::TextEncoder;
use super::{Cx, ModelError, Plan, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Compile, Data, Training};

/// A model, as a training step runs it.
pub trait Net {
    /// The tensors of one micro-batch, allocated before forward.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor>;
    /// Runs the model on the tensors of `batch`, loss included.
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output;
    /// Whether a script calls it for predictions and computes the loss itself: wrappers are around the model alone.
    fn computes_loss_outside(&self) -> bool {
        false
    }
    /// Whether it calls a model, perhaps several, by itself: wrappers are around each of those calls.
    fn wraps_models_itself(&self) -> bool {
        false
    }
    /// How tensor parallelism splits its modules, with experts divided or not; `None` where its library has no plan for it.
    fn tensor_plan(&self, _divides_experts: bool) -> Option<Plan> {
        None
    }
    /// The model in the parts that trainers after pre-training call, where it is a language model.
    fn language_model(&self) -> Option<&dyn LanguageModel> {
        None
    }
    /// The model in the parts that heads of other tasks stand on, where it is an encoder of text.
    fn text_encoder(&self) -> Option<&dyn TextEncoder> {
        None
    }
    /// Runs before the batches of a step are loaded: samples completions.
    fn before_step(&self, _cx: &Cx, _data: &Data) {}
    /// Whether the loop that trains it puts a micro-batch on the device when its turn comes, instead of all of a step first.
    fn loads_batches_in_turn(&self) -> bool {
        false
    }
    /// Whether its one list of layers can be cut into a pipeline's stages.
    fn has_stages(&self) -> bool {
        false
    }
    /// Whether it is Megatron-Core's, which trains it in wrappers of its own.
    fn is_megatron_core(&self) -> bool {
        false
    }
    /// Whether its attention runs under context parallelism.
    fn supports_context_parallel(&self) -> bool {
        false
    }
    /// Whether batches of this shape are run: a recurrent net runs every position of a sequence by itself, a recorded one
    /// what was recorded.
    fn supports(&self, _data: &Data, _training: &Training) -> Result<(), ModelError> {
        Ok(())
    }
}

/// What a forward function returns.
#[derive(Debug)]
pub struct Output {
    /// The loss that backward starts from.
    pub loss: Tensor,
    /// The other tensors of the output object, such as logits: alive as long as a script keeps the output.
    pub held: Vec<Tensor>,
}

impl Output {
    /// The output for a batch that lacks tensors the model takes: a loss without elements.
    pub fn empty(cx: &Cx) -> Self {
        Self {
            loss: cx.tape.empty("loss", [0; 0], DType::F32),
            held: Vec::new(),
        }
    }
}

/// Builds the network of an architecture from its sizes.
pub type Build = fn(&Sizes) -> Result<Box<dyn Net>, ModelError>;

impl Cx {
    /// Runs the model on a batch, as a script calls it: under the run's autocast and through the model's wrapper.
    pub fn call(&self, net: &dyn Net, batch: &[Tensor]) -> Output {
        if net.computes_loss_outside() {
            return self.autocast(|| net.forward(self, batch));
        }
        let run = |batch: Vec<Tensor>| {
            let Output { loss, held } = net.forward(self, &batch);
            std::iter::once(loss).chain(held).collect()
        };
        let whole = || {
            if net.wraps_models_itself() {
                run(batch.to_vec())
            } else {
                self.as_model(batch.to_vec(), &run)
            }
        };
        let outputs = self.autocast(|| match self.env.training.compile {
            Compile::Model => self.compiled(&whole),
            Compile::ModelAgain => self.tape.compiled_to_recompute(&whole),
            Compile::Nothing | Compile::Layers => whole(),
        });
        let mut outputs = outputs.into_iter();
        match outputs.next() {
            Some(loss) => Output {
                loss,
                held: outputs.collect(),
            },
            None => Output::empty(self),
        }
    }
}
