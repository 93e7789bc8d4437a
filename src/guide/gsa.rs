//! Gated Sparse Attention: the guide to its "512M" pre-training on four cards of 44 GB.

use super::lab::{Changes, decimal};
use super::{Claim, Guide, Knob, Lab, Verdict, Wiring};
use crate::estimate::{Category, Unsupported};
use crate::units::Bytes;

pub(super) const GUIDE: Guide = Guide {
    preset: "gsa-512m",
    document: "docs/MEMORY_OPTIMIZATION.md of alfredcs/Gated-Sparse-Attention at b23ccad",
    claims: CLAIMS,
    knobs: KNOBS,
};

const CURRENT: Changes = &[];
const MEDIUM: Changes = &[("mb", "3"), ("accum", "21")];
const AGGRESSIVE: Changes = &[("mb", "4"), ("accum", "16")];
const MAXIMUM: Changes = &[("seq", "1536")];

/// The bytes of a model's weights in fp32.
fn weights(lab: &Lab, changes: Changes) -> Result<(u64, Bytes), Unsupported> {
    let parameters = lab.estimate(changes)?.parameters;
    Ok((parameters, Bytes::new(4) * parameters))
}

const CLAIMS: &[Claim] = &[
    Claim {
        place: "Issue Analysis",
        said: "micro_batch_size 1, max_seq_len 1024: ~35 GB",
        computed: |lab| lab.needs(&[("mb", "1"), ("accum", "64")]),
        verdict: Verdict::Wrong,
        why: "Its own 22 % of a card is right; 35 GB is 80 %.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        place: "Issue Analysis",
        said: "micro_batch_size 8, max_seq_len 2048: tried to allocate 51+ GB",
        computed: |lab| {
            let peak = lab.peak_in_words(&[("mb", "8"), ("seq", "2048")])?;
            let keys = 8 * 2048 * 1024 * lab.dim(&[("model", "gsa-512m-copy")], "hidden")? * 4;
            let keys = Bytes::new(keys);
            Ok(format!(
                "{peak} in all; the keys gathered by the wider model of -Copy1.yaml alone are {} = {keys}",
                decimal(keys)
            ))
        },
        verdict: Verdict::Right,
        why: "Each query gets its own copy of 1024 keys, in fp32 as the rotary tables are: 8 × 2048 × 1024 × 768 × 4 bytes.",
        source: "gsa/attention/gated_sparse_attention.py: _gather_along_seq",
    },
    Claim {
        place: "Issue Analysis",
        said: "micro_batch_size 2, max_seq_len 1024: ~38-40 GB (~60-70 % of the GPU)",
        computed: |lab| lab.needs(CURRENT),
        verdict: Verdict::Wrong,
        why: "38 to 40 GB would be 86 to 91 % of 44 GB; the run needs a third of the card.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        place: "Memory Breakdown",
        said: "model weights 7-8 GB (512M parameters)",
        computed: |lab| {
            let (count, bytes) = weights(lab, CURRENT)?;
            Ok(format!("{count} parameters, {} in fp32", decimal(bytes)))
        },
        verdict: Verdict::Wrong,
        why: "d_model is 512, the model has not 512 M parameters; even those would be 2.05 GB.",
        source: "gsa/models/gsa_llama.py",
    },
    Claim {
        place: "Memory Breakdown",
        said: "AdamW 14-16 GB (2x model weights)",
        computed: |lab| {
            let states = lab.part(CURRENT, Category::OptimizerStates)?;
            let (_, weights) = weights(lab, CURRENT)?;
            let times = states.get() as f64 / weights.get() as f64;
            Ok(format!("{}, {times:.2} times the weights", decimal(states)))
        },
        verdict: Verdict::Wrong,
        why: "Twice the weights is the right rule, for those that get a gradient: the indexer gets none, for only places are taken from its scores.",
        source: "gsa/attention/adaptive_topk.py; training/optimizer.py",
    },
    Claim {
        place: "Memory Breakdown",
        said: "gradients: not named",
        computed: |lab| {
            let held = lab.part(CURRENT, Category::Gradients)?;
            Ok(format!("{} at the peak", decimal(held)))
        },
        verdict: Verdict::Wrong,
        why: "Held across all micro-steps of an accumulation window, and once more in the buckets of data parallelism.",
        source: "training/trainer.py",
    },
    Claim {
        place: "Memory Breakdown",
        said: "activations 12-15 GB per micro-batch at 1024 tokens",
        computed: |lab| {
            let (one, two) = (lab.peak(&[("mb", "1")])?, lab.peak(&[("mb", "2")])?);
            Ok(format!("{} for each sample", two.saturating_sub(one)))
        },
        verdict: Verdict::Wrong,
        why: "Gathered keys and values of one layer, their gradients, and logits that the loop keeps.",
        source: "gsa/attention/gated_sparse_attention.py; training/trainer.py: outputs",
    },
    Claim {
        place: "Memory Breakdown",
        said: "total 35-42 GB depending on batch size",
        computed: |lab| lab.peaks_in_words(&[&[("mb", "1")], &[("mb", "2")], &[("mb", "4")]]),
        verdict: Verdict::Wrong,
        why: "The sum is right and its parts are not; by those a micro-batch of 2 would be 47 to 57 GB.",
        source: "the guide's own table",
    },
    Claim {
        place: "Current Configuration",
        said: "GPU utilization 22 % to 44-50 %",
        computed: |lab| {
            let (one, two) = (lab.needs(&[("mb", "1")])?, lab.needs(CURRENT)?);
            Ok(format!("1: {one}; 2: {two}"))
        },
        verdict: Verdict::Partly,
        why: "These are shares of the card's memory, not of its arithmetic.",
        source: "nvidia-smi",
    },
    Claim {
        place: "Progressive Tuning: 1",
        said: "2 × 32 × 1024: 60-70 % of the GPU; global batch 256",
        computed: |lab| Ok(format!("{}; {}", lab.needs(CURRENT)?, lab.batch(CURRENT)?)),
        verdict: Verdict::Wrong,
        why: "The batch is right, the share half of it.",
        source: "training/configs/pretrain_512m_low_memory.yaml",
    },
    Claim {
        place: "Progressive Tuning: 2",
        said: "3 × 21 × 1024: 70-80 %; 3 * 21 * 4 = 252",
        computed: |lab| {
            Ok(format!(
                "{}; {} (−1.6 % of 256)",
                lab.needs(MEDIUM)?,
                lab.batch(MEDIUM)?
            ))
        },
        verdict: Verdict::Wrong,
        why: "The batch is right, the share is not.",
        source: "training/configs/pretrain_512m_medium_memory.yaml",
    },
    Claim {
        place: "Progressive Tuning: 3",
        said: "4 × 16 × 1024: risky, 80-90 %",
        computed: |lab| {
            Ok(format!(
                "{}; {}",
                lab.needs(AGGRESSIVE)?,
                lab.batch(AGGRESSIVE)?
            ))
        },
        verdict: Verdict::Wrong,
        why: "It leaves more than a third of the card.",
        source: "training/configs",
    },
    Claim {
        place: "Progressive Tuning: 4",
        said: "2 × 32 × 1536: very risky, may run out of memory",
        computed: |lab| {
            let ladder = lab.peaks_in_words(&[CURRENT, MEDIUM, AGGRESSIVE, MAXIMUM])?;
            Ok(format!("steps 1 to 4: {ladder}"))
        },
        verdict: Verdict::Wrong,
        why: "It needs what step 2 needs, and less than step 3: memory grows with batch × length while no more than 1024 keys are gathered.",
        source: "gsa/attention/adaptive_topk.py: min(k_max, seq_kv)",
    },
    Claim {
        place: "Progressive Tuning",
        said: "the ladder ends at 4",
        computed: |lab| {
            let rows: Result<Vec<String>, Unsupported> = ["5", "6", "7", "8"]
                .iter()
                .map(|mb| Ok(format!("{mb}: {}", lab.needs(&[("mb", mb)])?)))
                .collect();
            Ok(rows?.join("; "))
        },
        verdict: Verdict::Wrong,
        why: "The real ceiling is higher than any of its steps.",
        source: "computed",
    },
    Claim {
        place: "Memory Saving Tips: 1",
        said: "gradient checkpointing (already enabled)",
        computed: |lab| lab.change(&[("ckpt", "none")], &[]),
        verdict: Verdict::Right,
        why: "It is on, one segment for each layer; without it not even two samples fit comfortably.",
        source: "gsa/models/gsa_llama.py: torch.utils.checkpoint",
    },
    Claim {
        place: "Memory Saving Tips: 2",
        said: "use activation checkpointing more aggressively",
        computed: |lab| lab.change(&[], &[("ckpt_every", "1")]),
        verdict: Verdict::Partly,
        why: "Every layer is recomputed already; one layer's gathered keys are the peak, so that only gathering in chunks would help.",
        source: "gsa/models/gsa_llama.py",
    },
    Claim {
        place: "Memory Saving Tips: 3",
        said: "reduce n_layers to 6 and d_ffn to 1024",
        computed: |lab| lab.change(&[], &[("dims", "layers=6,ffn=1024")]),
        verdict: Verdict::Wrong,
        why: "With checkpointing a layer costs its input; and the run it resumes has eight.",
        source: "--resume_from of the guide's own command",
    },
    Claim {
        place: "Memory Saving Tips: 4",
        said: "fp16 is slightly more memory efficient than bf16",
        computed: |lab| lab.change(&[], &[("precision", "amp-fp16")]),
        verdict: Verdict::Wrong,
        why: "Both take two bytes; fp16 adds a scaler.",
        source: "training/trainer.py: GradScaler",
    },
    Claim {
        place: "Memory Saving Tips: 5",
        said: "reduce k_base from 512 to 256",
        computed: |lab| lab.change(&[], &[("dims", "k_base=256")]),
        verdict: Verdict::Wrong,
        why: "While k adapts, tensors are made for k_max; k_base and k_min only mask.",
        source: "gsa/attention/adaptive_topk.py: k_effective",
    },
    Claim {
        place: "Memory Saving Tips: 5",
        said: "reduce k_max from 1024 to 512",
        computed: |lab| {
            let half = lab.change(&[], &[("dims", "k_max=512")])?;
            let quarter = lab.change(&[], &[("dims", "k_max=256")])?;
            Ok(format!("512: {half}; 256: {quarter}"))
        },
        verdict: Verdict::Right,
        why: "This is the knob: gathered keys and values are in proportion to it.",
        source: "gsa/attention/adaptive_topk.py: k_effective",
    },
    Claim {
        place: "Troubleshooting",
        said: "micro_batch_size 1, gradient_accumulation_steps 64",
        computed: |lab| {
            let safer = [("mb", "1"), ("accum", "64")];
            Ok(format!("{}; {}", lab.needs(&safer)?, lab.batch(&safer)?))
        },
        verdict: Verdict::Right,
        why: "The same global batch on half the activations.",
        source: "training/configs",
    },
    Claim {
        place: "Expected Performance",
        said: "twice as fast, half the training time",
        computed: |lab| {
            let (one, two) = (
                lab.batch(&[("mb", "1"), ("accum", "64")])?,
                lab.batch(CURRENT)?,
            );
            Ok(format!("{one} and {two} samples in an optimizer step"))
        },
        verdict: Verdict::Partly,
        why: "Each optimizer step sees the same tokens: what is won comes from fuller kernels and from half as many all-reduces, which no_sync would spare anyway.",
        source: "training/trainer.py",
    },
    Claim {
        place: "Expected Performance",
        said: "38-40 GB is safe under the 44 GB limit",
        computed: |lab| lab.needs(CURRENT),
        verdict: Verdict::Wrong,
        why: "Safe it is, with more than half the card to spare.",
        source: "computed",
    },
    Claim {
        place: "Next Steps",
        said: "below 40 GB try Medium; near 43 GB stay",
        computed: |lab| Ok(format!("Medium: {}", lab.needs(MEDIUM)?)),
        verdict: Verdict::Partly,
        why: "A sensible rule; neither mark is reached by any of its steps.",
        source: "computed",
    },
];

const KNOBS: &[Knob] = &[
    Knob {
        flag: "training.global_batch_size",
        wiring: Wiring::Ignored,
        note: "Never read: micro batch, accumulation and the number of ranks decide.",
        patch: "",
        source: "training/train.py",
    },
    Knob {
        flag: "logging.log_interval, eval_interval, save_interval",
        wiring: Wiring::Ignored,
        note: "The trainer looks for them under `training`, so that 10, 1000 and 5000 always hold; nothing uses eval_interval.",
        patch: "--- a/training/train.py\n+++ b/training/train.py\n@@\n-        config=config.training,\n+        config={**config.training, **config.logging},\n",
        source: "training/train.py; training/trainer.py",
    },
    Knob {
        flag: "training.optimizer, training.lr_scheduler",
        wiring: Wiring::Ignored,
        note: "AdamW and a cosine are built in.",
        patch: "",
        source: "training/optimizer.py",
    },
    Knob {
        flag: "training.indexer_warmup_steps",
        wiring: Wiring::Ignored,
        note: "Stored and not used; no gradient reaches the indexer at all.",
        patch: "",
        source: "training/trainer.py",
    },
    Knob {
        flag: "training.max_seq_len",
        wiring: Wiring::Clamped,
        note: "Cuts packed rows of 4096 tokens: at 1024 three quarters of the tokens are thrown away.",
        patch: "",
        source: "training/data.py",
    },
    Knob {
        flag: "training.gradient_accumulation_steps",
        wiring: Wiring::Exists,
        note: "Works, and reduces the gradients over all ranks in every micro-step, for it never enters no_sync.",
        patch: "--- a/training/trainer.py\n+++ b/training/trainer.py\n@@\n+            last = (accumulated_samples + 1) % self.gradient_accumulation_steps == 0\n+            sync = nullcontext() if last or not self.is_distributed else self.model.no_sync()\n             # Forward pass with mixed precision\n-            with autocast('cuda', dtype=self.amp_dtype, enabled=self.use_amp):\n+            with sync, autocast('cuda', dtype=self.amp_dtype, enabled=self.use_amp):\n",
        source: "training/trainer.py",
    },
    Knob {
        flag: "training.precision: fp16",
        wiring: Wiring::Exists,
        note: "Adds a GradScaler; saves nothing against bf16.",
        patch: "",
        source: "training/trainer.py",
    },
    Knob {
        flag: "model.gsa.k_base, model.gsa.k_min",
        wiring: Wiring::Exists,
        note: "Read, and without effect on memory while use_adaptive_k is on.",
        patch: "",
        source: "gsa/attention/adaptive_topk.py",
    },
    Knob {
        flag: "tie_word_embeddings",
        wiring: Wiring::NeedsPatch,
        note: "The configuration class has it, the YAML's is not passed on; tied, 77.8 M weights with their gradients and states would go.",
        patch: "--- a/training/train.py\n+++ b/training/train.py\n@@\n         max_position_embeddings=config.model.max_position_embeddings,\n+        tie_word_embeddings=config.model.get(\"tie_word_embeddings\", False),\n",
        source: "training/train.py",
    },
    Knob {
        flag: "model.*, model.gsa.*",
        wiring: Wiring::Breaks,
        note: "Every key is required: leaving one out ends the run.",
        patch: "",
        source: "training/train.py",
    },
    Knob {
        flag: "--local_rank",
        wiring: Wiring::Ignored,
        note: "Accepted and not used.",
        patch: "",
        source: "training/train.py",
    },
    Knob {
        flag: "--resume_from",
        wiring: Wiring::Exists,
        note: "Every rank loads the file to the device it was saved from, so that the first card holds it once for each rank.",
        patch: "--- a/gsa/utils/checkpoint.py\n+++ b/gsa/utils/checkpoint.py\n@@\n-    checkpoint = torch.load(checkpoint_path, map_location=map_location, weights_only=False)\n+    checkpoint = torch.load(checkpoint_path, map_location=map_location or \"cpu\", weights_only=False)\n",
        source: "gsa/utils/checkpoint.py",
    },
];
