//! The masked autoencoder of ViT-MAE in pre-training (transformers/models/vit_mae/modeling_vit_mae.py).

use super::vit::{Layer, patches};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct VitMae {
    layers: u64,
    encoder: Layer,
    decoder_layers: u64,
    decoder: Layer,
    image: u64,
    patch: u64,
    /// `mask_ratio` in percent: the patches that are dropped.
    masked: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let layer = |hidden: u64, heads, ffn| Layer {
        hidden,
        heads,
        ffn,
        dropout: 0.0,
        scaled: false,
        gated: false,
    };
    let hidden = sizes.need("hidden")?;
    let narrow = sizes.or("d_hidden", 512);
    Ok(Box::new(VitMae {
        layers: sizes.need("layers")?,
        encoder: layer(
            hidden,
            sizes.need("heads")?.max(1),
            sizes.or("ffn", 4 * hidden),
        ),
        decoder_layers: sizes.or("d_layers", 8),
        decoder: layer(
            narrow,
            sizes.or("d_heads", 16).max(1),
            sizes.or("d_ffn", 4 * narrow),
        ),
        image: sizes.or("img", 224),
        patch: sizes.or("patch", 16).max(1),
        masked: sizes.or("mask_percent", 75).min(100),
    }))
}

/// What the encoder returns: its last hidden states, the mask of dropped patches, and their order.
struct EncoderOutput {
    latent: Tensor,
    mask: Tensor,
    restore: Tensor,
}

impl Net for VitMae {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, 3, self.image, self.image];
        vec![cx.tape.empty("pixel_values", shape, cx.env.weights)]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image] = batch else {
            return Output::empty(cx);
        };
        let seen = cx.module("vit", |cx| self.encode(cx, image));
        let logits = cx.module("decoder", |cx| self.decode(cx, &seen));
        let loss = cx.module("loss", |_| {
            let target = self.patchified(image);
            let squares = logits.sub(&target).pipe(Tensor::pow);
            let means = squares.mean(&[-1]).squeeze(-1);
            drop(squares);
            let sum = means.mul(&seen.mask).pipe(|masked| masked.sum(&[0, 1]));
            let count = seen.mask.sum(&[0, 1]);
            sum.view(&[]).div(&count.view(&[]))
        });
        Output {
            loss,
            held: vec![logits, seen.mask, seen.restore],
        }
    }
}

impl VitMae {
    fn side(&self) -> u64 {
        self.image / self.patch
    }

    fn encode(&self, cx: &Cx, image: &Tensor) -> EncoderOutput {
        let (embedded, mask, restore) =
            cx.module("embeddings", |cx| self.visible_patches(cx, image));
        let layer = self.encoder;
        let last = cx.equal_stack(
            "layers",
            self.layers,
            embedded.clone(),
            move |cx, hidden| layer.run(cx, hidden),
        );
        EncoderOutput {
            latent: cx.layer_norm("layernorm", &last),
            mask,
            restore,
        }
    }

    /// `ViTMAEEmbeddings.forward`: the patches that are not masked, behind the class token.
    fn visible_patches(&self, cx: &Cx, image: &Tensor) -> (Tensor, Tensor, Tensor) {
        let (b, width) = (image.size(0), self.encoder.hidden);
        let count = self.side() * self.side();
        let token = cx.param("cls_token", [1, 1, width]);
        let shape = [1, count + 1, width];
        let positions = cx.param_as("position_embeddings", shape, cx.env.weights, |_| false);
        let mut embedded = cx.module("patch_embeddings", |cx| {
            patches(cx, "projection", image, width, self.patch)
        });
        embedded = {
            let patches = positions.tensor().narrow(1, count);
            embedded.add(&patches)
        };
        let (visible, mask, restore) = self.random_masking(&embedded);
        let start = token.tensor().add(&positions.tensor().narrow(1, 1));
        let tokens = start.expand(&[b, 1, width]);
        let joined = Tensor::cat(&tokens, &[&visible], 1);
        (joined, mask, restore)
    }

    fn random_masking(&self, sequence: &Tensor) -> (Tensor, Tensor, Tensor) {
        let (b, n, width) = (sequence.size(0), sequence.size(1), sequence.size(2));
        let kept = n * (100 - self.masked) / 100;
        let make = |op, dtype| sequence.constant(op, &[b, n], dtype);
        let noise = make("rand", DType::F32);
        let sorted = |dtype| {
            let values = make("sort", dtype);
            let order = make("argsort", DType::I64);
            drop(values);
            order
        };
        let shuffle = sorted(DType::F32);
        let restore = sorted(DType::I64);
        let index = sequence.constant("repeat", &[b, kept, width], DType::I64);
        let visible = sequence.gathered(&index);
        drop(index);
        let ones = make("ones", DType::F32);
        let mask = make("gather", DType::F32);
        drop((ones, noise, shuffle));
        (visible, mask, restore)
    }

    /// `ViTMAEDecoder.forward`.
    fn decode(&self, cx: &Cx, seen: &EncoderOutput) -> Tensor {
        let (b, width) = (seen.latent.size(0), self.decoder.hidden);
        let count = self.side() * self.side();
        let token = cx.param("mask_token", [1, 1, width]);
        let shape = [1, count + 1, width];
        let positions = cx.param_as("decoder_pos_embed", shape, cx.env.weights, |_| false);
        let mut hidden = cx.linear("decoder_embed", &seen.latent, width, true);
        let absent = (count + 1).saturating_sub(hidden.size(1));
        let mask_tokens = token.tensor().repeated(&[b, absent, width]);
        let mut all = {
            let patches = hidden.narrow(1, hidden.size(1).saturating_sub(1));
            Tensor::cat(&patches, &[&mask_tokens], 1)
        };
        all = {
            let index = all.constant("repeat", &[b, count, width], DType::I64);
            all.gathered(&index)
        };
        hidden = Tensor::cat(&hidden.narrow(1, 1), &[&all], 1);
        hidden = hidden.add(&positions.tensor());
        let layer = self.decoder;
        hidden = cx.equal_stack(
            "decoder_layers",
            self.decoder_layers,
            hidden,
            move |cx, hidden| layer.run(cx, hidden),
        );
        hidden = cx.layer_norm("decoder_norm", &hidden);
        let logits = cx.linear("decoder_pred", &hidden, 3 * self.patch * self.patch, true);
        drop((mask_tokens, all));
        logits.narrow(1, count)
    }

    /// `patchify`: the image as a sequence of its patches' pixels.
    fn patchified(&self, image: &Tensor) -> Tensor {
        let (b, side, patch) = (image.size(0), self.side(), self.patch);
        image
            .reshape(&[b, 3, side, patch, side, patch])
            .permute(&[0, 2, 4, 3, 5, 1])
            .reshape(&[b, side * side, 3 * patch * patch])
    }
}
