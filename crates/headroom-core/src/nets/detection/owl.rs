//! OWL-ViT and OWLv2, which find what texts name: CLIP's two towers, and heads that read every patch
//! (transformers/models/{owlvit,owlv2}/modeling_*.py). Their classes leave the matching of boxes with things to others: the loss is
//! the mean over all places.

use crate::nets::clip::{TextModel, Tower};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Owl {
    vision: Tower,
    text: TextModel,
    projection: u64,
    image: u64,
    /// The side of the pictures that the table of positions is for.
    table: u64,
    patch: u64,
    /// Texts for each picture.
    queries: u64,
    /// OWLv2 tells how likely a patch is a thing at all.
    tells_objects: bool,
}

pub(crate) fn first(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, false)
}

pub(crate) fn second(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, true)
}

fn build(sizes: &Sizes, tells_objects: bool) -> Result<Box<dyn Net>, ModelError> {
    let usual = if tells_objects { 960 } else { 768 };
    let (image, patch) = (sizes.or("img", usual), sizes.or("patch", 16).max(1));
    if image < patch {
        return Err(ModelError::TooSmall {
            name: "img",
            value: image,
            least: patch,
        });
    }
    let text = TextModel::new(sizes, Tower::of_texts(sizes)?)?;
    Ok(Box::new(Owl {
        vision: Tower::of_images(sizes)?,
        text: TextModel {
            context: sizes.or("ctx", 16),
            ..text
        },
        projection: sizes.or("proj", 512),
        image,
        table: sizes.or("table", image),
        patch,
        queries: sizes.or("queries", 8),
        tells_objects,
    }))
}

impl Net for Owl {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let (n, side) = (data.micro_batch, self.image);
        let pixels = [n, 3, side, side];
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            self.text.ids(cx, n.saturating_mul(self.queries)),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [image, ids] = batch else {
            return Output::empty(cx);
        };
        let name = if self.tells_objects {
            "owlv2"
        } else {
            "owlvit"
        };
        let seen = cx.module(name, |cx| self.towers(cx, image, ids));
        let (n, width) = (image.size(0), self.vision.hidden);
        // Each patch is multiplied by the class token.
        let features = {
            let token = seen.normed.narrow(1, 1).expand(&[n, seen.places, width]);
            seen.normed.narrow(1, seen.places).mul(&token)
        };
        let features = features.pipe(|features| cx.layer_norm("layer_norm", features));
        let mask = ids.constant("gt", &[n, self.queries], DType::Bool);
        let texts = seen.texts.reshape(&[n, self.queries, seen.texts.size(-1)]);
        let [logits, classes] = cx.module("class_head", |cx| {
            self.classes(cx, &features, &texts, &mask)
        });
        let mut held = seen.held;
        if self.tells_objects {
            let likely = box_head(cx, "objectness_head", &features.detach(), 1);
            held.push(likely.select(-1));
        }
        let boxes = {
            let found = box_head(cx, "box_head", &features, 4);
            let bias = if self.table == self.image {
                cx.buffer("box_bias", [seen.places, 4], cx.env.weights)
            } else {
                found.constant("to", &[seen.places, 4], DType::F32)
            };
            found.add_(&bias).pipe(Tensor::sigmoid)
        };
        let loss = cx.module("loss", |_| {
            let zeros = logits.constant("zeros", logits.shape(), DType::F32);
            let of_classes = logits.bce_with_logits(&zeros);
            let wide = boxes.to(DType::F32);
            of_classes.add(&wide.abs().pipe(Tensor::mean_all))
        });
        held.extend([features, texts, mask, logits, classes, boxes]);
        Output { loss, held }
    }
}

/// What the towers hand to the heads.
struct Seen {
    /// The states of the picture, normed: a class token and the patches.
    normed: Tensor,
    places: u64,
    texts: Tensor,
    held: Vec<Tensor>,
}

impl Owl {
    fn towers(&self, cx: &Cx, image: &Tensor, ids: &Tensor) -> Seen {
        let [last, pooled] = cx.module("vision_model", |cx| {
            let embedded = cx.module("embeddings", |cx| self.embeddings(cx, image));
            let hidden = embedded.pipe(|embedded| cx.layer_norm("pre_layernorm", embedded));
            let last = self.vision.encode(cx, &hidden, &AttentionMask::None);
            let pooled = cx.layer_norm("post_layernorm", &last.select(1));
            [last, pooled]
        });
        let [text_last, text_pooled] = cx.module("text_model", |cx| self.text.forward(cx, ids));
        let projected = cx.linear("text_projection", &text_pooled, self.projection, false);
        let picture = cx.linear("visual_projection", &pooled, self.projection, false);
        let scale = cx.param("logit_scale", [0; 0]);
        // The contrastive scores are computed and not read.
        let unit = |x: &Tensor| x.div(&x.vector_length());
        let (pictures, texts) = (unit(&picture), unit(&projected));
        let scores = {
            let scores = texts.linear(&pictures, None);
            scale.tensor().exp().pipe(|scale| scores.mul(scale))
        };
        let states = cx.module("vision_model", |cx| cx.layer_norm("post_layernorm", &last));
        let places = last.size(1).saturating_sub(1);
        Seen {
            normed: states,
            places,
            texts,
            held: vec![last, pooled, text_last, text_pooled, pictures, scores],
        }
    }

    fn embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let (n, hidden) = (image.size(0), self.vision.hidden);
        let [own, side] = [self.table, self.image].map(|side| side / self.patch);
        let count = own.saturating_mul(own);
        let class = cx.param("class_embedding", [hidden]);
        let conv = Conv::stride(self.patch);
        let grid = cx.conv2d("patch_embedding", image, hidden, self.patch, conv, false);
        let patches = grid
            .reshape(&[n, hidden, side.saturating_mul(side)])
            .transpose(1, 2);
        drop(grid);
        let class = class.tensor().expand(&[n, 1, hidden]);
        let embedded = Tensor::cat(&class, &[&patches], 1);
        let all = count.saturating_add(1);
        let places = cx.buffer("position_ids", [1, all], DType::I64);
        if self.table == self.image {
            let positions = cx.embedding("position_embedding", &places, all, hidden);
            return embedded.add(&positions);
        }
        // `interpolate_pos_encoding`.
        let table = cx.module("position_embedding", |cx| {
            cx.param("weight", [all, hidden]).tensor().unsqueeze(0)
        });
        let grid = table
            .narrow(1, count)
            .reshape(&[1, own, own, hidden])
            .permute(&[0, 3, 1, 2])
            .interpolate(side, side);
        let rows = grid
            .permute(&[0, 2, 3, 1])
            .reshape(&[1, side.saturating_mul(side), hidden]);
        let positions = Tensor::cat(&table.narrow(1, 1), &[&rows], 1);
        embedded.add(&positions)
    }

    /// `Owlv2ClassPredictionHead.forward`: each patch's similarity with each text, and the patches' embeddings.
    fn classes(&self, cx: &Cx, x: &Tensor, texts: &Tensor, mask: &Tensor) -> [Tensor; 2] {
        let embedded = cx.linear("dense0", x, self.text.tower.hidden, true);
        let unit = |x: &Tensor| {
            let length = x.vector_length().pipe(Tensor::add_scalar);
            x.div(&length)
        };
        let embedded = embedded.pipe(unit);
        let texts = unit(texts);
        let mut logits = embedded.einsum("bpd", &texts, "bqd", "bpq");
        let shift = cx.linear("logit_shift", x, 1, true);
        let scale = {
            let scale = cx.linear("logit_scale", x, 1, true);
            // ELU saves its input, as SiLU does.
            scale.silu().pipe(Tensor::add_scalar)
        };
        logits = logits.add(&shift).pipe(|moved| moved.mul(&scale));
        logits = {
            let padded = mask.constant("eq", &[mask.size(0), 1, mask.size(1)], DType::Bool);
            logits.where_mask(&padded)
        };
        [logits.to(DType::F32), embedded]
    }
}

/// `Owlv2BoxPredictionHead`.
fn box_head(cx: &Cx, name: &'static str, x: &Tensor, out: u64) -> Tensor {
    let width = x.size(-1);
    cx.module(name, |cx| {
        let mut x = cx.linear("dense0", x, width, true);
        x = x.gelu();
        x = cx.linear("dense1", &x, width, true);
        x = x.gelu();
        cx.linear("dense2", &x, out, true)
    })
}
