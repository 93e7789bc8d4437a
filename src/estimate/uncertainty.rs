//! How far predictions may be off, from comparisons of the same runs on real cards.

use super::Band;
use crate::units::Bytes;

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

    /// The widths that apply, added up. Published runs re-run with the software matched differ by 0.05 % in the median and
    /// by 0.5 % at most (docs/accuracy.md); the other widths are from the same comparisons:
    /// convolutions -0..+12 %, reserved with a script not known ±4 %, the driver's figure ±10 % at most of which reserved
    /// is a part, software not known ±3 %, 16 bits on older torch -0.5..+5 %. What a compiled layer keeps is
    /// between its products' inputs alone, about half of what layers keep, and everything; what stands in
    /// for an adapter keeps between a frozen layer's nothing and a further copy of each input; an evaluation's blocks stay
    /// reserved; samples padded to the longest of a batch may all be shorter than the limit; a kernel without a rule may take
    /// as much again as sorting and scattering kernels do that have one.
    pub fn uncertainty(self) -> Uncertainty {
        let widths = [
            (true, 0.005, 0.005),
            (self.convolutions, 0.0, 0.115),
            (self.reserved, 0.04, 0.04),
            (self.driver, 0.06, 0.06),
            (self.unnamed_software, 0.03, 0.03),
            (self.older_torch, 0.005, 0.05),
            (self.compiled, 0.3, 0.05),
            (self.stand_in, 0.05, 0.10),
            (self.longest, 0.05, 0.0),
            (self.evaluations, 0.0, 0.05),
            (self.unruled, 0.0, 0.05),
        ];
        let (mut below, mut above) = (0.0, 0.0);
        for (_, low, high) in widths.iter().filter(|(applies, ..)| *applies) {
            below += low;
            above += high;
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
    use super::*;

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
}
