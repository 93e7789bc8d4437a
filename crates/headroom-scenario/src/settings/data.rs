//! What a batch is made of.

use headroom_catalog::ModelCategory;

use crate::setting::{Setting, ValueType};
use crate::{Case, Distribution, Scenario};

/// Whether a field of the data has an effect given the others.
pub(super) fn applies(field: &str, scenario: &Scenario) -> bool {
    let id = &scenario.model.id;
    let listed = || headroom_catalog::model(id).filter(|_| scenario.model.network.is_none());
    // A recorded graph takes its size from its own dimension.
    let diffusion = || {
        listed()
            .filter(|entry| entry.category == ModelCategory::Diffusion && entry.graph.is_empty())
    };
    match field {
        "height" | "width" => diffusion().is_some(),
        "frames" => diffusion().is_some_and(|entry| entry.size("frames").is_some()),
        _ => !field.starts_with("image") || scenario.model.reads_pictures(),
    }
}

/// Whether the length of a sample counts: pictures and videos have a size instead.
pub fn takes_length(scenario: &Scenario) -> bool {
    let listed = headroom_catalog::model(&scenario.model.id);
    let pictures = listed
        .filter(|_| scenario.model.network.is_none())
        .is_some_and(|entry| {
            matches!(
                entry.category,
                ModelCategory::Diffusion | ModelCategory::Vision
            )
        });
    !pictures
}

/// Height and width of a diffusion network's samples, in pixels, where they are known.
pub fn resolution(scenario: &Scenario) -> Option<(u64, u64)> {
    if !applies("height", scenario) {
        return None;
    }
    let case = Case::of(scenario);
    // The side of a square picture: of networks whose configuration counts latents, eight pixels make one.
    let side = || {
        let latents = matches!(case.model?.arch, "dit" | "pixart" | "sd3" | "unet");
        Some(case.listed_size("img")? * if latents { 8 } else { 1 })
    };
    let or_own = |given: u64, name: &str| match given {
        0 => case.listed_size(name).or_else(side),
        given => Some(given),
    };
    let (height, width) = (scenario.data.height, scenario.data.width);
    Some((or_own(height, "height")?, or_own(width, "width")?))
}

/// The frames of a video network's samples, where they are known.
pub fn frames(scenario: &Scenario) -> Option<u64> {
    if !applies("frames", scenario) {
        return None;
    }
    match scenario.data.frames {
        0 => Case::of(scenario).listed_size("frames"),
        given => Some(given),
    }
}

/// Whether the model is a diffusion transformer, whose blocks trainers can swap.
pub(super) fn swaps_blocks(scenario: &Scenario) -> bool {
    let swapped = headroom_catalog::model(&scenario.model.id)
        .is_some_and(|entry| !matches!(entry.arch, "unet" | "unet2d"));
    swapped && applies("height", scenario)
}

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        path: "data.micro_batch",
        key: "mb",
        label: "Micro-batch",
        unit: "samples",
        value_type: ValueType::Whole {
            low: 1,
            high: 1_000_000,
        },
        help: "Samples per forward pass on one GPU (per_device_train_batch_size).",
        memory: "Activations, logits and inputs scale with it; weights, gradients and optimizer states do not change.",
        access: whole!(data.micro_batch),
        parent: None,
    },
    Setting {
        path: "data.sequence",
        key: "seq",
        label: "Sequence length",
        unit: "tokens",
        value_type: ValueType::Whole {
            low: 1,
            high: 100_000_000,
        },
        help: "Tokens per sample after padding or packing; tasks that sample completions set prompt and completion instead, and image models take their size from the model.",
        memory: "Activations grow linearly; eager attention's scores grow quadratically.",
        access: whole!(data.sequence),
        parent: None,
    },
    Setting {
        path: "data.height",
        key: "height",
        label: "Height",
        unit: "pixels",
        value_type: ValueType::Whole {
            low: 0,
            high: 16_384,
        },
        help: "Height of the pictures or videos of a diffusion network: of aspect buckets, those of the largest area; 0 for the model's own.",
        memory: "Tokens grow with height times width, and activations with tokens.",
        access: whole!(data.height),
        parent: None,
    },
    Setting {
        path: "data.width",
        key: "width",
        label: "Width",
        unit: "pixels",
        value_type: ValueType::Whole {
            low: 0,
            high: 16_384,
        },
        help: "Width of the pictures or videos of a diffusion network; 0 for the model's own.",
        memory: "Tokens grow with height times width, and activations with tokens.",
        access: whole!(data.width),
        parent: None,
    },
    Setting {
        path: "data.frames",
        key: "frames",
        label: "Frames",
        unit: "",
        value_type: ValueType::Whole {
            low: 0,
            high: 4_096,
        },
        help: "Frames of each video, 1 for pictures; 0 for the model's own.",
        memory: "The autoencoder joins four or eight frames into one; tokens grow with those.",
        access: whole!(data.frames),
        parent: None,
    },
    Setting {
        path: "data.padding_mask",
        key: "mask",
        label: "Padding mask",
        unit: "",
        value_type: ValueType::Switch,
        help: "Batches contain padding, so the model gets an attention mask.",
        memory: "With a mask SDPA cannot use the flash kernel and materialises a bias of batch × sequence² in every layer.",
        access: switch!(data.padding_mask),
        parent: None,
    },
    Setting {
        path: "data.distribution",
        key: "dist",
        label: "Sample lengths",
        unit: "",
        value_type: ValueType::Choice(Distribution::CHOICES),
        help: "Whether all samples have one length, are padded to one, or vary in length (edges for graphs).",
        memory: "Fixed and padded batches all cost the same; where lengths vary, the largest batch decides whether the run survives.",
        access: choice!(Distribution, data.distribution),
        parent: None,
    },
    Setting {
        path: "data.mean",
        key: "mean",
        label: "Mean length",
        unit: "tokens",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000_000,
        },
        help: "Mean sample length, or mean number of edges for graphs; 0 if unknown.",
        memory: "Sets what a typical batch costs; the gap to the largest batch is the price of varying lengths.",
        access: whole!(data.mean),
        parent: None,
    },
    Setting {
        path: "data.p95",
        key: "p95",
        label: "95th percentile length",
        unit: "tokens",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000_000,
        },
        help: "The length, or number of edges, that one sample in twenty exceeds; 0 if unknown.",
        memory: "Sets how often a large batch occurs.",
        access: whole!(data.p95),
        parent: None,
    },
    Setting {
        path: "data.max",
        key: "max",
        label: "Maximum length",
        unit: "tokens",
        value_type: ValueType::Whole {
            low: 0,
            high: 100_000_000,
        },
        help: "Length of the longest sample, or edges of the largest graph; 0 if unknown.",
        memory: "The largest batch decides whether an epoch completes.",
        access: whole!(data.max),
        parent: None,
    },
    Setting {
        path: "data.samples",
        key: "samples",
        label: "Samples per epoch",
        unit: "samples",
        value_type: ValueType::Whole {
            low: 0,
            high: 1_000_000_000_000,
        },
        help: "Number of training samples in an epoch; 0 if unknown.",
        memory: "None by itself; it sets how often batches of long samples occur.",
        access: whole!(data.samples),
        parent: None,
    },
    Setting {
        path: "data.batch_max",
        key: "batch_max",
        label: "Edge budget",
        unit: "edges",
        value_type: ValueType::Whole {
            low: 0,
            high: 1_000_000_000,
        },
        help: "Edges that all graphs of a batch may have together; 0 for any number.",
        memory: "Bounds the largest batch where graphs vary: fewer of them go into a batch that would be too large.",
        access: whole!(data.batch_max),
        parent: None,
    },
    Setting {
        path: "data.packing",
        key: "packing",
        label: "Packing",
        unit: "",
        value_type: ValueType::Switch,
        help: "Short samples are concatenated until they fill the sequence.",
        memory: "No computation is spent on padding: every position of a batch holds a token.",
        access: switch!(data.packing),
        parent: None,
    },
    Setting {
        path: "data.global_batch",
        key: "global",
        label: "Target global batch",
        unit: "samples",
        value_type: ValueType::Whole {
            low: 0,
            high: 1_000_000_000,
        },
        help: "Samples per optimizer step, over accumulation and all GPUs; 0 if any number will do.",
        memory: "None by itself: gradient accumulation reaches it, or comes as close as possible, without more activations.",
        access: unless_zero!(data.global_batch),
        parent: None,
    },
    Setting {
        path: "data.audio_frames",
        key: "audio_frames",
        label: "Frames of sound",
        unit: "per sample",
        value_type: ValueType::Whole {
            low: 0,
            high: 10_000_000,
        },
        help: "Mel frames of sound in a sample, usually a hundred a second; 0 for the model's own. The transcript's tokens are the sequence.",
        memory: "Activations grow linearly with the sound, relative positions with its square.",
        access: whole!(data.audio_frames),
        parent: None,
    },
];
