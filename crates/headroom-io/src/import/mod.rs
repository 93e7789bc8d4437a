//! Importers for other tools' files. Input is untrusted: problems are values and sizes are bounded.

pub mod config;
pub mod deepspeed;
mod effect;
mod environment;
mod flags;
mod input;
pub mod lightning;
pub mod litgpt;
mod own;
mod pattern;
mod places;
mod plain;
pub mod recorded;
pub mod snapshot;
pub mod take;
pub mod timeline;
pub mod tools;
pub mod torchtitan;
pub mod torchtune;
pub mod unsloth;
mod usual;
pub mod verl;

pub use effect::{KeyEffect, effect_of_key};
pub use environment::allocator;
pub use input::{Input, answer, files, words};
pub use places::adapt_every_layer;

use std::sync::OnceLock;

use headroom_base::document::Document;
use headroom_scenario::resolve::{Origin, resolve};
use headroom_scenario::settings::{self, SettingId, Value};
use headroom_scenario::share;
use headroom_scenario::{Draft, Problem, Scenario, document};

/// What a file held.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What the file says; the scenario is that over the format's defaults.
    pub draft: Draft,
    pub scenario: Scenario,
    /// Values that are not accepted.
    pub problems: Vec<Problem>,
    /// Keys that no setting expresses.
    pub unused_keys: Vec<String>,
    /// Where the program does something other than its file says.
    pub notes: Vec<String>,
    /// The file's model is unknown: the scenario means nothing until the user chooses one.
    pub question: Option<Problem>,
    /// The file names no model, as those of DeepSpeed and Accelerate: it changes the run that it is read for.
    pub part: bool,
}

impl Default for Imported {
    fn default() -> Self {
        Self::over(Draft::of_format(Scenario::VERSION))
    }
}

impl Imported {
    /// To be changed by what a file says.
    pub fn over(draft: Draft) -> Self {
        Self {
            scenario: resolve(&draft).scenario,
            draft,
            problems: Vec::new(),
            unused_keys: Vec::new(),
            notes: Vec::new(),
            question: None,
            part: false,
        }
    }

    /// Sets a field as a key of a program's file says; a value that it does not accept is a problem.
    pub fn set(&mut self, field: &str, text: &str, tool: &'static str, key: &str) {
        let Some(setting) = settings::named(field) else {
            return self.problems.push(settings::unknown(field, text));
        };
        match setting.parse(text) {
            Ok(value) => self.set_value(setting, value, tool, key),
            Err(problem) => self.problems.push(problem),
        }
    }

    pub fn set_value(&mut self, setting: SettingId, value: Value, tool: &'static str, key: &str) {
        let key = key.to_string();
        self.draft
            .set_value(setting, value, Origin::File { tool, key });
        self.scenario = resolve(&self.draft).scenario;
    }

    /// Gives a dimension of the model a size, where it has another.
    pub fn size(&mut self, name: &str, size: u64, tool: &'static str, key: &str) {
        let mut model = self.scenario.model.clone();
        model.dims.remove(name);
        if model.dim(name) != Some(size) {
            model.dims.insert(name.into(), size);
        }
        if let Some(dims) = settings::find("model.dims") {
            self.set_value(dims, Value::Sizes(model.dims), tool, key);
        }
    }

    /// Takes back what was said since this draft.
    pub fn rewind(&mut self, draft: Draft) {
        self.scenario = resolve(&draft).scenario;
        self.draft = draft;
    }
}

/// The scenario of a file that Headroom wrote, from the link in its head: exact, whatever the file's form.
pub fn linked(text: &str) -> Option<Imported> {
    let mut links = text
        .lines()
        .take(20)
        .filter_map(|line| line.strip_prefix("# Scenario: "));
    let link = links.find(|link| link.starts_with("#v="))?;
    let opened = share::read(link);
    Some(Imported {
        problems: opened.problems,
        ..Imported::over(opened.draft)
    })
}

/// The run of a script that starts a program of the plug-in's.
fn plugin_script(text: &str) -> Option<Imported> {
    PLUGIN.get().and_then(|plugin| (plugin.script)(text))
}

/// The scenario of a document of any program. A file that names no model changes `run`.
pub fn read(read: &Document, run: &Scenario) -> Imported {
    known(read, run).unwrap_or_else(|| {
        let (draft, mut problems) = document::draft(read);
        problems.extend(resolve(&draft).problems);
        Imported {
            problems,
            ..Imported::over(draft)
        }
    })
}

/// The same, if a known program writes such documents.
pub fn known(read: &Document, run: &Scenario) -> Option<Imported> {
    if let Some(plugin) = PLUGIN.get().filter(|plugin| (plugin.recognises)(read)) {
        return Some((plugin.read)(read));
    }
    let (_, scope) = READERS.iter().find(|(recognises, _)| recognises(read))?;
    Some(match scope {
        Scope::WholeRun(take) => take(read),
        Scope::PartOfRun(take) => take(read, run),
    })
}

/// How a plug-in reads its programs' own files; it is asked before all others.
#[derive(Debug)]
pub struct Plugin {
    pub recognises: fn(&Document) -> bool,
    pub read: fn(&Document) -> Imported,
    /// What a shell script runs, where that is one of its programs.
    pub script: fn(&str) -> Option<Imported>,
}

static PLUGIN: OnceLock<&'static Plugin> = OnceLock::new();

/// Adds a plug-in's readers, once.
pub fn register(plugin: &'static Plugin) {
    PLUGIN.get_or_init(|| plugin);
}

/// Whether a document is of a program that a plug-in reads.
fn of_plugin(document: &Document) -> bool {
    PLUGIN
        .get()
        .is_some_and(|plugin| (plugin.recognises)(document))
}

/// Whether a document is a program's, and what it says.
type Reader = (fn(&Document) -> bool, Scope);

/// What a program's file may be about.
enum Scope {
    WholeRun(fn(&Document) -> Imported),
    /// A run, or a part of the one that it is read for.
    PartOfRun(fn(&Document, &Scenario) -> Imported),
}

/// Importers by program; the formats with the most distinctive keys come first.
const READERS: &[Reader] = &[
    (recorded::recognises, Scope::WholeRun(recorded::read)),
    (plain::recognises, Scope::WholeRun(plain::read)),
    (config::recognises, Scope::WholeRun(config::read)),
    (
        config::timm::recognises,
        Scope::WholeRun(config::timm::read),
    ),
    (
        config::diffusers::recognises,
        Scope::WholeRun(config::diffusers::read),
    ),
    (torchtune::recognises, Scope::WholeRun(torchtune::read)),
    (torchtitan::recognises, Scope::WholeRun(torchtitan::read)),
    (verl::recognises, Scope::WholeRun(verl::read)),
    (litgpt::recognises, Scope::WholeRun(litgpt::read)),
    (lightning::recognises, Scope::PartOfRun(lightning::read)),
    (deepspeed::recognises, Scope::PartOfRun(deepspeed::read)),
    (unsloth::recognises, Scope::WholeRun(unsloth::read)),
    (tools::recognises, Scope::PartOfRun(tools::read)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export;
    use headroom_base::document::yaml;
    use headroom_core::estimate::Estimate;
    use headroom_scenario::sample;
    use headroom_testing::Dice;

    fn scenario(changes: &[(&str, &str)]) -> Scenario {
        let mut draft = Draft::default();
        for (name, value) in changes {
            let changed = settings::named(name).map(|setting| draft.change(setting, value));
            assert_eq!(changed, Some(Ok(())), "{name}");
        }
        resolve(&draft).scenario
    }

    #[test]
    fn known_keys_are_used_and_the_rest_is_listed() {
        #[track_caller]
        fn check(text: &str, changes: &[(&str, &str)], unused_keys: &[&str]) {
            let imported = read(&yaml::read(text).unwrap(), &Scenario::default());
            assert_eq!(imported.problems, vec![]);
            assert_eq!(imported.question, None);
            assert_eq!(imported.scenario, scenario(changes));
            assert_eq!(imported.unused_keys, unused_keys);
        }
        check(
            r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto", "bf16": {"enabled": true},
                "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "sub_group_size": 9}, "amp": {"a": 1},
                "optimizer": {"type": "AdamW", "params": {"lr": 0.1, "fused": true}}}"#,
            &[
                ("mb", "2"),
                ("par", "zero3"),
                ("offload", "parameters"),
                ("optim", "adamw-fused"),
            ],
            &[
                "gradient_accumulation_steps",
                "zero_optimization.sub_group_size",
                "amp.a",
            ],
        );
        check(
            "trainer: {devices: 4, num_nodes: 2, precision: bf16-true, accumulate_grad_batches: 3, gradient_clip_val: 0.5,\n  \
             strategy: {class_path: lightning.pytorch.strategies.DeepSpeedStrategy, init_args: {stage: 3, offload_optimizer: true}},\n  \
             callbacks: [{class_path: x}]}\nmodel: {hidden: 64}\ndata: {batch_size: 6, init_args: {}}",
            &[
                ("gpus", "8"),
                ("nodes", "2"),
                ("precision", "bf16"),
                ("accum", "3"),
                ("clip", "on"),
                ("par", "zero3"),
                ("offload", "optimizer"),
                ("mb", "6"),
            ],
            &["trainer.callbacks", "model.hidden", "data.init_args"],
        );
        check(
            "model: {_component_: torchtune.models.llama3_2.lora_llama3_2_1b, lora_attn_modules: [q_proj, output_proj],\n  \
             apply_lora_to_mlp: true, lora_rank: 8, quantize_base: true}\nbatch_size: 3\ndtype: bf16\n\
             optimizer: {_component_: torch.optim.AdamW, fused: true, lr: 1.0e-4}\ntokenizer: {max_seq_len: 512}\n\
             loss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}\ncompile: true",
            &[
                ("trainer", "torchtune"),
                ("model", "llama-3.2-1b"),
                ("mb", "3"),
                ("seq", "512"),
                ("precision", "bf16"),
                ("optim", "adamw-fused"),
                ("loss", "chunked-loss"),
                ("quant", "nf4-ao"),
                ("lora_rank", "8"),
                ("lora_targets", "q_proj,o_proj,gate_proj,up_proj,down_proj"),
                ("lora_fp32", "off"),
            ],
            &["compile"],
        );
        check(
            "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 4\n\
             fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false, fsdp_offload_params: true,\n  \
             fsdp_activation_checkpointing: true, fsdp_forward_prefetch: true}",
            &[
                ("gpus", "4"),
                ("par", "fsdp2"),
                ("reshard", "off"),
                ("offload", "parameters"),
                ("ckpt", "layers"),
            ],
            &["fsdp_config.fsdp_forward_prefetch"],
        );
        check(
            "distributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 2\n\
             deepspeed_config: {zero_stage: 2, offload_optimizer_device: cpu, gradient_accumulation_steps: 4}",
            &[
                ("gpus", "2"),
                ("precision", "amp-fp16"),
                ("par", "zero2"),
                ("offload", "optimizer"),
                ("accum", "4"),
            ],
            &[],
        );
    }

    #[test]
    fn every_export_is_read_back_by_its_link() {
        /// Files that have no comments, and scripts that are the same for every scenario.
        const WITHOUT: &[&str] = &["py", "json", "md", "diff"];
        let mut dice = Dice::new(21);
        let mut read = 0;
        let made_up = (0..60).map(|_| sample::scenario(&mut dice));
        for scenario in made_up.chain([scenario(&[])]) {
            let all = export::all(&scenario, &Estimate::default());
            let files = all.into_iter().filter_map(|(_, files)| files.ok());
            for file in files.flatten() {
                let kind = file.name.rsplit('.').next().unwrap_or_default();
                let long = file.contents.contains("# Scenario: too long");
                if !WITHOUT.contains(&kind) && !long {
                    let found = linked(&file.contents).unwrap_or_default();
                    assert_eq!(found.problems, vec![], "{}", file.name);
                    assert_eq!(found.scenario, scenario, "{}", file.name);
                    read += 1;
                }
            }
        }
        assert!(read > 20, "{read}");
    }

    #[test]
    fn no_document_makes_a_reader_panic() {
        /// Keys that readers look for, with values that they do not expect.
        const KEYS: &[&str] = &[
            "trainer",
            "devices",
            "strategy",
            "init_args",
            "stage",
            "zero_optimization",
            "model",
            "_component_",
            "training",
            "training_type",
            "lora",
            "lora_r",
            "optimizer",
            "type",
            "params",
            "cutoff_len",
            "packing",
            "max_length",
            "model_type",
            "hidden_size",
            "optim",
            "bf16",
            "precision",
            "num_nodes",
            "lora_attn_modules",
            "distributed_type",
            "deepspeed_config",
            "zero_stage",
            "fsdp_config",
            "version",
            "data",
            "micro_batch",
        ];
        const WORDS: &[&str] = &[
            "",
            "auto",
            "lora_",
            "FSDP",
            "DEEPSPEED",
            "torchtune.models.x.lora_y",
            "99999999999999999999",
        ];
        fn made_up(dice: &mut Dice, depth: u64) -> Document {
            match dice.below(if depth == 0 { 5 } else { 9 }) {
                0 => Document::Null,
                1 => Document::Bool(dice.below(2) == 0),
                2 => Document::Int(
                    [0, -1, 1, i128::MAX, i128::MIN, 4_294_967_296][dice.below(6) as usize],
                ),
                3 => {
                    Document::Number([f64::NAN, f64::INFINITY, -0.0, 1e300][dice.below(4) as usize])
                }
                4 => dice.one_of(WORDS).into(),
                5 => Document::List(
                    (0..dice.below(3))
                        .map(|_| made_up(dice, depth - 1))
                        .collect(),
                ),
                _ => {
                    let mut map = Document::new();
                    for _ in 0..dice.below(8) {
                        let key = dice.one_of(KEYS);
                        map = map.with(key, made_up(dice, depth - 1));
                    }
                    map
                }
            }
        }
        let mut dice = Dice::new(4);
        for _ in 0..2000 {
            let document = made_up(&mut dice, 4);
            let imported = read(&document, &Scenario::default());
            // The scenario can be written and read back, whatever the document was.
            let link = share::write(&imported.scenario);
            assert_eq!(share::read(&link).scenario, imported.scenario);
        }
    }
}
