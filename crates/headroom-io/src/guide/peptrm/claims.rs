//! What the guide claims, and what is computed for it.

use super::super::claim::gb;
use super::super::variants::Changes;
use super::super::{Amount, Claim, Comparison, Evidence, Said, Variants};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Category, Unsupported};

const CURRENT: Changes = &[];
const ORIGINAL: Changes = &[("mb", "96"), ("accum", "1")];
const CONSERVATIVE: Changes = &[("mb", "32"), ("accum", "3")];
const AGGRESSIVE: Changes = &[("mb", "64")];
const NO_SPECTRUM_LOSS: (&str, &str) = ("dims", "bins=0");
/// Every latent step checkpointed.
const LATENT: (&str, &str) = ("ckpt", "layers");

/// What one more sample adds to the peak.
fn per_sample(variants: &Variants) -> Result<Bytes, Unsupported> {
    let (small, large) = (
        variants.peak(&[("mb", "40")])?,
        variants.peak(&[("mb", "48")])?,
    );
    Ok(large.saturating_sub(small).scale(1.0 / 8.0))
}

/// What no sample adds.
fn base(variants: &Variants) -> Result<Amount, Unsupported> {
    let peak = variants.peak(&[("mb", "48")])?;
    Ok(Amount::Size(
        peak.saturating_sub(per_sample(variants)? * 48),
    ))
}

/// What the spectrum loss adds to the peak of a batch of 96, with so many bins.
fn spectrum_loss(variants: &Variants, bins: &str) -> Result<Bytes, Unsupported> {
    let with = variants.peak(&[("mb", "96"), ("accum", "1"), ("dims", bins)])?;
    let without = variants.peak(&[("mb", "96"), ("accum", "1"), NO_SPECTRUM_LOSS])?;
    Ok(with.saturating_sub(without))
}

/// Passes through a decoder layer that are kept for backward: steps multiply.
fn passes(variants: &Variants) -> Result<Amount, Unsupported> {
    let passes = (variants.dim(CURRENT, "latent_steps")? + 1)
        * variants.dim(CURRENT, "supervision_steps")?
        * variants.dim(CURRENT, "decoder_layers")?;
    Ok(Amount::Number(passes as f64))
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **Model Parameters** | ~1.5 GB | 12.5M params",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "weights and gradients",
                said: Said::About(gb(1.5)),
                compute: |variants| {
                    let parts = variants.part(CURRENT, Category::Parameters)?
                        + variants.part(CURRENT, Category::Gradients)?;
                    Ok(Amount::Size(parts))
                },
            },
            Comparison {
                what: "million parameters",
                said: Said::About(Amount::Number(12.5)),
                compute: |variants| {
                    let count = variants.estimate(CURRENT)?.parameters;
                    Ok(Amount::Number((count as f64 / 1e5).round() / 10.0))
                },
            },
        ]),
        why: "The count is right; the guide's own formula gives 50 MB, and the weights are fp32 under autocast.",
        source: "src/model/trm.py; src/training/trainer_optimized.py",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **Optimizer States** | ~3 GB |",
        evidence: Evidence::Computed(&[Comparison {
            what: "states",
            said: Said::About(gb(3.0)),
            compute: |variants| variants.part_size(CURRENT, Category::OptimizerStates),
        }]),
        why: "Two fp32 numbers for each of 12.5 M weights.",
        source: "src/training/trainer_optimized.py: AdamW",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **EMA Model** | ~750 MB | Full copy of model parameters |",
        evidence: Evidence::Computed(&[Comparison {
            what: "moving average",
            said: Said::About(gb(0.75)),
            compute: |variants| variants.part_size(CURRENT, Category::Ema),
        }]),
        why: "One more copy of the weights.",
        source: "src/training/trainer_optimized.py: EMA",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **Activations (per batch)** | ~2-3 GB | Forward pass intermediate tensors (8 supervision + 6 latent steps) |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak without the spectrum loss",
                said: Said::Between(gb(2.0), gb(3.0)),
                compute: |variants| variants.size(&[NO_SPECTRUM_LOSS]),
            },
            Comparison {
                what: "passes through a decoder layer that are kept",
                said: Said::Exactly(Amount::Number(14.0)),
                compute: passes,
            },
        ]),
        why: "Steps multiply instead of adding up: 8 × (6 + 1) × 3 layers are kept for backward. The guide's own table says 14 GB at a batch of 96.",
        source: "src/model/decoder.py: RecursiveCore.forward",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **Gaussian Spectrum Loss** | ~800 MB |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "at a batch of 96",
                said: Said::About(gb(0.8)),
                compute: |variants| spectrum_loss(variants, "bins=20000").map(Amount::Size),
            },
            Comparison {
                what: "one of its tensors",
                said: Said::Nothing,
                compute: |variants| {
                    let bins = variants.dim(CURRENT, "bins")?;
                    Ok(Amount::Size(Bytes::new(4) * (96 * 128 * bins)))
                },
            },
        ]),
        why: "It counts one tensor of (batch, 100 peaks, bins); 128 fragments are rendered, and backward keeps several such tensors.",
        source: "src/training/losses_old_gaussian_only.py: _gaussian_render",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **Precursor Loss** | ~50 MB |",
        evidence: Evidence::Computed(&[Comparison {
            what: "what it adds to the peak",
            said: Said::About(gb(0.05)),
            compute: |variants| {
                let with = variants.peak(CURRENT)?;
                let without = variants.peak(&[("dims", "precursor=0")])?;
                Ok(Amount::Size(with.saturating_sub(without)))
            },
        }]),
        why: "It is even lighter: numbers for each sample, not megabytes.",
        source: "src/training/losses_old_gaussian_only.py: PrecursorMassLoss",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **Buffer/Overhead** | ~1 GB | CUDA overhead, intermediate buffers |",
        evidence: Evidence::Computed(&[Comparison {
            what: "on the card beside tensors",
            said: Said::About(Amount::Size(Bytes::new(1_000_000_000))),
            compute: |variants| {
                let found = variants.estimate(CURRENT)?;
                Ok(Amount::Size(
                    found.device.expected - found.allocated.expected,
                ))
            },
        }]),
        why: "The CUDA context, and what the allocator reserves beyond tensors.",
        source: "c10/cuda/CUDACachingAllocator.cpp",
    },
    Claim {
        section: "Memory Breakdown by Component",
        quote: "| **TOTAL** | ~9-10 GB base + batch-dependent activations |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "base",
                said: Said::Between(gb(9.0), gb(10.0)),
                compute: base,
            },
            Comparison {
                what: "for each sample",
                said: Said::Nothing,
                compute: |variants| per_sample(variants).map(Amount::Size),
            },
        ]),
        why: "Nearly all of it grows with the batch.",
        source: "src/model/decoder.py",
    },
    Claim {
        section: "Batch Size Impact",
        quote: "| **Original** | 96 | 1 | 96 | ~14 GB | ~24 GB |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::About(gb(24.0)),
                compute: |variants| variants.device(ORIGINAL),
            },
            Comparison {
                what: "of the card",
                said: Said::AtLeast(Amount::Share(100.0)),
                compute: |variants| variants.share(ORIGINAL),
            },
        ]),
        why: "It does run out of memory; without the spectrum loss it fits.",
        source: "src/training/losses_old_gaussian_only.py",
    },
    Claim {
        section: "Batch Size Impact",
        quote: "| **Current (Recommended)** | 48 | 2 | 96 | ~7 GB | ~17 GB |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::About(gb(17.0)),
                compute: |variants| variants.device(CURRENT),
            },
            Comparison {
                what: "of the card",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| variants.share(CURRENT),
            },
        ]),
        why: "Safe, and below what it says.",
        source: "src/model/decoder.py",
    },
    Claim {
        section: "Batch Size Impact",
        quote: "| **Conservative** | 32 | 3 | 96 | ~5 GB | ~15 GB |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::About(gb(15.0)),
                compute: |variants| variants.device(CONSERVATIVE),
            },
            Comparison {
                what: "of the card",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| variants.share(CONSERVATIVE),
            },
        ]),
        why: "The guide's base is too large by 9 GB, its activations too small.",
        source: "src/model/decoder.py",
    },
    Claim {
        section: "Batch Size Impact",
        quote: "| **Aggressive** | 64 | 2 | 128 | ~9 GB | ~19 GB |",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::About(gb(19.0)),
                compute: |variants| variants.device(AGGRESSIVE),
            },
            Comparison {
                what: "samples in an optimizer step",
                said: Said::Exactly(Amount::Number(128.0)),
                compute: |variants| variants.samples(AGGRESSIVE),
            },
            Comparison {
                what: "of the card with a batch of 80, as the repository's own YAML trains",
                said: Said::Nothing,
                compute: |variants| variants.share(&[("mb", "80"), ("accum", "1")]),
            },
        ]),
        why: "Not risky: it leaves several GB, and even 80 fits.",
        source: "src/model/decoder.py; configs/optimized_extended.yaml",
    },
    Claim {
        section: "Why Gradient Accumulation is Ideal",
        quote: "No quality loss (mathematically equivalent to larger batch)",
        evidence: Evidence::NotComputable(
            "schedules and averages are no matter of memory: both runs have 96 samples in an optimizer step",
        ),
        why: "Here steps count micro-batches: scheduler and moving average step half as often and the cosine ends half way; token means are taken in each micro-batch.",
        source: "src/training/trainer_optimized.py: global_step",
    },
    Claim {
        section: "Why Gradient Accumulation is Ideal",
        quote: "Halves memory usage per forward pass",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::About(Amount::Change(-50.0)),
            compute: |variants| variants.change(ORIGINAL, CURRENT),
        }]),
        why: "Nearly everything is proportional to the batch.",
        source: "src/model/decoder.py",
    },
    Claim {
        section: "Why Gradient Accumulation is Ideal",
        quote: "But only ~10-20% slower overall due to reduced memory pressure",
        evidence: Evidence::NotComputable(
            "memory that is free makes no kernel faster: how much smaller kernels lose depends on launches between them",
        ),
        why: "The arithmetic is the same; twice as many kernels of half the size.",
        source: "src/training/trainer_optimized.py: train_step",
    },
    Claim {
        section: "1. torch.compile (Worth Trying)",
        quote: "May not help or may use MORE memory",
        evidence: Evidence::NotComputable(
            "compiled graphs are not modelled, neither what they fuse nor the pools that CUDA graphs keep",
        ),
        why: "mode reduce-overhead keeps pools of CUDA graphs beside the tensors.",
        source: "configs/optimized_extended.yaml: its own comment on headroom for CUDA graphs",
    },
    Claim {
        section: "1. torch.compile (Worth Trying)",
        quote: "Compilation time (2-5 min first run)",
        evidence: Evidence::NotComputable(
            "how long the compiler takes is not a question of memory",
        ),
        why: "Each new shape is compiled again; here all are padded.",
        source: "torch.compile: dynamic shapes",
    },
    Claim {
        section: "2. Reduce Batch Size (Fallback)",
        quote: "gradient_accumulation_steps: 3  # or 4 (to maintain effective_batch=96)",
        evidence: Evidence::Computed(&[Comparison {
            what: "samples of an optimizer step with 24 × 4",
            said: Said::Exactly(Amount::Number(96.0)),
            compute: |variants| variants.samples(&[("mb", "24"), ("accum", "4")]),
        }]),
        why: "24 × 4 are 96 samples, as 32 × 3 are.",
        source: "src/training/trainer_optimized.py",
    },
    Claim {
        section: "3. Optimize Spectrum Loss Resolution (Last Resort)",
        quote: "Reduces spectrum loss memory by ~60%",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "what the loss adds to the peak",
                said: Said::About(Amount::Change(-60.0)),
                compute: |variants| {
                    Ok(Amount::change(
                        spectrum_loss(variants, "bins=20000")?,
                        spectrum_loss(variants, "bins=7500")?,
                    ))
                },
            },
            Comparison {
                what: "the whole peak",
                said: Said::Nothing,
                compute: |variants| {
                    variants.change(&[("mb", "96")], &[("mb", "96"), ("dims", "bins=7500")])
                },
            },
        ]),
        why: "True of the loss; of the whole run it is an eighth. A width of 0.05 in bins of 0.2 also starves the gradient.",
        source: "src/training/losses_old_gaussian_only.py",
    },
    Claim {
        section: "4. Gradient Checkpointing (Not Recommended Here)",
        quote: "Won't help much and adds significant compute overhead.",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak with each latent step checkpointed",
                said: Said::AtLeast(Amount::Change(-10.0)),
                compute: |variants| variants.change(CURRENT, &[LATENT]),
            },
            Comparison {
                what: "with each supervision step",
                said: Said::AtLeast(Amount::Change(-10.0)),
                compute: |variants| {
                    variants.change(CURRENT, &[LATENT, ("dims", "checkpoint_supervision=1")])
                },
            },
            Comparison {
                what: "with gradients through the last cycle only, as the original TRM trains",
                said: Said::Nothing,
                compute: |variants| variants.change(CURRENT, &[("dims", "horizon=1")]),
            },
        ]),
        why: "Unrolled, the model is 168 layers deep.",
        source: "src/model/decoder.py: RecursiveCore.forward; SamsungSAILMontreal/TinyRecursiveModels: no_grad around all cycles but the last",
    },
    Claim {
        section: "Planning for Precursor Loss",
        quote: "You have ~7 GB headroom",
        evidence: Evidence::Computed(&[Comparison {
            what: "free on the card",
            said: Said::About(gb(7.0)),
            compute: |variants| variants.room(CURRENT).map(Amount::Size),
        }]),
        why: "There is more.",
        source: "computed",
    },
    Claim {
        section: "Planning for Precursor Loss",
        quote: "gradient_accumulation_steps: 2  # effective_batch=80 (slightly less but safer)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "samples in an optimizer step",
                said: Said::Exactly(Amount::Number(80.0)),
                compute: |variants| variants.samples(&[("mb", "40")]),
            },
            Comparison {
                what: "on the card",
                said: Said::Saves,
                compute: |variants| {
                    let device = |changes| {
                        variants
                            .estimate(changes)
                            .map(|found| found.device.expected)
                    };
                    Ok(Amount::change(device(CURRENT)?, device(&[("mb", "40")])?))
                },
            },
        ]),
        why: "Eight samples fewer.",
        source: "computed",
    },
    Claim {
        section: "Troubleshooting OOM",
        quote: "Some stages (longer peptides, more peaks) use more memory",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak when a stage turns the spectrum loss on",
            said: Said::Adds,
            compute: |variants| variants.change(&[NO_SPECTRUM_LOSS], CURRENT),
        }]),
        why: "Not because of longer peptides: every sample is padded to 35 places and 100 peaks. A spectrum weight that becomes positive at step 30,000 does it: a late out-of-memory error that is no leak.",
        source: "src/training/curriculum_delayed_spectrum.py",
    },
    Claim {
        section: "Troubleshooting OOM",
        quote: "Reduce `max_length` in curriculum stages",
        evidence: Evidence::NotComputable(
            "the length of a stage's peptides changes no tensor, so there is no run to compare with",
        ),
        why: "Every sample is padded to 35 places whatever its stage.",
        source: "src/training/curriculum_delayed_spectrum.py",
    },
    Claim {
        section: "Troubleshooting OOM",
        quote: "More peaks = more memory in Gaussian rendering",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "what the loss adds to the peak, with 80 peaks instead of 100",
                said: Said::Saves,
                compute: |variants| {
                    let loss = |peaks| -> Result<Bytes, Unsupported> {
                        let with = variants.peak(&[("dims", peaks)])?;
                        let without = variants.peak(&[("dims", peaks), NO_SPECTRUM_LOSS])?;
                        Ok(with.saturating_sub(without))
                    };
                    Ok(Amount::change(loss("peaks=100")?, loss("peaks=80")?))
                },
            },
            Comparison {
                what: "the whole peak",
                said: Said::Nothing,
                compute: |variants| variants.change(CURRENT, &[("dims", "peaks=80")]),
            },
        ]),
        why: "Rendered peaks come from the sequence's length and the ion types; fewer observed peaks shrink the encoder and cross-attention.",
        source: "src/data/ion_types.py: compute_theoretical_peaks",
    },
    Claim {
        section: "Troubleshooting OOM",
        quote: "**Verify AMP is active**:",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak with fp16 instead of fp32",
                said: Said::Saves,
                compute: |variants| variants.change(&[("precision", "fp32")], CURRENT),
            },
            Comparison {
                what: "with bf16 instead of fp16",
                said: Said::Nothing,
                compute: |variants| variants.change(CURRENT, &[("precision", "amp-bf16")]),
            },
        ]),
        why: "Worth checking; the type that it prints is not used: autocast is always fp16, which makes no difference to memory.",
        source: "src/training/trainer_optimized.py: autocast",
    },
    Claim {
        section: "Troubleshooting OOM",
        quote: "**Clear cache before training**:",
        evidence: Evidence::NotComputable(
            "nothing has been allocated before training, so there is no cache that a prediction could clear",
        ),
        why: "What is cached before training, training can use.",
        source: "torch.cuda.memory.empty_cache",
    },
    Claim {
        section: "Memory Monitoring Commands",
        quote: "nvidia-smi --query-gpu=memory.used,memory.free --format=csv -l 1",
        evidence: Evidence::Computed(&[Comparison {
            what: "what the command shows, over what the process has in tensors",
            said: Said::Exactly(Amount::Number(1.0)),
            compute: |variants| {
                let found = variants.estimate(CURRENT)?;
                Ok(Amount::Number(
                    found.device.expected.get() as f64
                        / found.allocated.expected.get().max(1) as f64,
                ))
            },
        }]),
        why: "It is offered to \"monitor specific process\" and shows the card, context and cache included; a process is shown by --query-compute-apps=pid,used_memory.",
        source: "nvidia-smi --help-query-compute-apps",
    },
    Claim {
        section: "Memory Monitoring Commands",
        quote: "allocated = torch.cuda.memory_allocated() / 1e9",
        evidence: Evidence::Computed(&[Comparison {
            what: "bytes of what is printed as one GB, in GB",
            said: Said::Exactly(Amount::Number(1.0)),
            compute: |_| Ok(Amount::Number(Bytes::new(1_000_000_000).get() as f64 / 1e9)),
        }]),
        why: "10⁹ bytes are a GB; the card's own 24 GB are GiB.",
        source: "torch.cuda.memory_allocated",
    },
];
