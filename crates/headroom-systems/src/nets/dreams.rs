//! DreaMS, a transformer over the peaks of mass spectra (pluskal-lab/DreaMS: `dreams/models/dreams/dreams.py`,
//! `layers.py`, `dreams/models/layers/fourier_features.py`, `feed_forward.py`, `heads/heads.py`).

use super::cosine_similarity;
use headroom_base::DType;
use headroom_core::network::Tensor;
use headroom_core::network::{Cx, ModelError, Net, Output, Sizes};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Dreams {
    layers: u64,
    heads: u64,
    /// Width of a token's Fourier features of its mass, and of its projection of mass and intensity.
    d_fourier: u64,
    d_peak: u64,
    frequencies: u64,
    fourier_hidden: u64,
    fourier_depth: u64,
    ffn: u64,
    /// Peaks of a spectrum; the precursor is one token more.
    peaks: u64,
    /// Classes of the masked-peak head.
    classes: u64,
    masked_percent: u64,
    /// Spectra of one sample while pre-training: two where the order of retention is learned.
    spectra: u64,
    /// Bits of the fingerprint that fine-tuning predicts; none while pre-training.
    fingerprint: u64,
    graphormer: bool,
    /// Gradients are summed into new tensors, as they are for subclasses of tensors.
    sums_apart: bool,
    /// Embeddings of spectra are read instead of computed.
    stored: bool,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Dreams {
        layers: sizes.need("layers")?,
        heads: sizes.need("heads")?.max(1),
        d_fourier: sizes.need("d_fourier")?,
        d_peak: sizes.need("d_peak")?,
        frequencies: sizes.need("frequencies")?,
        fourier_hidden: sizes.need("fourier_hidden")?,
        fourier_depth: sizes.need("fourier_depth")?.max(1),
        ffn: sizes.need("ffn")?,
        peaks: sizes.need("peaks")?,
        classes: sizes.need("classes")?,
        masked_percent: sizes.or("masked_percent", 30).min(100),
        spectra: sizes.or("spectra", 1).max(1),
        fingerprint: sizes.or("fingerprint", 0),
        graphormer: sizes.is_set("graphormer"),
        sums_apart: sizes.is_set("sums_apart"),
        stored: sizes.or("encoders", 1) == 0,
    }))
}

impl Net for Dreams {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let (b, n, dtype) = (data.micro_batch, self.tokens(), cx.env.weights);
        if self.fingerprint > 0 {
            let spectra = if self.stored {
                cx.tape.empty("embedding", [b, self.width()], dtype)
            } else {
                cx.tape.empty("spec", [b, n, 2], dtype)
            };
            return vec![
                spectra,
                cx.tape.empty("label", [b, self.fingerprint], dtype),
            ];
        }
        (0..self.spectra)
            .flat_map(|_| {
                [
                    cx.tape.empty("spec_mask", [b, n, 2], dtype),
                    cx.tape.empty("spec_real", [b, n, 2], dtype),
                    cx.tape.empty("mask", [b, n], DType::Bool),
                ]
            })
            .collect()
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        if self.sums_apart {
            cx.tape.accumulate_out_of_place();
        }
        if self.fingerprint > 0 {
            self.fine_tuning(cx, batch)
        } else {
            self.pre_training(cx, batch)
        }
    }
}

impl Dreams {
    fn tokens(&self) -> u64 {
        self.peaks.saturating_add(1)
    }

    fn width(&self) -> u64 {
        self.d_fourier.saturating_add(self.d_peak)
    }

    /// `FingerprintHead.step`: the precursor's embedding, one linear layer, one minus the cosine.
    fn fine_tuning(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [spectra, target] = batch else {
            return Output::empty(cx);
        };
        let precursor = if self.stored {
            spectra.clone()
        } else {
            let embeddings = cx.module("backbone", |cx| {
                self.unused_heads(cx);
                self.backbone(cx, spectra)
            });
            embeddings.select(1)
        };
        let predicted = cx.module("head", |cx| {
            cx.list_item("ff", 0, |cx| {
                cx.linear("linear", &precursor, self.fingerprint, false)
            })
        });
        let loss = cosine_similarity(&predicted, target)
            .pipe(Tensor::mean_all)
            .pipe(Tensor::neg);
        Output {
            loss: loss.add_scalar(),
            held: vec![predicted],
        }
    }

    /// The heads of pre-training stay in the checkpoint that fine-tuning starts from; no gradient reaches them.
    fn unused_heads(&self, cx: &Cx) {
        cx.module("ff_out", |cx| {
            cx.param("weight", [self.classes, self.width()]);
            cx.param("bias", [self.classes]);
        });
        cx.module("ro_out", |cx| cx.param("weight", [1, 2 * self.width()]));
    }

    /// `DreaMS.step` with the loss of the order of retention where a sample holds two spectra.
    fn pre_training(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let mut losses: Option<Tensor> = None;
        let mut embeddings = Vec::new();
        // `step` names the predictions of both spectra to the end.
        let mut held = Vec::new();
        for one in batch.chunks(3) {
            let [spectra, real, mask] = one else {
                return Output::empty(cx);
            };
            let embedded = self.backbone(cx, spectra);
            let (loss, logits) = self.masked_loss(cx, &embedded, real, mask);
            held.push(logits);
            losses = Some(match losses {
                Some(sum) => sum.add(&loss),
                None => loss,
            });
            embeddings.push(embedded);
        }
        let Some(mut loss) = losses else {
            return Output::empty(cx);
        };
        let pair: Vec<Tensor> = embeddings.iter().map(|spectra| spectra.select(1)).collect();
        let joined = match &pair[..] {
            [first, second] => Tensor::cat(first, &[second], -1),
            [only] => Tensor::cat(only, &[only], -1),
            _ => return Output::empty(cx),
        };
        let order = cx.linear("ro_out", &joined, 1, false).squeeze(-1);
        if pair.len() > 1 {
            let label = order.constant("ro_label", order.shape(), order.dtype());
            loss = loss.add(&order.bce_with_logits(&label));
        }
        held.extend(embeddings);
        Output { loss, held }
    }

    /// `spec_ssl_step`: classes of the masked peaks' masses, weighted as focal loss does.
    fn masked_loss(
        &self,
        cx: &Cx,
        embedded: &Tensor,
        real: &Tensor,
        mask: &Tensor,
    ) -> (Tensor, Tensor) {
        let masked = self.masked(embedded.size(0));
        let index = [0, 1].map(|_| mask.constant("nonzero", &[masked], DType::I64));
        let real = real.picked(&index[0], &index[1]);
        let picked = embedded.picked(&index[0], &index[1]);
        let logits = cx.linear("ff_out", &picked, self.classes, true);
        drop(picked);
        // `to_hot`: `F.one_hot` makes an int64 tensor, then float64.
        let classes = real.constant("one_hot", &[masked, self.classes], DType::I64);
        let hot = classes.to(DType::F64);
        drop(classes);
        let probable = logits.softmax(None);
        let target = hot.constant("argmax", &[masked], DType::I64);
        let entropy = probable.log().pipe(|log| log.nll_loss_unreduced(&target));
        let of_target = hot
            .mul(&probable)
            .pipe(|product| product.sum(&[-1]))
            .squeeze(-1);
        let weight = of_target.neg().pipe(Tensor::add_scalar).pipe(Tensor::pow);
        (weight.mul(&entropy).mean_all(), logits)
    }

    /// Masked peaks of a batch: their share of the peaks, for the precursor is never masked.
    fn masked(&self, batch: u64) -> u64 {
        (self.peaks.saturating_mul(self.masked_percent) / 100).saturating_mul(batch)
    }

    /// `DreaMS.forward`.
    fn backbone(&self, cx: &Cx, spectra: &Tensor) -> Tensor {
        let (b, n) = (spectra.size(0), spectra.size(1));
        let padding = spectra.constant("eq", &[b, n], DType::Bool);
        let lifted = spectra.mul_scalar().pipe(|spectra| {
            cx.module("ff_peak", |cx| {
                cx.list_item("ff", 0, |cx| {
                    cx.linear("linear", spectra, self.d_peak, true)
                })
            })
        });
        let peaks = lifted.relu();
        drop(lifted);
        let fourier = self.fourier(cx, spectra);
        let joined = Tensor::cat(&peaks, &[&fourier], -1);
        // Differences between all pairs: a vector each, of which every layer takes the sum.
        let distances = self
            .graphormer
            .then(|| fourier.unsqueeze(2).sub(&fourier.unsqueeze(1)));
        cx.module("transformer_encoder", |cx| {
            self.encoder(cx, joined, &padding, distances.as_ref())
        })
    }

    /// `FourierFeatures` and the layers behind it.
    fn fourier(&self, cx: &Cx, spectra: &Tensor) -> Tensor {
        let (b, n) = (spectra.size(0), spectra.size(1));
        let mut x = cx.module("fourier_enc", |cx| {
            let frozen = |_: &str| false;
            let b_row = cx.param_as("b", [1, self.frequencies], cx.env.weights, frozen);
            let masses = spectra.constant("mul", &[b, n, 1], spectra.dtype());
            let angles = masses.linear(&b_row.tensor().transpose(0, 1), None);
            drop(masses);
            let cosines = angles.cos();
            let sines = angles.sin();
            drop(angles);
            Tensor::cat(&cosines, &[&sines], -1)
        });
        cx.module("ff_fourier", |cx| {
            for i in 0..self.fourier_depth {
                let last = i + 1 == self.fourier_depth;
                let out = if last {
                    self.d_fourier
                } else {
                    self.fourier_hidden
                };
                x = cx.list_item("ff", i as usize, |cx| cx.linear("linear", &x, out, true));
                if !last {
                    x = cx.dropout(&x, DROPOUT);
                }
                x = x.relu();
            }
            x
        })
    }

    fn encoder(&self, cx: &Cx, x: Tensor, padding: &Tensor, distances: Option<&Tensor>) -> Tensor {
        let x = cx.dropout(&x, DROPOUT);
        let (this, padding, distances) = (*self, padding.clone(), distances.cloned());
        let state = cx.equal_layers("layers", self.layers, vec![x], move |cx, state| {
            vec![this.layer(cx, &state[0], &padding, distances.as_ref())]
        });
        cx.layer_norm("scale", &state[0])
    }

    /// One turn of `TransformerEncoder.forward`, norms first.
    fn layer(&self, cx: &Cx, x: &Tensor, padding: &Tensor, distances: Option<&Tensor>) -> Tensor {
        let residual = x.clone();
        let mut x = cx.layer_norm("att_scale", x);
        x = cx.module("att", |cx| self.attention(cx, &x, padding, distances));
        x = cx
            .dropout(&x, DROPOUT)
            .pipe(|dropped| residual.add(dropped));
        let residual = x.clone();
        x = cx.layer_norm("ff_scale", &x);
        x = cx.module("ff", |cx| {
            let mut y = cx.linear("in_proj", &x, self.ffn, false).relu();
            y = cx.dropout(&y, DROPOUT);
            cx.linear("out_proj", &y, self.width(), false)
        });
        cx.dropout(&x, DROPOUT)
            .pipe(|dropped| residual.add(dropped))
    }

    /// `MultiheadAttention.forward`: products, softmax and dropout one by one; no fused kernel is ever called.
    fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        padding: &Tensor,
        distances: Option<&Tensor>,
    ) -> Tensor {
        let (b, n, d) = (x.size(0), x.size(1), self.width());
        let (h, head) = (self.heads, d / self.heads);
        let weights = cx.param("weights", [4 * d, d]).tensor();
        let qkv = x.linear(&weights.narrow(0, 3 * d), None).chunk(3, -1);
        let mut parts = qkv
            .iter()
            .map(|part| part.reshape(&[b, n, h, head]).transpose(1, 2));
        let (Some(q), Some(k), Some(v)) = (parts.next(), parts.next(), parts.next()) else {
            return x.clone();
        };
        let mut scores = q.matmul(&k.transpose(-2, -1));
        scores = scores.mul_scalar();
        let bias = distances.map(|distances| distances.sum(&[-1]).squeeze(-1).unsqueeze(1));
        if let Some(bias) = &bias {
            scores = scores.add(bias);
        }
        scores = scores.masked_fill_(&padding.unsqueeze(1).unsqueeze(-1));
        scores = scores.softmax(None);
        scores = cx.dropout(&scores, DROPOUT);
        let flat = scores.reshape(&[b * h, n, n]);
        let mut out = v.reshape(&[b * h, n, head]).pipe(|values| flat.bmm(values));
        out = out
            .reshape(&[b, h, n, head])
            .transpose(1, 2)
            .reshape(&[b, n, d]);
        out.linear(&weights.narrow(0, d), None)
    }
}

/// All dropouts of the pre-trained checkpoint (`dreams/training/pre_train.sh`).
const DROPOUT: f64 = 0.1;
