//! AltUp: streams of hidden states `[N, B, S, H]`, of which a layer changes the first and corrects the others
//! (`Gemma3nTextAltUp`).

use super::super::super::Cx;
use super::Gemma3n;
use crate::tape::{DType, Tensor};

impl Gemma3n {
    /// The streams before the first layer, and what the model's own variables keep alive beside them.
    pub(super) fn spread(&self, cx: &Cx, first: &Tensor) -> (Tensor, Vec<Tensor>) {
        let magnitude = magnitude(first);
        let mut all = vec![first.clone()];
        let mut held = Vec::new();
        for i in 1..self.streams as usize {
            let (current, last) = self.other(cx, "altup_projections", i, first, &magnitude);
            all.push(current);
            held = last;
        }
        held.push(magnitude);
        let streams = stacked(&all);
        held.extend(all);
        (streams, held)
    }

    /// The mean of the streams behind the last layer.
    pub(super) fn gathered(&self, cx: &Cx, streams: &Tensor) -> Tensor {
        let magnitude = streams.select(0).pipe(magnitude);
        let mut all = vec![streams.select(0)];
        let mut held = Vec::new();
        for i in 1..self.streams as usize {
            let stream = streams.select(0);
            let name = "altup_unembed_projections";
            let (current, last) = self.other(cx, name, i, &stream, &magnitude);
            all.push(current);
            held = last;
        }
        let mean = stacked(&all).pipe(|stacked| stacked.mean(&[0]).squeeze(0));
        drop((magnitude, all, held));
        mean
    }

    /// One more stream: a projection, as large as the first; with what the loop's variables keep alive.
    fn other(
        &self,
        cx: &Cx,
        list: &'static str,
        i: usize,
        x: &Tensor,
        magnitude: &Tensor,
    ) -> (Tensor, Vec<Tensor>) {
        let projected = cx.list_item(list, i - 1, |cx| {
            let width = self.text.hidden;
            let weight = cx.param("weight", [width, width]).tensor();
            x.linear(&weight, None)
        });
        let mut current = projected.to(x.dtype());
        let own = current
            .pow()
            .pipe(|squares| squares.mean(&[-1]))
            .pipe(Tensor::clamp)
            .pipe(Tensor::sqrt);
        current = current.mul(magnitude).pipe(|scaled| scaled.div(&own));
        (current, vec![projected, own])
    }

    /// `compute_router_modalities`.
    fn modalities(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let scale = cx.buffer("router_input_scale", [0; 0], cx.env.weights);
        let inputs = self
            .text
            .norm(cx, "router_norm", x)
            .pipe(|normed| normed.mul(&scale));
        let routed = cx.linear("modality_router", &inputs, self.streams, false);
        routed
            .to(DType::F32)
            .pipe(Tensor::tanh)
            .pipe(|modalities| modalities.to(x.dtype()))
    }

    /// `predict`: each stream as a mixture of all, whose shares the first decides.
    pub(super) fn predicted(&self, cx: &Cx, streams: &Tensor) -> Tensor {
        let n = self.streams;
        let modalities = streams.select(0).pipe(|first| self.modalities(cx, first));
        let (b, s) = (streams.size(1), streams.size(2));
        let shares = cx
            .linear("prediction_coefs", &modalities, n * n, false)
            .reshape(&[b, s, n, n])
            .permute(&[0, 1, 3, 2]);
        let mut predictions = streams.permute(&[1, 2, 3, 0]).matmul(&shares);
        predictions = predictions.permute(&[3, 0, 1, 2]);
        predictions = predictions.add_(streams);
        let out = predictions.contiguous().to(streams.dtype());
        drop((modalities, shares, predictions));
        out
    }

    /// `correct`: what the layer has changed in the first stream is added to all.
    pub(super) fn corrected(&self, cx: &Cx, predictions: &Tensor, activated: &Tensor) -> Tensor {
        let n = self.streams;
        let modalities = self.modalities(cx, activated);
        let mut innovation = predictions.select(0).pipe(|first| activated.sub(first));
        innovation = innovation.unsqueeze(0).tiled(n);
        let weight = cx.module("correction_coefs", |cx| {
            cx.param("weight", [n, n]).tensor().clamp_between()
        });
        let mut shares = modalities.linear(&weight, None).pipe(Tensor::add_scalar);
        shares = shares.permute(&[2, 0, 1]).unsqueeze(-1);
        let mut corrected = innovation.mul(&shares);
        corrected = corrected.add_(predictions);
        let out = corrected.contiguous().to(activated.dtype());
        drop((modalities, innovation, weight, shares, corrected));
        out
    }

    /// `corrected_predictions[1:] += first_prediction`: a sum in place of a part, which is then written over itself.
    pub(super) fn added_to_others(&self, corrected: &Tensor, first: &Tensor) -> Tensor {
        let summed = corrected.add_to_part(first, self.streams - 1);
        let part = summed.narrow(0, self.streams - 1);
        summed.put(&part)
    }
}

/// `torch.mean(x**2, dim=-1, keepdim=True) ** 0.5`.
fn magnitude(x: &Tensor) -> Tensor {
    x.pow()
        .pipe(|squares| squares.mean(&[-1]))
        .pipe(Tensor::pow)
}

/// `torch.stack(all)`.
fn stacked(all: &[Tensor]) -> Tensor {
    let rows: Vec<Tensor> = all.iter().map(|x| x.unsqueeze(0)).collect();
    let rows: Vec<&Tensor> = rows.iter().collect();
    match rows.split_first() {
        Some((first, rest)) => Tensor::cat(first, rest, 0),
        None => all[0].clone(),
    }
}
