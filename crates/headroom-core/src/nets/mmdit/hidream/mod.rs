//! HiDream-I1 (diffusers/models/transformers/transformer_hidream_image.py): blocks of image and text, then of one stream, each with texts of
//! another layer of Llama, and experts in the image's feed-forward.

mod attention;
mod experts;

use self::attention::attention;
use self::experts::{Experts, gated};
use crate::nets::diffusion::{
    Pixels, double_and_single_blocks, flow_matching, modulated_norm, mse_output,
    scaled_and_shifted, sinusoids, timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct HiDream {
    pixels: Pixels,
    words: u64,
    channels: u64,
    layers: u64,
    single_layers: u64,
    block: Block,
    context: u64,
    pooled: u64,
    /// Latents that a picture that is not square is padded to.
    most: u64,
}

/// One block of either kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    heads: u64,
    head_dim: u64,
    experts: Experts,
}

/// Latents along the side of a patch, and layers of Llama that are given.
const PATCH: u64 = 2;
const GIVEN: u64 = 32;

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(HiDream {
        pixels: Pixels::still(8, sizes.or("img", 1024)),
        words: sizes.or("ctx_len", 128),
        channels: sizes.or("channels", 16),
        layers: sizes.need("layers")?,
        single_layers: sizes.need("single_layers")?,
        block: Block {
            heads: sizes.need("heads")?.max(1),
            head_dim: sizes.need("head_dim")?,
            experts: Experts {
                count: sizes.or("experts", 4),
                active: sizes.or("topk", 2).max(1),
            },
        },
        context: sizes.or("ctx_dim", 4096),
        pooled: sizes.or("pooled", 2048),
        most: sizes.or("most_tokens", 4096),
    }))
}

impl Net for HiDream {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let grid = self.pixels.latents(data);
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        vec![
            make("latents", &[n, self.channels, grid.height, grid.width]),
            make("encoder_hidden_states_t5", &[n, self.words, self.context]),
            make(
                "encoder_hidden_states_llama3",
                &[GIVEN, n, self.words, self.context],
            ),
            make("pooled_embeds", &[n, self.pooled]),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, words, layers, pooled] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let predicted = self.model(cx, &noised.input, &noised.level, [words, layers, pooled]);
        mse_output(cx, predicted, &noised.target)
    }
}

impl HiDream {
    fn width(&self) -> u64 {
        self.block.width()
    }

    /// `HiDreamImageTransformer2DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        latents: &Tensor,
        level: &Tensor,
        [words, layers, pooled]: [&Tensor; 3],
    ) -> Tensor {
        let (n, width) = (latents.size(0), self.width());
        let timestep = level.mul_scalar();
        let (rows, mask) = self.patches(latents);
        let own = rows.size(1);
        let mut hidden = cx.module("x_embedder", |cx| cx.linear("proj", &rows, width, true));
        drop(rows);
        let time = cx.module("t_embedder", |cx| {
            let waves = sinusoids(&timestep, 256).to(latents.dtype());
            timestep_embedding(cx, "timestep_embedder", &waves, width)
        });
        let pooled = cx.module("p_embedder", |cx| {
            timestep_embedding(cx, "pooled_embedder", pooled, width)
        });
        let temb = time.add(&pooled);
        let texts = self.texts(cx, [words, layers]);
        let all = own.saturating_add(3 * self.words);
        let rotary = self.positions(latents, n, all);
        let (Some(first), Some(last)) = (texts.last(), texts.iter().rev().nth(1)) else {
            return hidden;
        };
        let [outer, single] = double_and_single_blocks(cx, 0);
        let mut text = Tensor::cat(first, &[last], 1);
        let kept = text.size(1);
        for i in 0..self.layers as usize {
            let Some(given) = texts.get(i).filter(|_| !cx.tape.is_over_budget()) else {
                break;
            };
            let both = Tensor::cat(&text, &[given], 1);
            let (block, temb, rotary, mask) =
                (self.block, temb.clone(), rotary.clone(), mask.clone());
            let state = outer.of_block(i as u64, self.layers).layer(
                "double_stream_blocks",
                i,
                vec![hidden.clone(), both],
                move |cx, state| match state {
                    [hidden, text] => cx
                        .module("block", |cx| {
                            block.double(cx, [hidden, text], &temb, &rotary, mask.as_ref())
                        })
                        .to_vec(),
                    _ => Vec::new(),
                },
            );
            let Ok([image, words]) = <[Tensor; 2]>::try_from(state) else {
                return hidden;
            };
            hidden = image;
            text = words.narrow(1, kept);
        }
        hidden = Tensor::cat(&hidden, &[&text], 1);
        drop(text);
        let whole = hidden.size(1);
        let mask = mask.map(|mask| mask.constant("cat", &[n, all], mask.dtype()));
        for i in 0..self.single_layers as usize {
            let given = texts.get(self.layers as usize + i);
            let Some(given) = given.filter(|_| !cx.tape.is_over_budget()) else {
                break;
            };
            let both = Tensor::cat(&hidden, &[given], 1);
            let (block, temb, rotary, mask) =
                (self.block, temb.clone(), rotary.clone(), mask.clone());
            let state = single.of_block(i as u64, self.single_layers).layer(
                "single_stream_blocks",
                i,
                vec![both],
                move |cx, state| {
                    let run = |x: &Tensor| {
                        cx.module("block", |cx| {
                            block.single(cx, x, &temb, &rotary, mask.as_ref())
                        })
                    };
                    state.iter().map(run).collect()
                },
            );
            let Some(out) = state.into_iter().next() else {
                return hidden;
            };
            hidden = out.narrow(1, whole);
        }
        hidden = hidden.narrow(1, own);
        let out = cx.module("final_layer", |cx| {
            let parts = cx.module("adaLN_modulation", |cx| {
                let given = temb.silu();
                cx.linear("1", &given, 2 * width, true).chunk(2, 1)
            });
            let [shift, scale] = parts.as_slice() else {
                return hidden.clone();
            };
            let normed = modulated_norm(&hidden, scale, shift);
            let outputs = PATCH * PATCH * self.channels;
            cx.linear("linear", &normed, outputs, true)
        });
        // In training, patches stay in their order.
        let patches = out
            .reshape(&[n, own, PATCH, PATCH, self.channels])
            .permute(&[0, 4, 1, 2, 3])
            .reshape(&[n, self.channels, own, PATCH * PATCH]);
        let seen = latents.size(2) * latents.size(3) / (PATCH * PATCH);
        patches.narrow(2, seen).reshape(latents.shape())
    }

    /// `patchify`: rows of patches; a picture that is not square is padded, and a mask tells which rows are its own.
    fn patches(&self, latents: &Tensor) -> (Tensor, Option<Tensor>) {
        let (n, c) = (latents.size(0), latents.size(1));
        let [down, across] = [2, 3].map(|axis| latents.size(axis) / PATCH);
        let count = down.saturating_mul(across);
        let grid = latents.reshape(&[n, c, down, PATCH, across, PATCH]);
        if down == across {
            let rows = grid
                .permute(&[0, 2, 4, 3, 5, 1])
                .reshape(&[n, count, PATCH * PATCH * c]);
            return (rows, None);
        }
        let most = self.most.max(count);
        let mask = latents.constant("zeros", &[n, most], latents.dtype());
        let padded = latents.constant("zeros", &[n, c, most, PATCH * PATCH], latents.dtype());
        drop(
            grid.permute(&[0, 1, 2, 4, 3, 5])
                .reshape(&[n, c, count, PATCH * PATCH]),
        );
        let rows = padded
            .permute(&[0, 2, 3, 1])
            .reshape(&[n, most, PATCH * PATCH * c]);
        (rows, Some(mask))
    }

    /// Texts of Llama for each block, and T5's.
    fn texts(&self, cx: &Cx, [words, layers]: [&Tensor; 2]) -> Vec<Tensor> {
        let width = self.width();
        let blocks = self.layers.saturating_add(self.single_layers) as usize;
        let project = |i: usize, given: &Tensor| {
            cx.module("caption_projection", |cx| {
                cx.module(crate::nets::vision::index_name(i), |cx| {
                    cx.linear("linear", given, width, false)
                })
            })
        };
        let mut all: Vec<Tensor> = (0..blocks).map(|i| project(i, &layers.select(0))).collect();
        all.push(project(blocks, words));
        all
    }

    /// `HiDreamImageEmbedND`: rotations as matrices.
    fn positions(&self, latents: &Tensor, n: u64, rows: u64) -> Tensor {
        let half = self.block.head_dim / 2;
        let make = |each: u64, dtype| latents.constant("rope", &[n, rows, each], dtype);
        let _ids = make(3, DType::F32);
        // Three axes: half of the pairs for the first, a quarter for each other.
        let parts: Vec<Tensor> = [half / 2, half / 4, half / 4]
            .into_iter()
            .map(|pairs| {
                let angles = make(pairs, DType::F64);
                let (cos, sin) = (make(pairs, DType::F64), make(pairs, DType::F64));
                let stacked = make(4 * pairs, DType::F64);
                let out = make(4 * pairs, DType::F32);
                drop((angles, cos, sin, stacked));
                out
            })
            .collect();
        let all = latents.constant("cat", &[n, rows, 1, half, 2, 2], DType::F32);
        drop(parts);
        all
    }
}

impl Block {
    fn width(&self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }

    /// So many shifts, scales and gates `[B, 1, width]`.
    fn parts(self, cx: &Cx, temb: &Tensor, count: u64) -> Vec<Tensor> {
        let all = cx.module("adaLN_modulation", |cx| {
            let given = temb.silu();
            cx.linear("1", &given, count * self.width(), true)
        });
        all.unsqueeze(1).chunk(count, -1)
    }

    /// `HiDreamImageTransformerBlock.forward`.
    fn double(
        self,
        cx: &Cx,
        [hidden, text]: [&Tensor; 2],
        temb: &Tensor,
        rotary: &Tensor,
        mask: Option<&Tensor>,
    ) -> [Tensor; 2] {
        let parts = self.parts(cx, temb, 12);
        let [
            shift,
            scale,
            gate,
            ff_shift,
            ff_scale,
            ff_gate,
            t_shift,
            t_scale,
            t_gate,
            tf_shift,
            tf_scale,
            tf_gate,
        ] = &parts[..]
        else {
            return [hidden.clone(), text.clone()];
        };
        let normed = |x: &Tensor, scale: &Tensor, shift: &Tensor| {
            let plain = x.layer_norm(None, None).to(x.dtype());
            scaled_and_shifted(&plain, scale, shift)
        };
        let mut own = normed(hidden, scale, shift);
        let mut other = normed(text, t_scale, t_shift);
        let attended = cx.module("attn1", |cx| {
            attention(cx, self, &own, Some(&other), rotary, mask)
        });
        let [image, words] = attended.as_slice() else {
            return [hidden.clone(), text.clone()];
        };
        let hidden = gate.mul(image).pipe(|more| more.add(hidden));
        let text = t_gate.mul(words).pipe(|more| more.add(text));
        own = normed(&hidden, ff_scale, ff_shift);
        other = normed(&text, tf_scale, tf_shift);
        let more = {
            let out = cx.module("ff_i", |cx| self.experts.run(cx, &own));
            ff_gate.mul(&out)
        };
        let more_text = {
            let out = cx.module("ff_t", |cx| gated(cx, &other, 4 * self.width()));
            tf_gate.mul(&out)
        };
        drop(attended);
        [more.add(&hidden), more_text.add(&text)]
    }

    /// `HiDreamImageSingleTransformerBlock.forward`.
    fn single(
        self,
        cx: &Cx,
        hidden: &Tensor,
        temb: &Tensor,
        rotary: &Tensor,
        mask: Option<&Tensor>,
    ) -> Tensor {
        let parts = self.parts(cx, temb, 6);
        let [shift, scale, gate, ff_shift, ff_scale, ff_gate] = &parts[..] else {
            return hidden.clone();
        };
        let normed = |x: &Tensor, scale: &Tensor, shift: &Tensor| {
            let plain = x.layer_norm(None, None).to(x.dtype());
            scaled_and_shifted(&plain, scale, shift)
        };
        let mut own = normed(hidden, scale, shift);
        let attended = cx.module("attn1", |cx| attention(cx, self, &own, None, rotary, mask));
        let Some(image) = attended.first() else {
            return hidden.clone();
        };
        let hidden = gate.mul(image).pipe(|more| more.add(hidden));
        own = normed(&hidden, ff_scale, ff_shift);
        let more = {
            let out = cx.module("ff_i", |cx| self.experts.run(cx, &own));
            ff_gate.mul(&out)
        };
        drop(attended);
        more.add(&hidden)
    }
}
