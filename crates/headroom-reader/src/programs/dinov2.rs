//! DINOv2 (facebookresearch): a YAML that is merged over `dinov2/configs/ssl_default_config.yaml`, whose values are the
//! defaults here.

use super::diffusion::{pure, weights};
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "dinov2",
    name: "DINOv2",
    read,
};

const DEFAULT: &str = "DINOv2's ssl_default_config.yaml";

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    let sections = [
        "dino",
        "ibot",
        "teacher",
        "crops",
        "compute_precision",
        "MODEL",
    ];
    let student = keys.has("student.arch") || keys.has("student.block_chunks");
    let own = student || keys.has("dino.head_n_prototypes") && keys.has("train");
    if !own {
        return None;
    }
    if !keys.has("train") && !keys.has("dino") && !keys.has("optim") {
        return sections
            .iter()
            .any(|section| keys.has(section))
            .then(|| Facts::refuse("it describes a network for evaluation, and no training"));
    }
    let mut facts = Facts::of("torch");
    facts.task = Fact::follows(Task::SelfDistillation, "DINOv2");
    facts.model = model(keys);
    facts.micro_batch = keys
        .whole("train.batch_size_per_gpu")
        .or_default(64, DEFAULT);
    facts.accumulation = Fact::default_of(1, DEFAULT);
    let size = keys
        .whole("crops.global_crops_size")
        .or_default(224, DEFAULT);
    facts.height = size.clone();
    facts.width = size;
    precision(keys, &mut facts);
    facts.offload = Fact::default_of(Offload::None, DEFAULT);
    facts.adapter = Fact::default_of(None, DEFAULT);
    facts.optimizer = Fact::default_of("adamw".into(), "DINOv2's train.py");
    facts.checkpointing = Fact::default_of(Checkpointing::Off, "DINOv2's train.py");
    let trained = "student (teacher is an EMA copy)";
    facts.trained = Fact::follows(Trained::Part(trained.into()), "DINOv2");
    let local = keys
        .whole("crops.local_crops_number")
        .or_default(8, DEFAULT);
    let edge = keys.whole("crops.local_crops_size").or_default(96, DEFAULT);
    if let (Some(local), Some(edge)) = (local.value(), edge.value()) {
        facts.not_modelled.push(format!(
            "crops: 2 global ones and {local} local ones of {edge} pixels an image, by student and teacher"
        ));
    }
    let prototypes = keys
        .whole("dino.head_n_prototypes")
        .or_default(65_536, DEFAULT);
    if let Some(prototypes) = prototypes.value() {
        let heads = match keys.switch("ibot.separate_head").value() {
            Some(true) => "two heads",
            _ => "a head",
        };
        let what = format!("{heads} of {prototypes} prototypes, for student and teacher");
        facts.not_modelled.push(what);
    }
    Some(facts)
}

/// The released networks have a name of their own; other combinations are told by their parts.
fn model(keys: &Keys) -> Fact<String> {
    let arch = keys
        .text("student.arch")
        .or_default("vit_large".into(), DEFAULT);
    let patch = keys.whole("student.patch_size").or_default(16, DEFAULT);
    let ffn = keys
        .text("student.ffn_layer")
        .or_default("mlp".into(), DEFAULT);
    let registers = keys
        .whole("student.num_register_tokens")
        .or_default(0, DEFAULT);
    let gated = ffn.value().is_some_and(|ffn| ffn.starts_with("swiglu"));
    let patch = patch.value().copied().unwrap_or(16);
    let plain = registers.value() == Some(&0) && patch == 14;
    arch.map(|arch| {
        let released = match (arch.as_str(), gated) {
            ("vit_giant2", true) => Some("dinov2-vitg14"),
            ("vit_large", false) => Some("dinov2-vitl14"),
            ("vit_base", false) => Some("dinov2-vitb14"),
            ("vit_small", false) => Some("dinov2-vits14"),
            _ => None,
        };
        match released.filter(|_| plain) {
            Some(released) => released.into(),
            None if gated => format!("{arch}, patch {patch}, SwiGLU"),
            None => format!("{arch}, patch {patch}"),
        }
    })
}

fn precision(keys: &Keys, facts: &mut Facts) {
    let backbone = "compute_precision.student.backbone";
    let sharding = keys
        .text(&format!("{backbone}.sharding_strategy"))
        .or_default("SHARD_GRAD_OP".into(), DEFAULT);
    facts.strategy = sharding.and_then(|name| {
        Some(Strategy::from(match name.as_str() {
            "SHARD_GRAD_OP" => DataParallel::Zero2,
            "FULL_SHARD" => DataParallel::Fsdp1,
            "NO_SHARD" => DataParallel::Ddp,
            "HYBRID_SHARD" => DataParallel::Hsdp,
            _ => return None,
        }))
    });
    facts.compute = keys
        .text(&format!("{backbone}.mixed_precision.param_dtype"))
        .and_then(|name| pure(weights(name)?))
        .or_default(Compute::Fp16, DEFAULT);
    // FSDP keeps what the optimizer updates in the type that it was made in.
    facts.weights = Fact::default_of(Weights::Fp32, DEFAULT);
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn what_is_not_said_is_the_default_files() {
        check(
            "vitb14.yaml",
            "train:\n  batch_size_per_gpu: 40\nstudent:\n  arch: vit_base\n  patch_size: 14\n",
            &[
                ("outcome", "question"),
                ("asks", "gpus"),
                ("model", "dinov2-vitb14"),
                ("micro_batch", "40"),
                ("height", "224"),
                ("strategy", "zero2"),
                ("compute", "fp16"),
                ("task", "self-distillation"),
            ],
        );
    }

    #[test]
    fn a_network_without_training_is_refused() {
        check(
            "eval.yaml",
            "student:\n  arch: vit_large\n  patch_size: 14\ncrops:\n  global_crops_size: 518\n",
            &[("outcome", "refuse")],
        );
    }
}
