//! `DataParallel` (torch/nn/parallel): one process copies its model to every GPU for each forward, gathers what the copies
//! return on the first GPU, and reduces their gradients there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Forward, Properties, Role, World, Wrapper};
use crate::tape::{
    Backward, Category, DType, Layout, Param, Scope, Tape, Tensor, borrowing, grads,
};
use headroom_scenario::{Checkpointing, Training};

/// Elements are sent and reduced in chunks of at least this many bytes (`buffer_size` of torch/nn/parallel/comm.py).
const BUFFER: u64 = 10_485_760;

#[derive(Debug)]
pub(crate) struct DataParallel(Rc<State>);

#[derive(Debug)]
struct State {
    tape: Tape,
    gpus: u64,
    /// Whether this is the GPU that has the model itself.
    is_first: bool,
    /// A layer's checkpoint keeps the copy of the layer until its backward.
    checkpoints: bool,
    params: RefCell<Vec<Rc<Param>>>,
    /// The scopes of the items of lists of layers.
    layers: RefCell<Vec<Scope>>,
}

impl DataParallel {
    pub(crate) fn new(tape: &Tape, world: World, training: &Training) -> Self {
        Self(Rc::new(State {
            tape: tape.clone(),
            gpus: world.mesh.data.into(),
            is_first: world.rank.shard == 0,
            checkpoints: training.checkpointing != Checkpointing::None,
            params: RefCell::default(),
            layers: RefCell::default(),
        }))
    }
}

impl Wrapper for DataParallel {
    fn properties(&self) -> Properties {
        let is_first = self.0.is_first;
        Properties {
            shards_params: !is_first,
            has_trainable_params: is_first,
            ranks_loaded_here: if is_first { self.0.gpus } else { 0 },
            // All gradients wait in one node.
            folds: false,
            ..Properties::default()
        }
    }

    fn wrap(&self, _tape: &Tape, state: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
        let params = state.iter().filter(|param| !param.is_buffer());
        self.0.params.replace(params.cloned().collect());
        state
    }

    fn module(&self, role: Role, scope: Scope, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        let parallel = &self.0;
        if parallel.tape.declaring() {
            if role == Role::Layer {
                parallel.layers.borrow_mut().push(scope);
            }
            return run(inputs);
        }
        match role {
            Role::Model => parallel.forward(inputs, run),
            Role::Layer => run(parallel.kept_for_layer(scope, inputs)),
            _ => run(inputs),
        }
    }

    fn after_backward(&self) {
        for param in self.0.params.borrow().iter() {
            param.replica.take();
        }
    }
}

impl State {
    /// `DataParallel.forward`.
    fn forward(&self, inputs: Vec<Tensor>, run: &Forward) -> Vec<Tensor> {
        let inputs = self.scatter(inputs);
        self.replicate();
        let outputs = run(inputs);
        for param in self.params.borrow().iter() {
            let kept = self.checkpoints && self.tape.grad_enabled() && self.is_in_layer(param);
            if !kept {
                param.replica.take();
            }
        }
        self.gather(outputs)
    }

    /// `Scatter`: the first GPU's part of a batch is a view of it, the others are sent theirs.
    fn scatter(&self, inputs: Vec<Tensor>) -> Vec<Tensor> {
        if self.is_first {
            return inputs;
        }
        inputs
            .into_iter()
            .map(|input| input.empty_like("scatter", input.dtype()))
            .collect()
    }

    /// `replicate`: the model's parameters go through `Broadcast`, an operation of which the copies are outputs, no leaves. On
    /// the first GPU they are the parameters themselves.
    fn replicate(&self) {
        let params = self.params.borrow();
        let leaves: Vec<Tensor> = params.iter().map(|param| param.tensor()).collect();
        let copies = self.broadcast_coalesced(&leaves);
        let differentiable: Vec<bool> = leaves.iter().map(Tensor::requires_grad).collect();
        let taken: Vec<&Tensor> = leaves.iter().collect();
        let copies = Tensor::from_op_with(copies, &taken, |_| self.reduction(&leaves));
        for ((param, copy), differentiable) in params.iter().zip(copies).zip(differentiable) {
            let copy = if differentiable { copy } else { copy.detach() };
            param.replica.replace(Some(copy));
        }
    }

    /// Small tensors are joined before they are sent. What is received is in one piece, of which they are parts.
    fn broadcast_coalesced(&self, leaves: &[Tensor]) -> Vec<Tensor> {
        let mut copies: Vec<Tensor> = leaves.iter().map(Tensor::detach).collect();
        for chunk in chunks(leaves, Closed::Full) {
            let Some((elements, dtype)) = joined(leaves, &chunk) else {
                continue;
            };
            if self.is_first {
                if chunk.len() > 1 {
                    drop(self.tape.empty("cat", [elements], dtype));
                }
                continue;
            }
            let flat = self.tape.empty("broadcast", [elements], dtype);
            flat.set_category(Category::Parameters);
            for at in chunk {
                if let Some(copy) = copies.get_mut(at) {
                    *copy = flat.as_strided(*copy.layout());
                }
            }
        }
        copies
    }

    /// `ReduceAddCoalesced`, once all gradients of all copies have arrived; they are kept to its end. What has none gets zeros,
    /// frozen parameters too (`materialize_grads`).
    fn reduction(&self, leaves: &[Tensor]) -> Backward {
        let (tape, is_first) = (self.tape.clone(), self.is_first);
        let params = leaves.iter().map(|leaf| (*leaf.layout(), leaf.dtype()));
        let params: Vec<(Layout, DType)> = params.collect();
        Box::new(move |incoming| {
            let mut incoming = incoming.into_iter();
            let gradients = params.iter().map(|(layout, dtype)| {
                let gradient = incoming.next().flatten();
                gradient.unwrap_or_else(|| tape.empty("zeros", layout.shape, *dtype))
            });
            let gradients: Vec<Tensor> = gradients.collect();
            let mut reduced: Vec<Option<Tensor>> = gradients.iter().map(|_| None).collect();
            // The name is bound again only once the next chunk is joined.
            let mut _flat: Option<Tensor> = None;
            for chunk in chunks(&gradients, Closed::BeforeFull) {
                let Some((elements, dtype)) = joined(&gradients, &chunk) else {
                    continue;
                };
                let next = (chunk.len() > 1).then(|| tape.empty("cat", [elements], dtype));
                _flat = next;
                if !is_first {
                    continue;
                }
                let sum = tape.empty("reduce", [elements], dtype);
                sum.set_category(Category::Gradients);
                for at in chunk {
                    if let Some((place, (layout, _))) = reduced.get_mut(at).zip(params.get(at)) {
                        *place = Some(sum.as_strided(*layout));
                    }
                }
            }
            reduced.into_iter().collect()
        })
    }

    /// `Gather`: what the copies return is joined on the first GPU; scalars become a vector.
    fn gather(&self, outputs: Vec<Tensor>) -> Vec<Tensor> {
        if !self.is_first {
            // What is passed on are the first one's results; here only their graph is left.
            return outputs
                .into_iter()
                .take(1)
                .map(|loss| loss.edge_alone())
                .collect();
        }
        let gathered = outputs.iter().map(|output| {
            let shape = match output.shape().first() {
                Some(size) => output.shape().with(0, size.saturating_mul(self.gpus)),
                None => [self.gpus].into(),
            };
            let own = *output.layout();
            let joined = self.tape.empty("gather", shape, output.dtype());
            // The first GPU's part of the gradient is a view of it.
            joined.from_op(&[output], |_| {
                borrowing(move |gradient| grads([Some(gradient.as_strided(own))]))
            })
        });
        let gathered: Vec<Tensor> = gathered.collect();
        drop(outputs);
        let mut gathered = gathered.into_iter();
        // `loss.mean()`.
        let loss = gathered.next().map(|losses| losses.pipe(Tensor::mean_all));
        loss.into_iter().chain(gathered).collect()
    }

    fn is_in_layer(&self, param: &Param) -> bool {
        let layers = self.layers.borrow();
        self.tape.is_inside_any(param.scope, &layers)
    }

    /// A layer's input, whose gradient comes once the layer has been recomputed for the last time: its copy is then freed.
    fn kept_for_layer(self: &Rc<Self>, scope: Scope, inputs: Vec<Tensor>) -> Vec<Tensor> {
        let hooks = self.checkpoints && !self.is_first && self.tape.grad_enabled();
        if !hooks || !inputs.iter().any(Tensor::requires_grad) {
            return inputs;
        }
        let this = self.clone();
        Tensor::hooked(inputs, move || {
            for param in this.params.borrow().iter() {
                if this.tape.is_inside(param.scope, scope) {
                    param.replica.take();
                }
            }
        })
    }
}

/// When a chunk of tensors is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// Once it has reached the size (`take_tensors` in torch/csrc/utils/tensor_flatten.cpp).
    Full,
    /// Before the tensor that would not fit (`_take_tensors` in torch/_utils.py).
    BeforeFull,
}

/// The places of tensors that are joined in chunks; each type has its own.
fn chunks(tensors: &[Tensor], closed: Closed) -> Vec<Vec<usize>> {
    let mut open: BTreeMap<DType, (u64, Vec<usize>)> = BTreeMap::new();
    let mut chunks = Vec::new();
    for (at, tensor) in tensors.iter().enumerate() {
        let (bytes, chunk) = open
            .entry(tensor.dtype())
            .or_insert_with(|| (0, Vec::new()));
        let with_it = bytes.saturating_add(tensor.bytes());
        if closed == Closed::BeforeFull && *bytes > 0 && with_it > BUFFER {
            *bytes = 0;
            chunks.push(std::mem::take(chunk));
        }
        *bytes = bytes.saturating_add(tensor.bytes());
        chunk.push(at);
        if closed == Closed::Full && *bytes >= BUFFER {
            *bytes = 0;
            chunks.push(std::mem::take(chunk));
        }
    }
    let rest = open.into_iter().map(|(_, (_, chunk))| chunk);
    chunks.extend(rest.filter(|chunk| !chunk.is_empty()));
    chunks
}

/// The elements of a chunk, and their type.
fn joined(tensors: &[Tensor], chunk: &[usize]) -> Option<(u64, DType)> {
    let mut members = chunk.iter().filter_map(|at| tensors.get(*at)).peekable();
    let dtype = members.peek()?.dtype();
    let elements = members.map(Tensor::numel).fold(0, u64::saturating_add);
    Some((elements, dtype))
}
