//! `Transformer2DModel`: attention among the positions of an image and to the text.

use super::layers::GROUPS;
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::{AttentionMask, Conv};

/// `Transformer2DModel` of one stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transformer {
    pub heads: u64,
    /// Transformer blocks in it.
    pub depth: u64,
    /// Its projections are linear layers, not convolutions (`use_linear_projection`).
    pub linear: bool,
}

/// `Transformer2DModel.forward`.
pub(crate) fn transformer(
    cx: &Cx,
    hidden: &Tensor,
    context: &Tensor,
    model: Transformer,
) -> Tensor {
    let residual = hidden;
    let (b, c, h, w) = (
        hidden.size(0),
        hidden.size(1),
        hidden.size(2),
        hidden.size(3),
    );
    let rows = |x: &Tensor| {
        let moved = x.permute(&[0, 2, 3, 1]);
        moved.reshape(&[b, h * w, c])
    };
    let mut hidden = cx.group_norm("norm", hidden, GROUPS);
    if model.linear {
        hidden = rows(&hidden);
        hidden = cx.linear("proj_in", &hidden, c, true);
    } else {
        hidden = cx.conv2d("proj_in", &hidden, c, 1, Conv::default(), true);
        hidden = rows(&hidden);
    }
    let context = context.clone();
    let mut hidden = cx.stack(
        "transformer_blocks",
        model.depth,
        hidden,
        move |cx, hidden, _| block(cx, hidden, &context, model.heads),
    );
    // The caller of `_get_output_for_continuous_inputs` holds what it passes.
    let _held = hidden.clone();
    let image = |x: &Tensor| {
        let wide = x.reshape(&[b, h, w, c]).permute(&[0, 3, 1, 2]);
        wide.contiguous()
    };
    if model.linear {
        hidden = cx.linear("proj_out", &hidden, c, true);
        hidden = image(&hidden);
    } else {
        hidden = image(&hidden);
        hidden = cx.conv2d("proj_out", &hidden, c, 1, Conv::default(), true);
    }
    hidden.add(residual)
}

/// `BasicTransformerBlock`.
fn block(cx: &Cx, hidden: &Tensor, context: &Tensor, heads: u64) -> Tensor {
    let mut normed = cx.layer_norm("norm1", hidden);
    let mut attended = cx.module("attn1", |cx| attention(cx, &normed, &normed, heads, false));
    let mut hidden = attended.add(hidden);
    normed = cx.layer_norm("norm2", &hidden);
    attended = cx.module("attn2", |cx| attention(cx, &normed, context, heads, false));
    hidden = attended.add(&hidden);
    normed = cx.layer_norm("norm3", &hidden);
    let ff_output = cx.module("ff", |cx| cx.module("net", |cx| feed_forward(cx, &normed)));
    ff_output.add(&hidden)
}

/// The attention of blocks without a text: it has a norm before it and a residual around it (`residual_connection`).
pub(crate) fn self_attention(cx: &Cx, residual: &Tensor, heads: u64) -> Tensor {
    let [n, c, h, w] = [0, 1, 2, 3].map(|i| residual.size(i));
    let mut normed = residual.view(&[n, c, h * w]);
    normed = cx.group_norm("group_norm", &normed, GROUPS);
    // It lives to the end under the name `encoder_hidden_states`.
    normed = normed.transpose(1, 2);
    processed(cx, [&normed, &normed], heads, true, Some(residual), None)
}

/// `AttnProcessor2_0` for rows.
pub(crate) fn attention(
    cx: &Cx,
    hidden: &Tensor,
    context: &Tensor,
    heads: u64,
    bias: bool,
) -> Tensor {
    processed(cx, [hidden, context], heads, bias, None, None)
}

/// The same with a bias `[B, 1, S]` over the context, a copy of which is made for each head.
pub(crate) fn masked_attention(
    cx: &Cx,
    hidden: &Tensor,
    context: &Tensor,
    heads: u64,
    mask: &Tensor,
) -> Tensor {
    processed(cx, [hidden, context], heads, true, None, Some(mask))
}

/// `AttnProcessor2_0`, whose names hold their tensors until it returns.
fn processed(
    cx: &Cx,
    [hidden, context]: [&Tensor; 2],
    heads: u64,
    bias: bool,
    residual: Option<&Tensor>,
    mask: Option<&Tensor>,
) -> Tensor {
    let mask = mask.map_or(AttentionMask::None, |mask| {
        // `prepare_attention_mask`.
        let each = [mask.size(0), heads, 1, mask.size(-1)];
        AttentionMask::Given(mask.constant("repeat_interleave", &each, mask.dtype()))
    });
    let width = hidden.size(-1);
    let size = width / heads;
    let split = |x: &Tensor| {
        let rows = x.size(1);
        x.view(&[x.size(0), rows, heads, size]).transpose(1, 2)
    };
    let mut query = cx.linear("to_q", hidden, width, bias);
    let mut key = cx.linear("to_k", context, width, bias);
    let mut value = cx.linear("to_v", context, width, bias);
    query = split(&query);
    key = split(&key);
    value = split(&value);
    let mut hidden = query.attention(&key, &value, &mask, 0.0);
    let (b, s) = (hidden.size(0), hidden.size(2));
    hidden = hidden.transpose(1, 2).reshape(&[b, s, width]);
    hidden = hidden.to(query.dtype());
    hidden = cx.module("to_out", |cx| cx.linear("0", &hidden, width, true));
    if let Some(residual) = residual {
        hidden = hidden.transpose(-1, -2).reshape(residual.shape());
        hidden = hidden.add(residual);
    }
    hidden.mul_scalar()
}

/// `FeedForward` with `GEGLU`.
fn feed_forward(cx: &Cx, x: &Tensor) -> Tensor {
    let width = x.size(-1);
    let gated = cx.module("0", |cx| {
        let mut parts = {
            let both = cx.linear("proj", x, 8 * width, true);
            both.chunk(2, -1)
        };
        let (Some(gate), Some(hidden)) = (parts.pop(), parts.pop()) else {
            return x.clone();
        };
        let gate = gate.gelu();
        hidden.mul(&gate)
    });
    cx.linear("2", &gated, width, true)
}
