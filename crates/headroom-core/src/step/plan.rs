//! How much of a training run is made, and what is recorded of it.

use super::ddp::Ddp;
use super::optimizer;
use crate::nets::Libraries;
use crate::parallel::World;
use crate::tape::{Folding, Machine};
use headroom_scenario::{Kernels, Parallelism, Training};

/// The number of micro-batches that shows every memory state, and how the allocator's blocks settle.
pub(crate) const MOST_PASSES: u64 = 8;

/// So few show every state where more would be too much work: the first makes the gradients, the second adds to them, and the
/// last completes them.
pub(crate) const FEWEST_PASSES: u64 = 3;

/// How much of a training run is made, and what is recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, free of the others"
)]
pub struct RunPlan {
    /// How many optimizer steps are run.
    pub steps: u32,
    /// Micro-batches of each step that are run, at most; the first of them and the last. The others hold their inputs.
    pub passes: u64,
    /// The optimizer's states exist before the first step, so that one step shows what every later one needs.
    pub warm: bool,
    /// Which equal layers are run once for all.
    pub folding: Folding,
    /// Bytes that vLLM holds on the same card, with its weights and its cache; 0 where it does not run there.
    pub vllm: VllmShare,
    /// The run goes through a `TorchDispatchMode`, as recorders use it: every result has a wrapper in Python, which keeps the
    /// engine from summing gradients in place.
    pub dispatched: bool,
    /// The job of which this is one rank.
    pub world: World,
    /// Samples of an evaluation after the last step; 0 for none.
    pub evaluation: u64,
    /// What that evaluation keeps.
    pub evaluated: Evaluated,
    /// Whether modules train or evaluate while the model is trained.
    pub mode: ModelMode,
    /// After the last step a checkpoint's weights are loaded onto the device next to the model's own, as when a run is resumed.
    pub resumes: bool,
    /// What is recorded besides memory.
    pub detail: Detail,
    /// When the last step ends, the script's variables still hold its batch and the last parameter's gradient, which it has looked
    /// at: for recorded runs whose script did so.
    pub looks_at_gradients: bool,
    /// Of many equal passes, as over sampled tokens, only those that decide the peak are run.
    pub peak_only: bool,
    /// The rules of the versions of the libraries that the model comes from.
    pub libraries: Libraries,
}

/// What was last called on the model: `model.train()` or `model.eval()`. A script may leave out the first, forgotten or on
/// purpose: its modules then evaluate while it trains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelMode {
    /// `model.train()`.
    Train,
    /// `model.eval()`.
    Eval,
}

/// What an evaluation between two steps keeps of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluated {
    /// The loss, which is a number.
    Loss,
    /// The model's outputs.
    Outputs,
    /// The outputs, with the graph that made them: `torch.no_grad()` was forgotten.
    Graphs,
}

/// What vLLM holds on the training card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VllmShare {
    pub weights: u64,
    /// Keys and values, and what its passes need.
    pub cache: u64,
}

impl VllmShare {
    pub const NONE: Self = Self {
        weights: 0,
        cache: 0,
    };

    pub(crate) const fn is_none(self) -> bool {
        self.weights == 0 && self.cache == 0
    }

    /// The pool where something of so many bytes has made room for it.
    pub(crate) const fn less(self, bytes: u64) -> Self {
        Self {
            cache: self.cache.saturating_sub(bytes),
            weights: self
                .weights
                .saturating_sub(bytes.saturating_sub(self.cache)),
        }
    }
}

/// What is recorded of a run; each of these includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What memory does.
    Memory,
    /// Launches of kernels, for the time they take.
    Kernels,
    /// Shapes and types of tensors, and what saves them for backward.
    Tensors,
}

impl RunPlan {
    /// The first `steps` steps of a run.
    pub const fn first_steps(steps: u32) -> Self {
        Self {
            steps,
            passes: MOST_PASSES,
            warm: false,
            folding: Folding::FromSecond,
            vllm: VllmShare::NONE,
            dispatched: false,
            world: World::ALONE,
            evaluation: 0,
            evaluated: Evaluated::Loss,
            mode: ModelMode::Train,
            resumes: false,
            detail: Detail::Kernels,
            looks_at_gradients: false,
            peak_only: false,
            libraries: Libraries::NEWEST,
        }
    }

    /// A step like all later ones, in the shortest run that has one: with states there from the start it is the first, unless
    /// the script carries something else from step to step.
    pub fn steady_step(training: &Training, machine: Machine) -> Self {
        let carries = training.keep_outputs
            || training.zero_late
            || keeps_gradients(training, machine)
            || optimizer::leaves_gradients(training.optimizer);
        Self {
            warm: true,
            ..Self::first_steps(if carries { 2 } else { 1 })
        }
    }

    /// Whether backward does something else in the last layer than in those before it.
    fn last_differs(&self, training: &Training) -> bool {
        // The fused norms write over the gradient that arrives, and the last norm's is no layer's.
        let fused = training.kernels != Kernels::Library;
        // A reduction frees the input of the one before it, and before the last layer's there is none.
        let strategy = self.world.parallel.strategy;
        fused || matches!(strategy, Parallelism::Fsdp2 | Parallelism::Hsdp)
    }

    /// The folding to try first.
    pub(super) fn folding_for(&self, training: &Training) -> Folding {
        if !foldable(training) || Ddp::of(&self.world).is_some_and(|ddp| ddp.acts_in_backward()) {
            Folding::Nothing
        } else if self.folding == Folding::FromSecond && self.last_differs(training) {
            Folding::Between
        } else {
            self.folding
        }
    }
}

/// Whether equal layers may be run once for all: not where what they do depends on which of them is run, or when.
pub(crate) fn foldable(training: &Training) -> bool {
    !training.optimizer_in_backward
        && training.checkpoint_every == 1
        && training.checkpoint_span == 1
        && training.checkpoint_first == 0
        && optimizer::folds(training.optimizer)
}

/// Whether `zero_grad` leaves gradients allocated, as zeros (`set_to_none=False`).
pub(super) const fn keeps_gradients(training: &Training, machine: Machine) -> bool {
    !training.zero_to_none || machine.torch.zeroes_gradients
}
