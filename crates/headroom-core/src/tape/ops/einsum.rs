//! `torch.einsum` of two tensors (aten/src/ATen/native/Linear.cpp: `einsum`, `sumproduct_pair`): a batched product of
//! permuted operands.

use super::super::Tensor;

/// A dimension of an einsum by its label.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Label(u8);

/// Where a label's dimension goes in the product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// In both operands and the result: a batch dimension.
    Batch,
    /// In the left operand and the result.
    Left,
    /// In the right operand and the result; also dimensions of one element in both.
    Right,
    /// In both operands and not in the result.
    Summed,
}

impl Tensor {
    /// `torch.einsum("LEFT,RIGHT->OUT", self, other)`.
    pub fn einsum(&self, left: &str, other: &Tensor, right: &str, out: &str) -> Tensor {
        let out: Vec<Label> = out.bytes().map(Label).collect();
        let mut all = out.clone();
        let mut summed: Vec<Label> = left.bytes().chain(right.bytes()).map(Label).collect();
        summed.retain(|label| !out.contains(label));
        summed.sort_by_key(|label| label.0);
        summed.dedup();
        all.extend(&summed);
        let [a, b] = [(self, left), (other, right)].map(|(x, labels)| x.aligned_to(labels, &all));
        let part = |i: usize| {
            let wide = [&a, &b].map(|x| x.size(i as isize) != 1);
            match wide {
                _ if i >= out.len() => Part::Summed,
                [true, true] => Part::Batch,
                [true, false] => Part::Left,
                [false, _] => Part::Right,
            }
        };
        let parts: Vec<Part> = (0..all.len()).map(part).collect();
        let of = |wanted: Part| {
            (0..all.len())
                .filter(|&i| parts[i] == wanted)
                .collect::<Vec<_>>()
        };
        let [batch, lefts, rights, sums] =
            [Part::Batch, Part::Left, Part::Right, Part::Summed].map(of);
        let product = |x: &Tensor, dims: &[usize]| {
            let sizes = dims.iter().map(|&i| x.size(i as isize));
            sizes.fold(1_u64, u64::saturating_mul)
        };
        let (n, k) = (product(&a, &batch), product(&a, &sums));
        let (rows, columns) = (product(&a, &lefts), product(&b, &rights));
        let a_order = [&batch[..], &lefts, &sums, &rights].concat();
        let b_order = [&batch[..], &sums, &rights, &lefts].concat();
        let left = a.permute(&a_order).reshape(&[n, rows, k]);
        let right = b.permute(&b_order).reshape(&[n, k, columns]);
        let multiplied = left.bmm(&right);
        drop((left, right));
        let order = [&batch[..], &lefts, &sums, &rights].concat();
        let sizes: Vec<u64> = order
            .iter()
            .map(|&i| match parts[i] {
                Part::Summed => 1,
                Part::Right => b.size(i as isize),
                Part::Batch | Part::Left => a.size(i as isize),
            })
            .collect();
        let back: Vec<usize> = (0..all.len())
            .map(|i| order.iter().position(|&at| at == i).unwrap_or(i))
            .collect();
        let shaped = multiplied.view(&sizes).permute(&back);
        // The summed dimensions, of one element now, are the last.
        (0..summed.len()).fold(shaped, |x, _| x.squeeze(-1))
    }

    /// A view with a dimension for each of all labels: those that it has not are of one element.
    fn aligned_to(&self, labels: &str, all: &[Label]) -> Tensor {
        let own: Vec<Label> = labels.bytes().map(Label).collect();
        let mut wide = self.clone();
        let mut at = Vec::new();
        let mut missing = own.len();
        for label in all {
            match own.iter().position(|own| own == label) {
                Some(place) => at.push(place),
                None => {
                    wide = wide.unsqueeze(-1);
                    at.push(missing);
                    missing += 1;
                }
            }
        }
        wide.permute(&at)
    }
}

#[cfg(test)]
mod tests {
    use crate::tape::{DType, Machine, Tape};

    #[test]
    fn labels_decide_the_shape() {
        let tape = Tape::new(Machine::default());
        let x = tape.empty("x", [2, 3, 4, 5, 6], DType::F32);
        let y = tape.empty("y", [2, 3, 7, 5, 6], DType::F32);
        let out = x.einsum("bclhn", &y, "bcshn", "bclsh");
        assert_eq!(out.shape()[..], [2, 3, 4, 7, 5]);
        let decay = tape.empty("decay", [1, 3, 2, 5], DType::F32);
        let states = tape.empty("states", [1, 3, 5, 8, 6], DType::F32);
        let out = decay.einsum("bzch", &states, "bzhpn", "bchpn");
        assert_eq!(out.shape()[..], [1, 2, 5, 8, 6]);
    }
}
