//! RoAd (peft/tuners/road/layer.py, `road_1`): pairs of a layer's outputs are turned and scaled.

use super::vector;
use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_scenario::Lora;

/// `group_size`: the first half of a group is paired with the second.
const GROUP: u64 = 64;

/// `Linear.forward` and `_apply_road`.
pub(crate) fn pairs(cx: &Cx, y: Tensor, lora: &Lora) -> Tensor {
    let outputs = y.size(-1);
    let theta = vector(cx, "road_theta", &[outputs / 2], lora);
    let alpha = vector(cx, "road_alpha", &[outputs / 2], lora);
    let dtype = y.dtype();
    let x = y.pipe(|y| y.to(theta.dtype()));
    let [first, second] = columns(&theta, &alpha, outputs);
    let pairs = x.numel() / GROUP.max(1);
    let grouped = x.view(&[pairs, 2, GROUP / 2]);
    let (x1, x2) = (grouped.select(1), grouped.select(1));
    let Some(rotated) = Tensor::stack(&[x2.neg(), x1.clone()], 1) else {
        return x;
    };
    let rotated = rotated.pipe(|stacked| stacked.view(x.shape()));
    let result = {
        let kept = x.mul(&first);
        let turned = rotated.mul(&second);
        kept.add(&turned)
    };
    drop((rotated, x1, x2, grouped, first, second, x));
    result.to(dtype)
}

/// `_prepare_cols`: each angle and each scale is repeated twice.
fn columns(theta: &Tensor, alpha: &Tensor, outputs: u64) -> [Tensor; 2] {
    let twice = |of: &Tensor| {
        of.unsqueeze(-1)
            .repeated(&[outputs / 2, 2])
            .view(&[outputs])
    };
    let (theta, alpha) = (twice(theta), twice(alpha));
    let (cosine, sine) = (theta.cos(), theta.sin());
    [alpha.mul(&cosine), alpha.mul(&sine)]
}
