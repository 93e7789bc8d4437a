//! nanochat: `python -m scripts.base_train`, `scripts.chat_sft` and `scripts.chat_rl`.
//!
//! Defaults are those of `scripts/*.py` and `nanochat/gpt.py`.

use headroom_scripts::shell::Count;

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::program::{Form, Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{
    Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "nanochat",
    name: "nanochat",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    let module = launch
        .program
        .text
        .trim_end_matches(".py")
        .replace('/', ".");
    let task = match module.as_str() {
        "scripts.base_train" => Task::Pretraining,
        "scripts.mid_train" | "scripts.chat_sft" => Task::Sft,
        "scripts.chat_rl" => Task::Grpo,
        _ => return None,
    };
    let mut facts = Facts::of("torch");
    facts.task = Fact::follows(task, "its script");
    let based = task == Task::Pretraining;
    if based {
        let depth = flags.whole("depth").or_default(20, "nanochat's depth");
        let ratio = flags
            .whole("aspect_ratio")
            .or_default(64, "nanochat's aspect-ratio");
        let head = flags
            .whole("head_dim")
            .value()
            .copied()
            .unwrap_or(128)
            .max(1);
        match (depth, ratio) {
            (Fact::Known { value: depth, .. }, Fact::Known { value: ratio, .. }) => {
                // The width is rounded up to whole heads.
                let hidden = super::tokenizers::padded(depth.saturating_mul(ratio), head);
                let shape = Shape {
                    blocks: Blocks::Own("nanochat"),
                    layers: depth,
                    hidden,
                    heads: hidden / head,
                    kv: None,
                    ffn: Some(hidden.saturating_mul(4)),
                    vocabulary: Some(32_768),
                    tied: Some(false),
                    positions: flags.whole("max_seq_len").value().copied(),
                    experts: None,
                };
                common::shaped(&mut facts, shape, "depth");
            }
            (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => facts.model = Fact::Unknown(why),
            _ => {}
        }
    } else {
        facts.model = Fact::Unknown(
            "it goes on from a checkpoint of base_train, whose depth is not said here".into(),
        );
    }
    let length = flags.whole("max_seq_len");
    facts.sequence = if task == Task::Grpo {
        Fact::Unsaid
    } else if based {
        length.or_default(2048, "nanochat's max-seq-len")
    } else {
        length.or_follows(2048, "that of base_train")
    };
    facts.micro_batch = match task {
        Task::Grpo => flags
            .whole("device_batch_size")
            .or_default(8, "nanochat's device-batch-size"),
        _ => flags
            .whole("device_batch_size")
            .or_default(32, "nanochat's device-batch-size"),
    };
    facts.gpus = match &launch.gpus {
        Count::Known(count) => Fact::read(*count, "the launcher"),
        Count::Unknown(why) => Fact::Unknown(why.clone()),
    };
    facts.nodes = launch.nodes.map_or_else(
        || Fact::default_of(1, "torchrun --standalone"),
        |nodes| Fact::read(nodes, "the launcher"),
    );
    let one = facts.gpus.value() == Some(&1);
    // `DistMuonAdamW` reduces gradients to the rank that has their states.
    let data = if one {
        DataParallel::None
    } else {
        DataParallel::Zero2
    };
    facts.strategy = Fact::default_of(Strategy::from(data), "nanochat's distributed optimizer");
    let tokens = flags.whole("total_batch_size");
    let each = facts
        .micro_batch
        .value()
        .zip(facts.sequence.value())
        .zip(facts.gpus.value());
    let each =
        each.map(|((micro, length), gpus)| micro.saturating_mul(*length).saturating_mul(*gpus));
    if tokens.is_known() {
        facts.accumulation = common::divided(&tokens, each, "total-batch-size");
    }
    facts.weights = Fact::default_of(Weights::Fp32, "nanochat's matrices; embeddings are in bf16");
    facts.compute = if flags.switch("fp8").value() == Some(&true) {
        Fact::read(Compute::Bf16Fp8, "fp8")
    } else {
        Fact::default_of(Compute::Bf16, "nanochat")
    };
    common::trains_all(&mut facts);
    facts.optimizer = Fact::default_of("muon + adamw".into(), "nanochat");
    facts.checkpointing = Fact::default_of(Checkpointing::Off, "nanochat");
    facts.attention = Fact::default_of(Attention::Flash, "nanochat");
    facts.packing = Fact::default_of(task != Task::Grpo, "nanochat");
    facts.offload = Fact::default_of(Offload::None, "nanochat");
    facts.evaluation = Fact::default_of(true, "nanochat");
    Some(facts)
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn depth_decides_the_network() {
        let run = "torchrun --standalone --nproc_per_node=4 -m scripts.base_train -- --depth=12 --device_batch_size=8 --total-batch-size=131072";
        check(
            "run.sh",
            run,
            &[
                ("outcome", "estimate"),
                (
                    "model",
                    "nanochat 12 layers × 768, 6 heads, vocabulary 32768",
                ),
                ("strategy", "zero2"),
                ("accumulation", "2"),
                ("compute", "bf16"),
            ],
        );
    }
}
