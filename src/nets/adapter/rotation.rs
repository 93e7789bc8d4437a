//! OFT (peft/tuners/oft/layer.py): blocks of the input are rotated before the layer.

use super::adapter_weight;
use crate::nets::Cx;
use crate::scenario::Lora;
use crate::tape::Tensor;

/// `oft_block_size` where nothing else is asked for.
const BLOCK: u64 = 32;

/// `OFTRotationModule.forward` with Cayley's transform as a sum of five terms.
pub fn rotated(cx: &Cx, name: &str, x: &Tensor, lora: &Lora) -> Tensor {
    let inputs = x.size(-1);
    let blocks = (inputs / BLOCK).max(1);
    let elements = BLOCK * (BLOCK - 1) / 2;
    let weight = adapter_weight(cx, name, "oft_R", [blocks, elements], lora);
    let wide = x.to(weight.dtype());
    let vector = weight.tensor();
    let shape = [blocks, BLOCK, BLOCK];
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
    let by_block = wide.view(&[rows, blocks, BLOCK]).transpose(0, 1);
    drop(wide);
    let turned = by_block.bmm(&rotation).transpose(0, 1);
    drop((by_block, rotation));
    let out = turned.reshape(&[rows, inputs]).view(x.shape());
    drop(turned);
    out.to(x.dtype())
}
