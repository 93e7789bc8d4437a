//! Tensors that a compiled region saves for backward: as they are where the cut keeps them, else computed again.

use std::rc::Rc;

use super::graph::{Made, Operation, Origin};
use crate::tape::core::{Pass, Region, StorageRef, Unpack};
use crate::tape::layout::Shared;
use crate::tape::{Core, DType, Tape, Tensor};

/// A tensor saved in a compiled region that backward computes again.
pub(in crate::tape) struct Recomputed {
    core: Rc<Core>,
    /// Its only source is the value itself.
    itself: bool,
    layout: Rc<Shared>,
    dtype: DType,
    sources: Vec<Rc<StorageRef>>,
}

impl Unpack for Recomputed {
    fn unpack(&self) -> Tensor {
        self.core.note_sources(&self.sources);
        let only = self.sources.first().and_then(|held| held.storage.get());
        if let Some(storage) = only.filter(|_| self.itself) {
            return Tensor::of_storage(&self.core, &self.layout, storage, self.dtype);
        }
        Tape(self.core.clone()).empty_as("recomputed", self.layout.layout, self.dtype)
    }
}

impl Recomputed {
    /// The tensor as a value that has no memory until it is read.
    pub(crate) fn deferred(&self) -> Tensor {
        let outer = self.core.compiler.fused.replace(Some(Vec::new()));
        let tensor = self.unpack();
        let read = self.core.compiler.fused.replace(outer);
        drop(read);
        tensor
    }
}

impl Core {
    /// A tensor is saved for backward.
    pub(in crate::tape) fn pack_compiled(self: &Rc<Self>, tensor: &Tensor) -> Option<Recomputed> {
        if !self.compiler.is_used.get() {
            return None;
        }
        let mut region = self.compiler.region.borrow_mut();
        let region = region.as_mut()?;
        let storage = tensor.storage_id()?;
        let place = region.saved;
        region.saved += 1;
        match &mut region.run {
            Pass::Trace(graph) => {
                let bytes_of = |storage| self.bytes_of(storage);
                graph.saves.push(storage);
                let made = std::mem::take(&mut region.open);
                let known = graph.places.contains_key(&storage);
                if !known && made.iter().any(|made| made.storage == storage) {
                    let operation = Operation {
                        made: &made,
                        reads: &region.reads,
                        external: region.external,
                        flops: region.flops,
                        recompute: !region.selected && self.checkpoints(),
                    };
                    graph.complete(&operation, &bytes_of);
                } else {
                    region.open = made;
                }
                let place = graph.place(storage, &bytes_of);
                if let Some(value) = graph.values.get_mut(place) {
                    value.saved = true;
                    value.must_materialize |= region.external;
                }
                None
            }
            Pass::Run {
                plan,
                live,
                recompute_all,
                ..
            } => {
                let sources = plan.sources.get(place)?;
                for made in &region.open {
                    if plan.kept.get(made.ordinal) == Some(&true) {
                        region.kept_storages.insert(made.ordinal, made.storage);
                        live.entry(made.ordinal)
                            .or_insert_with(|| self.held(made, *recompute_all));
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
                let held: Vec<Rc<StorageRef>> = sources
                    .iter()
                    .filter_map(|origin| match origin {
                        Origin::Made(ordinal) => {
                            live.get(ordinal).map(|held| match held.storage.get() {
                                Some(storage) => StorageRef::of(self, storage),
                                None => held.clone(),
                            })
                        }
                        Origin::Outside(storage) => Some(StorageRef::of(self, *storage)),
                    })
                    .collect();
                if itself && (!*recompute_all || matches!(sources[..], [Origin::Outside(_)])) {
                    return None;
                }
                Some(Recomputed {
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
        }) = &mut *self.compiler.region.borrow_mut()
            && let Some(place) = tensor.storage_id().and_then(|of| graph.places.get(&of))
            && let Some(value) = graph.values.get_mut(*place)
        {
            (value.must_materialize, value.must_recompute) = (true, false);
        }
    }

    /// The operation under way has results that selective checkpointing names (`MUST_SAVE`): the cut may keep them.
    pub(in crate::tape) fn keep_result(&self) {
        if let Some(region) = &mut *self.compiler.region.borrow_mut() {
            region.selected = true;
        }
    }

    /// Whether a result that selective checkpointing names is kept: in a compiled graph only if backward reads what is computed
    /// from it.
    pub(in crate::tape) fn keeps_result(&self, result: &Tensor) -> bool {
        let region = self.compiler.region.borrow();
        let Some(Region {
            run: Pass::Run { plan, .. },
            open,
            ..
        }) = region.as_ref()
        else {
            return true;
        };
        let made = open
            .iter()
            .find(|made| Some(made.storage) == result.storage_id());
        made.is_none_or(|made| plan.kept.get(made.ordinal) == Some(&true))
    }

    pub(super) fn held(self: &Rc<Self>, made: &Made, later: bool) -> Rc<StorageRef> {
        if later {
            StorageRef::later(self)
        } else {
            StorageRef::of(self, made.storage)
        }
    }
}
