//! Saved-tensor hooks: activation checkpointing and offload.
//!
//! Follows torch/utils/checkpoint.py (`use_reentrant=False`): saved tensors become placeholders, and unpacking the first
//! of them in backward recomputes the segment, which stops once it has saved every tensor again. With `use_reentrant=True`
//! the segment is one node, whose backward runs all of it again and then an engine inside the engine.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::core::{Holder, SavedTensorHook, SelectableOp, Selection, Unpack};
use super::{Category, Core, DType, Mode, Param, Saved, Tape, Tensor};

/// A segment's function: inputs to outputs.
pub(crate) type Segment = dyn Fn(&[Tensor]) -> Vec<Tensor>;

/// Which results a checkpointed segment saves instead of recomputing them
/// (`create_selective_checkpoint_contexts` with the operation lists of torchtitan).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SavePolicy {
    #[default]
    Nothing,
    Attention,
    /// Attention and matrix products.
    Products,
    /// Attention and every second matrix product.
    HalfProducts,
}

/// The inputs of a segment, for its recomputation (`save_inputs`). Under hooks they are saved tensors too, hence placeholders inside
/// another checkpointed segment and copies on the host where those go, each with its `requires_grad`.
enum Inputs {
    Held(Vec<Tensor>),
    Saved(Vec<(Saved, bool)>),
}

impl Inputs {
    fn of(core: &Rc<Core>, inputs: &[Tensor]) -> Self {
        if core.autograd.hooks.borrow().is_empty() {
            return Self::Held(inputs.to_vec());
        }
        let saved = inputs
            .iter()
            .map(|input| (input.save(), input.requires_grad()));
        Self::Saved(saved.collect())
    }

    fn unpack(&self) -> Vec<Tensor> {
        let unpack = |(saved, requires_grad): &(Saved, bool)| {
            let input = saved.unpack();
            if *requires_grad {
                input.requires_grad_()
            } else {
                input
            }
        };
        match self {
            Self::Held(inputs) => inputs.clone(),
            Self::Saved(inputs) => inputs.iter().map(unpack).collect(),
        }
    }
}

/// The placeholder of the n-th tensor that a checkpointed segment saved (`_Holder`).
struct Placeholder {
    frame: Rc<Frame>,
    at: usize,
}

impl Unpack for Placeholder {
    fn unpack(&self) -> Tensor {
        self.frame.unpack(self.at)
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        if self.frame.several_backwards {
            self.frame.drop_recomputed(self.at);
        }
    }
}

/// The tensors that one backward has recomputed, until each is unpacked.
type Recomputed = Vec<Option<Tensor>>;

/// The list of one backward, empty where it has none.
fn recomputed_by(all: &mut Vec<(u64, Recomputed)>, backward: u64) -> &mut Recomputed {
    let at = all.iter().position(|(by, _)| *by == backward);
    let at = at.unwrap_or_else(|| {
        all.push((backward, Vec::new()));
        all.len() - 1
    });
    &mut all[at].1
}

/// One run of a checkpointed segment.
struct Frame {
    core: Rc<Core>,
    segment: Rc<Segment>,
    inputs: Inputs,
    /// The mode during the segment's forward.
    mode: Mode,
    policy: SavePolicy,
    /// It is a part of a compiled graph.
    compiled: bool,
    /// Results that the policy names; `None` where backward has no use for one and a compiled graph does not keep it.
    kept: RefCell<VecDeque<Option<Tensor>>>,
    /// Matrix products so far, in forward and in the recomputation.
    products: [Cell<u32>; 2],
    saved: Cell<usize>,
    /// Its graph is kept for several backwards, of which each recomputes it.
    several_backwards: bool,
    /// By the backward that recomputed them.
    recomputed: RefCell<Vec<(u64, Recomputed)>>,
    /// Placeholders dropped since: their tensors are recomputed and not kept.
    gone: RefCell<Vec<usize>>,
}

/// The hook of a segment's forward.
struct Forward(Rc<Frame>);

impl SavedTensorHook for Forward {
    fn pack(&self, tensor: &Tensor) -> Holder {
        let frame = &self.0;
        let at = frame.saved.get();
        frame.saved.set(at + 1);
        let placeholder = Rc::new(Placeholder {
            frame: frame.clone(),
            at,
        });
        let core = tensor.core();
        core.keep_for_split(|| Holder::Packed(placeholder.clone()));
        Holder::Packed(placeholder)
    }

    fn recomputes(&self) -> bool {
        true
    }

    fn select(&self, op: SelectableOp) -> Selection {
        if self.0.saves(op, false) {
            Selection::RunAndStore
        } else {
            Selection::Run
        }
    }

    fn store(&self, results: &[Tensor]) {
        let mut kept = self.0.kept.borrow_mut();
        let keep = |result: &Tensor| result.core().keeps_result(result).then(|| result.detach());
        kept.extend(results.iter().map(keep));
    }
}

/// The hook of its recomputation.
struct Recompute(Rc<Frame>);

impl SavedTensorHook for Recompute {
    fn pack(&self, tensor: &Tensor) -> Holder {
        let (frame, core) = (&self.0, tensor.core());
        let kept = match core.pack_compiled(tensor) {
            None => tensor.detach(),
            Some(recomputed) => recomputed.deferred(),
        };
        let mut recomputed = frame.recomputed.borrow_mut();
        let list = recomputed_by(&mut recomputed, frame.backward());
        let gone = frame.gone.borrow().contains(&list.len());
        list.push((!gone).then(|| kept.clone()));
        let done = list.len() >= frame.saved.get();
        drop(recomputed);
        core.record_saved(tensor);
        if done {
            // PyTorch raises here to leave the segment; we let it run on without recording.
            core.ambient.stopped.set(true);
        }
        Holder::Saved(kept.saved_variable())
    }

    fn select(&self, op: SelectableOp) -> Selection {
        if self.0.saves(op, true) {
            Selection::Load
        } else {
            Selection::Run
        }
    }

    fn load(&self, count: usize) -> Vec<Tensor> {
        let mut kept = self.0.kept.borrow_mut();
        let count = count.min(kept.len());
        kept.drain(..count).flatten().collect()
    }
}

impl Core {
    /// Whether a checkpointed segment runs.
    pub(in crate::tape) fn checkpoints(&self) -> bool {
        let hooks = self.autograd.hooks.borrow();
        hooks.last().is_some_and(|hook| hook.recomputes())
    }

    /// Runs an operation, or takes its results from what the segment being recomputed has saved.
    pub(in crate::tape) fn selective<const N: usize>(
        &self,
        op: SelectableOp,
        run: impl FnOnce() -> [Tensor; N],
    ) -> [Tensor; N] {
        let hook = self.autograd.hooks.borrow().last().cloned();
        let Some(hook) = hook else { return run() };
        match hook.select(op) {
            _ if self.ambient.stopped.get() => run(),
            Selection::Run => run(),
            Selection::Load => hook.load(N).try_into().unwrap_or_else(|_| run()),
            Selection::RunAndStore => {
                let results = run();
                self.keep_result();
                hook.store(&results);
                results
            }
        }
    }
}

impl Frame {
    fn saves(&self, op: SelectableOp, recomputing: bool) -> bool {
        match (self.policy, op) {
            (SavePolicy::Nothing, _) | (SavePolicy::Attention, SelectableOp::Product) => false,
            (_, SelectableOp::Attention | SelectableOp::ReduceScatter)
            | (SavePolicy::Products, SelectableOp::Product) => true,
            (SavePolicy::HalfProducts, SelectableOp::Product) => {
                let count = &self.products[usize::from(recomputing)];
                count.set(count.get() + 1);
                count.get() % 2 == 1
            }
        }
    }

    fn unpack(self: &Rc<Self>, place: usize) -> Tensor {
        let backward = self.backward();
        let by_this = |(by, _): &(u64, Recomputed)| *by == backward;
        if !self.recomputed.borrow().iter().any(by_this) {
            self.recompute();
        }
        let mut all = self.recomputed.borrow_mut();
        let list = recomputed_by(&mut all, backward);
        let recomputed = list.get_mut(place).and_then(Option::take);
        drop(all);
        // Unpacked twice it has no memory. Only a segment that is not deterministic unpacks twice, and no net here is one.
        recomputed.unwrap_or_else(|| Tape(self.core.clone()).empty("recomputed", [0], DType::U8))
    }

    /// Which backward runs, where several do.
    fn backward(&self) -> u64 {
        if self.several_backwards {
            self.core.running_backward()
        } else {
            0
        }
    }

    /// A placeholder is dropped: frees what was recomputed for it.
    fn drop_recomputed(&self, place: usize) {
        self.gone.borrow_mut().push(place);
        let mut all = self.recomputed.borrow_mut();
        let lists = all.iter_mut();
        let of_place = lists.map(|(_, list)| list.get_mut(place).and_then(Option::take));
        let gone: Vec<Option<Tensor>> = of_place.collect();
        drop(all);
        drop(gone);
    }

    fn recompute(self: &Rc<Self>) {
        let tape = Tape(self.core.clone());
        let inputs = self.inputs.unpack();
        let hook = Rc::new(Recompute(self.clone()));
        // The recomputed graph is only made to be dropped.
        let run = || {
            if self.compiled {
                drop(tape.compiled(&|| (self.segment)(&inputs)));
            } else {
                drop((self.segment)(&inputs));
            }
        };
        tape.in_inner_graph(|| tape.with_saved_tensor_hook(hook, || tape.within(self.mode, run)));
    }
}

impl Tape {
    /// `torch.utils.checkpoint.checkpoint(segment, *inputs, use_reentrant=False)`.
    pub fn checkpoint(
        &self,
        inputs: Vec<Tensor>,
        segment: impl Fn(&[Tensor]) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        self.selective_checkpoint(SavePolicy::Nothing, inputs, segment)
    }

    /// `checkpoint(.., context_fn=create_selective_checkpoint_contexts)`: saves the results that a policy names.
    pub fn selective_checkpoint(
        &self,
        policy: SavePolicy,
        inputs: Vec<Tensor>,
        segment: impl Fn(&[Tensor]) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        if !self.0.ambient.mode.get().grad {
            return segment(&inputs);
        }
        for input in &inputs {
            self.0.keep_for_recomputation(input);
        }
        let frame = Rc::new(Frame {
            core: self.0.clone(),
            segment: Rc::new(segment),
            inputs: Inputs::of(&self.0, &inputs),
            mode: self.mode(),
            policy,
            compiled: self.compiles(),
            kept: RefCell::default(),
            products: Default::default(),
            saved: Cell::new(0),
            several_backwards: self.0.keeps_graph(),
            recomputed: RefCell::default(),
            gone: RefCell::default(),
        });
        let hook = Rc::new(Forward(frame.clone()));
        self.with_saved_tensor_hook(hook, || (frame.segment)(&inputs))
    }

    /// `torch.utils.checkpoint.checkpoint(segment, *inputs, use_reentrant=True)` (`CheckpointFunction`): forward without a
    /// graph; backward reruns the complete segment, and an engine inside the engine.
    pub fn checkpoint_reentrant(
        &self,
        inputs: Vec<Tensor>,
        segment: impl Fn(&[Tensor]) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        if !self.0.ambient.mode.get().grad {
            return segment(&inputs);
        }
        let outputs = self.no_grad(|| segment(&inputs));
        let mode = self.mode();
        let tape = self.clone();
        let given: Vec<&Tensor> = inputs.iter().collect();
        Tensor::from_op_with(outputs, &given, |needs| {
            let kept: Vec<(Saved, bool)> = given
                .iter()
                .enumerate()
                .map(|(i, input)| (input.save(), needs.input(i)))
                .collect();
            Box::new(move |incoming| {
                let leaves: Vec<(Rc<Param>, bool)> = kept
                    .iter()
                    .map(|(kept, needed)| (kept.unpack().as_leaf(), *needed))
                    .collect();
                let inputs: Vec<Tensor> = leaves
                    .iter()
                    .map(|(leaf, needed)| {
                        if *needed {
                            leaf.tensor()
                        } else {
                            leaf.data.clone()
                        }
                    })
                    .collect();
                let outputs = tape.in_inner_graph(|| {
                    let run = || tape.autocast(mode.autocast, || segment(&inputs));
                    let outputs = tape.within(mode.with_autocast(None), run);
                    tape.backward_from(&outputs, &incoming);
                    outputs
                });
                // Handles on `input.grad`: whoever holds on to an input keeps its gradient too.
                let gradients = leaves.iter().map(|(leaf, _)| leaf.grad.borrow().clone());
                let gradients = gradients.inspect(|g| {
                    if let Some(g) = g {
                        g.set_category(Category::BackwardTemporaries);
                    }
                });
                let gradients = gradients.collect();
                // Locals of the Python function, alive until it returns.
                drop(outputs);
                gradients
            })
        })
    }

    /// Whether PyTorch would have left this code by an exception: the recomputation has saved everything it needs.
    pub fn stopped(&self) -> bool {
        self.0.ambient.stopped.get()
    }
}
