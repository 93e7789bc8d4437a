//! `EncHead`: the map weighed by how its places spread over code words, which are classified by themselves too.

use super::super::layers::{Labels, flat, point, three};
use super::DROPOUT;
use crate::nets::Cx;
use crate::tape::{DType, Tensor};

/// `num_codes`.
const CODES: u64 = 32;

pub(super) fn losses(cx: &Cx, x: &Tensor, channels: u64, labels: &Labels) -> Vec<Tensor> {
    let n = x.size(0);
    cx.module("decode_head", |cx| {
        let feature = cx.conv_module("bottleneck", x, three(channels));
        let (code, output) = cx.module("enc_module", |cx| {
            let projected = cx.conv_module("encoding_project", &feature, point(channels));
            let codes = cx.module("encoding", |cx| {
                let codes = cx.module("0", |cx| encoded(cx, &projected));
                cx.batch_norm("1", &codes).pipe(Tensor::relu_)
            });
            let code = codes.mean(&[1]).view(&[n, channels]);
            let weights = cx.module("fc", |cx| cx.linear("0", &code, channels, true).sigmoid());
            let weights = weights.view(&[n, channels, 1, 1]);
            let weighed = feature.mul(&weights);
            let sum = feature.add(&weighed);
            drop(weighed);
            (code, sum.relu_())
        });
        let logits = cx.classified(&output, labels.classes, DROPOUT);
        let present = cx.linear("se_layer", &code, labels.classes, true);
        drop((feature, code, output));
        let first = labels.loss(&logits);
        let targets = present.constant("new_zeros", &[n, labels.classes], DType::F32);
        vec![first, present.bce_with_logits(&targets)]
    })
}

/// `Encoding.forward`: every place's distance from every code word.
fn encoded(cx: &Cx, x: &Tensor) -> Tensor {
    let (n, channels) = (x.size(0), x.size(1));
    let words = cx.param("codewords", [CODES, channels]).tensor();
    let scale = cx.param("scale", [CODES]).tensor();
    let rows = flat(x).transpose(1, 2).contiguous();
    let shape = [n, rows.size(1), CODES, channels];
    let words = words.view(&[1, 1, CODES, channels]);
    let difference = || rows.unsqueeze(2).expand(&shape).sub(&words);
    let weights = {
        let squares = difference().pipe(Tensor::pow);
        let distance = squares.pipe(|squares| squares.sum(&[3]));
        let distance = distance.view(&[n, rows.size(1), CODES]);
        let scaled = scale.view(&[1, 1, CODES]).mul(&distance);
        drop(distance);
        scaled.softmax(None)
    };
    let products = weights.unsqueeze(3).mul(&difference());
    drop(weights);
    let sum = products.sum(&[1]);
    sum.view(&[n, CODES, channels])
}
