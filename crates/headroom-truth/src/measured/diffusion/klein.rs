//! PEFT's comparison of methods on FLUX.2-klein (method_comparison/image-gen/run.py at 5d602fdb), and what its script keeps on the
//! device in addition to the model.

use super::{Built, Record, Source, numbers};
use headroom_base::DType;
use headroom_catalog as catalog;
use headroom_core::network::Tensor;
use headroom_core::network::{self as nets, Cx, Net, Output, Sizes};
use headroom_scenario::Data;

/// The images trained on: twenty prompts, less two for validation and four for tests (default_training_params.json).
const SAMPLES: u64 = 14;

/// Parameters of facebook/dinov2-base, without a classifier.
const JUDGE: u64 = 86_580_480;

pub(super) const SOURCE: Source = Source {
    recognises: |record| record.model.starts_with("black-forest-labs/flux.2-klein"),
    network,
    size: |_, _| {},
    // `grad_norm_clip` of default_training_params.json.
    training: |_, training| training.clip = true,
    libraries: |libraries| libraries.moves_adapters = true,
    is_one_step: |_| false,
};

fn network(record: &Record) -> Built {
    let entry = catalog::model("flux.2-klein-base-4b").ok_or("FLUX.2 klein is not listed")?;
    let mut sizes = Sizes::from_entry(entry);
    let side = numbers(record.image_size.text()).first().copied();
    sizes.set("img", side.unwrap_or(512));
    let net = nets::build(entry.arch, &sizes).map_err(|error| error.to_string())?;
    Ok(Box::new(PipelineModules { net, sizes }))
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
