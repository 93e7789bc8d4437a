//! Parakeet with a CTC head: FastConformer with relative positions (transformers/models/parakeet/modeling_parakeet.py). Frames of
//! sound are `data.audio_frames`, tokens of the transcript the sequence. Layers are not dropped at random.

use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Fifteen seconds, where the run says no length.
const FRAMES: u64 = 1_500;

#[derive(Clone, Copy, Debug)]
struct Parakeet {
    layers: u64,
    hidden: u64,
    heads: u64,
    ffn: u64,
    vocab: u64,
    mel: u64,
    /// `conv_kernel_size` of a layer's convolution module.
    kernel: u64,
    /// Channels, kernel and stride of the subsampling, and how often it halves.
    channels: u64,
    sub_kernel: u64,
    stride: u64,
    halvings: u64,
    bias: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let factor = sizes.or("subsampling", 8).max(2);
    Ok(Box::new(Parakeet {
        layers: sizes.need("layers")?,
        hidden: sizes.need("hidden")?,
        heads: sizes.need("heads")?.max(1),
        ffn: sizes.need("ffn")?,
        vocab: sizes.need("vocab")?,
        mel: sizes.or("mel", 80),
        kernel: sizes.or("conv", 9).max(1),
        channels: sizes.or("sub_channels", 256),
        sub_kernel: sizes.or("sub_kernel", 3).max(1),
        stride: sizes.or("sub_stride", 2).max(1),
        halvings: u64::from(factor.ilog2()),
        bias: sizes.or("bias", 1) != 0,
    }))
}

/// The arguments of a layer besides its hidden states.
#[derive(Clone)]
struct LayerInputs {
    /// Which frames see which, `[B, 1, T, T]`.
    mask: Tensor,
    positions: Tensor,
}

impl Net for Parakeet {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let frames = if data.audio_frames == 0 {
            FRAMES
        } else {
            data.audio_frames
        };
        let b = data.micro_batch;
        vec![
            cx.tape
                .empty("input_features", [b, frames, self.mel], cx.env.weights),
            cx.tape.empty("attention_mask", [b, frames], DType::Bool),
            cx.tape.empty("labels", [b, data.sequence], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [features, mask, labels] = batch else {
            return Output::empty(cx);
        };
        let (hidden, frames) = cx.module("encoder", |cx| self.encoder(cx, features, mask));
        let logits = cx
            .convolution(
                "ctc_head",
                &hidden.transpose(1, 2),
                self.vocab,
                &[1],
                Conv::default(),
                true,
            )
            .transpose(1, 2);
        let loss = cx.module("loss", |_| {
            let lengths = frames.constant("sum", &[frames.size(0)], DType::I64);
            let loss = ctc_loss(&logits, labels);
            drop(lengths);
            loss
        });
        drop((hidden, frames));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Parakeet {
    /// `ParakeetEncoder.forward`: the last hidden states, and the mask of frames.
    fn encoder(&self, cx: &Cx, features: &Tensor, mask: &Tensor) -> (Tensor, Tensor) {
        let mut hidden = cx.module("subsampling", |cx| self.subsampled(cx, features, mask));
        hidden = hidden.pipe(Tensor::mul_scalar);
        let positions = cx.module("encode_positions", |cx| {
            self.relative_positions(cx, &hidden)
        });
        hidden = cx.dropout(&hidden, 0.1);
        let (b, t) = (hidden.size(0), hidden.size(1));
        let frames = mask.constant("lt", &[b, t], DType::Bool);
        let pairs = mask.constant("bitwise_and", &[b, t, t], DType::Bool);
        let inputs = LayerInputs {
            mask: pairs.unsqueeze(1),
            positions,
        };
        drop(pairs);
        let this = *self;
        let held = inputs.clone();
        let last = cx.equal_stack("layers", self.layers, hidden, move |cx, hidden| {
            this.layer(cx, hidden, &inputs)
        });
        let whole = frames.constant("to", &[b, t], DType::I32);
        drop((held, frames));
        (last, whole)
    }

    /// `ParakeetEncoderSubsamplingConv2D.forward`: each convolution's result is masked in place.
    fn subsampled(&self, cx: &Cx, features: &Tensor, mask: &Tensor) -> Tensor {
        let mut hidden = features.unsqueeze(1);
        let lengths = mask.constant("sum", &[mask.size(0)], DType::I64);
        let conv = Conv::stride(self.stride).padded((self.sub_kernel - 1) / 2);
        let masked = |x: Tensor| {
            let visible = mask.constant("lt", &[x.size(0), x.size(2)], DType::Bool);
            x.mul_buffer_(&visible.unsqueeze(1).unsqueeze(-1))
        };
        let mut index = 0;
        let mut layer = |cx: &Cx, x: &Tensor, kernel: u64, conv: Conv| {
            let out = cx.list_item("layers", index, |cx| {
                let shape = [
                    self.channels,
                    x.size(1) / conv.groups.max(1),
                    kernel,
                    kernel,
                ];
                let weight = cx.param("weight", &shape[..]).tensor();
                let bias = cx.param("bias", [self.channels]).tensor();
                x.convolution(&weight, Some(&bias), conv)
            });
            index += 1;
            masked(out)
        };
        hidden = layer(cx, &hidden, self.sub_kernel, conv);
        hidden = hidden.relu();
        for _ in 1..self.halvings {
            hidden = layer(cx, &hidden, self.sub_kernel, conv.grouped(self.channels));
            hidden = layer(cx, &hidden, 1, Conv::default());
            hidden = hidden.relu();
        }
        let (b, t) = (hidden.size(0), hidden.size(2));
        let width = hidden.size(1).saturating_mul(hidden.size(3));
        hidden = hidden.transpose(1, 2).reshape(&[b, t, width]);
        drop(lengths);
        cx.linear("linear", &hidden, self.hidden, true)
    }

    /// `ParakeetEncoderRelPositionalEncoding.forward`: sines and cosines of all distances, for each sample.
    fn relative_positions(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        cx.tape.no_grad(|| {
            let (b, n) = (hidden.size(0), 2 * hidden.size(1) - 1);
            let half = self.hidden / 2;
            let frequencies = cx.buffer("inv_freq", [half], DType::F32);
            let places = hidden.constant("arange", &[n], DType::I64);
            let angles = places
                .unsqueeze(-1)
                .to(DType::F32)
                .pipe(|places| places.mul(&frequencies))
                .unsqueeze(0)
                .expand(&[b, n, half]);
            let sines = angles.sin();
            let cosines = angles.cos();
            let both = Tensor::cat(&sines.unsqueeze(-1), &[&cosines.unsqueeze(-1)], -1);
            let result = both.view(&[b, n, self.hidden]).to(hidden.dtype());
            drop((places, angles, sines, cosines, both));
            result
        })
    }

    /// `ParakeetEncoderBlock.forward`.
    fn layer(&self, cx: &Cx, input: &Tensor, inputs: &LayerInputs) -> Tensor {
        let mut hidden = self.fed_forward(cx, ["norm_feed_forward1", "feed_forward1"], input);
        hidden = hidden.pipe(Tensor::mul_scalar).pipe(|half| input.add(half));
        let normed = cx.layer_norm("norm_self_att", &hidden);
        let attended = cx.module("self_attn", |cx| self.attention(cx, &normed, inputs));
        hidden = hidden.add(&attended);
        let convolved = {
            let normed = cx.layer_norm("norm_conv", &hidden);
            cx.module("conv", |cx| self.convolved(cx, &normed, &inputs.mask))
        };
        hidden = hidden.add(&convolved);
        let fed = self.fed_forward(cx, ["norm_feed_forward2", "feed_forward2"], &hidden);
        hidden = {
            let half = fed.mul_scalar();
            hidden.add(&half)
        };
        hidden = cx.layer_norm("norm_out", &hidden);
        drop((normed, attended, convolved, fed));
        hidden
    }

    /// `ParakeetEncoderFeedForward.forward` behind its norm.
    fn fed_forward(&self, cx: &Cx, [norm, name]: [&'static str; 2], x: &Tensor) -> Tensor {
        let mut hidden = cx.layer_norm(norm, x);
        cx.module(name, |cx| {
            hidden = cx
                .linear("linear1", &hidden, self.ffn, self.bias)
                .pipe(Tensor::silu);
            hidden = cx.dropout(&hidden, 0.1);
            cx.linear("linear2", &hidden, self.hidden, self.bias)
        })
    }

    /// `ParakeetEncoderAttention.forward`: the scores of positions are a bias with a gradient.
    fn attention(&self, cx: &Cx, x: &Tensor, inputs: &LayerInputs) -> Tensor {
        let (b, t) = (x.size(0), x.size(1));
        let (h, d) = (self.heads, self.hidden / self.heads);
        let heads = |t: &Tensor| t.view(&[b, t.size(1), h, d]).transpose(1, 2);
        let [query, key, value] = ["q_proj", "k_proj", "v_proj"]
            .map(|name| heads(&cx.linear(name, x, self.hidden, self.bias)));
        let biased = |name| {
            let bias = cx.param(name, [h, d]).tensor();
            query.add(&bias.view(&[1, h, 1, d]))
        };
        let (by_content, by_place) = (biased("bias_u"), biased("bias_v"));
        let places = cx
            .linear("relative_k_proj", &inputs.positions, self.hidden, false)
            .view(&[b, inputs.positions.size(1), h, d]);
        let mut scores = by_place.matmul(&places.permute(&[0, 2, 3, 1]));
        scores = shifted(&scores).narrow(-1, t);
        scores = scores.mul_scalar();
        scores = {
            let hidden = inputs
                .mask
                .constant("logical_not", inputs.mask.shape(), DType::Bool);
            scores.masked_fill_(&hidden)
        };
        let mask = AttentionMask::Given(scores.clone());
        let mut out = by_content.attention(&key, &value, &mask, cx.rate(0.1));
        out = out.transpose(1, 2).contiguous();
        out = out.reshape(&[b, t, self.hidden]);
        out = cx.linear("o_proj", &out, self.hidden, self.bias);
        drop((
            query, key, value, by_content, by_place, places, scores, mask,
        ));
        out
    }

    /// `ParakeetEncoderConvolutionModule.forward`.
    fn convolved(&self, cx: &Cx, x: &Tensor, mask: &Tensor) -> Tensor {
        let mut hidden = x.transpose(1, 2);
        let point = Conv::default();
        hidden = cx.convolution(
            "pointwise_conv1",
            &hidden,
            2 * self.hidden,
            &[1],
            point,
            true,
        );
        hidden = hidden.glu(1);
        let masked = {
            let hidden = mask.constant("bitwise_not", mask.shape(), DType::Bool);
            let rows = hidden.constant("all", &[mask.size(0), 1, mask.size(3)], DType::Bool);
            drop(hidden);
            rows
        };
        hidden = hidden.masked_fill(&masked);
        let conv = Conv::stride(1)
            .padded((self.kernel - 1) / 2)
            .grouped(self.hidden);
        hidden = cx.convolution(
            "depthwise_conv",
            &hidden,
            self.hidden,
            &[self.kernel],
            conv,
            true,
        );
        hidden = cx.batch_norm("norm", &hidden);
        hidden = hidden.silu();
        hidden = cx.convolution("pointwise_conv2", &hidden, self.hidden, &[1], point, true);
        drop(masked);
        hidden.transpose(1, 2)
    }
}

/// `_rel_shift`: a column of zeros before, and the matrix read as one that is taller.
fn shifted(scores: &Tensor) -> Tensor {
    let [b, h, rows, columns] = [0, 1, 2, 3].map(|i| scores.size(i));
    scores
        .padded_at_end(-1, 1)
        .view(&[b, h, columns + 1, rows])
        .narrow(2, columns)
        .view(&[b, h, rows, columns])
}

/// `ForCTCLoss` of transformers: log-probabilities in fp32, frames first.
pub(crate) fn ctc_loss(logits: &Tensor, labels: &Tensor) -> Tensor {
    let shape = *labels.shape();
    let mask = {
        let parts = [(); 2].map(|()| labels.constant("ne", &shape, DType::Bool));
        let both = labels.constant("bitwise_and", &shape, DType::Bool);
        drop(parts);
        both
    };
    let lengths = mask.constant("sum", &[shape[0]], DType::I64);
    let targets = labels.constant("masked_select", &[labels.numel()], DType::I64);
    let log_probs = logits.log_softmax_in(DType::F32).transpose(0, 1);
    let loss = log_probs.ctc_loss(&targets, labels.size(1));
    drop((mask, lengths, targets, log_probs));
    loss
}
