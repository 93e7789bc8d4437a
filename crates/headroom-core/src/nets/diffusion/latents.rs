//! The latents of a sample, and what training makes of them.

use crate::nets::{Cx, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

/// What an autoencoder makes of pictures: how many pixels and frames become one latent, and the sample that is assumed if the run
/// names none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pixels {
    side: u64,
    time: u64,
    height: u64,
    width: u64,
    frames: u64,
}

/// The latents of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub frames: u64,
    pub height: u64,
    pub width: u64,
}

impl Pixels {
    /// Pictures whose sides are divided by `side`; `img` pixels a side by default.
    pub(crate) fn still(side: u64, img: u64) -> Self {
        Self {
            side: side.max(1),
            time: 1,
            height: img,
            width: img,
            frames: 1,
        }
    }

    /// Videos by the sizes `height`, `width` and `frames`, whose frames after the first are divided by `time`.
    pub(crate) fn moving(sizes: &Sizes, side: u64, time: u64) -> Self {
        Self {
            side: side.max(1),
            time: time.max(1),
            height: sizes.or("height", 480),
            width: sizes.or("width", 832),
            frames: sizes.or("frames", 81),
        }
    }

    /// The latents of a sample of this run.
    pub(crate) fn latents(&self, data: &Data) -> Grid {
        let given = |given: u64, default: u64| if given > 0 { given } else { default };
        let side = |pixels: u64| (pixels / self.side).max(1);
        let frames = given(data.frames, self.frames).max(1);
        Grid {
            frames: (frames - 1) / self.time + 1,
            height: side(given(data.height, self.height)),
            width: side(given(data.width, self.width)),
        }
    }
}

impl Grid {
    /// Patches of `side` × `side` latents of each `time` frames.
    pub(crate) fn patches(self, time: u64, side: u64) -> Self {
        Self {
            frames: (self.frames / time.max(1)).max(1),
            height: (self.height / side.max(1)).max(1),
            width: (self.width / side.max(1)).max(1),
        }
    }

    pub(crate) fn count(self) -> u64 {
        let picture = self.height.saturating_mul(self.width);
        picture.saturating_mul(self.frames)
    }
}

/// What a step of flow matching makes of latents: a mixture with noise, the velocity that is learned, and each sample's level of
/// noise in fp32.
#[derive(Debug)]
pub(crate) struct Noised {
    pub input: Tensor,
    pub target: Tensor,
    pub level: Tensor,
}

/// `(1 - sigma) * latents + sigma * noise`, and `noise - latents` to learn.
pub(crate) fn flow_matching(latents: &Tensor) -> Noised {
    let noise = latents.constant("randn_like", latents.shape(), latents.dtype());
    let count = [latents.size(0)];
    let level = {
        let drawn = latents.constant("randn", &count, DType::F32);
        drawn.sigmoid()
    };
    let mut shape = vec![1; latents.shape().len()];
    if let Some(first) = shape.first_mut() {
        *first = latents.size(0);
    }
    let sigma = level.reshape(&shape).to(latents.dtype());
    let input = {
        let kept = sigma.add_scalar().pipe(|kept| kept.mul(latents));
        let added = sigma.mul(&noise);
        kept.add(&added)
    };
    let target = noise.sub(latents);
    Noised {
        input,
        target,
        level,
    }
}

/// The mean over samples of squared errors with a weight for each, as diffusers' scripts for flow matching take it.
pub(crate) fn weighted_output(cx: &Cx, predicted: Tensor, noised: &Noised) -> crate::nets::Output {
    let loss = cx.module("loss", |_| {
        let mut shape = vec![1; predicted.shape().len()];
        if let Some(first) = shape.first_mut() {
            *first = predicted.size(0);
        }
        let weights = noised.level.constant("ones_like", &shape, DType::F32);
        let squares = {
            let wide = predicted.to(DType::F32);
            let target = noised.target.to(DType::F32);
            wide.sub(&target).pipe(Tensor::pow)
        };
        let weighted = weights.mul(&squares);
        drop((weights, squares));
        let rows = [
            predicted.size(0),
            predicted.numel() / predicted.size(0).max(1),
        ];
        weighted
            .pipe(|all| all.reshape(&rows))
            .mean(&[1])
            .mean_all()
    });
    crate::nets::Output {
        loss,
        held: vec![predicted],
    }
}
