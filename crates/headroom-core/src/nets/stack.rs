//! Stacks of layers that pass one tensor on, the usual case of the lists in `cx`, which pass several.

use super::Cx;
use crate::tape::{DType, Tensor};

impl Cx {
    /// `for layer in self.layers: hidden = layer(hidden)`.
    pub fn stack(
        &self,
        name: &'static str,
        count: u64,
        hidden: Tensor,
        layer: impl Fn(&Self, &Tensor, usize) -> Tensor + Clone + 'static,
    ) -> Tensor {
        let state = self.layers(name, count, vec![hidden], move |cx, state, i| {
            state.iter().map(|hidden| layer(cx, hidden, i)).collect()
        });
        self.only(state)
    }

    /// The same for equal layers, which are run once for all.
    pub fn equal_stack(
        &self,
        name: &'static str,
        count: u64,
        hidden: Tensor,
        layer: impl Fn(&Self, &Tensor) -> Tensor + Clone + 'static,
    ) -> Tensor {
        let state = self.equal_layers(name, count, vec![hidden], move |cx, state| {
            state.iter().map(|hidden| layer(cx, hidden)).collect()
        });
        self.only(state)
    }

    fn only(&self, state: Vec<Tensor>) -> Tensor {
        let empty = || self.tape.empty("hidden", [0; 0], DType::F32);
        state.into_iter().next().unwrap_or_else(empty)
    }
}
