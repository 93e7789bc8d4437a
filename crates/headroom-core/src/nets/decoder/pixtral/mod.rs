//! Pixtral and Mistral 3 (Mistral Small 3.1 and 3.2): pictures of any size in one row of patches, squares of them merged, and a
//! Mistral (transformers/models/{mistral3,pixtral,llava}/modeling_*.py).

mod tower;

use super::super::{Cx, LanguageModel, ModelError, Net, Output, Sizes};
use super::Decoder;
use super::family::Family;
use super::pictures::{self, Batch, Pictures, total};
use super::reading::{self, Reads, States};
use crate::tape::{DType, Tensor};
use headroom_scenario::{Data, Training};
use tower::Tower;

#[derive(Debug)]
struct Mistral3 {
    tower: Tower,
    text: Decoder,
    /// Patches along the side of a square that becomes one token; in Pixtral itself each patch is a token.
    merge: u64,
    merges: bool,
    projector_bias: bool,
    /// Patches along the sides of each picture.
    pictures: Pictures,
}

pub(super) fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    let merge = sizes.or("merge", 2).max(1);
    Ok(Box::new(Mistral3 {
        tower: Tower::new(sizes)?,
        text: Decoder::new(sizes, family)?,
        merge,
        merges: true,
        projector_bias: sizes.is_set("proj_bias"),
        pictures: Pictures::default(),
    }))
}

/// Pixtral: LLaVA's projector over every patch.
pub(super) fn unmerged(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Mistral3 {
        tower: Tower::new(sizes)?,
        text: Decoder::new(sizes, family)?,
        merge: 1,
        merges: false,
        projector_bias: true,
        pictures: Pictures::default(),
    }))
}

impl Net for Mistral3 {
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

    /// Each picture is cut out of the padded ones by itself.
    fn supports(&self, data: &Data, _training: &Training) -> Result<(), ModelError> {
        pictures::few(data)
    }
}

impl Reads for Mistral3 {
    fn text(&self) -> &Decoder {
        &self.text
    }

    fn pictures(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let grids = self.grids(data);
        self.pictures.keep(&grids);
        let count = data.micro_batch.saturating_mul(grids.len() as u64);
        let side = |at: usize| grids.iter().map(|grid| grid[at]).max().unwrap_or(0);
        let pixels = [
            count,
            3,
            side(0) * self.tower.patch,
            side(1) * self.tower.patch,
        ];
        vec![
            cx.tape.empty("pixel_values", pixels, cx.env.weights),
            cx.tape.empty("image_sizes", [count, 2], DType::I64),
            pictures::mask_of_ones(cx, data),
        ]
    }

    fn states(&self, cx: &Cx, batch: &[Tensor], cache: &super::Cache) -> Option<States> {
        let [ids, _labels, pixels, _sizes, _mask, ..] = batch else {
            return None;
        };
        let run = |cx: &Cx| self.model(cx, [ids, pixels], batch.get(5), cache);
        let (hidden, features) = cx.module("model", run);
        Some(States::of(hidden, features))
    }
}

impl Mistral3 {
    /// Patches along the height and width of each picture of a sample: the longer side is scaled to what the tower was trained at
    /// if it is beyond, and both are rounded up to squares of patches (`get_resize_output_image_size`).
    fn grids(&self, data: &Data) -> Vec<[u64; 2]> {
        let own = self.tower.image.min(OWN);
        let square = self.tower.patch * self.merge;
        let scaled = |sides: [u64; 2]| {
            let ratio = (sides[0].max(sides[1]) as f64 / self.tower.image.max(1) as f64).max(1.0);
            sides.map(|side| ((side as f64 / ratio) as u64).div_ceil(square).max(1) * self.merge)
        };
        data.pictures([own, own]).into_iter().map(scaled).collect()
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
        let grids = self.pictures.of_batch(ids.size(0));
        let has_pictures = !self.pictures.are_none() || cx.tape.declaring();
        let seen = has_pictures.then(|| {
            let tower = |cx: &Cx| self.tower.states(cx, pixels, &grids);
            let states = cx.module("vision_tower", tower);
            let project = |cx: &Cx| self.projected(cx, &states, &grids);
            let projected = cx.module("multi_modal_projector", project);
            (states, projected)
        });
        cx.tape.construct_here(before, after);
        let features = seen
            .as_ref()
            .map(|(_, projected)| projected.cat_list().to(embeddings.dtype()));
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

    /// `Mistral3MultiModalProjector.forward`.
    fn projected(&self, cx: &Cx, states: &Tensor, grids: &Batch) -> Tensor {
        let mut features = states.view(&[states.size(1), states.size(2)]);
        if self.merges {
            features = cx.rms_norm("norm", &features);
            features = cx.module("patch_merger", |cx| self.merged(cx, &features, grids));
        }
        let bias = self.projector_bias;
        let mut hidden = cx.linear("linear_1", &features, self.text.hidden, bias);
        hidden = hidden.gelu();
        cx.linear("linear_2", &hidden, self.text.hidden, bias)
    }

    /// `Mistral3PatchMerger.forward`: the patches of a square side by side, picture by picture.
    fn merged(&self, cx: &Cx, features: &Tensor, grids: &Batch) -> Tensor {
        let width = features.size(1);
        let counts: Vec<u64> = grids.iter().map(|grid| total(&[grid])).collect();
        let parts = features.split(&counts, 0);
        let squares = parts
            .iter()
            .zip(grids.iter())
            .map(|(patches, [height, across])| {
                let grid = patches.view(&[height, across, width]).permute(&[2, 0, 1]);
                let columns = grid.unsqueeze(0).unfold(self.merge);
                columns.select(0).transpose(0, 1)
            });
        let squares: Vec<Tensor> = squares.collect();
        let all: Vec<&Tensor> = squares.iter().collect();
        let joined = match all.split_first() {
            Some((first, rest)) => Tensor::cat(first, rest, 0),
            // The declaration pass needs the parameters only.
            None => {
                let shape = [1, width * self.merge * self.merge];
                features.constant("cat", &shape, features.dtype())
            }
        };
        drop(squares);
        cx.linear("merging_layer", &joined, width, false)
    }
}

/// The side of a picture in pixels where none is given: 400 tokens of Mistral Small.
const OWN: u64 = 560;
