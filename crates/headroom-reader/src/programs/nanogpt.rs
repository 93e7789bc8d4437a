//! nanoGPT: `config/*.py` and `train.py` with `--key=value`.
//!
//! Defaults are the constants at the head of `train.py`; of the shipped files those of `config/`.

use headroom_scripts::python::Value;
use headroom_scripts::shell::{Count, Launch};

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{
    Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "nanogpt",
    name: "nanoGPT",
    read,
};

/// `train.py`'s constants.
const DEFAULTS: &[(&str, u64)] = &[
    ("batch_size", 12),
    ("block_size", 1024),
    ("gradient_accumulation_steps", 40),
    ("n_layer", 12),
    ("n_head", 12),
    ("n_embd", 768),
];

/// What the files of `config/` say, where only their name is known.
const SHIPPED: &[(&str, &[(&str, &str)])] = &[
    (
        "train_gpt2.py",
        &[
            ("batch_size", "12"),
            ("block_size", "1024"),
            ("gradient_accumulation_steps", "40"),
        ],
    ),
    (
        "train_shakespeare_char.py",
        &[
            ("batch_size", "64"),
            ("block_size", "256"),
            ("gradient_accumulation_steps", "1"),
            ("n_layer", "6"),
            ("n_head", "6"),
            ("n_embd", "384"),
            ("dataset", "shakespeare_char"),
        ],
    ),
    (
        "finetune_shakespeare.py",
        &[
            ("batch_size", "1"),
            ("gradient_accumulation_steps", "32"),
            ("init_from", "gpt2-xl"),
        ],
    ),
];

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Python { module, launch } => {
            let keys = of_names(&module.names);
            let marks = [
                "eval_interval",
                "max_iters",
                "wandb_project",
                "always_save_checkpoint",
                "eval_only",
                "lr_decay_iters",
            ];
            let marked = marks.iter().filter(|key| keys.has(key)).count() >= 2;
            let own = marked && keys.has("batch_size") && !source.text.contains("import torch");
            // A copy of `train.py` itself has the same constants.
            let script = keys.has("init_from")
                && keys.has("gradient_accumulation_steps")
                && source.text.contains("GPTConfig");
            (own || script).then(|| of(&keys, launch.as_ref(), source.text))
        }
        Form::Command { launch, flags } => {
            let file = launch.program.text.rsplit('/').next()?;
            let config = launch.arguments.iter().find_map(|word| {
                let path = word.text.as_str();
                (path.strip_suffix(".py").is_some() && !path.starts_with('-')).then_some(path)
            });
            let marked = ["init_from", "block_size", "n_layer"]
                .iter()
                .any(|key| flags.has(key));
            if file != "train.py"
                || !(marked || config.is_some_and(|path| path.starts_with("config/")))
            {
                return None;
            }
            let mut keys = Keys::default();
            let text = config.and_then(|path| source.beside.text(path));
            if let Some(text) = &text {
                let module = headroom_scripts::python::evaluate(text, &[], source.beside);
                keys = of_names(&module.names);
            } else if let Some(path) = config {
                let name = path.rsplit('/').next().unwrap_or(path);
                if let Some((_, known)) = SHIPPED.iter().find(|(file, _)| *file == name) {
                    for (key, value) in *known {
                        keys.set(key, (*value).into());
                    }
                }
            }
            keys.overlay(flags);
            Some(of(&keys, Some(launch), ""))
        }
        Form::Document(_) => None,
    }
}

fn of_names(names: &[(String, Value)]) -> Keys {
    let mut keys = Keys::default();
    for (name, value) in names {
        match value {
            Value::Int(value) => keys.set(name, headroom_base::document::Document::Int(*value)),
            Value::Float(value) => keys.set(name, (*value).into()),
            Value::Bool(value) => keys.set(name, (*value).into()),
            Value::Text(value) => keys.set(name, value.as_str().into()),
            Value::Unknown(why) => keys.set_unknown(name, why.clone()),
            _ => {}
        }
    }
    keys
}

fn of(keys: &Keys, launch: Option<&Launch>, text: &str) -> Facts {
    if keys.switch("eval_only").value() == Some(&true) {
        return Facts::refuse("eval_only: it evaluates and trains nothing");
    }
    let mut facts = Facts::of("torch");
    let whole = |name: &str| {
        let default = DEFAULTS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, value)| *value);
        keys.whole(name).or_default(default, "nanoGPT's train.py")
    };
    facts.micro_batch = whole("batch_size");
    facts.sequence = whole("block_size");
    model(keys, &whole, &mut facts);
    let said = launch.map(|launch| &launch.gpus);
    facts.gpus = match said {
        Some(Count::Known(count)) => Fact::read(*count, "the launcher"),
        Some(Count::Unknown(why)) => Fact::Unknown(why.clone()),
        None => match written(text) {
            Some(count) => Fact::read(count, "its command in a comment"),
            None => Fact::default_of(1, "nanoGPT's `python train.py`"),
        },
    };
    let several = facts.gpus.value().is_none_or(|gpus| *gpus > 1);
    let data = if several {
        DataParallel::Ddp
    } else {
        DataParallel::None
    };
    facts.strategy = Fact::follows(Strategy::from(data), "nanoGPT's train.py");
    // `train.py` divides the steps over the processes.
    let steps = whole("gradient_accumulation_steps");
    let gpus = facts.gpus.value().copied();
    facts.accumulation = match gpus {
        Some(1) | None => steps,
        Some(_) => common::divided(&steps, gpus, "gradient_accumulation_steps"),
    };
    facts.weights = Fact::default_of(Weights::Fp32, "nanoGPT");
    facts.compute = keys
        .text("dtype")
        .or_default("bfloat16".into(), "nanoGPT's dtype where the GPU has bf16")
        .and_then(|name| {
            Some(match name.as_str() {
                "bfloat16" => Compute::Bf16Autocast,
                "float16" => Compute::Fp16Autocast,
                "float32" => Compute::Tf32,
                _ => return None,
            })
        });
    common::trains_all(&mut facts);
    facts.optimizer = Fact::default_of("adamw".into(), "nanoGPT");
    facts.checkpointing = Fact::default_of(Checkpointing::Off, "nanoGPT");
    facts.attention = Fact::default_of(Attention::Sdpa, "nanoGPT");
    facts.packing = Fact::default_of(true, "nanoGPT");
    facts.compile = keys.switch("compile").or_default(true, "nanoGPT's compile");
    facts.evaluation = Fact::default_of(true, "nanoGPT");
    facts.offload = Fact::default_of(Offload::None, "nanoGPT");
    facts
}

fn model(keys: &Keys, whole: &dyn Fn(&str) -> Fact<u64>, facts: &mut Facts) {
    let start = keys
        .text("init_from")
        .or_default("scratch".into(), "nanoGPT's init_from");
    match start.value().map(String::as_str) {
        Some(name) if name.starts_with("gpt2") => {
            facts.model = start;
            facts.task = Fact::follows(Task::Sft, "init_from");
        }
        Some("resume") => {
            facts.model = Fact::Unknown("init_from: resume takes the sizes of a checkpoint".into());
            facts.task = Fact::follows(Task::Pretraining, "init_from");
        }
        Some(_) => {
            facts.task = Fact::follows(Task::Pretraining, "init_from");
            let size = |name: &str| whole(name).value().copied();
            let (Some(layers), Some(hidden), Some(heads)) =
                (size("n_layer"), size("n_embd"), size("n_head"))
            else {
                return;
            };
            // Characters have a small table of their own; else train.py takes GPT-2's tokens, padded.
            let characters = keys
                .text("dataset")
                .value()
                .is_some_and(|name| name.ends_with("_char"));
            let biased = keys.switch("bias").value() == Some(&true);
            let shape = Shape {
                blocks: if biased {
                    Blocks::Gpt2
                } else {
                    Blocks::Own("GPT-2 without biases")
                },
                layers,
                hidden,
                heads,
                kv: None,
                ffn: Some(hidden.saturating_mul(4)),
                vocabulary: Some(if characters { 65 } else { 50_304 }),
                tied: None,
                positions: size("block_size"),
                experts: None,
            };
            common::shaped(facts, shape, "n_layer, n_embd, …");
        }
        None => facts.model = Fact::Unknown("init_from is not known".into()),
    }
}

/// `# $ torchrun --standalone --nproc_per_node=8 train.py config/train_gpt2.py`.
fn written(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("nproc_per_node"))?;
    let (_, rest) = line.split_once("nproc_per_node")?;
    let digits: String = rest
        .trim_start_matches(['=', ' '])
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn constants_replace_those_of_the_script() {
        let config = "
# $ torchrun --standalone --nproc_per_node=4 train.py config/own.py
wandb_project = 'owt'
batch_size = 16
gradient_accumulation_steps = 5 * 8
max_iters = 100
n_layer = 6
";
        check(
            "own.py",
            config,
            &[
                ("outcome", "estimate"),
                (
                    "model",
                    "GPT-2 without biases 6 layers × 768, 12 heads, vocabulary 50304",
                ),
                ("gpus", "4"),
                ("strategy", "ddp"),
                ("accumulation", "10"),
                ("sequence", "1024"),
            ],
        );
        let command =
            "python train.py config/finetune_shakespeare.py --batch_size=2 --dtype=float16";
        check(
            "run.sh",
            command,
            &[
                ("model", "gpt2-xl"),
                ("task", "sft"),
                ("micro_batch", "2"),
                ("compute", "fp16 autocast"),
                ("gpus", "1"),
            ],
        );
        let measured = "eval_only = True\nbatch_size = 8\nwandb_log = False\nmax_iters = 1";
        check("eval.py", measured, &[("outcome", "refuse")]);
    }
}
