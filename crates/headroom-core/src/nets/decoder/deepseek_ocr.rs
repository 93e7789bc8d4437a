//! DeepSeek-OCR 2: SAM's encoder, a second one of Qwen2's layers whose learned queries become the tokens, and a DeepSeek mixture
//! (transformers/models/deepseek_ocr2/modeling_deepseek_ocr2.py). A picture is seen whole and, if it is large, in tiles.

use std::cell::RefCell;

use super::super::masks::blockwise_mask;
use super::super::sam::vision::Encoder;
use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::families::qwen::QWEN2;
use super::family::Family;
use super::reading::{self, Reads, States};
use super::{Cache, Decoder, ModelInputs};
use crate::tape::ops::{AttentionMask, Conv};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// Pixels along the side of a tile, and tiles of a picture at most.
const TILE: u64 = 768;
const MOST_TILES: u64 = 6;
/// Learned queries of a tile and of a whole picture.
const QUERIES: [u64; 2] = [144, 256];

#[derive(Debug)]
struct DeepseekOcr {
    sam: Encoder,
    /// Channels between the convolutions behind SAM's neck.
    down: u64,
    eye: Decoder,
    text: Decoder,
    /// The tiles of each picture of a sample, besides the whole.
    tiles: RefCell<Vec<u64>>,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let renamed = |names: &[(&str, &str)]| {
        let mut own = sizes.clone();
        for (name, from) in names {
            own.set(name, sizes.need(from)?);
        }
        Ok(own)
    };
    let sam = renamed(&[
        ("layers", "v_layers"),
        ("hidden", "v_hidden"),
        ("heads", "v_heads"),
        ("ffn", "v_ffn"),
        ("window", "v_window"),
    ])?;
    let mut eye = Sizes::default();
    for (name, from) in [
        ("layers", "e_layers"),
        ("hidden", "e_hidden"),
        ("heads", "e_heads"),
        ("kv", "e_kv"),
        ("ffn", "e_ffn"),
        ("vocab", "vocab"),
    ] {
        eye.set(name, sizes.need(from)?);
    }
    Ok(Box::new(DeepseekOcr {
        sam: Encoder::new(&sam)?,
        down: sizes.or("down", 512),
        eye: Decoder::new(&eye, QWEN2)?,
        text: Decoder::new(sizes, family)?,
        tiles: RefCell::default(),
    }))
}

impl Net for DeepseekOcr {
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

impl Reads for DeepseekOcr {
    fn text(&self) -> &Decoder {
        &self.text
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let whole = self.sam.image;
        let pictures = data.pictures([TILE, TILE]);
        let tiles: Vec<u64> = pictures.into_iter().map(|size| cut(data, size)).collect();
        let each = tiles.iter().copied().fold(0, u64::saturating_add);
        let n = data.micro_batch;
        let pixels = |name, count: u64, side: u64| {
            let shape = [n.saturating_mul(count), 3, side, side];
            cx.tape.empty(name, shape, cx.env.weights)
        };
        let all = vec![
            pixels("pixel_values", tiles.len() as u64, whole),
            pixels("pixel_values_local", each, TILE),
        ];
        self.tiles.replace(tiles);
        all
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &Cache) -> Option<States> {
        let [ids, _labels, whole, local, ..] = batch else {
            return None;
        };
        let tiles = self.tiles.borrow().clone();
        let see = |cx: &Cx| self.seen(cx, [whole, local], &tiles);
        let sees = !tiles.is_empty() || cx.tape.declaring();
        let see = sees.then_some(&see as &dyn Fn(&Cx) -> (Vec<Tensor>, Tensor));
        let run = |cx: &Cx| (self.text).with_features(cx, ids, batch.get(4), cache, see);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

/// The tiles of a picture: none if it is as small as one, else those of the grid nearest to its shape.
fn cut(data: &Data, [height, width]: [u64; 2]) -> u64 {
    if data.image_tiles > 0 {
        return (data.image_tiles - 1).min(MOST_TILES);
    }
    if height.max(width) <= TILE {
        return 0;
    }
    let shape = width as f64 / height.max(1) as f64;
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
        let fills = area > 0.5 * (TILE * TILE * tiles) as f64;
        if off < least || off <= least && fills {
            (found, least) = (tiles, off);
        }
    }
    found
}

impl DeepseekOcr {
    /// `get_image_features`: whole pictures, then all tiles; the tokens of each picture with a separator, all joined.
    fn seen(&self, cx: &Cx, [whole, local]: [&Tensor; 2], tiles: &[u64]) -> (Vec<Tensor>, Tensor) {
        let width = self.text.hidden;
        let look = |pixels: &Tensor| {
            let last = cx.module("vision_tower", |cx| self.look(cx, pixels));
            let projected = cx.linear("multi_modal_projector", &last, width, true);
            [last, projected]
        };
        let [last, globals] = look(whole);
        let parts = (local.size(0) > 0).then(|| look(local));
        let separator = cx.param("view_separator", [width]).tensor().unsqueeze(0);
        let count = usize::try_from(whole.size(0)).unwrap_or(usize::MAX);
        let each = tiles.iter().cycle().take(count);
        let features = each.take_while(|_| !cx.tape.is_over_budget()).map(|tiles| {
            let own = globals.select(0);
            let near = parts.as_ref().filter(|_| *tiles > 0).map(|[_, projected]| {
                let near = projected.narrow(0, *tiles);
                near.reshape(&[*tiles * near.size(1), width])
            });
            match &near {
                Some(near) => Tensor::cat(near, &[&own, &separator], 0),
                None => Tensor::cat(&own, &[&separator], 0),
            }
        });
        let features: Vec<Tensor> = features.collect();
        let rest: Vec<&Tensor> = features.iter().skip(1).collect();
        let all = match features.first() {
            // `torch.cat` of one tensor copies it too.
            Some(first) if rest.is_empty() => first.cat_list(),
            Some(first) => Tensor::cat(first, &rest, 0),
            None => separator.clone(),
        };
        let mut kept = vec![last];
        kept.extend(parts.map(|[last, _]| last));
        kept.extend(features);
        (kept, all)
    }

    /// `DeepseekOcr2VisionModel.forward`.
    fn look(&self, cx: &Cx, pixels: &Tensor) -> Tensor {
        let width = self.eye.hidden;
        let patches = cx.module("sam_encoder", |cx| {
            let mut x = self.sam.encode(cx, pixels);
            cx.module("proj", |cx| {
                let halved = Conv::stride(2).padded(1);
                x = cx.conv2d("conv1", &x, self.down, 3, halved, false);
                cx.conv2d("conv2", &x, width, 3, halved, false)
            })
        });
        let (n, count) = (patches.size(0), patches.size(2) * patches.size(3));
        let states = patches.reshape(&[n, width, count]).transpose(1, 2);
        drop(patches);
        let [small, large] = [
            ("query_768_resolution", QUERIES[0]),
            ("query_1024_resolution", QUERIES[1]),
        ]
        .map(|(name, rows)| cx.module(name, |cx| cx.param("weight", [rows, width]).tensor()));
        let queries = if count <= QUERIES[0] { small } else { large };
        let rows = queries.size(0);
        let queries = queries.unsqueeze(0).expand(&[n, rows, width]);
        let combined = Tensor::cat(&states, &[&queries], 1);
        let last = cx.module("vision_encoder", |cx| {
            let ids = combined.constant("full", &[n, count + rows], DType::I64);
            let mask = blockwise_mask(cx, &ids, None, combined.dtype(), false);
            let inputs = ModelInputs {
                attention_masks: Some([mask, AttentionMask::None]),
                ..ModelInputs::default()
            };
            self.eye.run(cx, combined.clone(), &ids, inputs, &None)
        });
        drop((states, combined));
        last.narrow(1, rows)
    }
}
