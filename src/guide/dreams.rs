//! DreaMS: the guide of a fork that fine-tunes it to fingerprints.

use super::lab::Changes;
use super::leak::Leak;
use super::{Claim, Guide, Knob, Lab, Verdict, Wiring};
use crate::estimate::{Phase, Unsupported};
use crate::units::Bytes;

pub(super) const GUIDE: Guide = Guide {
    preset: "dreams",
    document: "MEMORY_OPTIMIZATION_GUIDE.md of maxvdboom/DreaMS at 757a414",
    claims: CLAIMS,
    knobs: KNOBS,
};

/// Gradients summed into new tensors, as the tables of the audit were made with.
const APART: (&str, &str) = ("dims", "sums_apart=1");

/// `BinaryAUROC(thresholds=None)` and `CosineSimilarity` each keep predictions and targets of every spectrum.
fn leak(lab: &Lab, changes: Changes, validations_per_epoch: u64) -> Result<Leak, Unsupported> {
    const LISTS: u64 = 4;
    const FLOAT: u64 = 4;
    let each = Bytes::new(LISTS * FLOAT) * lab.dim(changes, "fingerprint")?;
    Ok(Leak {
        per_validation: each * lab.dim(changes, "validation_spectra")?,
        validations_per_epoch,
    })
}

fn leaking(lab: &Lab, validations_per_epoch: u64) -> Result<String, Unsupported> {
    let room = Leak::room(lab, &[])?;
    Ok(leak(lab, &[], validations_per_epoch)?.in_words(room))
}

const CLAIMS: &[Claim] = &[
    Claim {
        place: "Current Issue",
        said: "runs out of memory around epoch 60 with batch size 2",
        computed: |lab| leaking(lab, 10),
        verdict: Verdict::Right,
        why: "Not the batch: two metrics keep every validation's predictions, for nobody calls reset; a step needs the same in every epoch. The guide names no card; one of 32 GB ends where it says.",
        source: "dreams/models/heads/heads.py: self.val_metrics(pred, real); torchmetrics 1.3.2; 803 validation spectra a rank",
    },
    Claim {
        place: "1. Gradient Accumulation",
        said: "batch 2 to 1 with accumulation: ~50 % less peak memory",
        computed: |lab| lab.change(&[("mb", "2")], &[("mb", "1")]),
        verdict: Verdict::Wrong,
        why: "The peak is Adam's step over 99.7 M trained weights, which no batch changes; halving works only where activations dominate.",
        source: "dreams/models/heads/heads.py: torch.optim.Adam",
    },
    Claim {
        place: "1. Gradient Accumulation",
        said: "accumulation of 2 maintains the effective batch of 2",
        computed: |lab| {
            let (before, after) = (lab.batch(&[])?, lab.batch(&[("mb", "1")])?);
            Ok(format!("{before} before, {after} as the scripts run"))
        },
        verdict: Verdict::Wrong,
        why: "The scripts pass a batch of 1, of which the fork makes an accumulation of 1; on two devices the effective batch falls from 4 to 2.",
        source: "dreams/training/train.py of the fork; integrated_memory_optimized_train_with_wandb.sh",
    },
    Claim {
        place: "2. Enhanced Memory Callbacks",
        said: "cache clearing, garbage collection and deleting batches: 10-20 % less",
        computed: |lab| lab.change(&[], &[]),
        verdict: Verdict::Folklore,
        why: "empty_cache gives unused blocks back to the driver; no tensor of the step is freed by it, and deleting a local name in a callback frees nothing.",
        source: "torch.cuda.memory.empty_cache: does not increase the amount of memory available for PyTorch",
    },
    Claim {
        place: "3. Environment Optimizations",
        said: "allocation configured for smaller chunks",
        computed: |lab| {
            let (native, expandable) = (lab.estimate(&[])?, lab.estimate(&[("expandable", "on")])?);
            let (native, expandable) = (native.reserved.expected, expandable.reserved.expected);
            Ok(format!(
                "reserved {native}, with expandable segments {expandable}"
            ))
        },
        verdict: Verdict::Wrong,
        why: "max_split_size_mb forbids splitting blocks above a size; it makes no chunk small. Expandable segments are what keeps reserved near allocated.",
        source: "PyTorch notes/cuda: optimizing memory usage with PYTORCH_ALLOC_CONF",
    },
    Claim {
        place: "3. Environment Optimizations",
        said: "memory limited to 95 % of what is available",
        computed: |lab| {
            let found = lab.estimate(&[])?;
            let usable = found.usable.unwrap_or(Bytes::ZERO);
            Ok(format!(
                "{usable} usable, {} with the limit",
                usable.scale(0.95)
            ))
        },
        verdict: Verdict::Wrong,
        why: "The limit is a cap on this process: it takes memory away and gives none.",
        source: "torch.cuda.set_per_process_memory_fraction",
    },
    Claim {
        place: "3. Environment Optimizations",
        said: "flash attention enabled if available",
        computed: |lab| lab.change(&[("attn", "eager")], &[("attn", "sdpa")]),
        verdict: Verdict::Wrong,
        why: "The encoder computes products, softmax and dropout itself and never calls scaled_dot_product_attention.",
        source: "dreams/models/dreams/layers.py: MultiheadAttention.forward",
    },
    Claim {
        place: "4. Dataset Optimizations",
        said: "in_mem=False for large data sets",
        computed: |lab| lab.change(&[], &[]),
        verdict: Verdict::Partly,
        why: "It saves host memory; spectra never were on the card before their batch.",
        source: "dreams/utils/data.py: MSData",
    },
    Claim {
        place: "5. Model Architecture Tweaks",
        said: "reduce d_fourier and d_peak",
        computed: |lab| lab.change(&[("mb", "64")], &[("mb", "64"), ("dims", "d_fourier=724")]),
        verdict: Verdict::Wrong,
        why: "In fine-tuning the checkpoint fixes both, so that the flags do nothing; a smaller d_fourier would shrink the bias of all pairs, but only in a model trained anew.",
        source: "dreams/models/heads/heads.py: load_from_checkpoint",
    },
    Claim {
        place: "5. Model Architecture Tweaks",
        said: "freeze some layers",
        computed: |lab| lab.change(&[], &[("freeze", "backbone")]),
        verdict: Verdict::Right,
        why: "Without gradients and states of the backbone only its weights stay.",
        source: "--unfreeze_backbone_at_epoch of dreams/training/train_argparse.py",
    },
    Claim {
        place: "6. Checkpoint Strategy",
        said: "save fewer checkpoints",
        computed: |lab| lab.change(&[], &[]),
        verdict: Verdict::Wrong,
        why: "Saving copies weights to the host; it costs disk and time, and no memory of the card.",
        source: "torch.save",
    },
    Claim {
        place: "7. Validation Optimizations",
        said: "validate less often",
        computed: |lab| leaking(lab, 4),
        verdict: Verdict::Right,
        why: "For a reason it does not give: each validation adds to what the metrics never let go. Four an epoch, as the fork forces, postpone the end beyond its 100 epochs.",
        source: "dreams/training/train.py of the fork: val_check_interval = 0.25",
    },
    Claim {
        place: "8. Mixed Precision",
        said: "--train_precision 16 reduces memory",
        computed: |lab| {
            let small = lab.change(&[], &[("precision", "amp-fp16")])?;
            let large = lab.change(&[("mb", "64")], &[("mb", "64"), ("precision", "amp-fp16")])?;
            Ok(format!("batch 2: {small}; batch 64: {large}"))
        },
        verdict: Verdict::Wrong,
        why: "The flag ends the run (an assertion wants 32 or 64); were it allowed, weights, gradients and states would stay in fp32.",
        source: "dreams/utils/data.py: SpectrumPreprocessor",
    },
    Claim {
        place: "8. Mixed Precision",
        said: "fp32 is the expensive choice",
        computed: |lab| lab.change(&[("mb", "64")], &[("mb", "64"), ("precision", "fp64")]),
        verdict: Verdict::Partly,
        why: "The official recipe fine-tunes in double precision, which doubles everything.",
        source: "dreams/training/train.py: model.double() where train_precision is 64",
    },
    Claim {
        place: "9. Sequential Layer Processing",
        said: "process layers sequentially rather than in parallel",
        computed: |lab| {
            let plain = lab.change(&[("mb", "64")], &[("mb", "64"), ("ckpt", "layers")])?;
            let apart = lab.change(
                &[("mb", "64"), APART],
                &[("mb", "64"), APART, ("ckpt", "layers")],
            )?;
            Ok(format!(
                "recomputing layers at batch 64: {plain}; with gradients summed apart, as for subclasses of tensors: {apart}"
            ))
        },
        verdict: Verdict::Wrong,
        why: "Layers run one after the other already. Recomputing them gains nothing here: the tensor of all pairs is an input of every layer, so it now lives into backward, where its gradient is added up.",
        source: "dreams/models/dreams/layers.py at 2acc056; the authors' layers on PyTorch 2.15",
    },
    Claim {
        place: "10. Data Pipeline Optimizations",
        said: "fewer workers and pin_memory=False reduce pressure",
        computed: |lab| lab.change(&[], &[]),
        verdict: Verdict::Partly,
        why: "Both are host memory; the loader never pinned any.",
        source: "dreams/utils/data.py: DataLoader",
    },
    Claim {
        place: "Monitoring",
        said: "memory_reserved()/1024³ is cached memory in GB",
        computed: |lab| {
            let found = lab.estimate(&[])?;
            Ok(format!(
                "allocated {}, reserved {}",
                found.allocated.expected, found.reserved.expected
            ))
        },
        verdict: Verdict::Partly,
        why: "Reserved contains allocated: what is cached is the difference; and 1024³ bytes are a GiB.",
        source: "torch.cuda.memory_reserved",
    },
    Claim {
        place: "Expected Results",
        said: "peak memory falls by half",
        computed: |lab| {
            let found = lab.estimate(&[("mb", "1")])?;
            let phase = if found.phase == Phase::Optimizer {
                "the optimizer's step"
            } else {
                "backward or forward"
            };
            Ok(format!("{} in {phase}", found.allocated.expected))
        },
        verdict: Verdict::Wrong,
        why: "Weights, gradients, two states and one temporary of the trained weights are all of it.",
        source: "torch.optim.Adam, foreach",
    },
    Claim {
        place: "Troubleshooting",
        said: "reduce max_peaks_n from 100 to 80-90",
        computed: |lab| {
            let small = lab.change(&[], &[("dims", "peaks=80")])?;
            let large = lab.change(&[("mb", "64")], &[("mb", "64"), ("dims", "peaks=80")])?;
            Ok(format!("batch 2: {small}; batch 64: {large}"))
        },
        verdict: Verdict::Partly,
        why: "The bias of all pairs grows with the square of the peaks, and is the peak only where the batch is large.",
        source: "dreams/models/dreams/dreams.py: graphormer_dists",
    },
    Claim {
        place: "Troubleshooting",
        said: "use only 1 GPU instead of 2",
        computed: |lab| {
            let (two, one) = (lab.needs(&[])?, lab.needs(&[("gpus", "1")])?);
            Ok(format!("2: {two}; 1: {one}"))
        },
        verdict: Verdict::Partly,
        why: "It spares the buckets of data parallelism, as large as the gradients, and halves the effective batch.",
        source: "DDPStrategy in dreams/training/train.py",
    },
];

const KNOBS: &[Knob] = &[
    Knob {
        flag: "--batch_size N",
        wiring: Wiring::Clamped,
        note: "The fork sets the batch to 1 and accumulates over N micro-batches; its scripts pass 1, so that nothing is accumulated. Upstream has no accumulation.",
        patch: "",
        source: "dreams/training/memory_optimized_train.py of the fork",
    },
    Knob {
        flag: "--val_check_interval",
        wiring: Wiring::Clamped,
        note: "The fork sets it to 0.25, which is why its runs end later.",
        patch: "--- a/dreams/training/memory_optimized_train.py\n+++ b/dreams/training/memory_optimized_train.py\n@@\n-    original_args.val_check_interval = 0.25  # Every 25% of epoch instead of 10%\n",
        source: "dreams/training/memory_optimized_train.py of the fork",
    },
    Knob {
        flag: "--num_workers_data",
        wiring: Wiring::Clamped,
        note: "The fork takes the smaller of it and a few workers.",
        patch: "",
        source: "dreams/training/train.py of the fork",
    },
    Knob {
        flag: "--gradient_clip_val",
        wiring: Wiring::Clamped,
        note: "Added in d6c157b and set to 1.0 there; the ultra script of 757a414 passes it before it exists, which ends the run.",
        patch: "",
        source: "dreams/training/train_argparse.py of the fork",
    },
    Knob {
        flag: "--train_precision 16",
        wiring: Wiring::Breaks,
        note: "The preprocessor asserts 32 or 64; 64 also makes the model double.",
        patch: "",
        source: "dreams/utils/data.py",
    },
    Knob {
        flag: "--val_frac",
        wiring: Wiring::Ignored,
        note: "With .hdf5 data the split is the column `fold`.",
        patch: "",
        source: "dreams/utils/data.py",
    },
    Knob {
        flag: "limit_val_batches",
        wiring: Wiring::Ignored,
        note: "Hard-coded in the call of the trainer; setting it on the arguments does nothing.",
        patch: "--- a/dreams/training/train.py\n+++ b/dreams/training/train.py\n@@\n-            limit_val_batches=0 if args.no_val else None,\n+            limit_val_batches=0 if args.no_val else args.limit_val_batches,\n",
        source: "dreams/training/train.py",
    },
    Knob {
        flag: "every_n_train_steps",
        wiring: Wiring::Ignored,
        note: "Hard-coded as 1000.",
        patch: "",
        source: "dreams/training/train.py",
    },
    Knob {
        flag: "pin_memory",
        wiring: Wiring::Ignored,
        note: "The loader never passes it: it is off already.",
        patch: "",
        source: "dreams/utils/data.py",
    },
    Knob {
        flag: "--d_fourier, --d_peak, --n_layers",
        wiring: Wiring::Ignored,
        note: "With --pre_trained_pth the checkpoint's own sizes are restored.",
        patch: "",
        source: "dreams/models/heads/heads.py: load_from_checkpoint",
    },
    Knob {
        flag: "--unfreeze_backbone_at_epoch",
        wiring: Wiring::Exists,
        note: "Freezes the backbone until then; above the number of epochs, for good.",
        patch: "",
        source: "dreams/models/heads/heads.py",
    },
    Knob {
        flag: "metrics that let go",
        wiring: Wiring::NeedsPatch,
        note: "Nothing resets the metrics after their values are logged, so that they keep every validation.",
        patch: "--- a/dreams/models/heads/heads.py\n+++ b/dreams/models/heads/heads.py\n@@ class FingerprintHead\n-        metrics = self.val_metrics(pred, real)\n+        metrics = self.val_metrics(pred.detach(), real)\n@@\n+    def on_validation_epoch_end(self):\n+        self.val_metrics.reset()\n",
        source: "dreams/models/heads/heads.py: FingerprintHead.validate; torchmetrics issue 2921",
    },
    Knob {
        flag: "get_extreme_memory_args, ExtremeMemoryOptimizedCallback",
        wiring: Wiring::Ignored,
        note: "Imported and never used; only the environment's part runs.",
        patch: "",
        source: "dreams/training/train.py of the fork",
    },
];
