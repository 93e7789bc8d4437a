//! Reading what others wrote. Nothing read is trusted: every problem is a value, and sizes are bounded.

mod arithmetic;
mod command;
pub mod config;
pub mod deepspeed;
pub mod lightning;
pub mod litgpt;
mod pattern;
pub mod python;
pub mod recorded;
mod shell;
pub mod snapshot;
mod systems;
mod take;
pub mod timeline;
pub mod tools;
pub mod torchtitan;
pub mod torchtune;
pub mod unsloth;
pub mod verl;

use headroom_base::document::Document;
use headroom_scenario::share;
use headroom_scenario::{Problem, Scenario, document};

/// What a file held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    pub scenario: Scenario,
    /// Values that could not be used.
    pub problems: Vec<Problem>,
    /// Keys that say something for which a scenario has no word.
    pub not_taken: Vec<String>,
    /// What the program does otherwise than its file says.
    pub notes: Vec<String>,
    /// The file is about a model that is not known: no scenario, until somebody says which one is meant.
    pub question: Option<Problem>,
    /// The file names no model, such as DeepSpeed's or Accelerate's own: it only changes the run that it is read for.
    pub part: bool,
}

/// What a key that was not taken means for the numbers.
pub fn why_not(key: &str) -> &'static str {
    let key = key.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| key.contains(word));
    if has(WITHOUT_EFFECT) {
        "it does not change memory"
    } else if has(WITH_EFFECT) {
        "it changes memory, and is not modelled"
    } else {
        "a scenario has no word for it"
    }
}

/// Parts of keys that say how a run is watched, named or steered.
const WITHOUT_EFFECT: &[&str] = &[
    "learning_rate",
    "lr_",
    ".lr",
    "_lr",
    "log_",
    "logging",
    "wandb",
    "mlflow",
    "comet",
    "swanlab",
    "seed",
    "hub_",
    "push_to",
    "_path",
    "_dir",
    "name",
    "token",
    "template",
    "schedule",
    "beta",
    "warmup",
    "epoch",
    "max_steps",
    "metric",
    "profil",
    "dataset",
    "data_files",
    "shuffle",
    "val_set",
    "report_to",
    "weight_decay",
    "early_stopping",
    "label",
    "strict",
    "debug",
    "timeout",
    "processes",
    "num_proc",
    "save_",
    "alpha",
    "temperature",
    "top_p",
];
/// Parts of keys that add or remove tensors.
const WITH_EFFECT: &[&str] = &[
    "plugin",
    "8bit",
    "vllm",
    "tuner",
    "stage",
    "freeze_",
    "quant",
    "fsdp",
    "deepspeed",
    "adapter",
    "lora",
    "galore",
    "freeze",
    "unfrozen",
    "compile",
    "parallel",
    "attention",
    "batch",
    "pack",
    "cache",
    "offload",
    "reward",
    "rl",
    "ref_model",
    "ema",
    "kernel",
    "fused",
    "fp8",
    "precision",
    "optim",
    "checkpoint",
    "vision",
    "image",
    "mm_",
    "resize",
    "modules_to_save",
    "target",
    "group_size",
    "loss",
    "liger",
    "cut_cross",
    "expert",
    "moe",
    "sequence",
    "length",
    "num_generations",
    "generations",
];

/// The scenario of a file that Headroom wrote, from the link in its head: exact, whatever the file's form.
pub fn linked(text: &str) -> Option<Imported> {
    let mut links = text
        .lines()
        .take(20)
        .filter_map(|line| line.strip_prefix("# Scenario: "));
    let link = links.find(|link| link.starts_with("#v="))?;
    let opened = share::read(link);
    Some(Imported {
        scenario: opened.scenario,
        problems: opened.problems,
        ..Imported::default()
    })
}

/// What a shell script trains, where it calls a program whose flags are known.
pub fn script(text: &str, run: &Scenario) -> Option<Imported> {
    systems::script(text)
        .or_else(|| python::script(text, run))
        .or_else(|| command::script(text, run))
}

/// The scenario of a document, whichever program wrote it. A file that names no model is taken for a part of `run`.
pub fn read(read: &Document, run: &Scenario) -> Imported {
    known(read, run).unwrap_or_else(|| {
        let (scenario, problems) = document::read(read);
        Imported {
            scenario,
            problems,
            ..Imported::default()
        }
    })
}

/// The same where a program is known that writes such documents.
pub fn known(read: &Document, run: &Scenario) -> Option<Imported> {
    if let Some(code) = python::notebook(read) {
        return python::script(&code, run);
    }
    let (_, take) = READERS.iter().find(|(recognises, _)| recognises(read))?;
    Some(match take {
        Says::Run(take) => take(read),
        Says::Part(take) => take(read, run),
    })
}

/// Whether a document is a program's, and what it says.
type Reader = (fn(&Document) -> bool, Says);

/// What a program's file may be about.
enum Says {
    /// A whole run.
    Run(fn(&Document) -> Imported),
    /// A run, or a part of the one that it is read for.
    Part(fn(&Document, &Scenario) -> Imported),
}

/// Programs whose files are known, those with the surest marks first.
const READERS: &[Reader] = &[
    (recorded::recognises, Says::Run(recorded::read)),
    (systems::recognises, Says::Run(systems::read)),
    (config::recognises, Says::Run(config::read)),
    (config::timm::recognises, Says::Run(config::timm::read)),
    (torchtune::recognises, Says::Run(torchtune::read)),
    (torchtitan::recognises, Says::Run(torchtitan::read)),
    (verl::recognises, Says::Run(verl::read)),
    (litgpt::recognises, Says::Run(litgpt::read)),
    (lightning::recognises, Says::Part(lightning::read)),
    (deepspeed::recognises, Says::Part(deepspeed::read)),
    (unsloth::recognises, Says::Run(unsloth::read)),
    (tools::recognises, Says::Part(tools::read)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export;
    use headroom_base::document::yaml;
    use headroom_core::estimate::Estimate;
    use headroom_scenario::sample::{self, Dice};
    use headroom_scenario::{settings, stack};

    fn scenario(changes: &[(&str, &str)]) -> Scenario {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            let chosen =
                settings::named(name).map(|setting| stack::choose(setting, &mut scenario, value));
            assert_eq!(chosen, Some(Ok(())), "{name}");
        }
        scenario
    }

    #[test]
    fn what_other_tools_say_is_taken_and_the_rest_is_listed() {
        #[track_caller]
        fn check(text: &str, changes: &[(&str, &str)], not_taken: &[&str]) {
            let imported = read(&yaml::read(text).unwrap(), &Scenario::default());
            assert_eq!(imported.problems, vec![]);
            assert_eq!(imported.question, None);
            assert_eq!(imported.scenario, scenario(changes));
            assert_eq!(imported.not_taken, not_taken);
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
                ("quant", "nf4-double"),
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
            // Whatever was read, what was made of it is a scenario that can be written and read.
            let link = share::write(&imported.scenario);
            assert_eq!(share::read(&link).scenario, imported.scenario);
        }
    }
}
