//! Views, copies between layouts, and operations that move elements.

use super::super::{DType, Dims, Grads, Layout, Tensor, borrowing, consuming, grads};
use super::conv::suggests_channels_last;

impl Tensor {
    /// A view with history: backward is the inverse view of the gradient.
    fn viewed(&self, layout: Layout, backward: impl FnOnce(Tensor) -> Tensor + 'static) -> Tensor {
        self.alias(layout)
            .from_op(&[self], |_| consuming(move |g| grads([Some(backward(g))])))
    }

    /// A view that changes nothing here but has a node of its own.
    pub(in crate::tape) fn with_own_node(&self) -> Tensor {
        self.viewed(*self.layout(), |g| g)
    }

    /// `self.view(shape)`, or `reshape` where the layout allows no view: then it copies.
    pub fn reshape(&self, shape: &[u64]) -> Tensor {
        let shape = Dims::new(shape);
        if shape == *self.shape() {
            return self.clone();
        }
        let from = *self.shape();
        match self.layout().viewed(shape) {
            Some(layout) => self.viewed(layout, move |g| g.reshape(&from)),
            None => {
                let dense = self.contiguous();
                // Sizes that do not multiply to the same number come from sizes nobody means, such as zero.
                let layout = dense.layout().viewed(shape);
                let layout = layout.unwrap_or_else(|| Layout::contiguous(shape));
                // `_unsafe_view`: nobody else has the copy.
                dense.shaped(layout).from_op(&[&dense], |_| {
                    borrowing(move |g| grads([Some(g.reshape(&from))]))
                })
            }
        }
    }

    /// `self.view(shape)`.
    pub fn view(&self, shape: &[u64]) -> Tensor {
        self.reshape(shape)
    }

    /// `self.transpose(a, b)`: a view.
    pub fn transpose(&self, a: isize, b: isize) -> Tensor {
        let (Some(a), Some(b)) = (self.dim(a), self.dim(b)) else {
            return self.clone();
        };
        self.viewed(self.layout().transposed(a, b), move |g| {
            g.alias(g.layout().transposed(a, b))
        })
    }

    /// `self.permute(order)`: a view.
    pub fn permute(&self, order: &[usize]) -> Tensor {
        let mut inverse = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            if let Some(place) = inverse.get_mut(from) {
                *place = to;
            }
        }
        self.viewed(self.layout().permuted(order), move |g| {
            g.alias(g.layout().permuted(&inverse))
        })
    }

    /// `self.unsqueeze(at)`: a view.
    pub fn unsqueeze(&self, at: isize) -> Tensor {
        let n = self.shape().len() as isize + 1;
        let Ok(at) = usize::try_from(if at < 0 { at + n } else { at }) else {
            return self.clone();
        };
        let Layout { shape, strides } = *self.layout();
        let step = shape
            .get(at)
            .map_or(1, |size| size.saturating_mul(strides[at]));
        let layout = Layout {
            shape: shape.inserted(at, 1),
            strides: strides.inserted(at, step),
        };
        self.viewed(layout, move |g| g.squeezed(at))
    }

    /// `self.squeeze(at)`: a view; the tensor itself where the dimension's size is not 1.
    pub fn squeeze(&self, at: isize) -> Tensor {
        let Some(at) = self.dim(at).filter(|&i| self.shape().get(i) == Some(&1)) else {
            return self.clone();
        };
        let layout = *self.squeezed(at).layout();
        self.viewed(layout, move |g| g.unsqueeze(at as isize))
    }

    fn squeezed(&self, at: usize) -> Tensor {
        let Layout { shape, strides } = *self.layout();
        self.alias(Layout {
            shape: shape.removed(at),
            strides: strides.removed(at),
        })
    }

    /// `self.expand(shape)`: a view; the gradient is summed back.
    pub fn expand(&self, shape: &[u64]) -> Tensor {
        let shape = Dims::new(shape);
        if shape == *self.shape() {
            return self.clone();
        }
        let from = *self.shape();
        self.viewed(self.layout().expanded(shape), move |g| g.sum_to(from))
    }

    /// `self.narrow(dim, ..)`, a slice: backward puts the gradient into zeros of the full shape.
    pub fn narrow(&self, dim: isize, length: u64) -> Tensor {
        let Some(dim) = self.dim(dim) else {
            return self.clone();
        };
        let whole = *self.shape();
        if whole.get(dim) == Some(&length) {
            return self.clone();
        }
        self.viewed(self.sliced(dim, length), move |g| g.padded_to(whole))
    }

    /// `self[..., ::2]`: backward puts the gradient into zeros of the full shape.
    pub fn every_other(&self) -> Tensor {
        let whole = *self.shape();
        let Some(last) = whole.len().checked_sub(1) else {
            return self.clone();
        };
        let Layout { shape, strides } = *self.layout();
        let layout = Layout {
            shape: shape.with(last, shape[last].div_ceil(2)),
            strides: strides.with(last, strides[last].saturating_mul(2)),
        };
        self.viewed(layout, move |g| g.padded_to(whole))
    }

    fn sliced(&self, dim: usize, length: u64) -> Layout {
        Layout {
            shape: self.shape().with(dim, length),
            strides: self.layout().strides,
        }
    }

    fn padded_to(&self, whole: Dims) -> Tensor {
        let out = self.tape().empty("slice_backward", whole, self.dtype());
        self.tape().kernel(
            "slice_backward",
            self.dtype(),
            0.0,
            self.bytes() as f64 + out.bytes() as f64,
        );
        out
    }

    /// `self.select(dim, i)`, as `x[:, 0]`.
    pub fn select(&self, dim: isize) -> Tensor {
        let Some(dim) = self.dim(dim) else {
            return self.clone();
        };
        let whole = *self.shape();
        let Layout { shape, strides } = *self.layout();
        let layout = Layout {
            shape: shape.removed(dim),
            strides: strides.removed(dim),
        };
        self.viewed(layout, move |g| g.padded_to(whole))
    }

    /// `self.split(sizes, dim)`: views; backward joins the gradients (absent ones as zeros).
    pub fn split(&self, sizes: &[u64], dim: isize) -> Vec<Tensor> {
        let Some(at) = self.dim(dim) else {
            return vec![self.clone()];
        };
        let whole = *self.shape();
        let dtype = self.dtype();
        let parts: Vec<Tensor> = sizes
            .iter()
            .map(|&n| self.alias(self.sliced(at, n)))
            .collect();
        let shapes: Vec<Dims> = parts.iter().map(|part| *part.shape()).collect();
        Tensor::from_op_with(parts, &[self], |_| {
            Box::new(move |incoming| {
                let Some(tape) = incoming.iter().flatten().next().map(Tensor::tape) else {
                    return Grads::new();
                };
                let zeros: Vec<Tensor> = shapes
                    .iter()
                    .zip(&incoming)
                    .filter(|(_, g)| g.is_none())
                    .map(|(shape, _)| tape.empty("zeros", *shape, dtype))
                    .collect();
                let out = tape.empty("cat", whole, dtype);
                tape.kernel("cat", dtype, 0.0, 2.0 * out.bytes() as f64);
                drop(zeros);
                grads([Some(out)])
            })
        })
    }

    /// `self.chunk(n, dim)`.
    pub fn chunk(&self, n: u64, dim: isize) -> Vec<Tensor> {
        let size = self.size(dim);
        let each = size.div_ceil(n.max(1));
        let sizes: Vec<u64> = (0..n)
            .map(|i| each.min(size.saturating_sub(i * each)))
            .filter(|&s| s > 0)
            .collect();
        self.split(&sizes, dim)
    }

    /// `torch.cat(all, dim)`: backward hands out views of the gradient.
    pub fn cat(first: &Tensor, rest: &[&Tensor], dim: isize) -> Tensor {
        let Some(at) = first.dim(dim) else {
            return first.clone();
        };
        let all = &[&[first], rest].concat()[..];
        let dtype = all
            .iter()
            .fold(first.dtype(), |wide, t| wide.promote(t.dtype()));
        let sizes: Vec<u64> = all.iter().map(|t| t.size(dim)).collect();
        let shape = first
            .shape()
            .with(at, sizes.iter().copied().fold(0, u64::saturating_add));
        // `cat_compute_output_memory_format`: channels last where all are.
        let layout = if all.iter().all(|t| suggests_channels_last(t)) {
            Layout::channels_last(shape)
        } else {
            Layout::contiguous(shape)
        };
        let out = first.tape().empty_as("cat", layout, dtype);
        first
            .tape()
            .kernel("cat", dtype, 0.0, 2.0 * out.bytes() as f64);
        let metas: Vec<_> = all.iter().map(|t| t.meta()).collect();
        out.from_op(all, |needs| {
            let needed: Vec<bool> = (0..sizes.len()).map(|i| needs.input(i)).collect();
            borrowing(move |g| {
                sizes
                    .iter()
                    .zip(metas)
                    .zip(needed)
                    .map(|((&n, meta), needed)| {
                        needed.then(|| g.alias(g.sliced(at, n)).conform(meta))
                    })
                    .collect()
            })
        })
    }

    /// `torch.roll(self, shifts, dims)` over two dimensions: one after the other, each a copy.
    pub fn roll(&self) -> Tensor {
        let once = |t: &Tensor| t.copied("roll", Layout::contiguous(*t.shape()));
        let twice = move |t: &Tensor| once(t).pipe(once);
        twice(self).from_op(&[self], |_| borrowing(move |g| grads([Some(twice(g))])))
    }

    /// `F.pad` of some dimensions to `shape`: backward slices.
    pub fn pad_to(&self, shape: &[u64]) -> Tensor {
        let from = *self.shape();
        let out = self.tape().empty("pad", Dims::new(shape), self.dtype());
        self.tape().kernel(
            "pad",
            self.dtype(),
            0.0,
            self.bytes() as f64 + out.bytes() as f64,
        );
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                let out = g.tape().empty("pad_backward", from, g.dtype());
                g.tape()
                    .kernel("pad_backward", g.dtype(), 0.0, 2.0 * out.bytes() as f64);
                grads([Some(out)])
            })
        })
    }

    /// `PSAMask.forward` of mmcv to `shape`: saves nothing, and backward makes zeros of the input's shape (mmcv/ops/psa_mask.py).
    pub fn psa_mask(&self, shape: [u64; 4]) -> Tensor {
        self.pad_to(&shape)
    }

    /// `repeat_interleave` or `repeat` to `shape` by a copy of an expanded view.
    pub fn repeated(&self, shape: &[u64]) -> Tensor {
        self.expand(shape).contiguous()
    }

    /// `self.repeat(times, 1, …)`: a copy even of one; the gradients of the copies are summed (`repeat_backward`).
    pub fn tiled(&self, times: u64) -> Tensor {
        let mut shape = *self.shape();
        let first = shape.iter().next().copied().unwrap_or(1);
        let kept = shape;
        shape = shape.with(0, first.saturating_mul(times));
        let out = self.tape().empty("repeat", shape, self.dtype());
        let moved = self.bytes().saturating_add(out.bytes()) as f64;
        self.tape().kernel("repeat", self.dtype(), 0.0, moved);
        out.from_op(&[self], |_| {
            borrowing(move |g| {
                if times == 1 {
                    return grads([Some(g.clone())]);
                }
                let split = [&[times], &kept[..]].concat();
                let split = g.alias(Layout::contiguous(Dims::new(&split)));
                grads([Some(split.sum_to(kept))])
            })
        })
    }

    /// `torch.cat(list(self), 0)`: a copy forth, and back by `stack`.
    pub fn cat_list(&self) -> Tensor {
        let shape = *self.shape();
        self.copied("cat", Layout::contiguous(shape))
            .from_op(&[self], |_| {
                borrowing(move |g| grads([Some(g.copied("stack", Layout::contiguous(shape)))]))
            })
    }

    /// A helper tensor of indices or masks: no history.
    pub fn constant(&self, op: &'static str, shape: &[u64], dtype: DType) -> Tensor {
        self.core().generates();
        self.tape().empty(op, Dims::new(shape), dtype)
    }
}
