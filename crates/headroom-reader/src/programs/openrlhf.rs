//! OpenRLHF: commands that start a module of `openrlhf.cli`, with dotted flags (0.9 on) or the flat ones before.
//!
//! Defaults are those of `openrlhf/cli/train_*.py`.

use headroom_scripts::shell::{Count, Launch};

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::parts::stage_of;
use crate::program::{Form, Program, Source};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "openrlhf",
    name: "OpenRLHF",
    read,
};

/// A module with the micro-batch and length it takes where none is given.
const MODULES: &[(&str, Task, u64, u64)] = &[
    ("train_sft", Task::Sft, 8, 2048),
    ("train_dpo", Task::Dpo, 8, 512),
    ("train_kto", Task::Kto, 8, 512),
    ("train_rm", Task::Reward, 1, 512),
    ("train_prm", Task::TokenClassification, 1, 2048),
    ("train_kd", Task::Distillation, 8, 2048),
    ("train_ppo_ray", Task::Ppo, 1, 2048),
    ("train_ppo", Task::Ppo, 1, 2048),
];

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    let program = launch.program.text.trim_end_matches(".py");
    let module = program.rsplit(['.', '/']).next()?;
    let own = program.contains("openrlhf") || flags.has("ds.zero_stage");
    let (_, task, micro, length) = MODULES.iter().find(|(name, ..)| own && *name == module)?;
    let reader = Reader {
        flags,
        flat: !flags.has("ds") && !flags.has("train") && !flags.has("model") && !flags.has("data"),
    };
    Some(reader.of(launch, *task, *micro, *length))
}

struct Reader<'a> {
    flags: &'a Keys,
    /// The flags before 0.9, without sections.
    flat: bool,
}

impl Reader<'_> {
    fn name<'n>(&self, dotted: &'n str, flat: &'n str) -> &'n str {
        if self.flat { flat } else { dotted }
    }

    fn whole(&self, dotted: &str, flat: &str) -> Fact<u64> {
        self.flags.whole(self.name(dotted, flat))
    }

    fn number(&self, dotted: &str, flat: &str) -> Option<u64> {
        self.whole(dotted, flat).value().copied()
    }

    fn on(&self, dotted: &str, flat: &str) -> bool {
        let name = self.name(dotted, flat);
        self.flags.switch(name).value() == Some(&true)
    }

    fn flag(&self, dotted: &str, flat: &str) -> Fact<bool> {
        let name = self.name(dotted, flat).to_string();
        match self.flags.switch(&name) {
            Fact::Unsaid => Fact::default_of(false, "OpenRLHF"),
            said => said,
        }
    }

    fn of(&self, launch: &Launch, task: Task, micro: u64, length: u64) -> Facts {
        let mut facts = Facts::of("openrlhf");
        let actor = task == Task::Ppo;
        facts.task = if actor {
            self.estimator()
        } else {
            Fact::follows(task, "its module")
        };
        facts.model = if actor {
            self.flags
                .text(self.name("actor.model_name_or_path", "pretrain"))
        } else {
            self.flags
                .text(self.name("model.model_name_or_path", "pretrain"))
        };
        facts.sequence = self.length(actor, length);
        facts.micro_batch = self.micro(actor, micro, &facts.sequence);
        self.engine(&mut facts);
        if actor {
            self.placed(&mut facts);
            facts.samples = self
                .whole("rollout.n_samples_per_prompt", "n_samples_per_prompt")
                .or_default(1, "OpenRLHF's n_samples_per_prompt");
        } else {
            match &launch.gpus {
                Count::Known(count) => facts.gpus = Fact::read(*count, "the launcher"),
                Count::Unknown(why) => facts.gpus = Fact::Unknown(why.clone()),
            }
            facts.nodes = launch
                .nodes
                .map_or(Fact::Unsaid, |nodes| Fact::read(nodes, "the launcher"));
            facts.batch_of_all = self
                .whole("train.batch_size", "train_batch_size")
                .or_default(128, "OpenRLHF's train_batch_size");
        }
        self.method(&mut facts);
        let checkpoints = match (self.flat, actor) {
            (true, _) => "gradient_checkpointing",
            (false, true) => "actor.gradient_checkpointing_enable",
            (false, false) => "model.gradient_checkpointing_enable",
        };
        facts.checkpointing = common::checkpointing(self.flag(checkpoints, checkpoints));
        facts.attention = self.attention();
        facts.liger = self.flag("ds.use_liger_kernel", "use_liger_kernel");
        facts.packing = self.flag("ds.packing_samples", "packing_samples");
        let evaluated = self.flags.has(self.name("eval.dataset", "eval_dataset"));
        facts.evaluation = Fact::follows(evaluated, "eval.dataset");
        if self.on("train.enable_ema", "enable_ema") {
            facts
                .not_modelled
                .push("enable_ema: an average of the weights is kept in host memory".into());
        }
        for (dotted, flat, what) in [
            (
                "ref.offload",
                "ref_offload",
                "the reference's weights are in host memory",
            ),
            (
                "reward.offload",
                "ref_reward_offload",
                "the reward model's weights are in host memory",
            ),
        ] {
            if self.on(dotted, flat) {
                facts
                    .not_modelled
                    .push(format!("{}: {what}", self.name(dotted, flat)));
            }
        }
        facts
    }

    /// What advantages come from, which decides whether there is a critic.
    fn estimator(&self) -> Fact<Task> {
        let said = self
            .flags
            .text(self.name("algo.advantage.estimator", "advantage_estimator"));
        said.or_default("gae".into(), "OpenRLHF's advantage estimator")
            .and_then(|name| {
                Some(match name.as_str() {
                    "gae" => Task::Ppo,
                    "rloo" => Task::Rloo,
                    "group_norm" | "dr_grpo" | "reinforce" | "reinforce_baseline" => Task::Grpo,
                    _ => return None,
                })
            })
    }

    fn length(&self, actor: bool, length: u64) -> Fact<u64> {
        if self.flat && actor {
            let prompt = self.number("", "prompt_max_len").unwrap_or(1024);
            let answer = self.number("", "generate_max_len").unwrap_or(1024);
            let said = self.flags.has("prompt_max_len") || self.flags.has("generate_max_len");
            let whole = prompt.saturating_add(answer);
            let why = "prompt_max_len and generate_max_len";
            return if said {
                Fact::read(whole, why)
            } else {
                Fact::default_of(whole, "OpenRLHF")
            };
        }
        self.whole("data.max_len", "max_len")
            .or_default(length, "OpenRLHF's max_len")
    }

    fn micro(&self, actor: bool, default: u64, length: &Fact<u64>) -> Fact<u64> {
        if self.on("train.dynamic_batch_enable", "use_dynamic_batch") {
            let tokens = self
                .number("train.max_tokens_per_gpu", "train_max_tokens_per_gpu")
                .unwrap_or(16_192);
            let length = length.value().copied().unwrap_or(1).max(1);
            let why = format!("a micro-batch of {tokens} tokens");
            return Fact::follows((tokens / length).max(1), why);
        }
        let default = if self.flat && actor { 4 } else { default };
        self.whole("train.micro_batch_size", "micro_train_batch_size")
            .or_default(default, "OpenRLHF's micro_train_batch_size")
    }

    fn engine(&self, facts: &mut Facts) {
        let stage = self
            .whole("ds.zero_stage", "zero_stage")
            .or_default(2, "OpenRLHF's zero_stage");
        let size = |dotted: &str, flat: &str| self.number(dotted, flat).unwrap_or(1).max(1);
        let tp = size("ds.tensor_parallel_size", "ds_tensor_parallel_size");
        let cp = size("ds.ring_attn_size", "ring_attn_size");
        facts.strategy = stage.and_then(|stage| {
            let data = stage_of(*stage)?;
            Some(Strategy {
                tp,
                cp,
                ..Strategy::from(data)
            })
        });
        if self.number("ds.zpg", "zpg").is_some_and(|size| size > 1) {
            facts
                .not_modelled
                .push("zpg: ZeRO++ keeps a second partition of the weights".into());
        }
        facts.offload = if self.on("ds.adam_offload", "adam_offload") {
            Fact::read(
                Offload::Optimizer,
                self.name("ds.adam_offload", "adam_offload"),
            )
        } else {
            Fact::default_of(Offload::None, "OpenRLHF")
        };
        let kind = if self.flat {
            if self.on("", "bf16") {
                Fact::read("bf16".to_string(), "bf16")
            } else {
                Fact::default_of("fp32".to_string(), "OpenRLHF without --bf16")
            }
        } else {
            self.flags
                .text("ds.param_dtype")
                .or_default("bf16".into(), "OpenRLHF's param_dtype")
        };
        facts.weights = kind.clone().and_then(|kind| {
            Some(match kind.as_str() {
                "bf16" => Weights::Bf16,
                "fp16" => Weights::Fp16,
                "fp32" => Weights::Fp32,
                _ => return None,
            })
        });
        facts.compute = kind.and_then(|kind| {
            Some(match kind.as_str() {
                "bf16" => Compute::Bf16,
                "fp16" => Compute::Fp16,
                "fp32" => Compute::Fp32,
                _ => return None,
            })
        });
        let named = self.flags.text("actor.optim").or(self.flags.text("optim"));
        facts.optimizer = match named.value().map(String::as_str) {
            Some("muon") => Fact::read("muon".into(), "optim"),
            _ => Fact::default_of("adam (DeepSpeed FusedAdam)".into(), "OpenRLHF"),
        };
    }

    /// GPUs of the roles: those that share are counted once.
    fn placed(&self, facts: &mut Facts) {
        let role = |name: &str| {
            let nodes = self.number(&format!("{name}.num_nodes"), &format!("{name}_num_nodes"));
            let each = self.number(
                &format!("{name}.num_gpus_per_node"),
                &format!("{name}_num_gpus_per_node"),
            );
            nodes.unwrap_or(1).saturating_mul(each.unwrap_or(8))
        };
        let actor = role("actor");
        let engines = self
            .number("vllm.num_engines", "vllm_num_engines")
            .unwrap_or(0);
        let tp = self
            .number("vllm.tensor_parallel_size", "vllm_tensor_parallel_size")
            .unwrap_or(1);
        let vllm = engines.saturating_mul(tp);
        let apart = self.on("train.async_enable", "async_train");
        let critic = facts.task.value() == Some(&Task::Ppo);
        let remote = self
            .flags
            .has(self.name("reward.remote_url", "remote_rm_url"))
            || self
                .flags
                .has(self.name("train.agent_func_path", "agent_func_path"));
        let judged = self
            .flags
            .has(self.name("reward.model_name_or_path", "reward_pretrain"))
            && !remote;
        let compared = self
            .flags
            .number(self.name("algo.kl.init_coef", "init_kl_coef"));
        let compared = compared.value() != Some(&0.0);
        let all = if self.on("train.colocate_all", "colocate_all_models") {
            actor.saturating_add(if apart { vllm } else { 0 })
        } else {
            let mut all = actor.saturating_add(vllm);
            if compared && !self.on("train.colocate_actor_ref", "colocate_actor_ref") {
                all = all.saturating_add(role("ref"));
            }
            if critic {
                all = all.saturating_add(role("critic"));
            }
            if judged
                && !(critic && self.on("train.colocate_critic_reward", "colocate_critic_reward"))
            {
                all = all.saturating_add(role("reward"));
            }
            all
        };
        facts.gpus = Fact::follows(all, "the roles' GPUs and vLLM's");
        facts.trained_on = Fact::follows(actor, "the actor's GPUs");
        // What the other roles' places would say where they share the actor's.
        let _ = role("ref");
        let together = self.on("train.colocate_all", "colocate_all_models");
        let beside = together || self.on("train.colocate_actor_ref", "colocate_actor_ref");
        facts.reference = Fact::follows(
            compared && beside,
            "algo.kl.init_coef and the roles' places",
        );
        let sleeps = facts.offloads_to_sample.value() == Some(&true);
        facts.critic_stays = Fact::follows(critic && together && !sleeps, "the critic's place");
        facts.scored_rows = self.whole("rollout.micro_batch_size", "micro_rollout_batch_size");
        facts.vllm_sleeps = self.flag("vllm.enable_sleep", "vllm_enable_sleep");
        facts.offloads_to_sample = self.flag("ds.enable_sleep", "deepspeed_enable_sleep");
        let nodes = self
            .whole("actor.num_nodes", "actor_num_nodes")
            .or_default(1, "OpenRLHF");
        if all == actor {
            facts.nodes = nodes;
        }
        let share = self
            .flags
            .number(self.name("vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"))
            .or_default(0.95, "OpenRLHF's vllm.gpu_memory_utilization");
        facts.vllm = if engines > 0 {
            share.map(Some)
        } else {
            Fact::follows(None, "vllm.num_engines")
        };
        let divided = facts
            .strategy
            .value()
            .map_or(1, |strategy| strategy.tp.saturating_mul(strategy.cp));
        let ranks = (actor / divided.max(1)).max(1);
        let global = self
            .whole("train.batch_size", "train_batch_size")
            .or_default(128, "OpenRLHF's train_batch_size");
        let by = facts
            .micro_batch
            .value()
            .map(|micro| micro.saturating_mul(ranks));
        facts.accumulation = common::divided(&global, by, "train.batch_size");
        if ranks == 1
            && facts
                .strategy
                .value()
                .is_some_and(|strategy| strategy.data == DataParallel::Zero0)
        {
            facts.notes.push("the actor has one GPU".into());
        }
    }

    fn method(&self, facts: &mut Facts) {
        if self.on("ds.load_in_4bit", "load_in_4bit") {
            facts.weights = Fact::read(Weights::Nf4, self.name("ds.load_in_4bit", "load_in_4bit"));
        }
        let rank = self.whole("ds.lora.rank", "lora_rank");
        match rank.value() {
            None | Some(0) if !matches!(rank, Fact::Unknown(_)) => common::trains_all(facts),
            _ => {
                common::trains_lora(facts, rank, self.name("ds.lora.rank", "lora_rank"));
                let targets = self
                    .flags
                    .list(self.name("ds.lora.target_modules", "target_modules"));
                facts.targets = targets.or_default(vec!["all-linear".into()], "OpenRLHF");
            }
        }
    }

    fn attention(&self) -> Fact<Attention> {
        if self.flat && !self.flags.has("attn_implementation") {
            return if self.on("", "flash_attn") || self.on("", "packing_samples") {
                Fact::read(Attention::Flash, "flash_attn")
            } else {
                Fact::default_of(Attention::Eager, "OpenRLHF without --flash_attn")
            };
        }
        let name = self.name("ds.attn_implementation", "attn_implementation");
        let said = self.flags.text(name);
        said.or_default("flash_attention_2".into(), "OpenRLHF")
            .and_then(|name| {
                Some(match name.as_str() {
                    "eager" => Attention::Eager,
                    "sdpa" => Attention::Sdpa,
                    "flex_attention" => Attention::Flex,
                    name if name.contains("flash") => Attention::Flash,
                    _ => return None,
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn roles_that_share_gpus_count_once() {
        let together = "
python -m openrlhf.cli.train_ppo_ray --actor.num_gpus_per_node 4 --ref.num_gpus_per_node 4 --vllm.num_engines 2 \\
  --vllm.tensor_parallel_size 2 --train.colocate_all --algo.advantage.estimator rloo --actor.model_name_or_path Qwen/Qwen3-4B \\
  --train.micro_batch_size 2 --train.batch_size 64 --data.max_len 4096 --ds.zero_stage 3 --ds.packing_samples
";
        check(
            "run.sh",
            together,
            &[
                ("outcome", "estimate"),
                ("task", "rloo"),
                ("gpus", "4"),
                ("accumulation", "8"),
                ("strategy", "zero3"),
            ],
        );
        let apart = together.replace("--train.colocate_all", "");
        check("run.sh", &apart, &[("gpus", "12")]);
        let old = "
ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray --actor_num_gpus_per_node 2 \\
  --ref_num_gpus_per_node 2 --critic_num_gpus_per_node 2 --reward_num_gpus_per_node 2 --vllm_num_engines 2 --colocate_actor_ref \\
  --pretrain meta-llama/Meta-Llama-3-8B --reward_pretrain some/rm --micro_train_batch_size 4 --train_batch_size 128 \\
  --prompt_max_len 512 --generate_max_len 1536 --zero_stage 2 --bf16 --adam_offload --flash_attn --gradient_checkpointing
";
        check(
            "old.sh",
            old,
            &[
                ("task", "ppo"),
                ("gpus", "8"),
                ("sequence", "2048"),
                ("accumulation", "16"),
                ("offload", "optimizer"),
                ("attention", "flash"),
                ("checkpointing", "true"),
            ],
        );
        let tuned = "deepspeed --module openrlhf.cli.train_sft --model.model_name_or_path gpt2 --ds.zero_stage 2 --data.max_len 128";
        check(
            "sft.sh",
            tuned,
            &[
                ("outcome", "question"),
                ("asks", "gpus"),
                ("micro_batch", "8"),
            ],
        );
    }
}
