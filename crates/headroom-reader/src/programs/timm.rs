//! timm's `train.py`, by its flags (its parser's defaults).

use super::launched;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::words::{
    Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub const PROGRAM: Program = Program {
    id: "timm",
    name: "timm",
    read,
};

const DEFAULT: &str = "timm's train.py";

/// Flags that hardly another `train.py` has.
const MARKS: &[&str] = &[
    "model_ema",
    "reprob",
    "remode",
    "aa",
    "aug_splits",
    "sched",
    "warmup_epochs",
    "cooldown_epochs",
    "drop_path",
    "opt_eps",
    "mixup",
    "cutmix",
    "smoothing",
    "img_size",
    "amp",
    "channels_last",
    "validation_batch_size",
    "apex_amp",
    "native_amp",
    "weight_decay",
    "lr_base",
    "opt",
];

fn read(source: &Source) -> Option<Facts> {
    let (launch, flags) = source.command()?;
    let script = launch.program.text.rsplit('/').next()?;
    let own = script == "train.py" || script == "distributed_train.sh";
    let marks = MARKS.iter().filter(|key| flags.has(key)).count();
    if !own || !flags.has("model") || marks < 2 || flags.has("model_name_or_path") {
        return None;
    }
    let model = flags.text("model");
    // A folder or an owner's name is no architecture of timm.
    if model
        .value()
        .is_some_and(|name| name.contains('/') && !name.starts_with("hf"))
    {
        return None;
    }
    let mut facts = Facts::of(PROGRAM.id);
    facts.task = Fact::follows(Task::Classification, "timm's train.py");
    facts.micro_batch = flags
        .whole("b")
        .or(flags.whole("batch_size"))
        .or_default(128, DEFAULT);
    facts.accumulation = flags.whole("grad_accum_steps").or_default(1, DEFAULT);
    sizes(flags, &model, &mut facts);
    facts.model = model;
    let on = |key: &str| flags.switch(key).value() == Some(&true);
    let short = flags
        .text("amp_dtype")
        .value()
        .is_some_and(|name| name == "bfloat16");
    let amp = on("amp") || on("native_amp") || on("apex_amp");
    facts.compute = match (amp, short) {
        (true, true) => Fact::read(Compute::Bf16Autocast, "amp"),
        (true, false) => Fact::read(Compute::Fp16Autocast, "amp"),
        (false, _) => Fact::default_of(Compute::Fp32, DEFAULT),
    };
    facts.weights = match flags.text("model_dtype").value().map(String::as_str) {
        Some("bfloat16") => Fact::read(Weights::Bf16, "model_dtype"),
        Some("float16") => Fact::read(Weights::Fp16, "model_dtype"),
        _ => Fact::default_of(Weights::Fp32, DEFAULT),
    };
    facts.adapter = Fact::default_of(None, DEFAULT);
    facts.trained = Fact::default_of(Trained::All, DEFAULT);
    facts.optimizer = flags.text("opt").or_default("sgd".into(), DEFAULT);
    facts.checkpointing = if on("grad_checkpointing") {
        Fact::read(Checkpointing::On, "grad_checkpointing")
    } else {
        Fact::default_of(Checkpointing::Off, DEFAULT)
    };
    facts.evaluation = Fact::default_of(true, DEFAULT);
    if script == "distributed_train.sh" {
        let first = launch
            .arguments
            .first()
            .and_then(|word| word.text.parse().ok());
        facts.gpus = first.map_or(Fact::Unsaid, |count| {
            Fact::read(count, "distributed_train.sh")
        });
        facts.strategy = Fact::read(Strategy::from(DataParallel::Ddp), "distributed_train.sh");
    }
    launched::counts(launch, &mut facts);
    facts.offload = std::mem::take(&mut facts.offload).or_default(Offload::None, DEFAULT);
    if on("model_ema") {
        facts
            .not_modelled
            .push("model_ema: a moving average of all weights".into());
    }
    if on("torchcompile") || flags.has("torchcompile") {
        facts.compile = Fact::read(true, "torchcompile");
    }
    Some(facts)
}

/// The size of images: said, or the number that an architecture's name ends in, or 224.
fn sizes(flags: &Keys, model: &Fact<String>, facts: &mut Facts) {
    let named = model.value().and_then(|name| {
        let parts = name.rsplit(['_', '.']);
        let mut sizes = parts.filter_map(|part| part.parse::<u64>().ok());
        sizes.find(|edge| (96..=1024).contains(edge))
    });
    // `--input-size 3 224 224`.
    let input = flags
        .list("input_size")
        .and_then(|all| match all.as_slice() {
            [_, height, width] => Some((height.parse().ok()?, width.parse().ok()?)),
            _ => None,
        });
    let edge = flags
        .whole("img_size")
        .or(named.map_or(Fact::Unsaid, |edge| {
            Fact::follows(edge, "the architecture's name")
        }))
        .or_default(224, "most architectures");
    facts.height = input
        .clone()
        .map(|(height, _): (u64, u64)| height)
        .or(edge.clone());
    facts.width = input.map(|(_, width)| width).or(edge);
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn flags_of_its_train_script() {
        check(
            "run.sh",
            "torchrun --nproc_per_node=4 train.py /data --model vit_base_patch16_384 -b 96 --amp --opt adamw --sched cosine \\
              --model-ema --grad-accum-steps 2\n",
            &[
                ("outcome", "estimate"),
                ("micro_batch", "96"),
                ("height", "384"),
                ("compute", "fp16 autocast"),
                ("weights", "fp32"),
                ("strategy", "ddp"),
                ("accumulation", "2"),
                ("optimizer", "adamw"),
            ],
        );
    }
}
