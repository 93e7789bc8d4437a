//! `nn.GroupNorm` as the U-Nets use it.

use crate::nets::Cx;
use crate::tape::Tensor;

/// `norm_num_groups`.
pub(crate) const GROUPS: u64 = 32;

impl Cx {
    /// `nn.GroupNorm`.
    pub fn group_norm(&self, name: &'static str, x: &Tensor, groups: u64) -> Tensor {
        self.module(name, |cx| {
            let weight = cx.param("weight", [x.size(1)]).tensor();
            let bias = cx.param("bias", [x.size(1)]).tensor();
            x.group_norm(groups, &weight, &bias)
        })
    }
}
