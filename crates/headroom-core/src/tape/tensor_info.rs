//! Shapes and types of tensors, and which operations save them for backward: recorded on request, as most runs need only bytes.

use super::{Core, Tape, Tensor, TensorInfo};

impl Tape {
    /// Records shapes and types of tensors from now on.
    pub fn record_tensors(&self) {
        self.0.recorder.records_tensors.set(Some(0));
    }
}

impl Core {
    #[inline]
    pub(in crate::tape) fn record_result(&self, tensor: &Tensor) {
        if self.recorder.records_tensors.get().is_some() {
            self.record_tensor(tensor, "");
        }
    }

    /// The running operation saves a tensor. Its name is known with its result.
    #[inline]
    pub(in crate::tape) fn record_saved(&self, tensor: &Tensor) {
        if self.recorder.records_tensors.get().is_some() && !self.ambient.stopped.get() {
            self.record_tensor(tensor, self.recorder.last_op.get());
        }
    }

    /// Names the operation that saved tensors since the result before this one.
    #[inline]
    pub(in crate::tape) fn name_operation(&self, result: &Tensor) {
        if let Some(from) = self.recorder.records_tensors.get() {
            self.name_operation_of(result, from);
        }
    }

    #[cold]
    fn name_operation_of(&self, result: &Tensor, from: usize) {
        let mut trace = self.trace.borrow_mut();
        let storage = result
            .storage_id()
            .and_then(|storage| trace.storages.get(storage as usize));
        let op = storage.map(|storage| trace.source(storage).op);
        let kept = trace.tensors.iter_mut().skip(from);
        for note in kept.filter(|info| !info.saved_for.is_empty()) {
            note.saved_for = op.unwrap_or(note.saved_for);
        }
        self.recorder.records_tensors.set(Some(trace.tensors.len()));
    }

    #[cold]
    fn record_tensor(&self, tensor: &Tensor, saved_for: &'static str) {
        if let Some(storage) = tensor.storage_id() {
            self.trace.borrow_mut().tensors.push(TensorInfo {
                storage,
                shape: *tensor.shape(),
                dtype: tensor.dtype(),
                saved_for,
            });
        }
    }
}
