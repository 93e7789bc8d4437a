//! Programs with commands of their own.

use super::launch::{Count, Launch, Launcher, every_visible, product, torch_like};
use super::options::Options;
use super::{Command, Word};

/// How a program's command chooses its GPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gpus {
    /// One process.
    One,
    /// Every visible GPU.
    Visible,
    /// `NPROC_PER_NODE` and `NNODES` of the environment, otherwise one process.
    Environment,
    /// The same, otherwise every visible GPU.
    EnvironmentOrVisible,
    /// torchrun's options behind the command's name.
    Torchrun,
    /// An argument of the program decides; its reader knows.
    Argument,
}

/// A command, the words that may follow it to start training, and its GPUs.
const PROGRAMS: &[(&str, &[&str], Gpus)] = &[
    (
        "axolotl",
        &["train", "fine-tune", "fine_tune"],
        Gpus::Visible,
    ),
    ("llamafactory-cli", &["train"], Gpus::EnvironmentOrVisible),
    ("lmf", &["train"], Gpus::EnvironmentOrVisible),
    ("swift", &["sft", "pt", "rlhf"], Gpus::Environment),
    ("megatron", &["sft", "pt", "rlhf"], Gpus::Environment),
    ("xtuner", &["train"], Gpus::Environment),
    ("tune", &["run"], Gpus::Torchrun),
    (
        "litgpt",
        &[
            "finetune",
            "finetune_lora",
            "finetune_full",
            "finetune_adapter",
            "finetune_adapter_v2",
            "pretrain",
        ],
        Gpus::Argument,
    ),
    ("yolo", &[], Gpus::One),
    ("composer", &[], Gpus::Torchrun),
    ("colossalai", &["run"], Gpus::Torchrun),
    ("fabric", &["run"], Gpus::Torchrun),
    ("lightning", &["run", "fit"], Gpus::Torchrun),
    ("autotrain", &[], Gpus::Visible),
    (
        "trl",
        &["sft", "dpo", "kto", "grpo", "reward", "rloo", "orpo", "ppo"],
        Gpus::Visible,
    ),
    ("oumi", &["train"], Gpus::One),
    ("mim", &["train"], Gpus::Argument),
    ("nemo", &["llm"], Gpus::Argument),
    ("automodel", &[], Gpus::Argument),
    ("fairseq-train", &[], Gpus::Visible),
    ("fairseq-hydra-train", &[], Gpus::Argument),
    ("ns-train", &[], Gpus::One),
    ("nnUNetv2_train", &[], Gpus::One),
    ("open_clip_train", &[], Gpus::One),
    ("levanter", &[], Gpus::Argument),
    ("flair", &[], Gpus::One),
    ("onmt_train", &[], Gpus::One),
    ("allennlp", &["train"], Gpus::One),
    ("spacy", &["train"], Gpus::One),
    ("unsloth", &["train", "finetune"], Gpus::One),
];

/// A launch of a program's own command. A `project` installs commands of any name.
pub(super) fn program(
    command: &Command,
    first: &Word,
    rest: &[Word],
    project: bool,
) -> Option<Launch> {
    let name = first.text.rsplit('/').next().unwrap_or(&first.text);
    let known = PROGRAMS.iter().find(|(known, _, _)| *known == name);
    let Some((_, verbs, gpus)) = known else {
        let plain = first.unknown.is_none() && !first.text.starts_with(['-', '$', '<']);
        let tools = [
            "pip",
            "python",
            "pytest",
            "ruff",
            "sync",
            "hf",
            "huggingface-cli",
            "mkdocs",
            "pre-commit",
            "jupyter",
        ];
        if !project || !plain || rest.is_empty() || tools.contains(&name) {
            return None;
        }
        return Some(own(
            first.clone(),
            rest.to_vec(),
            Count::Unknown(format!("{name} decides")),
            None,
        ));
    };
    if name == "oumi" && rest.first().is_some_and(|word| word.text == "distributed") {
        return oumi(command, rest.get(1..)?);
    }
    // `swift sft`, `yolo detect train`; the first word that is no option.
    let verb = rest
        .iter()
        .find(|word| !word.text.starts_with('-'))
        .map(|word| word.text.as_str());
    if !verbs.is_empty() && !verb.is_some_and(|verb| verbs.contains(&verb)) {
        return None;
    }
    if name == "yolo" {
        return yolo(first, rest);
    }
    let environment = |name: &str| {
        let word = command.environment.get(name)?;
        Some(match &word.unknown {
            Some(why) => Err(why.clone()),
            None => word.text.parse::<u64>().map_err(|_| word.text.clone()),
        })
    };
    let nodes = environment("NNODES").unwrap_or(Ok(1));
    let every = format!("{name} takes every visible GPU");
    let per_node = match gpus {
        Gpus::Torchrun => return torch(command, first, rest, name),
        Gpus::One => Ok(1),
        Gpus::Argument => Err(format!("an argument of {name} decides")),
        Gpus::Visible => match Options::all(rest).number(&["num_processes"]) {
            Some(count) => Ok(count),
            None => every_visible(command, &every),
        },
        Gpus::Environment => environment("NPROC_PER_NODE").unwrap_or(Ok(1)),
        Gpus::EnvironmentOrVisible => {
            environment("NPROC_PER_NODE").unwrap_or_else(|| every_visible(command, &every))
        }
    };
    let known = per_node.is_ok();
    Some(own(
        first.clone(),
        rest.to_vec(),
        product(per_node, &nodes),
        nodes.ok().filter(|_| known),
    ))
}

fn own(program: Word, arguments: Vec<Word>, gpus: Count, nodes: Option<u64>) -> Launch {
    Launch {
        launcher: Launcher::Program,
        gpus,
        nodes,
        program,
        arguments,
        config: None,
        options: Vec::new(),
    }
}

/// `tune run --nproc_per_node 4 RECIPE`, `composer -n 8 train.py`: options of torchrun behind the name.
fn torch(command: &Command, first: &Word, rest: &[Word], name: &str) -> Option<Launch> {
    let verb = usize::from(matches!(
        name,
        "tune" | "colossalai" | "fabric" | "lightning"
    ));
    let switches = [
        "standalone",
        "m",
        "module",
        "v",
        "verbose",
        "rdzv_conf_only",
        "use_env",
    ];
    let (mut options, program, arguments) = Options::before_program(rest.get(verb..)?, &switches)?;
    for (option, _) in &mut options.all {
        if matches!(option.as_str(), "n" | "nproc" | "devices") && name != "tune" {
            *option = "nproc_per_node".into();
        } else if option == "num_nodes" {
            *option = "nnodes".into();
        }
    }
    let said = options.get(&["nproc_per_node"]).is_some();
    let world = options.number(&["world_size"]);
    let mut launch = torch_like(
        command,
        options,
        program.clone(),
        arguments,
        Launcher::Program,
    );
    if name == "composer" && !said {
        launch.gpus = every_visible(command, "composer takes every visible GPU")
            .map_or_else(Count::Unknown, Count::Known);
    }
    if let Some(world) = world {
        launch.gpus = Count::Known(world);
    }
    if name == "tune" || name == "composer" {
        // The recipe is the first argument, as the command names the program.
        if name == "tune" {
            launch.arguments.insert(0, program);
            launch.program = first.clone();
        }
    }
    Some(launch)
}

/// `oumi distributed torchrun --nproc_per_node=8 -m oumi train -c x.yaml`.
fn oumi(command: &Command, rest: &[Word]) -> Option<Launch> {
    let switches = ["m", "module", "standalone", "multi_gpu", "use_fsdp"];
    let (options, program, arguments) = Options::before_program(rest.get(1..)?, &switches)?;
    let mut launch = torch_like(command, options, program, arguments, Launcher::Program);
    if let Some((_, processes)) = launch
        .options
        .iter()
        .find(|(name, _)| name == "num_processes")
    {
        launch.gpus = processes
            .text
            .parse()
            .map_or_else(|_| Count::Unknown(processes.text.clone()), Count::Known);
    }
    Some(launch)
}

/// `yolo detect train data=x.yaml device=0,1`.
fn yolo(first: &Word, rest: &[Word]) -> Option<Launch> {
    let train = rest
        .iter()
        .any(|word| matches!(word.text.as_str(), "train" | "mode=train"));
    if !train {
        return None;
    }
    let device = rest
        .iter()
        .find_map(|word| word.text.strip_prefix("device="));
    let count = device.map_or(1, |device| {
        let plain = device.trim_matches(['[', ']', '"', '\'']);
        plain
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .count()
            .max(1) as u64
    });
    Some(own(
        first.clone(),
        rest.to_vec(),
        Count::Known(count),
        Some(1),
    ))
}

/// `tools/dist_train.sh CONFIG GPUS …` and `tools/slurm_train.sh PARTITION JOB CONFIG …` of mmengine's projects.
pub(super) fn script_of_mmengine(command: &Command, path: &Word, rest: &[Word]) -> Option<Launch> {
    let (folder, name) = path.text.rsplit_once('/').unwrap_or((".", &path.text));
    let (config, gpus, after) = match name {
        "dist_train.sh" => (rest.first()?, rest.get(1), 2),
        "slurm_train.sh" => (rest.get(2)?, command.environment.get("GPUS"), 3),
        _ => return None,
    };
    let number = |word: Option<&Word>, default: Result<u64, String>| match word {
        None => default,
        Some(Word {
            unknown: Some(why), ..
        }) => Err(why.clone()),
        Some(word) => word.text.parse().map_err(|_| word.text.clone()),
    };
    let slurm = name == "slurm_train.sh";
    let gpus = number(
        gpus,
        if slurm {
            Ok(8)
        } else {
            Err("the number of GPUs is missing".into())
        },
    );
    let nodes = number(command.environment.get("NNODES"), Ok(1));
    let mut arguments = vec![config.clone()];
    arguments.extend(rest.get(after..).unwrap_or_default().iter().cloned());
    Some(Launch {
        launcher: if slurm {
            Launcher::Srun
        } else {
            Launcher::Torchrun
        },
        gpus: if slurm {
            gpus.map_or_else(Count::Unknown, Count::Known)
        } else {
            product(gpus, &nodes)
        },
        nodes: if slurm { None } else { nodes.ok() },
        program: Word {
            text: format!("{folder}/train.py"),
            unknown: None,
        },
        arguments,
        config: None,
        options: Vec::new(),
    })
}
