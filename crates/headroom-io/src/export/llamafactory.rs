//! LLaMA-Factory: its file and the description of the data.

use super::common::{PLACE_IN_VARIABLES, file, hub_name, launch_on_each, machines};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target, deepspeed, task, trainer};
use headroom_base::document::{Document, Entry};
use headroom_base::document::{json, yaml};
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Attention, BesideType, Checkpointing, LmHead, Objective, Precision, Problem, Scenario,
};

pub(super) const TARGET: Target = Target {
    id: "llama-factory",
    title: "LLaMA-Factory",
    versions: "llamafactory 0.9.5",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let asked = trainer::asked_for_task(
        scenario,
        trainer::ADAPTERS,
        Precision::ALL,
        &deepspeed::LAYOUTS,
    );
    let own_loss = task::has_own_loss(&training.task);
    let asked = if own_loss {
        // Its one switch then leaves the loss alone.
        asked
    } else {
        trainer::with_one_switch(scenario, asked)
    };
    let stage = Stage::of(scenario);
    let mut problems = refuse::low_rank(scenario);
    problems.extend(precision(scenario));
    let (asked, stage) = match (asked, stage) {
        (Ok(asked), Ok(stage)) if problems.is_empty() => (asked, stage),
        (asked, stage) => {
            let asked = asked.err().unwrap_or_default();
            return Err([asked, stage.err().into_iter().collect(), problems].concat());
        }
    };
    let attention = match training.attention {
        Attention::Sdpa => "sdpa",
        Attention::Eager => "disabled",
        Attention::Flash2 => "fa2",
    };
    let checkpointing = training.checkpointing != Checkpointing::None;
    let packing = !own_loss && !scenario.data.padding_mask;
    let cutoff = scenario.data.sequence.saturating_add(packing.into());
    let mut document = Document::new()
        .with_note(
            "model_name_or_path",
            hub_name(scenario),
            "a Hugging Face name or a folder",
        )
        .with("flash_attn", attention)
        .with("stage", stage.name)
        .and(stage.arguments)
        .with("do_train", true)
        .with("dataset", "train")
        .with("dataset_dir", ".");
    document = if own_loss {
        document.with("cutoff_len", cutoff)
    } else {
        document
            .with_note("cutoff_len", cutoff, "packing takes one off")
            .with_note("packing", packing, "true: no batch has padding")
    };
    document = document
        .with_note(
            "disable_gradient_checkpointing",
            !checkpointing,
            "it is on unless disabled",
        )
        .with("use_reentrant_gc", false)
        .with("pure_bf16", training.precision == Precision::Bf16);
    document = match &training.lora {
        None => document.with("finetuning_type", "full"),
        Some(lora) => document
            .with("finetuning_type", "lora")
            .with("lora_rank", lora.rank)
            .with("lora_alpha", lora.rank.saturating_mul(2))
            .with("lora_dropout", lora.dropout)
            .with("lora_target", lora.targets.join(","))
            .and(trainer::beside(lora, "additional_target", "use_dora")),
    };
    if let Some(double) = trainer::four_bits(scenario) {
        document = document
            .with("quantization_bit", 4_u64)
            .with("quantization_type", "nf4")
            .with("double_quantization", double);
    }
    if asked.liger.is_used() {
        document = document.with("enable_liger_kernel", true);
    }
    if let Layout::Zero(_) = asked.layout {
        document = document.with("deepspeed", deepspeed::FILE);
    }
    let mut document = document.and(trainer::arguments(scenario, &asked));
    if let Document::Map(entries) = &mut document {
        // Checkpointing and Liger have their own words here.
        let own = |entry: &Entry| {
            entry.key.starts_with("gradient_checkpointing") || entry.key == "use_liger_kernel"
        };
        entries.retain(|entry| !own(entry));
    }
    let mut data = Document::new().with("file_name", "train.jsonl");
    if stage.ranks {
        data = data.with("ranking", true);
    }
    let data = data.with("columns", stage.columns);
    let data = json::write(&Document::new().with("train", data));
    let header = header(&TARGET, scenario, estimate);
    let config = yaml::write(&document);
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let each = format!("NPROC_PER_NODE={}", machines.each);
    let nodes = format!("NNODES={}", machines.nodes);
    let words = ["llamafactory-cli", "train", "train.yaml"];
    let mut launcher: Vec<&str> = Vec::new();
    if asked.layout != Layout::Single {
        launcher.extend(["env", "FORCE_TORCHRUN=1", &each]);
    }
    if machines.nodes > 1 {
        launcher.push(&nodes);
    }
    let mut files = vec![
        file("train.yaml", format!("{header}{config}")),
        file("dataset_info.json", data),
    ];
    files.extend(deepspeed::beside(scenario, asked.layout));
    files.push(launch_on_each(
        &header,
        scenario,
        &launcher,
        PLACE_IN_VARIABLES,
        &words,
    ));
    Ok(files)
}

/// One of its stages, and what its files say of it.
struct Stage {
    name: &'static str,
    arguments: Document,
    /// Its data's columns.
    columns: Document,
    /// Whether they are answers of which one is better.
    ranks: bool,
}

impl Stage {
    /// The stage of the scenario's task.
    fn of(scenario: &Scenario) -> Result<Self, Problem> {
        let task = &scenario.training.task;
        let columns = |pairs: &[(&str, &str)]| -> Document {
            let pairs = pairs.iter();
            pairs
                .map(|(column, name)| (column.to_string(), (*name).into()))
                .collect()
        };
        let stage = |name, columns| Self {
            name,
            arguments: Document::new(),
            columns,
            ranks: false,
        };
        let compared = |loss: &str| {
            let pairs = ["prompt", "chosen", "rejected"].map(|name| (name, name));
            Self {
                arguments: Document::new().with("pref_loss", loss),
                ranks: true,
                ..stage("dpo", columns(&pairs))
            }
        };
        let known = match task.objective {
            Objective::Pretraining => stage("pt", columns(&[("prompt", "text")])),
            Objective::Sft => {
                let pairs = [("prompt", "prompt"), ("response", "completion")];
                stage("sft", columns(&pairs))
            }
            Objective::Dpo => compared("sigmoid"),
            Objective::Orpo => compared("orpo"),
            Objective::SimPo => compared("simpo"),
            Objective::Kto => {
                let label = ("kto_tag", "label");
                let pairs = [("prompt", "prompt"), ("response", "completion"), label];
                stage("kto", columns(&pairs))
            }
            Objective::Reward | Objective::Ppo => {
                let expected = "pretraining, sft, dpo, kto, orpo or simpo: this target's reward models and PPO keep a language \
                                model's logits, which is not modelled";
                return Err(Problem::new(
                    "task.objective",
                    task.objective.id(),
                    expected,
                ));
            }
            other => {
                let expected = "pretraining, sft, dpo, kto, orpo or simpo for this target";
                return Err(Problem::new("task.objective", other.id(), expected));
            }
        };
        let problem = if task::has_own_loss(task) {
            task::head(task, &[LmHead::LogSoftmax]).or_else(|| reference(scenario))
        } else {
            task::supervised(scenario)
        };
        problem.map_or(Ok(known), Err)
    }
}

/// A problem with the reference, which is loaded in the format that is computed in.
fn reference(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let loads = match training.precision {
        Precision::Fp32 => BesideType::Fp32,
        Precision::AmpFp16 if training.task.objective.refers() && training.lora.is_none() => {
            let expected = "another than amp-fp16, for which this target's reference is in fp16";
            return Some(Problem::new("training.precision", "amp-fp16", expected));
        }
        _ => BesideType::Bf16,
    };
    task::reference(scenario, loads)
}

/// It loads weights in the 16-bit format and casts what is trained to fp32, unless told to stay pure.
fn precision(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let known = matches!(
        (training.precision, &training.lora),
        (Precision::Fp32 | Precision::Bf16, _)
            | (Precision::AmpBf16 | Precision::AmpFp16, None)
            | (Precision::AmpBf16OnBf16, Some(_))
    );
    let expected = "for this target fp32 or bf16; for all weights also amp-bf16 or amp-fp16, for adapters amp-bf16-on-bf16";
    (!known).then(|| Problem::new("training.precision", training.precision.id(), expected))
}
