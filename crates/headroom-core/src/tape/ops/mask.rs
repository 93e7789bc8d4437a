//! Comparisons, and choosing elements by a mask.

use super::super::{DType, Layout, Saved, Tensor, borrowing, broadcast, grads};

impl Tensor {
    /// A comparison: a Boolean result, no gradient.
    pub fn compare(&self, other: &Tensor, op: &'static str) -> Tensor {
        self.zip_to(other, op, DType::Bool)
    }

    /// `self.masked_fill(mask, value)`: a dense copy, filled in place; the mask is saved.
    pub fn masked_fill(&self, mask: &Tensor) -> Tensor {
        let fill = |t: &Tensor, mask: &Tensor| {
            let filled = t.zip_to(mask, "masked_fill", t.dtype());
            filled.shaped(Layout::contiguous(*filled.shape()))
        };
        let meta = self.meta();
        fill(self, mask).from_op(&[self], |_| {
            let mask = mask.save();
            borrowing(move |g| grads([Some(fill(g, &mask.unpack()).conform(meta))]))
        })
    }

    /// `torch.clamp(self, low, high)` between tensors of one number, which are saved with the input (`clamp_backward` in
    /// FunctionsManual.cpp).
    pub fn clamped(&self, bounds: &[Tensor; 2]) -> Tensor {
        let [low, high] = bounds;
        self.map("clamp").from_op(&[self], |_| {
            let kept = [self, low, high].map(Tensor::save);
            borrowing(move |g| {
                let input = kept.each_ref().map(Saved::unpack);
                let sides = ["ge", "le"].map(|op| input[0].constant(op, g.shape(), DType::Bool));
                let within = input[0].constant("logical_and_", &[0; 0], DType::Bool);
                let number = g.constant("scalar_tensor", &[0; 0], g.dtype());
                let out = g.map("where");
                drop((within, number, sides, input));
                grads([Some(out)])
            })
        })
    }

    /// `torch.where(mask, self, number)`: the mask is saved; the number becomes a tensor each time.
    pub fn where_mask(&self, mask: &Tensor) -> Tensor {
        let choose = |t: &Tensor, mask: &Tensor| {
            let number = t.constant("scalar_tensor", &[0; 0], t.dtype());
            let out = t.zip_to(mask, "where", t.dtype());
            drop(number);
            out
        };
        let meta = self.meta();
        choose(self, mask).from_op(&[self], |_| {
            let kept = mask.save();
            borrowing(move |g| {
                let mask = kept.unpack();
                let chosen = choose(g, &mask);
                drop(mask);
                grads([Some(chosen.conform(meta))])
            })
        })
    }

    /// `torch.where(self, first, second)` between tensors: the mask is saved, and gradients are chosen beside zeros.
    pub fn choose(&self, first: &Tensor, second: &Tensor) -> Tensor {
        let both = broadcast(first.shape(), second.shape());
        let shape = broadcast(&both, self.shape());
        let [of_first, of_second] = [first.meta(), second.meta()];
        let out = self.tape().empty("where", shape, first.dtype());
        out.from_op(&[first, second], |needs| {
            let needed = [needs.input(0), needs.input(1)];
            let kept = self.save();
            borrowing(move |g| {
                let mask = kept.unpack();
                let chosen = || {
                    let zero = g.constant("scalar_tensor", &[0; 0], g.dtype());
                    let part = g.zip_to(&mask, "where", g.dtype());
                    drop(zero);
                    part
                };
                let for_first = needed[0].then(|| chosen().conform(of_first));
                let for_second = needed[1].then(|| chosen().conform(of_second));
                drop(mask);
                grads([for_first, for_second])
            })
        })
    }
}
