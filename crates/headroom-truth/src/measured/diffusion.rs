//! PEFT's comparison of methods on FLUX.2-klein (method_comparison/image-gen/run.py at 5d602fdb), and what its script keeps on the
//! device in addition to the model.

use super::Record;
use headroom_base::DType;
use headroom_catalog as catalog;
use headroom_core::network::Tensor;
use headroom_core::network::{self as nets, Cx, Net, Output, Sizes};
use headroom_scenario::{Data, Training};

/// The images trained on: twenty prompts, less two for validation and four for tests (default_training_params.json).
const SAMPLES: u64 = 14;

/// Parameters of facebook/dinov2-base, without a classifier.
const JUDGE: u64 = 86_580_480;

pub(super) fn is_record(record: &Record) -> bool {
    record.model.starts_with("black-forest-labs/flux.2-klein")
}

pub(super) fn network(record: &Record) -> Option<Result<Box<dyn Net>, String>> {
    if !is_record(record) {
        return None;
    }
    let entry = catalog::model("flux.2-klein-base-4b")?;
    let mut sizes = Sizes::from_entry(entry);
    // "512x512"
    let side = record
        .image_size
        .text()
        .split('x')
        .next()
        .and_then(|n| n.parse().ok());
    sizes.set("img", side.unwrap_or(512));
    let net = nets::build(entry.arch, &sizes).map_err(|error| error.to_string());
    Some(net.map(|net| -> Box<dyn Net> { Box::new(PipelineModules { net, sizes }) }))
}

/// `grad_norm_clip` of default_training_params.json.
pub(super) fn amend(training: &mut Training) {
    training.clip = true;
}

/// The network, the DINOv2 that judges its images, in fp32, and the encoded images and prompts of all samples.
struct PipelineModules {
    net: Box<dyn Net>,
    sizes: Sizes,
}

impl Net for PipelineModules {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.net.batch(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        cx.buffer("dino_model", [JUDGE], DType::F32);
        let output = self.net.forward(cx, batch);
        let [pixels, channels, tokens, context] = [
            self.sizes.or("img", 0).div_ceil(16).pow(2),
            self.sizes.or("channels", 0),
            self.sizes.or("ctx_len", 512),
            self.sizes.or("ctx_dim", 0),
        ];
        cx.buffer(
            "prompt_embeds_cache",
            [SAMPLES, tokens, context],
            DType::BF16,
        );
        cx.buffer("latents_cache", [SAMPLES, pixels, channels], DType::BF16);
        output
    }
}
