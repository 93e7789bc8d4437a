//! Every setting is in a system's files, or refused.

use super::*;
use headroom_io::export;
use headroom_scenario::{presets, settings};

/// A target, a preset and changes to it; then the parts of the files, or the fields that are refused.
const ROWS: &[&str] = &[
    "dreams dreams -> --as_given |--batch_size 2 |--train_precision 32 |--num_devices 2 |--max_peaks_n 100 |\
     --num_workers_data 4 |--save_top_k 3 |first apply the patch",
    "dreams dreams accum=2 mb=1 clip=on save_every=2000 -> --accumulate_grad_batches 2 |\
     --val_check_interval 0.1 |--batch_size 1 |Not the author's: --batch_size 1 (2)|--gradient_clip_val 1.0|\
     --every_n_train_steps 2000 ",
    "dreams dreams limit_val_batches=0.5 val_check_interval=0.5 eval_keeps=0 -> --limit_val_batches 0.5 |\
     --val_check_interval 0.5 |--reset_val_metrics",
    "dreams dreams eval_keeps=1 refused: runtime.eval_keeps",
    "rna-3e-ffi rna-3e-ffi batch_max=300000 -> --max_edges 300000",
    "dreams dreams freeze=backbone precision=fp64 -> --unfreeze_backbone_at_epoch 101|--train_precision 64 ",
    "dreams dreams precision=amp-fp16 refused: training.precision",
    "dreams gsa-512m refused: model.id",
    "gsa gsa-512m -> micro_batch_size: 2|gradient_accumulation_steps: 32|precision: bf16|k_max: 1024|\
     nproc-per-node 4 |${oc.env:DATA_ROOT,data}/packed|num_workers: 4|save_interval: 5000",
    "gsa gsa-512m mb=3 accum=21 -> global_batch_size: 252|Not the author's: micro_batch_size 3 (2)",
    "gsa gsa-512m gpus=8 nodes=2 -> --nnodes 2 --nproc-per-node 4 ",
    "gsa gsa-512m optim=sgd refused: training.optimizer",
    "rna-3e-ffi rna-3e-ffi dims=0e=16,1o=8,2e=4 -> '16x0e + 8x1o + 4x2e'|batch=${1:-2}|--save_every 3 ",
    "rna-3e-ffi rna-3e-ffi precision=amp-fp16 accum=2 clip=off -> --use_amp |--accumulation_steps 2 |\
     --grad_clip 0|first apply the patch",
    "rna-3e-ffi rna-3e-ffi gpus=2 workers=2 refused: hardware.gpus",
    "rna-3e-ffi rna-3e-ffi ckpt=layers -> --recompute_layers|first apply the patch",
    "rna-3e-ffi rna-3e-ffi -> --num_epochs 300 |--lr 0.001 ",
    "rna-3e-ffi rna-3e-ffi epochs=50 lr=0.0005 -> --num_epochs 50 |--lr 5e-4 |Not the author's: --lr 5e-4 (0.001)",
    "dreams dreams -> --max_epochs 100 |--lr 1e-4 |does not apply to|worktree add ../dreams-757a414",
    "dreams dreams epochs=50 freeze=backbone -> --max_epochs 50 |--unfreeze_backbone_at_epoch 51",
    "dreams dreams max_steps=10 refused: runtime.max_steps",
    "gsa gsa-512m -> max_steps: 100000|learning_rate: 0.0003|applies to b23ccad|and to 77c00d5",
    "gsa gsa-512m max_steps=5000 lr=0.0006 -> max_steps: 5000|learning_rate: 0.0006|min_learning_rate: |\
     Not the author's: max_steps 5000 (100000)",
    "gsa gsa-512m epochs=3 refused: runtime.epochs",
    "gsa gsa-512m epochs=2 samples=2561 -> max_steps: 22",
    "gsa gsa-512m sync_each=off -> no_sync: true|training.no_sync|first apply the patch",
    "gsa gsa-512m dims=tied=1 -> tie_word_embeddings: true|first apply the patch",
    "prs-med prs-med -> --num_epochs 20 |--learning_rate 1e-4 ",
    "prs-med prs-med mb=16 -> the linear rule would make the learning rate 2e-4, the square root 1.41e-4",
    "prs-med prs-med mb=16 lr=0.0002 gpus=2 epochs=10 -> --learning_rate 2e-4 |--num_epochs 10 |--no-scale_lr",
    "prs-med prs-med quant=nf4 -> import bitsandbytes|pip install bitsandbytes",
    "prs-med prs-med compile=model compile_mode=reduce-overhead -> --compile_model",
    "peptrm peptrm -> learning_rate: 0.00015|max_steps: 200000|count_updates: true",
    "peptrm peptrm accum=1 -> max_steps: 100000",
    "peptrm peptrm compile=model compile_mode=reduce-overhead -> use_compile: true|compile_mode: reduce-overhead",
    "rna-3e-ffi rna-3e-ffi workers=3 refused: runtime.workers",
    "prs-med prs-med mb=2 accum=4 quant=nf4 -> --batch_size 2 |--gradient_accumulation_steps 4 |--use_amp|--load_4bit nf4",
    "prs-med prs-med gpus=4 -> --nproc-per-node 4 |--find_unused_parameters|learning rate becomes 4e-4|\
     first apply the patch",
    "prs-med prs-med dims=img=512 refused: model.dims.img",
    "prs-med prs-med ckpt=layers dims=checkpoint_encoder=1 -> --gradient_checkpointing|--checkpoint_encoder|\
     first apply the patch",
    "peptrm peptrm -> batch_size: 48|use_ema: true|num_latent_steps: 6|charge_distribution:\n    2: 0.7|\
     save_interval: 5000|enabled: true|--config \"$here/peptrm.yaml\"",
    "peptrm peptrm dims=bins=7500 ckpt=layers -> bin_size: 0.2|max_mz: 1500.0|recompute: latent",
    "peptrm peptrm gpus=2 refused: hardware.gpus",
    "prs-med prs-med ckpt=offload refused: training.checkpointing",
    "prs-med prs-med ckpt=keep-attention refused: training.checkpointing",
    "dreams dreams fraction=0.9 refused: runtime.memory_fraction",
    "rna-3e-ffi rna-3e-ffi fraction=0.9 refused: runtime.memory_fraction",
    "prs-med prs-med fraction=0.9 refused: runtime.memory_fraction",
    "peptrm peptrm fraction=0.9 refused: runtime.memory_fraction",
];

#[test]
fn every_setting_is_in_the_files_or_refused() {
    crate::install();
    for row in ROWS {
        let refused = row.split_once(" refused: ");
        let (run, expected) = refused.or(row.split_once(" -> ")).unwrap();
        let mut words = run.split(' ');
        let target = export::target(words.next().unwrap()).unwrap();
        let mut scenario = presets::find(words.next().unwrap()).unwrap().scenario();
        for change in words {
            let (name, value) = change.split_once('=').unwrap();
            assert_eq!(settings::set(&mut scenario, name, value), Ok(()));
        }
        match (target.write)(&scenario, &Estimate::default()) {
            Ok(files) => {
                assert!(refused.is_none(), "{row}");
                let text: String = files.into_iter().map(|file| file.contents).collect();
                for part in expected.split('|') {
                    assert!(text.contains(part), "{row}: {part} is not in\n{text}");
                }
            }
            Err(problems) => {
                let found: Vec<&str> = problems
                    .iter()
                    .map(headroom_scenario::Problem::field)
                    .collect();
                let expected = refused.map(|(_, fields)| fields.to_string());
                assert_eq!(Some(found.join("|")), expected, "{row}");
            }
        }
    }
}

#[test]
fn bin_size_gives_the_requested_number_of_bins() {
    for bins in 1..3000 {
        let width = peptrm::bin_size(1500.0, bins);
        assert_eq!((1500.0 / width) as u64, bins);
    }
}
