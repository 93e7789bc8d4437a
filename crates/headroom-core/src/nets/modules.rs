//! Layers with parameters.

use super::adapter::{self, adapted, adapted_embedding, with_trained_rows};
use super::{Cx, Split};
use crate::parallel::Role;
use crate::tape::ops::{Conv, Float8};
use crate::tape::{DType, Dims, Tensor};
use headroom_scenario::{Checkpointing, Compile, Kernels, LowPrecision, Quantization};

impl Cx {
    /// `nn.Linear`, with its low-rank adapter where the run requests one.
    pub fn linear(&self, name: &'static str, x: &Tensor, out: u64, bias: bool) -> Tensor {
        if let Some(split) = self.split(name) {
            return self.split_linear(name, x, out, bias, split);
        }
        self.module(name, |cx| {
            let x = &adapter::input(cx, name, x);
            if cx.quantised(name) {
                let y = match cx.env.training.quantization {
                    Quantization::Int8 => cx.linear_8bit(x, out, bias),
                    Quantization::Hqq => cx.linear_hqq(x, out, bias),
                    Quantization::Gptq | Quantization::Awq => cx.linear_gptq(x, out, bias),
                    Quantization::Aqlm => cx.linear_aqlm(x, out, bias),
                    Quantization::Fp8 => cx.linear_fp8(x, out, bias),
                    Quantization::Nf4Ao => cx.linear_nf4(x, out, bias),
                    Quantization::None | Quantization::Nf4 | Quantization::Nf4Double => {
                        let y = cx.linear_4bit(x, out, bias, cx.compute_type());
                        y.cloned()
                    }
                };
                let y = cx.post_linear(y);
                return adapted(cx, name, x, y);
            }
            let weight = cx.linear_weight(out, x.size(-1));
            let bias = bias.then(|| cx.param("bias", [out]).tensor());
            let y = cx.product(name, x, &weight, bias.as_ref());
            let y = cx.post_linear(y);
            adapted(cx, name, x, y)
        })
    }

    /// A linear layer's product, in what the run multiplies its layers in: all but the head.
    fn product(&self, name: &str, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let training = &self.env.training;
        if name == "lm_head" {
            return x.linear(weight, bias);
        }
        if training.qat {
            return self.fake_quantised_linear(x, weight, bias);
        }
        if training.fp8 {
            return x.float8(weight, bias, Float8::Tensorwise);
        }
        match training.low_precision {
            LowPrecision::None => x.linear(weight, bias),
            LowPrecision::Rowwise => x.float8(weight, bias, Float8::Rowwise),
            LowPrecision::RowwiseHigh => x.float8(weight, bias, Float8::RowwiseWithHighGradient),
            LowPrecision::MxFp8 => x.linear_mxfp8(weight, bias),
            LowPrecision::NvFp4 => {
                self.buffer("_sr_seed", [1], DType::I64);
                self.buffer("_rht_sign_vector", [16], DType::U8);
                x.linear_nvfp4(weight, bias)
            }
            LowPrecision::Int8Mixed => x.linear_int8_mixed(weight, bias),
            LowPrecision::BitNet => x.linear_bitnet(weight, bias),
        }
    }

    /// The same where its weight is split over GPUs.
    fn split_linear(
        &self,
        name: &'static str,
        x: &Tensor,
        out: u64,
        bias: bool,
        split: Split,
    ) -> Tensor {
        self.module(name, |cx| {
            let columns = matches!(split, Split::Columns | Split::Head);
            let own = if columns { cx.part_of(out) } else { out };
            let x = cx.split_input(split, x);
            let weight = cx.param("weight", [own, x.size(-1)]);
            let bias = bias.then(|| cx.param("bias", [own]).tensor());
            if columns {
                let y = x.linear(&weight.tensor(), bias.as_ref());
                drop(x);
                return cx.joined(split, y);
            }
            // The bias is added once, to the sum.
            let y = cx.joined(split, x.linear(&weight.tensor(), None));
            match bias {
                Some(bias) => y.pipe(|y| y.add(&bias)),
                None => y,
            }
        })
    }

    /// A linear layer without an adapter, quantised if the run quantises.
    pub fn plain_linear(&self, name: &'static str, x: &Tensor, out: u64, bias: bool) -> Tensor {
        self.module(name, |cx| {
            if cx.env.training.quantization != Quantization::None {
                // Fabric's plugin quantises fp16.
                return cx.linear_4bit(x, out, bias, DType::F16);
            }
            let weight = cx.param("weight", [out, x.size(-1)]);
            let bias = bias.then(|| cx.param("bias", [out]).tensor());
            x.linear(&weight.tensor(), bias.as_ref())
        })
    }

    /// A linear layer without bias whose weight is another module's.
    pub fn tied_linear(&self, name: &'static str, x: &Tensor, weight: &Tensor) -> Tensor {
        self.module(name, |cx| {
            let weight = if cx.is_copied() {
                // The copy is the head's own; what it is a copy of is the embedding's.
                let shape = [weight.size(0), weight.size(1)];
                let dtype = cx.env.copies_of(weight.dtype());
                cx.param_as("weight", shape, dtype, |_| true).tensor()
            } else if cx.env.trains_copies() {
                // The embedding may be a copy: the head stays with the frozen original, which is as large.
                weight.detach()
            } else {
                with_trained_rows(cx, weight.clone())
            };
            adapted(cx, name, x, x.linear(&weight, None))
        })
    }

    /// The weight of a linear layer: without memory here where it waits on the host.
    fn linear_weight(&self, out: u64, inputs: u64) -> Tensor {
        if self.is_on_host() {
            return self.waiting("weight", [out, inputs], self.env.weights);
        }
        self.param("weight", [out, inputs]).tensor()
    }

    /// A byte for each weight (`float8_e4m3fn`), cast to the type it computes in for each product: `--fp8_base` of kohya's and
    /// musubi's scripts, `enable_layerwise_casting` of diffusers. Autograd saves the cast weight.
    fn linear_fp8(&self, x: &Tensor, out: u64, bias: bool) -> Tensor {
        let inputs = x.size(-1);
        let count = out.saturating_mul(inputs);
        let compute = self.compute_type();
        self.packed("weight", count, count);
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let weight = x.constant("to", &[out, inputs], compute);
        let y = x.to(compute).pipe(|x| x.linear(&weight, bias.as_ref()));
        y.to(x.dtype())
    }

    /// `Linear8bitLt` of bitsandbytes: a byte for each weight and an fp32 scale for each output.
    fn linear_8bit(&self, x: &Tensor, out: u64, bias: bool) -> Tensor {
        let count = out.saturating_mul(x.size(-1));
        let weight = self.packed("weight", count, count);
        let scales = self.buffer("SCB", [out], DType::F32);
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let y = x.linear_8bit(&weight, &scales, out);
        match bias {
            Some(bias) => y.add(&bias),
            None => y,
        }
    }

    /// `HQQLinear`: half a byte for each weight, and a scale and a zero for each 64 of them in the type it computes in.
    fn linear_hqq(&self, x: &Tensor, out: u64, bias: bool) -> Tensor {
        const GROUP: u64 = 64;
        let count = out.saturating_mul(x.size(-1));
        let compute = self.compute_type();
        let weight = self.packed("W_q", count, count.div_ceil(2));
        self.buffer("scale", [count.div_ceil(GROUP)], compute);
        self.buffer("zero", [count.div_ceil(GROUP)], compute);
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let y = x.to(compute).pipe(|x| x.linear_hqq(&weight, out));
        let y = match bias {
            Some(bias) => y.add(&bias),
            None => y,
        };
        y.to(x.dtype())
    }

    /// Layers of GPT-QModel in GPTQ's and AWQ's formats: half a byte for each weight, and for each 128 of a column a scale of
    /// 16 bits and a zero of four; GPTQ also has the group of each input.
    fn linear_gptq(&self, x: &Tensor, out: u64, bias: bool) -> Tensor {
        const GROUP: u64 = 128;
        let inputs = x.size(-1);
        let count = out.saturating_mul(inputs);
        let compute = self.compute_type();
        let weight = self.packed("qweight", count, count.div_ceil(2));
        let groups = inputs.div_ceil(GROUP);
        self.buffer("qzeros", [groups, out.div_ceil(8)], DType::I32);
        self.buffer("scales", [groups, out], compute);
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let y = if self.env.training.quantization == Quantization::Awq {
            x.to(compute).pipe(|x| x.linear_awq(&weight, out))
        } else {
            self.buffer("g_idx", [inputs], DType::I32);
            self.buffer("wf_unsqueeze_zero", [8], DType::I32);
            self.buffer("wf_unsqueeze_neg_one", [8], DType::I32);
            x.linear_gptq(out, compute)
        };
        let y = match bias {
            Some(bias) => y.pipe(|y| y.add_(&bias)),
            None => y,
        };
        y.to(x.dtype())
    }

    /// `QuantizedLinear` of AQLM with one codebook of 16 bits for groups of eight weights.
    fn linear_aqlm(&self, x: &Tensor, out: u64, bias: bool) -> Tensor {
        const GROUP: u64 = 8;
        let count = out.saturating_mul(x.size(-1));
        let compute = self.compute_type();
        self.buffer("codebooks", [1 << 16, GROUP], compute);
        let codes = self.packed("codes", count, count.div_ceil(GROUP).saturating_mul(2));
        self.buffer("scales", [out], compute);
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let y = x.to(compute).pipe(|x| x.linear_aqlm(&codes, out));
        let y = match bias {
            Some(bias) => y.add(&bias),
            None => y,
        };
        y.to(x.dtype())
    }

    /// `Linear4bit` of bitsandbytes: half a byte for each weight and a scale for each 64, which are bytes with scales of
    /// their own under double quantisation; it computes in 16 bits.
    fn linear_4bit(&self, x: &Tensor, out: u64, bias: bool, stored: DType) -> Tensor {
        const BLOCK: u64 = 64;
        let count = out.saturating_mul(x.size(-1));
        let weight = self.packed("weight", count, count.div_ceil(2));
        let blocks = if self.env.libraries.four_bit_without_groups {
            out
        } else {
            count.div_ceil(BLOCK)
        };
        let double = self.env.training.quantization == Quantization::Nf4Double;
        self.buffer("code", [16], DType::F32);
        if double {
            self.buffer("absmax", [blocks], DType::U8);
            self.buffer("absmax_of_absmax", [blocks.div_ceil(256)], DType::F32);
            self.buffer("code_of_absmax", [256], DType::F32);
            self.buffer("offset", [0; 0], DType::F32);
        } else {
            self.buffer("absmax", [blocks], DType::F32);
        }
        let compute = self.compute_type();
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let scales = double.then_some(blocks);
        let keeps_input = self.env.libraries.four_bit_keeps_input;
        let y = x
            .to(compute)
            .pipe(|x| x.linear_4bit(&weight, out, scales, stored, keeps_input));
        let y = match bias {
            Some(bias) => y.add(&bias),
            None => y,
        };
        y.to(x.dtype())
    }

    /// torchtune's linear layers over `NF4Tensor`: half a byte for each weight, a byte for each 64 and a number of the weights' type
    /// for each 256 of those. Their bias, if any, is added to the product.
    fn linear_nf4(&self, x: &Tensor, out: u64, bias: bool) -> Tensor {
        const BLOCK: u64 = 64;
        const SCALES: u64 = 256;
        let count = out.saturating_mul(x.size(-1));
        let weight = self.packed("weight", count, count.div_ceil(2));
        let dtype = self.compute_type();
        self.buffer("scaler_mean", [0; 0], dtype);
        self.buffer(
            "quantization_factor",
            [count.div_ceil(BLOCK * SCALES)],
            dtype,
        );
        self.buffer("quantized_scalers", [count.div_ceil(BLOCK)], DType::U8);
        self.buffer("nf4", [16], dtype);
        let bias = bias.then(|| self.param("bias", [out]).tensor());
        let compiled = self.env.training.compile != Compile::Nothing;
        let y = x.to(dtype).pipe(|x| x.linear_nf4(&weight, out, compiled));
        let y = match bias {
            Some(bias) => y.add(&bias),
            None => y,
        };
        y.to(x.dtype())
    }

    /// The 16-bit type in which products with four-bit weights are taken.
    fn compute_type(&self) -> DType {
        if self.env.weights.is_half() {
            self.env.weights
        } else {
            DType::BF16
        }
    }

    /// `Conv1D` of transformers: a linear layer with its weight the other way round.
    pub fn conv1d(&self, name: &'static str, x: &Tensor, out: u64) -> Tensor {
        self.module(name, |cx| {
            let weight = cx.param("weight", [x.size(-1), out]);
            let bias = cx.param("bias", [out]);
            let y = x.addmm(&weight.tensor(), &bias.tensor());
            adapted(cx, name, x, y)
        })
    }

    /// `nn.Conv2d` with a square kernel (or its transpose).
    pub fn conv2d(
        &self,
        name: &'static str,
        x: &Tensor,
        out: u64,
        kernel: u64,
        conv: Conv,
        bias: bool,
    ) -> Tensor {
        self.convolution(name, x, out, &[kernel, kernel], conv, bias)
    }

    /// `nn.Conv1d`, `nn.Conv2d`, `nn.Conv3d` or a transpose, by the kernel's dimensions.
    pub fn convolution(
        &self,
        name: &'static str,
        x: &Tensor,
        out: u64,
        kernel: &[u64],
        conv: Conv,
        bias: bool,
    ) -> Tensor {
        self.module(name, |cx| {
            let groups = conv.groups.max(1);
            let (first, second) = match conv.transposed {
                None => (out, x.size(1) / groups),
                Some(_) => (x.size(1), out / groups),
            };
            let shape = [&[first, second], kernel].concat();
            let weight = cx.param("weight", &shape[..]).tensor();
            let bias = bias.then(|| cx.param("bias", [out]).tensor());
            x.convolution(&weight, bias.as_ref(), conv)
        })
    }

    /// `nn.Conv2d` or `nn.Conv3d` over patches: its steps are as long as its kernel.
    pub fn patch_convolution(
        &self,
        name: &'static str,
        x: &Tensor,
        out: u64,
        patch: &[u64],
        bias: bool,
    ) -> Tensor {
        self.module(name, |cx| {
            let shape = [&[out, x.size(1)], patch].concat();
            let weight = cx.param("weight", &shape[..]).tensor();
            let bias = bias.then(|| cx.param("bias", [out]).tensor());
            x.patch_convolution(&weight, bias.as_ref())
        })
    }

    /// `nn.LayerNorm` over the last dimension.
    pub fn layer_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.module(name, |cx| {
            let weight = cx.param("weight", [x.size(-1)]).tensor();
            let bias = cx.param("bias", [x.size(-1)]).tensor();
            x.layer_norm(Some(&weight), Some(&bias))
        })
    }

    /// The weight of an RMS norm, in fp32 where the run casts norms up.
    fn norm_weight(&self, width: u64) -> Tensor {
        if !self.env.training.fp32_norms {
            return self.param("weight", [width]).tensor();
        }
        let trained = self.env.training.lora.is_none();
        self.param_as("weight", [width], DType::F32, |_| trained)
            .tensor()
    }

    /// transformers' RMS norm.
    pub fn rms_norm(&self, name: &'static str, x: &Tensor) -> Tensor {
        self.module(name, |cx| {
            let weight = cx.norm_weight(x.size(-1));
            // The declaration pass needs its parameter only.
            if cx.tape.declaring() {
                return x.clone();
            }
            match cx.env.training.kernels {
                Kernels::Library => x.rms_norm_python(&weight),
                Kernels::FusedNorms | Kernels::Liger => x.rms_norm_liger(&weight),
            }
        })
    }

    /// `nn.Embedding`.
    pub fn embedding(&self, name: &'static str, indices: &Tensor, rows: u64, width: u64) -> Tensor {
        let split = self.split(name);
        self.module(name, |cx| {
            let found = match split {
                Some(split) => cx.split_table(indices, rows, width, split),
                None => cx.table(indices, rows, width),
            };
            adapted_embedding(cx, name, [indices, &found], rows, None)
        })
    }

    /// Rows of this module's table.
    fn table(&self, indices: &Tensor, rows: u64, width: u64) -> Tensor {
        let weight = self.param("weight", Dims::from([rows, width]));
        // `Trainer.create_optimizer`: "bitsandbytes: will optimize … in fp32".
        weight
            .fp32_states
            .set(self.env.libraries.fp32_embedding_states);
        with_trained_rows(self, weight.tensor()).embedding(indices)
    }

    /// Rows of this module's table, of which each GPU has a part.
    fn split_table(&self, indices: &Tensor, rows: u64, width: u64, split: Split) -> Tensor {
        let weight = self.param("weight", [self.part_of(rows), width]);
        let found = weight.tensor().embedding_part(indices, rows);
        self.joined(split, found)
    }

    /// The embedding of token ids.
    pub fn input_embedding(
        &self,
        name: &'static str,
        ids: &Tensor,
        rows: u64,
        width: u64,
    ) -> Tensor {
        let split = self.split(name);
        self.as_role(Role::InputEmbedding, name, ids, |ids| {
            self.module(name, |cx| {
                let found = match split {
                    Some(split) => cx.split_table(ids, rows, width, split),
                    None => cx.table(ids, rows, width),
                };
                let found = cx.asks_for_gradient(found);
                adapted_embedding(cx, name, [ids, &found], rows, None)
            })
        })
    }

    /// The same with a factor in a tensor, which the module multiplies by itself.
    pub fn scaled_embedding(
        &self,
        name: &'static str,
        ids: &Tensor,
        rows: u64,
        width: u64,
    ) -> Tensor {
        self.as_role(Role::InputEmbedding, name, ids, |ids| {
            self.module(name, |cx| {
                let found = cx.table(ids, rows, width);
                let factor = cx.buffer("embed_scale", [0; 0], cx.env.weights);
                let scaled = cx.asks_for_gradient(found.pipe(|found| found.mul(&factor)));
                adapted_embedding(cx, name, [ids, &scaled], rows, Some(&factor))
            })
        })
    }

    /// The output of the module that `get_input_embeddings` names. Checkpointing makes it require a gradient, trained or
    /// not (`enable_input_require_grads` in transformers since 5.0; before, only with adapters: `get_peft_model` calls it if `is_gradient_checkpointing`).
    pub fn asks_for_gradient(&self, embedded: Tensor) -> Tensor {
        let newest = !self.env.libraries.reentrant;
        if newest && self.env.training.checkpointing == Checkpointing::Layers {
            embedded.requires_grad_()
        } else {
            self.asks_with_adapters(embedded)
        }
    }

    /// The same in a model whose main input is not text: only adapters require it.
    pub fn asks_with_adapters(&self, embedded: Tensor) -> Tensor {
        if self.env.training.lora.is_some() && self.recomputes() {
            embedded.requires_grad_()
        } else {
            embedded
        }
    }

    /// `nn.Dropout`.
    pub fn dropout(&self, x: &Tensor, p: f64) -> Tensor {
        x.dropout(self.rate(p))
    }
}
