//! VideoMAE, a ViT over patches of several frames, in classification (transformers/models/videomae/modeling_videomae.py).

use super::PlainLayer;
use super::clips::{Clips, patches_of};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct VideoMae {
    layers: u64,
    layer: PlainLayer,
    clips: Clips,
    classes: u64,
    /// The head reads the mean of all tokens, behind a norm of its own; else the first token of the normed ones.
    mean: bool,
}

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    let bias = sizes.or("qv_bias", 1) != 0;
    Ok(Box::new(VideoMae {
        layers: sizes.need("layers")?,
        layer: PlainLayer {
            hidden,
            heads: sizes.need("heads")?.max(1),
            ffn: sizes.or("ffn", 4 * hidden),
            biases: [bias, false, bias],
        },
        clips: Clips::of(sizes, [16, 224])?,
        classes: sizes.or("classes", 400),
        mean: sizes.or("mean_pooling", 1) != 0,
    }))
}

impl Net for VideoMae {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.clips.batch(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [clips, labels] = batch else {
            return Output::empty(cx);
        };
        let sequence = cx.module("videomae", |cx| self.model(cx, clips));
        let read = if self.mean {
            let mean = sequence.mean(&[1]).squeeze(1);
            cx.layer_norm("fc_norm", &mean)
        } else {
            sequence.select(1)
        };
        let logits = cx.linear("classifier", &read, self.classes, true);
        let loss = cx.module("loss", |_| logits.cross_entropy(labels));
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl VideoMae {
    fn model(&self, cx: &Cx, clips: &Tensor) -> Tensor {
        let embedded = cx.module("embeddings", |cx| {
            let patches = cx.module("patch_embeddings", |cx| {
                patches_of(cx, "projection", clips, self.layer.hidden, self.clips)
            });
            let patches = cx.asks_with_adapters(patches);
            // The table of positions is on the host, and copied twice.
            let shape = [1, patches.size(1), patches.size(2)];
            let cast = patches.constant("type_as", &shape, patches.dtype());
            let positions = patches.constant("to", &shape, patches.dtype());
            drop(cast);
            patches.add(&positions)
        });
        let layer = self.layer;
        let last = cx.module("encoder", |cx| {
            cx.equal_stack("layer", self.layers, embedded.clone(), move |cx, hidden| {
                layer.run(cx, hidden)
            })
        });
        if self.mean {
            last
        } else {
            cx.layer_norm("layernorm", &last)
        }
    }
}
