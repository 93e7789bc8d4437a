//! How far predictions may be off, from comparisons of the same runs on real cards.

use serde::Serialize;

use super::{Band, device};
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_catalog::NamedOverhead;
use headroom_scenario::Case;

/// What is not known of a run, or not modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a doubt of its own, with a width of its own"
)]
pub struct Doubts {
    /// Convolutions, whose cuDNN workspaces are not modelled.
    pub convolutions: bool,
    /// What counts is what the allocator reserved, which depends on all that the process did before.
    pub reserved: bool,
    /// What counts is what the driver shows: contexts and libraries come on top.
    pub driver: bool,
    /// The versions of the software are not known.
    pub unnamed_software: bool,
    /// Torch before 2.4, some of whose 16-bit kernels keep more.
    pub older_torch: bool,
    /// Layers compiled by `torch.compile`, which keep what products and attention need and make the rest again.
    pub compiled: bool,
    /// Another adapter, quantiser or attention stands in for the one that was used, or tokens are taken to be shared
    /// evenly between experts.
    pub stand_in: bool,
    /// The sequence length is a limit, which samples may not reach.
    pub longest: bool,
    /// Evaluations ran in the same process, and count.
    pub evaluations: bool,
    /// Operations of a recorded model for which only their results are counted.
    pub unruled: bool,
}

/// One source of doubt: how far it may move what the driver shows, and what would settle it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    pub about: &'static str,
    /// How much less there may be.
    pub below: Bytes,
    /// How much more.
    pub above: Bytes,
    pub settled_by: &'static str,
}

impl Doubt {
    /// Those that the range of what the driver shows is made of, the widest first: what is reserved, and what comes on top.
    pub(super) fn all(doubts: Doubts, reserved: Bytes, case: &Case) -> Vec<Self> {
        let reserved = doubts
            .widths()
            .filter(|width| width.applies)
            .map(|width| Self {
                about: width.about,
                below: reserved.scale(width.below),
                above: reserved.scale(width.above),
                settled_by: width.settled_by,
            });
        let besides = device::overheads(case).into_iter().map(Self::besides);
        let width = |doubt: &Self| doubt.below + doubt.above;
        let all = reserved.chain(besides);
        let all = all.filter(|doubt| width(doubt) > Bytes::ZERO);
        sorted(all, |a, b| width(b).cmp(&width(a)))
    }

    fn besides(part: NamedOverhead) -> Self {
        let NamedOverhead { what, overhead } = part;
        Self {
            about: what,
            below: overhead.expected - overhead.low,
            above: overhead.high - overhead.expected,
            settled_by: "nvidia-smi less torch.cuda.memory_reserved in a process that has done one step",
        }
    }
}

/// How wide a doubt is, as shares of what is reserved.
struct Width {
    applies: bool,
    below: f64,
    above: f64,
    about: &'static str,
    settled_by: &'static str,
}

/// Relative bounds.
#[derive(Clone, Copy, Debug)]
pub struct Uncertainty {
    below: f64,
    above: f64,
    convolutions: bool,
}

impl Doubts {
    /// What is in doubt for a scenario's network.
    pub fn of(architecture: &str) -> Self {
        let convolutions = ["tv", "timm", "unet", "resnet", "convnext"]
            .iter()
            .any(|name| architecture.starts_with(name));
        Self {
            convolutions,
            ..Self::default()
        }
    }

    /// All widths, whether they apply or not.
    fn widths(self) -> impl Iterator<Item = Width> {
        const PROBE: &str = "a probe log of one run (headroom probe)";
        const VERSIONS: &str = "naming the versions (stack.torch, stack.transformers)";
        let width = |applies, below, above, about, settled_by| Width {
            applies,
            below,
            above,
            about,
            settled_by,
        };
        [
            width(true, 0.005, 0.005, "what single kernels take", PROBE),
            width(
                self.convolutions,
                0.0,
                0.115,
                "workspaces that cuDNN takes for convolutions",
                PROBE,
            ),
            width(
                self.reserved,
                0.04,
                0.04,
                "what the program did before, which the allocator's blocks remember",
                PROBE,
            ),
            width(
                self.driver,
                0.06,
                0.06,
                "contexts and libraries, where only the driver was asked",
                "torch.cuda.max_memory_reserved of the same run",
            ),
            width(
                self.unnamed_software,
                0.03,
                0.03,
                "versions of the software",
                VERSIONS,
            ),
            width(
                self.older_torch,
                0.005,
                0.05,
                "16-bit kernels of torch before 2.4",
                PROBE,
            ),
            width(self.compiled, 0.3, 0.05, "what compiled layers keep", PROBE),
            width(
                self.stand_in,
                0.05,
                0.10,
                "what stands in for an adapter, a quantiser or an attention that is not modelled",
                PROBE,
            ),
            width(
                self.longest,
                0.05,
                0.0,
                "how long samples are below the limit",
                "the data set's lengths (data.distribution)",
            ),
            width(
                self.evaluations,
                0.0,
                0.05,
                "evaluations in the same process",
                "runtime.eval_batch",
            ),
            width(
                self.unruled,
                0.0,
                0.05,
                "recorded operations of which only results are counted",
                PROBE,
            ),
        ]
        .into_iter()
    }

    /// The ranges of what is allocated and of what is reserved.
    pub fn bands(self, allocated: Bytes, reserved: Bytes) -> [Band; 2] {
        let of_reserved = Self {
            reserved: true,
            ..self
        };
        let allocated = self.uncertainty().band(allocated);
        // More is in doubt of what is reserved, yet it is never less than what is allocated.
        let reserved = of_reserved.uncertainty().band(reserved);
        [allocated, reserved.at_least(allocated)]
    }

    /// The widths that apply, added up. Published runs re-run with the software matched differ by 0.05 % in the median and
    /// by 0.5 % at most (docs/accuracy.md); the other widths are from the same comparisons:
    /// convolutions -0..+12 %, reserved with a script not known ±4 %, the driver's figure ±10 % at most of which reserved
    /// is a part, software not known ±3 %, 16 bits on older torch -0.5..+5 %. What a compiled layer keeps is
    /// between its products' inputs alone, about half of what layers keep, and everything; what stands in
    /// for an adapter keeps between a frozen layer's nothing and a further copy of each input; an evaluation's blocks stay
    /// reserved; samples padded to the longest of a batch may all be shorter than the limit; a kernel without a rule may take
    /// as much again as sorting and scattering kernels do that have one.
    pub fn uncertainty(self) -> Uncertainty {
        let (mut below, mut above) = (0.0, 0.0);
        for width in self.widths().filter(|width| width.applies) {
            below += width.below;
            above += width.above;
        }
        Uncertainty {
            below: 1.0 - below,
            above: 1.0 + above,
            convolutions: self.convolutions,
        }
    }
}

impl Uncertainty {
    pub fn band(self, expected: Bytes) -> Band {
        Band {
            low: expected.scale(self.below),
            expected,
            high: expected.scale(self.above),
        }
    }

    pub fn not_modelled(self) -> Vec<String> {
        let mut all = vec![
            "memory of other processes on the same GPU".to_string(),
            "torch.compile, whose fused kernels keep other tensors for backward than these"
                .to_string(),
        ];
        if self.convolutions {
            all.push("workspaces that cuDNN takes for convolutions".into());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Add;

    use super::*;
    use crate::estimate::{Estimate, estimate};
    use headroom_scenario::{Scenario, settings};

    #[track_caller]
    fn check(doubts: Doubts, low: u64, high: u64) {
        let band = doubts.uncertainty().band(Bytes::new(1000));
        let near = |bytes: Bytes, expected: u64| bytes.get().abs_diff(expected) <= 1;
        assert!(near(band.low, low) && near(band.high, high), "{band:?}");
    }

    #[test]
    fn doubts_add_up() {
        let none = Doubts::default();
        check(none, 995, 1005);
        check(Doubts::of("tv:resnet50"), 995, 1120);
        let reserved = true;
        check(Doubts { reserved, ..none }, 955, 1045);
        let compiled = Doubts {
            reserved,
            compiled: true,
            ..none
        };
        check(compiled, 655, 1095);
    }

    #[test]
    fn doubts_are_what_the_range_is_made_of() {
        for (name, value) in [("model", "gpt2"), ("model", "resnet-50"), ("gpus", "8")] {
            let mut scenario = Scenario::default();
            settings::set(&mut scenario, name, value).unwrap();
            let Estimate { device, doubts, .. } = estimate(&scenario).unwrap();
            let sum =
                |side: fn(&Doubt) -> Bytes| doubts.iter().map(side).fold(Bytes::ZERO, Add::add);
            let near = |a: Bytes, b: Bytes| a.get().abs_diff(b.get()) < 64;
            assert!(
                near(sum(|doubt| doubt.below), device.expected - device.low),
                "{value}"
            );
            assert!(
                near(sum(|doubt| doubt.above), device.high - device.expected),
                "{value}"
            );
            assert!(doubts.iter().all(|doubt| !doubt.settled_by.is_empty()));
        }
    }
}
