//! The learning rate for a different batch: which rule suits which optimizer, and which programs scale it themselves.

use headroom_scenario::Optimizer;

/// How a learning rate follows the effective batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Linear,
    SquareRoot,
    /// It stays.
    None,
}

impl Rule {
    pub const ALL: [Self; 3] = [Self::Linear, Self::SquareRoot, Self::None];

    pub const fn id(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::SquareRoot => "sqrt",
            Self::None => "none",
        }
    }

    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.id() == id)
    }

    /// The rule that is for this optimizer.
    pub const fn of(optimizer: Optimizer) -> Self {
        match optimizer {
            Optimizer::Sgd | Optimizer::SgdMomentum => Self::Linear,
            // Its step is relative to the size of the weights and its rate follows its own schedule.
            Optimizer::Adafactor | Optimizer::AdafactorHf => Self::None,
            _ => Self::SquareRoot,
        }
    }

    /// What it is for, and where that is shown.
    pub const fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Linear => (
                "For SGD with or without momentum, up to some thousands of samples, with warm-up over the first epochs.",
                "arXiv 1706.02677 (Goyal et al.)",
            ),
            Self::SquareRoot => (
                "For Adam, RMSprop and related optimizers: the noise of a sign-like step falls with the square root of the batch. Their betas and epsilon scale too.",
                "arXiv 2205.10287 (Malladi et al.); arXiv 1404.5997 (Krizhevsky)",
            ),
            Self::None => (
                "For small changes of the batch, for LoRA recipes tuned at several batches, and for optimizers with relative steps.",
                "arXiv 1804.04235 (Adafactor's relative steps)",
            ),
        }
    }
}

/// A learning rate for another batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    pub rule: Rule,
    /// Whether it is the rule for this optimizer.
    pub is_usual: bool,
    /// The new batch over the old one.
    pub ratio: f64,
    pub rate: f64,
    /// Adam's betas and the factor of its epsilon, which go with the square-root rule: momentum must last as many samples.
    pub betas: Option<([f64; 2], f64)>,
    /// Beyond what the rule was shown for.
    pub far: bool,
}

/// The learning rate that keeps training alike as the effective batch changes, by this rule or by the optimizer's own.
pub fn scaled(
    rate: f64,
    betas: [f64; 2],
    batches: (u64, u64),
    optimizer: Optimizer,
    rule: Option<Rule>,
) -> Scaled {
    let usual = Rule::of(optimizer);
    let rule = rule.unwrap_or(usual);
    let ratio = batches.1.max(1) as f64 / batches.0.max(1) as f64;
    let factor = match rule {
        Rule::Linear => ratio,
        Rule::SquareRoot => ratio.sqrt(),
        Rule::None => 1.0,
    };
    let betas = (rule == Rule::SquareRoot).then(|| {
        (
            betas.map(|beta| (1.0 - ratio * (1.0 - beta)).clamp(0.0, 1.0)),
            1.0 / ratio.sqrt(),
        )
    });
    Scaled {
        rule,
        is_usual: rule == usual,
        ratio,
        rate: rate * factor,
        betas,
        far: !(0.125..=8.0).contains(&ratio),
    }
}

/// Programs and what they do to the learning rate on their own: scaling it again would scale it twice.
pub const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "transformers Trainer, TRL, Axolotl, LLaMA-Factory",
        "use it as given",
        "transformers trainer.py",
    ),
    (
        "Lightning, Accelerate",
        "use it as given; Accelerate steps the scheduler once for each process",
        "accelerate scheduler.py (split_batches)",
    ),
    (
        "timm train.py",
        "scales `--lr-base` from `--lr-base-size`, by the square root for optimizers named ada*, linearly otherwise; `--lr` is used as given",
        "timm train.py (lr_base_scale)",
    ),
    (
        "MMEngine",
        "scales linearly from `base_batch_size` where `auto_scale_lr.enable` is on",
        "mmengine runner.py (scale_lr)",
    ),
    (
        "Detectron2",
        "scales linearly where SOLVER.REFERENCE_WORLD_SIZE is set",
        "detectron2 engine/defaults.py (auto_scale_workers)",
    ),
    (
        "Ultralytics",
        "scales weight decay with the accumulated batch (nominal 64), not the rate",
        "ultralytics engine/trainer.py (nbs)",
    ),
    (
        "DeepSpeed",
        "uses it as given",
        "deepspeed runtime/config.py",
    ),
    (
        "PRS-Med",
        "multiplies it by the number of processes",
        "prs_med_mmrs train.py",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(optimizer: Optimizer, batches: (u64, u64), rule: Rule, rate: f64) {
        let found = scaled(1e-3, [0.9, 0.999], batches, optimizer, None);
        assert_eq!(found.rule, rule);
        assert!((found.rate / rate - 1.0).abs() < 1e-9, "{}", found.rate);
        assert!(found.is_usual);
    }

    #[test]
    fn each_optimizer_has_its_rule() {
        check(Optimizer::SgdMomentum, (256, 1024), Rule::Linear, 4e-3);
        check(Optimizer::AdamW, (256, 1024), Rule::SquareRoot, 2e-3);
        check(Optimizer::AdamW8bit, (64, 16), Rule::SquareRoot, 5e-4);
        check(Optimizer::AdafactorHf, (64, 16), Rule::None, 1e-3);
        check(Optimizer::Lion, (0, 0), Rule::SquareRoot, 1e-3);
    }

    #[test]
    fn momentum_lasts_as_many_samples() {
        let found = scaled(1.0, [0.9, 0.99], (8, 32), Optimizer::AdamW, None);
        let (betas, epsilon) = found.betas.unwrap();
        assert!((betas[0] - 0.6).abs() < 1e-12 && (betas[1] - 0.96).abs() < 1e-12);
        assert!((epsilon - 0.5).abs() < 1e-12 && !found.far);
        let found = scaled(
            1.0,
            [0.9, 0.99],
            (8, 3200),
            Optimizer::AdamW,
            Some(Rule::Linear),
        );
        assert!(found.far && !found.is_usual && found.betas.is_none());
    }
}
