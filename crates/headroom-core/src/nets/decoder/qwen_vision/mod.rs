//! The tower of Qwen2-VL, Qwen2.5-VL and Qwen3-VL: patches of all pictures in one row, each picture or window attended by itself
//! (`Qwen2VisionTransformerPretrainedModel` and its successors).

mod block;
mod by_picture;
mod joined;
mod merger;
mod places;

use super::super::{Cx, ModelError, Sizes};
use super::layer_set::LayerSet;
use super::pictures::{Batch, total};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use block::VisionBlock;
use headroom_scenario::Data;

/// Beyond so many, pictures or windows of one size are attended in one batch: the same bytes in fewer pieces.
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
    /// Pixels along the side of a picture, where none is given.
    image: u64,
    kind: Kind,
    /// The names of the products of queries, keys, values and output, where they are not `qkv` and `proj`.
    products: Option<[&'static str; 4]>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Qwen2-VL.
    Plain,
    /// Qwen2.5-VL: patches along a window's side, and the layers with global attention.
    Windowed { side: u64, whole: Vec<u64> },
    /// Qwen3-VL: a learned table of so many places, and layers whose states go to the first layers of the language model.
    Stacked { places: u64, layers: Vec<u64> },
    /// GLM-4.1V: a learned table of so many places, and how wide the MLP is behind the layers.
    Joined { places: u64, context: u64 },
    /// PaddleOCR-VL: a learned table of so many places, and products of their own for queries, keys and values.
    ByPicture { places: u64 },
}

/// What the tower makes of pictures.
pub(super) struct TowerOutput {
    #[expect(dead_code, reason = "the output holds them until the model returns")]
    pub states: Tensor,
    pub merged: Tensor,
    /// The states of some layers, merged too.
    pub stacked: Vec<Tensor>,
}

impl Kind {
    pub(super) fn windowed(sizes: &Sizes) -> Result<Self, ModelError> {
        let (patch, merge) = (sizes.need("patch")?.max(1), sizes.or("merge", 2).max(1));
        let side = sizes.or("v_window", 112) / patch / merge * merge;
        Ok(Self::Windowed {
            side: side.max(merge),
            whole: LayerSet::list(sizes, "v_global_layers", sizes.need("v_layers")?)?,
        })
    }

    pub(super) fn stacked(sizes: &Sizes) -> Result<Self, ModelError> {
        Ok(Self::Stacked {
            places: sizes.or("v_places", 2304),
            layers: LayerSet::list(sizes, "v_features", sizes.need("v_layers")?)?,
        })
    }

    pub(super) fn by_picture(sizes: &Sizes) -> Result<Self, ModelError> {
        let side = sizes.or("img", 384) / sizes.need("patch")?.max(1);
        Ok(Self::ByPicture {
            places: (side * side).max(1),
        })
    }

    pub(super) fn joined(sizes: &Sizes) -> Result<Self, ModelError> {
        let side = sizes.or("img", 336) / sizes.need("patch")?.max(1);
        Ok(Self::Joined {
            places: (side * side).max(1),
            context: sizes.need("v_ffn")?,
        })
    }

    /// Qwen3.5: the tower of Qwen3-VL, none of whose states go to the language model.
    pub(super) fn placed(sizes: &Sizes) -> Self {
        Self::Stacked {
            places: sizes.or("v_places", 2304),
            layers: Vec::new(),
        }
    }
}

impl VisionTransformer {
    pub(super) fn new(sizes: &Sizes, out: u64, kind: Kind) -> Result<Self, ModelError> {
        let hidden = sizes.need("v_hidden")?;
        let layers = sizes.need("v_layers")?;
        if let Kind::Stacked { layers: taken, .. } = &kind
            && taken.iter().any(|layer| *layer >= layers)
        {
            return Err(ModelError::MismatchedLists {
                names: "v_features",
                expected: "layers below v_layers",
            });
        }
        Ok(Self {
            hidden,
            layers,
            heads: sizes.need("v_heads")?.max(1),
            ffn: match kind {
                Kind::Joined { .. } => out,
                _ => sizes.or("v_ffn", 4 * hidden),
            },
            out,
            patch: sizes.need("patch")?.max(1),
            frames: sizes.or("temporal", 2).max(1),
            merge: sizes.or("merge", 2).max(1),
            image: sizes.or("img", 448),
            products: match kind {
                Kind::ByPicture { .. } => Some(["q_proj", "k_proj", "v_proj", "out_proj"]),
                _ => None,
            },
            kind,
        })
    }

    /// With products of their own for queries, keys and values, of these names.
    pub(super) fn with_products(self, names: [&'static str; 4]) -> Self {
        Self {
            products: Some(names),
            ..self
        }
    }

    /// The patches along the height and width of each picture of a sample: sides are rounded to squares of patches
    /// (`smart_resize` of the processor, within its limits).
    pub(super) fn grids(&self, data: &Data) -> Vec<[u64; 2]> {
        let square = self.patch * self.merge;
        let own = self.image / square * square;
        let pictures = data.pictures([own, own]);
        let along = |pixels: u64| ((pixels + square / 2) / square).max(1) * self.merge;
        pictures.iter().map(|sides| sides.map(along)).collect()
    }

    /// `pixel_values`: a row for each patch.
    pub(super) fn pixels(&self, cx: &Cx, samples: u64, grids: &[[u64; 2]]) -> Tensor {
        let values = 3 * self.frames * self.patch * self.patch;
        let rows = samples.saturating_mul(total(grids));
        cx.tape
            .empty("pixel_values", [rows, values], cx.env.weights)
    }

    /// The last hidden states, and what the mergers make of them and of some states before.
    pub(super) fn see(&self, cx: &Cx, pixels: &Tensor, grids: &Batch) -> TowerOutput {
        let interpolated = match self.kind {
            Kind::Stacked { .. } => Some(places::interpolation(pixels)),
            _ => None,
        };
        let places = Self::places(cx, grids);
        let images = grids.count();
        let bounds = pixels.constant("cu_seqlens", &[images + 1], DType::I32);
        let windows = self.windows(grids);
        let is_windowed = matches!(self.kind, Kind::Windowed { .. });
        let window_bounds = is_windowed.then(|| {
            let count = windows.len() as u64;
            pixels.constant("cu_window_seqlens", &[count + 1], DType::I32)
        });
        let mut hidden = cx.module("patch_embed", |cx| self.patches(cx, pixels));
        if let (Kind::Stacked { places, .. }, Some(taps)) = (&self.kind, &interpolated) {
            hidden = self.with_places(cx, hidden, *places, taps);
        }
        if matches!(self.kind, Kind::Joined { .. }) {
            hidden = cx.rms_norm("post_conv_layernorm", &hidden);
        }
        if let Kind::ByPicture { places } = self.kind {
            hidden = self.with_places(cx, hidden, places, &places::interpolation(pixels));
        }
        hidden = self.by_windows(&hidden);
        let mut tables = cx.module("rotary_pos_emb", |cx| self.tables(cx, &places));
        if is_windowed {
            tables = tables.each_ref().map(|table| self.by_windows(table));
        }
        if let Kind::Joined { places: rows, .. } = self.kind {
            hidden = self.sampled(cx, &hidden, rows, images);
        }
        let pictures = pieces(grids);
        let layer = |state: Vec<Tensor>, i: usize| {
            let whole = match &self.kind {
                Kind::Windowed { whole, .. } => whole.contains(&(i as u64)),
                _ => true,
            };
            let block = VisionBlock {
                tower: self.clone(),
                tables: tables.clone(),
                pieces: if whole { &pictures } else { &windows }.clone(),
            };
            cx.layer("blocks", i, state, move |cx, state| {
                state.iter().map(|x| block.run(cx, x)).collect()
            })
        };
        let mut state = vec![hidden];
        let mut stacked = Vec::new();
        let mut from = 0;
        for (at, last) in self.taken().into_iter().enumerate() {
            let count = last + 1 - from;
            state = cx.periodic_layers(count, 1, state, |state, i| layer(state, from as usize + i));
            from = last + 1;
            let features = state.first().map(|states| {
                let run = |cx: &Cx| self.merged_stacked(cx, states, true);
                cx.list_item("deepstack_merger_list", at, run)
            });
            stacked.extend(features);
        }
        let rest = self.layers - from;
        let state = cx.periodic_layers(rest, self.period(), state, |state, i| {
            layer(state, from as usize + i)
        });
        let mut states = state.into_iter().next().unwrap_or_else(|| pixels.clone());
        if matches!(self.kind, Kind::Joined { .. }) {
            states = self.joined(cx, &states);
        }
        let by_picture = matches!(self.kind, Kind::ByPicture { .. });
        if by_picture {
            states = cx.layer_norm("post_layernorm", &states);
        }
        let mut merged = cx.module("merger", |cx| {
            if by_picture {
                self.merged_by_picture(cx, &states, grids)
            } else {
                self.merged(cx, &states)
            }
        });
        if is_windowed {
            merged = merged.rows_by_list(merged.size(0));
        }
        drop((places, bounds, window_bounds, tables, interpolated));
        TowerOutput {
            states,
            merged,
            stacked,
        }
    }

    /// The layers whose states are taken, in ascending order.
    fn taken(&self) -> Vec<u64> {
        let Kind::Stacked { layers, .. } = &self.kind else {
            return Vec::new();
        };
        let mut taken = layers.clone();
        taken.sort_unstable();
        taken.dedup();
        taken
    }

    /// After how many layers they repeat.
    fn period(&self) -> u64 {
        let Kind::Windowed { whole, .. } = &self.kind else {
            return 1;
        };
        let period = whole.first().map_or(1, |first| first + 1);
        let regular = (0..self.layers).all(|i| whole.contains(&i) == (i % period + 1 == period));
        if regular { period } else { self.layers }
    }

    fn patches(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        if let Kind::ByPicture { .. } = self.kind {
            return self.flat_patches(cx, pixels);
        }
        let rows = pixels.size(0);
        let kernel = [self.frames, self.patch, self.patch];
        let cubes = pixels.view(&[rows, 3, self.frames, self.patch, self.patch]);
        let size = Conv::stride(self.patch);
        let bias = matches!(self.kind, Kind::Stacked { .. } | Kind::Joined { .. });
        let found = cx.convolution("proj", &cubes, self.hidden, &kernel, size, bias);
        let rows = found.view(&[rows, self.hidden]);
        match self.kind {
            // Its class names no input embeddings, so no hook asks for their gradient.
            Kind::Stacked { .. } | Kind::Joined { .. } | Kind::ByPicture { .. } => rows,
            Kind::Plain | Kind::Windowed { .. } => cx.asks_for_gradient(rows),
        }
    }

    fn norm(&self, cx: &Cx, name: &'static str, x: &Tensor) -> Tensor {
        match self.kind {
            Kind::Windowed { .. } | Kind::Joined { .. } => cx.rms_norm(name, x),
            Kind::Plain | Kind::Stacked { .. } | Kind::ByPicture { .. } => cx.layer_norm(name, x),
        }
    }
}

/// How many patches each picture has; of more than are attended one by one, as many as say so.
fn pieces(grids: &Batch) -> Vec<u64> {
    let kept = grids.iter().take(MOST_PIECES + 1);
    kept.map(|[rows, columns]| rows * columns).collect()
}
