//! Mamba (transformers/models/mamba/modeling_mamba.py) as it runs without kernels of its own.

use super::{Cx, ModelError, Net, Output, Sizes, head, inputs};
use crate::scenario::Data;
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

#[derive(Clone, Copy, Debug)]
struct Mamba {
    layers: u64,
    hidden: u64,
    /// The width of the scan.
    inner: u64,
    state: u64,
    taps: u64,
    /// The width time steps are pressed to.
    rank: u64,
    vocab: u64,
}

pub fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Mamba {
        layers: sizes.need("layers")?,
        hidden,
        inner: sizes.or("inner", sizes.or("expand", 2).saturating_mul(hidden)),
        state: sizes.or("state", 16),
        taps: sizes.or("conv", 4).max(1),
        rank: sizes.or("dt_rank", hidden.div_ceil(16)),
        vocab: sizes.need("vocab")?,
    }))
}

impl Net for Mamba {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let hidden = cx.within("backbone", |cx| self.model(cx, ids));
        let table = || {
            cx.within("backbone", |cx| {
                cx.within("embeddings", |cx| {
                    cx.param("weight", [self.vocab, self.hidden]).tensor()
                })
            })
        };
        head::loss(cx, &hidden, labels, false, table, |hidden| {
            let narrow = hidden.to(cx.env.weights);
            let logits = narrow.then(|hidden| hidden.linear(&table(), None));
            logits.then(|logits| logits.to(DType::F32))
        })
    }
}

impl Mamba {
    fn model(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let embedded = cx.input_embedding("embeddings", ids, self.vocab, self.hidden);
        let this = *self;
        let state = vec![embedded.clone()];
        let last = cx.equal_layers("layers", self.layers, state, move |cx, state| {
            state.iter().map(|hidden| this.block(cx, hidden)).collect()
        });
        let normed = last.first().map(|hidden| cx.rms_norm("norm_f", hidden));
        normed.unwrap_or(embedded)
    }

    /// `MambaBlock.forward`: the sum of all blocks is kept in fp32.
    fn block(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let mut hidden = {
            let narrow = input.to(cx.env.weights);
            cx.rms_norm("norm", &narrow)
        };
        let residual = input.to(DType::F32);
        hidden = cx.within("mixer", |cx| self.mixer(cx, &hidden));
        residual.add(&hidden)
    }

    /// `MambaMixer.forward`.
    fn mixer(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let dtype = hidden.dtype();
        let projected = cx
            .linear("in_proj", hidden, 2 * self.inner, false)
            .transpose(1, 2);
        let decay = {
            let wide = cx.param("A_log", [self.inner, self.state]).tensor();
            wide.to(DType::F32).then(Tensor::exp).then(Tensor::neg)
        };
        let skip = || cx.param("D", [self.inner]).tensor().to(DType::F32);
        let time_bias = || {
            let bias = cx.within("dt_proj", |cx| cx.param("bias", [self.inner]).tensor());
            bias.to(DType::F32)
        };
        // Arguments of the fused function, which is not there.
        drop((skip(), time_bias()));
        let parts = projected.chunk(2, 1);
        let Ok([mixed, gate]) = <[Tensor; 2]>::try_from(parts) else {
            return hidden.clone();
        };
        let steps = mixed.size(2);
        let mixed = self.convolved(cx, &mixed).transpose(1, 2);
        let widths = [self.rank, self.state, self.state];
        let all = cx.linear("x_proj", &mixed, widths.iter().sum(), false);
        let parts = all.split(&widths, -1);
        drop(all);
        let Ok([mut time, b, c]) = <[Tensor; 3]>::try_from(parts) else {
            return hidden.clone();
        };
        time = cx.within("dt_proj", |cx| {
            let weight = cx.param("weight", [self.inner, self.rank]).tensor();
            let rows = time.linear(&weight, None);
            rows.transpose(1, 2).contiguous()
        });
        let bias = time_bias();
        let skip = skip();
        let sound = mixed.transpose(1, 2);
        let out = self.scanned([&sound, &time, &b, &c], [&decay, &skip, &bias], &gate);
        drop(skip);
        let shape = [out.size(0), steps, self.inner];
        let rows = out.transpose(1, 2).to(dtype);
        let result = cx.linear("out_proj", &rows.reshape(&shape), self.hidden, false);
        drop((projected, decay, gate, bias, time, b, c, mixed, out));
        result
    }

    /// `causal_conv1d_fn`: each channel by itself, cut to the sequence.
    fn convolved(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let steps = x.size(2);
        let conv = Conv {
            padding: self.taps - 1,
            groups: self.inner,
            ..Conv::default()
        };
        let out = cx
            .convolution(
                "conv1d",
                &x.to(cx.env.weights),
                self.inner,
                &[self.taps],
                conv,
                true,
            )
            .narrow(2, steps);
        out.silu().then(|out| out.to(x.dtype()))
    }

    /// `mamba_selective_scan`.
    fn scanned(
        &self,
        [sound, time, b, c]: [&Tensor; 4],
        [decay, skip, bias]: [&Tensor; 3],
        gate: &Tensor,
    ) -> Tensor {
        let moved = bias.to(time.dtype()).unsqueeze(-1);
        let mut time = time.add(&moved);
        drop(moved);
        time = time.softplus();

        // A view for each use.
        let column = || time.unsqueeze(-1);
        let factors = decay
            .view(&[1, self.inner, 1, self.state])
            .mul(&column())
            .then(Tensor::exp);
        let wide_b = b.unsqueeze(1).to(DType::F32);
        let inputs = column().mul(&wide_b);
        drop(wide_b);
        let heard = sound
            .unsqueeze(-1)
            .to(DType::F32)
            .then(|sound| inputs.mul(sound));
        let (mut out, names) = factors.selective_scan(&heard, c);
        out = sound
            .mul(&skip.unsqueeze(0).unsqueeze(-1))
            .then(|skipped| out.add(skipped));
        out = gate.silu().then(|gate| out.mul(gate));
        drop((names, factors, inputs, heard, time));
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::recorded::{Case, check, training};
    use crate::scenario::{Optimizer, Precision};

    fn small() -> Case {
        Case::new("mamba", &[("hidden", 768), ("layers", 2), ("vocab", 8000)])
    }

    #[test]
    fn every_step_of_the_scan_keeps_its_state() {
        let bf16 = training(Precision::Bf16, Optimizer::Sgd);
        check(&small().batch(2, 64).trained(&bf16), 179_372_032);
        let amp = training(Precision::AmpBf16, Optimizer::Sgd);
        check(&small().batch(2, 256).trained(&amp), 653_753_344);
    }

    /// Steps of long sequences are grouped, so that the events stay few.
    #[test]
    fn long_sequences_make_few_events() {
        let mut case = small().batch(1, 1 << 20);
        case.steps = 1;
        assert!(case.run().trace.events.len() < 100_000);
    }
}
