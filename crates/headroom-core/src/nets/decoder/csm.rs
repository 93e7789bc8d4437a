//! CSM: a Llama over frames of codebook tokens, and a small one over the codebooks of each frame, behind whose states each
//! codebook has a head of its own (transformers/models/csm/modeling_csm.py). The sequence is frames, all of which are learned.
//! The codec is there, and nothing runs on it where a batch has codebook tokens.

use super::super::error::at_most;
use super::super::losses::{Entropy, causal_lm_loss};
use super::super::{Cx, ModelError, Net, Output, Sizes};
use super::families::llama::LLAMA;
use super::{Decoder, ModelInputs};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Each has a head that is run by itself.
const MOST_CODEBOOKS: u64 = 256;

#[derive(Debug)]
struct Csm {
    backbone: Decoder,
    depth: Decoder,
    codebooks: u64,
    text_vocab: u64,
    /// Numbers of the codec in parameters and in buffers.
    codec: [u64; 2],
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let codebooks = sizes.or("codebooks", 32).max(2);
    at_most("codebooks", codebooks, MOST_CODEBOOKS)?;
    let mut depth = Sizes::default();
    let own = [
        ("layers", "d_layers"),
        ("hidden", "d_hidden"),
        ("heads", "d_heads"),
        ("kv", "d_kv"),
        ("ffn", "d_ffn"),
        ("vocab", "vocab"),
    ];
    for (name, from) in own {
        depth.set(name, sizes.need(from)?);
    }
    if let Some(head_dim) = sizes.get("d_head_dim") {
        depth.set("head_dim", head_dim);
    }
    Ok(Box::new(Csm {
        backbone: Decoder::new(sizes, LLAMA)?,
        depth: Decoder::new(&depth, LLAMA)?,
        codebooks,
        text_vocab: sizes.or("text_vocab", 128_256),
        codec: ["codec", "codec_buffers"].map(|name| sizes.or(name, 0)),
    }))
}

impl Net for Csm {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, data.sequence, self.codebooks];
        let mut all = vec![
            cx.tape.empty("input_ids", shape, DType::I64),
            cx.tape.empty("labels", shape, DType::I64),
        ];
        if data.padding_mask {
            let mask = [data.micro_batch, data.sequence];
            all.push(cx.tape.empty("attention_mask", mask, DType::I64));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        self.unread(cx);
        let hidden = cx.module("backbone_model", |cx| self.frames(cx, ids, batch.get(2)));
        let vocab = self.backbone.vocab;
        let logits = cx.linear("lm_head", &hidden, vocab, false);
        let first = labels.narrow(-1, 1).squeeze(-1);
        let [loss, logits] = cx.module("loss", |cx| {
            causal_lm_loss(cx, logits, &first, Entropy::Library)
        });
        let (own, others, held) =
            cx.module("depth_decoder", |cx| self.codebooks(cx, &hidden, labels));
        let total = loss.add(&own);
        drop(held);
        Output {
            loss: total,
            held: vec![logits, others, loss, own],
        }
    }
}

impl Csm {
    /// What no batch of codebook tokens runs on.
    fn unread(&self, cx: &Cx) {
        cx.module("embed_text_tokens", |cx| {
            cx.param("weight", [self.text_vocab, self.backbone.hidden]);
        });
        let [parameters, buffers] = self.codec;
        cx.module("codec_model", |cx| {
            if parameters > 0 {
                cx.param("weight", [parameters]);
            }
            if buffers > 0 {
                cx.buffer("codebooks", [buffers], cx.env.weights);
            }
        });
    }

    /// The table of all codebooks, which both models read.
    fn table(&self, cx: &Cx) -> Tensor {
        let rows = self.codebooks.saturating_mul(self.backbone.vocab);
        let path = ["depth_decoder", "model", "embed_tokens"];
        cx.root()
            .embedding_weight(&path, rows, self.backbone.hidden)
    }

    /// `CsmBackboneModel.forward`: a frame's embedding is the sum of those of its codebooks.
    fn frames(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        let embeddings = cx.module("embed_tokens", |cx| {
            cx.buffer("audio_tokens_offsets", [self.codebooks], DType::I64);
            let places = ids.constant("add", ids.shape(), DType::I64);
            let all = self.table(cx).embedding(&places);
            drop(places);
            cx.asks_for_gradient(all.pipe(|all| all.sum(&[2]).squeeze(2)))
        });
        let rows = ids.narrow(-1, 1).squeeze(-1);
        self.backbone.padded(cx, embeddings, &rows, padding, &None)
    }

    /// `CsmDepthDecoderForCausalLM.forward` on the frames to learn: its loss, its logits, and the names that live to its end.
    fn codebooks(
        &self,
        cx: &Cx,
        hidden: &Tensor,
        labels: &Tensor,
    ) -> (Tensor, Tensor, Vec<Tensor>) {
        let (b, s, books) = (labels.size(0), labels.size(1), self.codebooks);
        let (frames, width, vocab) = (b.saturating_mul(s), self.depth.hidden, self.depth.vocab);
        let learned = {
            let ignored = labels.constant("eq", &[b, s, books - 1], DType::Bool);
            let all = labels.constant("all", &[b, s], DType::Bool);
            drop(ignored);
            all.constant("bitwise_not", &[b, s], DType::Bool)
        };
        let ids = {
            let chosen = labels.constant("index", &[frames, books], DType::I64);
            chosen.constant("pad", &[frames, books], DType::I64)
        };
        let places = [(); 2].map(|()| labels.constant("nonzero", &[frames], DType::I64));
        let last = hidden.picked(&places[0], &places[1]);
        let targets = labels.constant("index", &[frames, books], DType::I64);
        let states = cx.module("model", |cx| {
            let moved = ids.constant("add", ids.shape(), DType::I64);
            let mut embeddings = self.table(cx).embedding(&moved);
            drop(moved);
            embeddings = embeddings.copy_into_slice_(&last);
            embeddings = cx.linear("inputs_embeds_projector", &embeddings, width, false);
            let inputs = ModelInputs::default();
            self.depth.run(cx, embeddings, &ids, inputs, &None)
        });
        let logits = cx.module("codebooks_head", |cx| {
            let weight = cx.param("weight", [books - 1, width, vocab]).tensor();
            let order = labels.constant("sub", &[books - 1], DType::I64);
            let heads = weight.rows_at(&order);
            let rest = states.narrow(1, books - 1);
            let each = (1..books).map(|_| {
                let head = heads.select(0).transpose(0, 1);
                rest.select(1).linear(&head, None)
            });
            let each: Vec<Tensor> = each.collect();
            Tensor::stack(&each, 1).unwrap_or_else(|| states.clone())
        });
        let loss = cx.module("loss", |cx| {
            let shifted = targets.constant("contiguous", &[frames * (books - 1)], DType::I64);
            let wide = logits.to(DType::F32);
            let rows = wide.view(&[shifted.numel(), vocab]);
            cx.compiled_loss(|| rows.cross_entropy(&shifted))
        });
        let mut names = vec![learned, ids, last, targets];
        names.extend(places);
        (loss, logits, names)
    }
}
