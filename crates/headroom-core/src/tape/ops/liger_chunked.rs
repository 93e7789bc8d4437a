//! Liger's chunked losses of pairs and groups (liger_kernel/chunked_loss of Liger-Kernel 0.8): forward makes the gradients of
//! hidden states and head, a chunk of rows at a time, so that only one chunk's logits exist.

use super::super::{DType, Saved, Tensor, borrowing, grads};

impl Tensor {
    /// `LigerFusedLinearPreferenceBase` of hidden states `[2B, S, H]`: a chunk is one pair. What is compiled of a chunk leaves
    /// its logits, their gradient in fp32, and the same as the product takes it. `refers`: the reference's logits come before.
    pub fn preference_loss_liger(&self, weight: &Tensor, refers: bool) -> Tensor {
        let (pairs, tokens) = (self.size(0) / 2, self.size(1));
        let (width, vocabulary) = (self.size(-1), weight.size(0));
        let tape = self.tape();
        let dtype = tape.autocast_dtype().unwrap_or(self.dtype());
        let rows = tokens.saturating_mul(2);
        let part = |op, columns, dtype| tape.empty(op, [rows, columns], dtype);
        let head = |op, dtype| {
            weight
                .requires_grad()
                .then(|| tape.empty(op, *weight.shape(), dtype))
        };
        let for_weight = head("zeros_like", weight.dtype());
        let mut made = Vec::new();
        // The third chunk finds what the second found.
        for _ in 0..pairs.clamp(1, 2) {
            let input = part("cat", width, self.dtype());
            let judged = refers.then(|| part("cat", width, self.dtype()));
            let logits = part("logits", vocabulary, dtype);
            drop(refers.then(|| part("logits", vocabulary, dtype)));
            let wide = part("logits_gradient", vocabulary, DType::F32);
            let gradient = part("logits_gradient", vocabulary, dtype);
            drop(wide);
            made.push(part("linear_backward", width, self.dtype()));
            drop(head("linear_backward", weight.dtype()));
            // The mean of the logits is taken of them at last.
            drop((logits, gradient, judged, input));
        }
        let further = pairs.saturating_sub(made.len() as u64);
        made.push(part(
            "linear_backward",
            width.saturating_mul(further),
            self.dtype(),
        ));
        self.chunked_loss(weight, for_weight, made, 6.0)
    }

    /// `LigerFusedLinearPPOBase` of hidden states `[B, C, H]`: a chunk is one row, its logits come in tiles, and its gradients
    /// are summed in fp32 (`_selective_logprob_backward`).
    pub fn policy_loss_liger(&self, weight: &Tensor) -> Tensor {
        const COLUMNS: u64 = 4096;
        const TOKENS: u64 = 2048;
        let (rows, tokens, width) = (self.size(0), self.size(1), self.size(-1));
        let tape = self.tape();
        let head = |op, dtype| {
            weight
                .requires_grad()
                .then(|| tape.empty(op, *weight.shape(), dtype))
        };
        let tile = || {
            let columns = COLUMNS.min(weight.size(0));
            tape.empty("logits", [tokens.min(TOKENS), columns], DType::F32)
        };
        let part = |op, dtype| tape.empty(op, [tokens, width], dtype);
        let for_weight = head("zeros_like", weight.dtype());
        let mut made = Vec::new();
        for _ in 0..rows.clamp(1, 2) {
            drop((tile(), tile()));
            let wide = (part("zeros", DType::F32), head("zeros", DType::F32));
            drop((tile(), tile(), tile()));
            made.push(part("to", self.dtype()));
            drop(head("to", weight.dtype()));
            drop(wide);
        }
        let further = rows.saturating_sub(made.len() as u64);
        let shape = [tokens, width.saturating_mul(further)];
        made.push(tape.empty("to", shape, self.dtype()));
        self.chunked_loss(weight, for_weight, made, 8.0)
    }

    /// The chunks' gradients of the hidden states joined, and the loss that hands them on.
    fn chunked_loss(
        &self,
        weight: &Tensor,
        for_weight: Option<Tensor>,
        made: Vec<Tensor>,
        passes: f64,
    ) -> Tensor {
        let tape = self.tape();
        let for_input = tape.empty("cat", *self.shape(), self.dtype());
        drop(made);
        let work = passes * self.numel() as f64 * weight.size(0) as f64;
        tape.kernel("linear_cross_entropy", self.dtype(), work, 0.0);
        let loss = tape.empty("zeros", [0; 0], DType::F32);
        loss.from_op(&[self, weight], |_| {
            let kept = [
                Some(for_input.save()),
                for_weight.as_ref().map(Tensor::save),
            ];
            borrowing(move |_| {
                let unpacked = kept.each_ref().map(|kept| kept.as_ref().map(Saved::unpack));
                let given = |g: Tensor| g.shaped(*g.layout());
                let [for_input, for_weight] = unpacked.map(|g| g.map(given));
                grads([for_input, for_weight])
            })
        })
    }
}
