//! Shapes, layouts and sizes of a program's tensors at one batch and length.

use super::program::{Program, Spans, StrideOrder, Type, Value};
use crate::tape::ops::Operand;
use crate::tape::{DType, Dims, Layout};

/// The types of a program at one batch and length.
pub(super) struct Types(Vec<Operand>);

impl Types {
    /// For a batch of this many samples of this length.
    pub(crate) fn at(program: &Program, (b, s): (u64, u64)) -> Self {
        Self(program.types.iter().map(|of| operand(of, b, s)).collect())
    }

    pub(crate) fn get(&self, value: Value) -> Operand {
        let none = || Operand {
            layout: Layout::contiguous([0]),
            dtype: DType::U8,
            bytes: 0,
        };
        self.0
            .get(value.tensor_type as usize)
            .copied()
            .unwrap_or_else(none)
    }

    pub(crate) fn all(&self, values: &[Value]) -> Vec<Operand> {
        values.iter().map(|value| self.get(*value)).collect()
    }
}

fn operand(of: &Type, b: u64, s: u64) -> Operand {
    let sizes: Vec<u64> = of.shape.iter().map(|size| size.at(b, s)).collect();
    let shape = dims(&sizes);
    let layout = match &of.stride_order {
        _ if shape.len() != sizes.len() => Layout::contiguous(shape),
        StrideOrder::RowMajor => Layout::contiguous(shape),
        StrideOrder::Ordered(order) => {
            let mut strides = shape;
            let mut step: u64 = 1;
            for &place in order.iter().rev() {
                strides = strides.with(place, step);
                step = step.saturating_mul(shape.get(place).copied().unwrap_or(1).max(1));
            }
            Layout { shape, strides }
        }
        StrideOrder::Strides(strides) => {
            let strides: Vec<u64> = strides.iter().map(|stride| stride.at(b, s)).collect();
            Layout {
                shape,
                strides: Dims::new(&strides),
            }
        }
    };
    let bytes = match &of.bytes {
        Spans::Bytes(size) => size.at(b, s),
        Spans::Elements => layout.numel().saturating_mul(of.dtype.bytes()),
        Spans::Reach => reach(&layout).saturating_mul(of.dtype.bytes()),
    };
    Operand {
        layout,
        dtype: of.dtype,
        bytes,
    }
}

/// The elements from a tensor's first to its last, with those between that are not its own.
fn reach(layout: &Layout) -> u64 {
    if layout.numel() == 0 {
        return 0;
    }
    let steps = layout.shape.iter().zip(layout.strides.iter());
    let last = steps.fold(0_u64, |sum, (size, stride)| {
        sum.saturating_add((size - 1).saturating_mul(*stride))
    });
    last.saturating_add(1)
}

/// A shape; one of more dimensions than the tape knows as the number of its elements.
pub(super) fn dims(sizes: &[u64]) -> Dims {
    let all = Dims::new(sizes);
    if all.len() == sizes.len() {
        all
    } else {
        Dims::new(&[sizes.iter().fold(1, |all: u64, n| all.saturating_mul(*n))])
    }
}
