//! Ways to train: optimizers, number formats, attention back-ends, losses and adapters.

use super::{Confidence, Gpu, Vendor};

/// One entry of `catalog/methods.yaml`.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub kind: MethodKind,
    /// The name scenarios use, where a scenario can name it.
    pub id: &'static str,
    pub name: &'static str,
    /// The least compute capability of an NVIDIA card, or zeros.
    pub capability: (u8, u8),
    /// The least torch version, or zeros.
    pub torch: (u8, u8),
    /// Persistent tensors of a parameter's size and type.
    pub states: u8,
    /// Bytes for each parameter, where they have a format of their own.
    pub state_bytes: f32,
    /// Tensors that exist at once in the optimizer's step.
    pub temporaries: u8,
    /// What the temporaries are as large as.
    pub over: Over,
    pub confidence: Confidence,
    set: u8,
    pub note: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MethodKind {
    Adapter,
    Attention,
    Loss,
    Optimizer,
    Precision,
}

/// How much an optimizer works on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Model,
    Tensor,
}

/// All methods, sorted by kind and id.
pub fn methods() -> &'static [Method] {
    table::METHODS
}

pub fn method(kind: MethodKind, id: &str) -> Option<&'static Method> {
    methods()
        .iter()
        .find(|method| method.kind == kind && method.id == id)
}

impl Method {
    /// Whether the card can run it. Cards of other vendors are not judged by NVIDIA's numbers.
    pub fn runs_on(&self, gpu: &Gpu) -> bool {
        gpu.vendor != Vendor::Nvidia || gpu.is_at_least(self.capability.0, self.capability.1)
    }

    /// Where it was read.
    pub fn sources(&self) -> impl Iterator<Item = &'static str> + use<> {
        let set = table::SOURCE_SETS.get(usize::from(self.set)).copied();
        set.unwrap_or_default()
            .iter()
            .filter_map(|&source| table::SOURCES.get(usize::from(source)).copied())
    }
}

#[allow(clippy::pedantic)]
mod table {
    use super::{Confidence, Method, MethodKind, Over};
    include!(concat!(env!("OUT_DIR"), "/methods.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gpu, gpus};
    use headroom_scenario::{Attention, Optimizer, Precision};

    #[test]
    fn methods_are_sorted_unique_and_sourced() {
        for pair in methods().windows(2) {
            assert!(
                (pair[0].kind, pair[0].id) < (pair[1].kind, pair[1].id),
                "{}",
                pair[1].id
            );
        }
        for method in methods() {
            assert!(method.sources().count() > 0, "{}", method.id);
            assert!(method.states <= 2 && method.temporaries <= 4);
            assert!((0.0..=12.0).contains(&method.state_bytes), "{}", method.id);
        }
    }

    #[test]
    fn every_choice_of_a_scenario_is_listed() {
        let choices = [
            (MethodKind::Optimizer, Optimizer::CHOICES),
            (MethodKind::Precision, Precision::CHOICES),
            (MethodKind::Attention, Attention::CHOICES),
        ];
        for (kind, choices) in choices {
            for choice in choices {
                assert!(method(kind, choice.id).is_some(), "{}", choice.id);
            }
        }
    }

    #[test]
    fn a_card_runs_bf16_where_its_entry_says_so() {
        for card in gpus().iter().filter(|gpu| gpu.vendor == Vendor::Nvidia) {
            let runs = |kind, id| method(kind, id).is_some_and(|method| method.runs_on(card));
            assert_eq!(
                runs(MethodKind::Precision, "bf16"),
                card.bf16,
                "{}",
                card.id
            );
            assert_eq!(runs(MethodKind::Precision, "fp8"), card.fp8, "{}", card.id);
            assert_eq!(
                runs(MethodKind::Attention, "flash_attention_2"),
                card.flash2,
                "{}",
                card.id
            );
            assert!(runs(MethodKind::Precision, "fp32"));
        }
        let mi300 = gpu("mi300x-192gb");
        assert!(mi300.is_some_and(|card| {
            method(MethodKind::Precision, "bf16").is_some_and(|m| m.runs_on(card))
        }));
    }
}
