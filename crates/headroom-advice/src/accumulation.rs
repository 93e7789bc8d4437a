//! Whether gradient accumulation trains like one large batch.

use headroom_core::estimate::{Prediction, Unsupported};
use headroom_scenario::{Distribution, Optimizer, Precision, Scenario};

/// Whether an aspect of training is the same as with one large batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equal {
    Yes,
    /// Only if the training code handles it.
    IfCoded,
    No,
}

impl Equal {
    pub const fn id(self) -> &'static str {
        match self {
            Self::Yes => "equal",
            Self::IfCoded => "if-coded",
            Self::No => "differs",
        }
    }
}

/// One aspect of training that may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aspect {
    pub id: &'static str,
    pub equal: Equal,
    pub description: &'static str,
    pub source: &'static str,
}

/// All aspects that may differ in this run.
pub fn accumulation(scenario: &Scenario) -> Result<Vec<Aspect>, Unsupported> {
    let kernels = Prediction::new(scenario.clone()).kernels()?;
    let runs = |part: &str| kernels.iter().any(|name| name.contains(part));
    let aspect = |id, equal, description, source| Aspect {
        id,
        equal,
        description,
        source,
    };
    let mut aspects = vec![aspect(
        "sum",
        Equal::Yes,
        "With equally large micro-batches, the mean of their mean losses is the mean over all samples: divide each loss by the number of micro-batches.",
        "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation",
    )];
    aspects.push(if runs("batch_norm") {
        aspect(
            "batch-norm",
            Equal::No,
            "Batch norm sees one micro-batch at a time: different batch statistics, and one running-statistics update per micro-batch. Group norm and frozen statistics are unaffected; SyncBatchNorm spans GPUs, not micro-batches.",
            "arXiv 1803.08494 (group normalization); torch.nn.BatchNorm2d",
        )
    } else {
        aspect(
            "batch-norm",
            Equal::Yes,
            "The network has no batch norm: samples are independent.",
            "the network's operations as simulated here",
        )
    });
    let drops = scenario.training.dropout && (runs("dropout") || runs("bernoulli"))
        || scenario
            .training
            .lora
            .as_ref()
            .is_some_and(|lora| lora.dropout > 0.0);
    aspects.push(if drops {
        aspect(
            "dropout",
            Equal::No,
            "Dropout draws different masks: equal in expectation, not in each step.",
            "torch.nn.Dropout",
        )
    } else {
        aspect(
            "dropout",
            Equal::Yes,
            "The network uses no randomness.",
            "the network's operations as simulated here",
        )
    });
    let varies = scenario.data.distribution == Distribution::Varying || scenario.data.padding_mask;
    aspects.push(if runs("nll_loss") && varies {
        aspect(
            "token-mean",
            Equal::IfCoded,
            "A mean over tokens gives a short micro-batch the same weight as a long one: divide the summed loss by the number of tokens in the step (num_items_in_batch since transformers 4.46).",
            "transformers#34191 and #34198; torchtune#1875",
        )
    } else {
        aspect(
            "token-mean",
            Equal::Yes,
            "Every micro-batch has the same number of targets, so all means have equal weight.",
            "transformers#34191",
        )
    });
    aspects.push(aspect(
        "scheduler",
        Equal::IfCoded,
        "Schedulers, moving averages and step counters must advance once per optimizer step, not per micro-batch; warm-up is counted in optimizer steps.",
        "accelerate scheduler.py; timm utils/model_ema.py",
    ));
    if scenario.hardware.gpus > 1 {
        aspects.push(aspect(
            "no-sync",
            Equal::IfCoded,
            "The result is the same, but without no_sync() every micro-batch all-reduces all gradients: use it for all but the last, as transformers and Lightning do.",
            "pytorch#21736; torch.nn.parallel.DistributedDataParallel.no_sync",
        ));
    }
    if scenario.training.clip {
        aspects.push(aspect(
            "clipping",
            Equal::IfCoded,
            "Clip once, after the last micro-batch: clipping after each changes the sum.",
            "torch.nn.utils.clip_grad_norm_",
        ));
    }
    let precision = scenario.training.precision;
    aspects.push(match precision {
        Precision::AmpFp16 => aspect(
            "scaler",
            Equal::IfCoded,
            "The scale must not change within a step: update the GradScaler after the last micro-batch; one overflow skips the whole step.",
            "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation",
        ),
        Precision::Bf16 | Precision::Fp16 => aspect(
            "rounding",
            Equal::No,
            "Gradients are summed in 16 bits: with many micro-batches small contributions are rounded away. Accumulate in fp32 or use fewer micro-batches.",
            "torchtitan and Megatron-core accumulate in fp32 (--accumulate-allreduce-grads-in-fp32)",
        ),
        _ => aspect(
            "rounding",
            Equal::Yes,
            "Gradients are summed in fp32: equal up to the order of summation.",
            "torch/csrc/autograd/functions/accumulate_grad.h",
        ),
    });
    if scenario.training.optimizer_in_backward
        || scenario.training.optimizer == Optimizer::AdamWOffloadGradients
    {
        aspects.push(aspect(
            "optimizer-in-backward",
            Equal::No,
            "The optimizer steps in every backward pass: gradients are not accumulated.",
            "https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html",
        ));
    }
    Ok(aspects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    #[track_caller]
    fn check(changes: &[(&str, &str)], id: &str, equal: Option<Equal>) {
        let mut scenario = Scenario::default();
        for (name, value) in [("seq", "64"), ("mb", "1")].iter().chain(changes) {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let aspects = accumulation(&scenario).unwrap();
        let found = aspects
            .iter()
            .find(|aspect| aspect.id == id)
            .map(|aspect| aspect.equal);
        assert_eq!(found, equal, "{id} {changes:?}");
    }

    #[test]
    fn accumulation_differences_depend_on_the_run() {
        check(&[], "batch-norm", Some(Equal::Yes));
        check(&[("model", "resnet50")], "batch-norm", Some(Equal::No));
        check(&[], "dropout", Some(Equal::No));
        check(&[("dropout", "off")], "dropout", Some(Equal::Yes));
        check(&[("mask", "on")], "token-mean", Some(Equal::IfCoded));
        check(&[], "token-mean", Some(Equal::Yes));
        check(&[], "no-sync", None);
        check(&[("gpus", "2")], "no-sync", Some(Equal::IfCoded));
        check(&[("precision", "bf16")], "rounding", Some(Equal::No));
        check(&[("clip", "on")], "clipping", Some(Equal::IfCoded));
    }
}
