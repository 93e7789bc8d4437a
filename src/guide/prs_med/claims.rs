//! What the guide claims, and what is computed for it.

use super::super::lab::{Changes, decimal};
use super::super::{Claim, Verdict};
use super::{ENCODER, FOUR_BITS, LAYERS, LEAST, NO_AMP, ONE, change, gb, on, tensor, trained};
use crate::estimate::{Category, Unsupported};
use crate::units::Bytes;

pub const CLAIMS: &[Claim] = &[
    Claim {
        place: "Problem",
        said: "no memory optimizations: original code uses float32 everywhere",
        computed: |lab| {
            let weights = lab.part(&[], Category::Parameters)?;
            Ok(format!(
                "weights {}, in fp16 but for what is trained",
                decimal(weights)
            ))
        },
        verdict: Verdict::Wrong,
        why: "The language model is loaded in fp16 on CUDA; the authors' own code uses bf16.",
        source: "models/mllm/llava_med_mllm.py: dtype = torch.float16",
    },
    Claim {
        place: "1. Mixed Precision",
        said: "AMP saves ~50 %",
        computed: |lab| change(lab, &[NO_AMP], &[]),
        verdict: Verdict::Wrong,
        why: "15.1 GB of frozen weights are fp16 already, and adapters keep their fp32 inputs and masks.",
        source: "peft/tuners/lora/layer.py: x is cast to the adapter's type",
    },
    Claim {
        place: "1. Mixed Precision",
        said: "float32 for loss computation and gradient accumulation",
        computed: |lab| Ok(format!("gradients of {} in fp32", trained(lab, 1)?)),
        verdict: Verdict::Partly,
        why: "True of parameters in fp32, which all trained ones here are.",
        source: "torch.amp",
    },
    Claim {
        place: "2. Gradient Accumulation",
        said: "batch 2 with 4 steps is effective batch 8 with less memory",
        computed: |lab| {
            let two = [("mb", "2"), ("accum", "4")];
            Ok(format!("{}: {}", lab.batch(&two)?, change(lab, &[], &two)?))
        },
        verdict: Verdict::Right,
        why: "Activations are four fifths of the peak at batch 8 and shrink with it; the weights stay.",
        source: "train_prs_med.py: loss_total / args.gradient_accumulation_steps",
    },
    Claim {
        place: "2. Gradient Accumulation",
        said: "same training dynamics as batch_size=8",
        computed: |lab| lab.batch(&[("mb", "2"), ("accum", "4")]),
        verdict: Verdict::Wrong,
        why: "The batch norms of the encoder, the fusion and the mask's decoder see two images, not eight.",
        source: "tiny_vit_sam.py: Conv2d_BN; mask_prediction_module.py",
    },
    Claim {
        place: "3. Gradient Checkpointing",
        said: "saves ~30-50 %, 20-30 % slower",
        computed: |lab| {
            Ok(format!(
                "language model {}; encoder too {}",
                change(lab, &[], &[LAYERS])?,
                change(lab, &[], &[LAYERS, ENCODER])?
            ))
        },
        verdict: Verdict::Partly,
        why: "Its potential. As coded it is re-entrant over a frozen base, so that no adapter of the language model gets a gradient, and the encoder is never reached.",
        source: "train_prs_med.py: hasattr(encoder, 'use_checkpoint'); transformers 4.57 gradient_checkpointing_enable",
    },
    Claim {
        place: "4. Model Compilation",
        said: "saves ~10-15 % and is faster",
        computed: |lab| change(lab, &[], &[]),
        verdict: Verdict::Folklore,
        why: "mode='reduce-overhead' keeps pools for CUDA graphs, which take more; the forward moves tensors to the host and breaks its graph there. Not modelled, and not counted as a saving.",
        source: "torch.compile documentation; train_prs_med.py",
    },
    Claim {
        place: "Configuration 0: 80 GB",
        said: "batch 8, AMP and compile: ~12-15 GB, plenty of headroom",
        computed: |lab| on(lab, "a100-sxm4-80gb", &[]),
        verdict: Verdict::Wrong,
        why: "Frozen weights alone are 15.1 GB. Seven adapters a layer each keep an input, its dropped-out copy and a mask.",
        source: "models/mllm/llava_med_lora_adapter.py: target_modules",
    },
    Claim {
        place: "Configuration 0: larger batches",
        said: "batch 16 on 80 GB",
        computed: |lab| on(lab, "a100-sxm4-80gb", &[("mb", "16")]),
        verdict: Verdict::Wrong,
        why: "Each sample takes 7.5 GB.",
        source: "the estimates of batch 8 and 16",
    },
    Claim {
        place: "Configuration 0: larger batches",
        said: "batch 32 on 80 GB",
        computed: |lab| on(lab, "a100-sxm4-80gb", &[("mb", "32")]),
        verdict: Verdict::Wrong,
        why: "Three cards' worth.",
        source: "the estimates of batch 8 and 32",
    },
    Claim {
        place: "Configuration 0: larger batches",
        said: "learning rates 2e-4 and 4e-4, or 1.41e-4 by the square root",
        computed: |_| {
            let by = |factor: f64| format!("{:.2e}", 1e-4 * factor);
            Ok(format!(
                "batch 16: linear {}, root {}; batch 32: linear {}, root {}",
                by(2.0),
                by(2.0_f64.sqrt()),
                by(4.0),
                by(2.0)
            ))
        },
        verdict: Verdict::Right,
        why: "The linear rule is for SGD, the root for Adam; the code multiplies by the number of processes besides.",
        source: "arXiv 1706.02677 and 2205.10287; train_prs_med.py: effective_lr",
    },
    Claim {
        place: "Configuration 1: maximum savings",
        said: "batch 2, accumulation 4, checkpointing, AMP: ~40-50 % of the original",
        computed: |lab| change(lab, &[NO_AMP], LEAST),
        verdict: Verdict::Partly,
        why: "Below that, were checkpointing to work; as it is wired, the encoder's activations stay and the adapters do not learn.",
        source: "train_prs_med.py",
    },
    Claim {
        place: "Configuration 1: maximum savings",
        said: "speed ~60-70 %, elsewhere 70-80 % and 50-60 %",
        computed: |lab| {
            let plain = lab.estimate(&[("mb", "2")])?.flops.get();
            let again = lab.estimate(&[("mb", "2"), LAYERS, ENCODER])?.flops.get();
            Ok(format!(
                "{:.0} % of the speed, by the work alone",
                100.0 * plain / again
            ))
        },
        verdict: Verdict::Partly,
        why: "Over a frozen base backward is about as long as forward, so that one forward more costs a third; the other two figures contradict the first.",
        source: "torch.utils.checkpoint",
    },
    Claim {
        place: "Configuration 2: balanced",
        said: "batch 4, accumulation 2, AMP: ~50-60 % of the original",
        computed: |lab| change(lab, &[NO_AMP], &[("mb", "4"), ("accum", "2")]),
        verdict: Verdict::Right,
        why: "As a share it is near; as bytes it is twice what the 24 GB card it is recommended for holds.",
        source: "the quick start below",
    },
    Claim {
        place: "Configuration 3: paper settings",
        said: "batch 8, AMP: ~50 % of the original",
        computed: |lab| change(lab, &[NO_AMP], &[]),
        verdict: Verdict::Wrong,
        why: "As for AMP above.",
        source: "train_prs_med.py",
    },
    Claim {
        place: "Memory Breakdown 1",
        said: "input images ~100 MB",
        computed: |lab| {
            let (images, masks) = (tensor(lab, 3 << 20)?, tensor(lab, 1 << 20)?);
            Ok(format!("{images}, and {masks} of masks"))
        },
        verdict: Verdict::Right,
        why: "The masks are missing.",
        source: "train_prs_med.py: batch['image'], batch['mask']",
    },
    Claim {
        place: "Memory Breakdown 2",
        said: "vision backbone ~500-800 MB",
        computed: |lab| {
            let saved = |with: Changes, without: Changes| -> Result<String, Unsupported> {
                Ok(decimal(lab.peak(with)?.saturating_sub(lab.peak(without)?)))
            };
            Ok(format!(
                "checkpointing it saves {}, without AMP {}",
                saved(&[], &[ENCODER])?,
                saved(&[NO_AMP], &[NO_AMP, ENCODER])?
            ))
        },
        verdict: Verdict::Wrong,
        why: "Maps of 256 channels at 256² in its first stage, kept several times: 10.9 GB in all.",
        source: "tiny_vit_sam.py: MBConv with expansion 4 at a quarter of 1024²",
    },
    Claim {
        place: "Memory Breakdown 3",
        said: "language model ~14-16 GB even when frozen",
        computed: |lab| {
            let weights = lab.part(&[], Category::Parameters)?;
            let activations = lab.part(&[], Category::Activations)?;
            Ok(format!(
                "weights {}, and {} of activations with the encoder's",
                decimal(weights),
                decimal(activations)
            ))
        },
        verdict: Verdict::Partly,
        why: "Right for weights; what its adapters keep is left out.",
        source: "models/mllm/llava_med_lora_adapter.py",
    },
    Claim {
        place: "Memory Breakdown 4",
        said: "mask prediction ~200-300 MB",
        computed: |lab| {
            // Two copies of each map, before and after its norm, in two bytes: 128 to 4 channels, 32² to 1024².
            let maps: u64 = (0..6_u64).map(|i| (128 >> i) << (10 + 2 * i)).sum();
            Ok(decimal(
                Bytes::new(2 * 2) * (maps * lab.scenario(&[])?.data.micro_batch),
            ))
        },
        verdict: Verdict::Right,
        why: "The last map has four channels at 1024².",
        source: "mask_prediction_module.py",
    },
    Claim {
        place: "Memory Breakdown 5",
        said: "gradients ~1-2 GB",
        computed: |lab| trained(lab, 1),
        verdict: Verdict::Wrong,
        why: "58.0 million parameters are trained, in fp32.",
        source: "train_prs_med.py: trainable_params",
    },
    Claim {
        place: "Memory Breakdown 6",
        said: "optimizer states ~2-4 GB",
        computed: |lab| trained(lab, 2),
        verdict: Verdict::Wrong,
        why: "Two moments of the same parameters.",
        source: "train_prs_med.py: optim.AdamW",
    },
    Claim {
        place: "Memory Breakdown",
        said: "total ~18-24 GB for batch 8",
        computed: |lab| {
            Ok(format!(
                "{} without AMP, {} with",
                gb(lab, &[NO_AMP])?,
                gb(lab, &[])?
            ))
        },
        verdict: Verdict::Wrong,
        why: "The activations of the language model's adapters and of the encoder are not in the list.",
        source: "the lines above",
    },
    Claim {
        place: "With Optimizations",
        said: "AMP reduces to ~9-12 GB",
        computed: |lab| gb(lab, &[]),
        verdict: Verdict::Wrong,
        why: "Less than the frozen weights.",
        source: "7,566,743,552 parameters in two bytes",
    },
    Claim {
        place: "With Optimizations",
        said: "batch 2 reduces to ~4.5-6 GB",
        computed: |lab| gb(lab, &[("mb", "2"), ("accum", "4")]),
        verdict: Verdict::Wrong,
        why: "Less than a third of the frozen weights.",
        source: "7,566,743,552 parameters in two bytes",
    },
    Claim {
        place: "With Optimizations",
        said: "checkpointing further reduces by 30-50 %",
        computed: |lab| change(lab, &[("mb", "2"), ("accum", "4")], LEAST),
        verdict: Verdict::Right,
        why: "At batch 2, and were it to work.",
        source: "train_prs_med.py",
    },
    Claim {
        place: "Troubleshooting 3",
        said: "\"Available\": memory_reserved",
        computed: |lab| {
            let found = lab.estimate(&[])?;
            Ok(format!(
                "{} would be shown as available; {} is free",
                found.reserved.expected,
                found
                    .usable
                    .unwrap_or_default()
                    .saturating_sub(found.device.expected)
            ))
        },
        verdict: Verdict::Wrong,
        why: "Reserved is what torch has taken. torch.cuda.mem_get_info() returns what is free.",
        source: "torch.cuda.memory_reserved",
    },
    Claim {
        place: "Troubleshooting 4",
        said: "--image_size 512",
        computed: |lab| Ok(format!("{}: the run ends at an assertion", gb(lab, &[])?)),
        verdict: Verdict::Wrong,
        why: "TinyViT asserts its grid and reshapes to 64 × 64; the data set resizes to 1024 anyway.",
        source: "tiny_vit_sam.py: assert L == H * W; x.view(B, 64, 64, C)",
    },
    Claim {
        place: "Performance Tips",
        said: "torchrun on 4 GPUs with batch 2",
        computed: |lab| {
            let four = [("mb", "2"), ("gpus", "4")];
            Ok(format!(
                "{}; {}; learning rate × 4",
                lab.batch(&four)?,
                lab.needs(&four)?
            ))
        },
        verdict: Verdict::Wrong,
        why: "The effective batch is 8 and the learning rate four times as high; DDP ends in the second step over parameters without gradients.",
        source: "train_prs_med.py: find_unused_parameters=False, effective_lr",
    },
    Claim {
        place: "Performance Tips",
        said: "clear cache every 10 batches",
        computed: |lab| change(lab, &[], &[]),
        verdict: Verdict::Folklore,
        why: "It frees no tensor, and only rank 0 does it.",
        source: "train_prs_med.py: is_main_process() and batch_idx % 10 == 0",
    },
    Claim {
        place: "16 GB example",
        said: "batch 1, accumulation 8, checkpointing, AMP: ~6-8 GB",
        computed: |lab| on(lab, "rtx-4080-16gb", ONE),
        verdict: Verdict::Wrong,
        why: "The frozen weights are 14.1 GiB.",
        source: "models/mllm/llava_med_mllm.py",
    },
    Claim {
        place: "Monitoring",
        said: "cached: memory_reserved - memory_allocated / 1e9",
        computed: |lab| {
            let found = lab.estimate(&[])?;
            let cached = found
                .reserved
                .expected
                .saturating_sub(found.allocated.expected);
            Ok(format!(
                "prints {} \"GB\"; meant is {}",
                found.reserved.expected.get(),
                decimal(cached)
            ))
        },
        verdict: Verdict::Wrong,
        why: "The division binds before the subtraction: it prints bytes.",
        source: "MEMORY_OPTIMIZATION.md: the snippet",
    },
    Claim {
        place: "Quick Start: 80 GB",
        said: "Configuration 0, batch 8-32",
        computed: |lab| lab.peaks_in_words(&[&[], &[("mb", "16")], &[("mb", "32")]]),
        verdict: Verdict::Wrong,
        why: "Batch 8 just fits.",
        source: "the estimates",
    },
    Claim {
        place: "Quick Start: 24 GB",
        said: "Configuration 2, batch 4-8",
        computed: |lab| {
            Ok(format!(
                "batch 4: {}; checkpointed, batch 8: {}",
                on(lab, "rtx-4090-24gb", &[("mb", "4"), ("accum", "2")])?,
                on(lab, "rtx-4090-24gb", &[LAYERS, ENCODER])?
            ))
        },
        verdict: Verdict::Wrong,
        why: "Only with both parts checkpointed, which needs a patch.",
        source: "the estimates",
    },
    Claim {
        place: "Quick Start: 16 GB",
        said: "RTX 3080/4080: Configuration 1, batch 2-4",
        computed: |lab| {
            Ok(format!(
                "{}; with the base in 4 bits: {}",
                on(lab, "rtx-4080-16gb", LEAST)?,
                on(lab, "rtx-4080-16gb", &[LEAST, &[FOUR_BITS]].concat())?
            ))
        },
        verdict: Verdict::Wrong,
        why: "A desktop RTX 3080 has 10 or 12 GB. 16 GB need a quantised base, which the class has and the command line has not.",
        source: "models/mllm/llava_med_mllm.py: use_4bit",
    },
    Claim {
        place: "Quick Start: 8 GB",
        said: "Configuration 1 with batch 1, all optimizations",
        computed: |lab| {
            Ok(format!(
                "{}; with the base in 4 bits: {}",
                on(lab, "rtx-4060-8gb", ONE)?,
                on(lab, "rtx-4060-8gb", &[ONE, &[FOUR_BITS]].concat())?
            ))
        },
        verdict: Verdict::Wrong,
        why: "Twice the card in frozen weights alone.",
        source: "models/mllm/llava_med_mllm.py: use_4bit",
    },
];
