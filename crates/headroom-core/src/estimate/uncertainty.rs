//! The uncertainty of predictions, from comparisons with the same runs on real GPUs.

use serde::Serialize;

use super::{Band, device};
use crate::step::Run;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_catalog::NamedOverhead;
use headroom_scenario::Case;

/// What is unknown about a run, or not modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent source with its own width"
)]
pub struct UncertaintySources {
    /// Convolutions, whose cuDNN workspaces are not modelled.
    pub convolutions: bool,
    /// The figure is reserved memory, which depends on everything the process did before.
    pub reserved: bool,
    /// The figure is the driver's, which includes contexts and libraries.
    pub driver: bool,
    /// The software versions are unknown.
    pub unnamed_software: bool,
    /// Torch before 2.4, some of whose 16-bit kernels save more.
    pub older_torch: bool,
    /// Layers compiled by `torch.compile`, which save the inputs of products and attention and recompute the rest.
    pub compiled: bool,
    /// A similar adapter, quantizer or attention is modelled instead of the one used, or tokens are assumed to be spread
    /// evenly over experts.
    pub stand_in: bool,
    /// The sequence length is an upper limit that samples may not reach.
    pub longest: bool,
    /// Evaluations in the same process are included in the figure.
    pub evaluations: bool,
    /// A recorded model has operations of which only the outputs are counted.
    pub kernels_without_model: bool,
}

/// One term of the device range, and how to narrow it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// What is uncertain, in words to be shown to the user.
    pub about: &'static str,
    /// How much lower the figure may be.
    pub below: Bytes,
    /// How much higher.
    pub above: Bytes,
    /// The measurement or setting that narrows the range.
    pub settled_by: &'static str,
}

impl Doubt {
    /// The terms of the device range, widest first: of reserved memory, then of memory outside the allocator.
    pub(super) fn all(doubts: UncertaintySources, reserved: Bytes, case: &Case) -> Vec<Self> {
        let reserved = doubts
            .widths()
            .filter(|width| width.applies)
            .map(|width| Self {
                about: width.about,
                below: reserved.scale(width.below),
                above: reserved.scale(width.above),
                settled_by: width.settled_by,
            });
        let overheads = device::overheads(case).into_iter().map(Self::of_overhead);
        let width = |doubt: &Self| doubt.below + doubt.above;
        let all = reserved.chain(overheads);
        let all = all.filter(|doubt| width(doubt) > Bytes::ZERO);
        sorted(all, |a, b| width(b).cmp(&width(a)))
    }

    fn of_overhead(part: NamedOverhead) -> Self {
        let NamedOverhead { what, overhead } = part;
        Self {
            about: what,
            below: overhead.expected - overhead.low,
            above: overhead.high - overhead.expected,
            settled_by: "nvidia-smi minus torch.cuda.memory_reserved() after one step",
        }
    }
}

/// The width of one source, as shares of reserved memory.
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
}

impl UncertaintySources {
    /// The sources that depend on a run's network. A transformer's patch embedding is a convolution too, but too small for
    /// its workspace to matter.
    pub fn of(run: &Run) -> Self {
        const NOTICEABLE: f64 = 0.1;
        let (mut all, mut convolved) = (0.0, 0.0);
        for kernel in &run.trace.kernels {
            let flops = kernel.flops * f64::from(kernel.times);
            all += flops;
            if kernel.op.starts_with("convolution") {
                convolved += flops;
            }
        }
        Self {
            convolutions: convolved > NOTICEABLE * all,
            ..Self::default()
        }
    }

    /// All widths, whether they apply or not.
    fn widths(self) -> impl Iterator<Item = Width> {
        const PROBE: &str = "a probe log of one run (headroom probe)";
        const VERSIONS: &str = "setting the versions (stack.torch, stack.transformers)";
        let width = |applies, below, above, about, settled_by| Width {
            applies,
            below,
            above,
            about,
            settled_by,
        };
        [
            width(
                true,
                0.005,
                0.005,
                "scratch memory of individual kernels",
                PROBE,
            ),
            width(
                self.convolutions,
                0.0,
                0.115,
                "cuDNN's workspaces for convolutions",
                PROBE,
            ),
            width(
                self.reserved,
                0.04,
                0.04,
                "allocator state left by earlier work of the process",
                PROBE,
            ),
            width(
                self.driver,
                0.06,
                0.06,
                "CUDA context and libraries (only nvidia-smi was read)",
                "torch.cuda.max_memory_reserved() of the same run",
            ),
            width(
                self.unnamed_software,
                0.03,
                0.03,
                "unknown software versions",
                VERSIONS,
            ),
            width(
                self.older_torch,
                0.005,
                0.05,
                "16-bit kernels of torch before 2.4",
                PROBE,
            ),
            width(
                self.compiled,
                0.3,
                0.05,
                "activations saved by compiled layers",
                PROBE,
            ),
            width(
                self.stand_in,
                0.05,
                0.10,
                "an adapter, quantizer or attention that is approximated by a similar one",
                PROBE,
            ),
            width(
                self.longest,
                0.05,
                0.0,
                "sample lengths below the limit",
                "the dataset's length distribution (data.mean, data.p95)",
            ),
            width(
                self.evaluations,
                0.0,
                0.05,
                "evaluations in the same process",
                "runtime.eval_batch",
            ),
            width(
                self.kernels_without_model,
                0.0,
                0.05,
                "recorded operations of which only the outputs are counted",
                PROBE,
            ),
        ]
        .into_iter()
    }

    /// What the figures leave out, whatever the scenario.
    pub fn not_modelled(self) -> Vec<String> {
        let mut all = vec!["memory of other processes on the same GPU".to_string()];
        if self.convolutions {
            all.push("cuDNN's workspaces for convolutions".into());
        }
        all
    }

    /// The ranges of allocated and reserved memory.
    pub fn bands(self, allocated: Bytes, reserved: Bytes) -> [Band; 2] {
        let of_reserved = Self {
            reserved: true,
            ..self
        };
        let allocated = self.uncertainty().band(allocated);
        // Reserved memory is less certain, but never below allocated memory.
        let reserved = of_reserved.uncertainty().band(reserved);
        [allocated, reserved.at_least(allocated)]
    }

    /// The sum of the widths that apply. Published runs re-run with the software matched differ by 0.05 % in the median and
    /// by 0.5 % at most (docs/accuracy.md); the other widths are from the same comparisons: convolutions -0..+12 %,
    /// reserved with an unknown script ±4 %, the driver's figure ±10 % including reserved, unknown software ±3 %, 16 bits
    /// on older torch -0.5..+5 %. A compiled layer saves between only its products' inputs, about half of an eager layer's,
    /// and everything; an approximated adapter saves between nothing, as a frozen layer, and one more copy of each input;
    /// an evaluation's blocks stay reserved; samples padded to the longest of a batch may all be shorter than the limit; a
    /// kernel that is not modelled may need as much scratch memory as the modelled sorts and scatters.
    pub fn uncertainty(self) -> Uncertainty {
        let (mut below, mut above) = (0.0, 0.0);
        for width in self.widths().filter(|width| width.applies) {
            below += width.below;
            above += width.above;
        }
        Uncertainty {
            below: 1.0 - below,
            above: 1.0 + above,
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
}

#[cfg(test)]
mod tests {
    use std::ops::Add;

    use super::*;
    use crate::estimate::{Estimate, estimate};
    use headroom_scenario::{Scenario, settings};

    #[track_caller]
    fn check(doubts: UncertaintySources, low: u64, high: u64) {
        let band = doubts.uncertainty().band(Bytes::new(1000));
        let near = |bytes: Bytes, expected: u64| bytes.get().abs_diff(expected) <= 1;
        assert!(near(band.low, low) && near(band.high, high), "{band:?}");
    }

    #[test]
    fn sources_of_uncertainty_add_up() {
        let none = UncertaintySources::default();
        check(none, 995, 1005);
        let convolutions = true;
        check(
            UncertaintySources {
                convolutions,
                ..none
            },
            995,
            1120,
        );
        let reserved = true;
        check(UncertaintySources { reserved, ..none }, 955, 1045);
        let compiled = UncertaintySources {
            reserved,
            compiled: true,
            ..none
        };
        check(compiled, 655, 1095);
    }

    /// What is said not to be modelled, in which one thing is looked for.
    #[track_caller]
    fn is_not_modelled(changes: &[(&str, &str)], what: &str) -> bool {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let found = estimate(&scenario).unwrap();
        found.not_modelled.iter().any(|line| line.contains(what))
    }

    #[test]
    fn convolutional_networks_have_cudnn_workspaces() {
        let cudnn =
            |model| is_not_modelled(&[("model", model), ("mb", "2"), ("seq", "1")], "cuDNN");
        for model in [
            "vgg-16",
            "efficientnet-b0",
            "mobilenetv3-large",
            "resnet-50",
        ] {
            assert!(cudnn(model), "{model}");
        }
        for model in ["vit-b16", "gpt2"] {
            assert!(!cudnn(model), "{model}");
        }
    }

    #[test]
    fn only_what_a_run_does_is_listed_as_unmodelled() {
        let compiled = |how| {
            let layers = ("dims", "layers=2");
            is_not_modelled(&[layers, ("training.compile", how)], "torch.compile")
        };
        assert!(!compiled("nothing"));
        assert!(!compiled("model"));
        let encoders = |model, dims| {
            let encoders = [("model", model), ("mb", "1"), ("dims", dims)];
            is_not_modelled(&encoders, "text encoders")
        };
        assert!(encoders("sdxl-unet", "encoders=0"));
        assert!(!encoders("sdxl-unet", "encoders=1"));
        assert!(encoders("wan2.1-t2v-1.3b", "layers=2"));
        assert!(!encoders("gpt2", "layers=2"));
    }

    #[test]
    fn the_device_range_is_the_sum_of_its_sources() {
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
