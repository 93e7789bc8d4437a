//! DreaMS: the command of `dreams/training/train.py`, whose flags are argparse's.

use std::num::NonZero;

use super::{Launch, command, files, refused};
use headroom_core::estimate::Estimate;
use headroom_io::export::{Files, Target};
use headroom_scenario::{Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "dreams",
    title: "DreaMS (its own command)",
    versions: "maxvdboom/DreaMS 757a414, with wiring.diff applied (torch 2.2, pytorch-lightning 2.0)",
    differs: "",
    write,
};

const PRESET: &str = "dreams";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut launch = Launch::of(PRESET, scenario)?;
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
    let peaks = launch.size("peaks");
    // -1 keeps all.
    let kept = runtime
        .save_keep
        .map_or("-1".into(), |kept| kept.to_string());
    launch.needs_patch("--as_given: without it the fork takes a batch of 1, two workers and four validations an epoch");
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
        ("--weight_decay", "1e-5"),
        ("--prec_intens", "1.1"),
        ("--log_every_n_steps", "10"),
        ("--val_frac", "0.2"),
        ("--seed", "3407"),
    ];
    let mut options: Vec<(&str, String)> = fixed
        .map(|(flag, value)| (flag, value.to_string()))
        .to_vec();
    let epochs = runtime.epochs.map_or(100, NonZero::get);
    options.extend([
        launch.rate("--lr", scenario, "1e-4"),
        launch.option("--max_epochs", "100", epochs),
        launch.flag("--as_given", ""),
        // The author's script logs to the author's account.
        launch.flag("--no_wandb", ""),
        launch.option("--batch_size", "2", data.micro_batch),
        launch.option("--max_peaks_n", "100", peaks),
        launch.option("--train_precision", "32", precision),
        launch.option("--num_devices", "2", scenario.hardware.gpus),
        launch.option("--num_workers_data", "4", runtime.workers),
        launch.option("--save_top_k", "3", kept),
        launch.option("--val_check_interval", "0.1", runtime.eval_interval),
    ]);
    if scenario.training.accumulation > 1 {
        options.push(launch.flag("--accumulate_grad_batches", scenario.training.accumulation));
    }
    // The default is all of them.
    if runtime.eval_limit.to_bits() != 1.0_f64.to_bits() {
        options.push(launch.flag("--limit_val_batches", runtime.eval_limit));
    }
    if runtime.eval_keeps == 0 {
        options.push(launch.flag("--reset_val_metrics", ""));
    }
    // The author's 1000, where nothing is said.
    if let Some(every) = runtime.save_every {
        options.push(launch.flag("--every_n_train_steps", every));
    }
    if scenario.training.clip {
        options.push(launch.flag("--gradient_clip_val", "1.0"));
    }
    if frozen {
        // Beyond the last epoch, so that it never thaws.
        options.push(launch.flag("--unfreeze_backbone_at_epoch", epochs.saturating_add(1)));
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
        &TARGET,
        scenario,
        estimate,
        &launch,
        &command,
        vec![],
    ))
}
