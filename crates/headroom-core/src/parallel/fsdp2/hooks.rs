//! What happens around a wrapped module: before and after its forward, and before and after its backward
//! (torch/distributed/fsdp/_fully_shard/_fsdp_state.py and _fsdp_param_group.py).

use std::cell::RefCell;
use std::rc::Rc;

use super::group::ParamGroup;
use super::{REDUCE_SCATTER, State};
use crate::tape::{DType, PostAccumulateGradHook, Scope, Stream, Tensor};

/// What runs in backward as a tensor's gradient arrives.
pub(super) type BackwardHooks = RefCell<Vec<Box<dyn FnOnce()>>>;

impl State {
    /// Gradients that are reduced in another dtype than their own are added to their sums as they arrive.
    pub(super) fn hook(self: &Rc<Self>) {
        let Some(dtype) = self.policy.reduce else {
            return;
        };
        for group in self.groups.borrow().iter() {
            for (at, param) in group.params.iter().enumerate() {
                if param.module.dtype() == dtype || !param.module.dtype().is_floating() {
                    continue;
                }
                // The parameter is the group's own: a hook that held that would never go.
                let (state, group) = (Rc::downgrade(self), Rc::downgrade(group));
                let hook: Rc<PostAccumulateGradHook> = Rc::new(move |_| {
                    if let Some((state, group)) = state.upgrade().zip(group.upgrade()) {
                        group.accumulate(at, dtype, state.reduces.get());
                    }
                });
                param.module.post_accumulate_grad.replace(Some(hook));
            }
        }
    }

    /// Inputs are cast, the group is gathered, and its gradients are reduced once those of its inputs have arrived.
    pub(super) fn pre_forward(
        self: &Rc<Self>,
        at: usize,
        group: &Rc<ParamGroup>,
        inputs: Vec<Tensor>,
    ) -> Vec<Tensor> {
        let inputs: Vec<Tensor> = match self.policy.param {
            Some(dtype) => inputs
                .into_iter()
                .map(|input| {
                    if input.dtype().is_floating() {
                        input.to(dtype)
                    } else {
                        input
                    }
                })
                .collect(),
            None => inputs,
        };
        // Where the stages before this one only give shapes, its parameters are gathered all the same.
        let outer = self.tape.set_shapes_only(false);
        self.unshard_for_forward(at, group);
        self.tape.set_shapes_only(outer);
        let this = self.clone();
        let hooked = group.clone();
        group.waiting.set(true);
        if self.tape.grad_enabled() && inputs.iter().any(Tensor::requires_grad) {
            Tensor::hooked(inputs, move || this.post_backward(&hooked))
        } else {
            inputs
        }
    }

    pub(super) fn unshard_for_forward(&self, at: usize, group: &Rc<ParamGroup>) {
        if let Some(root) = group.scopes.first().filter(|_| self.is_root(at)) {
            self.wait_for_stage(*root);
        }
        self.unshard(group);
        self.wait_for_unshard(group, true);
        for ahead in 1..=self.world.parallel.prefetch_forward as usize {
            if !self.is_root(at)
                && self.gathered.len() < ahead
                && let Some(next) = self.group(at + ahead)
            {
                self.gather(&next, self.gathers_on);
            }
        }
    }

    pub(super) fn post_forward(
        self: &Rc<Self>,
        at: usize,
        group: &Rc<ParamGroup>,
        outputs: Vec<Tensor>,
        is_root: bool,
    ) -> Vec<Tensor> {
        if group.reshards {
            group.reshard_after_forward();
        }
        self.order.borrow_mut().push(at);
        let outputs = self.hook_outputs(at, group, outputs);
        if is_root {
            self.copied_out.clear();
        }
        outputs
    }

    /// `_register_pre_backward_hook`.
    pub(super) fn hook_outputs(
        self: &Rc<Self>,
        at: usize,
        group: &Rc<ParamGroup>,
        outputs: Vec<Tensor>,
    ) -> Vec<Tensor> {
        let hooked = outputs.into_iter().flat_map(|output| {
            if !output.requires_grad() {
                return vec![output];
            }
            let (this, group) = (self.clone(), group.clone());
            self.on_gradient(output, Box::new(move || this.pre_backward(at, &group)))
        });
        hooked.collect()
    }

    /// `Tensor.register_hook`: hooks of one tensor run in the order in which they came, as of a stage whose output is its last
    /// layer's.
    fn on_gradient(&self, output: Tensor, hook: Box<dyn FnOnce()>) -> Vec<Tensor> {
        let storage = output.storage_id();
        let before = self.hooked.borrow().clone();
        let before = before.filter(|(hooked, _)| Some(*hooked) == storage);
        if let Some(hooks) = before.and_then(|(_, hooks)| hooks.upgrade()) {
            hooks.borrow_mut().push(hook);
            return vec![output];
        }
        let hooks: Rc<BackwardHooks> = Rc::new(RefCell::new(vec![hook]));
        let weak = Rc::downgrade(&hooks);
        self.hooked.replace(storage.map(|storage| (storage, weak)));
        Tensor::hooked(vec![output], move || {
            for hook in hooks.take() {
                hook();
            }
        })
    }

    /// Gathers what is not gathered ahead.
    pub(super) fn unshard(&self, group: &ParamGroup) {
        if !group.is_unsharded() && self.gathered.is_empty() {
            self.gather(group, self.gathers_on);
        }
    }

    /// `foreach_all_gather`: shards are cast into one buffer, and all GPUs' shards come into another. What modules gather for
    /// themselves they gather on a stream of its own (`get_all_gather_streams`).
    pub(super) fn gather(&self, group: &ParamGroup, stream: Stream) {
        if group.params.is_empty() || group.ranks <= 1 {
            return;
        }
        let ranks = group.ranks;
        let output = self.tape.on(stream, || {
            let inputs = group.all_gather_inputs(&self.tape, self.offloads());
            let bytes = group.gathered_bytes().saturating_mul(ranks);
            let output = self.tape.empty("all_gather", [bytes], DType::U8);
            drop(inputs);
            output
        });
        self.gathered.push(output);
    }

    /// `foreach_all_gather_copy_out`: parameters are copied out of the buffer into tensors of their own.
    pub(super) fn wait_for_unshard(&self, group: &ParamGroup, forward: bool) {
        if group.is_unsharded() || group.params.is_empty() {
            return;
        }
        let buffer = if group.ranks > 1 {
            self.gathered.pop()
        } else {
            None
        };
        if forward {
            self.copied_out.clear();
        }
        group.unshard(&self.tape);
        if let Some(buffer) = buffer.filter(|_| forward) {
            self.copied_out.push(buffer);
        }
    }

    pub(super) fn pre_backward(&self, at: usize, group: &ParamGroup) {
        let mut ahead = Vec::new();
        if self.is_root(at) {
            ahead.extend(std::iter::from_fn(|| self.gathered.pop()));
        }
        self.unshard(group);
        self.wait_for_unshard(group, false);
        // What was gathered ahead is other groups': the hook of a layer that a stage ends with runs before the root's.
        for buffer in ahead {
            self.gathered.push(buffer);
        }
        self.enter_backward(group);
        // Each forward is prefetched once.
        let Some(place) = self.last_of(at) else {
            return;
        };
        let depth = self.world.parallel.prefetch_backward.max(1) as usize;
        let depth = if self.is_root(at) { 1 } else { depth };
        for ahead in 1..=depth {
            let before = place.checked_sub(ahead);
            let target = before.and_then(|place| self.order.borrow().get(place).copied());
            let Some(target) = target.and_then(|at| self.group(at)) else {
                break;
            };
            if !target.is_unsharded() && self.gathered.len() < ahead {
                self.gather(&target, self.gathers_on);
            }
        }
    }

    /// A module's backward begins, and before it that of the root that it is in.
    fn enter_backward(&self, group: &ParamGroup) {
        group.in_backward.set(true);
        let (groups, roots) = (self.groups.borrow(), self.roots.borrow());
        for (root, scope) in groups.iter().zip(roots.iter()) {
            let first = group.scopes.first();
            if first.is_some_and(|first| self.tape.is_inside(*first, *scope)) {
                root.in_backward.set(true);
            }
        }
    }

    /// The position of a group among the forwards of this pass.
    pub(super) fn last_of(&self, at: usize) -> Option<usize> {
        self.order.borrow().iter().rposition(|group| *group == at)
    }

    /// Reduces the gradients of a group that has run backward, or keeps them unreduced.
    pub(super) fn post_backward(&self, group: &ParamGroup) {
        group.waiting.set(false);
        group.in_backward.set(false);
        if !self.reduces.get() {
            if !self.is_pipelined() {
                group.reshard();
            }
            return;
        }
        let gradients = group.take_gradients();
        group.reshard();
        if gradients.is_empty() {
            return;
        }
        self.reducing.clear();
        let input = self.reduce_scatter(group, gradients);
        self.reducing.push(input);
    }

    /// `foreach_reduce`: gradients are copied into one buffer, whose sums come back as this GPU's part of them.
    pub(super) fn reduce_scatter(
        &self,
        group: &ParamGroup,
        gradients: Vec<(usize, Tensor)>,
    ) -> Tensor {
        let ranks = group.ranks;
        let dtype = self.policy.reduce.or_else(|| {
            let (_, first) = gradients.first()?;
            Some(first.dtype())
        });
        let dtype = dtype.unwrap_or(DType::F32);
        let members: Vec<usize> = gradients.iter().map(|(at, _)| *at).collect();
        let numel = group.numel_of(&members);
        let whole = numel.saturating_mul(ranks);
        let input = self.tape.empty("reduce_scatter", [whole], dtype);
        drop(gradients);
        self.tape.on(self.reduce_stream(group), || {
            let output = self.tape.empty("reduce_scatter", [numel], dtype);
            if ranks <= 1 {
                // Of one GPU the input is the sum, which is copied all the same: experts that are whole here, which are divided by
                // the number of all ranks (`set_gradient_divide_factor`).
                drop(self.tape.empty("div", [numel], dtype));
            }
            group.accumulate_shards(&members, output, self.offloads());
        });
        input
    }

    /// Each root module has streams of its own (`FSDPCommContext`): each of a pipeline's stages.
    fn reduce_stream(&self, group: &ParamGroup) -> Stream {
        let roots = self.roots.borrow();
        let inside = |root: &Scope| {
            let first = group.scopes.first();
            first.is_some_and(|scope| self.tape.is_inside(*scope, *root))
        };
        let root = roots.iter().position(inside).unwrap_or(0);
        let number = u8::try_from(root).unwrap_or(u8::MAX);
        Stream::side(REDUCE_SCATTER.number().saturating_add(number))
    }

    /// `_root_post_backward_final_callback`: groups whose inputs wanted no gradient, the root among them.
    pub(super) fn root_post_backward(&self) {
        let groups = self.groups.borrow().clone();
        for group in groups {
            // A pipeline runs several forwards before a backward: each of these ends with all of its groups.
            if group.waiting.get() || self.is_pipelined() {
                self.post_backward(&group);
            }
        }
        self.order.borrow_mut().clear();
        self.reducing.clear();
        if !self.is_pipelined() {
            // What was gathered ahead and not used, as of an embedding that wants no gradient.
            self.gathered.clear();
        }
    }
}
