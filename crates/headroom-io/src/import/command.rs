//! A training program's command line: its flags are the keys of the configuration files that it also reads.

use super::shell::{self, Command};
use super::{Imported, allocator, tools, verl};
use headroom_base::document::Document;
use headroom_scenario::Scenario;

/// The run of the first call of a known program in a shell script. One that names no model changes `run`.
pub fn script(text: &str, run: &Scenario) -> Option<Imported> {
    let commands = shell::commands(text);
    if let Some(imported) = commands.iter().find_map(of_verl) {
        return Some(imported);
    }
    let mut calls = commands.iter().filter_map(Call::of);
    let call = calls.next()?;
    let more = calls.count();
    let mut imported = tools::read(&call.document(), run);
    allocator(&mut imported, &call.command.environment);
    if more > 0 {
        imported
            .notes
            .push(format!("{more} more calls in this script are ignored"));
    }
    for file in call.files() {
        imported
            .notes
            .push(format!("{file} is not read: import it separately"));
    }
    if call.gpus() == 1 && call.visible() > 1 {
        imported.notes.push(format!(
            "one process places the model's layers on {} GPUs: this is not modelled, and the estimate is for a single GPU",
            call.visible()
        ));
    }
    Some(imported)
}

/// The run of a verl command, whose words are the keys of its configuration.
fn of_verl(command: &Command) -> Option<Imported> {
    let words = &command.words;
    let at = words.iter().position(|word| {
        word.starts_with("verl.trainer.")
            || word.ends_with("_sft_trainer.py")
            || word.contains("main_ppo")
    })?;
    let (before, arguments) = words.split_at(at + 1);
    let mut document = verl::document(arguments);
    if !verl::recognises(&document) {
        return None;
    }
    // The name of its configuration tells which engine trains the policy.
    if words.iter().any(|word| word.contains("megatron_trainer")) {
        *document.at("actor_rollout_ref.actor.strategy".split('.')) = "megatron".into();
    }
    // `torchrun` has the number of processes.
    for (started, key) in [("nproc_per_node", "n_gpus_per_node"), ("nnodes", "nnodes")] {
        let arguments = pairs(before).into_iter().find(|(name, _)| name == started);
        if let Some((_, count @ Document::Int(_))) = arguments {
            *document.at(["trainer", key].into_iter()) = count;
        }
    }
    Some(verl::read(&document))
}

/// One command that trains.
struct Call<'a> {
    command: &'a Command,
    /// The launcher's words, and the program's.
    before: &'a [String],
    flags: &'a [String],
    program: Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Swift,
    /// ms-swift on Megatron-Core.
    Megatron,
    /// Any script with transformers' `TrainingArguments`, including TRL's.
    Trainer,
}

impl<'a> Call<'a> {
    fn of(command: &'a Command) -> Option<Self> {
        let words = &command.words;
        let (at, program) = words.iter().enumerate().find_map(|(at, word)| {
            let name = word.rsplit('/').next().unwrap_or(word);
            let next = words.get(at + 1).map(String::as_str);
            match (name, next) {
                ("swift", Some("sft" | "pt" | "rlhf")) => Some((at + 1, Program::Swift)),
                ("megatron", Some("sft" | "pt" | "rlhf")) => Some((at + 1, Program::Megatron)),
                ("trl", Some("sft" | "dpo" | "grpo" | "kto" | "rloo" | "reward")) => {
                    Some((at + 1, Program::Trainer))
                }
                (script, _) if is_python(script) && word.contains("swift/cli/") => {
                    Some((at, Program::Swift))
                }
                (script, _) if is_python(script) => Some((at, Program::Trainer)),
                _ => None,
            }
        })?;
        let (before, flags) = words.split_at(at + 1);
        let names_model = |flag: &String| {
            ["--model", "--model_name_or_path"]
                .iter()
                .any(|name| flag == name || flag.starts_with(&format!("{name}=")))
        };
        let known = match program {
            Program::Trainer => flags
                .iter()
                .any(|flag| flag.starts_with("--model_name_or_path")),
            _ => flags.iter().any(names_model),
        };
        known.then_some(Self {
            command,
            before,
            flags,
            program,
        })
    }

    /// The equivalent configuration file.
    fn document(&self) -> Document {
        let mut arguments = pairs(self.flags);
        let has = |key: &str, arguments: &[(String, Document)]| {
            arguments.iter().any(|(name, _)| name == key)
        };
        match self.program {
            // Its default (ms-swift 4.6 docs, Command-line-parameters.md); files from before version 4 have `train_type`.
            Program::Swift if !has("tuner_type", &arguments) && !has("train_type", &arguments) => {
                arguments.push(("tuner_type".into(), "lora".into()));
            }
            Program::Megatron => arguments.push(("trainer".into(), "megatron".into())),
            _ => {}
        }
        let task = self.before.last().map(String::as_str).unwrap_or_default();
        let task = task.rsplit('/').next().unwrap_or(task);
        if let Some(task) = match task.strip_suffix(".py").unwrap_or(task) {
            "dpo" => Some("dpo"),
            "grpo" => Some("grpo"),
            "kto" => Some("kto"),
            "rloo" => Some("rloo"),
            "reward" | "reward_modeling" => Some("rm"),
            "orpo" => Some("orpo"),
            "cpo" => Some("cpo"),
            "gkd" => Some("gkd"),
            _ => None,
        } {
            arguments.push(("rl".into(), task.into()));
        }
        if self.gpus() > 1 {
            arguments.push(("num_processes".into(), self.gpus().into()));
        }
        if self.nodes() > 1 {
            arguments.push(("num_machines".into(), self.nodes().into()));
        }
        arguments
            .into_iter()
            .fold(Document::new(), |all, (key, value)| all.with(key, value))
    }

    /// Processes of all machines.
    fn gpus(&self) -> u32 {
        let each = self
            .variable("NPROC_PER_NODE")
            .or_else(|| self.started("nproc_per_node"));
        let all = self.started("num_processes");
        all.unwrap_or_else(|| each.unwrap_or(1).saturating_mul(self.nodes()))
    }

    fn nodes(&self) -> u32 {
        let nodes = self.variable("NNODES").or_else(|| self.started("nnodes"));
        nodes.or_else(|| self.started("num_machines")).unwrap_or(1)
    }

    /// GPUs that are visible to the program, if its environment limits them.
    fn visible(&self) -> usize {
        self.environment("CUDA_VISIBLE_DEVICES")
            .map_or(1, |all| all.split(',').count())
    }

    fn environment(&self, name: &str) -> Option<&str> {
        let mut all = self.command.environment.iter();
        let found = all.find(|(variable, _)| variable == name);
        found.map(|(_, value)| value.as_str())
    }

    fn variable(&self, name: &str) -> Option<u32> {
        self.environment(name)?
            .parse()
            .ok()
            .filter(|count| *count > 0)
    }

    /// A number among the launcher's options, `torchrun`'s or `accelerate launch`'s.
    fn started(&self, name: &str) -> Option<u32> {
        let arguments = pairs(self.before);
        let (_, value) = arguments.iter().find(|(key, _)| key == name)?;
        match value {
            Document::Int(count) => u32::try_from(*count).ok().filter(|count| *count > 0),
            _ => None,
        }
    }

    /// Configuration files that the command names.
    fn files(&self) -> Vec<&str> {
        let ends = |word: &&String| {
            [".yaml", ".yml", ".json"]
                .iter()
                .any(|end| word.ends_with(end))
        };
        let words = self.command.words.iter().filter(ends);
        words.map(String::as_str).collect()
    }
}

fn is_python(word: &str) -> bool {
    word.strip_suffix(".py").is_some()
}

/// Flags with their values: none is a switch that is on, several are a list. The last of equal flags holds.
fn pairs(words: &[String]) -> Vec<(String, Document)> {
    let mut all: Vec<(String, Document)> = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
            continue;
        };
        let (name, first) = flag
            .split_once('=')
            .map_or((flag, None), |(name, value)| (name, Some(value)));
        let mut values: Vec<Document> = first.map(value).into_iter().collect();
        while let Some(next) = words.next_if(|next| first.is_none() && !next.starts_with("--")) {
            values.push(value(next));
        }
        // An expansion that is known only at run time.
        if values.iter().any(|value| *value == "".into()) {
            continue;
        }
        let arguments = match values.len() {
            0 => Document::Bool(true),
            1 => values.remove(0),
            _ => Document::List(values),
        };
        let name = name.replace('-', "_");
        all.retain(|(other, _)| *other != name);
        all.push((name, arguments));
    }
    all
}

fn value(word: &str) -> Document {
    match word {
        "true" | "True" => Document::Bool(true),
        "false" | "False" => Document::Bool(false),
        _ => match word.parse::<i128>() {
            Ok(whole) => Document::Int(whole),
            Err(_) => word.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    #[test]
    fn commands_say_what_files_say() {
        #[track_caller]
        fn check(text: &str, expected: &[(&str, &str)]) {
            let imported = script(text, &Scenario::default()).unwrap();
            assert_eq!((&imported.problems, &imported.question), (&vec![], &None));
            for (key, value) in expected {
                let setting = settings::named(key).unwrap();
                assert_eq!(setting.get(&imported.scenario), *value, "{key} of {text}");
            }
        }
        check(
            "nproc_per_node=2\nNPROC_PER_NODE=$nproc_per_node torchrun swift/cli/sft.py --model Qwen/Qwen2.5-7B-Instruct \
             --gradient_accumulation_steps $(expr 16 / $nproc_per_node) --tuner_type full",
            &[("gpus", "2"), ("accum", "8"), ("mb", "1"), ("lora", "off")],
        );
        check(
            "swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct --tuner_type full",
            &[
                ("task", "dpo"),
                ("task_head", "logits"),
                ("lora", "off"),
                ("mb", "1"),
            ],
        );
        check(
            "accelerate launch --num_processes 8 --config_file zero3.yaml examples/scripts/dpo.py \
             --model_name_or_path=Qwen/Qwen2-0.5B-Instruct --dataset_name x --gradient_checkpointing --per_device_train_batch_size 4",
            &[
                ("model", "qwen2-0.5b"),
                ("task", "dpo"),
                ("gpus", "8"),
                ("mb", "4"),
                ("ckpt", "layers"),
            ],
        );
    }

    #[test]
    fn other_commands_are_left_to_others() {
        for text in [
            "echo hello",
            "swift infer --model a",
            "python train.py --batch_size 2",
            "swift sft",
        ] {
            assert!(script(text, &Scenario::default()).is_none(), "{text}");
        }
    }
}
