//! DreaMS: the command of `dreams/training/train.py`, whose flags are argparse's.

use super::super::{Files, Target};
use super::{Patch, System, command};
use crate::estimate::Estimate;
use crate::scenario::{Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "dreams",
    title: "DreaMS (its own command)",
    versions: "pluskal-lab/DreaMS dbec3a0 (torch 2.2, pytorch-lightning 2.0); its fork turns a batch of N into 1 × N",
    differs: "",
    write,
};

const SYSTEM: System = System {
    preset: "dreams",
    arch: "dreams",
    said: &[
        "data.micro_batch",
        "training.precision",
        "training.clip",
        "training.freeze",
    ],
    dims: &["peaks", "validation_spectra"],
    patches: &[
        Patch {
            path: "training.accumulation",
            values: &[],
            what: "accumulate_grad_batches in the pl.Trainer(...) of dreams/training/train.py, which has no flag for it",
        },
        Patch {
            path: "training.checkpointing",
            values: &["layers"],
            what: "commit 2acc056 of pluskal-lab/DreaMS or a later one, which can checkpoint layers",
        },
    ],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let asked = SYSTEM.asked(scenario)?;
    if scenario.model.id != "dreams" {
        let expected = "dreams, the fine-tuning: the recipe of pre-training is a script of its own";
        return Err(vec![Problem::new("model.id", &scenario.model.id, expected)]);
    }
    let precision = match scenario.training.precision {
        Precision::Fp32 => "32",
        Precision::Fp64 => "64",
        other => {
            let expected = "fp32 or fp64: the preprocessor asserts one of the two";
            return Err(vec![Problem::new(
                "training.precision",
                other.id(),
                expected,
            )]);
        }
    };
    let freeze = &scenario.training.freeze;
    let frozen = freeze.iter().any(|part| part == "backbone");
    if freeze.len() != usize::from(frozen) {
        let expected = "backbone, the one part that a flag of this system freezes";
        let problem = Problem::new("training.freeze", freeze.join(","), expected);
        return Err(vec![problem]);
    }
    let mut options: Vec<(&str, String)> = [
        ("--project_name", "headroom"),
        ("--job_key", "headroom"),
        ("--run_name", "headroom"),
        ("--wandb_entity_name", "none"),
        ("--no_wandb", ""),
        ("--train_objective", "fp_morgan_4096"),
        ("--train_regime", "fine-tuning"),
        ("--dataset_pth", "\"${DATASET:?an .hdf5 file of spectra}\""),
        ("--dformat", "A"),
        ("--model", "DreaMS"),
        ("--pre_trained_pth", "\"${PRETRAINED:?ssl_model.ckpt}\""),
        ("--head_depth", "1"),
        ("--lr", "1e-4"),
        ("--weight_decay", "1e-5"),
        ("--prec_intens", "1.1"),
        ("--max_epochs", "100"),
        ("--log_every_n_steps", "10"),
        ("--val_check_interval", "0.1"),
        ("--val_frac", "0.2"),
        ("--seed", "3407"),
    ]
    .map(|(flag, value)| (flag, value.to_string()))
    .to_vec();
    options.extend([
        ("--batch_size", scenario.data.micro_batch.to_string()),
        ("--max_peaks_n", asked.size("peaks").to_string()),
        ("--train_precision", precision.to_string()),
        ("--num_devices", scenario.hardware.gpus.to_string()),
        ("--num_workers_data", scenario.runtime.workers.to_string()),
        (
            "--save_top_k",
            scenario.runtime.save_keep.max(1).to_string(),
        ),
    ]);
    if scenario.training.clip {
        options.push(("--gradient_clip_val", "1.0".into()));
    }
    if frozen {
        // Beyond the last epoch, so that it never thaws.
        options.push(("--unfreeze_backbone_at_epoch", "101".into()));
    }
    let command = command(&["exec", "python3", "dreams/training/train.py"], &options);
    Ok(SYSTEM.files(&TARGET, scenario, estimate, &asked, &command, vec![]))
}
