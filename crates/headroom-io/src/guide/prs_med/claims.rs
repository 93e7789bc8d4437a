//! What the guide claims, and what is computed for it.

use super::super::claim::gb;
use super::super::variants::Changes;
use super::super::{Amount, Claim, Comparison, Evidence, Said, Variants};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Category, Unsupported};

const PAPER: Changes = &[];
const NO_AMP: (&str, &str) = ("precision", "fp32");
const LAYERS: (&str, &str) = ("ckpt", "layers");
const ENCODER: (&str, &str) = ("dims", "checkpoint_encoder=1");
const FOUR_BITS: (&str, &str) = ("quant", "nf4-double");
/// Two samples, accumulated.
const TWO: Changes = &[("mb", "2"), ("accum", "4")];
/// "Configuration 1", with checkpointing that works.
const LEAST: Changes = &[("mb", "2"), ("accum", "4"), LAYERS, ENCODER];
/// The same with one sample: the most that the guide can do.
const ONE: Changes = &[("mb", "1"), ("accum", "8"), LAYERS, ENCODER];
/// "Configuration 2".
const BALANCED: Changes = &[("mb", "4"), ("accum", "2")];

/// The run that the guide calls original: batch 8 in fp32.
const ORIGINAL: Changes = &[NO_AMP];

/// What a variant takes of a card.
fn on(variants: &Variants, gpu: &str, changes: Changes) -> Result<Amount, Unsupported> {
    variants.share(&[changes, &[("gpu", gpu)]].concat())
}

/// What is left of the original's peak.
fn of_original(variants: &Variants, changes: Changes) -> Result<Amount, Unsupported> {
    Ok(Amount::share(
        variants.peak(changes)?,
        variants.peak(ORIGINAL)?,
    ))
}

/// A fixed fp32 tensor of the batch.
fn tensor(variants: &Variants, floats: u64) -> Result<Amount, Unsupported> {
    let batch = variants.scenario(PAPER)?.data.micro_batch;
    Ok(Amount::Size(Bytes::new(4) * (floats * batch)))
}

/// So many fp32 numbers for each trained weight.
fn trained(variants: &Variants, floats: u64) -> Result<Amount, Unsupported> {
    Ok(Amount::Size(
        Bytes::new(4 * floats) * variants.estimate(PAPER)?.trainable,
    ))
}

/// What one change saves at the peak.
fn saved(variants: &Variants, before: Changes, after: Changes) -> Result<Amount, Unsupported> {
    Ok(Amount::Size(
        variants.peak(before)?.saturating_sub(variants.peak(after)?),
    ))
}

/// Two copies of each map of the mask's decoder, before and after its norm, in two bytes: 128 to 4 channels, 32² to 1024².
fn mask_maps(variants: &Variants) -> Result<Amount, Unsupported> {
    let maps: u64 = (0..6_u64)
        .map(|stage| (128 >> stage) << (10 + 2 * stage))
        .sum();
    let batch = variants.scenario(PAPER)?.data.micro_batch;
    Ok(Amount::Size(Bytes::new(2 * 2) * (maps * batch)))
}

/// The speed of a checkpointed run by its arithmetic alone.
fn checkpointed_speed(variants: &Variants) -> Result<Amount, Unsupported> {
    let work = |changes| variants.estimate(changes).map(|found| found.flops.get());
    Ok(Amount::Share(100.0 * work(TWO)? / work(LEAST)?))
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        section: "Problem: Out of Memory (OOM) Errors",
        quote: "Original code uses float32 everywhere",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "bytes for each parameter",
                said: Said::Exactly(Amount::Number(4.0)),
                compute: |variants| {
                    let found = variants.estimate(PAPER)?;
                    let weights = variants.part(PAPER, Category::Parameters)?;
                    Ok(Amount::Number(
                        weights.get() as f64 / found.parameters.max(1) as f64,
                    ))
                },
            },
            Comparison {
                what: "weights",
                said: Said::Nothing,
                compute: |variants| variants.part_size(PAPER, Category::Parameters),
            },
        ]),
        why: "The language model is loaded in fp16 on CUDA; the authors' own code uses bf16.",
        source: "models/mllm/llava_med_mllm.py: dtype = torch.float16",
    },
    Claim {
        section: "1. Mixed Precision Training (AMP)",
        quote: "**Memory Savings**: ~50% reduction in memory usage",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::About(Amount::Change(-50.0)),
            compute: |variants| variants.change(ORIGINAL, PAPER),
        }]),
        why: "15.1 GB of frozen weights are fp16 already, and adapters keep their fp32 inputs and masks.",
        source: "peft/tuners/lora/layer.py: x is cast to the adapter's type",
    },
    Claim {
        section: "1. Mixed Precision Training (AMP)",
        quote: "keeping float32 for loss computation and gradient accumulation",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "bytes in the gradient of a trained weight",
                said: Said::Exactly(Amount::Number(4.0)),
                compute: |variants| {
                    let found = variants.estimate(TWO)?;
                    let gradients = variants.part(TWO, Category::Gradients)?;
                    Ok(Amount::Number(
                        (gradients.get() as f64 / found.trainable.max(1) as f64).round(),
                    ))
                },
            },
            Comparison {
                what: "gradients",
                said: Said::Nothing,
                compute: |variants| trained(variants, 1),
            },
        ]),
        why: "True of parameters in fp32, which all trained ones here are.",
        source: "torch.amp",
    },
    Claim {
        section: "2. Gradient Accumulation",
        quote: "Effective batch size: 2 × 4 = 8 (same as paper)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "samples in an optimizer step",
                said: Said::Exactly(Amount::Number(8.0)),
                compute: |variants| variants.samples(TWO),
            },
            Comparison {
                what: "peak",
                said: Said::Saves,
                compute: |variants| variants.change(PAPER, TWO),
            },
        ]),
        why: "Activations are four fifths of the peak at batch 8 and shrink with it; the weights stay.",
        source: "train_prs_med.py: loss_total / args.gradient_accumulation_steps",
    },
    Claim {
        section: "2. Gradient Accumulation",
        quote: "Same training dynamics as batch_size=8",
        evidence: Evidence::NotComputable(
            "what batch norms see is no matter of memory: both runs have 8 samples in an optimizer step",
        ),
        why: "The batch norms of the encoder, the fusion and the mask's decoder see two images instead of eight.",
        source: "tiny_vit_sam.py: Conv2d_BN; mask_prediction_module.py",
    },
    Claim {
        section: "3. Gradient Checkpointing",
        quote: "**Memory Savings**: ~30-50% reduction (trades compute for memory)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak with the language model checkpointed",
                said: Said::Between(Amount::Change(-50.0), Amount::Change(-30.0)),
                compute: |variants| variants.change(PAPER, &[LAYERS]),
            },
            Comparison {
                what: "with the encoder too",
                said: Said::Between(Amount::Change(-50.0), Amount::Change(-30.0)),
                compute: |variants| variants.change(PAPER, &[LAYERS, ENCODER]),
            },
        ]),
        why: "It could save more than that. As coded it is re-entrant over a frozen base, so that no adapter of the language model gets a gradient, and the encoder is never reached.",
        source: "train_prs_med.py: hasattr(encoder, 'use_checkpoint'); transformers 4.57 gradient_checkpointing_enable",
    },
    Claim {
        section: "4. Model Compilation (PyTorch 2.0+)",
        quote: "**Memory Savings**: ~10-15% reduction + faster training",
        evidence: Evidence::NotComputable(
            "compiled graphs are not modelled, neither what they fuse nor the pools that CUDA graphs keep",
        ),
        why: "mode='reduce-overhead' keeps pools for CUDA graphs, which take more; the forward moves tensors to the host and breaks its graph there.",
        source: "torch.compile documentation; train_prs_med.py",
    },
    Claim {
        section: "Configuration 0: 80GB GPU (A100/H100)",
        quote: "**Memory Usage**: ~12-15 GB (plenty of headroom)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::Between(gb(12.0), gb(15.0)),
                compute: |variants| variants.device(&[("gpu", "a100-sxm4-80gb")]),
            },
            Comparison {
                what: "of the card",
                said: Said::Nothing,
                compute: |variants| on(variants, "a100-sxm4-80gb", PAPER),
            },
        ]),
        why: "Frozen weights alone are 15.1 GB. Seven adapters a layer each keep an input, its dropped-out copy and a mask.",
        source: "models/mllm/llava_med_lora_adapter.py: target_modules",
    },
    Claim {
        section: "Configuration 0: 80GB GPU (A100/H100)",
        quote: "# Batch size 16 (2x faster per epoch, may need to scale LR)",
        evidence: Evidence::Computed(&[Comparison {
            what: "of an 80 GB card",
            said: Said::AtMost(Amount::Share(100.0)),
            compute: |variants| on(variants, "a100-sxm4-80gb", &[("mb", "16")]),
        }]),
        why: "Each sample takes 7.5 GB.",
        source: "the estimates of batch 8 and 16",
    },
    Claim {
        section: "Configuration 0: 80GB GPU (A100/H100)",
        quote: "# Batch size 32 (4x faster per epoch, scale LR accordingly)",
        evidence: Evidence::Computed(&[Comparison {
            what: "of an 80 GB card",
            said: Said::AtMost(Amount::Share(100.0)),
            compute: |variants| on(variants, "a100-sxm4-80gb", &[("mb", "32")]),
        }]),
        why: "It takes more than three cards.",
        source: "the estimates of batch 8 and 32",
    },
    Claim {
        section: "Configuration 0: 80GB GPU (A100/H100)",
        quote: "square root scaling (batch_size 16 → LR 1.41e-4)",
        evidence: Evidence::Computed(&[Comparison {
            what: "learning rate for batch 16, in units of 1e-4",
            said: Said::About(Amount::Number(1.41)),
            compute: |_| Ok(Amount::Number((16.0_f64 / 8.0).sqrt())),
        }]),
        why: "The linear rule is for SGD, the root for Adam; the code also multiplies by the number of processes.",
        source: "arXiv 1706.02677 and 2205.10287; train_prs_med.py: effective_lr",
    },
    Claim {
        section: "Configuration 1: Maximum Memory Savings",
        quote: "**Memory Usage**: ~40-50% of original",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the original's peak",
                said: Said::Between(Amount::Share(40.0), Amount::Share(50.0)),
                compute: |variants| of_original(variants, LEAST),
            },
            Comparison {
                what: "without checkpointing, as the flag works today",
                said: Said::Nothing,
                compute: |variants| of_original(variants, TWO),
            },
        ]),
        why: "Less than that if checkpointing worked; as it is wired, the encoder's activations stay and the adapters do not learn.",
        source: "train_prs_med.py",
    },
    Claim {
        section: "Configuration 1: Maximum Memory Savings",
        quote: "**Training Speed**: ~60-70% of original (due to checkpointing)",
        evidence: Evidence::Computed(&[Comparison {
            what: "speed by the arithmetic alone",
            said: Said::Between(Amount::Share(60.0), Amount::Share(70.0)),
            compute: checkpointed_speed,
        }]),
        why: "Over a frozen base backward takes about as long as forward, so one more forward costs a third. The guide's other figures, 70-80 % and 50-60 %, contradict this one.",
        source: "torch.utils.checkpoint",
    },
    Claim {
        section: "Configuration 2: Balanced (Recommended)",
        quote: "**Memory Usage**: ~50-60% of original",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the original's peak",
                said: Said::Between(Amount::Share(50.0), Amount::Share(60.0)),
                compute: |variants| of_original(variants, BALANCED),
            },
            Comparison {
                what: "of the 24 GB card that it is recommended for",
                said: Said::Nothing,
                compute: |variants| on(variants, "rtx-4090-24gb", BALANCED),
            },
        ]),
        why: "The share is right; the bytes are twice what that card has.",
        source: "the quick start below",
    },
    Claim {
        section: "Configuration 2: Balanced (Recommended)",
        quote: "**Training Speed**: ~90-95% of original",
        evidence: Evidence::NotComputable(
            "the guide does not say on what, and a smaller batch loses by what the card does between kernels",
        ),
        why: "The arithmetic of a sample is the same.",
        source: "train_prs_med.py",
    },
    Claim {
        section: "Configuration 3: Paper Settings",
        quote: "**Memory Usage**: ~50% of original (due to AMP)",
        evidence: Evidence::Computed(&[Comparison {
            what: "of the original's peak",
            said: Said::About(Amount::Share(50.0)),
            compute: |variants| of_original(variants, PAPER),
        }]),
        why: "As for AMP above.",
        source: "train_prs_med.py",
    },
    Claim {
        section: "Configuration 3: Paper Settings",
        quote: "**Training Speed**: ~95-100% of original",
        evidence: Evidence::NotComputable(
            "the guide does not say on what: autocast to fp16 is several times faster on tensor cores, not slower",
        ),
        why: "Three of the guide's speeds for checkpointing differ: 60-70, 70-80 and 50-60 %.",
        source: "NVIDIA A100 datasheet: dense fp16 against fp32",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Input Images**: ~100 MB (8 × 3 × 1024 × 1024 × 4 bytes)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "images",
                said: Said::About(gb(0.1)),
                compute: |variants| tensor(variants, 3 << 20),
            },
            Comparison {
                what: "masks, which the list leaves out",
                said: Said::Nothing,
                compute: |variants| tensor(variants, 1 << 20),
            },
        ]),
        why: "The formula is right.",
        source: "train_prs_med.py: batch['image'], batch['mask']",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Vision Backbone (TinySAM)**: ~500-800 MB (model + activations)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "what checkpointing it saves",
                said: Said::Between(gb(0.5), gb(0.8)),
                compute: |variants| saved(variants, PAPER, &[ENCODER]),
            },
            Comparison {
                what: "without AMP",
                said: Said::Nothing,
                compute: |variants| saved(variants, ORIGINAL, &[NO_AMP, ENCODER]),
            },
        ]),
        why: "Maps of 256 channels at 256² in its first stage, kept several times: 10.9 GB in all.",
        source: "tiny_vit_sam.py: MBConv with expansion 4 at a quarter of 1024²",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**MLLM (LLaVA-Med)**: ~14-16 GB (Mistral-7B base model, even when frozen)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "weights",
                said: Said::Between(gb(14.0), gb(16.0)),
                compute: |variants| variants.part_size(PAPER, Category::Parameters),
            },
            Comparison {
                what: "activations, with the encoder's",
                said: Said::Nothing,
                compute: |variants| variants.part_size(PAPER, Category::Activations),
            },
        ]),
        why: "Right for weights; what its adapters keep is left out.",
        source: "models/mllm/llava_med_lora_adapter.py",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Mask Prediction**: ~200-300 MB (intermediate activations)",
        evidence: Evidence::Computed(&[Comparison {
            what: "maps before and after their norms",
            said: Said::Between(gb(0.2), gb(0.3)),
            compute: mask_maps,
        }]),
        why: "The last map has four channels at 1024².",
        source: "mask_prediction_module.py",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Gradients**: ~1-2 GB (for trainable parameters)",
        evidence: Evidence::Computed(&[Comparison {
            what: "gradients",
            said: Said::Between(gb(1.0), gb(2.0)),
            compute: |variants| trained(variants, 1),
        }]),
        why: "58.0 million parameters are trained, in fp32.",
        source: "train_prs_med.py: trainable_params",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Optimizer States**: ~2-4 GB (AdamW momentum buffers)",
        evidence: Evidence::Computed(&[Comparison {
            what: "states",
            said: Said::Between(gb(2.0), gb(4.0)),
            compute: |variants| trained(variants, 2),
        }]),
        why: "Two moments of the same parameters.",
        source: "train_prs_med.py: optim.AdamW",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Total**: ~18-24 GB for batch_size=8",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak without AMP",
                said: Said::Between(gb(18.0), gb(24.0)),
                compute: |variants| variants.size(ORIGINAL),
            },
            Comparison {
                what: "with AMP",
                said: Said::Between(gb(18.0), gb(24.0)),
                compute: |variants| variants.size(PAPER),
            },
        ]),
        why: "The activations of the language model's adapters and of the encoder are not in the list.",
        source: "the lines above",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**AMP**: Reduces to ~9-12 GB",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Between(gb(9.0), gb(12.0)),
            compute: |variants| variants.size(PAPER),
        }]),
        why: "That is less than the frozen weights.",
        source: "7,566,743,552 parameters in two bytes",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Gradient Accumulation (batch_size=2)**: Reduces to ~4.5-6 GB",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Between(gb(4.5), gb(6.0)),
            compute: |variants| variants.size(TWO),
        }]),
        why: "That is less than half of the frozen weights.",
        source: "7,566,743,552 parameters in two bytes",
    },
    Claim {
        section: "Understanding Memory Usage",
        quote: "**Gradient Checkpointing**: Further reduces by 30-50%",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak at batch 2",
            said: Said::Between(Amount::Change(-50.0), Amount::Change(-30.0)),
            compute: |variants| variants.change(TWO, LEAST),
        }]),
        why: "If it worked.",
        source: "train_prs_med.py",
    },
    Claim {
        section: "Still Getting OOM Errors?",
        quote: "--batch_size 1 --gradient_accumulation_steps 8",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak against batch 8",
            said: Said::Saves,
            compute: |variants| variants.change(&[], &[("mb", "1"), ("accum", "8")]),
        }]),
        why: "It saves the activations of seven samples; the frozen weights stay.",
        source: "train_prs_med.py",
    },
    Claim {
        section: "Troubleshooting",
        quote: "Available: {torch.cuda.memory_reserved(0) / 1e9:.2f} GB",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "what is printed, over what is free",
                said: Said::Exactly(Amount::Number(1.0)),
                compute: |variants| {
                    let printed = variants.estimate(PAPER)?.reserved.expected;
                    Ok(Amount::Number(
                        printed.get() as f64 / variants.room(PAPER)?.get().max(1) as f64,
                    ))
                },
            },
            Comparison {
                what: "free",
                said: Said::Nothing,
                compute: |variants| variants.room(PAPER).map(Amount::Size),
            },
        ]),
        why: "Reserved is what torch has taken. torch.cuda.mem_get_info() returns what is free.",
        source: "torch.cuda.memory_reserved",
    },
    Claim {
        section: "Troubleshooting",
        quote: "--image_size 512  # Instead of 1024",
        evidence: Evidence::NotComputable("the run ends at an assertion before its first step"),
        why: "TinyViT asserts its grid and reshapes to 64 × 64; the data set resizes to 1024 anyway.",
        source: "tiny_vit_sam.py: assert L == H * W; x.view(B, 64, 64, C)",
    },
    Claim {
        section: "Performance Tips",
        quote: "**Use `pin_memory=True`** (already enabled) for faster data transfer",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak on the card",
            said: Said::Nothing,
            compute: |variants| {
                variants.change(
                    &[("runtime.pin_memory", "off")],
                    &[("runtime.pin_memory", "on")],
                )
            },
        }]),
        why: "Page-locked memory is the host's.",
        source: "train_prs_med.py: DataLoader",
    },
    Claim {
        section: "Performance Tips",
        quote: "**Clear cache periodically** (already implemented every 10 batches)",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak of the tensors with the cache emptied after every tenth step",
            said: Said::Saves,
            compute: |variants| variants.emptied_cache(10),
        }]),
        why: "It frees no tensor, and only rank 0 does it.",
        source: "train_prs_med.py: is_main_process() and batch_idx % 10 == 0",
    },
    Claim {
        section: "Performance Tips",
        quote: "torchrun --nproc_per_node=4 train_prs_med.py --data_root /path/to/data --batch_size 2",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "samples in an optimizer step",
                said: Said::Exactly(Amount::Number(8.0)),
                compute: |variants| variants.samples(&[("mb", "2"), ("gpus", "4")]),
            },
            Comparison {
                what: "of the card",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| variants.share(&[("mb", "2"), ("gpus", "4")]),
            },
        ]),
        why: "It fits, and does not run: DDP ends in the second step over parameters without gradients. The learning rate would be four times as high.",
        source: "train_prs_med.py: find_unused_parameters=False, effective_lr",
    },
    Claim {
        section: "Example: Training with Limited Memory (16GB GPU)",
        quote: "Memory usage: ~6-8 GB",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::Between(gb(6.0), gb(8.0)),
                compute: |variants| variants.device(&[ONE, &[("gpu", "rtx-4080-16gb")]].concat()),
            },
            Comparison {
                what: "of the card",
                said: Said::Nothing,
                compute: |variants| on(variants, "rtx-4080-16gb", ONE),
            },
        ]),
        why: "The frozen weights are 14.1 GiB.",
        source: "models/mllm/llava_med_mllm.py",
    },
    Claim {
        section: "Monitoring Memory Usage",
        quote: "torch.cuda.memory_reserved(0) - torch.cuda.memory_allocated(0) / 1e9:.2f} GB",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "GB printed for each GB cached",
                said: Said::Exactly(Amount::Number(1.0)),
                compute: |variants| {
                    let found = variants.estimate(PAPER)?;
                    let allocated = found.allocated.expected.get() as f64;
                    let printed = found.reserved.expected.get() as f64 - allocated / 1e9;
                    Ok(Amount::Number(
                        (printed / (variants.cached(PAPER)?.get() as f64 / 1e9)).round(),
                    ))
                },
            },
            Comparison {
                what: "cached",
                said: Said::Nothing,
                compute: |variants| variants.cached(PAPER).map(Amount::Size),
            },
        ]),
        why: "The division binds before the subtraction: it prints bytes.",
        source: "MEMORY_OPTIMIZATION.md: the snippet",
    },
    Claim {
        section: "Quick Start Guide by GPU Size",
        quote: "**80GB GPU (A100/H100)**: Use Configuration 0 - batch_size 8-32, AMP + compilation",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card at batch 8",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| on(variants, "a100-sxm4-80gb", PAPER),
            },
            Comparison {
                what: "at batch 32",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| on(variants, "a100-sxm4-80gb", &[("mb", "32")]),
            },
        ]),
        why: "Batch 8 just fits.",
        source: "the estimates",
    },
    Claim {
        section: "Quick Start Guide by GPU Size",
        quote: "**24GB GPU (RTX 3090/4090)**: Use Configuration 2 - batch_size 4-8, AMP",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card at batch 4",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| on(variants, "rtx-4090-24gb", BALANCED),
            },
            Comparison {
                what: "at batch 8",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| on(variants, "rtx-4090-24gb", PAPER),
            },
            Comparison {
                what: "at batch 8, checkpointed",
                said: Said::Nothing,
                compute: |variants| on(variants, "rtx-4090-24gb", &[LAYERS, ENCODER]),
            },
        ]),
        why: "Only with both parts checkpointed, which needs a patch.",
        source: "the estimates",
    },
    Claim {
        section: "Quick Start Guide by GPU Size",
        quote: "**16GB GPU (RTX 3080/4080)**: Use Configuration 1 - batch_size 2-4, AMP + gradient accumulation",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card at batch 2",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| on(variants, "rtx-4080-16gb", LEAST),
            },
            Comparison {
                what: "with the base in 4 bits",
                said: Said::Nothing,
                compute: |variants| on(variants, "rtx-4080-16gb", &[LEAST, &[FOUR_BITS]].concat()),
            },
        ]),
        why: "A desktop RTX 3080 has 10 or 12 GB. 16 GB need a quantised base, which the class can load and the command line cannot ask for.",
        source: "models/mllm/llava_med_mllm.py: use_4bit",
    },
    Claim {
        section: "Quick Start Guide by GPU Size",
        quote: "**8GB GPU**: Use Configuration 1 with batch_size 1, all optimizations enabled",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| on(variants, "rtx-4060-8gb", ONE),
            },
            Comparison {
                what: "with the base in 4 bits",
                said: Said::Nothing,
                compute: |variants| on(variants, "rtx-4060-8gb", &[ONE, &[FOUR_BITS]].concat()),
            },
        ]),
        why: "The frozen weights alone are twice the card.",
        source: "models/mllm/llava_med_mllm.py: use_4bit",
    },
];
