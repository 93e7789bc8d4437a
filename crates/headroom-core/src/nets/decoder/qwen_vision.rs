//! The image tower of Qwen2-VL and Qwen2.5-VL: patches of all images in one row, each image or window attended by itself.

use super::super::attention::{Eager, attend};
use super::super::clip::quick_gelu;
use super::super::{Cx, ModelError, Sizes};
use super::rope;
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Attention;

/// Beyond so many, images or windows of one size are attended in one batch: the same bytes in fewer pieces.
const MOST_PIECES: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct VisionTransformer {
    hidden: u64,
    layers: u64,
    heads: u64,
    ffn: u64,
    /// The output width.
    out: u64,
    patch: u64,
    /// How many frames a patch has.
    frames: u64,
    /// Patches along the side of a square that becomes one token.
    merge: u64,
    /// Patches along an image's side.
    side: u64,
    /// Qwen2.5: patches along a window's side, and the layers with global attention.
    window: Option<(u64, Vec<u64>)>,
}

impl VisionTransformer {
    pub(crate) fn new(sizes: &Sizes, out: u64, windowed: bool) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        let patch = sizes.need("patch")?.max(1);
        let merge = sizes.or("merge", 2).max(1);
        let side = sizes.or("img", 448) / patch / merge * merge;
        let window = if windowed {
            let window = sizes.or("v_window", 112) / patch / merge * merge;
            Some((window.max(merge), sizes.list("v_global_layers")?.to_vec()))
        } else {
            None
        };
        Ok(Self {
            hidden,
            layers: sizes.need("v_layers")?,
            heads: sizes.need("v_heads")?.max(1),
            ffn: sizes.or("v_ffn", 4 * hidden),
            out,
            patch,
            frames: sizes.or("temporal", 2).max(1),
            merge,
            side: side.max(merge),
            window,
        })
    }

    /// `pixel_values`: a row for each patch.
    pub(crate) fn pixels(&self, cx: &Cx, images: u64) -> Tensor {
        let values = 3 * self.frames * self.patch * self.patch;
        let shape = [images * self.side * self.side, values];
        cx.tape.empty("pixel_values", shape, cx.env.weights)
    }

    /// The last hidden states, and what the merger makes of them.
    pub(crate) fn see(&self, cx: &Cx, pixels: &Tensor, images: u64) -> (Tensor, Tensor) {
        let places = self.places(cx, images);
        let bounds = pixels.constant("cu_seqlens", &[images + 1], DType::I32);
        let windows = self.windows(images);
        let window_bounds = self.window.is_some().then(|| {
            let count = windows.len() as u64;
            pixels.constant("cu_window_seqlens", &[count + 1], DType::I32)
        });
        let mut hidden = cx.module("patch_embed", |cx| self.patches(cx, pixels));
        hidden = self.by_windows(&hidden);
        let mut tables = cx.module("rotary_pos_emb", |cx| self.tables(cx, &places));
        if self.window.is_some() {
            tables = tables.each_ref().map(|table| self.by_windows(table));
        }
        let images = vec![self.side * self.side; (MOST_PIECES + 1).min(images as usize)];
        let layer = |state: Vec<Tensor>, i: usize| {
            let whole = match &self.window {
                Some((_, whole)) => whole.contains(&(i as u64)),
                None => true,
            };
            let block = VisionBlock {
                tower: self.clone(),
                tables: tables.clone(),
                pieces: if whole { &images } else { &windows }.clone(),
            };
            cx.layer("blocks", i, state, move |cx, state| {
                state.iter().map(|x| block.run(cx, x)).collect()
            })
        };
        let state = cx.periodic_layers(self.layers, self.period(), vec![hidden], layer);
        let Some(hidden) = state.into_iter().next() else {
            return (pixels.clone(), pixels.clone());
        };
        let mut merged = cx.module("merger", |cx| self.merged(cx, &hidden));
        if self.window.is_some() {
            merged = merged.rows_by_list(merged.size(0));
        }
        drop((places, bounds, window_bounds, tables));
        (hidden, merged)
    }

    /// After how many layers they repeat.
    fn period(&self) -> u64 {
        let Some((_, whole)) = &self.window else {
            return 1;
        };
        let period = whole.first().map_or(1, |first| first + 1);
        let regular = (0..self.layers).all(|i| whole.contains(&i) == (i % period + 1 == period));
        if regular { period } else { self.layers }
    }

    /// `get_vision_position_ids`: the row and column of each patch, image by image.
    fn places(&self, cx: &Cx, images: u64) -> Tensor {
        let make = |shape: &[u64]| cx.tape.empty("places", shape, DType::I64);
        let (side, count) = (self.side, self.side * self.side);
        if images as usize > MOST_PIECES {
            return make(&[images * count, 2]);
        }
        let merge = make(&[1]);
        let mut kept = Vec::new();
        let mut last = None;
        for _ in 0..images {
            let mut rows = make(&[side]);
            let mut columns = make(&[side]);
            drop(last.take());
            rows = {
                let flat = make(&[count]);
                drop(rows);
                flat
            };
            columns = {
                let flat = make(&[count]);
                drop(columns);
                flat
            };
            let both = make(&[count, 2]);
            kept.push(make(&[count, 2]));
            drop(both);
            last = Some((rows, columns));
        }
        let all = make(&[images * count, 2]);
        drop((merge, kept, last));
        all
    }

    /// How many patches each window has, where images are cut into them.
    fn windows(&self, images: u64) -> Vec<u64> {
        let Some((window, _)) = self.window else {
            return Vec::new();
        };
        let along = self.side.div_ceil(window);
        let total = images.saturating_mul(along).saturating_mul(along);
        if total as usize > MOST_PIECES * MOST_PIECES {
            // As many complete windows as fit: only their total and the size of one matter.
            return vec![window * window; MOST_PIECES + 1];
        }
        let cut = |i: u64| window.min(self.side - i * window);
        let mut all = Vec::new();
        for _ in 0..images {
            for row in 0..along {
                all.extend((0..along).map(|column| cut(row) * cut(column)));
            }
        }
        all
    }

    fn patches(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        let rows = pixels.size(0);
        let kernel = [self.frames, self.patch, self.patch];
        let cubes = pixels.view(&[rows, 3, self.frames, self.patch, self.patch]);
        let size = Conv::stride(self.patch);
        let found = cx.convolution("proj", &cubes, self.hidden, &kernel, size, false);
        cx.asks_for_gradient(found.view(&[rows, self.hidden]))
    }

    /// `permute_input_for_window_attn`; the new order is on the host.
    fn by_windows(&self, x: &Tensor) -> Tensor {
        if self.window.is_none() {
            return x.clone();
        }
        let (rows, width, square) = (x.size(0), x.size(1), self.merge * self.merge);
        let grouped = x.view(&[rows / square, square, width]);
        grouped.rows_by_list(rows / square).view(&[rows, width])
    }

    /// Cosines and sines `[N, D]` in fp32.
    fn tables(&self, cx: &Cx, places: &Tensor) -> [Tensor; 2] {
        cx.tape.no_grad(|| {
            let quarter = self.hidden / self.heads / 4;
            let frequencies = cx.buffer("inv_freq", [quarter], DType::F32);
            cx.buffer("original_inv_freq", [quarter], DType::F32);
            let angles = places
                .unsqueeze(-1)
                .to(DType::F32)
                .pipe(|places| places.mul(&frequencies));
            let cos = angles.cos().pipe(Tensor::mul_scalar);
            let sin = angles.sin().pipe(Tensor::mul_scalar);
            [cos, sin].map(|table| {
                let (rows, columns) = (table.select(1), table.select(1));
                let both = Tensor::cat(&rows, &[&columns], -1);
                Tensor::cat(&both, &[&both], -1)
            })
        })
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        match self.window {
            Some(_) => cx.rms_norm(name, x),
            None => cx.layer_norm(name, x),
        }
    }

    /// `PatchMerger`: squares of patches become tokens.
    fn merged(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let width = self.hidden * self.merge * self.merge;
        let squares = self
            .norm(cx, "ln_q", x)
            .pipe(|normed| normed.view(&[x.numel() / width.max(1), width]));
        cx.module("mlp", |cx| {
            let mut hidden = cx.linear("0", &squares, width, true);
            hidden = hidden.gelu();
            cx.linear("2", &hidden, self.out, true)
        })
    }
}

/// One block with what it is given.
struct VisionBlock {
    tower: VisionTransformer,
    tables: [Tensor; 2],
    /// How many patches each part has that is attended by itself.
    pieces: Vec<u64>,
}

impl VisionBlock {
    fn run(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let tower = &self.tower;
        let normed = tower.norm(cx, "norm1", input);
        let start = cx.tape.construction_point();
        let attended = cx.module("attn", |cx| {
            normed.pipe(|normed| self.attention(cx, normed))
        });
        let made = cx.tape.construction_point();
        let hidden = attended.pipe(|attended| input.add(attended));
        let normed = tower.norm(cx, "norm2", &hidden);
        // The constructor makes both norms first.
        cx.tape.construct_here(start, made);
        let fed = cx.module("mlp", |cx| normed.pipe(|normed| self.feed(cx, normed)));
        fed.pipe(|fed| hidden.add(fed))
    }

    fn feed(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let VisionTransformer { hidden, ffn, .. } = self.tower;
        if self.tower.window.is_some() {
            let product = {
                let gate = cx.linear("gate_proj", x, ffn, true).pipe(Tensor::silu);
                let up = cx.linear("up_proj", x, ffn, true);
                gate.mul(&up)
            };
            return cx.linear("down_proj", &product, hidden, true);
        }
        let inner = cx.linear("fc1", x, ffn, true).pipe(quick_gelu);
        cx.linear("fc2", &inner, hidden, true)
    }

    fn attention(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let VisionTransformer { hidden, heads, .. } = self.tower;
        let (rows, d) = (x.size(0), hidden / heads);
        let parts = cx
            .linear("qkv", x, 3 * hidden, true)
            .view(&[rows, 3, heads, d])
            .permute(&[1, 0, 2, 3])
            .unbind();
        let [q, k, v]: [Tensor; 3] = match parts.try_into() {
            Ok(parts) => parts,
            Err(_) => return x.clone(),
        };
        let [rotated_q, rotated_k] = rope::rotated_rows([&q, &k], &self.tables);
        drop((q, k));
        let lengths = x.constant("sub", &[self.pieces.len() as u64], DType::I32);
        let all = [rotated_q, rotated_k, v];
        let (mut out, parts) = self.attended(cx, &all);
        out = out.reshape(&[rows, hidden]).contiguous();
        out = cx.linear("proj", &out, hidden, true);
        drop((lengths, all, parts));
        out
    }

    /// Queries, keys and values `[N, H, D]`, each part by itself: `[1, N, H, D]`, and what was joined to that.
    fn attended(&self, cx: &Cx, all: &[Tensor; 3]) -> (Tensor, Vec<Tensor>) {
        let form = Eager { in_fp32: true };
        let run =
            |[q, k, v]: [&Tensor; 3]| attend(cx, [q, k, v], &AttentionMask::None, 0.0, form).0;
        let [whole, ..] = all;
        let [rows, heads, d] = [0, 1, 2].map(|at| whole.size(at));
        let first = self.pieces.first().copied().unwrap_or(rows).max(1);
        // Flash attention takes the bounds instead.
        let flash = cx.env.training.attention == Attention::Flash2;
        if flash || self.pieces.len() > MOST_PIECES {
            let piece = if !flash && rows.is_multiple_of(first) {
                first
            } else {
                rows
            };
            let batch = [rows / piece.max(1), piece, heads, d];
            let [q, k, v] = all.each_ref().map(|t| t.view(&batch).transpose(1, 2));
            return (run([&q, &k, &v]), Vec::new());
        }
        let [q, k, v] = all
            .each_ref()
            .map(|t| t.transpose(0, 1).unsqueeze(0).split(&self.pieces, 2));
        let parts = q.iter().zip(&k).zip(&v);
        let parts: Vec<Tensor> = parts.map(|((q, k), v)| run([q, k, v])).collect();
        let joined = match parts.split_first() {
            Some((first, rest)) => {
                let rest: Vec<&Tensor> = rest.iter().collect();
                Tensor::cat(first, &rest, 1)
            }
            None => whole.clone(),
        };
        (joined, parts)
    }
}
