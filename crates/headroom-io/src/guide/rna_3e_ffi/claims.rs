//! What the guide claims, and what is computed for it.

use super::super::variants::Changes;
use super::super::{Amount, Claim, Comparison, Evidence, Said, Variants};
use headroom_advice as strategy;
use headroom_base::units::Bytes;
use headroom_core::allocator::Card;
use headroom_core::estimate::{Category, Prediction, Unsupported};
use headroom_scenario::{Irreps, Problem};

const CURRENT: Changes = &[];
const SMALL_IRREPS: (&str, &str) = ("dims", "irreps=16x0e+8x1o+4x2e");

/// The two graphs of the batch that ended the run of 30 October, derived from the weights that could not be allocated.
const WORST: (&str, &str) = (
    "dims",
    "nonbonded=182312,nodes=9115,bonded=19142,angles=36462,dihedrals=54693",
);

/// The chance that an epoch draws a batch that does not fit.
fn chance(variants: &Variants) -> Result<Amount, Unsupported> {
    let found = strategy::batches(&variants.scenario(CURRENT)?)?;
    let chance = found.and_then(|batches| batches.per_epoch);
    Ok(Amount::Share(100.0 * chance.unwrap_or_default()))
}

/// The request that failed: one layer's weights for all edges of the worst pair.
fn failed_request(variants: &Variants) -> Result<Amount, Unsupported> {
    let edges = variants.dim(&[WORST], "nonbonded")? * 2;
    Ok(Amount::Size(Bytes::new(edges * 4800 * 4)))
}

/// What deleting the batch gives back, as a change of the peak.
fn without_batch(variants: &Variants) -> Result<Amount, Unsupported> {
    let (inputs, peak) = (
        variants.part(CURRENT, Category::Inputs)?,
        variants.peak(CURRENT)?,
    );
    Ok(Amount::change(peak, peak.saturating_sub(inputs)))
}

/// A second copy of weights and states, which resuming to the GPU makes.
fn second_copy(variants: &Variants) -> Result<Amount, Unsupported> {
    let parameters = variants.estimate(CURRENT)?.parameters;
    Ok(Amount::Size(Bytes::new(3 * 4) * parameters))
}

/// The weights that a layer makes for each edge.
fn weights_per_edge(irreps: &str) -> Result<Amount, Unsupported> {
    let irreps = Irreps::parse(irreps).map_err(|expected| {
        let problem = Problem::new("irreps", irreps, expected);
        Unsupported::Setting(problem)
    })?;
    let weights = irreps.weight_numel(&Irreps::harmonics(2), &irreps.before_gate());
    Ok(Amount::Number(weights as f64))
}

/// What forty more steps of batches as they come make of reserved memory relative to allocated memory.
fn growing_fragmentation(variants: &Variants) -> Result<Amount, Unsupported> {
    let prediction = Prediction::new(variants.scenario(CURRENT)?);
    let runtime = &prediction.scenario().runtime;
    let ratio = |steps| -> Result<f64, Unsupported> {
        let found = prediction.many_steps(steps)?.on(Card::UNLIMITED, runtime);
        Ok(found.reserved().get() as f64 / found.allocated().get().max(1) as f64)
    };
    Ok(Amount::Change((ratio(60)? / ratio(20)? - 1.0) * 100.0))
}

/// What a change makes of the memory that is reserved beyond tensors.
fn fragmentation(
    variants: &Variants,
    before: Changes,
    after: Changes,
) -> Result<Amount, Unsupported> {
    Ok(Amount::change(
        variants.cached(before)?,
        variants.cached(after)?,
    ))
}

pub const CLAIMS: &[Claim] = &[
    Claim {
        section: "Problem",
        quote: "This indicates **memory fragmentation** and potential **memory leaks**.",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card, for the worst pair of graphs without any fragmentation",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| {
                    let usable = variants.estimate(CURRENT)?.usable.unwrap_or_default();
                    Ok(Amount::share(variants.peak(&[WORST])?, usable))
                },
            },
            Comparison {
                what: "chance that an epoch draws a batch that does not fit",
                said: Said::Nothing,
                compute: chance,
            },
        ]),
        why: "One batch of two giant pockets needs more than the card: the same seed shuffles them together in the same epoch and at the same step of every process, and only 0.4 to 0.5 GiB were reserved and unused.",
        source: "logs/nohup-v2-1351-1030-4.out: epochs 33, 63 and 93, each step 82 of 487, 6.52 GiB requested with 40.86 allocated",
    },
    Claim {
        section: "Problem",
        quote: "even though early epochs run fine",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "of the card, for a typical batch",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| variants.share(CURRENT),
            },
            Comparison {
                what: "the request that failed, one layer's weights of 364,624 edges",
                said: Said::Nothing,
                compute: failed_request,
            },
        ]),
        why: "The log's 40.86 GiB and the request make 47.4 GiB, which is what the worst pair is predicted to need. The audit's 53.8 GiB holds a third gradient of the weights, which sums in new tensors as FakeTensors do and a GPU does not.",
        source: "torch/csrc/autograd/input_buffer.cpp: can_accumulate_inplace; logs/nohup-v2-1351-1030-4.out",
    },
    Claim {
        section: "Root Causes",
        quote: "PyTorch's CUDA allocator accumulates fragmented memory over time",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "reserved for each byte allocated, after 60 steps instead of 20",
                said: Said::Adds,
                compute: growing_fragmentation,
            },
            Comparison {
                what: "reserved for the worst pair with expandable segments",
                said: Said::Nothing,
                compute: |variants| {
                    variants.reserved_change(
                        &[WORST, ("expandable", "off")],
                        &[WORST, ("expandable", "on")],
                    )
                },
            },
        ]),
        why: "Fragmentation was real once, 3.55 GiB before expandable segments; it was the same in the fifth epoch of each process.",
        source: "logs/nohup-v2-1351.out: runs 1 and 2 against 3 to 5",
    },
    Claim {
        section: "Root Causes",
        quote: "Batch objects not being explicitly released",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak without the batch",
            said: Said::Saves,
            compute: without_batch,
        }]),
        why: "del gives back the batch, which is small; what autograd kept is freed by backward already.",
        source: "scripts/04_train_model.py: train_epoch",
    },
    Claim {
        section: "Root Causes",
        quote: "Temporary memory spike when saving model checkpoints",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak of a run that saves",
                said: Said::Adds,
                compute: |variants| {
                    variants.change(
                        &[("runtime.save_every", "0")],
                        &[("runtime.save_every", "1")],
                    )
                },
            },
            Comparison {
                what: "a second copy of weights and states, when a run is resumed",
                said: Said::Nothing,
                compute: second_copy,
            },
        ]),
        why: "state_dict holds references and is written through host memory; resuming, not saving, puts a second copy on the GPU.",
        source: "scripts/04_train_model.py: checkpoint = torch.load(checkpoint_path, map_location=device)",
    },
    Claim {
        section: "Root Causes",
        quote: "CUDA cache grows over epochs without proper cleanup",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak of the tensors with the cache emptied after every step",
            said: Said::Saves,
            compute: |variants| variants.emptied_cache(1),
        }]),
        why: "Cached blocks are used again, and given back to the driver before an out-of-memory error is raised.",
        source: "c10/cuda/CUDACachingAllocator.cpp: malloc frees cached blocks and retries",
    },
    Claim {
        section: "Fixes Applied",
        quote: "More frequent cache clearing (every 5 batches instead of 10)",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak of the tensors with the cache emptied after every fifth step",
            said: Said::Saves,
            compute: |variants| variants.emptied_cache(5),
        }]),
        why: "It frees no tensor and costs a synchronisation; the next batch asks the driver for the memory again.",
        source: "torch.cuda.empty_cache",
    },
    Claim {
        section: "Fixes Applied",
        quote: "Periodic synchronization (every 20 batches)",
        evidence: Evidence::NotComputable(
            "a synchronisation allocates and frees nothing, so a prediction of memory cannot tell runs with and without it apart",
        ),
        why: "The allocator orders its blocks by stream; nothing has to be waited for.",
        source: "pytorch docs/source/notes/cuda.rst",
    },
    Claim {
        section: "Epoch-Level Cleanup",
        quote: "Reset peak memory stats for better monitoring",
        evidence: Evidence::NotComputable("a counter that is set back frees nothing"),
        why: "It makes max_memory_allocated that of the epoch, which is worth printing: the author's loop does not.",
        source: "torch.cuda.reset_peak_memory_stats",
    },
    Claim {
        section: "2. Environment Variables",
        quote: "`expandable_segments:True`: Allows PyTorch to expand memory segments, reducing fragmentation",
        evidence: Evidence::Computed(&[Comparison {
            what: "reserved beyond tensors",
            said: Said::Saves,
            compute: |variants| {
                fragmentation(variants, &[("expandable", "off")], &[("expandable", "on")])
            },
        }]),
        why: "Graphs of changing sizes are what they were made for.",
        source: "pytorch docs/source/notes/cuda.rst",
    },
    Claim {
        section: "2. Environment Variables",
        quote: "`max_split_size_mb:128`: Limits the maximum size of memory splits to 128MB",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "reserved beyond tensors, beside expandable segments",
                said: Said::Saves,
                compute: |variants| {
                    fragmentation(
                        variants,
                        &[("expandable", "on")],
                        &[("expandable", "on"), ("max_split", "128")],
                    )
                },
            },
            Comparison {
                what: "without expandable segments",
                said: Said::Nothing,
                compute: |variants| {
                    fragmentation(
                        variants,
                        &[("expandable", "off")],
                        &[("expandable", "off"), ("max_split", "128")],
                    )
                },
            },
        ]),
        why: "It keeps blocks above that size from being split. Beside expandable segments, large free blocks are then not reused for smaller requests; before torch 2.5 the pair could fail an assertion.",
        source: "c10/cuda/CUDACachingAllocator.cpp: should_split, get_free_block; PyTorch #134338",
    },
    Claim {
        section: "1. Reduce Batch Size",
        quote: "# Try batch_size=1 if batch_size=2 still causes OOM",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak of the worst batch",
                said: Said::Saves,
                compute: |variants| variants.change(&[WORST], &[WORST, ("mb", "1")]),
            },
            Comparison {
                what: "of the card",
                said: Said::AtMost(Amount::Share(100.0)),
                compute: |variants| variants.share(&[WORST, ("mb", "1")]),
            },
        ]),
        why: "The worst graph alone is half the worst pair.",
        source: "scripts/04_train_model.py",
    },
    Claim {
        section: "2. Reduce Model Size",
        quote: "Decrease `--num_layers` from 4 to 3",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("dims", "layers=3")]),
        }]),
        why: "Each layer keeps its own weights for every edge; two gradients of one layer's weights stay whatever the depth. The audit says −16 %, from peaks with a third gradient.",
        source: "models/e3_gnn_encoder_v2.py: radial_mlp",
    },
    Claim {
        section: "2. Reduce Model Size",
        quote: "Decrease `--output_dim` from 1536 to 1024",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Saves,
            compute: |variants| variants.change(CURRENT, &[("dims", "out=1024")]),
        }]),
        why: "It is the width of one vector a graph.",
        source: "models/e3_gnn_encoder_v2.py: output_projection",
    },
    Claim {
        section: "2. Reduce Model Size",
        quote: "Use simpler `--hidden_irreps` like \"16x0e + 8x1o + 4x2e\"",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[SMALL_IRREPS]),
            },
            Comparison {
                what: "weights for each edge and layer",
                said: Said::Nothing,
                compute: |_| weights_per_edge("16x0e + 8x1o + 4x2e"),
            },
            Comparison {
                what: "before",
                said: Said::Nothing,
                compute: |_| weights_per_edge("32x0e + 16x1o + 8x2e"),
            },
        ]),
        why: "Halved multiplicities quarter the weights that a radial network makes for every edge, which are nearly all of the peak.",
        source: "e3nn: FullyConnectedTensorProduct.weight_numel",
    },
    Claim {
        section: "3. Disable Some Features",
        quote: "# Train without layer norm (saves memory)",
        evidence: Evidence::Computed(&[Comparison {
            what: "peak",
            said: Said::Saves,
            compute: |variants| {
                variants.change(&[("dims", "layer_norm=1")], &[("dims", "layer_norm=0")])
            },
        }]),
        why: "It works on nodes, of which there are a twentieth as many as edges; and the command shown leaves every other feature on.",
        source: "models/layers/normalization.py",
    },
    Claim {
        section: "3. Disable Some Features",
        quote: "### 3. Disable Some Features",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak without non-bonded messages",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("dims", "nonbonded=0")]),
            },
            Comparison {
                what: "without multi-hop messages",
                said: Said::Nothing,
                compute: |variants| variants.change(CURRENT, &[("dims", "multi_hop=0")]),
            },
        ]),
        why: "Nine edges in ten are non-bonded; but the flag that would turn them off cannot be given.",
        source: "scripts/04_train_model.py: store_true with default=True",
    },
    Claim {
        section: "4. Use Gradient Accumulation",
        quote: "Modify training code to accumulate gradients over multiple mini-batches:",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak with 4 steps",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("accum", "4")]),
            },
            Comparison {
                what: "with 4 steps of batch 1",
                said: Said::Saves,
                compute: |variants| variants.change(CURRENT, &[("mb", "1"), ("accum", "4")]),
            },
        ]),
        why: "It saves nothing unless the batch shrinks too; the snippet has no first zero_grad, drops the last window and leaves out the clipping.",
        source: "MEMORY_OPTIMIZATION.md: the snippet",
    },
    Claim {
        section: "Monitoring Memory Usage",
        quote: "print(f\"Memory: {allocated:.2f}GB allocated, {reserved:.2f}GB reserved\")",
        evidence: Evidence::Computed(&[Comparison {
            what: "bytes of what is printed as one GB, in GB",
            said: Said::Exactly(Amount::Number(1.0)),
            compute: |_| Ok(Amount::Number(Bytes::gib(1.0).get() as f64 / 1e9)),
        }]),
        why: "1024³ bytes are a GiB.",
        source: "scripts/04_train_model.py",
    },
    Claim {
        section: "Why It Works",
        quote: "**Explicit variable deletion** ensures Python releases references immediately",
        evidence: Evidence::Computed(&[
            Comparison {
                what: "peak without the batch",
                said: Said::Saves,
                compute: without_batch,
            },
            Comparison {
                what: "what it gives back",
                said: Said::Nothing,
                compute: |variants| variants.part_size(CURRENT, Category::Inputs),
            },
        ]),
        why: "True of the batch, and of nothing large.",
        source: "scripts/04_train_model.py",
    },
];
