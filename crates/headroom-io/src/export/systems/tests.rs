//! What each system is asked for is in its files, or refused.

use super::*;
use crate::export;
use headroom_scenario::{presets, settings};

#[test]
fn what_a_system_is_asked_for_is_in_its_files_or_refused() {
    #[track_caller]
    fn check(
        target: &str,
        preset: &str,
        changes: &[(&str, &str)],
        expected: Result<&[&str], &[&str]>,
    ) {
        let mut scenario = presets::find(preset)
            .map(presets::Preset::scenario)
            .unwrap_or_default();
        for (name, value) in changes {
            assert_eq!(settings::set(&mut scenario, name, value), Ok(()));
        }
        let target = export::target(target);
        let files = target.map(|target| (target.write)(&scenario, &Estimate::default()));
        match (files, expected) {
            (Some(Ok(files)), Ok(parts)) => {
                let text: String = files.into_iter().map(|file| file.contents).collect();
                for part in parts {
                    assert!(text.contains(part), "{part} is not in\n{text}");
                }
            }
            (Some(Err(problems)), Err(fields)) => {
                let found: Vec<&str> = problems
                    .iter()
                    .map(|problem| problem.field.as_str())
                    .collect();
                assert_eq!(found, fields);
            }
            (files, _) => panic!("{files:?}"),
        }
    }
    const PATCHED: &str = "launch.sh: first apply the patch";
    check(
        "dreams",
        "dreams",
        &[],
        Ok(&[
            "--as_given ",
            "--batch_size 2 ",
            "--train_precision 32 ",
            "--num_devices 2 ",
            "--max_peaks_n 100 ",
            "--num_workers_data 4 ",
            "--save_top_k 3 ",
            PATCHED,
        ]),
    );
    check(
        "dreams",
        "dreams",
        &[
            ("accum", "2"),
            ("mb", "1"),
            ("clip", "on"),
            ("save_every", "2000"),
        ],
        Ok(&[
            "--accumulate_grad_batches 2 ",
            "--val_check_interval 0.1 ",
            "--batch_size 1 ",
            "Not the author's: --batch_size 1 (2)",
            "--gradient_clip_val 1.0",
            "--every_n_train_steps 2000 ",
        ]),
    );
    let rarer = [
        ("limit_val_batches", "0.5"),
        ("val_check_interval", "0.5"),
        ("eval_keeps", "0"),
    ];
    let flags = [
        "--limit_val_batches 0.5 ",
        "--val_check_interval 0.5 ",
        "--reset_val_metrics",
    ];
    check("dreams", "dreams", &rarer, Ok(&flags));
    let kept = [("eval_keeps", "1")];
    check("dreams", "dreams", &kept, Err(&["runtime.eval_keeps"]));
    let budget = [("batch_max", "300000")];
    check(
        "rna-3e-ffi",
        "rna-3e-ffi",
        &budget,
        Ok(&["--max_edges 300000"]),
    );
    let frozen = [("freeze", "backbone"), ("precision", "fp64")];
    let thaws = ["--unfreeze_backbone_at_epoch 101", "--train_precision 64 "];
    check("dreams", "dreams", &frozen, Ok(&thaws));
    check(
        "dreams",
        "dreams",
        &[("precision", "amp-fp16")],
        Err(&["training.precision"]),
    );
    check("dreams", "gsa-512m", &[], Err(&["model.id"]));
    check(
        "gsa",
        "gsa-512m",
        &[],
        Ok(&[
            "micro_batch_size: 2",
            "gradient_accumulation_steps: 32",
            "precision: bf16",
            "k_max: 1024",
            "nproc-per-node 4 ",
            "${oc.env:DATA_ROOT,data}/packed",
            "num_workers: 4",
            "save_interval: 5000",
        ]),
    );
    check(
        "gsa",
        "gsa-512m",
        &[("mb", "3"), ("accum", "21")],
        Ok(&[
            "global_batch_size: 252",
            "Not the author's: micro_batch_size 3 (2)",
        ]),
    );
    let two = [("gpus", "8"), ("nodes", "2")];
    check(
        "gsa",
        "gsa-512m",
        &two,
        Ok(&["--nnodes 2 --nproc-per-node 4 "]),
    );
    check(
        "gsa",
        "gsa-512m",
        &[("optim", "sgd")],
        Err(&["training.optimizer"]),
    );
    check(
        "rna-3e-ffi",
        "rna-3e-ffi",
        &[("dims", "0e=16,1o=8,2e=4")],
        Ok(&["'16x0e + 8x1o + 4x2e'", "batch=${1:-2}", "--save_every 3 "]),
    );
    check(
        "rna-3e-ffi",
        "rna-3e-ffi",
        &[("precision", "amp-fp16"), ("accum", "2"), ("clip", "off")],
        Ok(&[
            "--use_amp ",
            "--accumulation_steps 2 ",
            "--grad_clip 0",
            PATCHED,
        ]),
    );
    check(
        "rna-3e-ffi",
        "rna-3e-ffi",
        &[("ckpt", "layers"), ("gpus", "2"), ("workers", "2")],
        Err(&["hardware.gpus", "training.checkpointing"]),
    );
    check(
        "rna-3e-ffi",
        "rna-3e-ffi",
        &[("workers", "3")],
        Err(&["runtime.workers"]),
    );
    check(
        "prs-med",
        "prs-med",
        &[("mb", "2"), ("accum", "4"), ("quant", "nf4")],
        Ok(&[
            "--batch_size 2 ",
            "--gradient_accumulation_steps 4 ",
            "--use_amp",
            "--load_4bit nf4",
        ]),
    );
    check(
        "prs-med",
        "prs-med",
        &[("gpus", "4")],
        Ok(&[
            "--nproc-per-node 4 ",
            "--find_unused_parameters",
            "learning rate becomes 4e-4",
            PATCHED,
        ]),
    );
    check(
        "prs-med",
        "prs-med",
        &[("dims", "img=512")],
        Err(&["model.dims.img"]),
    );
    for partial in ["offload", "keep-attention"] {
        let changes = [("ckpt", partial)];
        check(
            "prs-med",
            "prs-med",
            &changes,
            Err(&["training.checkpointing"]),
        );
    }
    check(
        "prs-med",
        "prs-med",
        &[("ckpt", "layers"), ("dims", "checkpoint_encoder=1")],
        Ok(&["--gradient_checkpointing", "--checkpoint_encoder", PATCHED]),
    );
    check(
        "peptrm",
        "peptrm",
        &[],
        Ok(&[
            "batch_size: 48",
            "use_ema: true",
            "num_latent_steps: 6",
            "charge_distribution:\n    2: 0.7",
            "save_interval: 5000",
            "enabled: true",
            "--config \"$here/peptrm.yaml\"",
        ]),
    );
    check(
        "peptrm",
        "peptrm",
        &[("dims", "bins=7500"), ("ckpt", "layers")],
        Ok(&["bin_size: 0.2", "max_mz: 1500.0", "recompute: latent"]),
    );
    check(
        "peptrm",
        "peptrm",
        &[("gpus", "2")],
        Err(&["hardware.gpus"]),
    );
    for preset in ["dreams", "rna-3e-ffi", "prs-med", "peptrm"] {
        let field = ["runtime.memory_fraction"];
        check(preset, preset, &[("fraction", "0.9")], Err(&field));
    }
}

#[test]
fn bins_are_as_many_as_were_asked_for() {
    for bins in 1..3000 {
        let width = peptrm::bin_size(1500.0, bins);
        assert_eq!((1500.0 / width) as u64, bins);
    }
}
