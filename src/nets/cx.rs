//! Where a forward function stands: its module path, its parameters, and how it is run.

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::SmallVec;

use crate::estimate::Category;
use crate::scenario::{Checkpointing, Quantization, Training};
use crate::tape::{DType, Dims, Folding, Keep, Layout, Param, Scope, Tape, Tensor};

/// What a module holds, by name.
type Named = SmallVec<[(&'static str, Rc<Param>); 2]>;

/// How a network is run; the same for all its modules.
#[derive(Debug)]
pub struct Env {
    pub training: Training,
    /// The type weights are kept in.
    pub weights: DType,
    /// Which equal layers are run once for all.
    pub folding: Folding,
    /// What a loop that computes its own loss calls by a name until it binds the name again.
    pub named: Rc<RefCell<Vec<Tensor>>>,
    /// The parameters and buffers of each module, by its scope.
    params: Rc<RefCell<Vec<Named>>>,
    /// Modules whose own weight has made way for another's.
    tied: Rc<RefCell<Vec<Scope>>>,
}

impl Env {
    pub fn new(training: Training, weights: DType, folding: Folding) -> Self {
        // A pattern with a number may single out one layer of a row.
        let numbered = |patterns: &[String]| {
            patterns
                .iter()
                .any(|it| it.bytes().any(|byte| byte.is_ascii_digit()))
        };
        let singled = numbered(&training.freeze)
            || numbered(&training.train_only)
            || training
                .lora
                .as_ref()
                .is_some_and(|lora| numbered(&lora.exclude));
        Self {
            folding: if singled { Folding::Nothing } else { folding },
            training,
            weights,
            named: Rc::default(),
            params: Rc::default(),
            tied: Rc::default(),
        }
    }
}

/// A weight that is tied to another when this goes.
#[derive(Debug)]
pub struct TiedLater {
    tape: Tape,
    weight: Option<Tensor>,
}

impl Drop for TiedLater {
    fn drop(&mut self) {
        self.tape.setting_up(|| drop(self.weight.take()));
    }
}

/// What a layer of a list does to its state. Behind a pointer, so that the running of lists is compiled once and not
/// for each network: the page downloads every copy.
type Layer = dyn Fn(&Cx, &[Tensor]) -> Vec<Tensor>;

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
            weights,
            folding: self.env.folding,
            params: self.env.params.clone(),
            tied: self.env.tied.clone(),
            named: self.env.named.clone(),
        };
        Self {
            env: Rc::new(env),
            ..self.clone()
        }
    }

    /// Binds the script's names to what the model has returned, where it keeps them: what they stood for a step before
    /// goes now, before the loss.
    pub fn bind(&self, outputs: &[Tensor]) {
        if self.env.training.keep_outputs {
            let before = self.env.named.replace(outputs.to_vec());
            drop(before);
        }
    }

    /// Runs `body` as the child module `name`.
    pub fn within<T>(&self, name: &'static str, body: impl FnOnce(&Self) -> T) -> T {
        self.inside(name, None, body)
    }

    /// Runs `body` as the module `name.index` of a list.
    pub fn nth<T>(&self, name: &'static str, index: usize, body: impl FnOnce(&Self) -> T) -> T {
        self.inside(name, Some(index as u32), body)
    }

    /// Runs `body` as a child module whose name comes from outside the program.
    pub fn named<T>(&self, name: &str, body: impl FnOnce(&Self) -> T) -> T {
        let scope = self.tape.named_scope_in(self.scope, name);
        let outer = self.tape.enter(scope);
        let result = body(&Self {
            scope,
            ..self.clone()
        });
        self.tape.enter(outer);
        result
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

    /// A list of like layers, each taking the state the one before left; checkpointed where the run asks for it.
    pub fn layers(
        &self,
        name: &'static str,
        count: u64,
        state: Vec<Tensor>,
        layer: impl Fn(&Self, &[Tensor], usize) -> Vec<Tensor> + Clone + 'static,
    ) -> Vec<Tensor> {
        let layer = Rc::new(layer);
        (0..count as usize).fold(state, |state, i| {
            let layer = layer.clone();
            self.layer(name, i, state, move |cx, state| layer(cx, state, i))
        })
    }

    /// A list of layers that are all alike: those after the first are run once for all.
    pub fn equal_layers(
        &self,
        name: &'static str,
        count: u64,
        state: Vec<Tensor>,
        layer: impl Fn(&Self, &[Tensor]) -> Vec<Tensor> + Clone + 'static,
    ) -> Vec<Tensor> {
        let layer: Rc<Layer> = Rc::new(layer);
        self.periodic(count, 1, state, &|state, i| {
            self.shared_layer(name, i, state, layer.clone())
        })
    }

    /// Layers of which each is like the one `period` places before it: the periods after the first are run
    /// once for all.
    pub fn periodic_layers(
        &self,
        count: u64,
        period: u64,
        state: Vec<Tensor>,
        layer: impl Fn(Vec<Tensor>, usize) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.periodic(count, period, state, &layer)
    }

    fn periodic(
        &self,
        count: u64,
        period: u64,
        state: Vec<Tensor>,
        layer: &dyn Fn(Vec<Tensor>, usize) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        const WORTH_FOLDING: u64 = 5;
        let period = period.max(1);
        let run =
            |state, from: u64, to: u64| (from..to).fold(state, |state, i| layer(state, i as usize));
        let periods = count / period;
        let last = match self.env.folding {
            _ if periods < WORTH_FOLDING => 1,
            Folding::Nothing => 1,
            Folding::Between => periods - 1,
            Folding::FromSecond => periods,
        };
        let state = run(state, 0, period.min(count));
        if last <= 1 {
            return run(state, period, count);
        }
        let times = (last - 1).min(u64::from(u32::MAX)) as u32;
        let state = self.tape.folded(times, period as u32, state, |state| {
            run(state, period, 2 * period)
        });
        run(state, last * period, count)
    }

    /// One layer of a list; what it is given besides its state belongs to its own closure, as keyword arguments
    /// belong to a checkpointed call.
    pub fn layer(
        &self,
        name: &'static str,
        index: usize,
        state: Vec<Tensor>,
        layer: impl Fn(&Self, &[Tensor]) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        self.shared_layer(name, index, state, Rc::new(layer))
    }

    fn shared_layer(
        &self,
        name: &'static str,
        index: usize,
        state: Vec<Tensor>,
        layer: Rc<Layer>,
    ) -> Vec<Tensor> {
        self.nth(name, index, |cx| {
            if let Some(keep) = cx.checkpoints(index) {
                let cx = cx.clone();
                let tape = cx.tape.clone();
                let segment = move |state: &[Tensor]| {
                    cx.tape.enter(cx.scope);
                    layer(&cx, state)
                };
                if keep == Keep::Nothing && tape.machine().software.reentrant {
                    tape.checkpoint_reentrant(state, segment)
                } else {
                    tape.checkpoint_keeping(keep, state, segment)
                }
            } else {
                layer(cx, &state)
            }
        })
    }

    /// What modules checkpoint: most do so in training alone, as those of transformers.
    pub fn checkpointing(&self) -> Checkpointing {
        if self.tape.evaluating() && !self.in_any_mode {
            Checkpointing::None
        } else {
            self.env.training.checkpointing
        }
    }

    /// Whether a layer is checkpointed, and what it keeps then. With one of `n`, it is the last of each `n`.
    fn checkpoints(&self, i: usize) -> Option<Keep> {
        let training = &self.env.training;
        let keep = match self.checkpointing() {
            Checkpointing::None | Checkpointing::Offload => return None,
            Checkpointing::Layers => Keep::Nothing,
            Checkpointing::KeepAttention => Keep::Attention,
            Checkpointing::KeepMatmuls => Keep::Products,
            Checkpointing::KeepHalf => Keep::HalfProducts,
        };
        (i as u64 + 1)
            .is_multiple_of(training.checkpoint_every.max(1))
            .then_some(keep)
    }

    /// Whether the weights of a linear layer are stored in four bits: all but the head, where the run asks for it.
    pub fn quantised(&self, name: &str) -> bool {
        self.env.training.quantization != Quantization::None && name != "lm_head"
    }

    /// A frozen parameter of `count` elements in `bytes` bytes, made at its first use.
    pub fn packed(&self, name: &'static str, count: u64, bytes: u64) -> Tensor {
        if let Some(found) = self.made(name) {
            return found.data.clone();
        }
        let outer = self.tape.enter(self.scope);
        let layout = Layout::contiguous([bytes]);
        let param = self
            .tape
            .packed_param(name, layout, DType::U8, bytes, count, false);
        self.tape.enter(outer);
        let data = param.data.clone();
        self.keep(name, param);
        data
    }

    /// A parameter of this module, made at its first use.
    pub fn param(&self, name: &'static str, shape: impl Into<Dims>) -> Rc<Param> {
        self.made_param(name, shape.into(), self.env.weights, None)
    }

    /// A parameter with a type and a training rule of its own.
    pub fn param_as(
        &self,
        name: &'static str,
        shape: impl Into<Dims>,
        dtype: DType,
        trains: impl Fn(&str) -> bool,
    ) -> Rc<Param> {
        self.made_param(name, shape.into(), dtype, Some(&trains))
    }

    fn made_param(
        &self,
        name: &'static str,
        shape: Dims,
        dtype: DType,
        trains: Option<&dyn Fn(&str) -> bool>,
    ) -> Rc<Param> {
        if let Some(found) = self.made(name) {
            return found;
        }
        let trainable =
            trains.map_or_else(|| self.trains(name), |trains| trains(&self.path_of(name)));
        let outer = self.tape.enter(self.scope);
        let param = if self.env.training.channels_last && shape.len() == 4 {
            // `model.to(memory_format=torch.channels_last)` lays out every four-dimensional parameter.
            self.tape
                .laid_out_param(name, Layout::channels_last(shape), dtype, trainable)
        } else {
            self.tape.param(name, shape, dtype, trainable)
        };
        self.tape.enter(outer);
        self.keep(name, param.clone());
        param
    }

    /// A tensor of this module that is no parameter, such as a table of frequencies.
    pub fn buffer(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        if let Some(found) = self.made(name) {
            return found.data.clone();
        }
        let layout = Layout::contiguous(shape);
        let bytes = layout.numel().saturating_mul(dtype.bytes());
        let outer = self.tape.enter(self.scope);
        let buffer = self.tape.packed_param(name, layout, dtype, bytes, 0, false);
        self.tape.enter(outer);
        buffer.data.set_category(Category::Buffers);
        self.keep(name, buffer.clone());
        buffer.data.clone()
    }

    /// A weight that the constructor makes here before it is tied to another: its memory comes and goes before the
    /// first step, and what the allocator took for it stays.
    pub fn tied_later(&self, shape: impl Into<Dims>) -> Option<TiedLater> {
        let mut tied = self.env.tied.borrow_mut();
        if tied.contains(&self.scope) {
            return None;
        }
        tied.push(self.scope);
        let tape = self.tape.clone();
        let make = || tape.empty("tied", shape, self.env.weights);
        let weight = Some(tape.setting_up(make));
        Some(TiedLater { tape, weight })
    }

    /// What this module already has by that name.
    fn made(&self, name: &str) -> Option<Rc<Param>> {
        let all = self.env.params.borrow();
        let mine = all.get(self.scope.index())?;
        mine.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, param)| param.clone())
    }

    fn keep(&self, name: &'static str, param: Rc<Param>) {
        let mut all = self.env.params.borrow_mut();
        let place = self.scope.index();
        if all.len() <= place {
            all.resize_with(place + 1, Named::new);
        }
        if let Some(mine) = all.get_mut(place) {
            mine.push((name, param));
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path())
    }

    /// Whether its parameter `name` is trained. A path is written out only where a pattern asks for it.
    fn trains(&self, name: &str) -> bool {
        let Training {
            lora,
            prompt_tokens,
            freeze,
            train_only,
            ..
        } = &self.env.training;
        if self.frozen || lora.is_some() || *prompt_tokens > 0 {
            return false;
        }
        if freeze.is_empty() && train_only.is_empty() {
            return true;
        }
        let path = self.path_of(name);
        let named = |patterns: &[String]| patterns.iter().any(|part| path.contains(part.as_str()));
        !named(freeze) && (train_only.is_empty() || named(train_only))
    }

    /// Makes this module the one that new memory belongs to, as a recomputed segment must.
    pub fn enter(&self) {
        self.tape.enter(self.scope);
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
