//! PRS-Med: the command of `train_prs_med.py`, whose flags are argparse's.

use std::num::NonZero;

use super::{Launch, command, files, refused, starter};
use headroom_core::estimate::Estimate;
use headroom_io::export::common::machines;
use headroom_io::export::{Files, Target, shell};
use headroom_scenario::{Checkpointing, Compile, Precision, Quantization, Scenario};

pub(super) const TARGET: Target = Target {
    id: "prs-med",
    title: "PRS-Med (its own command)",
    versions: "seanhuvaya/prs_med_mmrs a75d09a (torch 2.9, transformers 4.57, peft 0.17)",
    differs: "",
    write,
};

const PRESET: &str = "prs-med";

/// Not among the repository's requirements.
const NEEDS_BITSANDBYTES: &str = "\
python -c 'import bitsandbytes' 2>/dev/null || {
  echo \"launch.sh: 4-bit weights need bitsandbytes: python -m pip install bitsandbytes\" >&2
  exit 1
}
";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut launch = Launch::of(PRESET, scenario)?;
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
        launch.option("--batch_size", "8", scenario.data.micro_batch),
        launch.option("--gradient_accumulation_steps", "1", training.accumulation),
        launch.option("--lora_rank", "16", lora.rank),
        launch.option("--lora_alpha", "16", lora.rank),
        launch.option("--lora_dropout", "0.05", dropout),
        launch.rate("--learning_rate", scenario, "1e-4"),
        launch.option(
            "--num_epochs",
            "20",
            scenario.runtime.epochs.map_or(20, NonZero::get),
        ),
        launch.option("--num_workers", "2", scenario.runtime.workers),
        ("--seed", "42".into()),
        ("--image_size", "1024".into()),
        ("--checkpoint_dir", "./checkpoints".into()),
        (autocast, String::new()),
    ];
    launch.value("autocast", "--use_amp", autocast);
    if training.checkpointing != Checkpointing::None {
        options.push(launch.flag("--gradient_checkpointing", ""));
    }
    if launch.size("checkpoint_encoder") > 0 {
        options.push(launch.flag("--checkpoint_encoder", ""));
    }
    if training.quantization != Quantization::None {
        options.push(launch.flag("--load_4bit", training.quantization.id()));
    }
    if training.compile != Compile::Nothing {
        options.push(launch.flag("--compile_model", ""));
    }
    if launch.patch_notes.contains("--lora_targets") {
        options.push(launch.flag("--lora_targets", shell::quote(&lora.targets.join(","))));
    }
    let gpus = scenario.hardware.gpus;
    if gpus > 1 {
        launch.needs_patch("--find_unused_parameters: without it DDP ends in its second iteration, for some weights get no gradient");
        options.push(launch.flag("--find_unused_parameters", ""));
        if scenario.training.learning_rate == launch.system.base().training.learning_rate {
            launch.note(&format!(
                "The learning rate becomes {gpus}e-4: the code multiplies it by the number of GPUs; --no-scale_lr keeps 1e-4"
            ));
        } else {
            launch.needs_patch("--no-scale_lr: without it the code multiplies the learning rate by the number of GPUs");
            options.push(launch.flag("--no-scale_lr", ""));
        }
    }
    let needs = if training.quantization == Quantization::None {
        ""
    } else {
        NEEDS_BITSANDBYTES
    };
    let command = format!(
        "{needs}{}",
        command(&starter(&machines, "train_prs_med.py"), &options)
    );
    Ok(files(
        &TARGET,
        scenario,
        estimate,
        &launch,
        &command,
        vec![],
    ))
}
