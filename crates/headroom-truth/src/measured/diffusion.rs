//! PEFT's comparison of methods on FLUX.2-klein (method_comparison/image-gen/run.py at 5d602fdb), and what its script keeps on the
//! device beside the model.

use serde_json::Value;

use super::text;
use headroom_catalog as catalog;
use headroom_core::nets::{self, Cx, Net, Output, Sizes};
use headroom_core::tape::{DType, Tensor};
use headroom_scenario::{Data, Training};

/// The images trained on: twenty prompts, less two for validation and four for tests (default_training_params.json).
const SAMPLES: u64 = 14;

/// Parameters of facebook/dinov2-base, without a classifier.
const JUDGE: u64 = 86_580_480;

pub(super) fn is_record(record: &Value) -> bool {
    text(record, "model").starts_with("black-forest-labs/flux.2-klein")
}

pub(super) fn network(record: &Value) -> Option<Result<Box<dyn Net>, String>> {
    if !is_record(record) {
        return None;
    }
    let entry = catalog::model("flux.2-klein-base-4b")?;
    let mut sizes = Sizes::from_entry(entry);
    // "512x512"
    let side = text(record, "image_size");
    let side = side.split('x').next().and_then(|n| n.parse().ok());
    sizes.set("img", side.unwrap_or(512));
    let net = nets::build(entry.arch, &sizes).map_err(|error| error.to_string());
    Some(net.map(|net| -> Box<dyn Net> { Box::new(Beside { net, sizes }) }))
}

/// `grad_norm_clip` of default_training_params.json.
pub(super) fn amend(training: &mut Training) {
    training.clip = true;
}

/// The network, the DINOv2 that judges its images, in fp32, and the encoded images and prompts of all samples.
struct Beside {
    net: Box<dyn Net>,
    sizes: Sizes,
}

impl Net for Beside {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.net.batch(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        cx.buffer("dino_model", [JUDGE], DType::F32);
        let output = self.net.forward(cx, batch);
        let [pixels, channels, words, context] = [
            self.sizes.or("img", 0).div_ceil(16).pow(2),
            self.sizes.or("channels", 0),
            self.sizes.or("ctx_len", 512),
            self.sizes.or("ctx_dim", 0),
        ];
        cx.buffer(
            "prompt_embeds_cache",
            [SAMPLES, words, context],
            DType::BF16,
        );
        cx.buffer("latents_cache", [SAMPLES, pixels, channels], DType::BF16);
        output
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::measured::{GIB, predict};

    /// `accelerator_memory_max` of a method in method_comparison/image-gen/results, in GiB.
    #[track_caller]
    fn check(method: &str, settings: &serde_json::Value, gib: f64) {
        let targets = json!([
            "to_q",
            "to_k",
            "to_v",
            "to_out.0",
            "add_q_proj",
            "add_k_proj",
            "add_v_proj",
            "to_add_out",
            "linear_in",
            "linear_out",
            "to_qkv_mlp_proj",
        ]);
        let mut given = settings.clone();
        given["target_modules"] = targets.clone();
        if method == "ia3" {
            given["feedforward_modules"] = targets;
        }
        let task = match method {
            "full" => "full finetune".to_string(),
            _ => format!("{method} {given}"),
        };
        let record = json!({
            "model": "black-forest-labs/FLUX.2-klein-base-4B", "framework": "torch 2.12.0", "gpu": "NVIDIA L40S", "n_gpus": 1,
            "task": task, "precision": "bf16", "optimizer": "AdamW", "micro_batch": 2, "image_size": "512x512",
            "activation_checkpointing": "full", "metric": "max_reserved", "measured_gib": gib,
        });
        let predicted = predict(&record).unwrap().reserved as f64 / GIB;
        assert!((predicted / gib - 1.0).abs() < 0.015, "{predicted} {gib}");
    }

    #[test]
    fn methods_of_peft_need_what_was_measured_on_flux() {
        check("full", &json!({}), 37.1348);
        check("lora", &json!({"r": 64}), 10.6016);
        check("boft", &json!({}), 16.1758);
        check("randlora", &json!({"r": 32}), 10.6699);
        check("fourierft", &json!({"n_frequency": 2000}), 12.0469);
        check("ia3", &json!({}), 8.9277);
    }
}
