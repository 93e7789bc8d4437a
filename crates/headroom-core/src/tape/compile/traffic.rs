//! The memory traffic of generated kernels: what they read and write, without what is between their operations.

use std::rc::Rc;

use super::graph::Made;
use crate::tape::core::{Pass, StorageRef};
use crate::tape::{Core, DType};

/// A value that is used more than once and computed from more than four others is written to memory, and what is computed from it
/// reads that (`realize_reads_threshold` in torch/_inductor/config.py).
const MOST_READS: usize = 5;

/// A kernel of a region that is computed again in backward.
#[derive(Clone, Copy)]
pub(in crate::tape) struct Launch {
    pub op: &'static str,
    pub dtype: DType,
    pub work: [f64; 2],
    pub count: u32,
}

impl Core {
    /// Whether the kernel that is launched is part of a generated one, whose traffic is counted where its result gets memory.
    pub(in crate::tape) fn is_generated(&self) -> bool {
        if !self.compiler.is_used.get() {
            return false;
        }
        match self.compiler.region.borrow().as_ref() {
            Some(region) => matches!(region.run, Pass::Run { .. }) && !region.external,
            None => self.compiler.fused.borrow().is_some(),
        }
    }

    /// A kernel that is not generated runs: what the next generated one reads comes from memory.
    pub(in crate::tape) fn leave_generated(&self, launch: Launch) {
        if !self.compiler.is_used.get() {
            return;
        }
        self.compiler.touched.borrow_mut().clear();
        self.note_launch(launch);
    }

    fn note_launch(&self, launch: Launch) {
        if let Some(region) = &mut *self.compiler.region.borrow_mut() {
            region.launched.push(launch);
        }
    }

    /// Launches the kernels of what is computed again.
    pub(super) fn launch_again(&self, launches: &[Launch]) {
        if self.recorder.skips_kernels.get() {
            return;
        }
        for launch in launches {
            self.record_kernel(*launch);
        }
    }

    /// Counts the traffic of a generated kernel that writes this value. What others of its kind read or wrote since the last
    /// kernel of a library they read together: Inductor's scheduler fuses kernels that share data.
    pub(super) fn launch_generated(&self, written: u32, sources: &[Rc<StorageRef>]) {
        self.launch_reading(written, sources, u64::MAX);
    }

    /// The same where at most so many bytes of each source are read.
    fn launch_reading(&self, written: u32, sources: &[Rc<StorageRef>], most: u64) {
        const OP: &str = "generated";
        if self.is_silent() || self.recorder.skips_kernels.get() {
            return;
        }
        let mut touched = self.compiler.touched.borrow_mut();
        let mut of = |storage| {
            let is_new = touched.insert(storage);
            if is_new { self.bytes_of(storage) } else { 0 }
        };
        let reads = sources.iter().filter_map(|source| source.storage.get());
        let mut reads: Vec<u64> = reads.map(|read| of(read).min(most)).collect();
        let written = of(written);
        reads.sort_unstable_by(|a, b| b.cmp(a));
        let sum = |reads: &[u64]| {
            reads
                .iter()
                .fold(0_u64, |all, read| all.saturating_add(*read))
        };
        // A longer chain goes by way of memory once; what is joined is read whole.
        let chain = sum(reads.get(..MOST_READS).unwrap_or(&reads));
        let bytes = sum(&reads).min(chain.max(written)) as f64 + written as f64;
        drop(touched);
        let launch = Launch {
            op: OP,
            dtype: DType::F32,
            work: [0.0, bytes],
            count: 1,
        };
        self.note_launch(launch);
        self.record_kernel(launch);
    }

    /// Counts the traffic of the generated kernels that write the values of these which have memory at once.
    pub(super) fn launch_kept(self: &Rc<Self>, made: &[Made], reads: &[u32]) {
        let waits = |made: &Made| {
            let waiting = self.compiler.deferred_values.borrow();
            waiting.contains_key(&made.storage)
        };
        let mut kept = made.iter().filter(|made| !waits(made)).peekable();
        if kept.peek().is_none() {
            return;
        }
        let reads = reads.iter().flat_map(|&read| self.sources_of(read));
        let sources: Vec<Rc<StorageRef>> = reads.collect();
        for made in kept {
            // Of a table only the rows are read that are taken.
            let rows = if made.op == "embedding" {
                made.bytes
            } else {
                u64::MAX
            };
            self.launch_reading(made.storage, &sources, rows);
        }
    }
}
