//! InternVL 3 and 3.5: pictures cut into tiles of the tower's size with a small whole one, squares of patches joined by their
//! channels, and a Qwen (transformers/models/internvl/modeling_internvl.py).

mod tower;

use std::cell::Cell;

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::Decoder;
use super::family::Family;
use super::pictures;
use super::reading::{self, Reads, States};
use crate::tape::Tensor;
use headroom_scenario::Data;
use tower::Tower;

#[derive(Debug)]
struct InternVl {
    tower: Tower,
    text: Decoder,
    /// Tiles of a picture at most (`max_patches` of the processor).
    most: u64,
    /// The tiles of a sample.
    tiles: Cell<u64>,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(InternVl {
        tower: Tower::new(sizes)?,
        text: Decoder::new(sizes, family)?,
        most: sizes.or("tiles", 12).clamp(1, 64),
        tiles: Cell::default(),
    }))
}

impl Net for InternVl {
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
}

impl Reads for InternVl {
    fn text(&self) -> &Decoder {
        &self.text
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let side = self.tower.image;
        let pictures = data.pictures([side; 2]);
        let tiles = pictures.into_iter().map(|size| self.cut(data, size));
        let tiles = tiles.fold(0, u64::saturating_add);
        self.tiles.set(tiles);
        let count = data.micro_batch.saturating_mul(tiles);
        let pixels = [count, 3, side, side];
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            pictures::mask_of_ones(cx, data),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, _mask, ..] = batch else {
            return None;
        };
        let run = |cx: &Cx| self.model(cx, [ids, pixels], batch.get(4), cache);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

impl InternVl {
    /// The tiles of a picture: the grid nearest to its shape, of as many tiles as it fills half of, and the whole one if there
    /// are several (`get_optimal_tiled_canvas` of GOT-OCR2's processor).
    fn cut(&self, data: &Data, [height, width]: [u64; 2]) -> u64 {
        match data.image_tiles {
            0 if data.cuts_pictures() => {
                let tiles = self.canvas([height, width]);
                if tiles > 1 { tiles + 1 } else { 1 }
            }
            tiles => tiles.max(1),
        }
    }

    fn canvas(&self, [height, width]: [u64; 2]) -> u64 {
        let shape = width.max(1) as f64 / height.max(1) as f64;
        let area = width.saturating_mul(height) as f64;
        let tile = (self.tower.image * self.tower.image) as f64;
        let sides = 1..=self.most;
        let mut grids: Vec<[u64; 2]> = sides
            .clone()
            .flat_map(|columns| sides.clone().map(move |rows| [columns, rows]))
            .filter(|[columns, rows]| columns * rows <= self.most)
            .collect();
        grids.sort_by_key(|[columns, rows]| columns * rows);
        let (mut found, mut least) = (1, f64::INFINITY);
        for [columns, rows] in grids {
            let off = (shape - columns as f64 / rows as f64).abs();
            let tiles = columns * rows;
            let fills = off <= least && area > 0.5 * tile * tiles as f64;
            if off < least || fills {
                (found, least) = (tiles, off);
            }
        }
        found
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
        let has_pictures = self.tiles.get() > 0 || cx.tape.declaring();
        let seen = has_pictures.then(|| {
            let states = cx.module("vision_tower", |cx| self.tower.states(cx, pixels));
            let features = cx.module("multi_modal_projector", |cx| self.projected(cx, &states));
            (states, features)
        });
        cx.tape.construct_here(before, after);
        let features = seen
            .as_ref()
            .map(|(_, features)| features.to(embeddings.dtype()));
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

    /// `pixel_shuffle` by a half, and `InternVLMultiModalProjector`.
    fn projected(&self, cx: &Cx, states: &Tensor) -> Tensor {
        const HALF: u64 = 2;
        let (n, width) = (states.size(0), states.size(2));
        let count = states.size(1).saturating_sub(1);
        let (side, less, wide) = (count.isqrt(), count.isqrt() / HALF, width * HALF);
        let patches = states.narrow(1, count);
        let mut x = patches.reshape(&[n, side, side, width]);
        x = x.view(&[n, side, less, wide]);
        x = x.permute(&[0, 2, 1, 3]).contiguous();
        x = x.view(&[n, less, less, wide * HALF]);
        x = x.permute(&[0, 2, 1, 3]).contiguous();
        x = x.reshape(&[n, less * less, wide * HALF]);
        let mut hidden = cx.layer_norm("layer_norm", &x);
        hidden = cx.linear("linear_1", &hidden, self.text.hidden, true);
        hidden = hidden.gelu();
        cx.linear("linear_2", &hidden, self.text.hidden, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nets::decoder::families::qwen::QWEN2_INSIDE;

    /// As `get_optimal_tiled_canvas` of transformers 5.23 cuts them.
    #[test]
    fn pictures_are_cut_into_as_many_tiles_as_the_processor_makes() {
        let sizes = Sizes::from([
            ("hidden", 64),
            ("layers", 1),
            ("heads", 2),
            ("ffn", 64),
            ("vocab", 64),
            ("v_hidden", 32),
            ("v_layers", 1),
            ("v_heads", 2),
            ("v_ffn", 32),
            ("patch", 14),
            ("img", 448),
        ]);
        let net = InternVl {
            tower: Tower::new(&sizes).unwrap(),
            text: Decoder::new(&sizes, QWEN2_INSIDE).unwrap(),
            most: 12,
            tiles: Cell::default(),
        };
        assert_eq!(net.canvas([448, 448]), 1);
        assert_eq!(net.canvas([896, 896]), 4);
        assert_eq!(net.canvas([448, 896]), 2);
    }
}
