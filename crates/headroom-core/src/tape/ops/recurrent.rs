//! Recurrent cells as PyTorch's own kernels run them (aten/src/ATen/native/RNN.cpp, cuda/RNN.cu), a step at a time.

use super::super::{Grads, Layout, Needs, Saved, Tensor, borrowing, consuming, grads};

impl Tensor {
    /// The products of a cell, `matmul(self, weight.t())`. Autocast sees a view, so each step keeps a cast of its own. One
    /// node stands for those of both views and of the cast: there are thousands of steps.
    pub fn gates(&self, weight: &Tensor) -> Tensor {
        let through_view = |of: &Tensor, cast: &dyn Fn(&Tensor) -> Tensor| {
            of.transpose(0, 1).pipe(cast).transpose(0, 1)
        };
        let dtype = weight.dtype();
        let tape = self.tape();
        let lowered = tape.no_grad(|| through_view(weight, &Tensor::autocast));
        let weight = lowered.from_op(&[weight], |_| {
            consuming(move |g| grads([Some(through_view(&g, &|g| g.to(dtype)))]))
        });
        self.linear(&weight, None)
    }

    /// `_thnn_fused_lstm_cell`: the hidden state and the cell's. Saves both products, both cell states and the gates.
    pub fn lstm_cell(
        &self,
        hidden_gates: &Tensor,
        biases: [&Tensor; 2],
        cell: &Tensor,
    ) -> [Tensor; 2] {
        let hidden_bias = biases[1].autocast();
        let input_bias = biases[0].autocast();
        let cell = cell.autocast();
        let hidden_gates = hidden_gates.autocast();
        let input_gates = self.autocast();
        let gates = input_gates.map("lstm_cell");
        let hidden = cell.map("lstm_cell");
        let next = cell.map("lstm_cell");
        let inputs = [
            &input_gates,
            &hidden_gates,
            &cell,
            &input_bias,
            &hidden_bias,
        ];
        let all = [
            &input_gates,
            &hidden_gates,
            &input_bias,
            &hidden_bias,
            &cell,
            &next,
            &gates,
        ];
        let outputs = Tensor::from_op_with(vec![hidden, next.clone()], &inputs, |needs: &Needs| {
            let biased = needs.input(3);
            let kept = all.map(Tensor::save);
            Box::new(move |incoming| {
                if incoming.iter().all(Option::is_none) {
                    return Grads::new();
                }
                let unpacked = kept.each_ref().map(Saved::unpack);
                let [.., cell, _, gates] = &unpacked;
                let for_gates = gates.map("lstm_cell_backward");
                let for_cell = cell.map("lstm_cell_backward");
                let for_bias = biased.then(|| column_sums(&for_gates));
                drop(unpacked);
                grads([
                    Some(for_gates.clone()),
                    Some(for_gates),
                    Some(for_cell),
                    for_bias.clone(),
                    for_bias,
                ])
            })
        });
        match <[Tensor; 2]>::try_from(outputs) {
            Ok(both) => both,
            Err(_) => [next.clone(), next],
        }
    }

    /// `_thnn_fused_gru_cell`: the next hidden state. Saves both products, the state and five numbers a unit.
    pub fn gru_cell(&self, hidden_gates: &Tensor, biases: [&Tensor; 2], hidden: &Tensor) -> Tensor {
        let hidden_bias = biases[1].autocast();
        let input_bias = biases[0].autocast();
        let hidden = hidden.autocast();
        let hidden_gates = hidden_gates.autocast();
        let input_gates = self.autocast();
        let (rows, width) = (hidden.size(0), hidden.size(1));
        let parts = hidden
            .tape()
            .empty("gru_cell", [rows, 5 * width], hidden.dtype());
        let next = hidden.map("gru_cell");
        let inputs = [
            &input_gates,
            &hidden_gates,
            &hidden,
            &input_bias,
            &hidden_bias,
        ];
        let all = [
            &input_gates,
            &hidden_gates,
            &hidden,
            &input_bias,
            &hidden_bias,
            &parts,
        ];
        next.from_op(&inputs, |needs: &Needs| {
            let biased = needs.input(3);
            let kept = all.map(Tensor::save);
            Box::new(move |incoming| {
                if incoming.iter().all(Option::is_none) {
                    return Grads::new();
                }
                let unpacked = kept.each_ref().map(Saved::unpack);
                let [input_gates, hidden_gates, hidden, ..] = &unpacked;
                let for_input = input_gates.map("gru_cell_backward");
                let for_gates = hidden_gates.map("gru_cell_backward");
                let for_hidden = hidden.map("gru_cell_backward");
                let biases = [&for_input, &for_gates].map(|g| biased.then(|| column_sums(g)));
                drop(unpacked);
                let [input_bias, hidden_bias] = biases;
                grads([
                    Some(for_input),
                    Some(for_gates),
                    Some(for_hidden),
                    input_bias,
                    hidden_bias,
                ])
            })
        })
    }

    /// `self.unbind(dim)`: views; backward stacks their gradients.
    pub fn unbind_along(&self, dim: isize) -> Vec<Tensor> {
        let Some(at) = self.dim(dim) else {
            return vec![self.clone()];
        };
        let shape = *self.shape();
        let layout = without(self.layout(), at);
        let dtype = self.dtype();
        let count = self.tape().affordable(self.size(dim));
        let parts = (0..count).map(|_| self.alias(layout)).collect();
        Tensor::from_op_with(parts, &[self], |_| {
            Box::new(move |incoming| {
                let Some(tape) = incoming.iter().flatten().next().map(Tensor::tape) else {
                    return Grads::new();
                };
                grads([Some(tape.empty("stack", shape, dtype))])
            })
        })
    }

    /// `torch.stack(all, dim)`: backward hands out views.
    pub fn stack(all: &[Tensor], dim: isize) -> Option<Tensor> {
        let first = all.first()?;
        let end = first.shape().len() as isize + 1;
        let at = usize::try_from(if dim < 0 { dim + end } else { dim }).ok()?;
        let shape = first.shape().inserted(at, all.len() as u64);
        let out = first.tape().empty("stack", shape, first.dtype());
        let inputs: Vec<&Tensor> = all.iter().collect();
        let count = all.len();
        Some(out.from_op(&inputs, |_| {
            borrowing(move |g| {
                let layout = without(g.layout(), at);
                (0..count).map(|_| Some(g.alias(layout))).collect()
            })
        }))
    }
}

fn without(layout: &Layout, at: usize) -> Layout {
    Layout {
        shape: layout.shape.removed(at),
        strides: layout.strides.removed(at),
    }
}

/// `grad_gates.sum(0)`.
fn column_sums(gradient: &Tensor) -> Tensor {
    let width = gradient.size(-1);
    gradient
        .sum_to([1, width].into())
        .shaped(Layout::contiguous([width]))
}
