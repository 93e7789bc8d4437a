//! SigLIP: CLIP's towers without a class token, pooled by attention, and a loss of pairs
//! (transformers/models/siglip/modeling_siglip.py).

use super::bidirectional::bidirectional_mask;
use super::clip::{Tower, unit};
use super::multi_head::multi_head;
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::Data;
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

/// The image tower.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eye {
    tower: Tower,
    image: u64,
    patch: u64,
}

#[derive(Clone, Copy, Debug)]
struct Siglip {
    vision: Eye,
    text: Tower,
    vocab: u64,
    context: u64,
    projection: u64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let text = Tower::new(sizes, ["t_hidden", "t_layers", "t_heads", "t_ffn"])?.with_gelu();
    Ok(Box::new(Siglip {
        vision: Eye::new(sizes)?,
        text,
        vocab: sizes.need("vocab")?,
        context: sizes.or("ctx", 64),
        projection: sizes.or("proj", text.hidden),
    }))
}

impl Net for Siglip {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        vec![
            cx.tape.empty("input_ids", [n, self.context], DType::I64),
            self.vision.pixels(cx, n),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, image] = batch else {
            return Output::empty(cx);
        };
        let scale = cx.param("logit_scale", [1]).tensor();
        let bias = cx.param("logit_bias", [1]).tensor();
        let (seen, image_features) = cx.within("vision_model", |cx| self.see(cx, image));
        let (read, text_features) = cx.within("text_model", |cx| self.read(cx, ids));
        let image = unit(&image_features);
        let text = unit(&text_features);
        let mut logits = text.linear(&image, None);
        logits = {
            let scaled = scale.exp().then(|scale| logits.mul(scale));
            scaled.add(&bias)
        };
        let loss = cx.within("loss", |_| pairs(&logits));
        let held = vec![
            logits,
            text,
            image,
            read,
            text_features,
            seen,
            image_features,
        ];
        Output { loss, held }
    }
}

impl Eye {
    pub(super) fn new(sizes: &Sizes) -> Result<Self, ModelError> {
        let tower = Tower::new(sizes, ["v_hidden", "v_layers", "v_heads", "v_ffn"])?;
        Ok(Self {
            tower: tower.with_gelu(),
            image: sizes.or("img", 224),
            patch: sizes.need("patch")?.max(1),
        })
    }

    pub(super) fn pixels(&self, cx: &Cx, count: u64) -> Tensor {
        let shape = [count, 3, self.image, self.image];
        cx.tape.empty("pixel_values", shape, cx.env.weights)
    }

    /// How many patches lie along an image's side.
    pub(super) fn side(&self) -> u64 {
        self.image / self.patch
    }

    /// `SiglipVisionModel` without its head: last hidden states.
    pub(super) fn states(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let hidden = self.tower.hidden;
        let embedded = cx.within("embeddings", |cx| {
            let size = Conv::stride(self.patch);
            let grid = cx.conv2d("patch_embedding", image, hidden, self.patch, size, true);
            let grid = cx.asks_for_gradient(grid);
            let count = grid.size(2) * grid.size(3);
            let patches = grid
                .reshape(&[image.size(0), hidden, count])
                .transpose(1, 2);
            drop(grid);
            let ids = cx.buffer("position_ids", [1, count], DType::I64);
            let places = cx.embedding("position_embedding", &ids, count, hidden);
            patches.add(&places)
        });
        let mut last = self.tower.run(cx, &embedded, &AttentionMask::None);
        last = cx.layer_norm("post_layernorm", &last);
        last
    }
}

impl Siglip {
    /// `SiglipVisionModel`: last hidden states and what the pooling head makes of them.
    fn see(&self, cx: &Cx, image: &Tensor) -> (Tensor, Tensor) {
        let last = self.vision.states(cx, image);
        let pooled = cx.within("head", |cx| self.pooled(cx, &last));
        (last, pooled)
    }

    /// `SiglipMultiheadAttentionPoolingHead`: one learnt query over all patches.
    fn pooled(&self, cx: &Cx, states: &Tensor) -> Tensor {
        let Tower {
            hidden, heads, ffn, ..
        } = self.vision.tower;
        let probe = cx.param("probe", [1, 1, hidden]).tensor();
        let probe = probe.tiled(states.size(0));
        let (residual, weights) =
            cx.within("attention", |cx| multi_head(cx, &probe, states, heads, 0.0));
        drop(weights);
        let mut x = cx.layer_norm("layernorm", &residual);
        x = cx.within("mlp", |cx| {
            let mut y = cx.linear("fc1", &x, ffn, true);
            y = y.gelu();
            cx.linear("fc2", &y, hidden, true)
        });
        residual.add(&x).select(1)
    }

    /// `SiglipTextModel`: last hidden states and the projection of the last token's.
    fn read(&self, cx: &Cx, ids: &Tensor) -> (Tensor, Tensor) {
        let hidden = self.text.hidden;
        let embedded = cx.within("embeddings", |cx| {
            let words = cx.input_embedding("token_embedding", ids, self.vocab, hidden);
            let places = cx.buffer("position_ids", [1, self.context], DType::I64);
            let places = cx.embedding("position_embedding", &places, self.context, hidden);
            words.add(&places)
        });
        let mask = bidirectional_mask(cx, ids.size(1), None, embedded.dtype());
        let mut last = self.text.run(cx, &embedded, &mask);
        last = cx.layer_norm("final_layer_norm", &last);
        let pooled = cx.linear("head", &last.select(1), self.projection, true);
        (last, pooled)
    }
}

/// Every image with every text: a pair on the diagonal, none elsewhere.
fn pairs(logits: &Tensor) -> Tensor {
    let n = logits.size(0);
    let signs = {
        let eye = logits.constant("eye", &[n, n], DType::F32);
        let ones = logits.constant("ones_like", &[n, n], logits.dtype());
        let none = ones.then(Tensor::neg);
        eye.then(Tensor::scale).then(|twice| none.add(twice))
    };
    let signed = signs.mul(logits);
    let likelihood = signed.softplus();
    let sums = likelihood.sum(&[-1]).then(Tensor::neg);
    sums.mean_all()
}
