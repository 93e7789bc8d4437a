//! Matrix products and their workspaces.

use super::super::super::Tensor;
use super::RecordedCall;

impl RecordedCall<'_> {
    pub(super) fn product(&self) -> Option<Vec<Tensor>> {
        let results = match self.call.name() {
            "mm" | "bmm" | "baddbmm" | "mv" | "addmv" | "dot" | "vdot" => {
                let results = self.plainly();
                self.tape.cublas_workspace();
                results
            }
            "addmm" => {
                let results = self.plainly();
                let (bias, columns) = (self.inputs.first()?, self.made.first()?);
                let inner = self
                    .inputs
                    .get(1)?
                    .layout
                    .shape
                    .last()
                    .copied()
                    .unwrap_or(1);
                if bias.layout.shape.len() == 1 && inner > 1 && columns.size(1) > 1 {
                    self.tape.cublaslt_workspace();
                } else {
                    self.tape.cublas_workspace();
                }
                results
            }
            _ => return None,
        };
        Some(results)
    }
}
