//! PRS-Med: the command of `train_prs_med.py`, whose flags are argparse's.

use super::super::{Files, Target};
use super::{Patch, System, command, starter};
use crate::estimate::Estimate;
use crate::scenario::{Checkpointing, Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "prs-med",
    title: "PRS-Med (its own command)",
    versions: "seanhuvaya/prs_med_mmrs a75d09a (torch 2.9, transformers 4.57, peft 0.17)",
    differs: "",
    write,
};

const SYSTEM: System = System {
    preset: "prs-med",
    arch: "prs-med",
    said: &[
        "data.micro_batch",
        "data.sequence",
        "training.precision",
        "training.accumulation",
        "training.lora.rank",
        "training.lora.dropout",
    ],
    dims: &[],
    patches: &[
        Patch {
            path: "training.checkpointing",
            values: &["layers"],
            what: "use_reentrant=False where the model turns it on: as it is, no adapter of the language model trains any more",
        },
        Patch {
            path: "model.dims.checkpoint_encoder",
            values: &[],
            what: "TinySAM's encoder asks for use_checkpoint, which it does not have: wrap its blocks by hand",
        },
        Patch {
            path: "training.quantization",
            values: &[],
            what: "the class knows use_4bit, the command line does not: pass it on",
        },
        Patch {
            path: "training.lora.targets",
            values: &[],
            what: "target_modules is written in the class",
        },
    ],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let asked = SYSTEM.asked(scenario)?;
    let training = &scenario.training;
    let autocast = match training.precision {
        Precision::AmpFp16 => "--use_amp",
        Precision::Fp32 => "--no-use_amp",
        other => {
            let expected = "amp-fp16, or fp32 for --no-use_amp, for this system";
            return Err(vec![Problem::new(
                "training.precision",
                other.id(),
                expected,
            )]);
        }
    };
    let Some(lora) = &training.lora else {
        let expected = "on for this system, which always trains adapters";
        return Err(vec![Problem::new("training.lora", "off", expected)]);
    };
    let mut options: Vec<(&str, String)> = vec![
        (
            "--data_root",
            "\"${DATA_ROOT:?the folder of the data}\"".into(),
        ),
        ("--batch_size", scenario.data.micro_batch.to_string()),
        (
            "--gradient_accumulation_steps",
            training.accumulation.to_string(),
        ),
        ("--lora_rank", lora.rank.to_string()),
        ("--lora_alpha", lora.rank.to_string()),
        ("--lora_dropout", format!("{:?}", lora.dropout)),
        ("--learning_rate", "1e-4".into()),
        ("--num_epochs", "20".into()),
        ("--num_workers", scenario.runtime.workers.to_string()),
        ("--seed", "42".into()),
        ("--image_size", "1024".into()),
        ("--checkpoint_dir", "./checkpoints".into()),
        (autocast, String::new()),
    ];
    if training.checkpointing != Checkpointing::None {
        options.push(("--gradient_checkpointing", String::new()));
    }
    let mut words = vec!["exec".to_string()];
    words.extend(starter(scenario));
    words.push("train_prs_med.py".into());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let command = command(&words, &options);
    Ok(SYSTEM.files(&TARGET, scenario, estimate, &asked, &command, vec![]))
}
