//! SpeechT5 that reads text out: an encoder of letters with relative positions, a decoder of pairs of mel frames, and convolutions that
//! finish the spectrogram (transformers/models/speecht5/modeling_speecht5.py). Layers that are dropped at random are not run.

mod layers;
mod loss;

use super::inputs::additive;
use super::kv_cache::cache;
use super::vision::index_name;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct SpeechT5 {
    layers: u64,
    decoder_layers: u64,
    hidden: u64,
    heads: u64,
    decoder_heads: u64,
    ffn: u64,
    decoder_ffn: u64,
    vocab: u64,
    /// `max_text_positions` and `max_speech_positions`.
    places: [u64; 2],
    /// `encoder_max_relative_position`.
    distances: u64,
    mel: u64,
    /// `reduction_factor`: frames that the decoder makes at once.
    factor: u64,
    /// Layers and width of the networks before and behind the decoder.
    prenet: [u64; 2],
    postnet: [u64; 2],
    /// `speech_decoder_postnet_kernel`.
    kernel: u64,
    /// `speaker_embedding_dim`.
    speaker: u64,
    /// `guided_attention_loss_num_heads`; zero without that loss.
    guided: u64,
    /// `masked_spec_embed` is of another class: frames of a sample, and its letters.
    frames: u64,
    letters: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let (hidden, heads) = (sizes.need("hidden")?, sizes.need("heads")?.max(1));
    let ffn = sizes.or("ffn", hidden.saturating_mul(4));
    let factor = sizes.or("factor", 2).max(1);
    // The collator cuts what makes no whole step.
    let frames = sizes.or("frames", 512).max(factor) / factor * factor;
    Ok(Box::new(SpeechT5 {
        layers: sizes.need("layers")?,
        decoder_layers: sizes.or("decoder_layers", 6),
        hidden,
        heads,
        decoder_heads: sizes.or("decoder_heads", heads).max(1),
        ffn,
        decoder_ffn: sizes.or("decoder_ffn", ffn),
        vocab: sizes.or("vocab", 81),
        places: [sizes.or("ctx", 450), sizes.or("speech_ctx", 4000)],
        distances: sizes.or("distances", 160),
        mel: sizes.or("mel", 80),
        factor,
        prenet: [sizes.or("pre_layers", 2), sizes.or("pre_width", 256)],
        postnet: [sizes.or("post_layers", 5), sizes.or("post_width", 256)],
        kernel: sizes.or("post_kernel", 5).max(1),
        speaker: sizes.or("speaker", 512),
        guided: sizes.or("guided", 2),
        frames,
        letters: sizes.or("letters", frames / 4).max(1),
    }))
}

impl Net for SpeechT5 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let b = data.micro_batch;
        let letters = [b, self.letters];
        vec![
            cx.tape.empty("input_ids", letters, DType::I64),
            cx.tape.empty("attention_mask", letters, DType::I64),
            cx.tape
                .empty("labels", [b, self.frames, self.mel], cx.env.weights),
            cx.tape
                .empty("speaker_embeddings", [b, self.speaker], cx.env.weights),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, _mask, labels, speakers] = batch else {
            return Output::empty(cx);
        };
        let shifted = self.shifted(labels);
        let (last, encoded, seen) = cx.module("speecht5", |cx| {
            let encoded = cx.module("encoder", |cx| self.encoder(cx, ids));
            let (last, seen) = cx.module("decoder", |cx| {
                self.decoder(cx, &shifted, speakers, &encoded)
            });
            (last, encoded, seen)
        });
        let [before, after, stops] =
            cx.module("speech_decoder_postnet", |cx| self.finished(cx, &last));
        let loss = cx.module("loss", |_| {
            self.loss([&before, &after, &stops], labels, &seen)
        });
        drop((before, stops, shifted));
        let mut held = vec![after, last, encoded];
        held.extend(seen);
        Output { loss, held }
    }
}

impl SpeechT5 {
    /// `shift_spectrograms_right`.
    fn shifted(&self, labels: &Tensor) -> Tensor {
        let shape = [labels.size(0), self.frames / self.factor, self.mel];
        let out = labels.constant("new_zeros", &shape, labels.dtype());
        drop(labels.constant("clone", &shape, labels.dtype()));
        drop(labels.constant("eq", &shape, DType::Bool));
        out
    }

    /// `SpeechT5ScaledPositionalEncoding.forward`.
    fn placed(&self, cx: &Cx, x: &Tensor, places: u64) -> Tensor {
        let placed = cx.module("encode_positions", |cx| {
            let scale = cx.param("alpha", [0; 0]).tensor();
            let table = cx.buffer(
                "pe",
                [1, places.max(x.size(1)), self.hidden],
                cx.env.weights,
            );
            let own = table.narrow(1, x.size(1));
            let scaled = own.mul(&scale);
            x.add(&scaled)
        });
        cx.dropout(&placed, 0.1)
    }

    fn encoder(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let embedded = cx.module("prenet", |cx| {
            let words = cx.input_embedding("embed_tokens", ids, self.vocab, self.hidden);
            self.placed(cx, &words, self.places[0])
        });
        cx.module("wrapped_encoder", |cx| {
            let mask = mask_of(&embedded, [ids.size(1); 2]);
            let mut hidden = cx.layer_norm("layer_norm", &embedded);
            hidden = cx.dropout(&hidden, 0.1);
            let bias = self.relative(cx, &hidden);
            let this = *self;
            cx.equal_stack("layers", self.layers, hidden, move |cx, x| {
                this.encoder_layer(cx, x, &mask, &bias)
            })
        })
    }

    /// `SpeechT5RelativePositionalEncoding.forward`.
    fn relative(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let s = hidden.size(1);
        let index = || hidden.constant("where", &[s, s], DType::I64);
        let (first, places) = (index(), index());
        drop(first);
        let rows = self.distances.saturating_mul(2);
        let width = self.hidden / self.heads;
        cx.module("embed_positions", |cx| {
            cx.embedding("pe_k", &places, rows, width)
        })
    }

    /// The last states, and which letters each layer has read.
    fn decoder(
        &self,
        cx: &Cx,
        shifted: &Tensor,
        speakers: &Tensor,
        encoded: &Tensor,
    ) -> (Tensor, Vec<Tensor>) {
        let mut hidden = cx.module("prenet", |cx| self.prenet(cx, shifted, speakers));
        cx.module("wrapped_decoder", |cx| {
            let steps = hidden.size(1);
            let masks = [
                mask_of(&hidden, [steps; 2]),
                mask_of(&hidden, [steps, encoded.size(1)]),
            ];
            let kept = cache(cx);
            let mut seen = Vec::new();
            for i in 0..self.decoder_layers as usize {
                if cx.tape.is_over_budget() {
                    break;
                }
                let (this, masks, kept) = (*self, masks.clone(), kept.clone());
                let encoded = encoded.clone();
                let outputs = cx.layer("layers", i, vec![hidden.clone()], move |cx, state| {
                    let run = |x| this.decoder_layer(cx, x, &encoded, &masks, &kept);
                    state.iter().flat_map(run).collect()
                });
                let mut outputs = outputs.into_iter();
                hidden = outputs.next().unwrap_or(hidden);
                seen.extend(outputs);
            }
            (hidden, seen)
        })
    }

    /// `SpeechT5SpeechDecoderPrenet.forward`: dropout with one mask for all samples, in evaluation too.
    fn prenet(&self, cx: &Cx, frames: &Tensor, speakers: &Tensor) -> Tensor {
        let [layers, width] = self.prenet;
        let mut x = frames.clone();
        for i in 0..layers as usize {
            x = cx.module("layers", |cx| {
                cx.linear(index_name(i), &x, width, true).pipe(Tensor::relu)
            });
            let all = {
                let one = x.constant("bernoulli", &[x.size(1), width], x.dtype());
                let all = x.constant("repeat", x.shape(), x.dtype());
                drop(one);
                all
            };
            let mask = all.constant("eq", all.shape(), DType::Bool);
            x = x
                .where_mask(&mask)
                .pipe(Tensor::mul_scalar)
                .pipe(Tensor::mul_scalar);
            drop((all, mask));
        }
        x = cx.linear("final_layer", &x, self.hidden, true);
        x = self.placed(cx, &x, self.places[1]);
        let [b, steps] = [x.size(0), x.size(1)];
        let normed = speakers.constant("div", speakers.shape(), speakers.dtype());
        let spread = normed.unsqueeze(1).expand(&[b, steps, self.speaker]);
        let both = Tensor::cat(&x, &[&spread], -1);
        cx.linear("speaker_embeds_layer", &both, self.hidden, true)
            .pipe(Tensor::relu)
    }

    /// `SpeechT5SpeechDecoderPostnet.forward`: the spectrogram before and after the convolutions, and where it stops.
    fn finished(&self, cx: &Cx, hidden: &Tensor) -> [Tensor; 3] {
        let b = hidden.size(0);
        let wide = self.mel.saturating_mul(self.factor);
        let before = cx
            .linear("feat_out", hidden, wide, true)
            .view(&[b, self.frames, self.mel]);
        let [count, width] = self.postnet;
        let mut x = before.transpose(1, 2);
        for i in 0..count as usize {
            let is_last = i as u64 + 1 == count;
            let out = if is_last { self.mel } else { width };
            x = cx.module("layers", |cx| {
                cx.module(index_name(i), |cx| {
                    let form = Conv::stride(1).padded((self.kernel - 1) / 2);
                    let mut y = cx.convolution("conv", &x, out, &[self.kernel], form, false);
                    y = cx.batch_norm("batch_norm", &y);
                    if !is_last {
                        y = y.tanh();
                    }
                    cx.dropout(&y, 0.5)
                })
            });
        }
        let after = before.add(&x.transpose(1, 2));
        let stops = cx
            .linear("prob_out", hidden, self.factor, true)
            .view(&[b, self.frames]);
        [before, after, stops]
    }
}

/// A mask of the scores of eager attention, the only kind that the class has.
fn mask_of(hidden: &Tensor, [queries, keys]: [u64; 2]) -> Tensor {
    let b = hidden.size(0);
    let allowed = hidden.constant("expand", &[b, 1, queries, keys], DType::Bool);
    additive(&allowed, b, hidden.dtype())
}
