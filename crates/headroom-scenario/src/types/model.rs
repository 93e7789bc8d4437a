//! The network and its data.

use crate::Distribution;
use crate::network::Network;
use headroom_catalog::{self as catalog, ModelCategory};
use std::collections::BTreeMap;
use std::num::NonZero;

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// A catalogue id, such as `gpt2`.
    pub id: String,
    /// Dimensions that differ from the catalogue's (`layers`, `vocab`, `hidden`, ...).
    pub dims: BTreeMap<String, u64>,
    /// A user-defined network instead of a catalogue model.
    pub network: Option<Network>,
}

impl Model {
    /// A dimension: as the scenario changes it, as its own network names it, or as the catalogue has it.
    pub fn dim(&self, name: &str) -> Option<u64> {
        let changed = self.dims.get(name).copied();
        changed.or_else(|| match &self.network {
            Some(network) => network.size(name),
            None => catalog::model(&self.id)?.size(name),
        })
    }
}

impl Model {
    /// Whether samples are texts with pictures in them, of any number and size.
    pub fn reads_pictures(&self) -> bool {
        let listed = catalog::model(&self.id).filter(|_| self.network.is_none());
        listed.is_some_and(|entry| {
            entry.category == ModelCategory::VisionLanguage && entry.graph.is_empty()
        })
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            id: "gpt2".into(),
            dims: BTreeMap::new(),
            network: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub micro_batch: u64,
    /// Tokens in a sample; images take their size from the model's dimensions.
    pub sequence: u64,
    /// Pixels and frames of a sample of a diffusion network; zero for the model's own.
    pub height: u64,
    pub width: u64,
    pub frames: u64,
    /// Whether batches carry a real padding mask.
    pub padding_mask: bool,
    pub distribution: Distribution,
    /// Lengths of samples, or edges of graphs; zero where not known.
    pub mean: u64,
    pub p95: u64,
    pub max: u64,
    /// Samples in an epoch; zero where not known.
    pub samples: u64,
    /// Edges that a batch of graphs may have; zero for any number.
    pub batch_max: u64,
    /// Short samples are joined until they fill the sequence.
    pub packing: bool,
    /// Samples that one optimizer step should see.
    pub global_batch: Option<NonZero<u64>>,
    /// Pictures in a sample, of models that read pictures in texts.
    pub images: u64,
    /// Pixels; zero for the size the model was trained at.
    pub image_height: u64,
    pub image_width: u64,
    /// Heights and widths where they differ, such as `448x672`; repeated for all pictures.
    pub image_sizes: Vec<String>,
    /// Tiles of a picture; zero where the processor decides.
    pub image_tiles: u64,
    /// Mel frames of sound in a sample, of models that take any number; zero for the model's own.
    pub audio_frames: u64,
}

impl Default for Data {
    fn default() -> Self {
        Self {
            micro_batch: 8,
            sequence: 1024,
            height: 0,
            width: 0,
            frames: 0,
            padding_mask: false,
            distribution: Distribution::default(),
            mean: 0,
            p95: 0,
            max: 0,
            samples: 0,
            batch_max: 0,
            packing: false,
            global_batch: None,
            images: 1,
            image_height: 0,
            image_width: 0,
            image_sizes: Vec::new(),
            image_tiles: 0,
            audio_frames: 0,
        }
    }
}
