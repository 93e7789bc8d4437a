//! DiT, the diffusion transformer conditioned on a class (diffusers/models/transformers/dit_transformer_2d.py).

use super::unet::{attention, sinusoids};
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

pub(super) const FAMILIES: &[(&str, Build)] = &[("dit", build)];

#[derive(Clone, Copy, Debug)]
struct Dit {
    image: u64,
    patch: u64,
    channels: u64,
    out_channels: u64,
    layers: u64,
    heads: u64,
    hidden: u64,
    classes: u64,
}

fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    // The library's own names stand beside the catalogue's.
    let need = |name: &str, other: &str| sizes.get(other).map_or_else(|| sizes.need(name), Ok);
    let heads = need("heads", "num_attention_heads")?.max(1);
    let channels = need("channels", "in_channels")?;
    Ok(Box::new(Dit {
        image: need("img", "sample_size")?,
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
            let shape = [data.micro_batch, channels, self.image, self.image];
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
        let predicted = self.model(cx, sample, timestep, labels);
        let loss = cx.within("loss", |_| {
            let target = target.to(DType::F32);
            predicted
                .to(DType::F32)
                .then(|predicted| predicted.mse_loss(&target))
        });
        Output {
            loss,
            held: vec![predicted],
        }
    }
}

impl Dit {
    fn model(&self, cx: &Cx, sample: &Tensor, timestep: &Tensor, labels: &Tensor) -> Tensor {
        let side = self.image / self.patch;
        let (samples, tokens) = (sample.size(0), side * side);
        let this = *self;
        let mut hidden = cx.within("pos_embed", |cx| {
            let positions = cx.buffer("pos_embed", [1, tokens, this.hidden], DType::F32);
            let conv = Conv::stride(this.patch);
            let mut x = cx.conv2d("proj", sample, this.hidden, this.patch, conv, true);
            x = x.reshape(&[samples, this.hidden, tokens]).transpose(1, 2);
            let dtype = x.dtype();
            x.add(&positions).then(|x| x.to(dtype))
        });
        let condition = [timestep.clone(), labels.clone()];
        let given = condition.clone();
        let state = cx.checkpointing_in_any_mode().layers(
            "transformer_blocks",
            self.layers,
            vec![hidden],
            move |cx, x, _| x.iter().map(|x| this.block(cx, x, &given)).collect(),
        );
        let Some(last) = state.into_iter().next() else {
            return sample.clone();
        };
        hidden = last;
        // The first block's embedding conditions the end as well.
        let conditioning = cx.nth("transformer_blocks", 0, |cx| {
            cx.within("norm1", |cx| self.embed(cx, &condition, hidden.dtype()))
        });
        let parts = conditioning
            .silu()
            .then(|x| cx.linear("proj_out_1", x, 2 * self.hidden, true))
            .chunk(2, 1);
        if let [shift, scale] = &parts[..] {
            hidden = modulated(&hidden.layer_norm(None, None), scale, shift);
        }
        let out = self.patch * self.patch * self.out_channels;
        hidden = cx.linear("proj_out_2", &hidden, out, true);
        let (p, c) = (self.patch, self.out_channels);
        hidden = hidden.reshape(&[samples, side, side, p, p, c]);
        hidden = hidden.permute(&[0, 5, 1, 3, 2, 4]);
        hidden.reshape(&[samples, c, side * p, side * p])
    }

    /// `BasicTransformerBlock` with `ada_norm_zero`.
    fn block(&self, cx: &Cx, hidden: &Tensor, condition: &[Tensor; 2]) -> Tensor {
        let (mut normed, parts) = cx.within("norm1", |cx| {
            let mut emb = self.embed(cx, condition, hidden.dtype());
            emb = emb
                .silu()
                .then(|x| cx.linear("linear", x, 6 * self.hidden, true));
            let parts = emb.chunk(6, 1);
            let normed = match &parts[..] {
                [shift, scale, ..] => modulated(&hidden.layer_norm(None, None), scale, shift),
                _ => hidden.clone(),
            };
            (normed, parts)
        });
        let [_, _, gate, fed_shift, fed_scale, fed_gate] = &parts[..] else {
            return hidden.clone();
        };
        let mut attended = cx.within("attn1", |cx| {
            attention(cx, &normed, &normed, self.heads, true)
        });
        attended = gate.unsqueeze(1).mul(&attended);
        let hidden = attended.add(hidden);
        normed = hidden.layer_norm(None, None);
        normed = modulated(&normed, fed_scale, fed_shift);
        let mut fed = cx.within("ff", |cx| {
            cx.within("net", |cx| {
                let mut x = cx.within("0", |cx| cx.linear("proj", &normed, 4 * self.hidden, true));
                x = x.gelu();
                cx.linear("2", &x, self.hidden, true)
            })
        });
        fed = fed_gate.unsqueeze(1).mul(&fed);
        fed.add(&hidden)
    }

    /// `CombinedTimestepLabelEmbeddings`; labels are dropped at random in training.
    fn embed(&self, cx: &Cx, [timestep, labels]: &[Tensor; 2], dtype: DType) -> Tensor {
        cx.within("emb", |cx| {
            let waves = sinusoids(timestep, 256);
            let mut time = waves.to(dtype).then(|waves| {
                cx.within("timestep_embedder", |cx| {
                    let mut x = cx.linear("linear_1", waves, self.hidden, true);
                    x = x.silu();
                    cx.linear("linear_2", &x, self.hidden, true)
                })
            });
            let class = cx.within("class_embedder", |cx| {
                let kept = labels
                    .constant("rand", labels.shape(), DType::F32)
                    .then(|chance| chance.constant("lt", labels.shape(), DType::Bool));
                let labels = labels.constant("where", labels.shape(), DType::I64);
                drop(kept);
                cx.embedding("embedding_table", &labels, self.classes + 1, self.hidden)
            });
            time = time.add(&class);
            time
        })
    }
}

/// `norm(x) * (1 + scale[:, None]) + shift[:, None]`.
pub(super) fn modulated(normed: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    let scaled = scale.unsqueeze(1).shift().then(|factor| normed.mul(factor));
    scaled.add(&shift.unsqueeze(1))
}
