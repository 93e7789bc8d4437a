//! Autocast: which operations run in the lower precision, which in fp32, and the cache of cast weights.
//!
//! Follows aten/src/ATen/autocast_mode.cpp (`cached_cast`) and the operation lists of autocast_mode.h.

use std::rc::Rc;

use super::{Category, DType, Mode, Tensor};

impl Tensor {
    /// The tensor as an operation of the `lower_precision_fp` list takes it.
    pub fn autocast(&self) -> Tensor {
        match self.core().ambient.mode.get().autocast {
            Some(low)
                if self.dtype().is_floating()
                    && self.dtype() != DType::F64
                    && self.dtype() != low =>
            {
                self.cached_cast(low)
            }
            _ => self.clone(),
        }
    }

    /// The tensor as `torch.einsum` takes it: cast before it is laid out for a batched product.
    pub fn for_einsum(&self) -> Tensor {
        self.autocast()
    }

    /// The tensor as an operation of the `fp32` list takes it.
    pub(in crate::tape) fn autocast_to_fp32(&self) -> Tensor {
        match self.core().ambient.mode.get().autocast {
            Some(_) if self.dtype().is_half() => self.to(DType::F32),
            _ => self.clone(),
        }
    }

    /// Copies of fp32 leaves that need a gradient are kept until autocast ends; all else is cast at each use.
    fn cached_cast(&self, low: DType) -> Tensor {
        let leaf = self
            .leaf()
            .filter(|_| self.dtype() == DType::F32 && !self.is_view());
        let Some(leaf) = leaf else {
            return self.to(low);
        };
        let core = self.core();
        let found = core
            .autograd
            .cast_cache
            .borrow()
            .iter()
            .find(|(cached, _)| Rc::ptr_eq(cached, leaf))
            .map(|(_, cast)| cast.clone());
        found.unwrap_or_else(|| {
            // A pass without gradients caches what the next one with them uses: the cast has its history in either.
            let mode = self.tape().mode();
            let cast = self
                .tape()
                .within(Mode { grad: true, ..mode }, || self.to(low));
            cast.set_category(Category::AutocastCopies);
            // Without a graph nothing else holds the leaf between two uses of a weight.
            core.autograd
                .cast_cache
                .borrow_mut()
                .push((leaf.clone(), cast.clone()));
            cast
        })
    }
}
