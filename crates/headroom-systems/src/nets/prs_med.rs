//! PRS-Med as re-implemented in github.com/seanhuvaya/prs_med_mmrs at a75d09a: a frozen LLaVA-Med in fp16 with
//! adapters, a TinySAM encoder that is trained, the fusion of both, and a decoder to a mask.

use headroom_base::DType;
use headroom_core::network::Conv;
use headroom_core::network::Tensor;
use headroom_core::network::parts::{Llava, TinyVit, index_name, multi_head};
use headroom_core::network::{Cx, ModelError, Net, Output, Sizes};
use headroom_scenario::{Checkpointing, Data, Quantization, Training};

#[derive(Clone, Debug)]
struct PrsMed {
    language: Llava,
    encoder: TinyVit,
    vocab: u64,
    hidden: u64,
    /// Tokens that answers are padded to.
    answer: u64,
    /// The encoder's blocks are checkpointed, which no flag of the repository does.
    checkpointed_encoder: bool,
    frozen_encoder: bool,
}

/// Width of the features that image and text are projected to, and the side of their grid.
const FUSED: u64 = 256;
const GRID: u64 = 16;

pub(super) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let mut language = sizes.clone();
    language.set("img", sizes.or("clip_img", 336));
    Ok(Box::new(PrsMed {
        language: Llava::like_llama(&language)?,
        encoder: TinyVit::new(sizes)?,
        vocab: sizes.need("vocab")?,
        hidden: sizes.need("hidden")?,
        answer: sizes.or("answer", 512),
        checkpointed_encoder: sizes.is_set("checkpoint_encoder"),
        frozen_encoder: sizes.is_set("freeze_encoder"),
    }))
}

impl PrsMed {
    /// The language model is fp16 whatever the run's precision; its adapters have the run's settings.
    fn language_part(cx: &Cx) -> Cx {
        cx.part(DType::F16, |_| ())
    }

    /// The modules trained without adapters, in the run's precision.
    fn trained_part(cx: &Cx, change: impl FnOnce(&mut Training)) -> Cx {
        cx.part(cx.env.weights, |training| {
            training.lora = None;
            training.quantization = Quantization::None;
            training.checkpointing = Checkpointing::None;
            change(training);
        })
    }
}

impl Net for PrsMed {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let side = self.encoder.image;
        let planes = |name, channels| {
            cx.tape
                .empty(name, [n, channels, side, side], cx.env.weights)
        };
        let mut all = vec![
            planes("images", 3),
            planes("masks", 1),
            cx.tape.empty("input_ids", [n, data.sequence], DType::I64),
            self.language.pixels(&Self::language_part(cx), n),
            cx.tape.empty("targets", [n, self.answer], DType::I64),
        ];
        if data.padding_mask {
            all.push(
                cx.tape
                    .empty("attention_mask", [n, data.sequence], DType::I64),
            );
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [images, masks, ids, pixels, targets, padding @ ..] = batch else {
            return Output::empty(cx);
        };
        let (mask, text) = self.outputs(cx, images, [ids, pixels], padding.first());
        cx.bind(&[mask.clone(), text.clone()]);
        let loss = cx.module("loss", |_| {
            let segmentation = mask.bce_with_logits(masks).add(&dice(&mask, masks));
            let count = self.answer.min(text.size(1));
            let text_loss = {
                let rows = text.size(0) * count;
                let answered = text.narrow(1, count);
                let rows = answered.reshape(&[rows, self.vocab]);
                rows.cross_entropy(targets)
            };
            segmentation.mul_scalar().add(&text_loss.mul_scalar())
        });
        Output {
            loss,
            held: Vec::new(),
        }
    }
}

impl PrsMed {
    /// The mask's logits, and those of the text in fp32.
    fn outputs(
        &self,
        cx: &Cx,
        images: &Tensor,
        [ids, pixels]: [&Tensor; 2],
        padding: Option<&Tensor>,
    ) -> (Tensor, Tensor) {
        let encoder = Self::trained_part(cx, |training| {
            if self.checkpointed_encoder {
                training.checkpointing = Checkpointing::Layers;
            }
            if self.frozen_encoder {
                training.freeze.push("vision_backbone".into());
            }
        });
        let trained = Self::trained_part(cx, |_| ());
        let image = encoder.module("vision_backbone", |cx| {
            let features = cx.module("encoder", |cx| self.encoder.encode(cx, images));
            features.adaptive_avg_pool2d(GRID).to(DType::F32)
        });
        let [hidden, mut text, states] = Self::language_part(cx).module("mllm", |cx| {
            cx.module("model", |cx| self.language.read(cx, ids, pixels, padding))
        });
        let predicted = text.constant("argmax", &[text.size(0), text.size(1)], DType::I64);
        // `to_seg_channels`: computed and returned, and used by no loss.
        let unused = trained.module("mllm", |cx| {
            cx.module("to_seg_channels", |cx| {
                let wide = hidden.to(DType::F32);
                let inner = cx.linear("0", &wide, 1024, true);
                drop(wide);
                let inner = inner.pipe(Tensor::gelu);
                cx.linear("2", &inner, FUSED, true)
            })
        });
        drop(states);
        let hidden_fp32 = hidden.to(DType::F32);
        let half = text.clone();
        text = text.to(DType::F32);
        let fused = trained.module("fusion_module", |cx| self.fused(cx, &image, &hidden_fp32));
        let mask = trained.module("mask_predictor", |cx| mask_of(cx, &fused));
        drop((unused, predicted, half));
        (mask, text)
    }

    /// `PromptMaskFusionModule`: the image's pixels attend to the text's tokens.
    fn fused(&self, cx: &Cx, image: &Tensor, text: &Tensor) -> Tensor {
        let b = image.size(0);
        debug_assert_eq!(text.size(2), self.hidden);
        let image_features = cx.module("proj_image", |cx| {
            let mut x = cx.conv2d("0", image, FUSED, 1, Conv::default(), true);
            x = x.gelu();
            cx.batch_norm("2", &x)
        });
        let text_features = cx.module("proj_text", |cx| {
            let mut x = cx.linear("0", text, FUSED, true);
            x = x.gelu();
            cx.layer_norm("2", &x)
        });
        let pixels = image_features
            .view(&[b, FUSED, GRID * GRID])
            .permute(&[0, 2, 1]);
        let mixed = cx.module("cross_attn", |cx| {
            cross_attention(cx, &pixels, &text_features)
        });
        let mut fused = mixed.permute(&[0, 2, 1]).reshape(&[b, FUSED, GRID, GRID]);
        fused = fused.to(image.dtype());
        fused = fused.add(image);
        cx.module("output_conv", |cx| {
            let mut x = cx.conv2d("0", &fused, FUSED, 3, Conv::default().padded(1), true);
            x = x.gelu();
            cx.batch_norm("2", &x)
        })
    }
}

/// `CrossAttentionBlock`.
fn cross_attention(cx: &Cx, queries: &Tensor, tokens: &Tensor) -> Tensor {
    let tokens = tokens.to(queries.dtype());
    let query = cx.layer_norm("norm1", queries);
    let context = cx.layer_norm("norm1", &tokens);
    let (attended, weights) = cx.module("attn", |cx| multi_head(cx, &query, &context, 8, 0.1));
    let mut x = cx
        .dropout(&attended, 0.1)
        .pipe(|dropped| queries.add(dropped));
    let out = cx.layer_norm("norm2", &x).pipe(|normed| {
        cx.module("mlp", |cx| {
            let mut y = cx.linear("0", normed, 4 * FUSED, true);
            y = y.gelu();
            cx.linear("2", &y, FUSED, true)
        })
    });
    x = cx.dropout(&out, 0.1).pipe(|dropped| x.add(dropped));
    drop((weights, context, query));
    x
}

/// `MaskPredictionModule`: upsampled by two, six times.
fn mask_of(cx: &Cx, fused: &Tensor) -> Tensor {
    const WIDTHS: [u64; 6] = [128, 64, 32, 16, 8, 4];
    let up = Conv {
        transposed: Some(0),
        ..Conv::stride(2).padded(1)
    };
    let mut x = fused.clone();
    x = cx.module("upsample_layers", |cx| {
        for (i, width) in WIDTHS.into_iter().enumerate() {
            x = cx.conv2d(index_name(3 * i), &x, width, 4, up, true);
            x = cx.batch_norm(index_name(3 * i + 1), &x);
            x = x.relu_();
        }
        x
    });
    cx.conv2d("final_conv", &x, 1, 1, Conv::default(), true)
}

/// `DiceLoss`.
fn dice(logits: &Tensor, target: &Tensor) -> Tensor {
    let b = logits.size(0);
    let each = logits.numel() / b.max(1);
    let probability = logits.sigmoid().view(&[b, each]);
    let target = target.view(&[b, each]);
    let intersection = probability.mul(&target).pipe(|both| both.sum(&[1]));
    let score = intersection.mul_scalar().pipe(Tensor::add_scalar);
    let all = probability.sum(&[1]).add(&target.sum(&[1]));
    score
        .div(&all.add_scalar())
        .pipe(Tensor::mean_all)
        .pipe(Tensor::mul_scalar)
}

#[cfg(test)]
mod tests {
    use headroom_core::estimate::{Phase, estimate};
    use headroom_scenario::{presets, settings};

    /// Against a run of the repository's modules (transformers 5.23, PEFT 0.21, PyTorch 2.15 on a bookkeeping GPU), in
    /// GiB, and against the audit of the guide, in GB.
    #[track_caller]
    fn check(changes: &[(&str, &str)], gib: f64, audit: f64) {
        crate::install();
        let mut scenario = presets::find("prs-med").unwrap().scenario();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let found = estimate(&scenario).unwrap();
        let bytes = found.allocated.expected.get() as f64;
        let off = |expected: f64, unit: f64| (bytes / unit / expected - 1.0).abs();
        assert!(
            off(gib, 1024_f64.powi(3)) < 0.005,
            "{bytes} is not {gib} GiB"
        );
        assert!(off(audit, 1e9) < 0.03, "{bytes} is not {audit} GB");
        assert_ne!(found.phase, Phase::Optimizer);
        if !changes.iter().any(|(name, _)| *name == "lora_targets") {
            assert_eq!(
                (found.parameters, found.trainable),
                (7_624_764_789, 58_021_237)
            );
        }
    }

    const LAYERS: (&str, &str) = ("ckpt", "layers");
    const ENCODER: (&str, &str) = ("dims", "checkpoint_encoder=1");

    #[test]
    fn peaks_are_those_of_the_repositorys_modules() {
        check(&[], 70.677, 75.0);
        check(&[("mb", "4")], 42.746, 45.0);
        check(&[("mb", "2")], 28.780, 30.0);
        check(&[("mb", "1")], 21.798, 23.0);
        check(&[("mb", "16")], 126.540, 135.0);
        check(&[("precision", "fp32")], 88.878, 95.0);
        check(&[LAYERS], 29.347, 31.7);
        check(&[LAYERS, ENCODER], 21.055, 22.8);
        check(&[LAYERS, ENCODER, ("mb", "2")], 16.317, 17.2);
        check(&[LAYERS, ENCODER, ("mb", "1")], 15.556, 16.5);
        check(&[("lora_dropout", "0")], 64.616, 57.6 + 11.4);
        check(&[("lora_targets", "q_proj,v_proj")], 56.478, 49.2 + 11.4);
    }
}
