//! `Sam2HieraDetModel`: stages whose first block halves the map by pooling its queries; most blocks attend within windows.

use crate::nets::sam::vision::{window_partition, window_unpartition};
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

#[derive(Clone, Debug)]
pub(super) struct Hiera {
    pub(super) image: u64,
    stages: Vec<Stage>,
    /// Blocks that attend to the whole map, by their numbers.
    global: Vec<u64>,
    /// Sides of the table of positions.
    background: [u64; 2],
    /// The MLP's width in percent of the block's.
    ratio: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stage {
    blocks: u64,
    width: u64,
    heads: u64,
    window: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    out: u64,
    heads: u64,
    /// None where it attends to the whole map.
    window: Option<u64>,
    pools: bool,
    ratio: u64,
}

impl Hiera {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let [blocks, widths, heads, windows] = [
            sizes.list("depths")?,
            sizes.list("dims")?,
            sizes.list("stage_heads")?,
            sizes.list("windows")?,
        ];
        let all = blocks.iter().zip(widths).zip(heads).zip(windows);
        let stages = all.map(|(((blocks, width), heads), window)| Stage {
            blocks: *blocks,
            width: *width,
            heads: (*heads).max(1),
            window: (*window).max(2),
        });
        let background = sizes.list("background")?;
        let at = |i: usize| background.get(i).copied().unwrap_or(7).max(1);
        let image = sizes.or("img", 1024);
        let of = 32;
        if image == 0 || !image.is_multiple_of(of) {
            return Err(ModelError::NoMultiple {
                name: "img",
                value: image,
                of,
            });
        }
        Ok(Self {
            image,
            stages: stages.collect(),
            global: sizes.list("global_blocks")?.to_vec(),
            background: [at(0), at(1)],
            ratio: sizes.or("ratio_percent", 400),
        })
    }

    /// Each stage's map `[B, h, w, C]`.
    pub(super) fn stages(&self, cx: &Cx, image: &Tensor) -> Vec<Tensor> {
        let Some(first) = self.stages.first() else {
            return Vec::new();
        };
        let width = first.width;
        let [high, wide] = self.background;
        let background = cx.param("pos_embed", [1, width, high, wide]);
        let windowed = cx.param("pos_embed_window", [1, width, first.window, first.window]);
        let embedded = cx.module("patch_embed", |cx| {
            let form = Conv::stride(4).padded(3);
            let grid = cx.conv2d("projection", image, width, 7, form, true);
            cx.asks_with_adapters(grid.permute(&[0, 2, 3, 1]))
        });
        let (h, w) = (embedded.size(1), embedded.size(2));
        let positions = {
            let resized = background.tensor().interpolate(h, w);
            let tiled = windowed.tensor().repeated(&[1, width, h, w]);
            resized.add(&tiled).permute(&[0, 2, 3, 1])
        };
        let mut x = embedded.add(&positions);
        drop((embedded, positions));
        let mut all = Vec::new();
        let mut number = 0;
        let mut before = *first;
        for (at, stage) in self.stages.iter().enumerate() {
            for i in 0..stage.blocks {
                if cx.tape.is_over_budget() {
                    break;
                }
                let leads = at > 0 && i == 0;
                let window = if leads { before.window } else { stage.window };
                let block = Block {
                    out: stage.width,
                    heads: stage.heads,
                    window: (!self.global.contains(&number)).then_some(window),
                    pools: leads,
                    ratio: self.ratio,
                };
                let outputs = cx.layer(
                    "blocks",
                    number as usize,
                    vec![x.clone()],
                    move |cx, state| state.iter().map(|x| block.run(cx, x)).collect(),
                );
                x = outputs.into_iter().next().unwrap_or(x);
                number += 1;
            }
            before = *stage;
            all.push(x.clone());
        }
        all
    }
}

/// `do_pool`: halves the sides of `[B, h, w, C]`.
fn halved(x: &Tensor) -> Tensor {
    x.permute(&[0, 3, 1, 2])
        .max_pool2d(2, Conv::stride(2))
        .permute(&[0, 2, 3, 1])
}

impl Block {
    /// `Sam2MultiScaleBlock.forward`.
    fn run(self, cx: &Cx, input: &Tensor) -> Tensor {
        let mut residual = input.clone();
        let mut hidden = cx.layer_norm("layer_norm1", input);
        if input.size(3) != self.out {
            let projected = cx.linear("proj", &hidden, self.out, true);
            residual = if self.pools {
                halved(&projected)
            } else {
                projected
            };
        }
        if let Some(window) = self.window {
            hidden = window_partition(&hidden, window);
        }
        hidden = cx.module("attn", |cx| self.attention(cx, &hidden));
        let (h, w) = (residual.size(1), residual.size(2));
        if let Some(window) = self.window {
            let window = if self.pools { window / 2 } else { window };
            hidden = window_unpartition(&hidden, window, [h, w]);
        }
        hidden = residual.add(&hidden);
        drop(residual);
        let normed = cx.layer_norm("layer_norm2", &hidden);
        let added = cx.module("mlp", |cx| {
            let inner = self.out.saturating_mul(self.ratio) / 100;
            let x = cx
                .linear("proj_in", &normed, inner, true)
                .pipe(Tensor::gelu);
            cx.linear("proj_out", &x, self.out, true)
        });
        hidden.add(&added)
    }

    /// `Sam2MultiScaleAttention.forward`, whose scores between heads nobody reads.
    fn attention(self, cx: &Cx, x: &Tensor) -> Tensor {
        let (b, mut h, mut w) = (x.size(0), x.size(1), x.size(2));
        let head = self.out / self.heads;
        let parts = cx
            .linear("qkv", x, 3 * self.out, true)
            .reshape(&[b, h * w, 3, self.heads, head])
            .unbind_along(2);
        let [q, k, v] = parts.as_slice() else {
            return x.clone();
        };
        let mut q = q.clone();
        let unread = q
            .mul_scalar()
            .pipe(|q| q.matmul(&k.transpose(-2, -1)))
            .softmax(Some(DType::F32))
            .to(q.dtype());
        if self.pools {
            let pooled = halved(&q.reshape(&[b, h, w, self.out]));
            (h, w) = (pooled.size(1), pooled.size(2));
            q = pooled.reshape(&[b, h * w, self.heads, head]);
        }
        let [q, k, v] = [&q, k, v].map(|x| x.transpose(1, 2));
        let out = q.attention(&k, &v, &AttentionMask::None, 0.0);
        let out = out.transpose(1, 2).contiguous();
        let out = out.reshape(&[b, h, w, self.out]);
        let projected = cx.linear("proj", &out, self.out, true);
        drop(unread);
        projected
    }
}
