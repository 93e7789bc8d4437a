//! pepTRM: the guide to a recursive model on a card of 24 GB.

use super::lab::{Changes, decimal};
use super::{Claim, Guide, Knob, Lab, Verdict, Wiring};
use crate::estimate::{Category, Unsupported};
use crate::units::Bytes;

pub(super) const GUIDE: Guide = Guide {
    preset: "peptrm",
    document: "docs/memory_management.md of jasegehring/pepTRM at 143716f",
    claims: CLAIMS,
    knobs: KNOBS,
};

const ORIGINAL: Changes = &[("mb", "96"), ("accum", "1")];
const CURRENT: Changes = &[];
const CONSERVATIVE: Changes = &[("mb", "32"), ("accum", "3")];
const AGGRESSIVE: Changes = &[("mb", "64")];

/// A row of the guide's table: batch, need, status.
fn row(lab: &Lab, changes: Changes) -> Result<String, Unsupported> {
    Ok(format!(
        "{} samples; {}",
        lab.batch(changes)?,
        lab.needs(changes)?
    ))
}

fn category(lab: &Lab, what: Category) -> Result<Bytes, Unsupported> {
    lab.part(CURRENT, what)
}

const CLAIMS: &[Claim] = &[
    Claim {
        place: "Memory Breakdown",
        said: "parameters ~1.5 GB: 12.5M × 2 bytes (bfloat16) × 2",
        computed: |lab| {
            let (weights, gradients) = (
                category(lab, Category::Parameters)?,
                category(lab, Category::Gradients)?,
            );
            let count = lab.estimate(CURRENT)?.parameters;
            Ok(format!(
                "{count} parameters: {} of weights, {} of gradients",
                decimal(weights),
                decimal(gradients)
            ))
        },
        verdict: Verdict::Wrong,
        why: "Its own formula gives 50 MB; and the weights are fp32 under autocast.",
        source: "src/model/trm.py; src/training/trainer_optimized.py",
    },
    Claim {
        place: "Memory Breakdown",
        said: "optimizer states ~3 GB",
        computed: |lab| Ok(decimal(category(lab, Category::OptimizerStates)?)),
        verdict: Verdict::Wrong,
        why: "Two fp32 numbers for each of 12.5 M weights.",
        source: "src/training/trainer_optimized.py: AdamW",
    },
    Claim {
        place: "Memory Breakdown",
        said: "EMA model ~750 MB",
        computed: |lab| Ok(decimal(category(lab, Category::Ema)?)),
        verdict: Verdict::Wrong,
        why: "One more copy of the weights.",
        source: "src/training/trainer_optimized.py: EMA",
    },
    Claim {
        place: "Memory Breakdown",
        said: "activations ~2-3 GB (8 supervision + 6 latent steps)",
        computed: |lab| {
            let without = lab.peak_in_words(&[("dims", "bins=0")])?;
            let passes = (lab.dim(CURRENT, "latent_steps")? + 1)
                * lab.dim(CURRENT, "supervision_steps")?
                * lab.dim(CURRENT, "decoder_layers")?;
            Ok(format!(
                "{without} without the spectrum loss, from {passes} passes through a decoder layer"
            ))
        },
        verdict: Verdict::Wrong,
        why: "Steps multiply: 8 × (6 + 1) × 3 layers are kept for backward. Its own table says 14 GB at a batch of 96.",
        source: "src/model/decoder.py: RecursiveCore.forward",
    },
    Claim {
        place: "Memory Breakdown",
        said: "Gaussian spectrum loss ~800 MB",
        computed: |lab| {
            let one = Bytes::new(4) * 96 * 128 * lab.dim(CURRENT, "bins")?;
            let with = lab.peak(ORIGINAL)?;
            let without = lab.peak(&[("mb", "96"), ("accum", "1"), ("dims", "bins=0")])?;
            Ok(format!(
                "{} at a batch of 96; one of its tensors is {one}",
                with.saturating_sub(without)
            ))
        },
        verdict: Verdict::Wrong,
        why: "It counted one tensor of (batch, 100 peaks, bins); 128 fragments are rendered, and backward holds several.",
        source: "src/training/losses_old_gaussian_only.py: _gaussian_render",
    },
    Claim {
        place: "Memory Breakdown",
        said: "precursor loss ~50 MB",
        computed: |lab| lab.change(&[("dims", "precursor=0")], &[]),
        verdict: Verdict::Partly,
        why: "Lightweight it is: numbers for each sample, not megabytes.",
        source: "src/training/losses_old_gaussian_only.py: PrecursorMassLoss",
    },
    Claim {
        place: "Memory Breakdown",
        said: "total ~9-10 GB base plus batch-dependent activations",
        computed: |lab| {
            let (one, two) = (lab.peak(&[("mb", "40")])?, lab.peak(&[("mb", "48")])?);
            let each = two.saturating_sub(one).scale(1.0 / 8.0);
            let base = two.saturating_sub(each * 48);
            Ok(format!("{base} base, {each} for each sample"))
        },
        verdict: Verdict::Wrong,
        why: "Nearly all of it grows with the batch.",
        source: "src/model/decoder.py",
    },
    Claim {
        place: "Batch Size Impact: Original",
        said: "96 × 1: ~24 GB, OOM with spectrum loss",
        computed: |lab| row(lab, ORIGINAL),
        verdict: Verdict::Right,
        why: "With the context it is more than the card has; without the spectrum loss it fits.",
        source: "src/training/losses_old_gaussian_only.py",
    },
    Claim {
        place: "Batch Size Impact: Current",
        said: "48 × 2: ~7 GB per forward, ~17 GB, safe",
        computed: |lab| row(lab, CURRENT),
        verdict: Verdict::Partly,
        why: "Safe, and 5 GB below what it says.",
        source: "src/model/decoder.py",
    },
    Claim {
        place: "Batch Size Impact: Conservative",
        said: "32 × 3: ~5 GB per forward, ~15 GB",
        computed: |lab| row(lab, CONSERVATIVE),
        verdict: Verdict::Partly,
        why: "Its base is too large by 9 GB, its activations too small.",
        source: "src/model/decoder.py",
    },
    Claim {
        place: "Batch Size Impact: Aggressive",
        said: "64 × 2 = 128: ~9 GB per forward, ~19 GB, risky",
        computed: |lab| row(lab, AGGRESSIVE),
        verdict: Verdict::Partly,
        why: "It leaves several GiB.",
        source: "src/model/decoder.py",
    },
    Claim {
        place: "Batch Size Impact",
        said: "nothing between 64 and 96",
        computed: |lab| row(lab, &[("mb", "80"), ("accum", "1")]),
        verdict: Verdict::Partly,
        why: "The repository's own YAML trains with 80.",
        source: "configs/optimized_extended.yaml",
    },
    Claim {
        place: "Why Gradient Accumulation is Ideal",
        said: "identical training dynamics, mathematically equivalent",
        computed: |lab| {
            Ok(format!(
                "{} and {}",
                lab.batch(ORIGINAL)?,
                lab.batch(CURRENT)?
            ))
        },
        verdict: Verdict::Wrong,
        why: "Here steps count micro-batches: scheduler and moving average step half as often, and the cosine ends half way; token means are taken in each micro-batch.",
        source: "src/training/trainer_optimized.py: global_step",
    },
    Claim {
        place: "Why Gradient Accumulation is Ideal",
        said: "halves memory per forward pass",
        computed: |lab| lab.change(ORIGINAL, CURRENT),
        verdict: Verdict::Right,
        why: "Nearly everything is in proportion to the batch.",
        source: "src/model/decoder.py",
    },
    Claim {
        place: "Alternatives: 1. torch.compile",
        said: "can reduce memory; may use MORE",
        computed: |lab| lab.needs(CURRENT),
        verdict: Verdict::Partly,
        why: "mode reduce-overhead keeps pools of CUDA graphs beside this; compiled kernels themselves are not modelled.",
        source: "configs/optimized_extended.yaml: its own comment on headroom for CUDA graphs",
    },
    Claim {
        place: "Alternatives: 3. Spectrum Loss Resolution",
        said: "7500 bins instead of 20000: ~60 % less for the spectrum loss",
        computed: |lab| {
            let part = |bins: &str| {
                let with = lab.peak(&[("mb", "96"), ("dims", bins)])?;
                let without = lab.peak(&[("mb", "96"), ("dims", "bins=0")])?;
                Ok::<Bytes, Unsupported>(with.saturating_sub(without))
            };
            let loss = super::lab::difference(part("bins=20000")?, part("bins=7500")?);
            let whole = lab.change(&[("mb", "96")], &[("mb", "96"), ("dims", "bins=7500")])?;
            Ok(format!(
                "what it adds to the peak: {loss}; the whole: {whole}"
            ))
        },
        verdict: Verdict::Right,
        why: "For the loss; of the whole run it is an eighth. A width of 0.05 in bins of 0.2 also starves the gradient.",
        source: "src/training/losses_old_gaussian_only.py",
    },
    Claim {
        place: "Alternatives: 4. Gradient Checkpointing",
        said: "won't help much: only for models of 100+ layers",
        computed: |lab| {
            let latent = lab.change(&[], &[("ckpt", "layers")])?;
            let whole = lab.change(
                &[],
                &[("ckpt", "layers"), ("dims", "checkpoint_supervision=1")],
            )?;
            Ok(format!(
                "each latent step: {latent}; each supervision step: {whole}"
            ))
        },
        verdict: Verdict::Wrong,
        why: "Unrolled, the model is 168 layers deep.",
        source: "src/model/decoder.py: RecursiveCore.forward",
    },
    Claim {
        place: "Alternatives",
        said: "full back-propagation through every step",
        computed: |lab| lab.change(&[], &[("dims", "horizon=1")]),
        verdict: Verdict::Partly,
        why: "The original TRM lets gradients flow through its last cycle only; what is kept then does not grow with the steps.",
        source: "SamsungSAILMontreal/TinyRecursiveModels: no_grad around all cycles but the last",
    },
    Claim {
        place: "Planning for Precursor Loss",
        said: "you have ~7 GB headroom",
        computed: |lab| {
            let found = lab.estimate(CURRENT)?;
            let usable = found.usable.unwrap_or(Bytes::ZERO);
            Ok(format!(
                "{} left",
                usable.saturating_sub(found.device.expected)
            ))
        },
        verdict: Verdict::Partly,
        why: "There is more.",
        source: "computed",
    },
    Claim {
        place: "Planning for Precursor Loss",
        said: "40 × 2 if you want extra safety",
        computed: |lab| row(lab, &[("mb", "40")]),
        verdict: Verdict::Right,
        why: "An effective batch of 80.",
        source: "computed",
    },
    Claim {
        place: "Configuration Reference",
        said: "use_amp with amp_dtype bfloat16",
        computed: |lab| {
            let between = lab.change(&[], &[("precision", "amp-bf16")])?;
            let fp32 = lab.change(&[("precision", "fp32")], &[])?;
            Ok(format!("fp16 to bf16: {between}; fp32 to fp16: {fp32}"))
        },
        verdict: Verdict::Partly,
        why: "The type is hard-coded as fp16, which makes no difference to memory.",
        source: "src/training/trainer_optimized.py: autocast",
    },
    Claim {
        place: "Troubleshooting: 1",
        said: "longer peptides of later stages use more memory: reduce max_length",
        computed: |lab| lab.change(&[], &[]),
        verdict: Verdict::Wrong,
        why: "Every sample is padded to 35 places and 100 peaks; what does change is a spectrum weight that becomes positive at step 30,000.",
        source: "src/training/curriculum_delayed_spectrum.py",
    },
    Claim {
        place: "Troubleshooting: 1",
        said: "the stage matters",
        computed: |lab| lab.change(&[("dims", "bins=0")], &[]),
        verdict: Verdict::Partly,
        why: "From the step at which the spectrum loss is switched on: a late out-of-memory that is no leak.",
        source: "src/training/curriculum_delayed_spectrum.py",
    },
    Claim {
        place: "Troubleshooting: 2",
        said: "more peaks use more memory in Gaussian rendering: reduce to 80-90",
        computed: |lab| lab.change(&[], &[("dims", "peaks=80")]),
        verdict: Verdict::Partly,
        why: "Rendered peaks come from the sequence's length and the ion types; fewer observed peaks shrink the encoder and cross-attention.",
        source: "src/data/ion_types.py: compute_theoretical_peaks",
    },
    Claim {
        place: "Troubleshooting: 4",
        said: "clear the cache before training",
        computed: |lab| lab.change(&[], &[]),
        verdict: Verdict::Folklore,
        why: "Nothing is cached before training that training could not use.",
        source: "torch.cuda.memory.empty_cache",
    },
    Claim {
        place: "Memory Monitoring Commands",
        said: "nvidia-smi --query-gpu monitors a specific process",
        computed: |lab| {
            let found = lab.estimate(CURRENT)?;
            Ok(format!(
                "{} of the process, {} of them tensors",
                found.device.expected, found.allocated.expected
            ))
        },
        verdict: Verdict::Wrong,
        why: "It shows the card; a process is shown by --query-compute-apps=pid,used_memory, context and cache included.",
        source: "nvidia-smi --help-query-compute-apps",
    },
];

const KNOBS: &[Knob] = &[
    Knob {
        flag: "training.amp_dtype",
        wiring: Wiring::Ignored,
        note: "Printed; autocast is hard-coded as fp16, with a GradScaler.",
        patch: "--- a/src/training/trainer_optimized.py\n+++ b/src/training/trainer_optimized.py\n@@ def train_step\n-        with autocast('cuda', enabled=self.use_amp, dtype=torch.float16 if self.use_amp else torch.float32):\n+        with autocast('cuda', enabled=self.use_amp, dtype=getattr(torch, self.config.amp_dtype)):\n",
        source: "src/training/trainer_optimized.py",
    },
    Knob {
        flag: "training.warmup_steps",
        wiring: Wiring::Ignored,
        note: "The scheduler is a plain cosine.",
        patch: "--- a/src/training/trainer_optimized.py\n+++ b/src/training/trainer_optimized.py\n@@\n-        self.scheduler = CosineAnnealingLR(\n-            self.optimizer,\n-            T_max=config.max_steps,\n-            eta_min=config.learning_rate * 0.01,\n-        )\n+        warm = LinearLR(self.optimizer, start_factor=0.01, total_iters=config.warmup_steps)\n+        cosine = CosineAnnealingLR(self.optimizer, T_max=config.max_steps - config.warmup_steps,\n+                                   eta_min=config.learning_rate * 0.01)\n+        self.scheduler = SequentialLR(self.optimizer, [warm, cosine], [config.warmup_steps])\n",
        source: "src/training/trainer_optimized.py",
    },
    Knob {
        flag: "training.gradient_accumulation_steps",
        wiring: Wiring::Exists,
        note: "Works for memory. max_steps, curriculum and logging count micro-steps, scheduler and moving average optimizer steps: at 2 there are half the updates and the cosine only gets half way.",
        patch: "--- a/src/training/trainer_optimized.py\n+++ b/src/training/trainer_optimized.py\n@@\n-            T_max=config.max_steps,\n+            T_max=config.max_steps // config.gradient_accumulation_steps,\n",
        source: "src/training/trainer_optimized.py",
    },
    Knob {
        flag: "training.batch_size, training.use_ema, training.use_amp",
        wiring: Wiring::Exists,
        note: "Read as written; validation always takes a batch of 64.",
        patch: "",
        source: "scripts/train_optimized.py",
    },
    Knob {
        flag: "training.use_compile, training.compile_mode",
        wiring: Wiring::Exists,
        note: "reduce-overhead keeps pools of CUDA graphs: its own YAML says that a smaller batch may be needed.",
        patch: "",
        source: "configs/optimized_extended.yaml",
    },
    Knob {
        flag: "training.spectrum_weight, above zero",
        wiring: Wiring::Breaks,
        note: "At the guide's own commit the loss passes sequence_mask to a function that does not take it; the Gaussian loss it describes is the one in losses_old_gaussian_only.py.",
        patch: "",
        source: "src/training/losses.py; src/data/ion_types.py",
    },
    Knob {
        flag: "bin_size, max_mz, sigma",
        wiring: Wiring::NeedsPatch,
        note: "Constants of the constructor, not keys of the YAML.",
        patch: "--- a/src/training/losses_old_gaussian_only.py\n+++ b/src/training/losses_old_gaussian_only.py\n@@ class CombinedLoss\n+        bin_size: float = 0.1,\n+        max_mz: float = 2000.0,\n@@\n-            bin_size=0.1,  # 0.1 Da resolution (good for MS/MS)\n-            max_mz=2000.0,  # Cover typical peptide m/z range\n+            bin_size=bin_size,\n+            max_mz=max_mz,\n",
        source: "src/training/losses_old_gaussian_only.py",
    },
    Knob {
        flag: "checkpointing of latent steps",
        wiring: Wiring::NeedsPatch,
        note: "There is no such option; it is one call.",
        patch: "--- a/src/model/decoder.py\n+++ b/src/model/decoder.py\n@@ class RecursiveCore\n-                z = self.decoder.latent_step(\n-                    encoded_spectrum, spectrum_mask, y_probs, z\n-                )\n+                z = torch.utils.checkpoint.checkpoint(\n+                    self.decoder.latent_step,\n+                    encoded_spectrum, spectrum_mask, y_probs, z, use_reentrant=False\n+                )\n",
        source: "src/model/decoder.py",
    },
    Knob {
        flag: "an unknown key under model or training",
        wiring: Wiring::Breaks,
        note: "Both sections become dataclasses: one key too many is a TypeError.",
        patch: "",
        source: "scripts/train_optimized.py",
    },
    Knob {
        flag: "--resume_from",
        wiring: Wiring::Exists,
        note: "The only flag; the configuration's path is fixed.",
        patch: "",
        source: "scripts/train_optimized.py",
    },
];
