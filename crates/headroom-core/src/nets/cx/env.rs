//! How a network is run, and what its modules share from pass to pass.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use smallvec::SmallVec;

use super::groups::Groups;
use crate::nets::language_model::Shown;
use crate::nets::libraries::Libraries;
use crate::parallel::{Unwrapped, Wrapper};
use crate::tape::{DType, Folding, Param, Scope, Tensor};
use headroom_scenario::{Compile, Precision, Training};

/// How a network is run; the same for all its modules.
#[derive(Clone, Debug)]
pub struct Env {
    /// The scenario's training settings.
    pub training: Training,
    /// The rules of the versions of the libraries that the model comes from.
    pub libraries: Libraries,
    /// The dtype of the weights.
    pub weights: DType,
    /// The dtype of `torch.autocast`, where it is on.
    pub autocast: Option<DType>,
    /// Which equal layers are run once for all.
    pub folding: Folding,
    /// The groups of GPUs over which the model is split.
    pub groups: Groups,
    /// Of many equal passes, as over sampled tokens, only those that decide the peak are run.
    pub peak_only: bool,
    /// The wrapper of the model and its modules (DDP, FSDP, ZeRO).
    pub wrapper: Rc<dyn Wrapper>,
    /// What modules hand to each other or keep between passes.
    pub shared: Rc<Shared>,
}

/// What the modules of a model share.
#[derive(Debug, Default)]
pub struct Shared {
    /// What the script's loop binds to names: alive until it binds them again.
    pub loop_variables: RefCell<Vec<Tensor>>,
    /// What modules keep as attributes from step to step.
    pub persistent_attributes: RefCell<Vec<Option<Tensor>>>,
    /// Tensors of the batches that require a gradient: nobody clears it, so it goes with the batch.
    pub batch_leaves: RefCell<Vec<Tensor>>,
    /// Whether a layer has divided its experts over GPUs.
    pub divides_experts: Cell<bool>,
    /// The most outputs and inputs of any adapted layer, for adapters that share matrices among layers.
    pub widest: Cell<[u64; 2]>,
    /// The pictures that the tokens of a task's passes have.
    pub pictures: RefCell<Option<Shown>>,
    /// Bytes of frozen weights that wait on the host, where their blocks change places with others.
    pub waiting: RefCell<Vec<(Rc<Param>, u64)>>,
    /// The parameters and buffers of each module, by its scope.
    pub(super) params: RefCell<Vec<Named>>,
    /// Modules whose own weight was replaced by another's.
    pub(super) tied: RefCell<Vec<Scope>>,
}

/// The parameters and buffers of a module, by name.
pub(super) type Named = SmallVec<[(&'static str, Rc<Param>); 2]>;

impl Env {
    /// Whether copies of modules are trained besides adapters.
    pub fn trains_copies(&self) -> bool {
        let lora = self.training.lora.as_ref();
        lora.is_some_and(|lora| !lora.modules_to_save.is_empty())
    }

    /// The type that such a copy is kept in.
    pub fn copies_of(&self, dtype: DType) -> DType {
        let whole = self.libraries.trains_in_fp32 && self.training.precision != Precision::Bf16;
        if whole && dtype.is_half() {
            DType::F32
        } else {
            dtype
        }
    }

    /// A run on one GPU without a wrapper. Settings that single out one of the equal layers turn folding off.
    pub fn new(training: Training, libraries: Libraries, folding: Folding) -> Self {
        let (weights, autocast) = dtypes(training.precision);
        // A pattern with a number may single out one layer of a row.
        let numbered = |patterns: &[String]| {
            patterns
                .iter()
                .any(|part| part.bytes().any(|byte| byte.is_ascii_digit()))
        };
        let singled = numbered(&training.freeze)
            || numbered(&training.train_only)
            || training
                .lora
                .as_ref()
                .is_some_and(|lora| numbered(&lora.exclude) || numbered(&lora.modules_to_save));
        Self {
            folding: if singled || training.compile != Compile::Nothing {
                Folding::Nothing
            } else {
                folding
            },
            training,
            libraries,
            weights,
            autocast,
            groups: Groups::default(),
            peak_only: false,
            wrapper: Rc::new(Unwrapped),
            shared: Rc::default(),
        }
    }

    /// The same with something around the model.
    pub fn wrapped(self, wrapper: Rc<dyn Wrapper>) -> Self {
        Self {
            autocast: self
                .autocast
                .filter(|_| wrapper.properties().keeps_autocast),
            wrapper,
            ..self
        }
    }
}

/// The type weights are kept in, and the one autocast lowers to.
fn dtypes(precision: Precision) -> (DType, Option<DType>) {
    match precision {
        Precision::Fp32 => (DType::F32, None),
        Precision::Fp64 => (DType::F64, None),
        Precision::AmpBf16 => (DType::F32, Some(DType::BF16)),
        Precision::AmpFp16 => (DType::F32, Some(DType::F16)),
        Precision::Bf16 => (DType::BF16, None),
        Precision::Fp16 => (DType::F16, None),
        Precision::AmpBf16OnBf16 => (DType::BF16, Some(DType::BF16)),
        Precision::AmpFp16OnFp16 => (DType::F16, Some(DType::F16)),
    }
}
