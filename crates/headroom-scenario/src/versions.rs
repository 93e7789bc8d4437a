//! The defaults of each published version of the link format, frozen.
//!
//! A link leaves out what equals the default, so a changed default would change old links.
//! To change one: raise `Scenario::VERSION` and add a table. To add a setting: name it in every table.

/// Link keys and their values in that version; `None` for a version that does not exist.
pub(crate) fn defaults(version: u32) -> Option<&'static [(&'static str, &'static str)]> {
    let table = usize::try_from(version).ok()?.checked_sub(1)?;
    VERSIONS.get(table).copied()
}

const VERSIONS: &[&[(&str, &str)]] = &[&[
    ("gpu", "rtx-4090"),
    ("gpus", "1"),
    ("nodes", "1"),
    ("mem", "0"),
    ("cc", "0.0"),
    ("bw", "0"),
    ("tflops", "0"),
    ("os", "linux"),
    ("display", "off"),
    ("model", "gpt2"),
    ("dims", ""),
    ("network", ""),
    ("task", "pretraining"),
    ("task_head", "fused"),
    ("labelled", "1"),
    ("reference", "auto"),
    ("reference_type", "same"),
    ("teacher", "qwen2.5-1.5b"),
    ("on_policy", "off"),
    ("prompt", "256"),
    ("completion", "256"),
    ("generations", "8"),
    ("generation_batches", "0"),
    ("iterations", "1"),
    ("sampler", "generate"),
    ("vllm_share", "0.3"),
    ("vllm_sleep", "off"),
    ("sampling_offload", "none"),
    ("scored_rows", "0"),
    ("fp32_head", "off"),
    ("evaluated", "loss"),
    ("evaluation_batches", "4"),
    ("reference_first", "off"),
    ("keeps_logits", "off"),
    ("keeps_scores", "off"),
    ("classes", "2"),
    ("negatives", "0"),
    ("query", "0"),
    ("mb", "8"),
    ("seq", "1024"),
    ("height", "0"),
    ("width", "0"),
    ("frames", "0"),
    ("mask", "off"),
    ("dist", "fixed"),
    ("mean", "0"),
    ("p95", "0"),
    ("max", "0"),
    ("samples", "0"),
    ("batch_max", "0"),
    ("packing", "off"),
    ("global", "0"),
    ("audio_frames", "0"),
    ("images", "1"),
    ("image_height", "0"),
    ("image_width", "0"),
    ("image_sizes", ""),
    ("image_tiles", "0"),
    ("precision", "amp-bf16"),
    ("fp8", "off"),
    ("qat", "off"),
    ("lowp", "none"),
    ("optim", "adamw"),
    ("attn", "sdpa"),
    ("ckpt", "none"),
    ("ckpt_every", "1"),
    ("ckpt_first", "0"),
    ("loss", "library"),
    ("loss_chunks", "8"),
    ("kernels", "library"),
    ("compile", "nothing"),
    ("compile_mode", "default"),
    ("act_budget", "1"),
    ("optim_in_backward", "off"),
    ("quant", "none"),
    ("swap", "0"),
    ("accum", "1"),
    ("lora", "off"),
    ("lora_method", "lora"),
    ("lora_rank", "16"),
    ("lora_targets", "q_proj,k_proj,v_proj,o_proj"),
    ("lora_exclude", ""),
    ("lora_block", "0"),
    ("lora_save", ""),
    ("lora_dropout", "0"),
    ("lora_fp32", "on"),
    ("freeze", ""),
    ("train_only", ""),
    ("dropout", "on"),
    ("lr", "0"),
    ("clip", "off"),
    ("ema", "off"),
    ("ema_host", "off"),
    ("prompt_tokens", "0"),
    ("prompt_hidden", "0"),
    ("fp32_norms", "off"),
    ("zero_none", "on"),
    ("zero_late", "off"),
    ("keep_outputs", "off"),
    ("use_cache", "off"),
    ("channels_last", "off"),
    ("par", "ddp"),
    ("tp", "1"),
    ("pp", "1"),
    ("cp", "1"),
    ("ep", "1"),
    ("bucket", "25"),
    ("bucket_view", "off"),
    ("comm_hook", "none"),
    ("powersgd_rank", "1"),
    ("partition_optimizer", "off"),
    ("reshard", "on"),
    ("reshard_to", "0"),
    ("reshard_root", "on"),
    ("wrap", "auto"),
    ("param_dtype", "auto"),
    ("reduce_dtype", "auto"),
    ("shard_quantized", "off"),
    ("prefetch_fwd", "0"),
    ("prefetch_bwd", "0"),
    ("sync_each", "off"),
    ("sp", "off"),
    ("loss_parallel", "off"),
    ("context", "ring"),
    ("schedule", "1f1b"),
    ("vpp", "1"),
    ("zero_bucket", "0"),
    ("zero_prefetch", "0"),
    ("zero_persist", "0"),
    ("zero_live", "0"),
    ("zero_reuse", "0"),
    ("zero_subgroup", "0"),
    ("zero_overlap", "auto"),
    ("zero_contiguous", "on"),
    ("zero_bf16_master", "off"),
    ("offload", "none"),
    ("trainer", "torch"),
    ("trainer_version", "0.0"),
    ("torch", "2.15"),
    ("transformers", "5.23"),
    ("peft", "0.21"),
    ("bitsandbytes", "0.50"),
    ("liger", "0.8"),
    ("expandable", "off"),
    ("max_split", "0"),
    ("gc", "0"),
    ("roundup", "0"),
    ("fraction", "1"),
    ("outside", "0"),
    ("kept", "0"),
    ("workers", "0"),
    ("prefetch", "2"),
    ("pin", "off"),
    ("data_gib", "0"),
    ("eval_mb", "0"),
    ("eval_every", "0"),
    ("val_check_interval", "1"),
    ("eval_samples", "0"),
    ("limit_val_batches", "1"),
    ("eval_keeps", "0"),
    ("epochs", "0"),
    ("max_steps", "0"),
    ("save_every", "0"),
    ("save_keep", "0"),
]];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, settings};

    #[test]
    fn the_newest_table_is_todays_defaults_and_every_table_is_complete() {
        let newest = defaults(Scenario::VERSION).unwrap();
        assert_eq!(VERSIONS.len(), Scenario::VERSION as usize);
        let today: Vec<(&str, String)> = settings::all()
            .iter()
            .map(|setting| (setting.key, setting.default()))
            .collect();
        let frozen: Vec<(&str, String)> = newest
            .iter()
            .map(|(key, version)| (*key, (*version).into()))
            .collect();
        assert_eq!(frozen, today);
        for table in VERSIONS {
            for setting in settings::all() {
                let (_, text) = table.iter().find(|(key, _)| *key == setting.key).unwrap();
                setting.set(&mut Scenario::default(), text).unwrap();
            }
        }
    }
}
