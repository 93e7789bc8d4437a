//! Mamba (transformers/models/mamba/modeling_mamba.py) without its fused kernels: `slow_forward`.

use super::{Cx, ModelError, Net, Output, Sizes, head, inputs};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
pub(super) struct Mamba {
    layers: u64,
    hidden: u64,
    /// `intermediate_size`.
    inner: u64,
    state: u64,
    /// `conv_kernel`.
    kernel: u64,
    /// `time_step_rank`.
    rank: u64,
    vocab: u64,
    /// The head has a matrix of its own.
    untied: bool,
    norms: StateNorms,
}

/// Norms over time steps and states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateNorms {
    None,
    /// Falcon-Mamba's, without weights.
    Unweighted,
    /// Jamba's.
    Weighted,
}

/// Falcon-Mamba (transformers/models/falcon_mamba/modeling_falcon_mamba.py).
pub(crate) fn falcon(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    build(&sizes.with_defaults([("state_norms", 1)]))
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Mamba {
        layers: sizes.need("layers")?,
        hidden,
        inner: sizes.or("inner", sizes.or("expand", 2).saturating_mul(hidden)),
        state: sizes.or("state", 16),
        kernel: sizes.or("conv", 4).max(1),
        rank: sizes.or("dt_rank", hidden.div_ceil(16)),
        vocab: sizes.need("vocab")?,
        untied: sizes.or("tied", 1) == 0,
        norms: if sizes.is_set("state_norms") {
            StateNorms::Unweighted
        } else {
            StateNorms::None
        },
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
        let hidden = cx.module("backbone", |cx| self.model(cx, ids));
        let weight = || {
            if self.untied {
                cx.embedding_weight(&["lm_head"], self.vocab, self.hidden)
            } else {
                cx.embedding_weight(&["backbone", "embeddings"], self.vocab, self.hidden)
            }
        };
        head::loss(cx, &hidden, labels, false, weight, |hidden| {
            let narrow = hidden.to(cx.env.weights);
            let logits = narrow.pipe(|hidden| hidden.linear(&weight(), None));
            logits.pipe(|logits| logits.to(DType::F32))
        })
    }
}

impl Mamba {
    /// The mixer of Jamba's layers, by the names that mixers of decoders have.
    pub(super) fn of_jamba(sizes: &Sizes) -> Self {
        let hidden = sizes.or("hidden", 1);
        Self {
            layers: 0,
            hidden,
            inner: sizes.or("expand", 2).saturating_mul(hidden),
            state: sizes.or("m_state", 16),
            kernel: sizes.or("m_conv", 4).max(1),
            rank: sizes.or("dt_rank", hidden.div_ceil(16)),
            vocab: 0,
            untied: true,
            norms: StateNorms::Weighted,
        }
    }

    fn model(&self, cx: &Cx, ids: &Tensor) -> Tensor {
        let embedded = cx.input_embedding("embeddings", ids, self.vocab, self.hidden);
        let this = *self;
        let last = cx.equal_stack(
            "layers",
            self.layers,
            embedded.clone(),
            move |cx, hidden| this.block(cx, hidden),
        );
        cx.rms_norm("norm_f", &last)
    }

    /// `MambaBlock.forward` with `residual_in_fp32`.
    fn block(&self, cx: &Cx, input: &Tensor) -> Tensor {
        let mut hidden = {
            let narrow = input.to(cx.env.weights);
            cx.rms_norm("norm", &narrow)
        };
        let residual = input.to(DType::F32);
        hidden = cx.module("mixer", |cx| self.mixer(cx, &hidden));
        residual.add(&hidden)
    }

    /// `MambaMixer.forward`.
    pub(super) fn mixer(&self, cx: &Cx, hidden: &Tensor) -> Tensor {
        let dtype = hidden.dtype();
        let projected = cx
            .linear("in_proj", hidden, 2 * self.inner, false)
            .transpose(1, 2);
        let a = {
            let a_log = cx.param("A_log", [self.inner, self.state]).tensor();
            a_log.to(DType::F32).pipe(Tensor::exp).pipe(Tensor::neg)
        };
        let d = || cx.param("D", [self.inner]).tensor().to(DType::F32);
        let time_bias = || {
            let bias = cx.module("dt_proj", |cx| cx.param("bias", [self.inner]).tensor());
            bias.to(DType::F32)
        };
        // Arguments of the fused function, which is not installed.
        drop((d(), time_bias()));
        let parts = projected.chunk(2, 1);
        let Ok([mixed, gate]) = <[Tensor; 2]>::try_from(parts) else {
            return hidden.clone();
        };
        let steps = mixed.size(2);
        let mixed = self.causal_conv1d(cx, &mixed).transpose(1, 2);
        let widths = [self.rank, self.state, self.state];
        let parameters = cx.linear(
            "x_proj",
            &mixed,
            widths.iter().copied().fold(0, u64::saturating_add),
            false,
        );
        let parts = parameters.split(&widths, -1);
        drop(parameters);
        let Ok([mut time_step, mut b, mut c]) = <[Tensor; 3]>::try_from(parts) else {
            return hidden.clone();
        };
        if self.norms == StateNorms::Weighted {
            time_step = cx.rms_norm("dt_layernorm", &time_step);
            b = cx.rms_norm("b_layernorm", &b);
            c = cx.rms_norm("c_layernorm", &c);
        }
        if self.norms == StateNorms::Unweighted {
            // `rms_forward`.
            [b, c, time_step] = [b, c, time_step].map(|part| {
                let wide = part.to(DType::F32);
                let scale = wide
                    .pow()
                    .pipe(|squares| squares.mean(&[-1]))
                    .pipe(Tensor::add_scalar)
                    .pipe(Tensor::rsqrt);
                wide.mul(&scale).pipe(|normed| normed.to(part.dtype()))
            });
        }
        time_step = cx.module("dt_proj", |cx| {
            let weight = cx.param("weight", [self.inner, self.rank]).tensor();
            let rows = time_step.linear(&weight, None);
            rows.transpose(1, 2).contiguous()
        });
        let time_bias = time_bias();
        let d = d();
        let x = mixed.transpose(1, 2);
        let out = self.selective_scan([&x, &time_step, &b, &c], [&a, &d, &time_bias], &gate);
        drop(d);
        let shape = [out.size(0), steps, self.inner];
        let rows = out.transpose(1, 2).to(dtype);
        let result = cx.linear("out_proj", &rows.reshape(&shape), self.hidden, false);
        drop((projected, a, gate, time_bias, time_step, b, c, mixed, out));
        result
    }

    /// `causal_conv1d_fn`: a depthwise convolution, cut to the sequence.
    fn causal_conv1d(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let steps = x.size(2);
        let conv = Conv {
            padding: self.kernel - 1,
            groups: self.inner,
            ..Conv::default()
        };
        let out = cx
            .convolution(
                "conv1d",
                &x.to(cx.env.weights),
                self.inner,
                &[self.kernel],
                conv,
                true,
            )
            .narrow(2, steps);
        out.silu().pipe(|out| out.to(x.dtype()))
    }

    /// `mamba_selective_scan`.
    fn selective_scan(
        &self,
        [x, time_step, b, c]: [&Tensor; 4],
        [a, d, time_bias]: [&Tensor; 3],
        gate: &Tensor,
    ) -> Tensor {
        let bias = time_bias.to(time_step.dtype()).unsqueeze(-1);
        let mut time_step = time_step.add(&bias);
        drop(bias);
        time_step = time_step.softplus();

        // A view for each use.
        let column = || time_step.unsqueeze(-1);
        let discrete_a = a
            .view(&[1, self.inner, 1, self.state])
            .mul(&column())
            .pipe(Tensor::exp);
        let wide_b = b.unsqueeze(1).to(DType::F32);
        let discrete_b = column().mul(&wide_b);
        drop(wide_b);
        let input = x.unsqueeze(-1).to(DType::F32).pipe(|x| discrete_b.mul(x));
        let (mut out, names) = discrete_a.selective_scan(&input, c);
        out = x
            .mul(&d.unsqueeze(0).unsqueeze(-1))
            .pipe(|skip| out.add(skip));
        out = gate.silu().pipe(|gate| out.mul(gate));
        drop((names, discrete_a, discrete_b, input, time_step));
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::recorded::{Case, check, training};
    use headroom_scenario::{Optimizer, Precision};

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
