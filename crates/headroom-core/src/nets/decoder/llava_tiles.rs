//! LLaVA-NeXT and LLaVA-OneVision: pictures of any size in tiles, whose features are put together again without their padding
//! (transformers/models/{llava_next,llava_onevision}/modeling_*.py).

use std::cell::RefCell;

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes, clip, siglip};
use super::Decoder;
use super::family::Family;
use super::pictures;
use super::reading::{self, Reads, States};
use super::tiles::{Grids, NEXT, ONE_VISION, Tiled};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Training};

#[derive(Debug)]
struct Llava {
    tower: Tower,
    text: Decoder,
    /// The pictures of a sample; one that is not cut is no `Tiled`.
    pictures: RefCell<Vec<Option<Tiled>>>,
}

#[derive(Clone, Copy, Debug)]
enum Tower {
    /// Every picture is cut, and the states before the last layer are read (LLaVA-NeXT).
    Clip(clip::VisionModel),
    /// Only a sample's one picture is cut, and the states before the last norm are read (LLaVA-OneVision).
    Siglip(siglip::VisionModel),
}

/// LLaVA-NeXT.
pub(super) fn next(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    build(sizes, family, Tower::Clip(clip::VisionModel::new(sizes)?))
}

/// LLaVA-OneVision.
pub(super) fn one_vision(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    build(
        sizes,
        family,
        Tower::Siglip(siglip::VisionModel::new(sizes)?),
    )
}

fn build(sizes: &Sizes, family: Family, tower: Tower) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Llava {
        tower,
        text: Decoder::new(sizes, family)?,
        pictures: RefCell::default(),
    }))
}

impl Net for Llava {
    /// Pictures and what goes with them are between the labels and the mask.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        reading::batch(self, cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        reading::forward(self, cx, batch)
    }

    fn language_model(&self) -> Option<&dyn LanguageModel> {
        Some(self)
    }

    /// Each picture is put together by itself.
    fn supports(&self, data: &Data, _training: &Training) -> Result<(), ModelError> {
        pictures::few(data)
    }
}

impl Reads for Llava {
    fn text(&self) -> &Decoder {
        &self.text
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let pictures = self.of_sample(data);
        let tiles = pictures.iter().map(|picture| tiles(*picture)).max();
        let count = data.micro_batch.saturating_mul(pictures.len() as u64);
        self.pictures.replace(pictures);
        let image = self.tower.image();
        let pixels = [count, tiles.unwrap_or(1), 3, image, image];
        let more = if matches!(self.tower, Tower::Siglip(_)) {
            let counts = [data.micro_batch];
            cx.tape.empty("batch_num_images", counts, DType::I64)
        } else {
            pictures::mask_of_ones(cx, data)
        };
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            cx.tape.empty("image_sizes", [count, 2], DType::I64),
            more,
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, _sizes, _counts, ..] = batch else {
            return None;
        };
        let run = |cx: &Cx| self.model(cx, [ids, pixels], batch.get(5), cache);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

fn tiles(picture: Option<Tiled>) -> u64 {
    picture.map_or(1, |tiled| tiled.tiles())
}

impl Tower {
    fn image(&self) -> u64 {
        match self {
            Self::Clip(tower) => tower.image(),
            Self::Siglip(tower) => tower.image(),
        }
    }

    /// Patches along a side.
    fn side(&self) -> u64 {
        match self {
            Self::Clip(tower) => tower.patches().isqrt(),
            Self::Siglip(tower) => tower.side(),
        }
    }

    fn grids(&self) -> Grids {
        match self {
            Self::Clip(_) => NEXT,
            Self::Siglip(_) => ONE_VISION,
        }
    }

    /// What the projector reads, and what the tower's output holds.
    fn states(&self, cx: &Cx, pixels: &Tensor) -> (Tensor, Vec<Tensor>) {
        match self {
            Self::Clip(tower) => {
                let [read, last, pooled] = tower.last_states(cx, pixels);
                let patches = read.narrow(1, read.size(1).saturating_sub(1));
                // The features take the pooled output's place.
                drop(pooled);
                (patches, vec![read, last])
            }
            Self::Siglip(tower) => {
                let [read, last] = tower.last_states(cx, pixels);
                (read.clone(), vec![read, last])
            }
        }
    }
}

impl Llava {
    fn of_sample(&self, data: &Data) -> Vec<Option<Tiled>> {
        let image = self.tower.image();
        let pictures = data.pictures([image, image]);
        let alone = matches!(self.tower, Tower::Clip(_)) || pictures.len() == 1;
        let cuts = alone && data.cuts_pictures();
        let tiled = |size| Tiled::new(size, image, self.tower.side(), self.tower.grids());
        pictures
            .into_iter()
            .map(|size| cuts.then(|| tiled(size)))
            .collect()
    }

    fn model(
        &self,
        cx: &Cx,
        [ids, pixels]: [&Tensor; 2],
        padding: Option<&Tensor>,
        cache: &super::Cache,
    ) -> (Tensor, Option<Tensor>) {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.text.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let has_pictures = !self.pictures.borrow().is_empty() || cx.tape.declaring();
        let seen = has_pictures.then(|| self.features(cx, pixels, ids.size(0)));
        cx.tape.construct_here(before, after);
        let features = (seen.as_ref()).and_then(|(features, _)| {
            let all: Vec<&Tensor> = features.iter().collect();
            let (first, rest) = all.split_first()?;
            Some(Tensor::cat(first, rest, 0).to(embeddings.dtype()))
        });
        let masks = features.as_ref().map(|features| {
            let films = matches!(self.tower, Tower::Siglip(_));
            let masks = pictures::placeholders(ids, films);
            let [image, _] = &masks;
            embeddings = embeddings.masked_scatter(image, features);
            masks
        });
        let hidden = cx.module("language_model", |cx| {
            self.text
                .padded(cx, embeddings.clone(), ids, padding, cache)
        });
        drop((masks, seen));
        (hidden, features)
    }

    /// `get_image_features`: the features of each picture, and what the tower's output holds.
    fn features(&self, cx: &Cx, pixels: &Tensor, samples: u64) -> (Vec<Tensor>, Vec<Tensor>) {
        let sample = self.pictures.borrow();
        let pictures: Vec<Option<Tiled>> =
            (0..samples).flat_map(|_| sample.iter().copied()).collect();
        drop(sample);
        let counts: Vec<u64> = pictures.iter().map(|picture| tiles(*picture)).collect();
        let total = counts.iter().copied().fold(0, u64::saturating_add).max(1);
        let image = self.tower.image();
        // Each picture's own tiles, joined.
        let joined = pixels.constant("cat", &[total, 3, image, image], pixels.dtype());
        let tower = |cx: &Cx| self.tower.states(cx, &joined);
        let (states, held) = cx.module("vision_tower", tower);
        let hidden = self.text.hidden;
        let projected = cx.module("multi_modal_projector", |cx| {
            let mut inner = cx.linear("linear_1", &states, hidden, true);
            inner = inner.gelu();
            cx.linear("linear_2", &inner, hidden, true)
        });
        drop(states);
        let newline = cx.param("image_newline", [hidden]).tensor();
        if pictures.is_empty() {
            // The declaration pass needs the parameters only.
            return (vec![projected], held);
        }
        let each = projected.split(&counts, 0);
        drop(projected);
        let packed = each
            .iter()
            .zip(&pictures)
            .map(|(tiles, picture)| match picture {
                Some(tiled) => self.packed(tiles, *tiled, &newline),
                None => Tensor::cat(&tiles.select(0), &[&newline.unsqueeze(0)], 0),
            });
        (packed.collect(), held)
    }

    /// `pack_image_features` of one picture.
    fn packed(&self, tiles: &Tensor, tiled: Tiled, newline: &Tensor) -> Tensor {
        let (side, hidden) = (self.tower.side(), self.text.hidden);
        let (rows, columns) = (tiled.rows, tiled.columns);
        let whole = tiles.select(0);
        let parts = tiles.narrow(0, rows * columns);
        let mut grid = parts
            .view(&[rows, columns, side, side, hidden])
            .permute(&[4, 0, 2, 1, 3])
            .contiguous()
            .view(&[hidden, rows * side, columns * side]);
        let [tall, wide] = tiled.patches;
        grid = grid.narrow(1, tall).narrow(2, wide);
        if let Some([tall, wide]) = tiled.scaled {
            grid = grid.unsqueeze(0).interpolate(tall, wide).select(0);
        }
        let ends = newline
            .unsqueeze(-1)
            .unsqueeze(-1)
            .expand(&[hidden, grid.size(1), 1])
            .to(grid.dtype());
        grid = Tensor::cat(&grid, &[&ends], -1);
        let count = grid.size(1) * grid.size(2);
        let lines = grid.view(&[hidden, count]).transpose(0, 1);
        drop(grid);
        Tensor::cat(&whole, &[&lines], 0)
    }
}
