//! open_clip: `torchrun -m open_clip_train.main --flags` (defaults of `src/open_clip_train/params.py`).

use super::launched;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::program::{Program, Source};
use crate::words::{Checkpointing, Compute, Offload, Task, Trained, Weights};

pub const PROGRAM: Program = Program {
    id: "open_clip",
    name: "open_clip",
    read,
};

const DEFAULT: &str = "open_clip";

fn read(source: &Source) -> Option<Facts> {
    let (launch, flags) = source.command()?;
    let program = launch.program.text.as_str();
    let own = program.contains("open_clip_train")
        || matches!(
            program,
            "training.main" | "src/training/main.py" | "training/main.py"
        );
    if !own || !(flags.has("train_data") || flags.has("model") || flags.has("dataset_type")) {
        return None;
    }
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Contrastive, "open_clip");
    facts.model = flags.text("model").or_default("RN50".into(), DEFAULT);
    facts.micro_batch = flags.whole("batch_size").or_default(64, DEFAULT);
    facts.accumulation = flags.whole("accum_freq").or_default(1, DEFAULT);
    facts.sequence = flags.whole("force_context_length").or_default(77, DEFAULT);
    let model = facts.model.value().cloned().unwrap_or_default();
    let mut named = model
        .rsplit('-')
        .filter_map(|part| part.parse::<u64>().ok());
    let named = named.find(|edge| (96..=1024).contains(edge));
    let named = named.unwrap_or(224);
    let size = flags
        .largest("force_image_size")
        .or_default(named, "open_clip's configuration of the model");
    facts.height = size.clone();
    facts.width = size;
    let precision = flags.text("precision").or_default("amp".into(), DEFAULT);
    facts.compute = precision.clone().and_then(|name| {
        Some(match name.as_str() {
            "amp" => Compute::Fp16Autocast,
            "amp_bf16" | "amp_bfloat16" => Compute::Bf16Autocast,
            "bf16" | "pure_bf16" => Compute::Bf16,
            "fp16" | "pure_fp16" => Compute::Fp16,
            "fp32" => Compute::Fp32,
            _ => return None,
        })
    });
    facts.weights = precision.map(|name| match name.as_str() {
        "bf16" | "pure_bf16" => Weights::Bf16,
        "fp16" | "pure_fp16" => Weights::Fp16,
        _ => Weights::Fp32,
    });
    facts.adapter = Fact::default_of(None, DEFAULT);
    let on = |key: &str| flags.switch(key).value() == Some(&true);
    facts.trained = match (on("lock_image"), on("lock_text")) {
        (true, _) => Fact::read(Trained::Part("the text tower".into()), "lock_image"),
        (_, true) => Fact::read(Trained::Part("the image tower".into()), "lock_text"),
        _ => Fact::default_of(Trained::All, DEFAULT),
    };
    facts.optimizer = flags.text("opt").or_default("adamw".into(), DEFAULT);
    facts.checkpointing = if on("grad_checkpointing") {
        Fact::read(Checkpointing::On, "grad_checkpointing")
    } else {
        Fact::default_of(Checkpointing::Off, DEFAULT)
    };
    facts.evaluation = Fact::read(
        flags.has("val_data") || flags.has("imagenet_val"),
        "val_data",
    );
    launched::counts(launch, &mut facts);
    facts.offload = std::mem::take(&mut facts.offload).or_default(Offload::None, DEFAULT);
    let what =
        "features of all GPUs are gathered for the loss: its logits grow with the global batch";
    facts.not_modelled.push(what.into());
    if flags.has("distill_model") {
        facts
            .not_modelled
            .push("distill_model: a frozen teacher is beside the model".into());
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn precision_decides_weights_and_compute() {
        let text = "torchrun --nproc_per_node 8 -m open_clip_train.main --train-data a --model ViT-B-32 --batch-size 256 \\
          --precision amp_bf16 --grad-checkpointing\n";
        check(
            "run.sh",
            text,
            &[
                ("outcome", "estimate"),
                ("micro_batch", "256"),
                ("weights", "fp32"),
                ("compute", "bf16 autocast"),
                ("checkpointing", "true"),
                ("sequence", "77"),
                ("gpus", "8"),
            ],
        );
        let pure = text.replace("amp_bf16", "pure_bf16");
        check("run.sh", &pure, &[("weights", "bf16"), ("compute", "bf16")]);
    }
}
