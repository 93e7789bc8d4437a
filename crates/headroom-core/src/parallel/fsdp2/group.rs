//! The parameters of one module, gathered and reduced together (`FSDPParamGroup`).

use std::cell::{Cell, RefCell};

use super::param::ShardedParam;
use crate::tape::fold::Fold;
use crate::tape::{Category, DType, Scope, Tape, Tensor};

/// The modules of one call of `fully_shard`.
#[derive(Debug)]
pub(super) struct Unit {
    /// In the order in which they run.
    pub scopes: Vec<Scope>,
    pub fold: Option<Fold>,
    /// `reshard_after_forward`, and where it is a number, over how many GPUs.
    pub reshards: bool,
    pub reshards_to: Option<u64>,
    /// GPUs over which it is sharded.
    pub ranks: u64,
    /// One of its modules never runs, such as a tied head whose weight a loss takes: FSDP never sees the end of its forward.
    pub is_partial: bool,
}

/// `FSDPParamGroup`.
#[derive(Debug)]
pub(super) struct ParamGroup {
    pub scopes: Vec<Scope>,
    /// The row of equal layers that it represents.
    pub fold: Option<Fold>,
    pub params: Vec<ShardedParam>,
    /// `reshard_after_forward`.
    pub reshards: bool,
    reshards_to: Option<u64>,
    pub ranks: u64,
    pub is_partial: bool,
    /// It has run forward, and its gradients have not been reduced.
    pub waiting: Cell<bool>,
    /// The unsharded parameters, while they are gathered.
    unsharded: RefCell<Vec<Tensor>>,
    /// This GPU's parts of them between forward and backward, if they are resharded over fewer GPUs than all
    /// (`_sharded_post_forward_param_data`).
    post_forward: RefCell<Vec<Tensor>>,
    /// Its backward is under way.
    pub in_backward: Cell<bool>,
    /// Gradients of passes that did not reduce, in the type in which they will be.
    accumulated: RefCell<Vec<Option<Tensor>>>,
}

impl ParamGroup {
    pub(crate) fn new(unit: Unit, params: Vec<ShardedParam>) -> Self {
        Self {
            scopes: unit.scopes,
            fold: unit.fold,
            accumulated: RefCell::new(params.iter().map(|_| None).collect()),
            params,
            reshards: unit.reshards,
            reshards_to: unit.reshards_to,
            ranks: unit.ranks,
            is_partial: unit.is_partial,
            waiting: Cell::new(false),
            in_backward: Cell::new(false),
            unsharded: RefCell::default(),
            post_forward: RefCell::default(),
        }
    }

    pub(crate) fn is_unsharded(&self) -> bool {
        !self.unsharded.borrow().is_empty()
    }

    /// What a rank sends: shards of a type of their own are cast into one tensor; shards on the host come to the device first.
    pub(crate) fn all_gather_inputs(&self, tape: &Tape, from_host: bool) -> Vec<Tensor> {
        if !self.post_forward.borrow().is_empty() {
            // What forward left has its dtype, and is on the device.
            return Vec::new();
        }
        let casts = |param: &&ShardedParam| param.module.dtype() != param.sharded.data.dtype();
        if from_host {
            let copied = self.params.iter().map(|param| {
                let copy = tape.empty("to", [param.numel], param.sharded.data.dtype());
                copy.to(param.module.dtype())
            });
            return copied.collect();
        }
        let cast = self.params.iter().filter(casts);
        let bytes = cast.fold(0_u64, |all, param| all.saturating_add(sent(param)));
        vec![tape.empty("all_gather_copy_in", [bytes], DType::U8)]
    }

    /// Bytes that one rank sends.
    pub(crate) fn gathered_bytes(&self) -> u64 {
        self.params.iter().map(sent).fold(0, u64::saturating_add)
    }

    /// Padded elements of one rank's shards of some parameters.
    pub(crate) fn numel_of(&self, members: &[usize]) -> u64 {
        let params = members.iter().filter_map(|at| self.params.get(*at));
        params.map(|param| param.numel).fold(0, u64::saturating_add)
    }

    /// Gives the parameters memory.
    pub(crate) fn unshard(&self, tape: &Tape) {
        let ranks = self.ranks;
        let whole = |param: &ShardedParam| {
            let numel = param.numel.saturating_mul(ranks);
            let whole = tape.empty("unshard", [numel], param.module.dtype());
            whole.set_category(Category::Parameters);
            whole
        };
        let all = self.params.iter().map(whole).collect();
        self.unsharded.replace(all);
        self.post_forward.take();
    }

    /// `reshard` after forward: if it reshards over fewer GPUs than all, each parameter leaves a copy of its part.
    pub(crate) fn reshard_after_forward(&self) {
        let Some(ranks) = self.reshards_to else {
            return self.reshard();
        };
        let part = |whole: Tensor| {
            let numel = whole.numel() / ranks.max(1);
            let part = whole.tape().empty("clone", [numel], whole.dtype());
            part.set_category(Category::Parameters);
            part
        };
        let parts = self.unsharded.take().into_iter().map(part).collect();
        self.post_forward.replace(parts);
    }

    /// Takes it away again.
    pub(crate) fn reshard(&self) {
        drop(self.unsharded.take());
    }

    /// The gradients to reduce, each with the place of its parameter: the sums of passes that did not reduce have this one's in them.
    pub(crate) fn take_gradients(&self) -> Vec<(usize, Tensor)> {
        let mut accumulated = self.accumulated.borrow_mut();
        let gradients = self.params.iter().zip(accumulated.iter_mut()).enumerate();
        gradients
            .filter_map(|(at, (param, kept))| {
                let own = || param.module.grad.take();
                Some((at, kept.take().or_else(own)?))
            })
            .collect()
    }

    /// A parameter's gradient has arrived, which is kept in another type (`grad_dtype`). In the module's backward one that is added
    /// to a sum, or reduced at once, is left as it is (`_set_unsharded_grad_dtypes`); any other is cast as it comes.
    pub(crate) fn accumulate(&self, at: usize, dtype: DType, reduces: bool) {
        let mut accumulated = self.accumulated.borrow_mut();
        let Some((param, kept)) = self.params.get(at).zip(accumulated.get_mut(at)) else {
            return;
        };
        let is_wider = dtype.bytes() > param.module.dtype().bytes();
        let as_it_is = is_wider && self.in_backward.get() && (reduces || kept.is_some());
        if as_it_is && kept.is_none() {
            return;
        }
        let Some(gradient) = param.module.grad.take() else {
            return;
        };
        let gradient = if as_it_is {
            gradient
        } else {
            gradient.pipe(|gradient| gradient.to(dtype))
        };
        let sum = match kept.take() {
            Some(sum) => {
                let sum = sum.add_in_place(&gradient);
                param.module.data.tape().has_added(gradient);
                sum
            }
            None => gradient,
        };
        sum.set_category(Category::Gradients);
        *kept = Some(sum);
    }

    /// The reduced gradients become those of the shards, as views of one tensor, or are added to them.
    pub(crate) fn accumulate_shards(&self, members: &[usize], output: Tensor, to_host: bool) {
        let dtype = members
            .first()
            .and_then(|at| self.params.get(*at))
            .map_or(output.dtype(), |param| param.sharded.data.dtype());
        let output = output.pipe(|output| output.to(dtype));
        output.set_category(Category::Gradients);
        for param in members.iter().filter_map(|at| self.params.get(*at)) {
            if to_host {
                continue;
            }
            let view = output.as_strided(*param.sharded.data.layout());
            let mut gradient = param.sharded.grad.borrow_mut();
            let sum = match gradient.take() {
                Some(before) => before.add_in_place(&view),
                None => view,
            };
            *gradient = Some(sum);
        }
    }
}

/// Bytes of its shard in the type in which it is gathered.
fn sent(param: &ShardedParam) -> u64 {
    let dtype = param.module.dtype();
    param.numel.saturating_mul(dtype.bytes())
}
