//! The graph of a region as it is traced, and what its cut makes of it: which values are kept, and what each saved tensor is
//! computed from.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::Value;

#[derive(Clone, Copy)]
pub(in crate::tape) struct Made {
    pub storage: u32,
    pub ordinal: usize,
    pub bytes: u64,
    pub op: &'static str,
}

/// An operation that is complete: what it made of what it read.
pub(in crate::tape) struct Operation<'a> {
    pub made: &'a [Made],
    pub reads: &'a [u32],
    /// A library's kernel ran it.
    pub external: bool,
    pub flops: f64,
    /// A checkpoint around it computes it again.
    pub recompute: bool,
}

/// How a node of backward is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tape) enum Compiled {
    /// It is not compiled.
    #[default]
    Not,
    /// A generated kernel runs it, together with its neighbours.
    Fused,
    /// A kernel of a library runs it.
    External,
}

/// The graph of a region as it is traced.
#[derive(Default)]
pub(in crate::tape) struct Graph {
    pub values: Vec<Value>,
    /// The place of each storage's value.
    pub places: BTreeMap<u32, usize>,
    /// The ordinals of values that the region makes.
    pub ordinals: BTreeMap<usize, usize>,
    /// What was saved, in order.
    pub saves: Vec<u32>,
    /// How many operations there were.
    pub operations: usize,
}

/// What a region keeps.
pub(in crate::tape) struct Plan {
    /// Whether a storage is kept, by the order in which they are made.
    pub kept: Vec<bool>,
    /// What each saved tensor is computed from.
    pub sources: Vec<Vec<Origin>>,
    /// The ordinals of values that backward computes again.
    pub recomputed: BTreeSet<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tape) enum Origin {
    Made(usize),
    Outside(u32),
}

/// Operations whose results are not computed again, though they are fused (they are missing in `default_recomputable_ops`).
const KEPT_OPS: [&str; 6] = [
    "embedding",
    "dropout_mask",
    "bernoulli",
    "max_pool2d",
    "cat",
    "inputs",
];

/// Those of chance.
const RANDOM_OPS: [&str; 2] = ["dropout_mask", "bernoulli"];

/// Numbers of generated operations, each of which makes one value, are beyond those of a library's.
const GENERATED_FROM: usize = 1 << 24;

impl Graph {
    pub(crate) fn place(&mut self, storage: u32, bytes_of: &dyn Fn(u32) -> u64) -> usize {
        if let Some(&place) = self.places.get(&storage) {
            return place;
        }
        let bytes = bytes_of(storage);
        self.values.push(Value {
            bytes,
            outside: true,
            ..Value::default()
        });
        let place = self.values.len() - 1;
        self.places.insert(storage, place);
        place
    }

    /// An operation is complete: reductions first, which its larger results are computed from.
    pub(crate) fn complete(&mut self, operation: &Operation, bytes_of: &dyn Fn(u32) -> u64) {
        let &Operation {
            made,
            reads,
            external,
            flops,
            recompute,
        } = operation;
        self.operations += 1;
        let operation = self.operations;
        let reads = reads.iter();
        let inputs: Vec<usize> = reads.map(|&read| self.place(read, bytes_of)).collect();
        let largest = made.iter().map(|made| made.bytes).max().unwrap_or(0);
        let (small, large): (Vec<&Made>, Vec<&Made>) = made
            .iter()
            .partition(|made| made.bytes.saturating_mul(4) < largest);
        let mut reductions = Vec::new();
        for (made, is_small) in small
            .iter()
            .map(|made| (made, true))
            .chain(large.iter().map(|made| (made, false)))
        {
            let mut inputs = inputs.clone();
            if is_small {
                reductions.push(self.values.len());
            } else if !external {
                inputs.extend(&reductions);
            }
            self.ordinals.insert(made.ordinal, self.values.len());
            self.places.insert(made.storage, self.values.len());
            self.values.push(Value {
                bytes: made.bytes,
                inputs,
                must_recompute: recompute,
                recomputable: !external && !KEPT_OPS.contains(&made.op),
                never_recompute: external || RANDOM_OPS.contains(&made.op),
                // Values of one kernel of a library go together; a generated one can be divided.
                operation: if external {
                    operation
                } else {
                    GENERATED_FROM + self.values.len()
                },
                flops,
                ..Value::default()
            });
        }
    }

    /// The plan of a cut; `made` counts the region's storages.
    pub(crate) fn plan(self, cut: &[bool], made: usize) -> Plan {
        let is_kept = |place: usize| cut.get(place).copied().unwrap_or(false);
        let mut kept = vec![false; made];
        let mut origins: Vec<Option<Origin>> = vec![None; self.values.len()];
        for (&storage, &place) in &self.places {
            if let (Some(value), Some(origin)) = (self.values.get(place), origins.get_mut(place))
                && value.outside
            {
                *origin = Some(Origin::Outside(storage));
            }
        }
        for (&ordinal, &place) in &self.ordinals {
            if is_kept(place) {
                if let Some(kept) = kept.get_mut(ordinal) {
                    *kept = true;
                }
                if let Some(origin) = origins.get_mut(place) {
                    *origin = Some(Origin::Made(ordinal));
                }
            }
        }
        let mut again = BTreeSet::new();
        let mut sources: BTreeMap<u32, Vec<Origin>> = BTreeMap::new();
        let of_saves = self.saves.iter().map(|saved| {
            let place = self.places.get(saved).copied();
            sources
                .entry(*saved)
                .or_insert_with(|| match place {
                    Some(place) => self.origins_of(place, &origins, &mut again),
                    None => Vec::new(),
                })
                .clone()
        });
        let sources = of_saves.collect();
        let is_again = |(_, place): &(&usize, &usize)| again.contains(*place);
        let recomputed = self.ordinals.iter().filter(is_again);
        Plan {
            sources,
            recomputed: recomputed.map(|(&ordinal, _)| ordinal).collect(),
            kept,
        }
    }

    /// The kept values and inputs that a value is computed from; notes the others on the way.
    fn origins_of(
        &self,
        place: usize,
        origins: &[Option<Origin>],
        again: &mut BTreeSet<usize>,
    ) -> Vec<Origin> {
        let mut found = BTreeSet::new();
        let mut visited = BTreeSet::new();
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if !visited.insert(place) {
                continue;
            }
            match origins.get(place).copied().flatten() {
                Some(origin) => {
                    found.insert(origin);
                }
                None => {
                    again.insert(place);
                    let value = self.values.get(place);
                    open.extend(value.iter().flat_map(|value| &value.inputs));
                }
            }
        }
        found.into_iter().collect()
    }
}
