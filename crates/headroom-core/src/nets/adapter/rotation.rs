//! OFT (peft/tuners/oft/layer.py): blocks of the input are rotated before the layer.

use super::adapter_weight;
use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_scenario::Lora;

/// `OFTRotationModule.forward` with Cayley's transform as a sum of five terms.
pub(crate) fn rotated(cx: &Cx, name: &str, x: &Tensor, lora: &Lora) -> Tensor {
    let inputs = x.size(-1);
    let size = block(inputs, lora.block());
    let blocks = (inputs / size).max(1);
    let elements = size.saturating_mul(size - 1) / 2;
    let weight = adapter_weight(cx, name, "oft_R", [blocks, elements], lora);
    let wide = x.to(weight.dtype());
    let vector = weight.tensor();
    let shape = [blocks, size, size];
    // The upper triangles are put into zeros, and the transposes taken off.
    let skew = {
        let matrix = vector.scattered_into("index_put", &shape);
        let transposed = matrix.transpose(-2, -1);
        matrix.sub(&transposed)
    };
    let identity = cx.tape.empty("repeat", shape, vector.dtype());
    let squared = skew.bmm(&skew);
    let cubed = squared.bmm(&skew);
    let fourth = cubed.bmm(&skew);
    let rotation = identity
        .add_(&skew)
        .add_(&squared)
        .add_(&cubed)
        .add_(&fourth);
    drop((skew, squared, cubed, fourth));
    // `einsum("...rk,rkc->...rc")` is a product of each block over all rows.
    let rows = wide.numel() / inputs.max(1);
    let by_block = wide.view(&[rows, blocks, size]).transpose(0, 1);
    drop(wide);
    let turned = by_block.bmm(&rotation).transpose(0, 1);
    drop((by_block, rotation));
    let out = turned.reshape(&[rows, inputs]).view(x.shape());
    drop(turned);
    out.to(x.dtype())
}

/// `adjust_oft_parameters`: the nearest size to the one that was requested that divides the layer's width.
fn block(width: u64, asked: u64) -> u64 {
    let asked = asked.max(1);
    if asked >= width {
        return width.max(1);
    }
    let lower = (1..=asked).rev().find(|size| width.is_multiple_of(*size));
    let below = asked - lower.unwrap_or(1);
    // Only what is nearer than the one below is looked at: widths can be anything.
    let mut nearer = asked..asked.saturating_add(below);
    nearer
        .find(|size| width.is_multiple_of(*size))
        .or(lower)
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::block;

    #[track_caller]
    fn check(width: u64, asked: u64, expected: u64) {
        assert_eq!(block(width, asked), expected);
    }

    #[test]
    fn a_block_divides_the_width() {
        check(2048, 32, 32);
        check(2048, 48, 32);
        check(896, 60, 56);
        check(896, 62, 64);
        check(24, 32, 24);
        check(13, 4, 1);
    }
}
