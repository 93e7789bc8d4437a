//! Models other than language models in `train.py`: a row for each family with its constructor, loss and inputs.

use super::super::common::{hub_name, processes};
use super::super::refuse;
use headroom_base::document::Document;
use headroom_catalog::ModelEntry;
use headroom_core::estimate::{Input, inputs};
use headroom_scenario::{Attention, Case, Problem, Scenario};

/// Models of one architecture, as `model.py` constructs them.
pub(super) struct Family {
    arch: &'static str,
    library: Library,
    /// The function of `model.py` that calls it for its loss.
    objective: &'static str,
    /// What its indices are below, by input: a size of the model.
    below: &'static [(&'static str, &'static str)],
    /// Sizes that a run may change, as the library's configuration calls them.
    dims: &'static [(&'static str, &'static [&'static str])],
    /// The classes of its counted layers, and of its blocks of convolutions.
    layers: &'static [&'static str],
    blocks: &'static [&'static str],
}

enum Library {
    /// The class of transformers.
    Transformers(&'static str),
    Diffusers(&'static str),
    /// timm's name is the catalogue's without its dashes, or with these in their place.
    Timm(&'static str),
    /// A class of `model.py`, with the names of its arguments and the sizes that they are; the first is the architecture.
    Ours(&'static str, &'static [(&'static str, &'static str)]),
}

/// `BertConfig` and its like.
const ENCODER: &[(&str, &[&str])] = &[
    ("layers", &["num_hidden_layers"]),
    ("hidden", &["hidden_size"]),
    ("heads", &["num_attention_heads"]),
    ("ffn", &["intermediate_size"]),
    ("vocab", &["vocab_size"]),
    ("ctx", &["max_position_embeddings"]),
];
const VIT: &[(&str, &[&str])] = &[
    ("img", &["image_size"]),
    ("layers", &["num_hidden_layers"]),
    ("hidden", &["hidden_size"]),
    ("heads", &["num_attention_heads"]),
    ("ffn", &["intermediate_size"]),
    ("patch", &["patch_size"]),
    ("classes", &["num_labels"]),
];
const T5: &[(&str, &[&str])] = &[
    ("layers", &["num_layers"]),
    ("decoder_layers", &["num_decoder_layers"]),
    ("hidden", &["d_model"]),
    ("heads", &["num_heads"]),
    ("head_dim", &["d_kv"]),
    ("ffn", &["d_ff"]),
    ("vocab", &["vocab_size"]),
];
const WHISPER: &[(&str, &[&str])] = &[
    ("layers", &["encoder_layers"]),
    ("decoder_layers", &["decoder_layers"]),
    ("hidden", &["d_model"]),
    (
        "heads",
        &["encoder_attention_heads", "decoder_attention_heads"],
    ),
    ("ffn", &["encoder_ffn_dim", "decoder_ffn_dim"]),
    ("vocab", &["vocab_size"]),
    ("mel", &["num_mel_bins"]),
    ("audio_ctx", &["max_source_positions"]),
    ("ctx", &["max_target_positions"]),
];
const GRAPH: &[(&str, &str)] = &[
    ("features", "feat"),
    ("hidden", "hidden"),
    ("heads", "heads"),
    ("layers", "layers"),
    ("classes", "classes"),
];
const RECURRENT: &[(&str, &str)] = &[
    ("vocab", "vocab"),
    ("embed", "embed"),
    ("hidden", "hidden"),
    ("layers", "layers"),
];

/// A text encoder trained on masked tokens.
const fn encoder(arch: &'static str, layers: &'static [&'static str]) -> Family {
    Family {
        arch,
        library: Library::Transformers("AutoModelForMaskedLM"),
        objective: "own",
        below: &[("input_ids", "vocab"), ("labels", "vocab")],
        dims: ENCODER,
        layers,
        blocks: &[],
    }
}

const fn images(arch: &'static str, dash: &'static str, blocks: &'static [&'static str]) -> Family {
    Family {
        arch,
        library: Library::Timm(dash),
        objective: "classes",
        below: &[("labels", "classes")],
        dims: &[("img", &[]), ("classes", &[])],
        layers: &[],
        blocks,
    }
}

const fn graph(arch: &'static str) -> Family {
    Family {
        arch,
        library: Library::Ours("Graph", GRAPH),
        objective: "classes",
        below: &[("labels", "classes"), ("edge_index", "nodes")],
        dims: &[
            ("feat", &[]),
            ("hidden", &[]),
            ("heads", &[]),
            ("layers", &[]),
            ("classes", &[]),
            ("nodes", &[]),
            ("edges", &[]),
        ],
        layers: &[],
        blocks: &[],
    }
}

const fn recurrent(arch: &'static str) -> Family {
    Family {
        arch,
        library: Library::Ours("Recurrent", RECURRENT),
        objective: "classes",
        below: &[("input_ids", "vocab"), ("labels", "vocab")],
        dims: &[
            ("vocab", &[]),
            ("embed", &[]),
            ("hidden", &[]),
            ("layers", &[]),
        ],
        layers: &[],
        blocks: &[],
    }
}

const FAMILIES: &[Family] = &[
    encoder("bert", &["BertLayer"]),
    encoder("roberta", &["RobertaLayer", "XLMRobertaLayer"]),
    encoder("esm", &["EsmLayer"]),
    Family {
        arch: "t5",
        library: Library::Transformers("AutoModelForSeq2SeqLM"),
        objective: "own",
        below: &[("input_ids", "vocab"), ("labels", "vocab")],
        dims: T5,
        layers: &["T5Block", "MT5Block"],
        blocks: &[],
    },
    Family {
        arch: "whisper",
        library: Library::Transformers("AutoModelForSpeechSeq2Seq"),
        objective: "own",
        below: &[("labels", "vocab")],
        dims: WHISPER,
        layers: &["WhisperEncoderLayer", "WhisperDecoderLayer"],
        blocks: &[],
    },
    Family {
        arch: "vit",
        library: Library::Transformers("AutoModelForImageClassification"),
        objective: "own",
        below: &[("labels", "classes")],
        dims: VIT,
        layers: &["ViTLayer"],
        blocks: &[],
    },
    Family {
        arch: "clip",
        library: Library::Transformers("AutoModel"),
        objective: "contrastive",
        below: &[("input_ids", "vocab")],
        dims: &[("img", &["vision_config.image_size"])],
        layers: &["CLIPEncoderLayer"],
        blocks: &[],
    },
    images("resnet", "", &["BasicBlock", "Bottleneck"]),
    images("convnext", "_", &["ConvNeXtBlock"]),
    Family {
        arch: "unet",
        library: Library::Diffusers("UNet2DConditionModel"),
        objective: "denoised",
        below: &[],
        dims: &[("img", &[])],
        layers: &["BasicTransformerBlock"],
        blocks: &["ResnetBlock2D"],
    },
    Family {
        arch: "flux",
        library: Library::Diffusers("FluxTransformer2DModel"),
        objective: "flow",
        below: &[],
        dims: &[("img", &[])],
        layers: &["FluxTransformerBlock", "FluxSingleTransformerBlock"],
        blocks: &[],
    },
    graph("gcn"),
    graph("gat"),
    graph("sage"),
    recurrent("lstm"),
    recurrent("gru"),
    recurrent("rnn"),
];

/// The family of a catalogue's model.
pub(super) fn family(scenario: &Scenario) -> Option<(&'static Family, &'static ModelEntry)> {
    let model = Case::of(scenario).model?;
    let family = FAMILIES.iter().find(|family| family.arch == model.arch)?;
    Some((family, model))
}

impl Family {
    /// Packages that its constructor needs in addition to transformers.
    pub fn package(&self) -> Option<&'static str> {
        match self.library {
            Library::Diffusers(_) => Some("diffusers"),
            Library::Timm(_) => Some("timm"),
            Library::Ours("Graph", _) => Some("torch_geometric"),
            Library::Transformers(_) | Library::Ours(..) => None,
        }
    }
}

/// What `model.py` cannot do with this model.
pub(super) fn problems(scenario: &Scenario, family: &Family, model: &ModelEntry) -> Vec<Problem> {
    let mut fixed = vec![
        "training.quantization",
        "training.kernels",
        "training.loss",
        "runtime.eval_batch",
    ];
    let unmatched = [
        // Weights of another library under transformers' name, an encoder by itself, another net of this name.
        matches!(family.library, Library::Transformers(_)) && model.hf_id.starts_with("timm/"),
        family.arch == "t5" && model.size("decoder_layers") == Some(0),
        matches!(family.library, Library::Timm(_)) && !model.id.starts_with(family.arch),
        // Pictures beside the one that is made, or another class with FLUX's blocks.
        model.size("references").is_some_and(|count| count > 0),
        model.arch == "flux" && model.size("pooled") == Some(0),
    ];
    let mut problems = Vec::new();
    if unmatched.contains(&true) {
        let expected = "a model whose constructor this target knows";
        problems.push(Problem::new("model.id", model.id, expected));
    }
    if !matches!(family.library, Library::Timm(_) | Library::Diffusers(_)) {
        fixed.push("training.channels_last");
    }
    if matches!(family.library, Library::Diffusers(_)) {
        // Its images are squares of the configuration's size.
        fixed.extend(["data.height", "data.width", "data.frames"]);
        fixed.push("training.block_swap");
    }
    let attention = scenario.training.attention;
    let asks = matches!(family.library, Library::Transformers(_));
    if !asks && attention != Attention::Sdpa {
        let expected = "sdpa, as this library computes it";
        problems.push(Problem::new("training.attention", attention.id(), expected));
    }
    // The head that reads contacts has no gradient, which DDP waits for.
    if family.arch == "esm" && processes(scenario) > 1 {
        let expected = "none for this model, a part of which DDP would wait for";
        let id = scenario.parallel.strategy.id();
        problems.push(Problem::new("parallel.strategy", id, expected));
    }
    for (name, size) in &scenario.model.dims {
        // Encoders that a step does not run are not there.
        let absent = name == "encoders" && *size == 0;
        let known = absent || family.dims.iter().any(|(ours, _)| ours == name);
        if !known {
            let value = format!("{name}={size}");
            let expected = "sizes that the model's configuration holds, for this target";
            problems.push(Problem::new("model.dims", value, expected));
        }
    }
    problems.extend(refuse::fixed(scenario, &[&fixed]));
    problems
}

/// The first keys of `train.yaml`: the model and its inputs.
pub(super) fn opening(scenario: &Scenario, family: &Family, model: &ModelEntry) -> Document {
    let size = |name: &str| scenario.model.dim(name).unwrap_or(0);
    let document = Document::new().with("kind", "network");
    let hub = hub_name(scenario);
    // A part of a pipeline is written behind its name.
    let (name, part) = hub.split_once(" (").unwrap_or((hub, ""));
    let note = "a name on the hub or a folder";
    let document = match family.library {
        Library::Transformers(class) => document
            .with("library", "transformers")
            .with("class", class)
            .with_note("model", name, note),
        Library::Diffusers(class) => document
            .with("library", "diffusers")
            .with("class", class)
            .with_note("model", name, note)
            .with("subfolder", part.trim_end_matches(')')),
        Library::Timm(dash) => document
            .with("library", "timm")
            .with("class", model.id.replace('-', dash))
            .with_note("pretrained", false, "true: published weights")
            .with("classes", size("classes").max(1)),
        Library::Ours(class, sizes) => {
            let kind = (String::from("kind"), Document::from(family.arch));
            let sizes = sizes
                .iter()
                .map(|(theirs, ours)| ((*theirs).to_string(), size(ours).max(1).into()));
            let sizes: Document = std::iter::once(kind).chain(sizes).collect();
            document
                .with("library", "model.py")
                .with("class", class)
                .with("sizes", sizes)
        }
    };
    let changed = scenario.model.dims.iter().filter_map(|(name, size)| {
        let (_, theirs) = family.dims.iter().find(|(ours, _)| ours == name)?;
        Some(
            theirs
                .iter()
                .map(|key| ((*key).to_string(), Document::from(*size))),
        )
    });
    let inputs = inputs(&Case::of(scenario)).unwrap_or_default();
    let inputs = inputs
        .iter()
        .map(|input| (input.name.to_string(), form(scenario, family, input)));
    document
        .with("objective", family.objective)
        .with("dims", changed.flatten().collect::<Document>())
        .with(
            "layers",
            family
                .layers
                .iter()
                .copied()
                .map(String::from)
                .collect::<Vec<_>>(),
        )
        .with(
            "blocks",
            family
                .blocks
                .iter()
                .copied()
                .map(String::from)
                .collect::<Vec<_>>(),
        )
        .with_note(
            "train_file",
            Document::Null,
            "torch.save of a list of batches with these inputs; null: random ones",
        )
        .with("inputs", inputs.collect::<Document>())
}

/// The shape of an input, and what is in it: numbers, positions, a mask, or indices below a limit.
fn form(scenario: &Scenario, family: &Family, input: &Input) -> Document {
    let below = family.below.iter().find(|(name, _)| *name == input.name);
    let limit = below.and_then(|(_, size)| scenario.model.dim(size));
    let of: Document = match (input.name, limit) {
        _ if input.is_floating => "numbers".into(),
        ("position_ids", _) => "positions".into(),
        ("attention_mask", _) => "mask".into(),
        // Nodes of all graphs of a batch are numbered through.
        ("edge_index", Some(nodes)) => nodes.saturating_mul(scenario.data.micro_batch).into(),
        (_, Some(limit)) => limit.max(1).into(),
        // Steps of noise (`num_train_timesteps`).
        (_, None) => 1000_u64.into(),
    };
    let shape = input.shape.iter().copied().map(Document::from).collect();
    Document::new()
        .with("shape", Document::List(shape))
        .with("of", of)
}
