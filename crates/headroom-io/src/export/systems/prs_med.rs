//! PRS-Med: the command of `train_prs_med.py`, whose flags are argparse's.

use super::super::common::machines;
use super::super::{Files, Target, shell};
use super::{asked, command, files, refused, starter};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Checkpointing, Precision, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "prs-med",
    title: "PRS-Med (its own command)",
    versions: "seanhuvaya/prs_med_mmrs a75d09a (torch 2.9, transformers 4.57, peft 0.17)",
    differs: "",
    write,
};

pub(super) const PRESET: &str = "prs-med";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut asked = asked(PRESET, scenario)?;
    let training = &scenario.training;
    let autocast = match training.precision {
        Precision::AmpFp16 => "--use_amp",
        Precision::Fp32 => "--no-use_amp",
        other => {
            return Err(refused(
                "training.precision",
                other.id(),
                "amp-fp16, or fp32 for --no-use_amp, for this system",
            ));
        }
    };
    let Some(lora) = &training.lora else {
        let expected = "on for this system, which always trains adapters";
        return Err(refused("training.lora", "off", expected));
    };
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let dropout = format!("{:?}", lora.dropout);
    let mut options: Vec<(&str, String)> = vec![
        (
            "--data_root",
            "\"${DATA_ROOT:?the folder of the data}\"".into(),
        ),
        asked.option("--batch_size", "8", scenario.data.micro_batch),
        asked.option("--gradient_accumulation_steps", "1", training.accumulation),
        asked.option("--lora_rank", "16", lora.rank),
        asked.option("--lora_alpha", "16", lora.rank),
        asked.option("--lora_dropout", "0.05", dropout),
        ("--learning_rate", "1e-4".into()),
        ("--num_epochs", "20".into()),
        asked.option("--num_workers", "2", scenario.runtime.workers),
        ("--seed", "42".into()),
        ("--image_size", "1024".into()),
        ("--checkpoint_dir", "./checkpoints".into()),
        (autocast, String::new()),
    ];
    asked.value("autocast", "--use_amp", autocast);
    if training.checkpointing != Checkpointing::None {
        options.push(asked.flag("--gradient_checkpointing", ""));
    }
    if asked.size("checkpoint_encoder") > 0 {
        options.push(asked.flag("--checkpoint_encoder", ""));
    }
    if training.quantization != Quantization::None {
        options.push(asked.flag("--load_4bit", training.quantization.id()));
    }
    if asked.needs.contains("--lora_targets") {
        options.push(asked.flag("--lora_targets", shell::quote(&lora.targets.join(","))));
    }
    let gpus = scenario.hardware.gpus;
    if gpus > 1 {
        asked.need("--find_unused_parameters: without it DDP ends in its second iteration, for some weights get no gradient");
        options.push(asked.flag("--find_unused_parameters", ""));
        asked.note(&format!(
            "The learning rate becomes {gpus}e-4: the code multiplies it by the number of GPUs; --no-scale_lr keeps 1e-4"
        ));
    }
    let command = command(&starter(&machines, "train_prs_med.py"), &options);
    Ok(files(
        PRESET,
        &TARGET,
        scenario,
        estimate,
        &asked,
        &command,
        vec![],
    ))
}
