//! CLIP: an image and a text tower, and the contrastive loss between them (transformers/models/clip/modeling_clip.py).

use super::attention::{Eager, attend, heads};
use super::inputs::{additive, allowed};
use super::{Cx, ModelError, Net, Output, Sizes};
use crate::scenario::{Attention, Data};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};

/// A stack of pre-norm layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    layers: u64,
    pub(super) hidden: u64,
    pub(super) heads: u64,
    pub(super) ffn: u64,
    /// `x * sigmoid(1.702 x)` of OpenAI's models; LAION's use the true one.
    quick: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Clip {
    vision: Tower,
    text: Tower,
    image: u64,
    patch: u64,
    vocab: u64,
    context: u64,
    projection: u64,
}

/// The text tower alone, as diffusion models condition on it.
#[derive(Clone, Copy, Debug)]
struct ClipText {
    text: Tower,
    vocab: u64,
    context: u64,
    /// The width its output is projected to, where it is.
    projection: Option<u64>,
}

/// A text tower of CLIP's kind by its width, layers and heads.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextTower {
    pub sizes: [u64; 3],
    pub quick: bool,
    pub projection: Option<u64>,
}

/// The states that a diffusion model conditions on.
pub(super) fn text_states(cx: &Cx, ids: &Tensor, it: TextTower) -> Tensor {
    let [hidden, layers, heads] = it.sizes;
    let tower = Tower {
        layers,
        hidden,
        heads,
        ffn: 4 * hidden,
        quick: it.quick,
    };
    let (states, pooled) = cx.within("text_model", |cx| tower.read(cx, ids, 49_408, 77));
    if let Some(width) = it.projection {
        drop(cx.linear("text_projection", &pooled, width, false));
    }
    states
}

impl Tower {
    pub(super) fn new(sizes: &Sizes, names: [&str; 4]) -> Result<Self, ModelError> {
        let [hidden, layers, heads, ffn] = names;
        let hidden = sizes.need(hidden)?;
        Ok(Self {
            layers: sizes.need(layers)?,
            hidden,
            heads: sizes.need(heads)?.max(1),
            ffn: sizes.or(ffn, 4 * hidden),
            quick: !sizes.is_set("gelu"),
        })
    }

    /// The same with the true activation.
    pub(super) fn with_gelu(self) -> Self {
        Self {
            quick: false,
            ..self
        }
    }
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Clip {
        vision: Tower::new(sizes, ["v_hidden", "v_layers", "v_heads", "v_ffn"])?,
        text: Tower::new(sizes, ["t_hidden", "t_layers", "t_heads", "t_ffn"])?,
        image: sizes.or("img", 224),
        patch: sizes.need("patch")?.max(1),
        vocab: sizes.need("vocab")?,
        context: sizes.or("ctx", 77),
        projection: sizes.need("proj")?,
    }))
}

/// The image tower alone, for models that read its hidden states.
pub(super) fn image_tower(sizes: &Sizes) -> Result<Clip, ModelError> {
    let vision = Tower::new(sizes, ["v_hidden", "v_layers", "v_heads", "v_ffn"])?;
    Ok(Clip {
        vision,
        text: vision,
        image: sizes.or("img", 224),
        patch: sizes.need("patch")?.max(1),
        vocab: 0,
        context: 0,
        projection: 0,
    })
}

pub fn text(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(ClipText {
        text: Tower::new(sizes, ["hidden", "layers", "heads", "ffn"])?,
        vocab: sizes.need("vocab")?,
        context: sizes.or("ctx", 77),
        projection: sizes.get("proj"),
    }))
}

impl Net for Clip {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let image = [n, 3, self.image, self.image];
        vec![
            cx.tape.empty("input_ids", [n, self.context], DType::I64),
            cx.tape.empty("pixel_values", image, cx.env.weights),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, image] = batch else {
            return Output::empty(cx);
        };
        let before = cx.tape.made();
        let scale = cx.param("logit_scale", [0; 0]);
        let start = cx.tape.made();
        let (seen, image_features) = {
            let (last, pooled) = cx.within("vision_model", |cx| self.vision(cx, image));
            let projected = cx.linear("visual_projection", &pooled, self.projection, false);
            (last, projected)
        };
        let after = cx.tape.made();
        let (read, text_features) = {
            let (last, pooled) = cx.within("text_model", |cx| {
                self.text.read(cx, ids, self.vocab, self.context)
            });
            // The constructor makes the text's model first, and the scale, which it lists first, last.
            cx.tape.make_now(start, after);
            let projected = cx.linear("text_projection", &pooled, self.projection, false);
            (last, projected)
        };
        cx.tape.make_first(before, start);
        let image = unit(&image_features);
        let text = unit(&text_features);
        let mut logits = text.linear(&image, None);
        logits = scale.tensor().exp().then(|scale| logits.mul(scale));
        let loss = cx.within("loss", |_| {
            let captions = contrastive(&logits);
            let images = contrastive(&logits.transpose(0, 1));
            captions.add(&images).then(Tensor::scale)
        });
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

impl Net for ClipText {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let shape = [data.micro_batch, self.context];
        vec![cx.tape.empty("input_ids", shape, DType::I64)]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids] = batch else {
            return Output::empty(cx);
        };
        let (last, mut pooled) = self.text.read(cx, ids, self.vocab, self.context);
        if let Some(width) = self.projection {
            pooled = cx.linear("text_projection", &pooled, width, false);
        }
        Output {
            loss: pooled.mean_all(),
            held: vec![last, pooled],
        }
    }
}

impl Clip {
    pub(super) fn pixels(&self, cx: &Cx, count: u64) -> Tensor {
        let shape = [count, 3, self.image, self.image];
        cx.tape.empty("pixel_values", shape, cx.env.weights)
    }

    /// How many patches an image has.
    pub(super) fn patches(&self) -> u64 {
        let side = self.image / self.patch;
        side.saturating_mul(side)
    }

    /// `hidden_states[-2]`, `last_hidden_state` and `pooler_output`.
    pub(super) fn last_states(&self, cx: &Cx, image: &Tensor) -> [Tensor; 3] {
        let embedded = cx.within("embeddings", |cx| self.image_embeddings(cx, image));
        let hidden = embedded.then(|embedded| cx.layer_norm("pre_layrnorm", embedded));
        let before = self.vision.layers.saturating_sub(1);
        let tower = self.vision;
        let layer = move |cx: &Cx, state: &[Tensor]| -> Vec<Tensor> {
            let layer = |x| tower.layer(cx, x, &AttentionMask::None);
            state.iter().map(layer).collect()
        };
        let (read, last) = cx.within("encoder", |cx| {
            let read = cx.equal_layers("layers", before, vec![hidden.clone()], layer);
            let last = cx.layer("layers", before as usize, read.clone(), layer);
            (read, last)
        });
        let first = |all: Vec<Tensor>| all.into_iter().next().unwrap_or_else(|| image.clone());
        let (read, last) = (first(read), first(last));
        let pooled = cx.layer_norm("post_layernorm", &last.select(1));
        drop(hidden);
        [read, last, pooled]
    }

    fn vision(&self, cx: &Cx, image: &Tensor) -> (Tensor, Tensor) {
        let mut hidden = cx.within("embeddings", |cx| self.image_embeddings(cx, image));
        hidden = cx.layer_norm("pre_layrnorm", &hidden);
        let last = self.vision.run(cx, &hidden, &AttentionMask::None);
        let pooled = cx.layer_norm("post_layernorm", &last.select(1));
        (last, pooled)
    }

    fn image_embeddings(&self, cx: &Cx, image: &Tensor) -> Tensor {
        let hidden = self.vision.hidden;
        let side = self.image / self.patch;
        let class = cx.param("class_embedding", [hidden]);
        let grid = cx.conv2d(
            "patch_embedding",
            image,
            hidden,
            self.patch,
            Conv::stride(self.patch),
            false,
        );
        let grid = cx.asks_for_gradient(grid);
        let patches = grid
            .reshape(&[image.size(0), hidden, side * side])
            .transpose(1, 2);
        drop(grid);
        let class = class.tensor().expand(&[image.size(0), 1, hidden]);
        let embedded = Tensor::cat(&class, &[&patches], 1);
        let start = cx.tape.made();
        let ids = cx.buffer("position_ids", [1, side * side + 1], DType::I64);
        let made = cx.tape.made();
        let places = cx.embedding("position_embedding", &ids, side * side + 1, hidden);
        cx.tape.make_now(start, made);
        embedded.add(&places)
    }
}

impl Tower {
    /// `CLIPTextModel`: last hidden states, and those of each sample's end-of-text token.
    fn read(self, cx: &Cx, ids: &Tensor, vocab: u64, context: u64) -> (Tensor, Tensor) {
        let embedded = cx.within("embeddings", |cx| {
            let words = cx.input_embedding("token_embedding", ids, vocab, self.hidden);
            let start = cx.tape.made();
            let places = cx.buffer("position_ids", [1, context], DType::I64);
            let made = cx.tape.made();
            let places = cx.embedding("position_embedding", &places, context, self.hidden);
            cx.tape.make_now(start, made);
            words.add(&places)
        });
        let mask = match cx.env.training.attention {
            Attention::Sdpa | Attention::Flash2 => AttentionMask::Causal,
            Attention::Eager => AttentionMask::Given(additive(
                &allowed(ids, None, false),
                ids.size(0),
                embedded.dtype(),
            )),
        };
        // The encoder's output is held to the end.
        let encoded = self.run(cx, &embedded, &mask);
        let last = cx.layer_norm("final_layer_norm", &encoded);
        let rows = ids.constant("arange", &[ids.size(0)], DType::I64);
        let columns = {
            let small = ids.constant("to", ids.shape(), DType::I32);
            let ends = ids.constant("eq", ids.shape(), DType::Bool);
            drop(small);
            let ends = ends.then(|_| ids.constant("to", ids.shape(), DType::I32));
            let found = ids.constant("argmax", &[ids.size(0)], DType::I64);
            drop(ends);
            found
        };
        let pooled = last.picked(&rows, &columns);
        (last, pooled)
    }

    /// `CLIPEncoder`.
    pub(super) fn run(self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        let mask = mask.clone();
        let last = cx.within("encoder", |cx| {
            cx.layers(
                "layers",
                self.layers,
                vec![input.clone()],
                move |cx, state, _| state.iter().map(|x| self.layer(cx, x, &mask)).collect(),
            )
        });
        last.into_iter().next().unwrap_or_else(|| input.clone())
    }

    fn layer(self, cx: &Cx, input: &Tensor, mask: &AttentionMask) -> Tensor {
        // The constructor makes each norm after what follows it, and queries after keys and values.
        let start = cx.tape.made();
        let mut hidden = cx.layer_norm("layer_norm1", input);
        let normed = cx.tape.made();
        let (attended, _weights) = cx.within("self_attn", |cx| self.attention(cx, &hidden, mask));
        cx.tape.make_now(start, normed);
        hidden = attended;
        hidden = input.add(&hidden);
        let residual = hidden.clone();
        let start = cx.tape.made();
        hidden = cx.layer_norm("layer_norm2", &hidden);
        let normed = cx.tape.made();
        hidden = cx.within("mlp", |cx| {
            let mut x = cx.linear("fc1", &hidden, self.ffn, true);
            x = if self.quick { quick_gelu(&x) } else { x.gelu() };
            cx.linear("fc2", &x, self.hidden, true)
        });
        cx.tape.make_now(start, normed);
        residual.add(&hidden)
    }

    fn attention(self, cx: &Cx, x: &Tensor, mask: &AttentionMask) -> (Tensor, Option<Tensor>) {
        let project = |name| cx.linear(name, x, self.hidden, true);
        let start = cx.tape.made();
        let q = project("q_proj");
        let made = cx.tape.made();
        let (k, v) = (project("k_proj"), project("v_proj"));
        cx.tape.make_now(start, made);
        let [q, k, v] = [q, k, v].map(|rows| heads(&rows, self.heads));
        let form = Eager { in_fp32: true };
        let (mut out, weights) = attend(cx, [&q, &k, &v], mask, 0.0, form);
        out = out.reshape(&[x.size(0), x.size(1), self.hidden]);
        (cx.linear("out_proj", &out, self.hidden, true), weights)
    }
}

/// `QuickGELUActivation`.
pub(super) fn quick_gelu(x: &Tensor) -> Tensor {
    let gate = x.scale().then(Tensor::sigmoid);
    x.mul(&gate)
}

/// `x / _get_vector_norm(x)`.
pub(super) fn unit(x: &Tensor) -> Tensor {
    let norm = {
        let squares = x.pow();
        let sum = squares.sum(&[-1]);
        sum.pow()
    };
    x.div(&norm)
}

/// `contrastive_loss`: each row's own place is its class.
fn contrastive(logits: &Tensor) -> Tensor {
    let places = logits.constant("arange", &[logits.size(0)], DType::I64);
    logits.cross_entropy(&places)
}
