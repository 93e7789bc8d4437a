//! What the five research systems' own programs can be told, and what of it takes a change to their code.

use super::{Case, Scenario, presets, settings};
use headroom_catalog::ModelEntry;

/// One system: its preset, its models, and what its flags and keys can say.
#[derive(Debug)]
pub struct System {
    pub preset: &'static str,
    /// The models that its program trains.
    pub models: &'static [&'static str],
    pub knobs: &'static [Knob],
    /// The model's dimensions that a flag or a key carries, or that describe the data.
    pub dims: &'static [&'static str],
}

/// A setting that a system's program follows.
#[derive(Debug)]
pub struct Knob {
    /// The setting's path, or `model.dims.` and a dimension.
    pub path: &'static str,
    /// The values that it takes; empty for any.
    pub values: &'static [&'static str],
    /// What of the system's patch it takes; empty where it takes none.
    pub patch: &'static str,
}

/// What a system makes of a scenario.
#[derive(Debug, Default)]
pub struct Asked {
    /// Fields that its program does in one way only: the field, the value asked for, and what is expected.
    pub refused: Vec<[String; 3]>,
    /// What takes the patch.
    pub patched: Vec<String>,
}

const fn said(path: &'static str) -> Knob {
    said_as(path, &[])
}

const fn said_as(path: &'static str, values: &'static [&'static str]) -> Knob {
    Knob {
        path,
        values,
        patch: "",
    }
}

const fn patched(path: &'static str, patch: &'static str) -> Knob {
    patched_as(path, &[], patch)
}

const fn patched_as(
    path: &'static str,
    values: &'static [&'static str],
    patch: &'static str,
) -> Knob {
    Knob {
        path,
        values,
        patch,
    }
}

/// Settings that describe the machine, the data or a wish, and are no knob of a run, and those of the allocator, which
/// every process reads from its environment.
const ANYWHERE: &[&str] = &[
    "model.id",
    "model.dims",
    "data.distribution",
    "data.mean",
    "data.p95",
    "data.max",
    "data.samples",
    "data.global_batch",
    "hardware.gpu",
    "hardware.memory_mib",
    "hardware.capability",
    "hardware.bandwidth",
    "hardware.tflops",
    "hardware.os",
    "hardware.display",
    "stack.torch",
    "stack.transformers",
    "stack.peft",
    "stack.bitsandbytes",
    "stack.liger",
    "runtime.expandable_segments",
    "runtime.max_split_size_mb",
    "runtime.garbage_collection_threshold",
    "runtime.roundup_power2_divisions",
    "runtime.dataset_gib",
    "runtime.eval_samples",
    "runtime.epochs",
];

/// All of them.
pub const SYSTEMS: &[System] = &[
    System {
        preset: "dreams",
        models: &["dreams"],
        knobs: &[
            said("data.micro_batch"),
            said("hardware.gpus"),
            said_as("training.precision", &["fp32", "fp64"]),
            said_as("training.freeze", &["", "backbone"]),
            said("runtime.workers"),
            said("runtime.save_keep"),
            said("runtime.eval_interval"),
            patched("training.accumulation", "--accumulate_grad_batches"),
            patched("training.clip", "--gradient_clip_val"),
            patched("runtime.save_every", "--every_n_train_steps"),
            patched("runtime.eval_limit", "--limit_val_batches"),
            patched_as("runtime.eval_keeps", &["0"], "--reset_val_metrics"),
        ],
        dims: &["peaks"],
    },
    System {
        preset: "gsa-512m",
        models: &["gsa-512m", "gsa-512m-copy", "gsa-1b"],
        knobs: &[
            said("data.micro_batch"),
            said("data.sequence"),
            said("hardware.gpus"),
            said("hardware.nodes"),
            said_as("training.precision", &["amp-bf16", "amp-fp16", "fp32"]),
            said_as("training.checkpointing", &["none", "layers"]),
            said("training.accumulation"),
            said("training.clip"),
            said("runtime.workers"),
            said("runtime.save_every"),
        ],
        dims: &[
            "layers",
            "hidden",
            "heads",
            "kv",
            "ffn",
            "vocab",
            "ctx",
            "indexer",
            "indexer_heads",
            "k_base",
            "k_min",
            "k_max",
            "adaptive",
            "value_gate",
            "output_gate",
        ],
    },
    System {
        preset: "rna-3e-ffi",
        models: &["rna-3e-ffi"],
        knobs: &[
            said("data.micro_batch"),
            said("training.dropout"),
            said_as("runtime.workers", &["0", "1", "2"]),
            patched_as("training.precision", &["amp-fp16"], "--use_amp"),
            patched("training.accumulation", "--accumulation_steps"),
            patched("training.clip", "--grad_clip"),
            patched("data.batch_max", "--max_edges"),
            patched("model.dims.multi_hop", "--no-use_multi_hop"),
        ],
        dims: &[
            "layers",
            "out",
            "0e",
            "1o",
            "2e",
            "bessel",
            "layer_norm",
            "nodes",
            "bonded",
            "nonbonded",
            "angles",
            "dihedrals",
        ],
    },
    System {
        preset: "prs-med",
        models: &["prs-med"],
        knobs: &[
            said("data.micro_batch"),
            said("data.sequence"),
            said("hardware.gpus"),
            said_as("training.precision", &["amp-fp16", "fp32"]),
            said("training.accumulation"),
            said("training.lora.rank"),
            said("training.lora.dropout"),
            said("runtime.workers"),
            patched_as(
                "training.checkpointing",
                &["layers"],
                "use_reentrant=False: without it no adapter of the language model trains any more",
            ),
            patched_as(
                "training.quantization",
                &["nf4", "nf4-double"],
                "--load_4bit",
            ),
            patched("training.lora.targets", "--lora_targets"),
            patched("model.dims.checkpoint_encoder", "--checkpoint_encoder"),
        ],
        dims: &[],
    },
    System {
        preset: "peptrm",
        models: &["peptrm"],
        knobs: &[
            said("data.micro_batch"),
            said_as("training.precision", &["amp-fp16", "fp32"]),
            patched_as(
                "training.precision",
                &["amp-bf16"],
                "training.autocast_as_named",
            ),
            said("training.accumulation"),
            said("training.ema"),
            said("training.dropout"),
            said("runtime.save_every"),
            patched_as("training.checkpointing", &["layers"], "model.recompute"),
            patched("model.dims.bins", "training.bin_size, training.max_mz"),
        ],
        dims: &[
            "hidden",
            "heads",
            "encoder_layers",
            "decoder_layers",
            "peaks",
            "places",
            "supervision_steps",
            "latent_steps",
            "checkpoint_supervision",
        ],
    },
];

/// The system whose program trains the scenario's model; none for models of everyone.
pub fn of(scenario: &Scenario) -> Option<&'static System> {
    let model = &scenario.model;
    let trains = |system: &&System| system.models.contains(&model.id.as_str());
    SYSTEMS
        .iter()
        .find(|system| model.network.is_none() && trains(system))
}

/// Whether a change from one scenario to another asks a system's own program for nothing that it does not do.
pub fn follows(before: &Scenario, after: &Scenario) -> bool {
    let Some(system) = of(after) else {
        return true;
    };
    let base = system.base();
    let takes = |path: &str, value: &str| {
        let mut knobs = system.knobs.iter().filter(|knob| knob.path == path);
        ANYWHERE.contains(&path) || knobs.any(|knob| knob.takes(value))
    };
    let set = settings::all().iter().all(|setting| {
        let value = setting.get(after);
        value == setting.get(before) || value == setting.get(&base) || takes(setting.path, &value)
    });
    let dims = after.model.dims.iter().all(|(name, size)| {
        before.model.dims.get(name) == Some(size)
            || system.dims.contains(&name.as_str())
            || takes(&format!("model.dims.{name}"), &size.to_string())
    });
    set && dims
}

impl Knob {
    fn takes(&self, value: &str) -> bool {
        self.values.is_empty() || self.values.contains(&value)
    }
}

impl System {
    /// The author's own run.
    pub fn base(&self) -> Scenario {
        let preset = presets::find(self.preset);
        preset.map(presets::Preset::scenario).unwrap_or_default()
    }

    /// What of this scenario its program does in another way, and what takes the patch.
    pub fn asked(&self, scenario: &Scenario) -> Asked {
        let base = self.base();
        let mut asked = Asked::default();
        for setting in settings::all() {
            let path = setting.path;
            let (value, own) = (setting.get(scenario), setting.get(&base));
            let differs = setting.applies(scenario) && value != own;
            if !differs || ANYWHERE.contains(&path) {
                continue;
            }
            asked.ask(self.knob(path, &value), path, &value, &own);
        }
        let model: Option<&ModelEntry> = Case::of(scenario).model;
        for (name, size) in &scenario.model.dims {
            let own = model.and_then(|model| model.size(name));
            if own == Some(*size) || self.dims.contains(&name.as_str()) {
                continue;
            }
            let path = format!("model.dims.{name}");
            let value = size.to_string();
            let own = own.map_or(String::new(), |own| own.to_string());
            asked.ask(self.knob(&path, &value), &path, &value, &own);
        }
        asked
    }

    /// The knob for a value, or one for other values of the same setting.
    fn knob(&self, path: &str, value: &str) -> Option<&'static Knob> {
        let mut knobs = self.knobs.iter().filter(|knob| knob.path == path);
        let first = knobs.clone().next();
        knobs.find(|knob| knob.takes(value)).or(first)
    }
}

impl Asked {
    fn ask(&mut self, knob: Option<&Knob>, path: &str, value: &str, own: &str) {
        match knob.filter(|knob| knob.takes(value)) {
            Some(knob) if knob.patch.is_empty() => {}
            Some(knob) => self.patched.push(format!("{path}: {}", knob.patch)),
            None => {
                let mut known: Vec<&str> = knob.map_or(Vec::new(), |knob| knob.values.to_vec());
                if known.is_empty() || !own.is_empty() && !known.contains(&own) {
                    known.insert(0, if own.is_empty() { "nothing" } else { own });
                }
                let expected =
                    format!("{}, which is all that this system does", known.join(" or "));
                self.refused.push([path.into(), value.into(), expected]);
            }
        }
    }
}
