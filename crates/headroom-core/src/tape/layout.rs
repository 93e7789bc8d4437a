//! Shapes and strides: which reshapes are views and which copy.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use smallvec::SmallVec;

/// The most dimensions any tensor has here (window partition uses six, patch merging of volumes seven).
pub(crate) const MAX_DIMS: usize = 7;

/// A short list of sizes, by value.
#[derive(Clone, Copy)]
pub struct Dims {
    len: u8,
    sizes: [u64; MAX_DIMS],
}

impl Dims {
    /// The first `MAX_DIMS` of `sizes`; no network here needs more.
    pub fn new(sizes: &[u64]) -> Self {
        let len = sizes.len().min(MAX_DIMS);
        let mut all = [0; MAX_DIMS];
        all[..len].copy_from_slice(&sizes[..len]);
        Self {
            len: len as u8,
            sizes: all,
        }
    }

    pub fn product(&self) -> u64 {
        self.iter().fold(1, |all, n| all.saturating_mul(*n))
    }

    /// Two dimensions swapped; out of range, nothing changes.
    pub fn swapped(mut self, a: usize, b: usize) -> Self {
        if a.max(b) < usize::from(self.len) {
            self.sizes.swap(a, b);
        }
        self
    }

    pub fn with(mut self, at: usize, size: u64) -> Self {
        if let Some(place) = self.sizes[..usize::from(self.len)].get_mut(at) {
            *place = size;
        }
        self
    }

    pub fn inserted(&self, at: usize, size: u64) -> Self {
        let at = at.min(self.len());
        let mut all = *self;
        if self.len() < MAX_DIMS {
            all.len += 1;
        }
        for i in (at + 1..all.len()).rev() {
            all.sizes[i] = self.sizes[i - 1];
        }
        all.with(at, size)
    }

    pub fn removed(&self, at: usize) -> Self {
        let mut all = *self;
        let Some(last) = self.len().checked_sub(1) else {
            return all;
        };
        all.sizes.copy_within(at.min(last) + 1..=last, at.min(last));
        all.sizes[last] = 0;
        all.len -= 1;
        all
    }
}

impl PartialEq for Dims {
    /// A loop, as comparing so few numbers is no work for a call of `memcmp`.
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.iter().zip(other.iter());
        self.len == other.len && pairs.all(|(a, b)| a == b)
    }
}
impl Eq for Dims {}
impl Deref for Dims {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.sizes[..usize::from(self.len)]
    }
}
impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
impl<const N: usize> From<[u64; N]> for Dims {
    fn from(sizes: [u64; N]) -> Self {
        Self::new(&sizes)
    }
}
impl From<&[u64]> for Dims {
    fn from(sizes: &[u64]) -> Self {
        Self::new(sizes)
    }
}

/// A layout shared between tensors, with its most frequent queries cached.
pub(super) struct Shared {
    pub layout: Layout,
    pub numel: u64,
    pub contiguous: bool,
    pub dense: bool,
    /// Strides are those of `Layout::contiguous`, where a dimension has one element too.
    pub row_major: bool,
}

/// Recent layouts by their hash, so that tensors with equal layouts share one.
struct Recent(RefCell<[Option<Rc<Shared>>; Self::PLACES]>);

thread_local! {
    /// Layouts are values, so that they outlive the tape: the next run mostly has the same.
    static RECENT: Recent = const { Recent(RefCell::new([const { None }; Recent::PLACES])) };
}

impl Recent {
    /// A run has about a hundred: enough places that few of them collide.
    const PLACES: usize = 1024;
}

/// The layout, shared with other tensors where it is a recent one.
pub(super) fn shared(layout: Layout) -> Rc<Shared> {
    let recent = RECENT.try_with(|recent| {
        let mut all = recent.0.borrow_mut();
        let place = &mut all[layout.hash() % Recent::PLACES];
        match place {
            Some(known) if known.layout == layout => known.clone(),
            _ => place.insert(Rc::new(Shared::new(layout))).clone(),
        }
    });
    // A thread that ends has no recent layouts any more.
    recent.unwrap_or_else(|_| Rc::new(Shared::new(layout)))
}

impl Shared {
    fn new(layout: Layout) -> Self {
        let contiguous = layout.is_contiguous();
        Self {
            numel: layout.numel(),
            contiguous,
            dense: contiguous || layout.is_dense(),
            row_major: contiguous && layout == Layout::row_major(layout.shape),
            layout,
        }
    }
}

/// Shape and strides of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub shape: Dims,
    pub strides: Dims,
}

impl Layout {
    pub fn contiguous(shape: impl Into<Dims>) -> Self {
        Self::row_major(shape.into())
    }

    fn row_major(shape: Dims) -> Self {
        let mut strides = shape;
        let mut step: u64 = 1;
        for i in (0..shape.len()).rev() {
            strides.sizes[i] = step;
            step = step.saturating_mul(shape[i].max(1));
        }
        Self { shape, strides }
    }

    fn hash(&self) -> usize {
        // 2^64 divided by the golden ratio; a product's high bits are the well mixed ones.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut all: u64 = 0;
        for (size, stride) in self.shape.iter().zip(self.strides.iter()) {
            all = (all.rotate_left(7) ^ size ^ stride.rotate_left(32)).wrapping_mul(GOLDEN);
        }
        (all >> 40) as usize
    }

    /// `torch.channels_last`: the second dimension is innermost. Falls back to contiguous below three dimensions.
    pub fn channels_last(shape: impl Into<Dims>) -> Self {
        let shape = shape.into();
        if shape.len() < 3 {
            return Self::contiguous(shape);
        }
        let order: SmallVec<[usize; MAX_DIMS]> = std::iter::once(0)
            .chain(2..shape.len())
            .chain([1])
            .collect();
        Self::in_order(shape, &order)
    }

    /// Dense, with the dimensions of `order` from outermost to innermost.
    fn in_order(shape: Dims, order: &[usize]) -> Self {
        let mut strides = shape;
        let mut step: u64 = 1;
        for &i in order.iter().rev() {
            strides.sizes[i] = step;
            step = step.saturating_mul(shape[i].max(1));
        }
        Self { shape, strides }
    }

    /// Whether both have the same memory order: strides of dimensions of size one do not matter
    /// (`obeys_layout_contract` in grad_layout_contract.h).
    pub fn same_memory_order(&self, other: &Self) -> bool {
        self.shape == other.shape
            && (0..self.shape.len())
                .all(|i| self.shape[i] == 1 || self.strides[i] == other.strides[i])
    }

    pub fn numel(&self) -> u64 {
        self.shape.product()
    }

    pub fn is_contiguous(&self) -> bool {
        // A network whose shapes do not match can give one of a lower rank the strides of another; it is no memory in order.
        if self.shape.len() != self.strides.len() {
            return false;
        }
        let mut step: u64 = 1;
        for i in (0..self.shape.len()).rev() {
            if self.shape[i] != 1 {
                if self.strides[i] != step {
                    return false;
                }
                step = step.saturating_mul(self.shape[i]);
            }
        }
        true
    }

    pub fn is_channels_last(&self) -> bool {
        self.shape.len() >= 4
            && !self.is_contiguous()
            && *self
                == Self {
                    strides: self.strides,
                    ..Self::channels_last(self.shape)
                }
            && Self::channels_last(self.shape).strides == self.strides
    }

    /// The dimensions from outermost to innermost in memory.
    fn memory_order(&self) -> SmallVec<[usize; MAX_DIMS]> {
        let strides = &self.strides.sizes;
        let mut order = [0; MAX_DIMS];
        for i in 0..self.shape.len() {
            let mut at = i;
            while at > 0 && strides[order[at - 1]] < strides[i] {
                order[at] = order[at - 1];
                at -= 1;
            }
            order[at] = i;
        }
        SmallVec::from_buf_and_len(order, self.shape.len())
    }

    /// The dimension of more than one element with the smallest stride.
    pub fn innermost(&self) -> Option<usize> {
        (0..self.shape.len())
            .filter(|&i| self.shape[i] > 1)
            .min_by_key(|&i| (self.strides[i], std::cmp::Reverse(i)))
    }

    /// Whether each element has a place of its own and there are no holes (`is_non_overlapping_and_dense`).
    pub fn is_dense(&self) -> bool {
        if self.shape.len() != self.strides.len() {
            return false;
        }
        if self.is_contiguous() {
            return true;
        }
        let mut step: u64 = 1;
        for &i in self.memory_order().iter().rev() {
            if self.shape[i] != 1 {
                if self.strides[i] != step {
                    return false;
                }
                step = step.saturating_mul(self.shape[i]);
            }
        }
        true
    }

    /// What `empty_like(preserve_format)` makes: dense, with the dimensions in the same order (`infer_dense_strides`).
    pub fn preserved(&self) -> Self {
        if self.is_dense() {
            *self
        } else if self.strides.contains(&0) {
            Self::contiguous(self.shape)
        } else {
            Self::in_order(self.shape, &self.memory_order())
        }
    }

    /// The layout of an element-wise result of this operand with a broadcast shape.
    pub fn like(&self, shape: Dims) -> Self {
        if self.shape == shape && self.is_contiguous() {
            Self::contiguous(shape)
        } else if self.shape == shape {
            Self::in_order(shape, &self.memory_order())
        } else {
            Self::contiguous(shape)
        }
    }

    pub fn transposed(&self, a: usize, b: usize) -> Self {
        Self {
            shape: self.shape.swapped(a, b),
            strides: self.strides.swapped(a, b),
        }
    }

    pub fn permuted(&self, order: &[usize]) -> Self {
        let pick = |dims: &Dims| {
            Dims::new(
                &order
                    .iter()
                    .filter_map(|&i| dims.get(i).copied())
                    .collect::<smallvec::SmallVec<[u64; 8]>>(),
            )
        };
        Self {
            shape: pick(&self.shape),
            strides: pick(&self.strides),
        }
    }

    /// Broadcast to `shape` by zero strides.
    pub fn expanded(&self, shape: Dims) -> Self {
        let lead = shape.len().saturating_sub(self.shape.len());
        let mut strides = shape;
        for i in 0..shape.len() {
            strides.sizes[i] = match i
                .checked_sub(lead)
                .map(|j| (self.shape[j], self.strides[j]))
            {
                Some((size, stride)) if size == shape[i] => stride,
                _ => 0,
            };
        }
        Self { shape, strides }
    }

    /// The layout of a view with another shape, where one exists (`at::detail::computeStride`).
    pub fn viewed(&self, shape: Dims) -> Option<Self> {
        if self.is_contiguous() {
            return Some(Self::contiguous(shape));
        }
        let mut strides = shape;
        let mut view = shape.len();
        let mut chunk_base = *self.strides.last()?;
        let mut tensor_numel: u64 = 1;
        let mut view_numel: u64 = 1;
        for d in (0..self.shape.len()).rev() {
            tensor_numel = tensor_numel.saturating_mul(self.shape[d]);
            let chunk_ends = d == 0
                || (self.shape[d - 1] != 1
                    && self.strides[d - 1] != tensor_numel.saturating_mul(chunk_base));
            if chunk_ends {
                while view > 0 && (view_numel < tensor_numel || shape[view - 1] == 1) {
                    view -= 1;
                    strides.sizes[view] = view_numel.saturating_mul(chunk_base);
                    view_numel = view_numel.saturating_mul(shape[view]);
                }
                if view_numel != tensor_numel {
                    return None;
                }
                if d > 0 {
                    chunk_base = self.strides[d - 1];
                    tensor_numel = 1;
                    view_numel = 1;
                }
            }
        }
        (view == 0).then_some(Self { shape, strides })
    }
}

/// The shape two operands broadcast to; sizes that do not match take the larger.
pub(crate) fn broadcast(a: &[u64], b: &[u64]) -> Dims {
    let len = a.len().max(b.len());
    let mut out = Dims {
        len: len as u8,
        sizes: [1; MAX_DIMS],
    };
    for i in 0..len {
        let at = |dims: &[u64]| (i + dims.len()).checked_sub(len).map_or(1, |j| dims[j]);
        out.sizes[i] = match (at(a), at(b)) {
            (1, n) | (n, 1) => n,
            (n, m) => n.max(m),
        };
    }
    for size in &mut out.sizes[len..] {
        *size = 0;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(layout: Layout, shape: &[u64], expected: Option<&[u64]>) {
        assert_eq!(
            layout.viewed(Dims::new(shape)).map(|layout| layout.strides),
            expected.map(Dims::new)
        );
    }

    #[test]
    fn a_view_exists_where_torch_has_one() {
        let heads = Layout::contiguous([2, 5, 4, 8]).transposed(1, 2);
        check(heads, &[2, 4, 40], None);
        check(heads.transposed(1, 2), &[10, 32], Some(&[32, 1]));
        check(heads, &[8, 5, 8], None);
        check(
            Layout::contiguous([1, 5, 4, 8]).transposed(1, 2),
            &[4, 5, 8],
            Some(&[8, 32, 1]),
        );
        check(
            Layout::contiguous([6, 4]).transposed(0, 1),
            &[2, 2, 6],
            Some(&[2, 1, 4]),
        );
    }

    #[test]
    fn density_and_order() {
        let heads = Layout::contiguous([2, 5, 4, 8]).transposed(1, 2);
        assert!(heads.is_dense() && !heads.is_contiguous());
        assert_eq!(heads.preserved(), heads);
        assert!(
            !Layout::contiguous([2, 5])
                .expanded(Dims::from([3, 2, 5]))
                .is_dense()
        );
        assert!(Layout::channels_last([2, 3, 4, 4]).is_channels_last());
        assert!(!Layout::contiguous([2, 3, 4, 4]).is_channels_last());
        assert_eq!(broadcast(&[8, 1, 5], &[3, 1]), Dims::from([8, 3, 5]));
    }
}
