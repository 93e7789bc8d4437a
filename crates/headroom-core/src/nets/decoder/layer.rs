//! One layer of the decoder: its norms, its residuals, and what its variables keep alive.

use super::super::Cx;
use super::family::Placement;
use super::{Decoder, LayerInputs};
use crate::tape::Tensor;

impl Decoder {
    /// The layer's output and, in older files, the weights that it returns too.
    pub(super) fn layer(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Vec<Tensor> {
        vec![match self.family.norms.placement {
            Placement::Pre | Placement::PreHolding | Placement::PreAndPost | Placement::Post => {
                self.sequential(cx, input, inputs)
            }
            Placement::PostSum => self.post_sum(cx, input, inputs),
            Placement::PreNamed => self.pre_named(cx, input, inputs),
            Placement::Parallel { residual_first } => {
                self.parallel(cx, input, inputs, residual_first)
            }
            Placement::ParallelTwoNorms => self.parallel_two_norms(cx, input, inputs),
            Placement::Falcon => self.falcon_block(cx, input, inputs),
            Placement::Single => self.single(cx, input, inputs),
            Placement::BesideMamba => self.falcon_h1_block(cx, input, inputs),
            Placement::Bloom => return self.bloom_block(cx, input, inputs).into(),
            Placement::GptJ => return self.gptj_block(cx, input, inputs).into(),
            Placement::Mpt => return self.mpt_block(cx, input, inputs).into(),
        }]
    }

    /// The output of attention, and its weights where it returns them: the layer holds them to its end.
    pub(super) fn self_attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        inputs: &LayerInputs,
    ) -> (Tensor, Option<Tensor>) {
        if let Some(mixer) = inputs.mixer {
            return (self.mix(cx, mixer, x, inputs), None);
        }
        let name = self.family.names.attention;
        let (mut out, weights) = cx.module(name, |cx| match self.mla {
            Some(mla) => self.latent_attention(cx, x, inputs, mla),
            None => self.attention(cx, x, inputs),
        });
        if self.family.dropout.in_layer {
            out = self.dropout(cx, &out);
        }
        (out, weights)
    }

    fn sequential(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let names = self.family.names;
        let (pre, post) = match self.family.norms.placement {
            Placement::PreAndPost => (true, true),
            Placement::Post => (false, true),
            _ => (true, false),
        };
        let start = cx.tape.construction_point();
        let mut hidden = input.clone();
        if pre {
            hidden = self.norm(cx, names.input_norm, &hidden);
        }
        let normed = cx.tape.construction_point();
        let (attended, mut weights) = self.self_attention(cx, &hidden, inputs);
        let norms = self
            .family
            .init
            .norms_last
            .then(|| cx.tape.construct_here(start, normed));
        let holds = self.family.norms.placement == Placement::PreHolding;
        let held_output = holds.then(|| attended.clone());
        let held_input = holds.then(|| hidden.clone());
        hidden = attended;
        if post {
            hidden = self.norm(cx, names.further_norms[0], &hidden);
        }
        hidden = self.add_residual(input, &hidden);
        drop(held_input);
        let shape = *hidden.shape();
        if self.family.mlp.flattens_tokens {
            hidden = hidden.reshape(&[hidden.numel() / self.hidden.max(1), self.hidden]);
        }
        let residual = hidden.clone();
        if pre {
            let name = if post {
                names.further_norms[1]
            } else {
                names.mlp_norm
            };
            hidden = self.norm(cx, name, &hidden);
        }
        let normed = cx.tape.construction_point();
        let held_input = holds.then(|| hidden.clone());
        hidden = self.mlp(cx, &hidden);
        if self.family.norms.weights_rebound {
            weights = None;
        }
        if let Some(norms) = norms {
            cx.tape.construct_here(norms, normed);
        }
        if post {
            hidden = self.norm(cx, names.further_norms[2], &hidden);
        }
        hidden = self.add_residual(&residual, &hidden);
        drop(held_input);
        hidden = hidden.reshape(&shape);
        drop((weights, held_output));
        hidden
    }

    /// `NemotronHBlock.forward`: one norm and one part.
    fn single(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let name = self.family.names.input_norm;
        let mut hidden = input
            .to(cx.env.weights)
            .pipe(|wide| self.norm(cx, name, wide));
        let (mixed, weights) = self.self_attention(cx, &hidden, inputs);
        hidden = mixed;
        hidden = input.add(&hidden);
        drop(weights);
        hidden
    }

    /// `residual + hidden_states * self.residual_multiplier`.
    fn add_residual(&self, residual: &Tensor, hidden: &Tensor) -> Tensor {
        if self.family.norms.residual_multiplier {
            hidden.mul_scalar().pipe(|scaled| residual.add(scaled))
        } else {
            residual.add(hidden)
        }
    }

    /// OPT-350m.
    fn post_sum(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let names = self.family.names;
        let (mut hidden, weights) = self.self_attention(cx, input, inputs);
        hidden = input.add(&hidden);
        hidden = self.norm(cx, names.input_norm, &hidden);
        let shape = *hidden.shape();
        hidden = hidden.reshape(&[hidden.numel() / self.hidden.max(1), self.hidden]);
        let residual = hidden.clone();
        hidden = self.mlp(cx, &hidden);
        hidden = residual.add(&hidden).pipe(|sum| sum.view(&shape));
        hidden = self.norm(cx, names.mlp_norm, &hidden);
        drop(weights);
        hidden
    }

    /// StableLM.
    fn pre_named(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let names = self.family.names;
        let normed = self.norm(cx, names.input_norm, input);
        let (attended, weights) = self.self_attention(cx, &normed, inputs);
        let residual = input.add(&attended);
        let mlp_out = self
            .norm(cx, names.mlp_norm, &residual)
            .pipe(|normed| self.mlp(cx, normed));
        let out = residual.add(&mlp_out);
        drop((normed, attended, weights));
        out
    }

    fn parallel(
        &self,
        cx: &Cx,
        input: &Tensor,
        inputs: &LayerInputs,
        residual_first: bool,
    ) -> Tensor {
        let normed = self.norm(cx, self.family.names.input_norm, input);
        let (attended, weights) = self.self_attention(cx, &normed, inputs);
        let mlp_out = self.mlp(cx, &normed);
        let out = if residual_first {
            input.add(&attended).pipe(|sum| sum.add(&mlp_out))
        } else {
            attended.add(&mlp_out).pipe(|sum| sum.add(input))
        };
        drop((normed, weights));
        out
    }

    /// GPT-NeoX.
    fn parallel_two_norms(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let names = self.family.names;
        let (attended, weights) = self
            .norm(cx, names.input_norm, input)
            .pipe(|normed| self.self_attention(cx, normed, inputs));
        let mlp_out = self
            .norm(cx, names.mlp_norm, input)
            .pipe(|normed| self.mlp(cx, normed));
        let out = mlp_out.add(&attended).pipe(|sum| sum.add(input));
        drop(weights);
        out
    }
}
