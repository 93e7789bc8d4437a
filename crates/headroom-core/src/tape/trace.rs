//! The record of a run: allocation events, and what each storage was for.

use std::cell::Cell;

use super::{Category, DType, Dims, Phase, Stream};
use headroom_base::list::{ChunkedVec, push};

/// One allocation or release of a storage, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(u32);

impl Event {
    const FREE: u32 = 1 << 31;

    pub(super) const fn alloc(storage: u32) -> Self {
        Self(storage)
    }
    pub(super) const fn free(storage: u32) -> Self {
        Self(storage | Self::FREE)
    }
    pub const fn storage(self) -> u32 {
        self.0 & !Self::FREE
    }
    pub const fn is_free(self) -> bool {
        self.0 & Self::FREE != 0
    }
}

/// The memory behind a tensor (`torch.UntypedStorage`), or a workspace of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// Requested, before the allocator rounds.
    pub bytes: u64,
    /// The number of its source.
    pub(super) source: u32,
    /// How many exist after all repeats of its group.
    pub copies: u32,
    /// It came into a group and was held by each repeat: one copy is allocated outside, the others inside.
    pub carried: bool,
    pub category: Category,
    /// The stream of its pool.
    pub stream: Stream,
    /// How many tensors share it during the run.
    pub(super) holders: u32,
}

/// What allocated a storage. Storages share it, as a run of many small steps has a hundred thousand of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub op: &'static str,
    /// The module it belongs to.
    pub scope: Scope,
}

// A run of many small steps has a hundred thousand, and no prediction may take more than 8 MiB.
const _: () = assert!(size_of::<Storage>() <= 24);

impl Storage {
    pub const fn rounded(&self) -> u64 {
        rounded(self.bytes)
    }
}

/// As the caching allocator rounds: to 512 bytes (`kMinBlockSize` in c10/cuda/CUDACachingAllocator.cpp).
pub const fn rounded(bytes: u64) -> u64 {
    bytes.saturating_add(511) & !511
}

/// A module path, interned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(pub(super) u32);

impl Scope {
    /// Its number; the scopes of a run are numbered from zero.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeEntry {
    pub parent: Scope,
    pub name: &'static str,
    /// The position in a list of modules, such as `layers.3`.
    pub index: Option<u32>,
    /// How many modules of the list it represents.
    pub times: u32,
    /// The last child created, and the sibling created before this one; 0 if there is none.
    pub last_child: u32,
    pub sibling: u32,
}

/// A range of events that represents several equal ones in a row, such as the middle layers of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub start: usize,
    pub end: usize,
    pub times: u32,
    /// What each repeat takes over from the one before: the storage it receives and the storage it passes on.
    pub carries: Vec<(u32, u32)>,
    /// Backward takes the copies from the last to the first.
    pub reversed: bool,
}

/// The point in the event list where a phase begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseStart {
    pub at: usize,
    /// How many kernels are recorded before it.
    pub kernels: usize,
    pub step: u32,
    pub phase: Phase,
}

/// Launches of one kernel with one amount of work, for the time estimate.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    pub op: &'static str,
    pub flops: f64,
    pub bytes_moved: f64,
    pub dtype: DType,
    pub phase: Phase,
    pub times: u32,
}

impl Kernel {
    fn same(&self, other: &Self) -> bool {
        let work = |kernel: &Self| (kernel.flops.to_bits(), kernel.bytes_moved.to_bits());
        let what = |kernel: &Self| (kernel.dtype, kernel.phase);
        work(self) == work(other) && what(self) == what(other) && self.op == other.op
    }
}

/// Everything recorded.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Events before the first step: parameters, buffers, optimizer states.
    pub setup: Vec<Event>,
    pub events: Vec<Event>,
    pub phase_starts: Vec<PhaseStart>,
    pub storages: ChunkedVec<Storage>,
    pub(super) sources: Vec<Source>,
    /// Groups of `setup` and of `events`, in order, none inside another.
    pub setup_groups: Vec<Group>,
    pub groups: Vec<Group>,
    /// A group did not come out even: the run must be repeated with less folding.
    pub broken: bool,
    /// The run exceeded its budget, and the trace is incomplete.
    pub over_budget: bool,
    pub kernels: Vec<Kernel>,
    /// Shapes, dtypes and saving operations of tensors, where recorded.
    pub tensors: Vec<TensorInfo>,
    pub(super) repeating: Option<Repeating>,
    /// Phases that were copied, in the order in which they begin; of those that begin together the longest first.
    pub copied: Vec<Copied>,
    pub(super) scopes: Vec<ScopeEntry>,
    /// Names of modules that come from outside the program.
    pub(super) names: Vec<String>,
}

/// Phases with the same events, of the same storages, as those just before them, which are as many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The first of them.
    pub from: usize,
    pub count: usize,
}

/// Equal steps in the event list: where the first begins, and how many events each has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeating {
    pub from: usize,
    pub length: usize,
}

/// Shape and dtype of a tensor: one entry when it is created, and one for each time it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub storage: u32,
    pub shape: Dims,
    pub dtype: DType,
    /// The operation whose backward needs it; empty in the entry of its creation.
    pub saved_for: &'static str,
}

/// The places of recent sources in the list, by their operation and module.
#[derive(Debug)]
pub(super) struct RecentSources([Cell<u32>; Self::PLACES]);

impl RecentSources {
    const PLACES: usize = 64;

    fn place(&self, source: Source) -> Option<&Cell<u32>> {
        let mixed = source.op.as_ptr().addr() >> 3 ^ source.scope.index().wrapping_mul(7);
        self.0.get(mixed % Self::PLACES)
    }
}

impl Default for RecentSources {
    fn default() -> Self {
        Self([const { Cell::new(u32::MAX) }; Self::PLACES])
    }
}

/// The places of recent kernels in the list, by their work.
#[derive(Debug)]
pub(super) struct Launched([Cell<u32>; Self::PLACES]);

impl Launched {
    const PLACES: usize = 64;

    fn place(&self, kernel: &Kernel) -> Option<&Cell<u32>> {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let work = kernel.flops.to_bits() ^ kernel.bytes_moved.to_bits().rotate_left(17);
        let mixed = work.wrapping_mul(GOLDEN) >> (u64::BITS - Self::PLACES.ilog2());
        self.0.get(mixed as usize)
    }
}

impl Default for Launched {
    fn default() -> Self {
        Self([const { Cell::new(u32::MAX) }; Self::PLACES])
    }
}

impl Trace {
    /// What it takes of the memory of the program that predicts.
    pub fn bytes(&self) -> usize {
        let events = self.setup.len() + self.events.len();
        events * size_of::<Event>()
            + self.storages.len() * size_of::<Storage>()
            + self.kernels.len() * size_of::<Kernel>()
            + self.tensors.len() * size_of::<TensorInfo>()
    }

    /// The operation that allocated a storage, and its module.
    pub fn source(&self, storage: &Storage) -> Source {
        let known = self.sources.get(storage.source as usize);
        known.copied().unwrap_or_default()
    }

    /// The number of a source, a new one where it is not a recent one.
    pub(super) fn number_of(&mut self, source: Source, recent: &RecentSources) -> u32 {
        let new = self.sources.len() as u32;
        let Some(place) = recent.place(source) else {
            return new;
        };
        let known = place.get();
        match self.sources.get(known as usize) {
            Some(same) if same.scope == source.scope && std::ptr::eq(same.op, source.op) => known,
            _ => {
                place.set(new);
                self.sources.push(source);
                new
            }
        }
    }

    /// An event of the set-up, or of the steps.
    #[inline]
    pub(super) fn record(&mut self, event: Event, in_setup: bool) {
        push(
            if in_setup {
                &mut self.setup
            } else {
                &mut self.events
            },
            event,
        );
    }

    /// A launch equal to one since the phase began is counted with it: a loop over thousands of positions launches the same few.
    pub(super) fn launch(&mut self, kernel: Kernel, launched: &Launched) {
        let since = self.phase_starts.last().map_or(0, |mark| mark.kernels);
        let Some(place) = launched.place(&kernel) else {
            return;
        };
        let before = self.kernels.get_mut(since..).unwrap_or_default();
        let like = (place.get() as usize).checked_sub(since);
        match like.and_then(|at| before.get_mut(at)) {
            Some(like) if like.same(&kernel) => {
                like.times = like.times.saturating_add(kernel.times);
            }
            _ => {
                place.set(u32::try_from(self.kernels.len()).unwrap_or(u32::MAX));
                push(&mut self.kernels, kernel);
            }
        }
    }

    /// The dotted path of a scope, such as `transformer.h.3.attn`.
    pub fn path(&self, scope: Scope) -> String {
        let mut parts = Vec::new();
        let mut at = scope;
        while let Some(entry) = self.scopes.get(at.0 as usize).filter(|_| at.0 != 0) {
            parts.push(match entry.index {
                // A name from outside, by its place among those.
                Some(i) if entry.name.is_empty() => {
                    self.names.get(i as usize).cloned().unwrap_or_default()
                }
                Some(i) if entry.times > 1 => format!("{}.{i}-{}", entry.name, i + entry.times - 1),
                Some(i) => format!("{}.{i}", entry.name),
                None => entry.name.to_string(),
            });
            at = entry.parent;
        }
        parts.reverse();
        parts.join(".")
    }
}
