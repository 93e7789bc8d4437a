//! Megatron-LM and Megatron-DeepSpeed: `pretrain_*.py` with its flags.
//!
//! Defaults are those of `megatron/training/arguments.py`, and of Megatron-DeepSpeed's copy of it.

use headroom_scripts::shell::{Count, Launch};

use super::common;
use super::tokenizers::{padded, vocabulary};
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::keys::Keys;
use crate::parts::{DeepSpeed, stage_of};
use crate::program::{Form, Program, Source};
use crate::shape::{Blocks, Shape};
use crate::words::{
    Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Weights,
};

pub const PROGRAM: Program = Program {
    id: "megatron",
    name: "Megatron-LM",
    read,
};

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    let file = launch.program.text.rsplit('/').next()?;
    let sized = flags.has("num_layers") || flags.has("encoder_num_layers");
    let marks = [
        "tensor_model_parallel_size",
        "micro_batch_size",
        "seq_length",
        "encoder_seq_length",
        "global_batch_size",
        "use_mcore_models",
    ];
    let marked = marks.iter().filter(|key| flags.has(key)).count() >= 2;
    let path = launch.program.text.to_ascii_lowercase();
    let trains = ["pretrain", "finetune", "train", "sft"]
        .iter()
        .any(|word| file.contains(word));
    let served = ["inference", "generat", "server", "eval", "export"]
        .iter()
        .any(|word| path.contains(word));
    if !(sized && marked && flags.has("hidden_size") && trains) || served {
        return None;
    }
    Some(Reader { flags, file }.of(launch, source))
}

struct Reader<'a> {
    flags: &'a Keys,
    file: &'a str,
}

impl Reader<'_> {
    fn on(&self, name: &str) -> bool {
        self.flags.switch(name).value() == Some(&true)
    }

    fn size(&self, name: &str) -> Option<u64> {
        self.flags.whole(name).value().copied()
    }

    fn of(&self, launch: &Launch, source: &Source) -> Facts {
        let mut facts = Facts::of("megatron");
        let task = self.task();
        facts.task = Fact::follows(task, "its script");
        self.network(task, &mut facts);
        facts.micro_batch = self
            .flags
            .whole("micro_batch_size")
            .or(self.flags.whole("batch_size"));
        facts.sequence = self
            .flags
            .whole("seq_length")
            .or(self.flags.whole("encoder_seq_length"));
        self.precision(&mut facts);
        common::trains_all(&mut facts);
        facts.optimizer = self
            .flags
            .text("optimizer")
            .map(|name| name.to_ascii_lowercase())
            .or_default("adam".into(), "Megatron's optimizer");
        facts.offload = if self.on("optimizer_cpu_offload") || self.on("cpu_optimizer") {
            Fact::read(Offload::Optimizer, "optimizer-cpu-offload")
        } else {
            Fact::default_of(Offload::None, "Megatron")
        };
        facts.checkpointing = self.checkpointing();
        let layers = self.flags.whole("recompute_num_layers");
        // Segments of that many layers, or that many of each stage one by one.
        match self
            .flags
            .text("recompute_method")
            .value()
            .map(String::as_str)
        {
            Some("block") => facts.checkpoint_first = layers,
            _ => facts.checkpoint_span = layers,
        }
        facts.attention = self.attention();
        facts.packing = Fact::follows(true, "Megatron's data are rows of tokens");
        let evaluates = self.size("eval_iters") != Some(0);
        facts.evaluation = Fact::follows(evaluates, "eval-interval and eval-iters");
        self.spread(launch, source, &mut facts);
        for (key, effect) in [
            (
                "cpu_offloading_num_layers",
                "kept activations of these layers are in host memory",
            ),
            (
                "fine_grained_activation_offloading",
                "kept activations are in host memory",
            ),
            (
                "use_precision_aware_optimizer",
                "moments and the copy of the weights may have fewer bits",
            ),
            (
                "num_layers_per_virtual_pipeline_stage",
                "interleaved stages keep more micro-batches",
            ),
        ] {
            if self.flags.has(key) {
                facts
                    .not_modelled
                    .push(format!("--{}: {effect}", key.replace('_', "-")));
            }
        }
        facts
    }

    fn task(&self) -> Task {
        match self.file {
            file if file.contains("bert") => Task::MaskedLm,
            file if file.contains("t5") => Task::Seq2Seq,
            file if file.contains("sft") || file.contains("finetune") => Task::Sft,
            file if file.contains("ict") => Task::Contrastive,
            _ if self.on("sft") => Task::Sft,
            _ => Task::Pretraining,
        }
    }

    fn network(&self, task: Task, facts: &mut Facts) {
        let (Some(layers), Some(hidden)) = (
            self.size("num_layers")
                .or_else(|| self.size("encoder_num_layers")),
            self.size("hidden_size"),
        ) else {
            facts.model = Fact::Unknown("num-layers and hidden-size are not known".into());
            return;
        };
        let heads = self.size("num_attention_heads").unwrap_or(0);
        let tp = self.size("tensor_model_parallel_size").unwrap_or(1);
        let tokens = self.tokens(task);
        let multiple = self.size("make_vocab_size_divisible_by").unwrap_or(128);
        let vocabulary = tokens.map(|tokens| padded(tokens, multiple.saturating_mul(tp.max(1))));
        if vocabulary.is_none() {
            facts.ask(Ask::Vocabulary, "the tokenizer's tokens are not known");
        }
        if task == Task::Seq2Seq {
            let decoder = self.size("decoder_num_layers").unwrap_or(layers);
            let words = format!("T5 {layers} + {decoder} layers × {hidden}, {heads} heads");
            facts.model = Fact::read(words, "encoder-num-layers, hidden-size, …");
            return;
        }
        let text = |name: &str| self.flags.text(name).value().cloned().unwrap_or_default();
        let gated = self.on("swiglu");
        let rotary =
            self.on("use_rotary_position_embeddings") || text("position_embedding_type") == "rope";
        let rms = text("normalization") == "RMSNorm" || self.on("normalization_rms");
        let experts = self.size("num_experts").filter(|count| *count > 1);
        let blocks = match (task, gated && rotary && rms, experts.is_some()) {
            (Task::MaskedLm, ..) => Blocks::Own("BERT"),
            _ if self.file.contains("mamba") || self.file.contains("hybrid") => {
                Blocks::Own("Mamba hybrid")
            }
            (_, true, true) => Blocks::Mixtral,
            (_, true, false) if self.on("qk_layernorm") => Blocks::Qwen3,
            (_, true, false) if self.on("add_qkv_bias") => Blocks::Qwen2,
            (_, true, false) => Blocks::Llama,
            (_, false, false) if !rotary && !rms && !gated && !self.on("disable_bias_linear") => {
                Blocks::Gpt2
            }
            _ => Blocks::Own("GPT"),
        };
        let ffn = self.size("ffn_hidden_size").unwrap_or_else(|| {
            let wide = hidden.saturating_mul(4);
            if gated {
                wide.saturating_mul(2) / 3 / 64 * 64
            } else {
                wide
            }
        });
        let shape = Shape {
            blocks,
            layers,
            hidden,
            heads,
            kv: self
                .size("num_query_groups")
                .filter(|_| self.on("group_query_attention")),
            ffn: Some(
                self.size("moe_ffn_hidden_size")
                    .filter(|_| experts.is_some())
                    .unwrap_or(ffn),
            ),
            vocabulary,
            tied: (blocks != Blocks::Gpt2).then(|| !self.on("untie_embeddings_and_output_weights")),
            positions: self.size("max_position_embeddings"),
            experts,
        };
        common::shaped(facts, shape, "num-layers, hidden-size, …");
    }

    /// The tokenizer's tokens, by its name, its file or its type.
    fn tokens(&self, task: Task) -> Option<u64> {
        if let Some(size) = self
            .size("vocab_size")
            .or_else(|| self.size("padded_vocab_size"))
        {
            return Some(size);
        }
        let extra = self.size("vocab_extra_ids").unwrap_or(0);
        let named = ["tokenizer_model", "vocab_file", "tokenizer_name_or_path"]
            .iter()
            .find_map(|key| vocabulary(self.flags.text(key).value()?));
        let kind = self.flags.text("tokenizer_type");
        let typed = match kind.value().map(String::as_str) {
            Some("GPT2BPETokenizer") => Some(50_257),
            Some("BertWordPieceCase") => Some(28_996),
            Some("BertWordPieceLowerCase") => Some(30_522),
            Some("Llama2Tokenizer") => Some(32_000),
            Some("Llama3Tokenizer") => Some(128_256),
            // What scripts leave out is what their data was made with.
            None if self.flags.has("merge_file") => Some(50_257),
            None if task == Task::MaskedLm => Some(30_522),
            _ => None,
        };
        named.or(typed).map(|tokens| tokens.saturating_add(extra))
    }

    fn precision(&self, facts: &mut Facts) {
        let (weights, compute, key) = if self.on("bf16") {
            (Weights::Bf16, Compute::Bf16, "bf16")
        } else if self.on("fp16") {
            (Weights::Fp16, Compute::Fp16, "fp16")
        } else {
            facts.weights = Fact::default_of(Weights::Fp32, "Megatron without --bf16 or --fp16");
            facts.compute = Fact::default_of(Compute::Fp32, "Megatron without --bf16 or --fp16");
            return;
        };
        let fp8 = ["fp8_format", "fp8_hybrid", "fp8_e4m3", "fp8_recipe"]
            .iter()
            .any(|flag| self.flags.has(flag));
        facts.compute = if fp8 {
            Fact::read(Compute::Bf16Fp8, "fp8-format")
        } else {
            Fact::read(compute, key)
        };
        facts.weights = if fp8 && self.on("fp8_param_gather") {
            Fact::read(Weights::Fp8, "fp8-param-gather")
        } else {
            Fact::read(weights, key)
        };
    }

    fn checkpointing(&self) -> Fact<Checkpointing> {
        let granularity = self.flags.text("recompute_granularity");
        match granularity.value().map(String::as_str) {
            Some("full") => Fact::read(Checkpointing::On, "recompute-granularity"),
            Some(_) => Fact::read(Checkpointing::Selective, "recompute-granularity"),
            None if self.on("recompute_activations") => {
                Fact::read(Checkpointing::Selective, "recompute-activations")
            }
            None if self.on("checkpoint_activations")
                || self.on("deepspeed_activation_checkpointing") =>
            {
                Fact::read(Checkpointing::On, "checkpoint-activations")
            }
            None => Fact::default_of(Checkpointing::Off, "Megatron"),
        }
    }

    fn attention(&self) -> Fact<Attention> {
        match self
            .flags
            .text("attention_backend")
            .value()
            .map(String::as_str)
        {
            Some("unfused" | "local") => return Fact::read(Attention::Eager, "attention-backend"),
            Some("flash" | "fused") => return Fact::read(Attention::Flash, "attention-backend"),
            _ => {}
        }
        if self.on("use_flash_attn") || self.on("use_flash_attn_v2") {
            return Fact::read(Attention::Flash, "use-flash-attn");
        }
        let local = self
            .flags
            .text("transformer_impl")
            .value()
            .is_some_and(|name| name == "local");
        if local || self.flags.has("deepspeed") {
            return Fact::default_of(Attention::Eager, "Megatron's own layers");
        }
        Fact::default_of(Attention::Flash, "Transformer Engine")
    }

    fn spread(&self, launch: &Launch, source: &Source, facts: &mut Facts) {
        let size = |name: &str| self.size(name).unwrap_or(1).max(1);
        let (tp, pp) = (
            size("tensor_model_parallel_size"),
            size("pipeline_model_parallel_size"),
        );
        let (cp, ep) = (
            size("context_parallel_size"),
            size("expert_model_parallel_size"),
        );
        let etp = self
            .size("expert_tensor_parallel_size")
            .unwrap_or(tp)
            .max(1);
        let dense = tp.saturating_mul(cp);
        let sparse = if ep > 1 {
            ep.saturating_mul(if self.flags.has("expert_tensor_parallel_size") {
                etp
            } else {
                1
            })
        } else {
            1
        };
        let needed = pp.saturating_mul(dense.max(sparse));
        let count = match &launch.gpus {
            Count::Known(count) => Some(*count),
            Count::Unknown(_) => None,
        };
        facts.gpus = match (&launch.gpus, count) {
            (_, Some(count)) if count % needed.max(1) != 0 => Fact::Unknown(format!(
                "the launcher starts {count}, and TP {tp} × PP {pp} × CP {cp} with EP {ep} wants a multiple of {needed}"
            )),
            (_, Some(count)) => Fact::read(count, "the launcher"),
            (Count::Unknown(why), None) => Fact::Unknown(why.clone()),
            (Count::Known(count), None) => Fact::read(*count, "the launcher"),
        };
        if facts.gpus.is_known() {
            facts.nodes = launch
                .nodes
                .map_or(Fact::Unsaid, |nodes| Fact::read(nodes, "the launcher"));
        }
        let ranks = facts
            .gpus
            .value()
            .map(|gpus| gpus / tp.saturating_mul(pp).saturating_mul(cp).max(1));
        let several = ranks.is_some_and(|ranks| ranks.saturating_mul(cp) > 1);
        let divided = self.on("use_distributed_optimizer");
        let fully = self.on("use_megatron_fsdp") || self.on("use_custom_fsdp");
        let stage = self.zero(source);
        let data = if self.on("use_torch_fsdp2") {
            DataParallel::Fsdp2
        } else if fully {
            match self
                .flags
                .text("data_parallel_sharding_strategy")
                .value()
                .map(String::as_str)
            {
                Some("optim") => DataParallel::Zero1,
                Some("optim_grads") => DataParallel::Zero2,
                Some("optim_grads_params") => DataParallel::Fsdp,
                _ => DataParallel::Ddp,
            }
        } else if let Some(stage) = stage {
            stage
        } else if divided && (several || ranks.is_none()) {
            DataParallel::Zero1
        } else if several {
            DataParallel::Ddp
        } else {
            DataParallel::None
        };
        facts.strategy = Fact::follows(
            Strategy {
                data,
                tp,
                pp,
                cp,
                ep,
            },
            "its parallel sizes",
        );
        let global = self.flags.whole("global_batch_size");
        let by = ranks.zip(facts.micro_batch.value().copied());
        let by = by.map(|(ranks, micro)| ranks.saturating_mul(micro));
        facts.accumulation = match global {
            Fact::Unsaid => Fact::default_of(1, "Megatron's global-batch-size"),
            global => common::divided(&global, by, "global-batch-size"),
        };
    }

    /// Megatron-DeepSpeed's stage.
    fn zero(&self, source: &Source) -> Option<DataParallel> {
        if !self.flags.has("deepspeed") {
            return None;
        }
        if let Some(stage) = self.size("zero_stage") {
            return stage_of(stage);
        }
        let path = self.flags.text("deepspeed_config");
        let found = DeepSpeed::at(path.value()?, source.beside);
        found.stage.value().copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    const RUN: &str = "
MODEL=(--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention
  --num-query-groups 8 --swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights
  --seq-length 4096 --max-position-embeddings 8192 --vocab-size 128256 --make-vocab-size-divisible-by 64)
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py ${MODEL[@]} --micro-batch-size 1 --global-batch-size 64 --bf16 \\
  --tensor-model-parallel-size 4 --use-distributed-optimizer --recompute-activations
";

    #[test]
    fn parallel_sizes_have_to_divide_the_gpus() {
        check(
            "run.sh",
            RUN,
            &[
                ("outcome", "estimate"),
                ("catalogue", "llama-3-8b"),
                ("gpus", "16"),
                ("strategy", "zero1+tp4"),
                ("accumulation", "16"),
                ("checkpointing", "selective"),
            ],
        );
        let more = RUN.replace("--bf16", "--bf16 --pipeline-model-parallel-size 16");
        check(
            "run.sh",
            &more,
            &[
                ("outcome", "question"),
                ("asks", "gpus"),
                ("strategy", "zero1+tp4+pp16"),
            ],
        );
        let alone = RUN.replace("--use-distributed-optimizer", "");
        check("run.sh", &alone, &[("strategy", "ddp+tp4")]);
    }
}
