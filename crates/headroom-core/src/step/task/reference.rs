//! Frozen auxiliary models: reference, teacher, reward model.

use super::Policy;
use crate::nets::Cx;
use crate::tape::{DType, Mode, Phase};
use headroom_scenario::{Checkpointing, Objective, Quantization, Reference, ReferenceDtype};

/// Runs `body` as `model.eval()` under `torch.no_grad()` does, in the phase of models that are not trained.
pub(crate) fn in_eval_no_grad<T>(cx: &Cx, body: impl FnOnce(&Cx) -> T) -> T {
    cx.tape
        .with_phase(Phase::Reference, || without_gradients(cx, body))
}

/// The same within the current phase.
pub(crate) fn without_gradients<T>(cx: &Cx, body: impl FnOnce(&Cx) -> T) -> T {
    let cx = cx.part(cx.env.weights, |training| {
        training.checkpointing = Checkpointing::None;
        training.keep_outputs = false;
    });
    let mode = Mode {
        evaluating: true,
        ..cx.tape.mode().no_grad()
    };
    cx.tape.within(mode, || body(&cx))
}

/// Runs `body` in a separate frozen model.
pub(crate) fn frozen<T>(
    cx: &Cx,
    name: &'static str,
    dtype: ReferenceDtype,
    body: impl FnOnce(&Cx) -> T,
) -> T {
    let weights = match dtype {
        ReferenceDtype::Same => cx.env.weights,
        ReferenceDtype::Bf16 => DType::BF16,
        ReferenceDtype::Fp32 => DType::F32,
    };
    cx.module(name, |cx| {
        let cx = cx
            .part(weights, |training| {
                training.lora = None;
                training.prompt_tokens = 0;
                training.quantization = Quantization::None;
                training.task.fp32_head = false;
            })
            .frozen();
        match cx.env.wrapper.for_reference_model() {
            Some(wrapper) => body(&cx.with_wrapper(wrapper)),
            None => body(&cx),
        }
    })
}

impl Policy<'_> {
    /// The source of the reference's log-probabilities.
    pub(crate) fn reference(&self, cx: &Cx) -> Reference {
        let adapters = cx.env.training.lora.is_some();
        match self.task.reference {
            // `beta` of GRPO is zero unless it is set.
            Reference::Auto if self.task.objective == Objective::Grpo => Reference::None,
            Reference::Auto if adapters => Reference::AdaptersOff,
            Reference::Auto => Reference::Copy,
            Reference::AdaptersOff if !adapters => Reference::Copy,
            other => other,
        }
    }

    /// Runs `body` as the reference, where one is run: the model with its adapters off, or a copy. Log-probabilities that were
    /// computed before leave the copy that computed them where it is.
    pub(crate) fn as_reference<T>(&self, cx: &Cx, body: impl FnOnce(&Cx) -> T) -> Option<T> {
        match self.reference(cx) {
            Reference::None | Reference::Auto | Reference::ByItself => None,
            Reference::AdaptersOff => Some(in_eval_no_grad(cx, |cx| {
                let cx = cx.part(cx.env.weights, |training| training.lora = None);
                body(&cx.frozen())
            })),
            Reference::Copy => Some(in_eval_no_grad(cx, |cx| {
                frozen(cx, "ref_model", self.task.reference_type, body)
            })),
            Reference::Precomputed => {
                let adapters = cx.env.training.lora.is_some();
                if cx.tape.declaring() && !adapters {
                    frozen(cx, "ref_model", self.task.reference_type, |cx| {
                        drop(body(cx));
                    });
                }
                None
            }
        }
    }
}
