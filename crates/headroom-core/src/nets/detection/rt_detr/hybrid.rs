//! `RTDetrHybridEncoder`: attention on the coarsest map, then a pyramid down and up again.

use super::d_fine::Fine;
use super::{Encoder, perceptron_of};
use crate::nets::attention::{Eager, attend, heads};
use crate::nets::vision::index_name;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
pub(super) struct Hybrid {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    /// The width inside of fusion blocks (`hidden_expansion`).
    inner: u64,
    /// What D-FINE has in the place of its convolutions.
    fine: Option<Fine>,
}

impl Encoder for Hybrid {
    fn width(&self) -> u64 {
        self.hidden
    }

    fn forward(&self, cx: &Cx, maps: &[Tensor]) -> Vec<Tensor> {
        self.pyramids(cx, maps)
    }
}

impl Hybrid {
    pub(super) fn new(sizes: &Sizes, fine: Option<Fine>) -> Result<Self, ModelError> {
        let hidden = sizes.or("encoder_hidden", sizes.need("hidden")?);
        Ok(Self {
            hidden,
            layers: sizes.or("layers", 1),
            heads: sizes.or("heads", 8).max(1),
            ffn: sizes.or("ffn", 1024),
            inner: hidden.saturating_mul(sizes.or("expansion_percent", 100)) / 100,
            fine,
        })
    }

    /// The three maps, finest first.
    fn pyramids(&self, cx: &Cx, maps: &[Tensor]) -> Vec<Tensor> {
        let Some((coarsest, finer)) = maps.split_last() else {
            return Vec::new();
        };
        let last = if self.layers > 0 {
            cx.module("aifi", |cx| {
                cx.module("0", |cx| self.attended(cx, coarsest))
            })
        } else {
            coarsest.clone()
        };
        let mut pyramid = vec![last];
        for (i, map) in finer.iter().rev().enumerate() {
            let Some(top) = pyramid.pop() else { break };
            let lateral = cx.module("lateral_convs", |cx| {
                cx.module(index_name(i), |cx| {
                    let x = conv_norm(cx, &top, self.hidden, 1, 1);
                    match self.fine {
                        Some(_) => x,
                        None => x.silu(),
                    }
                })
            });
            pyramid.push(lateral.clone());
            let larger = lateral.interpolate(map.size(2), map.size(3));
            let both = Tensor::cat(&larger, &[map], 1);
            drop(larger);
            let fused = cx.module("fpn_blocks", |cx| {
                cx.module(index_name(i), |cx| self.fusion(cx, &both))
            });
            pyramid.push(fused);
        }
        pyramid.reverse();
        let mut all: Vec<Tensor> = pyramid.iter().take(1).cloned().collect();
        for (i, map) in pyramid.iter().skip(1).enumerate() {
            let Some(top) = all.last() else { break };
            let smaller = cx.module("downsample_convs", |cx| {
                cx.module(index_name(i), |cx| match self.fine {
                    Some(_) => Fine::halved(cx, top),
                    None => conv_norm(cx, top, self.hidden, 3, 2).pipe(Tensor::silu),
                })
            });
            let both = Tensor::cat(&smaller, &[map], 1);
            let fused = cx.module("pan_blocks", |cx| {
                cx.module(index_name(i), |cx| self.fusion(cx, &both))
            });
            all.push(fused);
        }
        all
    }

    /// `RTDetrAIFILayer.forward`.
    fn attended(&self, cx: &Cx, map: &Tensor) -> Tensor {
        let (n, down, across) = (map.size(0), map.size(2), map.size(3));
        let flat = map
            .reshape(&[n, self.hidden, down * across])
            .transpose(1, 2);
        // Made once for a size of pictures.
        let shape = [1, down * across, self.hidden];
        let places = cx.buffer("position_embedding", shape, flat.dtype());
        let this = *self;
        let states = cx.equal_stack("layers", self.layers, flat, move |cx, x| {
            this.layer(cx, x, &places)
        });
        let grid = [n, self.hidden, down, across];
        states
            .transpose(1, 2)
            .reshape(&grid)
            .pipe(Tensor::contiguous)
    }

    fn layer(&self, cx: &Cx, input: &Tensor, places: &Tensor) -> Tensor {
        let attended = cx.module("self_attn", |cx| {
            self_attention(cx, input, Some(places), self.heads, &AttentionMask::None)
        });
        let mut hidden = input.add(&attended);
        hidden = cx.layer_norm("self_attn_layer_norm", &hidden);
        let out = cx.module("mlp", |cx| {
            if self.fine.is_some() {
                return perceptron_of(cx, &hidden, &[self.ffn, self.hidden], Tensor::gelu);
            }
            let x = cx.linear("fc1", &hidden, self.ffn, true).pipe(Tensor::gelu);
            cx.linear("fc2", &x, self.hidden, true)
        });
        hidden = hidden.add(&out);
        hidden = cx.layer_norm("final_layer_norm", &hidden);
        // It asks whether all are finite.
        let size = hidden.constant("abs", hidden.shape(), hidden.dtype());
        let finite = hidden.constant("ne", hidden.shape(), DType::Bool);
        drop((size, finite, out, attended));
        hidden
    }

    /// `RTDetrCSPRepLayer.forward`.
    fn fusion(&self, cx: &Cx, x: &Tensor) -> Tensor {
        if let Some(fine) = self.fine {
            return fine.fused(cx, x, self.hidden, self.inner);
        }
        let branch = |name, x: &Tensor, width| {
            cx.module(name, |cx| conv_norm(cx, x, width, 1, 1).pipe(Tensor::silu))
        };
        let mut first = branch("conv1", x, self.inner);
        first = cx.module("bottlenecks", |cx| {
            (0..3).fold(first, |x, i| {
                cx.module(index_name(i), |cx| {
                    let wide = cx.module("conv1", |cx| conv_norm(cx, &x, self.inner, 3, 1));
                    let point = cx.module("conv2", |cx| conv_norm(cx, &x, self.inner, 1, 1));
                    let sum = wide.add(&point);
                    drop((wide, point));
                    sum.silu()
                })
            })
        });
        let second = branch("conv2", x, self.inner);
        let sum = first.add(&second);
        if self.inner == self.hidden {
            return sum;
        }
        branch("conv3", &sum, self.hidden)
    }
}

/// `RTDetrConvNormLayer` without its activation.
pub(super) fn conv_norm(cx: &Cx, x: &Tensor, out: u64, kernel: u64, stride: u64) -> Tensor {
    let form = Conv::stride(stride).padded(kernel / 2);
    let x = cx.conv2d("conv", x, out, kernel, form, false);
    cx.batch_norm("norm", &x)
}

/// `RTDetrSelfAttention.forward`: places are added to what queries and keys are made of.
pub(super) fn self_attention(
    cx: &Cx,
    x: &Tensor,
    places: Option<&Tensor>,
    count: u64,
    mask: &AttentionMask,
) -> Tensor {
    let placed = places.map_or_else(|| x.clone(), |places| x.add(places));
    let project = |name, x: &Tensor| heads(&cx.linear(name, x, x.size(-1), true), count);
    let (q, k, v) = (
        project("q_proj", &placed),
        project("k_proj", &placed),
        project("v_proj", x),
    );
    let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, Eager::default());
    out = out.reshape(x.shape());
    out = cx.linear("o_proj", &out, x.size(-1), true);
    drop((placed, weights));
    out
}
