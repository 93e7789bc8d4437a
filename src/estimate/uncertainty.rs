//! How far predictions may be off, from comparisons of the same runs on real cards.

use super::Band;
use crate::units::Bytes;

/// Relative bounds by kind of network.
#[derive(Clone, Copy, Debug)]
pub struct Uncertainty {
    below: f64,
    above: f64,
    convolutions: bool,
}

/// docs/accuracy.md: published runs re-run with the software matched differ by 0.05 % in the median, 0.5 % at most;
/// networks of convolutions may need up to 12 % more on a real card, whose cuDNN workspaces are not modelled.
pub fn of(architecture: &str) -> Uncertainty {
    let convolutions = ["tv", "timm", "unet", "resnet", "convnext"]
        .iter()
        .any(|name| architecture.starts_with(name));
    Uncertainty {
        below: 0.995,
        above: if convolutions { 1.12 } else { 1.005 },
        convolutions,
    }
}

impl Uncertainty {
    pub fn allocated(self, expected: Bytes) -> Band {
        Band {
            low: expected.scale(self.below),
            expected,
            high: expected.scale(self.above),
        }
    }

    pub fn not_modelled(self) -> Vec<String> {
        let mut all = vec!["memory of other processes on the same GPU".to_string()];
        if self.convolutions {
            all.push("workspaces that cuDNN takes for convolutions".into());
        }
        all
    }
}
