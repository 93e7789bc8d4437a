//! `PixtralVisionModel`: the patches of all pictures of a batch in one row, under a mask that keeps pictures apart.

use crate::nets::attention::{Eager, attend, heads};
use crate::nets::decoder::pictures::Batch;
use crate::nets::decoder::rope::rotated_by_tables;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    /// The longest side of a picture in pixels.
    pub image: u64,
    pub patch: u64,
}

impl Tower {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        Ok(Self {
            hidden,
            layers: sizes.need("v_layers")?,
            heads: sizes.need("v_heads")?.max(1),
            ffn: sizes.or("v_ffn", 4 * hidden),
            image: sizes.or("img", 1540),
            patch: sizes.need("patch")?.max(1),
        })
    }

    pub(super) fn states(&self, cx: &Cx, pixels: &Tensor, grids: &Batch) -> Tensor {
        let conv = Conv::stride(self.patch);
        let padded = cx.conv2d("patch_conv", pixels, self.hidden, self.patch, conv, false);
        let padded = cx.asks_for_gradient(padded);
        let row = self.in_one_row(&padded, grids);
        let patches = cx.rms_norm("ln_pre", &row);
        drop(row);
        let places = patches.constant("places", &[patches.size(1), 2], DType::I64);
        let tables = cx.module("patch_positional_embedding", |cx| {
            self.tables(cx, &places, patches.dtype())
        });
        let mask = Self::mask(cx, &patches);
        let tower = *self;
        let kept = (tables.clone(), mask.clone());
        let layer = move |cx: &Cx, x: &Tensor| tower.layer(cx, x, &kept.0, &kept.1);
        let states = cx.module("transformer", |cx| {
            cx.equal_stack("layers", self.layers, patches, layer)
        });
        drop((padded, places, tables, mask));
        states
    }

    /// `torch.cat([p.flatten(1).T for p in patch_embeds_list]).unsqueeze(0)`, each picture without its padding.
    fn in_one_row(&self, padded: &Tensor, grids: &Batch) -> Tensor {
        let ones = vec![1; padded.size(0) as usize];
        let pictures = padded.split(&ones, 0);
        let rows = pictures
            .iter()
            .zip(grids.iter())
            .map(|(picture, [height, width])| {
                let own = picture.select(0).narrow(1, height).narrow(2, width);
                own.reshape(&[self.hidden, height * width]).transpose(0, 1)
            });
        let rows: Vec<Tensor> = rows.collect();
        let all: Vec<&Tensor> = rows.iter().collect();
        match all.split_first() {
            Some((first, rest)) => Tensor::cat(first, rest, 0).unsqueeze(0),
            None => padded.constant("cat", &[1, 1, self.hidden], padded.dtype()),
        }
    }

    /// `generate_block_attention_mask`: a bias of all patches by all patches.
    fn mask(cx: &Cx, patches: &Tensor) -> AttentionMask {
        if cx.env.training.attention == Attention::Flash2 {
            return AttentionMask::None;
        }
        let rows = patches.size(1);
        let bias = patches.constant("full", &[rows, rows], patches.dtype());
        AttentionMask::Given(bias.unsqueeze(0).unsqueeze(0))
    }

    /// Cosines and sines `[N, D]`.
    fn tables(&self, cx: &Cx, places: &Tensor, dtype: DType) -> [Tensor; 2] {
        cx.tape.no_grad(|| {
            let half = self.hidden / self.heads / 2;
            let frequencies = cx.buffer("inv_freq", [half], DType::F32);
            cx.buffer("original_inv_freq", [half], DType::F32);
            let angles = places
                .unsqueeze(-1)
                .to(DType::F32)
                .pipe(|places| places.mul(&frequencies));
            let cos = angles.cos().pipe(Tensor::mul_scalar);
            let sin = angles.sin().pipe(Tensor::mul_scalar);
            let tables = [cos, sin].map(|table| {
                let quarter = table.narrow(-1, half / 2);
                let (rows, columns) = (quarter.select(1), quarter.select(1));
                let both = Tensor::cat(&rows, &[&columns], -1);
                Tensor::cat(&both, &[&both], -1)
            });
            tables.map(|table| table.to(dtype))
        })
    }

    fn layer(&self, cx: &Cx, input: &Tensor, tables: &[Tensor; 2], mask: &AttentionMask) -> Tensor {
        let mut hidden = cx.rms_norm("attention_norm", input);
        let (attended, weights) =
            cx.module("attention", |cx| self.attention(cx, &hidden, tables, mask));
        hidden = input.add(&attended);
        drop(attended);
        let residual = hidden.clone();
        hidden = cx.rms_norm("ffn_norm", &hidden);
        hidden = cx.module("feed_forward", |cx| {
            let product = {
                let gate = cx
                    .linear("gate_proj", &hidden, self.ffn, false)
                    .pipe(Tensor::gelu);
                let up = cx.linear("up_proj", &hidden, self.ffn, false);
                gate.mul(&up)
            };
            cx.linear("down_proj", &product, self.hidden, false)
        });
        drop(weights);
        residual.add(&hidden)
    }

    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        tables: &[Tensor; 2],
        mask: &AttentionMask,
    ) -> (Tensor, Option<Tensor>) {
        let project = |name| cx.linear(name, x, self.hidden, false);
        let [q, k, v] = ["q_proj", "k_proj", "v_proj"].map(project);
        let [q, k, v] = [q, k, v].map(|rows| heads(&rows, self.heads));
        let [q, k] = rotated_by_tables([&q, &k], tables);
        let form = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, form);
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (cx.linear("o_proj", &out, self.hidden, false), weights)
    }
}
