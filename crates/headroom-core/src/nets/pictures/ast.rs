//! Audio Spectrogram Transformer: ViT over patches of a spectrogram that overlap
//! (transformers/models/audio_spectrogram_transformer/modeling_audio_spectrogram_transformer.py).

use crate::nets::vit::Layer;
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Ast {
    layers: u64,
    layer: Layer,
    /// `max_length` and `num_mel_bins`.
    frames: u64,
    mel: u64,
    patch: u64,
    /// `frequency_stride` and `time_stride`.
    strides: [u64; 2],
    classes: u64,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Ast {
        layers: sizes.need("layers")?,
        layer: Layer::plain(sizes)?,
        frames: sizes.or("frames", 1024),
        mel: sizes.or("mel", 128),
        patch: sizes.or("patch", 16).max(1),
        strides: ["f_stride", "t_stride"].map(|name| sizes.or(name, 10).max(1)),
        classes: sizes.or("classes", 527),
    }))
}

impl Net for Ast {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let shape = [n, self.frames, self.mel];
        vec![
            cx.tape.empty("input_values", shape, cx.env.weights),
            cx.tape.empty("labels", [n], DType::I64),
        ]
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [spectra, labels] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.module("audio_spectrogram_transformer", |cx| {
            let embedded = cx.module("embeddings", |cx| self.embeddings(cx, spectra));
            let layer = self.layer;
            let run = move |cx: &Cx, hidden: &Tensor| layer.run(cx, hidden);
            let last = cx.equal_stack("layers", self.layers, embedded.clone(), run);
            cx.layer_norm("layernorm", &last)
        });
        let pooled = sequence
            .select(1)
            .add(&sequence.select(1))
            .pipe(Tensor::mul_scalar);
        let logits = cx.module("classifier", |cx| {
            let normed = cx.layer_norm("layernorm", &pooled);
            cx.linear("dense", &normed, self.classes, true)
        });
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Ast {
    fn embeddings(&self, cx: &Cx, spectra: &Tensor) -> Tensor {
        let hidden = self.layer.hidden;
        let [down, across] = self.strides;
        let steps = |whole: u64, stride: u64| whole.saturating_sub(self.patch) / stride + 1;
        let (rows, columns) = (steps(self.mel, down), steps(self.frames, across));
        let count = rows.saturating_mul(columns);
        let tokens = ["cls_token", "distillation_token"].map(|name| cx.param(name, [1, 1, hidden]));
        let positions = cx.param("position_embeddings", [1, count + 2, hidden]);
        let patches = cx.module("patch_embeddings", |cx| {
            let picture = spectra.unsqueeze(1).transpose(2, 3);
            // Strides of two sizes come to the same convolution, whose windows are as many as with one.
            let grid = if down == across {
                let conv = Conv::stride(down);
                cx.conv2d("projection", &picture, hidden, self.patch, conv, true)
            } else {
                let reach = |n: u64| n.saturating_sub(1).saturating_mul(down) + self.patch;
                let shape = [picture.size(0), 1, reach(rows), reach(columns)];
                let cut = picture.constant("view", &shape, picture.dtype());
                cx.conv2d(
                    "projection",
                    &cut,
                    hidden,
                    self.patch,
                    Conv::stride(down),
                    true,
                )
            };
            grid.reshape(&[grid.size(0), hidden, count]).transpose(1, 2)
        });
        let [first, second] =
            tokens.map(|token| token.tensor().expand(&[spectra.size(0), 1, hidden]));
        let embedded = Tensor::cat(&first, &[&second, &patches], 1);
        let embedded = embedded.add(&positions.tensor());
        cx.dropout(&embedded, self.layer.dropout)
    }
}
