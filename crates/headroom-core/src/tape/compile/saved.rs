//! Tensors that a compiled region saves for backward: as they are where the cut keeps them, else computed again.

use std::rc::Rc;

use super::graph::{Made, Origin};
use super::put_off::Held;
use super::region::{Pass, Region};
use crate::tape::layout::Shared;
use crate::tape::{Core, DType, Tape, Tensor};

/// A tensor saved in a compiled region that backward computes again.
pub(in crate::tape) struct Remade {
    core: Rc<Core>,
    /// Its only source is the value itself.
    itself: bool,
    layout: Rc<Shared>,
    dtype: DType,
    sources: Vec<Rc<Held>>,
}

/// What a saved tensor of a compiled region becomes.
pub(in crate::tape) enum Packed {
    AsItIs,
    Remade(Remade),
}

impl Remade {
    pub fn tensor(&self) -> Tensor {
        self.core.note_sources(&self.sources);
        let only = self.sources.first().and_then(|held| held.storage.get());
        if let Some(storage) = only.filter(|_| self.itself) {
            return Tensor::of_storage(&self.core, &self.layout, storage, self.dtype);
        }
        Tape(self.core.clone()).empty_as("recomputed", self.layout.layout, self.dtype)
    }

    /// The tensor as a value that has no memory until it is read.
    pub fn put_off(&self) -> Tensor {
        let outer = self.core.fused.replace(Some(Vec::new()));
        let tensor = self.tensor();
        let read = self.core.fused.replace(outer);
        drop(read);
        tensor
    }
}

impl Core {
    /// A tensor is saved for backward.
    pub(in crate::tape) fn pack_compiled(self: &Rc<Self>, tensor: &Tensor) -> Packed {
        let mut region = self.region.borrow_mut();
        let Some(region) = region.as_mut() else {
            return Packed::AsItIs;
        };
        let Some(storage) = tensor.storage_id() else {
            return Packed::AsItIs;
        };
        let place = region.saved;
        region.saved += 1;
        match &mut region.run {
            Pass::Trace(graph) => {
                graph.saves.push(storage);
                let made = std::mem::take(&mut region.open);
                let known = graph.places.contains_key(&storage);
                if !known && made.iter().any(|made| made.storage == storage) {
                    let kind = (region.external, region.flops);
                    graph.complete(self, &made, &region.reads, kind);
                } else {
                    region.open = made;
                }
                let place = graph.place(self, storage);
                if let Some(value) = graph.values.get_mut(place) {
                    value.saved = true;
                    value.read_whole |= region.external;
                }
                Packed::AsItIs
            }
            Pass::Run {
                plan, live, again, ..
            } => {
                let Some(sources) = plan.sources.get(place) else {
                    return Packed::AsItIs;
                };
                for made in &region.open {
                    if plan.kept.get(made.ordinal) == Some(&true) {
                        region.kept_storages.insert(made.ordinal, made.storage);
                        live.entry(made.ordinal)
                            .or_insert_with(|| self.held(made, *again));
                    }
                }
                let itself = match (
                    &sources[..],
                    region.open.iter().find(|made| made.storage == storage),
                ) {
                    ([Origin::Outside(only)], _) => *only == storage,
                    ([Origin::Made(only)], Some(made)) => *only == made.ordinal,
                    ([Origin::Made(only)], None) => {
                        region.kept_storages.get(only) == Some(&storage)
                    }
                    _ => false,
                };
                let held: Vec<Rc<Held>> = sources
                    .iter()
                    .filter_map(|origin| match origin {
                        Origin::Made(ordinal) => {
                            live.get(ordinal).map(|held| match held.storage.get() {
                                Some(storage) => Held::of(self, storage),
                                None => held.clone(),
                            })
                        }
                        Origin::Outside(storage) => Some(Held::of(self, *storage)),
                    })
                    .collect();
                if itself && (!*again || matches!(sources[..], [Origin::Outside(_)])) {
                    return Packed::AsItIs;
                }
                Packed::Remade(Remade {
                    itself,
                    core: self.clone(),
                    layout: tensor.shared_layout().clone(),
                    dtype: tensor.dtype(),
                    sources: held,
                })
            }
        }
    }

    /// An input of a checkpointed part of the graph, which the tags of checkpointing keep (`cleanup_recompute_tags`).
    pub(in crate::tape) fn keep_for_recomputation(self: &Rc<Self>, tensor: &Tensor) {
        drop(self.pack_compiled(tensor));
        if let Some(Region {
            run: Pass::Trace(graph),
            ..
        }) = &mut *self.region.borrow_mut()
            && let Some(place) = tensor.storage_id().and_then(|of| graph.places.get(&of))
            && let Some(value) = graph.values.get_mut(*place)
        {
            (value.read_whole, value.again) = (true, false);
        }
    }

    pub(super) fn held(self: &Rc<Self>, made: &Made, again: bool) -> Rc<Held> {
        if again {
            Held::later(self)
        } else {
            Held::of(self, made.storage)
        }
    }
}
