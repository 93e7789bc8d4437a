//! OLMo-core: `python src/scripts/train/….py train RUN CHECKPOINT CLUSTER --seq_len=… --train_module.…=…`.
//!
//! What a script builds is in its Python; its command says sizes, GPUs and what it overrides.

use super::common;
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::program::{Form, Program, Source};
use crate::words::{Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "olmo-core",
    name: "OLMo-core",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    let program = launch.program.text.as_str();
    let action = launch.arguments.first()?.text.as_str();
    let acts = matches!(action, "train" | "launch" | "train_single");
    let marks = [
        "seq_len",
        "train_module",
        "trainer",
        "dataset",
        "global_batch_size",
        "launch",
    ];
    let own = program.contains("src/scripts/") && marks.iter().any(|key| flags.has(key));
    if !(acts && own) {
        return None;
    }
    let mut facts = Facts::of("olmo-core");
    let file = program
        .rsplit('/')
        .next()
        .unwrap_or(program)
        .trim_end_matches(".py");
    let size = file.split("-sft").next().unwrap_or(file);
    facts.model = flags
        .text("model_name")
        .or_follows(size.into(), "the script's name");
    facts.task = if program.contains("sft") {
        Fact::follows(Task::Sft, "its script")
    } else {
        Fact::follows(Task::Pretraining, "its script")
    };
    facts.sequence = flags
        .whole("seq_len")
        .or(flags.whole("dataset.sequence_length"))
        .or(flags.whole("sequence_length"));
    // The batch of a rank is counted in tokens.
    let tokens = flags
        .whole("train_module.rank_microbatch_size")
        .or(flags.whole("rank_microbatch_size"));
    facts.micro_batch = common::divided(
        &tokens,
        facts.sequence.value().copied(),
        "rank_microbatch_size",
    );
    facts.nodes = flags
        .whole("num_nodes")
        .or(flags.whole("launch.num_nodes"))
        .or_default(1, "OLMo-core's num_nodes");
    let nodes = facts.nodes.value().copied().unwrap_or(1);
    facts.gpus = flags
        .whole("launch.num_gpus")
        .or(flags.whole("gpus_per_node"))
        .or_default(8, "OLMo-core's launch.num_gpus")
        .map(|gpus| gpus.saturating_mul(nodes));
    facts.strategy = Fact::default_of(Strategy::from(DataParallel::Hsdp), "OLMo-core's scripts");
    facts.weights = Fact::default_of(Weights::Fp32, "OLMo-core's dp_config");
    facts.compute = Fact::default_of(Compute::Bf16, "OLMo-core's dp_config");
    facts.offload = Fact::default_of(Offload::None, "OLMo-core");
    common::trains_all(&mut facts);
    facts.packing = Fact::default_of(true, "OLMo-core");
    facts.ask(
        Ask::BaseConfig,
        format!("{file}.py builds the rest, and is not here"),
    );
    Some(facts)
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn the_script_that_builds_the_run_is_asked_for() {
        let run = "
CHECKPOINT=/data/step10
python src/scripts/train/sft/OLMo2-7B-sft.py train own $CHECKPOINT ai2/cluster --seq_len=8192 --num_nodes=2 \\
  --launch.num_gpus=8 --train_module.rank_microbatch_size=16384
";
        check(
            "run.sh",
            run,
            &[
                ("outcome", "question"),
                ("asks", "base config"),
                ("task", "sft"),
                ("gpus", "16"),
                ("sequence", "8192"),
                ("micro_batch", "2"),
            ],
        );
    }
}
