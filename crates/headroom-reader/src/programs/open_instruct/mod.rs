//! open-instruct: YAML of `configs/train_configs`, and commands that start `open_instruct/*.py`, also through `mason.py`.
//!
//! Defaults are those of `open_instruct/finetune.py`, `dpo_utils.py`, `reward_modeling.py`, `grpo_utils.py` and `data_loader.py`.

mod rl;

use headroom_scripts::shell::{Launch, Launcher};

use super::{common, launched};
use crate::comments;
use crate::fact::{Fact, Origin};
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "open-instruct",
    name: "open-instruct",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    match &source.form {
        Form::Document(keys) => recognises(keys).then(|| {
            let task = if keys.has("num_epochs") || keys.has("loss_type") || keys.has("dpo_beta") {
                Task::Dpo
            } else {
                Task::Sft
            };
            let mut facts = tuned(keys, task);
            of_comments(source.text, &mut facts);
            facts
        }),
        Form::Command { launch, flags } => of_command(launch, flags, source),
        Form::Python { .. } => None,
    }
}

fn recognises(keys: &Keys) -> bool {
    const OWN: &[&str] = &[
        "with_tracking",
        "use_slow_tokenizer",
        "checkpointing_steps",
        "dataset_mix_dir",
    ];
    const DATA: &[&str] = &[
        "dataset_mixer",
        "dataset_mixer_list",
        "dataset_name",
        "train_file",
    ];
    keys.has("model_name_or_path")
        && OWN.iter().filter(|key| keys.has(key)).count() >= 2
        && DATA.iter().any(|key| keys.has(key))
}

/// A command that starts one of its scripts.
fn of_command(launch: &Launch, flags: &Keys, source: &Source) -> Option<Facts> {
    let program = launch.program.text.as_str();
    let file = program.rsplit(['/', '.']).find(|part| *part != "py")?;
    let own = program.contains("open_instruct") || program.contains("open-instruct");
    let mut facts = match file {
        "finetune" if own => tuned(flags, Task::Sft),
        "dpo_tune" | "dpo_tune_cache" | "dpo" if own || file != "dpo" => tuned(flags, Task::Dpo),
        "reward_modeling" if own => rewarded(flags),
        "olmo_core_finetune" => tuned(flags, Task::Sft),
        "grpo_fast"
        | "grpo"
        | "grpo_vllm_thread_ray_gtrl"
        | "ppo_fast"
        | "ppo_vllm_thread_ray_gtrl"
            if own =>
        {
            return Some(rl::read(flags, file));
        }
        _ => return None,
    };
    if !flags.has("model_name_or_path") {
        // `finetune.py configs/train_configs/sft/….yaml`
        let path = launch
            .arguments
            .first()
            .map_or("", |word| word.text.as_str());
        let text = source.beside.text(path);
        match text.as_deref().and_then(crate::documents::read) {
            Some(keys) => {
                let task = facts.task.value().copied().unwrap_or(Task::Sft);
                facts = tuned(&keys, task);
            }
            None => facts.ask(
                Ask::BaseConfig,
                format!("`{path}` decides the run, and is not here"),
            ),
        }
    }
    let core = matches!(file, "olmo_core_finetune" | "dpo");
    if core {
        facts.weights = Fact::default_of(Weights::Fp32, "OLMo-core under FSDP2's mixed precision");
        facts.compute = Fact::default_of(Compute::Bf16, "OLMo-core under FSDP2's mixed precision");
    } else {
        facts.compute = Fact::Unsaid;
    }
    launched::apply(launch, flags, source.beside, &mut facts);
    if core && facts.gpus.value().is_some_and(|gpus| *gpus > 1) {
        facts.strategy = Fact::default_of(Strategy::from(DataParallel::Fsdp2), "OLMo-core");
    }
    if !matches!(
        facts.compute.origin(),
        Some(Origin::Read(_) | Origin::Follows(_))
    ) {
        // Without autocast it computes in the type that it was loaded in.
        facts.compute = Fact::default_of(Compute::Bf16, "open-instruct loads in bf16");
    }
    processes(launch, &mut facts);
    Some(facts)
}

/// `mason.py --num_nodes 4 … -- accelerate launch --num_processes 8 …` starts that many processes on each node.
fn processes(launch: &Launch, facts: &mut Facts) {
    let nodes = launch.nodes.unwrap_or(1);
    let whole = launch
        .options
        .iter()
        .any(|(name, _)| name == "num_machines");
    if launch.launcher == Launcher::Accelerate && nodes > 1 && !whole {
        facts.gpus = std::mem::take(&mut facts.gpus).map(|each| each.saturating_mul(nodes));
    }
}

/// `finetune.py` and `dpo_tune_cache.py`.
fn tuned(keys: &Keys, task: Task) -> Facts {
    let mut facts = Facts::of("open-instruct");
    facts.model = keys.text("model_name_or_path");
    let simple = keys.text("loss_type").or(keys.text("dpo_loss_type"));
    facts.task = match simple.value().map(String::as_str) {
        Some("simpo") => Fact::read(Task::Simpo, "loss_type"),
        _ => Fact::follows(task, "its script"),
    };
    facts.micro_batch = keys
        .whole("per_device_train_batch_size")
        .or_default(8, "open-instruct's per_device_train_batch_size");
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, "open-instruct's gradient_accumulation_steps");
    facts.sequence = keys.whole("max_seq_length");
    shared(keys, &mut facts);
    if task == Task::Dpo && facts.task.value() == Some(&Task::Dpo) {
        facts
            .notes
            .push("the reference's log-probabilities are computed once and kept".into());
    }
    facts
}

fn rewarded(keys: &Keys) -> Facts {
    let mut facts = Facts::of("open-instruct");
    facts.model = keys.text("model_name_or_path");
    facts.task = Fact::follows(Task::Reward, "its script");
    facts.micro_batch = keys
        .whole("per_device_train_batch_size")
        .or_default(1, "open-instruct's per_device_train_batch_size");
    facts.accumulation = keys
        .whole("gradient_accumulation_steps")
        .or_default(1, "open-instruct");
    facts.sequence = keys
        .whole("max_token_length")
        .or_default(512, "open-instruct's max_token_length");
    shared(keys, &mut facts);
    facts
}

/// Layers that its LoRA is for.
const TARGETS: &[&str] = &[
    "q_proj",
    "o_proj",
    "v_proj",
    "k_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
];

fn shared(keys: &Keys, facts: &mut Facts) {
    let four_bits = keys.switch("use_qlora").value() == Some(&true);
    facts.weights = if four_bits {
        Fact::read(Weights::Nf4, "use_qlora")
    } else {
        Fact::default_of(Weights::Bf16, "open-instruct loads in bf16")
    };
    facts.compute = Fact::default_of(
        Compute::Bf16Autocast,
        "open-instruct's scripts: mixed_precision bf16",
    );
    if keys.switch("use_lora").value() == Some(&true) || four_bits {
        let rank = keys
            .whole("lora_rank")
            .or_default(64, "open-instruct's lora_rank");
        common::trains_lora(facts, rank, "use_lora");
        let targets = TARGETS.iter().map(|name| (*name).to_string()).collect();
        facts.targets = Fact::default_of(targets, "open-instruct");
    } else {
        common::trains_all(facts);
    }
    let small = keys.switch("use_8bit_optimizer").value() == Some(&true);
    let paged = four_bits || keys.switch("dpo_use_paged_optimizer").value() == Some(&true);
    facts.optimizer = match (paged, small) {
        (true, true) => Fact::read("paged_adamw_8bit".into(), "use_8bit_optimizer"),
        (true, false) => Fact::read(
            "paged_adamw_32bit".into(),
            "use_qlora or dpo_use_paged_optimizer",
        ),
        (false, true) => Fact::read("adamw_bnb_8bit".into(), "use_8bit_optimizer"),
        (false, false) => Fact::default_of(
            "adamw_torch_fused".into(),
            "open-instruct's fused_optimizer",
        ),
    };
    facts.checkpointing = common::checkpointing(
        keys.switch("gradient_checkpointing")
            .or_default(false, "open-instruct's gradient_checkpointing"),
    );
    let flash = keys
        .switch("use_flash_attn")
        .or_default(true, "open-instruct's use_flash_attn");
    facts.attention = flash.map(|flash| {
        if flash {
            Attention::Flash
        } else {
            Attention::Eager
        }
    });
    facts.liger = keys
        .switch("use_liger_kernel")
        .or_default(false, "open-instruct's use_liger_kernel");
    facts.packing = keys
        .switch("packing")
        .or_default(false, "open-instruct's packing");
    facts.evaluation = Fact::default_of(false, "open-instruct");
    // How a run is recorded and what it is made of changes no memory.
    for key in [
        "with_tracking",
        "report_to",
        "logging_steps",
        "checkpointing_steps",
        "output_dir",
        "dataset_mixer",
        "dataset_mixer_list",
    ] {
        keys.ignore(key);
    }
}

/// `# note, this is set up for 8 GPUs`, `# effective batch size 128 with 4 nodes`, `# designed for 8 GPUs, so batch size 128`.
fn of_comments(text: &str, facts: &mut Facts) {
    let mut each = None;
    let mut nodes = None;
    let mut whole = None;
    for line in text.lines() {
        let Some((_, comment)) = line.split_once('#') else {
            continue;
        };
        each = each.or_else(|| comments::gpus(comment));
        let words: Vec<&str> = comment
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            match pair {
                [count, "nodes" | "node"] => nodes = nodes.or(count.parse::<u64>().ok()),
                ["size", count] => whole = whole.or(count.parse::<u64>().ok()),
                _ => {}
            }
        }
    }
    let Some(each) = each.filter(|_| facts.gpus.is_unsaid()) else {
        return;
    };
    let rows = facts.micro_batch.value().zip(facts.accumulation.value());
    let rows = rows.map(|(micro, steps)| micro.saturating_mul(*steps));
    let all = |nodes: u64| rows.map(|rows| rows.saturating_mul(each).saturating_mul(nodes));
    match nodes {
        // The nodes are believed where the batch that stands beside them agrees.
        Some(nodes) if whole.is_none() || whole == all(nodes) => {
            facts.gpus = Fact::read(each.saturating_mul(nodes), "comments: GPUs and nodes");
            facts.nodes = Fact::read(nodes, "a comment");
        }
        _ => facts.gpus = Fact::read(each, "a comment"),
    }
    if facts.offload.is_unsaid() {
        facts.offload = Fact::default_of(Offload::None, "open-instruct's ds_configs");
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn comments_and_job_launchers_say_gpus() {
        let run = "
model_name_or_path: meta-llama/Llama-3.1-8B
use_slow_tokenizer: true
dataset_mixer: {some/data: 1.0}
max_seq_length: 4096 # fits with DeepSpeed Stage3
per_device_train_batch_size: 1 # for 8 GPUs
gradient_accumulation_steps: 2 # effective batch size 32 with 2 nodes
with_tracking: true
";
        check(
            "sft.yaml",
            run,
            &[
                ("outcome", "estimate"),
                ("gpus", "16"),
                ("strategy", "zero3"),
                ("compute", "bf16"),
                ("checkpointing", "false"),
            ],
        );
        let job = "
python mason.py --num_nodes 2 --gpus 8 -- accelerate launch --mixed_precision bf16 --num_processes 8 --use_deepspeed \\
  --deepspeed_config_file configs/ds_configs/stage3_no_offloading_accelerate.conf open_instruct/dpo_tune_cache.py \\
  --model_name_or_path gpt2 --max_seq_length 1024 --per_device_train_batch_size 1 --gradient_checkpointing
";
        check(
            "dpo.sh",
            job,
            &[
                ("outcome", "estimate"),
                ("task", "dpo"),
                ("gpus", "16"),
                ("strategy", "zero3"),
                ("checkpointing", "true"),
            ],
        );
        let rl = "
python open_instruct/grpo_fast.py --model_name_or_path gpt2 --pack_length 8192 --num_learners_per_node 4 4 \\
  --vllm_num_engines 8 --deepspeed_stage 3 --num_samples_per_prompt_rollout 16
";
        check(
            "grpo.sh",
            rl,
            &[
                ("outcome", "estimate"),
                ("gpus", "16"),
                ("sequence", "8192"),
                ("strategy", "zero3"),
                ("samples", "16"),
            ],
        );
    }
}
