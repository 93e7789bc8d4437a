//! Saved tensors that are kept on the host: PyTorch's own hook, and TRL's.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use super::core::{Holder, SavedTensorHook, Unpack};
use super::{Category, DType, Tape, Tensor};

impl Tape {
    /// Runs `body` with `torch.autograd.graph.save_on_cpu()` in force.
    pub fn offloading<T>(&self, body: impl FnOnce() -> T) -> T {
        self.with_saved_tensor_hook(Rc::new(Offload), body)
    }

    /// The same with the `OffloadActivations` of TRL (trl/models/activation_offloading.py), as it is by default: with streams.
    pub fn offloading_by_trl<T>(&self, body: impl FnOnce() -> T) -> T {
        self.with_saved_tensor_hook(Rc::new(TrlOffload::default()), body)
    }
}

/// `torch.autograd.graph.save_on_cpu`.
struct Offload;

impl SavedTensorHook for Offload {
    fn pack(&self, tensor: &Tensor) -> Holder {
        if tensor.is_leaf_param() {
            return Holder::Saved(tensor.saved_variable());
        }
        Holder::Packed(Rc::new(OnHost(copied_to_host(tensor))))
    }
}

/// A tensor on the host.
struct OnHost(Tensor);

/// Takes no memory of the device.
fn copied_to_host(tensor: &Tensor) -> Tensor {
    let op = "save_on_cpu";
    let (layout, dtype) = (*tensor.layout(), tensor.dtype());
    let core = tensor.core();
    let shadow = core.tensor(op, 0, layout, dtype, Category::Activations);
    Tape(core.clone()).kernel(op, dtype, 0.0, shadow.bytes() as f64);
    shadow
}

fn copied_to_device(like: &Tensor) -> Tensor {
    let tape = like.tape();
    tape.kernel("load_from_cpu", like.dtype(), 0.0, like.bytes() as f64);
    tape.empty_as("to(device)", *like.layout(), like.dtype())
}

impl Unpack for OnHost {
    fn unpack(&self) -> Tensor {
        copied_to_device(&self.0)
    }
}

/// `OffloadActivations` keeps the last few tensors on the device while they are copied, and for good what a second node saves in
/// the meantime: it takes a storage that it knows for one that is on the host already, and holds the tensor that it was given.
#[derive(Default)]
struct TrlOffload(Rc<RefCell<Stash>>);

#[derive(Default)]
struct Stash {
    /// Tensors that have been packed.
    count: u64,
    /// `fwd_stash`: those that are being copied to the host, the oldest first.
    leaving: VecDeque<(u64, Tensor)>,
    /// `storage_to_tensor_id`, without the numbers: storages in use by the stash, and those that were kept.
    known: BTreeSet<(u32, DType)>,
    kept: BTreeSet<(u32, DType)>,
    /// `bwd_tensor_stash`: what was copied back for the node that runs, and for the one before.
    node: Option<u32>,
    back: Vec<Tensor>,
    before: Vec<Tensor>,
}

/// `min_offload_size` in bytes, and `max_fwd_stash_size`.
const SMALLEST: u64 = 1024;
const MOST_LEAVING: u64 = 5;

impl SavedTensorHook for TrlOffload {
    fn pack(&self, tensor: &Tensor) -> Holder {
        let stays = || Holder::Saved(tensor.saved_variable());
        let mut stash = self.0.borrow_mut();
        stash.count += 1;
        let Some(storage) = tensor.storage_id() else {
            return stays();
        };
        let key = (storage, tensor.dtype());
        if stash.known.contains(&key) {
            stash.kept.insert(key);
            return stays();
        }
        if tensor.bytes() < SMALLEST || tensor.is_leaf_param() {
            return stays();
        }
        let leaving = if tensor.is_contiguous() {
            tensor.detach()
        } else {
            tensor.detach().contiguous()
        };
        let number = stash.count;
        while let Some((_, old)) = stash.has_left(number) {
            stash.forget(&old);
        }
        let on_host = copied_to_host(&leaving);
        stash.leaving.push_back((number, leaving));
        stash.known.insert(key);
        let hook = self.0.clone();
        Holder::Packed(Rc::new(Leaving {
            hook,
            number,
            on_host,
        }))
    }
}

impl Stash {
    /// The oldest tensor of the stash, if it is as far behind as copies are waited for.
    fn has_left(&mut self, number: u64) -> Option<(u64, Tensor)> {
        let (oldest, _) = self.leaving.front()?;
        (*oldest + MOST_LEAVING <= number).then(|| self.leaving.pop_front())?
    }

    /// `release_storage_key`, which does not find those that a later tensor has taken over.
    fn forget(&mut self, tensor: &Tensor) {
        if let Some(storage) = tensor.storage_id() {
            let key = (storage, tensor.dtype());
            if !self.kept.contains(&key) {
                self.known.remove(&key);
            }
        }
    }
}

/// A tensor that is copied to the host, or was.
struct Leaving {
    hook: Rc<RefCell<Stash>>,
    number: u64,
    on_host: Tensor,
}

impl Unpack for Leaving {
    fn unpack(&self) -> Tensor {
        let running = self.on_host.core().autograd.running.get();
        let node = Some(running);
        let mut stash = self.hook.borrow_mut();
        if stash.node != node {
            // What the node before was given goes once this one has run; what that had kept of others goes now, with all that was
            // still being copied when the first node had run.
            let back = std::mem::take(&mut stash.back);
            let gone = std::mem::replace(&mut stash.before, back);
            let is_first = stash.node.replace(running).is_none();
            if !is_first {
                stash.leaving.clear();
            }
            drop(gone);
        }
        let here = stash
            .leaving
            .iter()
            .find(|(number, _)| *number == self.number);
        if let Some((_, tensor)) = here {
            return tensor.clone();
        }
        let tensor = copied_to_device(&self.on_host);
        stash.back.push(tensor.clone());
        tensor
    }
}
