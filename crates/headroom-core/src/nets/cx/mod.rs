//! Where a forward function stands: its module path, its parameters, and how it is run.

mod checkpoint;
mod context;
mod layers;
mod params;
mod split;
mod stage;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::libraries::Libraries;
use super::net::{Net, Output};
use crate::parallel::{Role, Unwrapped, Wrapper};
use crate::tape::{DType, Folding, Scope, Tape, Tensor};
pub use checkpoint::Region;
pub use context::Context;
use headroom_scenario::{Compile, CompileMode, Precision, Training};
use params::Named;
pub use split::{Plan, Split, TensorParallel};
pub use stage::{Stage, Stages};

/// How a network is run; the same for all its modules.
#[derive(Debug)]
pub struct Env {
    pub training: Training,
    pub libraries: Libraries,
    /// The type weights are kept in.
    pub weights: DType,
    /// The type that autocast lowers to, where it is on.
    pub autocast: Option<DType>,
    /// Which equal layers are run once for all.
    pub folding: Folding,
    pub tensor: TensorParallel,
    /// GPUs over which the experts of a layer are divided.
    pub experts: u64,
    /// Whether a layer has divided its experts so.
    pub divides_experts: Rc<Cell<bool>>,
    pub stages: Rc<Stages>,
    pub context: Context,
    /// Of many passes alike, as over the tokens that are sampled, only those are run that decide the peak.
    pub brief: bool,
    /// What a loop that computes its own loss calls by a name until it binds the name again.
    pub named: Rc<RefCell<Vec<Tensor>>>,
    /// What modules keep as attributes from a step to the next.
    pub lasting: Rc<RefCell<Vec<Option<Tensor>>>>,
    /// What stands around the model and its modules.
    pub wrapper: Rc<dyn Wrapper>,
    /// The most outputs and inputs of any adapted layer, for adapters that share matrices among layers.
    pub widest: Rc<Cell<[u64; 2]>>,
    /// The parameters and buffers of each module, by its scope.
    params: Rc<RefCell<Vec<Named>>>,
    /// Modules whose own weight has made way for another's.
    tied: Rc<RefCell<Vec<Scope>>>,
}

impl Env {
    /// Whether copies of modules are trained beside adapters.
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
            tensor: TensorParallel::ALONE,
            experts: 1,
            divides_experts: Rc::default(),
            stages: Rc::default(),
            context: Context::ALONE,
            brief: false,
            named: Rc::default(),
            lasting: Rc::default(),
            wrapper: Rc::new(Unwrapped),
            widest: Rc::default(),
            params: Rc::default(),
            tied: Rc::default(),
        }
    }
}

impl Env {
    /// The same with something around the model.
    pub fn wrapped(self, wrapper: Rc<dyn Wrapper>) -> Self {
        Self {
            autocast: self.autocast.filter(|_| wrapper.keeps_autocast()),
            wrapper,
            ..self
        }
    }
}

/// A module's view of the run.
#[derive(Clone, Debug)]
pub struct Cx {
    pub tape: Tape,
    pub env: Rc<Env>,
    scope: Scope,
    /// The module is frozen, whatever its path.
    frozen: bool,
    /// It checkpoints in evaluation mode too.
    in_any_mode: bool,
}

impl Cx {
    pub fn new(tape: Tape, env: Rc<Env>) -> Self {
        let scope = tape.scope();
        Self {
            tape,
            env,
            scope,
            frozen: false,
            in_any_mode: false,
        }
    }

    /// The same place in a part of the model that is kept and trained by rules of its own.
    pub fn part(&self, weights: DType, change: impl FnOnce(&mut Training)) -> Self {
        let mut training = self.env.training.clone();
        change(&mut training);
        let env = Env {
            training,
            libraries: self.env.libraries,
            weights,
            autocast: self.env.autocast,
            folding: self.env.folding,
            tensor: self.env.tensor,
            experts: self.env.experts,
            divides_experts: self.env.divides_experts.clone(),
            wrapper: self.env.wrapper.clone(),
            stages: self.env.stages.clone(),
            context: self.env.context,
            brief: self.env.brief,
            params: self.env.params.clone(),
            tied: self.env.tied.clone(),
            named: self.env.named.clone(),
            lasting: self.env.lasting.clone(),
            widest: self.env.widest.clone(),
        };
        Self {
            env: Rc::new(env),
            ..self.clone()
        }
    }

    /// The same place with something else around its modules.
    pub fn around(&self, wrapper: Rc<dyn Wrapper>) -> Self {
        let mut inner = self.part(self.env.weights, |_| ());
        if let Some(env) = Rc::get_mut(&mut inner.env) {
            env.wrapper = wrapper;
        }
        inner
    }

    /// Binds the script's names to what the model has returned, where it keeps them: what they stood for a step before
    /// goes now, before the loss.
    pub fn bind(&self, outputs: &[Tensor]) {
        if self.env.training.keep_outputs && !self.tape.declaring() {
            let before = self.env.named.replace(outputs.to_vec());
            drop(before);
        }
    }

    /// Runs the whole model on a batch, as a script calls it: under the run's autocast and in what stands around the model.
    pub fn call(&self, net: &dyn Net, batch: &[Tensor]) -> Output {
        if net.computes_loss_outside() {
            return self.autocast(|| net.forward(self, batch));
        }
        let run = |batch: Vec<Tensor>| {
            let Output { loss, held } = net.forward(self, &batch);
            std::iter::once(loss).chain(held).collect()
        };
        let whole = || {
            if net.calls_its_models() {
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

    /// Runs a compiled region in the run's mode.
    fn compiled(&self, body: &dyn Fn() -> Vec<Tensor>) -> Vec<Tensor> {
        let budget = self.env.training.memory_budget;
        let run = || {
            if budget <= 0.0 {
                self.tape.compiled_to_recompute(body)
            } else if budget < 1.0 {
                self.tape.compiled_within(body, budget)
            } else {
                self.tape.compiled(body)
            }
        };
        match self.env.training.compile_mode {
            CompileMode::Default => run(),
            CompileMode::ReduceOverhead => self.tape.in_graph_pool(run),
        }
    }

    /// A loss, compiled where the trainer compiles it beside the layers.
    pub fn compiled_loss(&self, loss: impl Fn() -> Tensor) -> Tensor {
        let layers = self.env.training.compile == Compile::Layers;
        if !layers || !self.env.libraries.compiles_loss {
            return loss();
        }
        let outputs = self.compiled(&|| vec![loss()]);
        outputs.into_iter().next().unwrap_or_else(loss)
    }

    /// Runs `body` as the model that wrappers are put around.
    pub fn as_model(
        &self,
        inputs: Vec<Tensor>,
        body: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.env
            .wrapper
            .module(Role::Model, self.scope, inputs, body)
    }

    /// Runs `body` as the experts of a layer.
    pub fn as_experts(
        &self,
        inputs: Vec<Tensor>,
        body: &dyn Fn(Vec<Tensor>) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.env.divides_experts.set(true);
        self.env
            .wrapper
            .module(Role::Experts, self.scope, inputs, body)
    }

    /// What this linear layer has computed from its weight, as the wrapper around it hands it on.
    pub(in crate::nets) fn computed(&self, output: Tensor) -> Tensor {
        self.env.wrapper.computed(self.scope, output)
    }

    /// Runs `body` under the autocast of the run, where it has one.
    pub fn autocast<T>(&self, body: impl FnOnce() -> T) -> T {
        self.tape.autocast(self.env.autocast, body)
    }

    /// Runs `body` as the child module `name`.
    pub fn module<T>(&self, name: &'static str, body: impl FnOnce(&Self) -> T) -> T {
        self.inside(name, None, body)
    }

    /// Runs `body`, which enters the child module `name` by itself, as what it is to a wrap policy.
    pub fn as_role(
        &self,
        role: Role,
        name: &'static str,
        input: &Tensor,
        body: impl Fn(&Tensor) -> Tensor,
    ) -> Tensor {
        let scope = self.tape.scope_in(self.scope, name, None);
        let run = |given: Vec<Tensor>| given.iter().map(&body).collect();
        let outputs = self
            .env
            .wrapper
            .module(role, scope, vec![input.clone()], &run);
        outputs.into_iter().next().unwrap_or_else(|| input.clone())
    }

    /// Runs `body` as the module `name.index` of a list.
    pub fn list_item<T>(
        &self,
        name: &'static str,
        index: usize,
        body: impl FnOnce(&Self) -> T,
    ) -> T {
        self.inside(name, Some(index as u32), body)
    }

    /// Runs `body` as a child module whose name comes from outside the program.
    pub fn module_named<T>(&self, name: &str, body: impl FnOnce(&Self) -> T) -> T {
        let scope = self.tape.named_scope_in(self.scope, name);
        let outer = self.tape.enter(scope);
        let result = body(&Self {
            scope,
            ..self.clone()
        });
        self.tape.enter(outer);
        result
    }

    /// The model itself, for what its modules share.
    pub fn root(&self) -> Self {
        Self {
            scope: Scope::default(),
            ..self.clone()
        }
    }

    /// The most outputs and inputs of any adapted layer, as the model said, or at least these.
    pub fn widest(&self, least: [u64; 2]) -> [u64; 2] {
        let [outputs, inputs] = self.env.widest.get();
        [outputs.max(least[0]), inputs.max(least[1])]
    }

    /// This module with its parameters frozen.
    pub fn freezing(&self) -> Self {
        Self {
            frozen: true,
            ..self.clone()
        }
    }

    /// This module where it checkpoints whatever the mode, as those of diffusers and timm do: they ask whether gradients are
    /// wanted at all.
    pub fn checkpointing_in_any_mode(&self) -> Self {
        Self {
            in_any_mode: true,
            ..self.clone()
        }
    }

    fn inside<T>(
        &self,
        name: &'static str,
        index: Option<u32>,
        body: impl FnOnce(&Self) -> T,
    ) -> T {
        let (child, outer) = self.entered(name, index);
        let result = body(&child);
        self.tape.enter(outer);
        result
    }

    /// The child module, which new memory now belongs to, and the module it belonged to before.
    #[inline(never)]
    fn entered(&self, name: &'static str, index: Option<u32>) -> (Self, Scope) {
        let scope = self.tape.scope_in(self.scope, name, index);
        let outer = self.tape.enter(scope);
        let child = Self {
            scope,
            ..self.clone()
        };
        (child, outer)
    }

    pub fn path(&self) -> String {
        self.tape.path(self.scope)
    }

    /// The rate of a dropout layer: none when dropout is switched off.
    pub fn rate(&self, p: f64) -> f64 {
        if self.env.training.dropout && !self.tape.evaluating() {
            p
        } else {
            0.0
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
    }
}
