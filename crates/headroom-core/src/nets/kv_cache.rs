//! The cache of keys and values (transformers/cache_utils.py).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::Checkpointing;

/// The keys and values of each layer that `generate` keeps from token to token; clones are the same cache.
#[derive(Clone, Debug, Default)]
pub struct KvCache(Rc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// Keys and values of one layer after the other.
    tensors: RefCell<Vec<Tensor>>,
    /// Where the next layer's stand; none while the first pass fills the cache.
    place: Cell<Option<usize>>,
    /// Places for tokens that a static cache has from the start; zero where it grows.
    room: Cell<u64>,
    /// Tokens that a pass adds besides its own.
    skipped: Cell<u64>,
}

/// The cache of keys and values, where there is one.
pub(super) type Cache = Option<KvCache>;

/// The cache of keys and values, if there is one: a checkpointed layer gets none (`GradientCheckpointingLayer`).
pub(super) fn cache(cx: &Cx) -> Cache {
    let kept = cx.env.training.use_cache && cx.checkpointing() != Checkpointing::Layers;
    kept.then(Default::default)
}

/// Keys and values to attend to, with those of the cache where there is one.
pub(super) fn cached(cache: &Cache, k: Tensor, v: Tensor) -> (Tensor, Tensor) {
    let Some(cache) = cache else { return (k, v) };
    cache.update(k, v).into()
}

impl KvCache {
    /// `StaticCache` with room for this many tokens.
    pub fn with_room(room: u64) -> Self {
        let cache = Self::default();
        cache.0.room.set(room);
        cache
    }

    pub fn is_static(&self) -> bool {
        self.0.room.get() > 0
    }

    /// The number of places of a static cache.
    pub fn room(&self) -> u64 {
        self.0.room.get()
    }

    /// The passes after this one continue with what is cached.
    pub fn next_pass(&self) {
        self.0.place.set(Some(0));
    }

    /// Keeps a tensor as it is.
    pub fn push(&self, tensor: Tensor) {
        self.0.tensors.borrow_mut().push(tensor);
    }

    /// Empties the cache.
    pub fn take(&self) -> Vec<Tensor> {
        self.0.tensors.take()
    }

    /// The next pass stands for this many skipped passes too: it lengthens a growing cache by as many tokens more.
    pub fn skip(&self, tokens: u64) {
        self.0.skipped.set(tokens);
    }

    fn replace(&self, place: usize, new: Tensor) {
        let old = match self.0.tensors.borrow_mut().get_mut(place) {
            Some(slot) => std::mem::replace(slot, new),
            None => return,
        };
        drop(old);
    }

    /// `DynamicLayer.update` and `StaticLayer.update`: the keys and values to attend to.
    pub fn update(&self, k: Tensor, v: Tensor) -> [Tensor; 2] {
        match self.0.place.get() {
            None if self.is_static() => {
                let room = |t: &Tensor| {
                    let dims = t.shape();
                    let shape = dims.with(dims.len().saturating_sub(2), self.room());
                    t.tape().empty("zeros", shape, t.dtype())
                };
                let all = [room(&k), room(&v)];
                self.0.tensors.borrow_mut().extend(all.clone());
                all
            }
            None => {
                let dtype = k.dtype();
                let empty = |t: &Tensor| t.constant("tensor", &[0], dtype);
                let (no_keys, no_values) = (empty(&k), empty(&v));
                let keys = Tensor::cat(&k, &[], -2);
                drop(no_keys);
                let values = if dtype == DType::F32 && v.dtype().is_half() {
                    v.to(dtype).pipe(|v| Tensor::cat(v, &[], -2))
                } else {
                    Tensor::cat(&v, &[], -2)
                };
                drop(no_values);
                self.0
                    .tensors
                    .borrow_mut()
                    .extend([keys.clone(), values.clone()]);
                [keys, values]
            }
            Some(place) => {
                self.0.place.set(Some(place + 2));
                let cached = |place: usize| self.0.tensors.borrow().get(place).cloned();
                let joined = |place: usize, new: &Tensor| {
                    let Some(old) = cached(place) else {
                        return new.clone();
                    };
                    if self.is_static() {
                        return old;
                    }
                    let dims = old.shape();
                    let length = old.size(-2) + new.size(-2) + self.0.skipped.get();
                    let shape = dims.with(dims.len().saturating_sub(2), length);
                    let all = old.tape().empty("cat", shape, old.dtype());
                    let moved = 2.0 * all.bytes() as f64;
                    old.tape().kernel("cat", old.dtype(), 0.0, moved);
                    drop(old);
                    self.replace(place, all.clone());
                    all
                };
                [joined(place, &k), joined(place + 1, &v)]
            }
        }
    }
}
