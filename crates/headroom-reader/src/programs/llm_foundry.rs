//! LLM-Foundry: the YAML of `scripts/train/train.py`.
//!
//! Defaults are those of `llmfoundry/utils/config_utils.py`, `llmfoundry/command_utils/train.py` and Composer's `FSDPConfig`.

use headroom_base::document::Document;

use super::common;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{Attention, Compute, DataParallel, Offload, Strategy, Task, Weights};

pub const PROGRAM: Program = Program {
    id: "llm-foundry",
    name: "LLM-Foundry",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let keys = source.document()?;
    // MosaicML's platform wraps the same keys into `parameters`.
    for below in ["", "parameters."] {
        let has = |key: &str| keys.has(&format!("{below}{key}"));
        if has("model.name")
            && (has("train_loader") || has("max_seq_len"))
            && (has("max_duration")
                || has("device_train_microbatch_size")
                || has("global_train_batch_size"))
        {
            return Some(Reader { keys, below }.of());
        }
    }
    None
}

struct Reader<'a> {
    keys: &'a Keys,
    below: &'static str,
}

impl Reader<'_> {
    fn at(&self, key: &str) -> String {
        format!("{}{key}", self.below)
    }

    fn text(&self, key: &str) -> Fact<String> {
        self.keys.text(&self.at(key))
    }

    fn whole(&self, key: &str) -> Fact<u64> {
        self.keys.whole(&self.at(key))
    }

    fn switch(&self, key: &str) -> Fact<bool> {
        self.keys.switch(&self.at(key))
    }

    fn of(&self) -> Facts {
        let mut facts = Facts::of("llm-foundry");
        self.model(&mut facts);
        facts.sequence = self
            .whole("max_seq_len")
            .or(self.whole("model.max_seq_len"));
        let micro = self.text("device_train_microbatch_size");
        facts.micro_batch = if micro.value().map(String::as_str) == Some("auto") {
            Fact::Unknown("device_train_microbatch_size: auto looks for one that fits".into())
        } else {
            self.whole("device_train_microbatch_size")
        };
        facts.batch_of_all = self.whole("global_train_batch_size");
        facts.nodes = Fact::Unsaid;
        facts.gpus = self
            .keys
            .whole("gpu_num")
            .or(self.keys.whole("compute.gpus"));
        self.spread(&mut facts);
        self.precision(&mut facts);
        if self.keys.has(&self.at("model.peft_config")) {
            let rank = self.whole("model.peft_config.r").or_default(8, "PEFT's r");
            common::trains_lora(&mut facts, rank, "model.peft_config");
            facts.targets = self.keys.list(&self.at("model.peft_config.target_modules"));
        } else {
            common::trains_all(&mut facts);
        }
        facts.optimizer = self
            .text("optimizer.name")
            .or_default("decoupled_adamw".into(), "LLM-Foundry's optimizer");
        facts.checkpointing = common::checkpointing(
            self.switch("fsdp_config.activation_checkpointing")
                .or_default(false, "Composer's activation_checkpointing"),
        );
        if self.switch("fsdp_config.activation_cpu_offload").value() == Some(&true) {
            let effect = "fsdp_config.activation_cpu_offload: kept activations are in host memory";
            facts.not_modelled.push(effect.into());
        }
        self.data(&mut facts);
        facts
    }

    fn model(&self, facts: &mut Facts) {
        let name = self.text("model.name");
        let name = name.value().map_or("", String::as_str);
        facts.model = self.text("model.pretrained_model_name_or_path");
        let size = |key: &str| self.whole(&format!("model.{key}")).value().copied();
        if facts.model.is_unsaid()
            && let (Some(hidden), Some(layers), Some(heads)) =
                (size("d_model"), size("n_layers"), size("n_heads"))
        {
            let biased = self.switch("model.no_bias").value() != Some(&true);
            let alibi = self.switch("model.attn_config.alibi").value() == Some(&true);
            let shape = Shape {
                // MPT without biases and with ALiBi is that of the hub.
                blocks: if biased || !alibi {
                    Blocks::Own("MPT")
                } else {
                    Blocks::Mpt
                },
                layers,
                hidden,
                heads,
                kv: size("attn_config.kv_n_heads"),
                ffn: Some(hidden.saturating_mul(size("expansion_ratio").unwrap_or(4))),
                vocabulary: size("vocab_size"),
                tied: Some(self.switch("model.tie_word_embeddings").value() != Some(&false)),
                positions: size("max_seq_len"),
                experts: size("ffn_config.moe_num_experts"),
            };
            common::shaped(facts, shape, "model");
        }
        let flash = match self
            .text("model.attn_config.attn_impl")
            .value()
            .map(String::as_str)
        {
            Some("flash") => Fact::read(Attention::Flash, "model.attn_config.attn_impl"),
            Some("torch") => Fact::read(Attention::Eager, "model.attn_config.attn_impl"),
            Some("flex") => Fact::read(Attention::Flex, "model.attn_config.attn_impl"),
            _ if name.starts_with("mpt") => {
                Fact::default_of(Attention::Flash, "LLM-Foundry's attn_impl")
            }
            _ if self.switch("model.use_flash_attention_2").value() == Some(&true) => {
                Fact::read(Attention::Flash, "model.use_flash_attention_2")
            }
            _ => match self
                .text("model.config_overrides.attn_config.attn_impl")
                .value()
                .map(String::as_str)
            {
                Some("flash") => Fact::read(
                    Attention::Flash,
                    "model.config_overrides.attn_config.attn_impl",
                ),
                _ => Fact::Unsaid,
            },
        };
        facts.attention = flash;
        let loader = self.text("train_loader.name");
        facts.task = match (name, loader.value().map(String::as_str)) {
            (
                "hf_prefix_lm" | "hf_t5",
                Some("text_denoising" | "denoising" | "text" | "finetuning"),
            ) => Fact::follows(Task::Seq2Seq, "model.name"),
            (_, Some("finetuning")) => Fact::follows(Task::Sft, "train_loader.name"),
            (_, Some("contrastive_pairs")) => Fact::follows(Task::Contrastive, "train_loader.name"),
            (_, Some("pairwise_preference" | "finegrained_preference")) => {
                Fact::follows(Task::Reward, "train_loader.name")
            }
            _ => Fact::follows(Task::Pretraining, "train_loader.name"),
        };
    }

    fn spread(&self, facts: &mut Facts) {
        if !self.keys.has(&self.at("fsdp_config")) {
            facts.strategy = Fact::follows(DataParallel::Ddp.into(), "there is no fsdp_config");
            facts.offload = Fact::default_of(Offload::None, "Composer");
            return;
        }
        let said = self.text("fsdp_config.sharding_strategy");
        facts.strategy = said
            .or_default("FULL_SHARD".into(), "Composer's sharding_strategy")
            .and_then(|name| {
                Some(Strategy::from(match name.to_ascii_uppercase().as_str() {
                    "FULL_SHARD" => DataParallel::Fsdp1,
                    "SHARD_GRAD_OP" => DataParallel::Zero2,
                    "HYBRID_SHARD" | "_HYBRID_SHARD_ZERO2" => DataParallel::Hsdp,
                    "NO_SHARD" => DataParallel::Ddp,
                    _ => return None,
                }))
            });
        let on_host = self.switch("fsdp_config.cpu_offload").value() == Some(&true);
        facts.offload = if on_host {
            Fact::read(Offload::Both, "fsdp_config.cpu_offload")
        } else {
            Fact::default_of(Offload::None, "Composer")
        };
    }

    fn precision(&self, facts: &mut Facts) {
        let precision = self
            .text("precision")
            .or_default("amp_bf16".into(), "LLM-Foundry's precision");
        let pure = self
            .text("fsdp_config.mixed_precision")
            .value()
            .is_some_and(|name| name.eq_ignore_ascii_case("PURE"));
        facts.compute = precision.and_then(|name| {
            Some(match (name.as_str(), pure) {
                ("amp_bf16", true) | ("bf16", _) => Compute::Bf16,
                ("amp_bf16", false) => Compute::Bf16Autocast,
                ("amp_fp16", true) => Compute::Fp16,
                ("amp_fp16", false) => Compute::Fp16Autocast,
                ("amp_fp8", _) => Compute::Bf16Fp8,
                ("fp32", _) => Compute::Fp32,
                _ => return None,
            })
        });
        let master = self
            .text("model.master_weights_dtype")
            .or(self.text("master_weights_dtype"));
        facts.weights = match master.value().map(String::as_str) {
            Some("bf16" | "bfloat16") => Fact::read(Weights::Bf16, "master_weights_dtype"),
            Some("f16" | "float16") => Fact::read(Weights::Fp16, "master_weights_dtype"),
            _ => Fact::default_of(Weights::Fp32, "LLM-Foundry's master weights"),
        };
    }

    fn data(&self, facts: &mut Facts) {
        let ratio = self
            .keys
            .peek(&self.at("train_loader.dataset.packing_ratio"));
        let packed = match (facts.task.value(), ratio) {
            (Some(Task::Pretraining), _) => true,
            (_, Some(Document::Null) | None) => false,
            _ => true,
        };
        facts.packing = Fact::follows(packed, "train_loader");
        let evaluates =
            self.keys.has(&self.at("eval_loader")) || self.keys.has(&self.at("icl_tasks"));
        facts.evaluation = Fact::follows(evaluates, "eval_loader");
        for key in [
            "train_loader",
            "eval_loader",
            "icl_tasks",
            "tokenizer",
            "callbacks",
            "scheduler",
            "algorithms",
            "loggers",
            "variables",
            "optimizer",
            "model",
            "fsdp_config",
            "dataset",
        ] {
            self.keys.ignore(&self.at(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const RUN: &str = "
variables: {length: 4096}
max_seq_len: ${variables.length}
model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-2-7b-hf, peft_config: {r: 16, target_modules: [q_proj, v_proj]}}
train_loader: &loader {name: finetuning, dataset: {packing_ratio: auto}}
eval_loader: {<<: *loader}
optimizer: {name: decoupled_lionw}
max_duration: 1ep
global_train_batch_size: 32
device_train_microbatch_size: 2
precision: amp_bf16
fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE, activation_checkpointing: true}
";

    #[test]
    fn the_launcher_takes_every_gpu() {
        check(
            "run.yaml",
            RUN,
            &[
                ("outcome", "question"),
                ("asks", "gpus"),
                ("sequence", "4096"),
                ("adapter", "lora"),
                ("rank", "16"),
                ("weights", "fp32"),
                ("compute", "bf16"),
                ("packing", "true"),
                ("evaluation", "true"),
            ],
        );
        let platform = format!(
            "gpu_num: 8\nparameters:\n{}",
            RUN.replace('\n', "\n  ")
                .replace("variables.", "parameters.variables.")
        );
        check(
            "mcli.yaml",
            &platform,
            &[
                ("outcome", "estimate"),
                ("gpus", "8"),
                ("accumulation", "2"),
            ],
        );
    }
}
