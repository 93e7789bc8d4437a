//! What the guide claims, and what is computed for it.

use super::super::claim::gb;
use super::super::variants::Changes;
use super::super::{Amount, Claim, Comparison, Evidence, Said, Variants};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Category, Unsupported};

const CURRENT: Changes = &[];
const ORIGINAL: Changes = &[("mb", "1"), ("accum", "64")];
const MEDIUM: Changes = &[("mb", "3"), ("accum", "21")];
const AGGRESSIVE: Changes = &[("mb", "4"), ("accum", "16")];
const MAXIMUM: Changes = &[("seq", "1536")];
const TOO_LARGE: Changes = &[("mb", "8"), ("seq", "2048")];

const fn share(percent: f64) -> Amount {
    Amount::Share(percent)
}

/// The bytes of a model's weights in fp32.
fn weights(variants: &Variants) -> Result<Bytes, Unsupported> {
    Ok(Bytes::new(4) * variants.estimate(CURRENT)?.parameters)
}

/// The keys that one layer of the wider model gathers: 1024 for each query, in fp32 as the rotary tables are.
fn gathered_keys(variants: &Variants) -> Result<Amount, Unsupported> {
    let hidden = variants.dim(&[("model", "gsa-512m-copy")], "hidden")?;
    Ok(Amount::Size(Bytes::new(8 * 2048 * 1024 * hidden * 4)))
}

/// What one more sample adds to the peak.
fn per_sample(variants: &Variants) -> Result<Bytes, Unsupported> {
    let (one, two) = (
        variants.peak(&[("mb", "1")])?,
        variants.peak(&[("mb", "2")])?,
    );
    Ok(two.saturating_sub(one))
}

/// What is on the card beside tensors: the context, and what the allocator reserves beyond them.
fn overhead(variants: &Variants) -> Result<Amount, Unsupported> {
    let found = variants.estimate(CURRENT)?;
    let (device, allocated) = (found.device.expected, found.allocated.expected);
    Ok(Amount::Size(device.saturating_sub(allocated)))
}

/// The arithmetic of an optimizer step of 256 samples, new over original.
fn arithmetic(variants: &Variants) -> Result<Amount, Unsupported> {
    let per_sample = |changes, batch: f64| -> Result<f64, Unsupported> {
        Ok(variants.estimate(changes)?.flops.get() / batch)
    };
    let (before, after) = (
        per_sample(&[("mb", "1")], 1.0)?,
        per_sample(&[("mb", "2")], 2.0)?,
    );
    Ok(Amount::Number((100.0 * after / before).round() / 100.0))
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        section: "Issue Analysis",
        quote: "`micro_batch_size=1`, `max_seq_len=1024` → ~35GB memory usage",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::About(gb(35.0)),
                compute: |variants| variants.device(ORIGINAL),
            },
            Comparison {
                what: "of the card",
                said: Said::Nothing,
                compute: |variants| variants.share(ORIGINAL),
            },
        ]),
        why: "35 GB would be 80 % of the card; the guide itself gives 22 % further down.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        section: "Issue Analysis",
        quote: "`micro_batch_size=8`, `max_seq_len=2048` → Tried to allocate 51+ GB (OOM!)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "keys gathered by one layer of the wider model of -Copy1.yaml",
                said: Said::AtLeast(gb(51.0)),
                compute: gathered_keys,
            },
            Comparison {
                what: "of the card, with the model of the guide",
                said: Said::AtLeast(share(100.0)),
                compute: |variants| variants.share(TOO_LARGE),
            },
        ]),
        why: "Each query gets its own copy of 1024 keys: 8 × 2048 × 1024 × 768 × 4 bytes.",
        source: "gsa/attention/gated_sparse_attention.py: _gather_along_seq",
    },
    Claim {
        section: "Issue Analysis",
        quote: "`micro_batch_size=2`, `max_seq_len=1024` → Should use ~38-40GB (~60-70% GPU)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::Between(gb(38.0), gb(40.0)),
                compute: |variants| variants.device(CURRENT),
            },
            Comparison {
                what: "of the card",
                said: Said::Between(share(60.0), share(70.0)),
                compute: |variants| variants.share(CURRENT),
            },
        ]),
        why: "The two figures contradict each other: 38 to 40 GB would be 86 to 91 % of 44 GB.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        section: "Memory Breakdown",
        quote: "**Model weights**: ~7-8 GB (512M parameters)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "fp32 weights",
                said: Said::Between(gb(7.0), gb(8.0)),
                compute: |variants| weights(variants).map(Amount::Size),
            },
            Comparison {
                what: "million parameters",
                said: Said::About(Amount::Number(512.0)),
                compute: |variants| {
                    let count = variants.estimate(CURRENT)?.parameters;
                    Ok(Amount::Number((count as f64 / 1e6).round()))
                },
            },
        ]),
        why: "d_model is 512; that is where the name comes from. 512 M parameters would take 2.05 GB.",
        source: "gsa/models/gsa_llama.py",
    },
    Claim {
        section: "Memory Breakdown",
        quote: "**Optimizer state** (AdamW): ~14-16 GB (2x model weights)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "optimizer states",
                said: Said::Between(gb(14.0), gb(16.0)),
                compute: |variants| variants.part_size(CURRENT, Category::OptimizerStates),
            },
            Comparison {
                what: "times the weights",
                said: Said::About(Amount::Number(2.0)),
                compute: |variants| {
                    let states = variants.part(CURRENT, Category::OptimizerStates)?;
                    let weights = weights(variants)?;
                    Ok(Amount::Number(states.get() as f64 / weights.get() as f64))
                },
            },
        ]),
        why: "Twice the weights is the right rule for weights that get a gradient. The indexer gets none: only positions are taken from its scores.",
        source: "gsa/attention/adaptive_topk.py; training/optimizer.py",
    },
    Claim {
        section: "Memory Breakdown",
        quote: "**Activations**: ~12-15 GB per micro_batch with seq_len=1024",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "for a micro-batch of 1",
                said: Said::Between(gb(12.0), gb(15.0)),
                compute: |variants| per_sample(variants).map(Amount::Size),
            },
            Comparison {
                what: "for a micro-batch of 2",
                said: Said::Between(gb(12.0), gb(15.0)),
                compute: |variants| Ok(Amount::Size(per_sample(variants)? * 2)),
            },
        ]),
        why: "Gathered keys and values of one layer, their gradients, and logits that the loop keeps.",
        source: "gsa/attention/gated_sparse_attention.py; training/trainer.py: outputs",
    },
    Claim {
        section: "Memory Breakdown",
        quote: "**Other overhead**: ~2-3 GB",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card beside tensors",
                said: Said::Between(gb(2.0), gb(3.0)),
                compute: overhead,
            },
            Comparison {
                what: "gradients at the peak, which the guide's list leaves out",
                said: Said::Nothing,
                compute: |variants| variants.part_size(CURRENT, Category::Gradients),
            },
        ]),
        why: "The CUDA context and the allocator's cache. What the list leaves out are gradients: they live through the whole accumulation window, and once more in the buckets of data parallelism.",
        source: "training/trainer.py",
    },
    Claim {
        section: "Memory Breakdown",
        quote: "Total: ~35-42 GB depending on batch size",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card at a micro-batch of 1",
                said: Said::Between(gb(35.0), gb(42.0)),
                compute: |variants| variants.device(ORIGINAL),
            },
            Comparison {
                what: "of 2",
                said: Said::Between(gb(35.0), gb(42.0)),
                compute: |variants| variants.device(CURRENT),
            },
            Comparison {
                what: "of 4",
                said: Said::Between(gb(35.0), gb(42.0)),
                compute: |variants| variants.device(AGGRESSIVE),
            },
        ]),
        why: "The list adds up, its parts do not: by them a micro-batch of 2 would take 47 to 57 GB.",
        source: "the guide's own table",
    },
    Claim {
        section: "Current Configuration",
        quote: "gradient_accumulation_steps: 32  # Maintains global_batch_size=256",
        evidence: Evidence::Computed(&[Comparison {
            what: "samples in an optimizer step",
            said: Said::Exactly(Amount::Number(256.0)),
            compute: |variants| variants.samples(CURRENT),
        }]),
        why: "2 × 32 × 4.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        section: "Current Configuration",
        quote: "GPU utilization: 22% → 44-50%",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card's memory at a micro-batch of 1",
                said: Said::About(share(22.0)),
                compute: |variants| variants.share(ORIGINAL),
            },
            Comparison {
                what: "of 2",
                said: Said::Between(share(44.0), share(50.0)),
                compute: |variants| variants.share(CURRENT),
            },
        ]),
        why: "These are shares of the card's memory, not of its arithmetic. They do not double: part of the memory does not depend on the batch.",
        source: "nvidia-smi",
    },
    Claim {
        section: "How to Run",
        quote: "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        evidence: Evidence::Computed(&[Comparison {
            what: "reserved with expandable segments",
            said: Said::Saves,
            compute: |variants| {
                variants.reserved_change(&[("expandable", "off")], &[("expandable", "on")])
            },
        }]),
        why: "Under this name every version of PyTorch reads it; the new name alone is passed over by 2.9.",
        source: "c10/core/AllocatorConfig.h; pytorch issue 183387",
    },
    Claim {
        section: "Progressive Tuning Strategy",
        quote: "### 1. Current (Safe - 60-70% GPU)",
        evidence: Evidence::Computed(&[Comparison {
            what: "of the card",
            said: Said::Between(share(60.0), share(70.0)),
            compute: |variants| variants.share(CURRENT),
        }]),
        why: "Safe it is: the share is about half of what the guide says.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        section: "Progressive Tuning Strategy",
        quote: "### 2. Medium (Target - 70-80% GPU)",
        evidence: Evidence::Computed(&[Comparison {
            what: "of the card",
            said: Said::Between(share(70.0), share(80.0)),
            compute: |variants| variants.share(MEDIUM),
        }]),
        why: "Three samples take half the card.",
        source: "training/configs/pretrain_512m_medium_memory.yaml",
    },
    Claim {
        section: "Progressive Tuning Strategy",
        quote: "# 3 * 21 * 4 = 252 (close to 256)",
        evidence: Evidence::Computed(&[Comparison {
            what: "samples in an optimizer step",
            said: Said::Exactly(Amount::Number(252.0)),
            compute: |variants| variants.samples(MEDIUM),
        }]),
        why: "1.6 % fewer than 256.",
        source: "training/configs/pretrain_512m_medium_memory.yaml",
    },
    Claim {
        section: "Progressive Tuning Strategy",
        quote: "### 3. Aggressive (Risky - 80-90% GPU)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card",
                said: Said::Between(share(80.0), share(90.0)),
                compute: |variants| variants.share(AGGRESSIVE),
            },
            Comparison {
                what: "with a micro-batch of 6",
                said: Said::Nothing,
                compute: |variants| variants.share(&[("mb", "6")]),
            },
        ]),
        why: "It leaves a third of the card free; the limit lies beyond all four steps of this ladder.",
        source: "training/configs",
    },
    Claim {
        section: "Progressive Tuning Strategy",
        quote: "### 4. Maximum (Very Risky - May OOM)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card",
                said: Said::AtLeast(share(90.0)),
                compute: |variants| variants.share(MAXIMUM),
            },
            Comparison {
                what: "of the card with step 3",
                said: Said::Nothing,
                compute: |variants| variants.share(AGGRESSIVE),
            },
        ]),
        why: "It needs what step 2 needs, and less than step 3: memory grows with batch × length as long as no more than 1024 keys are gathered.",
        source: "gsa/attention/adaptive_topk.py: min(k_max, seq_kv)",
    },
    Claim {
        section: "Memory Saving Tips",
        quote: "### 1. Enable Gradient Checkpointing (Already enabled)",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak with it",
            said: Said::Saves,
            compute: |variants| variants.change(&[("ckpt", "none")], CURRENT),
        }]),
        why: "It is on, one segment for each layer; without it two samples barely fit.",
        source: "gsa/models/gsa_llama.py: torch.utils.checkpoint",
    },
    Claim {
        section: "Memory Saving Tips",
        quote: "### 2. Use Activation Checkpointing More Aggressively",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak with every layer checkpointed",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("ckpt_every", "1")]),
        }]),
        why: "Every layer is recomputed already. One layer's gathered keys are the peak: only gathering in chunks would help.",
        source: "gsa/models/gsa_llama.py",
    },
    Claim {
        section: "Memory Saving Tips",
        quote: "n_layers: 6        # Reduce from 8",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak with 6 layers and d_ffn 1024",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("dims", "layers=6,ffn=1024")]),
        }]),
        why: "With checkpointing a layer costs little more than its input; and the checkpoint that the guide resumes from has eight layers.",
        source: "--resume_from of the guide's own command",
    },
    Claim {
        section: "Memory Saving Tips",
        quote: "precision: fp16  # Slightly more memory efficient than bf16",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak with fp16",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("precision", "amp-fp16")]),
        }]),
        why: "Both take two bytes; fp16 adds a GradScaler.",
        source: "training/trainer.py: GradScaler",
    },
    Claim {
        section: "Memory Saving Tips",
        quote: "k_base: 256      # Reduce from 512",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("dims", "k_base=256")]),
        }]),
        why: "While k is adaptive, tensors are sized for k_max; k_base and k_min only mask.",
        source: "gsa/attention/adaptive_topk.py: k_effective",
    },
    Claim {
        section: "Memory Saving Tips",
        quote: "k_max: 512       # Reduce from 1024",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("dims", "k_max=512")]),
            },
            Comparison {
                what: "peak with 256",
                said: Said::Nothing,
                compute: |variants| variants.change(CURRENT, &[("dims", "k_max=256")]),
            },
        ]),
        why: "This is the knob that matters: gathered keys and values are proportional to it.",
        source: "gsa/attention/adaptive_topk.py: k_effective",
    },
    Claim {
        section: "Monitoring Memory Usage",
        quote: "watch -n 2 nvidia-smi",
        evidence: Evidence::NotComputable("watching changes nothing"),
        why: "It shows what the process reserved with its context, rounded in time to two seconds: a peak in between is not seen.",
        source: "nvidia-smi --help",
    },
    Claim {
        section: "Monitoring Memory Usage",
        quote: "nvidia-smi dmon -s mu -d 2",
        evidence: Evidence::NotComputable("watching changes nothing"),
        why: "Memory and utilization of the whole card every two seconds.",
        source: "nvidia-smi dmon -h",
    },
    Claim {
        section: "Troubleshooting",
        quote: "Reduce `micro_batch_size` back to 1",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, ORIGINAL),
            },
            Comparison {
                what: "samples in an optimizer step, with 64 steps of accumulation",
                said: Said::Exactly(Amount::Number(256.0)),
                compute: |variants| variants.samples(ORIGINAL),
            },
        ]),
        why: "The same global batch with half the activations.",
        source: "training/configs",
    },
    Claim {
        section: "If GPU utilization is still low:",
        quote: "Check if data loading is a bottleneck (increase `num_workers`)",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak on the card with eight workers instead of four",
            said: Said::Nothing,
            compute: |variants| variants.change(CURRENT, &[("runtime.workers", "8")]),
        }]),
        why: "Workers take host memory and none of the card.",
        source: "training/data.py: create_dataloader",
    },
    Claim {
        section: "Expected Performance",
        quote: "**Time per step**: ~50% of original (~27s vs 54s)",
        evidence: Evidence::Computed(&[Comparison {
            what: "arithmetic of an optimizer step, new over original",
            said: Said::About(Amount::Number(0.5)),
            compute: arithmetic,
        }]),
        why: "Twice the samples in half the micro-batches is the same arithmetic.",
        source: "training/trainer.py",
    },
    Claim {
        section: "Expected Performance",
        quote: "**Total training time**: Cut in half",
        evidence: Evidence::Computed(&[Comparison {
            what: "arithmetic of an optimizer step, new over original",
            said: Said::About(Amount::Number(0.5)),
            compute: arithmetic,
        }]),
        why: "Each optimizer step sees the same 256 samples. What is gained comes from larger kernels and from half as many all-reduces, which no_sync would save anyway.",
        source: "training/trainer.py",
    },
    Claim {
        section: "Expected Performance",
        quote: "**Memory usage**: ~38-40 GB (safe under 44GB limit)",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card",
                said: Said::Between(gb(38.0), gb(40.0)),
                compute: |variants| variants.device(CURRENT),
            },
            Comparison {
                what: "of the card",
                said: Said::AtMost(share(100.0)),
                compute: |variants| variants.share(CURRENT),
            },
        ]),
        why: "Safe, with more than half the card to spare.",
        source: "computed",
    },
    Claim {
        section: "Next Steps",
        quote: "If memory stays under 40GB consistently, try \"Medium\" settings",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "on the card now",
                said: Said::AtMost(gb(40.0)),
                compute: |variants| variants.device(CURRENT),
            },
            Comparison {
                what: "of the card with Medium",
                said: Said::AtMost(share(100.0)),
                compute: |variants| variants.share(MEDIUM),
            },
        ]),
        why: "A sensible rule; no step of the ladder comes near 40 GB.",
        source: "computed",
    },
];
