//! DreaMS: the command of `dreams/training/train.py`, whose flags are argparse's.

use super::super::{Files, Target};
use super::{asked, command, files, refused};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "dreams",
    title: "DreaMS (its own command)",
    versions: "maxvdboom/DreaMS 757a414, with wiring.diff applied (torch 2.2, pytorch-lightning 2.0)",
    differs: "",
    write,
};

pub(super) const PRESET: &str = "dreams";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut asked = asked(PRESET, scenario)?;
    let precision = match scenario.training.precision {
        Precision::Fp32 => "32",
        Precision::Fp64 => "64",
        other => {
            return Err(refused(
                "training.precision",
                other.id(),
                "fp32 or fp64: the preprocessor asserts one of the two",
            ));
        }
    };
    let freeze = &scenario.training.freeze;
    let frozen = freeze.iter().any(|part| part == "backbone");
    let (data, runtime) = (&scenario.data, &scenario.runtime);
    let peaks = asked.size("peaks");
    // All are kept with -1 here, with 0 in a scenario.
    let kept = match runtime.save_keep {
        0 => "-1".into(),
        kept => kept.to_string(),
    };
    asked.need("--as_given: without it the fork takes a batch of 1, two workers and four validations an epoch");
    let fixed = [
        ("--project_name", "MorganFingerprints"),
        ("--job_key", "morgan_4096_fine_tune_wandb"),
        ("--run_name", "morgan_4096_fine_tune_wandb"),
        ("--train_objective", "fp_morgan_4096"),
        ("--train_regime", "fine-tuning"),
        (
            "--dataset_pth",
            "\"${DATASET:-${DATA_ROOT:-./data}/paired_spectra/canopus_train_dreams.hdf5}\"",
        ),
        ("--dformat", "A"),
        ("--model", "DreaMS"),
        ("--pre_trained_pth", "\"${PRETRAINED}/ssl_model.ckpt\""),
        ("--head_depth", "1"),
        ("--lr", "1e-4"),
        ("--weight_decay", "1e-5"),
        ("--prec_intens", "1.1"),
        ("--max_epochs", "100"),
        ("--log_every_n_steps", "10"),
        ("--val_frac", "0.2"),
        ("--seed", "3407"),
    ];
    let mut options: Vec<(&str, String)> = fixed
        .map(|(flag, value)| (flag, value.to_string()))
        .to_vec();
    options.extend([
        asked.flag("--as_given", ""),
        // The author's account is not everyone's.
        asked.flag("--no_wandb", ""),
        asked.option("--batch_size", "2", data.micro_batch),
        asked.option("--max_peaks_n", "100", peaks),
        asked.option("--train_precision", "32", precision),
        asked.option("--num_devices", "2", scenario.hardware.gpus),
        asked.option("--num_workers_data", "4", runtime.workers),
        asked.option("--save_top_k", "3", kept),
        asked.option("--val_check_interval", "0.1", runtime.eval_interval),
    ]);
    if scenario.training.accumulation > 1 {
        options.push(asked.flag("--accumulate_grad_batches", scenario.training.accumulation));
    }
    // All of them, where nothing is said.
    if runtime.eval_limit.to_bits() != 1.0_f64.to_bits() {
        options.push(asked.flag("--limit_val_batches", runtime.eval_limit));
    }
    if runtime.eval_keeps == 0 {
        options.push(asked.flag("--reset_val_metrics", ""));
    }
    // The author's 1000, where nothing is said.
    if runtime.save_every > 0 {
        options.push(asked.flag("--every_n_train_steps", runtime.save_every));
    }
    if scenario.training.clip {
        options.push(asked.flag("--gradient_clip_val", "1.0"));
    }
    if frozen {
        // Beyond the last epoch, so that it never thaws.
        options.push(asked.flag("--unfreeze_backbone_at_epoch", "101"));
    }
    let command = format!(
        "# The repository's own paths, PRETRAINED among them.\n\
         # shellcheck disable=SC2091\n\
         $(python -c \"from dreams.definitions import export; export()\")\n\
         # Lightning would take Slurm's one task for all of its processes.\n\
         unset SLURM_NTASKS\n{}",
        command("exec python3 dreams/training/train.py", &options)
    );
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
