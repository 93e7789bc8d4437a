//! Values of the files that NeMo-RL ships for others to build on, as far as they decide memory (`examples/configs`, 0.5).

use headroom_base::document::{Document, yaml};

const GRPO: &str = "
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}
loss_fn: {reference_policy_kl_penalty: 0.01}
policy:
  model_name: Qwen/Qwen2.5-1.5B
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 512
  precision: bfloat16
  dtensor_cfg: {enabled: true, cpu_offload: false, activation_checkpointing: false, tensor_parallel_size: 1, context_parallel_size: 1, lora_cfg: {enabled: false, match_all_linear: true, dim: 8}}
  megatron_cfg: {enabled: false, activation_checkpointing: false, recompute_granularity: full, optimizer: {optimizer: adam, use_distributed_optimizer: true, optimizer_cpu_offload: false, use_precision_aware_optimizer: true}, peft: {enabled: false, dim: 8}, fp8_cfg: {enabled: false, fp8_param: false}}
  sequence_packing: {enabled: true}
  dynamic_batching: {enabled: false}
  optimizer: {name: torch.optim.AdamW}
  generation: {backend: vllm, vllm_cfg: {tensor_parallel_size: 1, gpu_memory_utilization: 0.6}, colocated: {enabled: true}}
cluster: {gpus_per_node: 1, num_nodes: 1}
";

const TUNED: &str = "
policy:
  model_name: meta-llama/Llama-3.2-1B
  train_global_batch_size: 32
  train_micro_batch_size: 1
  max_total_sequence_length: 1024
  precision: bfloat16
  dtensor_cfg: {enabled: true, cpu_offload: false, activation_checkpointing: false, tensor_parallel_size: 1, context_parallel_size: 1, lora_cfg: {enabled: false, match_all_linear: true, dim: 8}}
  megatron_cfg: {enabled: false, activation_checkpointing: false, optimizer: {optimizer: adam, use_distributed_optimizer: true, use_precision_aware_optimizer: true}, peft: {enabled: false, dim: 8}, fp8_cfg: {enabled: false}}
  sequence_packing: {enabled: false}
  optimizer: {name: torch.optim.AdamW}
cluster: {gpus_per_node: 1, num_nodes: 1}
";

const DPO: &str = "
dpo: {}
policy: {model_name: meta-llama/Llama-3.2-1B-Instruct, train_global_batch_size: 128, train_micro_batch_size: 2, megatron_cfg: {tensor_model_parallel_size: 2}}
";

const REWARD: &str = "
rm: {}
policy: {model_name: meta-llama/Llama-3.2-1B-Instruct, train_global_batch_size: 128, max_total_sequence_length: 8192, megatron_cfg: {tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2}}
";

const DISTILLATION: &str = "
distillation: {num_prompts_per_step: 128, num_generations_per_prompt: 1}
policy:
  model_name: Qwen/Qwen3-1.7B-Base
  train_global_batch_size: 64
  train_micro_batch_size: 1
  max_total_sequence_length: 8192
  precision: bfloat16
  dtensor_cfg: {enabled: true, cpu_offload: false, activation_checkpointing: true, tensor_parallel_size: 2, context_parallel_size: 2}
  megatron_cfg: {enabled: false, activation_checkpointing: false, tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2, context_parallel_size: 2, optimizer: {optimizer: adam, use_distributed_optimizer: true}}
  dynamic_batching: {enabled: true}
  sequence_packing: {enabled: false}
  optimizer: {name: torch.optim.AdamW}
  generation: {backend: vllm, vllm_cfg: {tensor_parallel_size: 1, gpu_memory_utilization: 0.6}, colocated: {enabled: true}}
cluster: {gpus_per_node: 8, num_nodes: 1}
";

const VISION: &str = "
defaults: grpo_math_1B.yaml
grpo: {num_prompts_per_step: 8}
policy:
  model_name: Qwen/Qwen2.5-VL-3B-Instruct
  train_global_batch_size: 128
  train_micro_batch_size: 1
  max_total_sequence_length: 2048
  sequence_packing: {enabled: false}
cluster: {gpus_per_node: 2}
";

const PPO: &str = "
ppo: {num_prompts_per_step: 32, num_generations_per_prompt: 16}
policy: {max_total_sequence_length: 16384}
";

/// Files that change little of the one they are built on.
const SMALL: &[(&str, &str)] = &[
    (
        "grpo_math_1B_megatron.yaml",
        "
defaults: grpo_math_1B.yaml
policy: {dtensor_cfg: {enabled: false}, optimizer: null, megatron_cfg: {enabled: true}}
",
    ),
    (
        "ppo_math_1B_megatron.yaml",
        "
defaults: ppo_math_1B.yaml
policy: {dtensor_cfg: {enabled: false}, optimizer: null, megatron_cfg: {enabled: true}}
",
    ),
    (
        "distillation_math_megatron.yaml",
        "
defaults: distillation_math.yaml
policy: {dtensor_cfg: {enabled: false}, optimizer: null, megatron_cfg: {enabled: true}, sequence_packing: {enabled: true}, dynamic_batching: {enabled: false}}
",
    ),
    (
        "vlm_grpo_3B_megatron.yaml",
        "
defaults: vlm_grpo_3B.yaml
policy: {dtensor_cfg: {enabled: false}, optimizer: null, megatron_cfg: {enabled: true}}
",
    ),
    (
        "grpo_math_8B.yaml",
        "
defaults: grpo_math_1B.yaml
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32}
policy: {model_name: meta-llama/Llama-3.1-8B-Instruct, train_micro_batch_size: 1, max_total_sequence_length: 4096}
cluster: {gpus_per_node: 8}
",
    ),
    (
        "grpo_math_8B_megatron.yaml",
        "
defaults: grpo_math_1B_megatron.yaml
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32}
policy: {model_name: meta-llama/Llama-3.1-8B-Instruct, train_micro_batch_size: 1, max_total_sequence_length: 4096, megatron_cfg: {pipeline_model_parallel_size: 2}}
cluster: {gpus_per_node: 8}
",
    ),
    (
        "grpo_math_qwen30ba3b_megatron.yaml",
        "
defaults: grpo_math_1B_megatron.yaml
grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 32}
policy: {model_name: Qwen/Qwen3-30B-A3B, train_micro_batch_size: 1, max_total_sequence_length: 4096, megatron_cfg: {tensor_model_parallel_size: 2, expert_model_parallel_size: 8}}
cluster: {gpus_per_node: 8, num_nodes: 8}
",
    ),
    (
        "sft_openmathinstruct2.yaml",
        "
defaults: sft.yaml
policy: {model_name: meta-llama/Llama-3.1-8B, train_global_batch_size: 512, train_micro_batch_size: 2, max_total_sequence_length: 4096, dtensor_cfg: {tensor_parallel_size: 4}}
cluster: {gpus_per_node: 8}
",
    ),
    (
        "grpo_math_1B_trtllm.yaml",
        "
defaults: grpo_math_1B.yaml
policy: {generation: {backend: trtllm}}
",
    ),
    (
        "grpo_math_1B_sglang.yaml",
        "
defaults: grpo_math_1B.yaml
policy: {generation: {backend: sglang}}
cluster: {gpus_per_node: 2}
",
    ),
];

/// A shipped file by its name.
pub fn named(file: &str) -> Option<Document> {
    let parts: &[&str] = match file {
        "grpo_math_1B.yaml" => &[GRPO],
        "sft.yaml" => &["sft: {}", TUNED],
        "dpo.yaml" => &[TUNED, DPO],
        "rm.yaml" => &[TUNED, REWARD],
        "distillation_math.yaml" => &[DISTILLATION],
        "vlm_grpo_3B.yaml" => &[VISION],
        "ppo_math_1B.yaml" => &[GRPO, PPO],
        _ => {
            let (_, text) = SMALL.iter().find(|(name, _)| *name == file)?;
            return yaml::read(text).ok();
        }
    };
    let mut all = Document::new();
    for part in parts {
        super::overlay(&mut all, yaml::read(part).ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    #[test]
    fn shipped_files_parse() {
        let first = [
            "grpo_math_1B.yaml",
            "sft.yaml",
            "dpo.yaml",
            "rm.yaml",
            "distillation_math.yaml",
            "vlm_grpo_3B.yaml",
            "ppo_math_1B.yaml",
        ];
        let small = super::SMALL.iter().map(|(file, _)| *file);
        for file in first.into_iter().chain(small) {
            assert!(super::named(file).is_some(), "{file}");
        }
    }
}
