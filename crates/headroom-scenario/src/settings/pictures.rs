//! The pictures of a sample, of models that read pictures in texts.

use crate::pictures::MOST_IMAGES;
use crate::setting::{Setting, ValueType};

/// Pictures of up to a gigapixel.
const LONGEST: u64 = 32_768;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        path: "data.images",
        key: "images",
        label: "Pictures",
        unit: "per sample",
        value_type: ValueType::Whole {
            low: 0,
            high: MOST_IMAGES,
        },
        help: "Pictures in each sample; their placeholders are part of the sequence.",
        memory: "The vision tower's activations grow with the pictures and their patches; the tokens they become are in the sequence already.",
        access: whole!(data.images),
        parent: None,
    },
    Setting {
        path: "data.image_height",
        key: "image_height",
        label: "Picture height",
        unit: "pixels",
        value_type: ValueType::Whole {
            low: 0,
            high: LONGEST,
        },
        help: "The height of the pictures; 0 for the size that the model was trained at.",
        memory: "Models that take any size have more patches for more pixels; others scale each picture to their own size, or cut it into tiles.",
        access: whole!(data.image_height),
        parent: None,
    },
    Setting {
        path: "data.image_width",
        key: "image_width",
        label: "Picture width",
        unit: "pixels",
        value_type: ValueType::Whole {
            low: 0,
            high: LONGEST,
        },
        help: "The width of the pictures; 0 for the size that the model was trained at.",
        memory: "As their height.",
        access: whole!(data.image_width),
        parent: None,
    },
    Setting {
        path: "data.image_sizes",
        key: "image_sizes",
        label: "Picture sizes",
        unit: "",
        value_type: ValueType::Words,
        help: "Sizes of the pictures where they differ, as height x width: 448x672,224x336; repeated for all pictures of a sample.",
        memory: "Attention in the tower sees one picture, or one tile, at a time.",
        access: words!(data.image_sizes),
        parent: None,
    },
    Setting {
        path: "data.image_tiles",
        key: "image_tiles",
        label: "Tiles of a picture",
        unit: "",
        value_type: ValueType::Whole { low: 0, high: 100 },
        help: "Tiles that a picture is cut into, the whole one included; 0 for what the model's processor makes of its size.",
        memory: "The vision tower runs once for each tile.",
        access: whole!(data.image_tiles),
        parent: None,
    },
];
