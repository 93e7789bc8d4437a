//! What the guide claims, and what is computed for it.

use super::super::variants::Changes;
use super::super::{Amount, Claim, Comparison, Evidence, Said, Variants};
use headroom_base::units::Bytes;
use headroom_core::estimate::Unsupported;

const CURRENT: Changes = &[];
const LARGE: Changes = &[("mb", "64")];
/// Gradients summed into new tensors, as for subclasses of tensors.
const APART: (&str, &str) = ("dims", "sums_apart=1");

/// Half the batch and no accumulation, as the fork's scripts run.
const AS_RUN: Changes = &[("mb", "1")];

fn host(variants: &Variants, workers: &str) -> Result<Bytes, Unsupported> {
    let found = variants.estimate(&[("runtime.workers", workers)])?;
    Ok(found.host.total.expected)
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        section: "Current Issue",
        quote: "Training runs out of memory around epoch 60 with:",
        evidence: Evidence::Computed(&[Comparison {
            what: "epoch in which the metrics' lists fill the card",
            said: Said::About(Amount::Number(60.0)),
            compute: |variants| variants.full_in(CURRENT),
        }]),
        why: "The batch is not the cause: two metrics keep the predictions of every validation because nobody calls reset, while a step needs the same in every epoch. The guide names no card; this is one of 32 GB.",
        source: "dreams/models/heads/heads.py: self.val_metrics(pred, real); torchmetrics 1.3.2; 803 validation spectra a rank",
    },
    Claim {
        section: "1. Gradient Accumulation",
        quote: "**Memory savings**: ~50% reduction in peak memory usage",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak with batch 1",
            said: Said::About(Amount::Change(-50.0)),
            compute: |variants| variants.change(CURRENT, AS_RUN),
        }]),
        why: "The peak is Adam's step over 99.7 M trained weights, which no batch changes; a smaller batch helps only where activations dominate.",
        source: "dreams/models/heads/heads.py: torch.optim.Adam",
    },
    Claim {
        section: "1. Gradient Accumulation",
        quote: "2 steps (maintains effective batch size of 2)",
        evidence: Evidence::Computed(&[Comparison {
            what: "effective batch as the scripts run, over the one before",
            said: Said::Exactly(Amount::Number(1.0)),
            compute: |variants| {
                let samples = |changes| {
                    variants
                        .scenario(changes)
                        .map(|run| run.effective_batch() as f64)
                };
                Ok(Amount::Number(samples(AS_RUN)? / samples(CURRENT)?))
            },
        }]),
        why: "The scripts pass a batch of 1, from which the fork derives an accumulation of 1: on two devices the effective batch falls from 4 to 2.",
        source: "dreams/training/train.py of the fork; integrated_memory_optimized_train_with_wandb.sh",
    },
    Claim {
        section: "2. Enhanced Memory Callbacks",
        quote: "**Memory savings**: 10-20% additional reduction",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak of the tensors with the cache emptied after every step",
            said: Said::Between(Amount::Change(-20.0), Amount::Change(-10.0)),
            compute: |variants| variants.emptied_cache(1),
        }]),
        why: "empty_cache gives unused blocks back to the driver and frees no tensor; deleting a local name inside a callback frees nothing either.",
        source: "torch.cuda.memory.empty_cache: does not increase the amount of memory available for PyTorch",
    },
    Claim {
        section: "3. Environment Optimizations",
        quote: "**CUDA memory allocation**: Configured for smaller chunks",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "reserved with max_split_size_mb:128",
                said: Said::Saves,
                compute: |variants| variants.reserved_change(CURRENT, &[("max_split", "128")]),
            },
            Comparison {
                what: "with expandable segments instead",
                said: Said::Nothing,
                compute: |variants| variants.reserved_change(CURRENT, &[("expandable", "on")]),
            },
        ]),
        why: "max_split_size_mb forbids splitting blocks above a size; it makes no block small. Expandable segments are what keeps reserved memory near allocated.",
        source: "PyTorch notes/cuda: optimizing memory usage with PYTORCH_ALLOC_CONF",
    },
    Claim {
        section: "3. Environment Optimizations",
        quote: "**Memory fraction**: Limited to 95% of available memory",
        evidence: Evidence::Computed(&[Comparison {
            what: "memory that the run may use",
            said: Said::AtLeast(Amount::Change(0.0)),
            compute: |variants| {
                let usable = |changes| {
                    variants
                        .estimate(changes)
                        .map(|found| found.usable.unwrap_or_default())
                };
                Ok(Amount::change(
                    usable(CURRENT)?,
                    usable(&[("runtime.memory_fraction", "0.95")])?,
                ))
            },
        }]),
        why: "The limit is a cap on this process: it takes memory away and saves none.",
        source: "torch.cuda.set_per_process_memory_fraction",
    },
    Claim {
        section: "3. Environment Optimizations",
        quote: "**Flash attention**: Enabled if available",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Saves,
            compute: |variants| variants.change(&[("attn", "eager")], &[("attn", "sdpa")]),
        }]),
        why: "The encoder computes products, softmax and dropout itself and never calls scaled_dot_product_attention.",
        source: "dreams/models/dreams/layers.py: MultiheadAttention.forward",
    },
    Claim {
        section: "4. Dataset Optimizations",
        quote: "# Use in-memory=False for large datasets",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak on the card, against 32 GiB of spectra in memory",
            said: Said::Saves,
            compute: |variants| variants.change(&[("runtime.dataset_gib", "32")], CURRENT),
        }]),
        why: "It saves host memory; spectra reach the card only with their batch.",
        source: "dreams/utils/data.py: MSData",
    },
    Claim {
        section: "4. Dataset Optimizations",
        quote: "original_args.limit_val_batches = 0.5  # Only use 50% of validation data",
        evidence: Evidence::Computed(&[Comparison {
            what: "epoch in which the metrics' lists fill the card",
            said: Said::AtLeast(Amount::Number(101.0)),
            compute: |variants| variants.full_in(&[("limit_val_batches", "0.5")]),
        }]),
        why: "Half the spectra are half of what the metrics keep: the card would be full after the run's 100 epochs. Set on the arguments as the guide says, it does nothing.",
        source: "dreams/training/train.py: limit_val_batches=0 if args.no_val else None",
    },
    Claim {
        section: "5. Model Architecture Tweaks",
        quote: "Reduce `d_fourier` from default (if using Fourier features)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak at batch 2",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("dims", "d_fourier=724")]),
            },
            Comparison {
                what: "at batch 64",
                said: Said::Saves,
                compute: |variants| {
                    variants.change(LARGE, &[("mb", "64"), ("dims", "d_fourier=724")])
                },
            },
        ]),
        why: "It would help a model trained from scratch; in fine-tuning the checkpoint fixes the size, and the flag is ignored.",
        source: "dreams/models/heads/heads.py: load_from_checkpoint",
    },
    Claim {
        section: "5. Model Architecture Tweaks",
        quote: "Use fewer transformer layers during fine-tuning (freeze some layers)",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak with the backbone frozen",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("freeze", "backbone")]),
        }]),
        why: "Without gradients and states of the backbone only its weights stay.",
        source: "--unfreeze_backbone_at_epoch of dreams/training/train_argparse.py",
    },
    Claim {
        section: "6. Checkpoint Strategy",
        quote: "# Reduce checkpoint frequency",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Saves,
            compute: |variants| {
                variants.change(
                    &[("runtime.save_every", "1000")],
                    &[("runtime.save_every", "2000")],
                )
            },
        }]),
        why: "Saving copies weights to the host; it costs disk and time, and no memory of the card.",
        source: "torch.save",
    },
    Claim {
        section: "7. Validation Optimizations",
        quote: "original_args.val_check_interval = 0.5  # Only twice per epoch",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "epoch in which the metrics' lists fill the card",
                said: Said::AtLeast(Amount::Number(101.0)),
                compute: |variants| variants.full_in(&[("val_check_interval", "0.5")]),
            },
            Comparison {
                what: "with four validations an epoch, as the fork sets",
                said: Said::Nothing,
                compute: |variants| variants.full_in(&[("val_check_interval", "0.25")]),
            },
        ]),
        why: "It helps for a reason that the guide does not give: each validation adds to what the metrics keep. Two an epoch postpone the end beyond the 100 epochs of the run.",
        source: "dreams/training/train.py of the fork: val_check_interval = 0.25",
    },
    Claim {
        section: "7. Validation Optimizations",
        quote: "original_args.limit_val_batches = 100   # Limit validation samples",
        evidence: Evidence::Computed(&[Comparison {
            what: "epoch in which the metrics' lists fill the card",
            said: Said::AtLeast(Amount::Number(101.0)),
            compute: |variants| variants.full_in(&[("limit_val_batches", "100")]),
        }]),
        why: "These are batches, of two spectra each: a quarter of the validation set.",
        source: "pytorch_lightning.Trainer: limit_val_batches",
    },
    Claim {
        section: "8. Mixed Precision (Alternative to FP32)",
        quote: "--train_precision 16  # Use mixed precision",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak at batch 2",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("precision", "amp-fp16")]),
            },
            Comparison {
                what: "at batch 64",
                said: Said::Saves,
                compute: |variants| {
                    variants.change(LARGE, &[("mb", "64"), ("precision", "amp-fp16")])
                },
            },
            Comparison {
                what: "in double precision, as the authors fine-tune, at batch 64",
                said: Said::Nothing,
                compute: |variants| variants.change(LARGE, &[("mb", "64"), ("precision", "fp64")]),
            },
        ]),
        why: "As it is, the flag ends the run at an assertion that wants 32 or 64. If it were allowed, weights, gradients and states would stay in fp32.",
        source: "dreams/utils/data.py: SpectrumPreprocessor",
    },
    Claim {
        section: "9. Sequential Layer Processing",
        quote: "process transformer layers sequentially rather than in parallel",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak at batch 64 with layers recomputed",
                said: Said::Saves,
                compute: |variants| variants.change(LARGE, &[("mb", "64"), ("ckpt", "layers")]),
            },
            Comparison {
                what: "with gradients summed apart, as for subclasses of tensors",
                said: Said::Nothing,
                compute: |variants| {
                    variants.change(
                        &[("mb", "64"), APART],
                        &[("mb", "64"), APART, ("ckpt", "layers")],
                    )
                },
            },
        ]),
        why: "Layers run one after the other already. Recomputing them gains nothing here: the tensor of all pairs is an input of every layer and now lives into backward, where its gradient is accumulated.",
        source: "dreams/models/dreams/layers.py at 2acc056; the authors' layers on PyTorch 2.15",
    },
    Claim {
        section: "10. Data Pipeline Optimizations",
        quote: "# Reduce num_workers to save CPU memory",
        evidence: Evidence::Computed(&[Comparison {
            what: "host memory with 1 worker instead of 4",
            said: Said::Saves,
            compute: |variants| Ok(Amount::change(host(variants, "4")?, host(variants, "1")?)),
        }]),
        why: "Each worker holds its prefetched batches in host memory.",
        source: "torch.utils.data.DataLoader: prefetch_factor",
    },
    Claim {
        section: "10. Data Pipeline Optimizations",
        quote: "# Use pin_memory=False to reduce memory pressure",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak on the card",
            said: Said::Saves,
            compute: |variants| {
                variants.change(
                    &[("runtime.pin_memory", "on")],
                    &[("runtime.pin_memory", "off")],
                )
            },
        }]),
        why: "Pinned memory is host memory; and this loader never pins any.",
        source: "dreams/utils/data.py: DataLoader",
    },
    Claim {
        section: "Memory Usage Monitoring",
        quote: "cached = torch.cuda.memory_reserved() / 1024**3",
        evidence: Evidence::Computed(&[Comparison {
            what: "cached memory over what the line prints",
            said: Said::Exactly(Amount::Number(1.0)),
            compute: |variants| {
                let reserved = variants.estimate(CURRENT)?.reserved.expected;
                Ok(Amount::Number(
                    variants.cached(CURRENT)?.get() as f64 / reserved.get().max(1) as f64,
                ))
            },
        }]),
        why: "Reserved memory contains allocated memory: what is cached is the difference; and 1024³ bytes are a GiB, not a GB.",
        source: "torch.cuda.memory_reserved",
    },
    Claim {
        section: "Expected Results",
        quote: "**Memory reduction**: ~50% peak memory usage",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak",
                said: Said::About(Amount::Change(-50.0)),
                compute: |variants| variants.change(CURRENT, AS_RUN),
            },
            Comparison {
                what: "of tensors, in the optimizer's step",
                said: Said::Nothing,
                compute: |variants| variants.size(AS_RUN),
            },
        ]),
        why: "Weights, gradients, two states and one temporary of the trained weights are all of it.",
        source: "torch.optim.Adam, foreach",
    },
    Claim {
        section: "Expected Results",
        quote: "**Training time**: Slightly increased due to more frequent cache clearing",
        evidence: Evidence::NotComputable(
            "a predicted step says nothing of how long the driver takes to give memory back and to hand it out again",
        ),
        why: "Every emptied cache is paid for with a synchronisation and new cudaMalloc calls, before and after each batch.",
        source: "dreams/training/memory_optimized_train.py: MemoryOptimizedCallback",
    },
    Claim {
        section: "Usage",
        quote: "**Extreme optimization**: Use `ultra_memory_optimized_train.sh`",
        evidence: Evidence::NotComputable("the script ends before its first step"),
        why: "It passes --gradient_clip_val, which the parser of this commit does not know.",
        source: "ultra_memory_optimized_train.sh; dreams/training/train_argparse.py",
    },
    Claim {
        section: "Troubleshooting",
        quote: "Reduce `max_peaks_n` from 100 to 80-90",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak at batch 2",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("dims", "peaks=80")]),
            },
            Comparison {
                what: "at batch 64",
                said: Said::Saves,
                compute: |variants| variants.change(LARGE, &[("mb", "64"), ("dims", "peaks=80")]),
            },
        ]),
        why: "The bias of all pairs grows with the square of the peaks, and is the peak only for large batches.",
        source: "dreams/models/dreams/dreams.py: graphormer_dists",
    },
    Claim {
        section: "Troubleshooting",
        quote: "Use only 1 GPU instead of 2",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("gpus", "1")]),
            },
            Comparison {
                what: "effective batch",
                said: Said::Nothing,
                compute: |variants| variants.samples(&[("gpus", "1")]),
            },
        ]),
        why: "It saves the buckets of data parallelism, as large as the gradients, and halves the effective batch.",
        source: "DDPStrategy in dreams/training/train.py",
    },
    Claim {
        section: "Troubleshooting",
        quote: "Implement model parallelism for larger models",
        evidence: Evidence::NotComputable("the model's code has no way to divide its layers"),
        why: "What does not fit in time are the metrics' lists, which dividing the model leaves whole on every card.",
        source: "dreams/models/heads/heads.py",
    },
];
