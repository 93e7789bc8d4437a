//! The two ends of a decoder: its embeddings, and the norm and the head behind its layers.

use std::rc::Rc;

use super::super::Cx;
use super::Decoder;
use super::family::{EmbeddingScale, Placement};
use crate::parallel::Role;
use crate::tape::{DType, Param, Tensor};
use headroom_scenario::Checkpointing;

impl Decoder {
    /// Embeddings of the tokens, behind those of a learned prompt where the run has one
    /// (`PeftModelForCausalLM.forward` of PEFT, `get_prompt`).
    pub(super) fn embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let prompt = cx.env.training.prompt_tokens;
        if prompt == 0 {
            return self.word_embeddings(cx, ids);
        }
        let tokens = ids.narrow(1, ids.size(1).saturating_sub(prompt));
        let tokens = self.word_embeddings(cx, &tokens);
        let encoded = cx.module("prompt_encoder", |cx| self.prompt(cx, prompt));
        let prompt =
            encoded
                .to(tokens.dtype())
                .unsqueeze(0)
                .expand(&[tokens.size(0), prompt, self.hidden]);
        Tensor::cat(&prompt, &[&tokens], 1)
    }

    /// The number of learned rows; with p-tuning they come out of a small network (`PromptEncoder` of peft/tuners/p_tuning/model.py).
    fn prompt(&self, cx: &Cx, rows: u64) -> Tensor {
        let trained =
            |cx: &Cx, name, shape: &[u64]| cx.param_as(name, shape, DType::F32, |_| true).tensor();
        let table = trained(cx, "weight", &[rows, self.hidden]);
        let inner = cx.env.training.prompt_hidden;
        if inner == 0 {
            return table;
        }
        let layer = |name, x: &Tensor, out: u64| {
            cx.module(name, |cx| {
                let weight = trained(cx, "weight", &[out, x.size(-1)]);
                let bias = trained(cx, "bias", &[out]);
                x.linear(&weight, Some(&bias))
            })
        };
        let indices = table.constant("arange", &[rows], DType::I64);
        let embedded = table.embedding(&indices);
        let first = layer("mlp_head.0", &embedded, inner).relu();
        let second = layer("mlp_head.2", &first, inner).relu();
        layer("mlp_head.4", &second, self.hidden)
    }

    /// The embeddings of tokens; where they are tied to a head in fp32 they come out in the type of the model.
    fn word_embeddings(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        match Self::fp32_head(cx).filter(|_| self.tied) {
            Some(wide) => self.embedded(&wide, ids).to(cx.env.weights),
            None => self.embedded(cx, ids),
        }
    }

    fn embedded(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let name = self.family.names.embed_tokens;
        match self.family.embeddings.scale {
            EmbeddingScale::None | EmbeddingScale::NumberBeside => {
                cx.input_embedding(name, ids, self.vocab, self.embedding_dim)
            }
            EmbeddingScale::Number => cx
                .input_embedding(name, ids, self.vocab, self.hidden)
                .pipe(Tensor::mul_scalar),
            EmbeddingScale::Tensor => cx.scaled_embedding(name, ids, self.vocab, self.hidden),
        }
    }

    /// The norm after the last layer, and OPT's projection to the width of its embeddings.
    pub(super) fn final_norm(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let projects_out = self.embedding_dim != self.hidden;
        let normed = match self.family.norms.placement {
            Placement::PostSum => hidden.clone(),
            _ => {
                let name = self.family.names.final_norm;
                cx.as_role(Role::FinalNorm, name, hidden, |hidden| {
                    self.norm(cx, name, hidden)
                })
            }
        };
        if projects_out {
            cx.linear("project_out", &normed, self.embedding_dim, false)
        } else {
            normed
        }
    }

    /// The weight of `lm_head`.
    pub(super) fn head_weight(&self, cx: &Cx) -> Rc<Param> {
        let wide = Self::fp32_head(cx);
        let cx = wide.as_ref().unwrap_or(cx);
        let weight = |cx: &Cx| cx.param("weight", [self.vocab, self.embedding_dim]);
        if !self.tied {
            return cx.module("lm_head", weight);
        }
        let names = self.family.names;
        cx.module(names.model, |cx| match names.inner {
            Some(inner) => cx.module(inner, |cx| cx.module(names.embed_tokens, weight)),
            None => cx.module(names.embed_tokens, weight),
        })
    }

    pub(super) fn head(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let head = || {
            cx.as_role(Role::Head, "lm_head", hidden, |hidden| {
                self.project(cx, hidden)
            })
        };
        let offloads = cx.env.training.checkpointing == Checkpointing::Offload;
        if offloads && cx.env.libraries.offloads_as_trl {
            cx.tape.keeping_what_is_saved(head)
        } else {
            head()
        }
    }

    pub(super) fn project(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let logits = if self.tied {
            let weight = self.head_weight(cx).tensor();
            cx.module("lm_head", |cx| {
                drop(cx.weight_until_tied([self.vocab, self.embedding_dim]));
            });
            cx.tied_linear("lm_head", hidden, &weight)
        } else {
            cx.linear("lm_head", hidden, self.vocab, self.family.head.bias)
        };
        if self.family.head.softcap {
            logits
                .pipe(Tensor::mul_scalar)
                .pipe(Tensor::tanh)
                .pipe(Tensor::mul_scalar)
        } else if self.family.head.scaled {
            logits.pipe(Tensor::mul_scalar)
        } else if self.family.head.wide {
            logits.pipe(|logits| logits.to(DType::F32))
        } else {
            logits
        }
    }

    /// The place of embeddings and head where both are cast to fp32 (`_cast_lm_head_to_fp32` of TRL).
    pub(super) fn fp32_head(cx: &Cx) -> Option<Cx> {
        let cast = cx.env.training.task.fp32_head;
        cast.then(|| cx.part(DType::F32, |_| ()))
    }
}
