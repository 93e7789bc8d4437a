//! One layer of the decoder: where its norms stand and what is added to what.

use super::super::Cx;
use super::traits::{Placement, Scores};
use super::{Decoder, Shared};
use crate::tape::Tensor;

impl Decoder {
    pub(super) fn layer(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        match self.traits.placement {
            Placement::Before | Placement::BeforeKept | Placement::Around | Placement::After => {
                self.one_after_other(cx, input, shared)
            }
            Placement::AfterSum => self.normed_sums(cx, input, shared),
            Placement::BeforeNamed => self.named(cx, input, shared),
            Placement::Parallel { residual_first } => {
                self.side_by_side(cx, input, shared, residual_first)
            }
            Placement::ParallelApart => self.apart(cx, input, shared),
            Placement::Falcon => self.falcon_block(cx, input, shared),
        }
    }

    /// Attention as the layer calls it, and its weights where there are any: the layer keeps them to its end.
    fn attended(&self, cx: &Cx, x: &Tensor, shared: &Shared) -> (Tensor, Option<Tensor>) {
        let name = self.traits.names.attention;
        let (mut out, weights) = cx.within(name, |cx| match self.latent {
            Some(latent) => self.latent_attention(cx, x, shared, latent),
            None => self.attention(cx, x, shared),
        });
        if self.traits.dropout.outside {
            out = self.dropped(cx, &out);
        }
        (out, weights)
    }

    fn one_after_other(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let names = self.traits.names;
        let (before, after) = match self.traits.placement {
            Placement::Around => (true, true),
            Placement::After => (false, true),
            _ => (true, false),
        };
        let start = cx.tape.made();
        let mut hidden = input.clone();
        if before {
            hidden = self.norm(cx, names.first_norm, &hidden);
        }
        let normed = cx.tape.made();
        let (attended, mut weights) = self.attended(cx, &hidden, shared);
        let norms = self
            .traits
            .norms_made_last
            .then(|| cx.tape.make_now(start, normed));
        let keeps = self.traits.placement == Placement::BeforeKept;
        let kept = keeps.then(|| attended.clone());
        let read = keeps.then(|| hidden.clone());
        hidden = attended;
        if after {
            hidden = self.norm(cx, "post_attention_layernorm", &hidden);
        }
        hidden = self.added(input, &hidden);
        drop(read);
        let shape = *hidden.shape();
        if names.mlp.is_none() {
            hidden = hidden.reshape(&[hidden.numel() / self.hidden.max(1), self.hidden]);
        }
        let residual = hidden.clone();
        if before {
            let name = if after {
                "pre_feedforward_layernorm"
            } else {
                names.second_norm
            };
            hidden = self.norm(cx, name, &hidden);
        }
        let normed = cx.tape.made();
        let read = keeps.then(|| hidden.clone());
        hidden = self.feed(cx, &hidden);
        if self.traits.scores == Scores::Sinks {
            // One name stands for the weights of attention and then for those of experts.
            weights = None;
        }
        if let Some(norms) = norms {
            cx.tape.make_now(norms, normed);
        }
        if after {
            hidden = self.norm(cx, "post_feedforward_layernorm", &hidden);
        }
        hidden = self.added(&residual, &hidden);
        drop(read);
        hidden = hidden.reshape(&shape);
        drop((weights, kept));
        hidden
    }

    /// `residual + hidden_states`, the second times a number where the family has one.
    fn added(&self, residual: &Tensor, hidden: &Tensor) -> Tensor {
        if self.traits.scaled_residuals {
            hidden.scale().then(|scaled| residual.add(scaled))
        } else {
            residual.add(hidden)
        }
    }

    /// OPT-350m.
    fn normed_sums(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let names = self.traits.names;
        let (mut hidden, weights) = self.attended(cx, input, shared);
        hidden = input.add(&hidden);
        hidden = self.norm(cx, names.first_norm, &hidden);
        let shape = *hidden.shape();
        hidden = hidden.reshape(&[hidden.numel() / self.hidden.max(1), self.hidden]);
        let residual = hidden.clone();
        hidden = self.feed(cx, &hidden);
        hidden = residual.add(&hidden).then(|sum| sum.view(&shape));
        hidden = self.norm(cx, names.second_norm, &hidden);
        drop(weights);
        hidden
    }

    /// StableLM: what is added keeps a name of its own.
    fn named(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let names = self.traits.names;
        let normed = self.norm(cx, names.first_norm, input);
        let (attended, weights) = self.attended(cx, &normed, shared);
        let residual = input.add(&attended);
        let fed = self
            .norm(cx, names.second_norm, &residual)
            .then(|normed| self.feed(cx, normed));
        let out = residual.add(&fed);
        drop((normed, attended, weights));
        out
    }

    fn side_by_side(
        &self,
        cx: &Cx,
        input: &Tensor,
        shared: &Shared,
        residual_first: bool,
    ) -> Tensor {
        let normed = self.norm(cx, self.traits.names.first_norm, input);
        let (attended, weights) = self.attended(cx, &normed, shared);
        let fed = self.feed(cx, &normed);
        let out = if residual_first {
            input.add(&attended).then(|sum| sum.add(&fed))
        } else {
            attended.add(&fed).then(|sum| sum.add(input))
        };
        drop((normed, weights));
        out
    }

    /// GPT-NeoX.
    fn apart(&self, cx: &Cx, input: &Tensor, shared: &Shared) -> Tensor {
        let names = self.traits.names;
        let (attended, weights) = self
            .norm(cx, names.first_norm, input)
            .then(|normed| self.attended(cx, normed, shared));
        let fed = self
            .norm(cx, names.second_norm, input)
            .then(|normed| self.feed(cx, normed));
        let out = fed.add(&attended).then(|sum| sum.add(input));
        drop(weights);
        out
    }
}
