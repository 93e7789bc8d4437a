//! Tensor parallelism: how modules' weights are split over the GPUs of a group, by a plan as `parallelize_module` takes it.

use super::{Cx, Split};
use crate::tape::Tensor;

/// Tokens are the second dimension of hidden states `[B, S, H]`.
const TOKENS: isize = 1;

impl Cx {
    /// How the module is split; `None` if it is not.
    pub(in crate::nets) fn split(&self, module: &str) -> Option<Split> {
        let parallel = &self.env.groups.tensor;
        if parallel.group <= 1 {
            return None;
        }
        let planned = parallel.plan.iter().find(|(name, _)| *name == module);
        planned.map(|(_, split)| *split)
    }

    /// Runs `body` as a child module on its input, laid out as the plan says.
    pub fn module_on<T>(
        &self,
        name: &'static str,
        x: &Tensor,
        body: impl FnOnce(&Self, &Tensor) -> T,
    ) -> T {
        let gathers =
            self.env.groups.tensor.sequence && self.split(name) == Some(Split::GatherSequence);
        self.module(name, |cx| {
            if gathers {
                let whole = x.all_gather(cx.env.groups.tensor.group, TOKENS);
                body(cx, &whole)
            } else {
                body(cx, x)
            }
        })
    }

    /// This GPU's part of this many rows or columns, the first and largest.
    pub(in crate::nets) fn part_of(&self, whole: u64) -> u64 {
        whole.div_ceil(self.env.groups.tensor.group.max(1))
    }

    /// The input of a linear layer that is split so.
    pub(in crate::nets) fn split_input(&self, split: Split, x: &Tensor) -> Tensor {
        let parallel = &self.env.groups.tensor;
        match split {
            Split::Columns if parallel.sequence => x.clone(),
            Split::Head if parallel.sequence => x.all_gather(parallel.group, TOKENS),
            Split::Columns | Split::Head => x.replicate(),
            _ => x.clone(),
        }
    }

    /// The output of a module that is split so, as the next one takes it.
    pub(in crate::nets) fn joined(&self, split: Split, y: Tensor) -> Tensor {
        let parallel = &self.env.groups.tensor;
        match split {
            Split::Rows | Split::Vocabulary if parallel.sequence => {
                y.pipe(|y| y.reduce_scatter(parallel.group, TOKENS))
            }
            Split::Rows | Split::Vocabulary => y.pipe(Tensor::all_reduce),
            Split::Head if !parallel.loss => {
                y.pipe(|y| y.all_gather_replicated(parallel.group, -1))
            }
            _ => y,
        }
    }
}
