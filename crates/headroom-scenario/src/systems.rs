//! Programs of research systems that train only their own models: which settings their flags can express.
//!
//! The systems themselves are a plug-in's, which registers them here.

use std::sync::OnceLock;

use super::{Case, Scenario, presets, settings};
use headroom_catalog::ModelEntry;

/// One system: its preset, its models, and what its flags and keys can express.
#[derive(Debug)]
pub struct System {
    pub preset: &'static str,
    /// The export target that writes its files.
    pub target: &'static str,
    /// The models that its program trains.
    pub models: &'static [&'static str],
    pub knobs: &'static [Knob],
    /// The model's dimensions that a flag or a key sets, or that describe the data.
    pub dims: &'static [&'static str],
    pub code: Checkout,
}

/// A setting that a system's program can be started with.
#[derive(Debug)]
pub struct Knob {
    /// The setting's path, or `model.dims.` and a dimension.
    pub path: &'static str,
    /// The values it accepts; empty for any.
    pub values: &'static [&'static str],
    /// The part of the system's patch that it needs; empty where it needs none.
    pub patch: &'static str,
}

/// Where a system's code is, and what pip installs to run it.
#[derive(Debug)]
pub struct Checkout {
    pub repository: &'static str,
    /// The commit that the system's patch was made for.
    pub commit: &'static str,
    /// Other commits that it applies to, the newest first.
    pub also: &'static [&'static str],
    /// Arguments of `pip install`, run in the folder of the code.
    pub install: &'static [&'static str],
}

/// Which settings of a scenario a system's program supports.
#[derive(Debug, Default)]
pub struct Support {
    /// Settings that its program has no way to change: the field, its value, and what is expected.
    pub refused: Vec<[String; 3]>,
    /// Settings that need the system's patch.
    pub patched: Vec<String>,
}

static REGISTERED: OnceLock<&'static [System]> = OnceLock::new();

/// Adds the systems of a plug-in, once.
pub fn register(systems: &'static [System]) {
    REGISTERED.get_or_init(|| systems);
}

/// The systems of the plug-in.
pub fn all() -> &'static [System] {
    REGISTERED.get().copied().unwrap_or_default()
}

/// The system whose program trains the scenario's model, if it is the model of a system.
pub fn of(scenario: &Scenario) -> Option<&'static System> {
    let model = &scenario.model;
    let trains = |system: &&System| system.models.contains(&model.id.as_str());
    all()
        .iter()
        .find(|system| model.network.is_none() && trains(system))
}

/// Whether a system's own program, where the scenario runs one, supports every setting that a change touches.
pub fn follows(before: &Scenario, after: &Scenario) -> bool {
    let Some(system) = of(after) else {
        return true;
    };
    let base = system.base();
    let supports = |path: &str, value: &str| {
        let mut knobs = system.knobs.iter().filter(|knob| knob.path == path);
        ANYWHERE.contains(&path) || knobs.any(|knob| knob.accepts(value))
    };
    let set = settings::all().iter().all(|setting| {
        let value = setting.get(after);
        value == setting.get(before)
            || value == setting.get(&base)
            || supports(setting.path, &value)
    });
    let dims = after.model.dims.iter().all(|(name, size)| {
        before.model.dims.get(name) == Some(size)
            || system.dims.contains(&name.as_str())
            || supports(&format!("model.dims.{name}"), &size.to_string())
    });
    set && dims
}

impl Knob {
    fn accepts(&self, value: &str) -> bool {
        self.values.is_empty() || self.values.contains(&value)
    }
}

impl System {
    /// The author's own run.
    pub fn base(&self) -> Scenario {
        let preset = presets::find(self.preset);
        preset.map(presets::Preset::scenario).unwrap_or_default()
    }

    /// Which settings of this scenario that differ from the author's run its program supports.
    pub fn support(&self, scenario: &Scenario) -> Support {
        let base = self.base();
        let mut support = Support::default();
        for setting in settings::all() {
            let path = setting.path;
            let (value, own) = (setting.get(scenario), setting.get(&base));
            let differs = setting.applies(scenario) && value != own;
            if !differs || ANYWHERE.contains(&path) {
                continue;
            }
            support.add(self.knob(path, &value), path, &value, &own);
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
            support.add(self.knob(&path, &value), &path, &value, &own);
        }
        support
    }

    /// The knob for a value, or one for other values of the same setting.
    fn knob(&self, path: &str, value: &str) -> Option<&'static Knob> {
        let mut knobs = self.knobs.iter().filter(|knob| knob.path == path);
        let first = knobs.clone().next();
        knobs.find(|knob| knob.accepts(value)).or(first)
    }
}

impl Support {
    fn add(&mut self, knob: Option<&Knob>, path: &str, value: &str, own: &str) {
        match knob.filter(|knob| knob.accepts(value)) {
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

/// Settings that every program follows: they describe the machine or the data, or reach the allocator by its environment
/// variable.
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
    "training.learning_rate",
];
