//! What tensors look like and what keeps them for backward: noted only where someone asks, for most runs need but bytes.

use super::{Core, DType, Dims, Tape, Tensor};

/// Something about the tensor that a block was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub block: u32,
    pub shape: Dims,
    pub dtype: DType,
    /// The operation whose backward keeps it; empty in the note of its making.
    pub kept_for: &'static str,
}

impl Tape {
    /// Notes from now on what tensors look like.
    pub fn keep_notes(&self) {
        self.0.noting.set(Some(0));
    }
}

impl Core {
    #[inline]
    pub(in crate::tape) fn note_made(&self, tensor: &Tensor) {
        if self.noting.get().is_some() {
            self.note(tensor, "");
        }
    }

    /// A tensor is kept by an operation that runs now; its result says which.
    #[inline]
    pub(in crate::tape) fn note_kept(&self, tensor: &Tensor) {
        if self.noting.get().is_some() && !self.stopped.get() {
            self.note(tensor, self.last_op.get());
        }
    }

    /// The operation that has kept what was kept since the last has come to its result.
    #[inline]
    pub(in crate::tape) fn note_result(&self, result: &Tensor) {
        if let Some(from) = self.noting.get() {
            self.note_result_of(result, from);
        }
    }

    #[cold]
    fn note_result_of(&self, result: &Tensor, from: usize) {
        let mut trace = self.trace.borrow_mut();
        let block = result
            .storage_id()
            .and_then(|it| trace.blocks.get(it as usize));
        let op = block.map(|it| it.op);
        let kept = trace.notes.iter_mut().skip(from);
        for note in kept.filter(|it| !it.kept_for.is_empty()) {
            note.kept_for = op.unwrap_or(note.kept_for);
        }
        self.noting.set(Some(trace.notes.len()));
    }

    #[cold]
    fn note(&self, tensor: &Tensor, kept_for: &'static str) {
        if let Some(block) = tensor.storage_id() {
            self.trace.borrow_mut().notes.push(Note {
                block,
                shape: *tensor.shape(),
                dtype: tensor.dtype(),
                kept_for,
            });
        }
    }
}
