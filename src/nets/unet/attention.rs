//! `Transformer2DModel`: attention among the positions of an image and to the text.

use super::GROUPS;
use super::blocks::Stage;
use crate::nets::Cx;
use crate::tape::Tensor;
use crate::tape::ops::{AttentionMask, Conv};

/// The projections and the blocks between them.
pub fn transformer(cx: &Cx, hidden: &Tensor, context: &Tensor, stage: Stage) -> Tensor {
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
    if stage.linear {
        hidden = rows(&hidden);
        hidden = cx.linear("proj_in", &hidden, c, true);
    } else {
        hidden = cx.conv2d("proj_in", &hidden, c, 1, Conv::default(), true);
        hidden = rows(&hidden);
    }
    let context = context.clone();
    let mut state = cx.layers(
        "transformer_blocks",
        stage.depth,
        vec![hidden],
        move |cx, state, _| {
            state
                .iter()
                .map(|hidden| block(cx, hidden, &context, stage.heads))
                .collect()
        },
    );
    let Some(mut hidden) = state.pop() else {
        return residual.clone();
    };
    // The caller of `_get_output_for_continuous_inputs` holds what it passes.
    let _held = hidden.clone();
    let image = |x: &Tensor| {
        let wide = x.reshape(&[b, h, w, c]).permute(&[0, 3, 1, 2]);
        wide.contiguous()
    };
    if stage.linear {
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
    let mut attended = cx.within("attn1", |cx| attention(cx, &normed, &normed, heads, false));
    let mut hidden = attended.add(hidden);
    normed = cx.layer_norm("norm2", &hidden);
    attended = cx.within("attn2", |cx| attention(cx, &normed, context, heads, false));
    hidden = attended.add(&hidden);
    normed = cx.layer_norm("norm3", &hidden);
    let fed = cx.within("ff", |cx| cx.within("net", |cx| feed_forward(cx, &normed)));
    fed.add(&hidden)
}

/// The attention of blocks without a text: it normalises what it takes, and adds that to what it gives.
pub fn among_pixels(cx: &Cx, residual: &Tensor, heads: u64) -> Tensor {
    let [n, c, h, w] = [0, 1, 2, 3].map(|i| residual.size(i));
    let mut normed = residual.view(&[n, c, h * w]);
    normed = cx.group_norm("group_norm", &normed, GROUPS);
    // Has a name to the end, as `encoder_hidden_states`.
    normed = normed.transpose(1, 2);
    processed(cx, [&normed, &normed], heads, true, Some(residual))
}

/// `AttnProcessor2_0` for rows.
pub fn attention(cx: &Cx, hidden: &Tensor, context: &Tensor, heads: u64, bias: bool) -> Tensor {
    processed(cx, [hidden, context], heads, bias, None)
}

/// `AttnProcessor2_0`; its names keep what they stand for until the result is there.
fn processed(
    cx: &Cx,
    [hidden, context]: [&Tensor; 2],
    heads: u64,
    bias: bool,
    residual: Option<&Tensor>,
) -> Tensor {
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
    let mut hidden = query.attention(&key, &value, &AttentionMask::None, 0.0);
    let (b, s) = (hidden.size(0), hidden.size(2));
    hidden = hidden.transpose(1, 2).reshape(&[b, s, width]);
    hidden = hidden.to(query.dtype());
    hidden = cx.within("to_out", |cx| cx.linear("0", &hidden, width, true));
    if let Some(residual) = residual {
        hidden = hidden.transpose(-1, -2).reshape(residual.shape());
        hidden = hidden.add(residual);
    }
    hidden.scale()
}

/// `FeedForward` with `GEGLU`.
fn feed_forward(cx: &Cx, x: &Tensor) -> Tensor {
    let width = x.size(-1);
    let gated = cx.within("0", |cx| {
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
