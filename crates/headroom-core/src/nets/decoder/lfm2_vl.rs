//! LFM2-VL: pictures in their own shape, or in tiles with a small whole one, each padded to the same number of patches; SigLIP 2,
//! and a projector that reads squares of patches, picture by picture (transformers/models/lfm2_vl/modeling_lfm2_vl.py).

use std::cell::RefCell;

use super::super::siglip::VisionModel;
use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::family::Family;
use super::reading::{self, Reads, States};
use super::{Cache, Decoder, pictures};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// What the processor makes of pictures: tokens of a picture at least and at most, and tiles at most.
const TOKENS: [u64; 2] = [64, 256];
const MOST_TILES: u64 = 10;

#[derive(Debug)]
struct Lfm2Vl {
    tower: VisionModel,
    text: Decoder,
    patch: u64,
    /// Patches along the side of a square that becomes one token.
    merge: u64,
    projected: u64,
    bias: bool,
    normed: bool,
    /// The pooling head is there, and no feature comes from it.
    pools: bool,
    /// Patches along the sides of each tile of a sample.
    tiles: RefCell<Vec<[u64; 2]>>,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Lfm2Vl {
        tower: VisionModel::resized(sizes, sizes.or("patches", 256))?,
        text: Decoder::new(sizes, family)?,
        patch: sizes.need("patch")?.max(1),
        merge: sizes.or("merge", 2).max(1),
        projected: sizes.or("projected", 2560),
        bias: sizes.or("proj_bias", 1) != 0,
        normed: sizes.or("proj_norm", 1) != 0,
        pools: !sizes.is_set("v_headless"),
        tiles: RefCell::default(),
    }))
}

impl Net for Lfm2Vl {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        reading::batch(self, cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        reading::forward(self, cx, batch)
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }
}

impl Reads for Lfm2Vl {
    fn text(&self) -> &Decoder {
        &self.text
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let side = self.side() * self.patch;
        let tiles = data.pictures([side, side]).into_iter();
        let tiles: Vec<[u64; 2]> = tiles.flat_map(|size| self.cut(data, size)).collect();
        let count = data.micro_batch.saturating_mul(tiles.len() as u64);
        self.tiles.replace(tiles);
        let room = self.side() * self.side();
        let pixels = [count, room, 3 * self.patch * self.patch];
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            cx.tape
                .empty("pixel_attention_mask", [count, room], DType::I32),
            cx.tape.empty("spatial_shapes", [count, 2], DType::I64),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &Cache) -> Option<States> {
        let [ids, _labels, pixels, mask, _shapes, ..] = batch else {
            return None;
        };
        let run = |cx: &Cx| self.model(cx, [ids, pixels, mask], batch.get(5), cache);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

impl Lfm2Vl {
    /// Patches along the side of a square picture of the most tokens, as a tile has them.
    fn side(&self) -> u64 {
        TOKENS[1].isqrt() * self.merge
    }

    /// The tiles of a picture: itself, or several and the whole one where it has far more pixels than a tile
    /// (`Lfm2VlImageProcessor`).
    fn cut(&self, data: &Data, size: [u64; 2]) -> Vec<[u64; 2]> {
        const TOLERANCE: u64 = 2;
        let own = self.fitted(size);
        let tile = self.side() * self.patch;
        let large = size[0].saturating_mul(size[1]) > TOLERANCE * tile * tile;
        let count = match data.image_tiles {
            0 if large => Self::grid(size, tile),
            tiles => tiles.clamp(1, MOST_TILES),
        };
        if count <= 1 {
            return vec![own];
        }
        let mut all = vec![[self.side(); 2]; count as usize];
        all.push(own);
        all
    }

    /// Patches along a picture's sides, whole squares of them, scaled to as many tokens as there may be (`smart_resize`).
    fn fitted(&self, size: [u64; 2]) -> [u64; 2] {
        let square = self.patch * self.merge;
        let [height, width] = size.map(|side| side.max(1) as f64);
        let scaled = |ratio: f64, round: fn(f64) -> f64| {
            [height, width].map(|side| (round(side * ratio / square as f64) as u64).max(1))
        };
        let unit = (square * square) as f64;
        let plain = scaled(1.0, f64::round);
        let tokens = plain[0] * plain[1];
        let to = |tokens: u64| (tokens as f64 * unit / (height * width)).sqrt();
        let fitted = if tokens > TOKENS[1] {
            scaled(to(TOKENS[1]), f64::floor)
        } else if tokens < TOKENS[0] {
            scaled(to(TOKENS[0]), f64::ceil)
        } else {
            plain
        };
        fitted.map(|side| side * self.merge)
    }

    /// How many tiles the grid has whose shape is nearest to the picture's.
    fn grid([height, width]: [u64; 2], tile: u64) -> u64 {
        let shape = width.max(1) as f64 / height.max(1) as f64;
        let area = (width * height) as f64;
        let mut grids: Vec<[u64; 2]> = (1..=MOST_TILES)
            .flat_map(|columns| (1..=MOST_TILES).map(move |rows| [columns, rows]))
            .filter(|[columns, rows]| (2..=MOST_TILES).contains(&(columns * rows)))
            .collect();
        grids.sort_by_key(|[columns, rows]| columns * rows);
        let (mut found, mut least) = (2, f64::INFINITY);
        for [columns, rows] in grids {
            let off = (shape - columns as f64 / rows as f64).abs();
            let tiles = columns * rows;
            let fills = area > 0.5 * (tile * tile * tiles) as f64;
            if off < least || off <= least && fills {
                (found, least) = (tiles, off);
            }
        }
        found
    }

    fn model(
        &self,
        cx: &Cx,
        [ids, pixels, mask]: [&Tensor; 3],
        padding: Option<&Tensor>,
        cache: &Cache,
    ) -> (Tensor, Option<Tensor>) {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let tiles = self.tiles.borrow().clone();
        let seen = (!tiles.is_empty() || cx.tape.declaring()).then(|| {
            let none = [[self.merge; 2]];
            let tiles = if tiles.is_empty() { &none } else { &tiles[..] };
            self.seen(cx, [pixels, mask], tiles)
        });
        cx.tape.construct_here(before, after);
        let features = seen.as_ref().and_then(|seen| {
            let (first, rest) = seen.parts.split_first()?;
            let rest: Vec<&Tensor> = rest.iter().collect();
            // `torch.cat` of one tensor copies it too.
            let all = if rest.is_empty() {
                first.cat_list()
            } else {
                Tensor::cat(first, &rest, 0)
            };
            Some(all.to(embeddings.dtype()))
        });
        let masks = features.as_ref().map(|features| {
            let masks = pictures::placeholders(ids, false);
            embeddings = embeddings.masked_scatter(&masks[0], features);
            masks
        });
        let hidden = cx.module("language_model", |cx| {
            self.text
                .padded(cx, embeddings.clone(), ids, padding, cache)
        });
        drop((seen, masks));
        (hidden, features)
    }

    /// The tiles of a sample are those of each.
    fn seen(&self, cx: &Cx, [pixels, mask]: [&Tensor; 2], tiles: &[[u64; 2]]) -> Seen {
        let last = cx.module("vision_tower", |cx| {
            let last = self.tower.padded_states(cx, pixels, mask, tiles);
            if self.pools {
                drop(cx.module("head", |cx| self.tower.pooling_head(cx, &last)));
            }
            last
        });
        let width = last.size(2);
        let project = |[height, width_of]: &[u64; 2]| {
            let own = last.select(0).narrow(0, height * width_of);
            let grid = own.view(&[1, *height, *width_of, width]);
            cx.module("multi_modal_projector", |cx| self.project(cx, &grid))
        };
        let count = usize::try_from(last.size(0)).unwrap_or(usize::MAX);
        let parts = tiles
            .iter()
            .cycle()
            .take(count)
            .take_while(|_| !cx.tape.is_over_budget())
            .map(project)
            .collect();
        Seen { last, parts }
    }

    /// `Lfm2VlMultiModalProjector.forward` of one picture `[1, h, w, D]`: a row for each square.
    fn project(&self, cx: &Cx, grid: &Tensor) -> Tensor {
        let [height, width, channels] = [1, 2, 3].map(|at| grid.size(at));
        let (down, across) = (height / self.merge, width / self.merge);
        let mut x = grid.reshape(&[1, height, across, channels * self.merge]);
        x = x.permute(&[0, 2, 1, 3]);
        let wide = channels * self.merge * self.merge;
        x = x.reshape(&[1, across, down, wide]);
        x = x.permute(&[0, 2, 1, 3]);
        if self.normed {
            x = cx.layer_norm("layer_norm", &x);
        }
        let mut hidden = cx.linear("linear_1", &x, self.projected, self.bias);
        hidden = hidden.gelu();
        hidden = cx.linear("linear_2", &hidden, self.text.hidden, self.bias);
        hidden.reshape(&[down * across, self.text.hidden])
    }
}

/// What the vision tower and the projector make of pictures.
struct Seen {
    #[expect(dead_code, reason = "the output holds it until the model returns")]
    last: Tensor,
    parts: Vec<Tensor>,
}
