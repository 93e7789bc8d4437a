//! DiT, the diffusion transformer conditioned on a class (diffusers/models/transformers/dit_transformer_2d.py).

use super::diffusion::{
    Grid, Pixels, feed_forward, modulate, modulated_norm, modulation, mse_output, sinusoids,
    timestep_embedding, unpatchify,
};
use super::unet::attention;
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

pub(super) const FAMILIES: &[(&str, Build)] = &[("dit", build)];

#[derive(Clone, Copy, Debug)]
struct Dit {
    pixels: Pixels,
    patch: u64,
    channels: u64,
    out_channels: u64,
    layers: u64,
    heads: u64,
    hidden: u64,
    classes: u64,
}

fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    // A scenario may give the library's own names instead of the catalogue's.
    let need = |name: &str, library: &str| sizes.get(library).map_or_else(|| sizes.need(name), Ok);
    let heads = need("heads", "num_attention_heads")?.max(1);
    let channels = need("channels", "in_channels")?;
    Ok(Box::new(Dit {
        pixels: Pixels::still(8, need("img", "sample_size")?.saturating_mul(8)),
        patch: need("patch", "patch_size")?.max(1),
        channels,
        out_channels: sizes.or("out_channels", channels),
        layers: need("layers", "num_layers")?,
        heads,
        hidden: heads.saturating_mul(need("head_dim", "attention_head_dim")?),
        classes: need("classes", "num_embeds_ada_norm")?,
    }))
}

impl Net for Dit {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let image = |name, channels| {
            let Grid { height, width, .. } = self.pixels.latents(data);
            let shape = [data.micro_batch, channels, height, width];
            cx.tape.empty(name, shape, cx.env.weights)
        };
        let numbers = |name| cx.tape.empty(name, [data.micro_batch], DType::I64);
        vec![
            image("sample", self.channels),
            image("target", self.out_channels),
            numbers("timestep"),
            numbers("class_labels"),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [sample, target, timestep, labels] = batch else {
            return Output::empty(cx);
        };
        let condition = [timestep.clone(), labels.clone()];
        let predicted = self.model(cx, sample, condition);
        mse_output(cx, predicted, target)
    }
}

impl Dit {
    /// `DiTTransformer2DModel.forward`.
    fn model(&self, cx: &Cx, sample: &Tensor, condition: [Tensor; 2]) -> Tensor {
        let grid = Grid {
            frames: 1,
            height: sample.size(2),
            width: sample.size(3),
        };
        let grid = grid.patches(1, self.patch);
        let embedded = cx.module("pos_embed", |cx| self.patch_embed(cx, sample, grid));
        let (this, passed) = (*self, condition.clone());
        let mut hidden = cx.checkpointing_in_any_mode().equal_stack(
            "transformer_blocks",
            self.layers,
            embedded,
            move |cx, hidden| this.block(cx, hidden, &passed),
        );
        // The first block's embedding conditions the end as well.
        let conditioning = cx.list_item("transformer_blocks", 0, |cx| {
            cx.module("norm1", |cx| self.embed(cx, &condition, hidden.dtype()))
        });
        let parts = modulation(cx, "proj_out_1", &conditioning, 2);
        if let [shift, scale] = &parts[..] {
            hidden = modulated_norm(&hidden, scale, shift);
        }
        let out = self.patch * self.patch * self.out_channels;
        hidden = cx.linear("proj_out_2", &hidden, out, true);
        unpatchify(&hidden, grid, self.patch, self.out_channels)
    }

    /// `PatchEmbed.forward`.
    fn patch_embed(&self, cx: &Cx, sample: &Tensor, grid: Grid) -> Tensor {
        let (hidden, tokens) = (self.hidden, grid.count());
        let positions = cx.buffer("pos_embed", [1, tokens, hidden], DType::F32);
        let conv = Conv::stride(self.patch);
        let mut x = cx.conv2d("proj", sample, hidden, self.patch, conv, true);
        let shape = [sample.size(0), hidden, tokens];
        x = x.reshape(&shape).transpose(1, 2);
        let dtype = x.dtype();
        x.add(&positions).pipe(|x| x.to(dtype))
    }

    /// `BasicTransformerBlock` with `ada_norm_zero`.
    fn block(&self, cx: &Cx, hidden: &Tensor, condition: &[Tensor; 2]) -> Tensor {
        let (mut normed, parts) = cx.module("norm1", |cx| {
            let mut emb = self.embed(cx, condition, hidden.dtype());
            emb = emb
                .silu()
                .pipe(|x| cx.linear("linear", x, 6 * self.hidden, true));
            let parts = emb.chunk(6, 1);
            let normed = match &parts[..] {
                [shift, scale, ..] => modulated_norm(hidden, scale, shift),
                _ => hidden.clone(),
            };
            (normed, parts)
        });
        let [_, _, gate_msa, shift_mlp, scale_mlp, gate_mlp] = &parts[..] else {
            return hidden.clone();
        };
        let mut attended = cx.module("attn1", |cx| {
            attention(cx, &normed, &normed, self.heads, true)
        });
        attended = gate_msa.unsqueeze(1).mul(&attended);
        let hidden = attended.add(hidden);
        normed = hidden.layer_norm(None, None);
        normed = modulate(&normed, scale_mlp, shift_mlp);
        let mut ff_output = feed_forward(cx, "ff", &normed);
        ff_output = gate_mlp.unsqueeze(1).mul(&ff_output);
        ff_output.add(&hidden)
    }

    /// `CombinedTimestepLabelEmbeddings`; labels are dropped at random in training.
    fn embed(&self, cx: &Cx, [timestep, labels]: &[Tensor; 2], dtype: DType) -> Tensor {
        cx.module("emb", |cx| {
            let waves = sinusoids(timestep, 256);
            let mut time = waves
                .to(dtype)
                .pipe(|waves| timestep_embedding(cx, "timestep_embedder", waves, self.hidden));
            let class = cx.module("class_embedder", |cx| {
                let kept = labels
                    .constant("rand", labels.shape(), DType::F32)
                    .pipe(|chance| chance.constant("lt", labels.shape(), DType::Bool));
                let labels = labels.constant("where", labels.shape(), DType::I64);
                drop(kept);
                cx.embedding("embedding_table", &labels, self.classes + 1, self.hidden)
            });
            time = time.add(&class);
            time
        })
    }
}
