//! Records of runs with Megatron-LM and Megatron-Bridge: its parallel sizes in words, and its own network.

use serde_json::Value;

use super::text;
use headroom_base::mesh::Mesh;
use headroom_core::nets::{self, Net, Sizes};
use headroom_core::parallel::World;
use headroom_scenario::{
    ContextParallel, LossKernel, Optimizer, Parallel, Parallelism, Precision, Schedule, Trainer,
    Training,
};

pub(super) fn is_record(record: &Value) -> bool {
    text(record, "framework").contains("megatron")
}

/// "TP=4 PP=4 VPP=5 DP=2", "tp1_pp2_dp4": the number after a name.
fn degree(text: &str, name: &str) -> u32 {
    let places = text.match_indices(name).filter_map(|(at, _)| {
        let before = text.get(..at)?.chars().next_back();
        if before.is_some_and(char::is_alphabetic) {
            return None;
        }
        let rest = text.get(at + name.len()..)?.trim_start_matches([' ', '=']);
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
    });
    places.fold(0, u32::max).max(1)
}

/// The first rank of a record's job. The scripts share out sequences wherever they split tensors.
pub(super) fn world(record: &Value, gpus: u32) -> Result<World, String> {
    let how = text(record, "parallelism");
    let [tensor, stages, virtual_stages, context, expert] =
        ["tp", "pp", "vpp", "cp", "ep"].map(|name| degree(&how, name));
    let each = tensor.saturating_mul(stages).saturating_mul(context);
    if !how.contains("tp") || !gpus.is_multiple_of(each) {
        return Err(format!("the layout `{how}` is not stated in full"));
    }
    let exchanges = ["other", "attention_impl", "notes", "framework"]
        .iter()
        .map(|key| text(record, key))
        // simu_tools/megatron_scripts of SimuMax: `CP_COMM_TYPE:-a2a`.
        .any(|said| said.contains("a2a") || said.contains("simumax"));
    if context > 1 && !exchanges {
        return Err("how GPUs that share a sequence exchange it is not stated".into());
    }
    let world = World::of(Parallelism::Zero1, gpus / each);
    Ok(World {
        mesh: Mesh {
            tensor,
            context,
            expert,
            stages,
            ..world.mesh
        },
        parallel: Parallel {
            tp: tensor,
            cp: context,
            pp: stages,
            ep: expert,
            sequence_parallel: tensor > 1,
            context: ContextParallel::Ulysses,
            virtual_stages,
            schedule: if virtual_stages > 1 {
                Schedule::Interleaved
            } else {
                Schedule::OneForwardOneBackward
            },
            ..world.parallel
        },
        trainer: Trainer::Megatron,
        ..world
    })
}

/// `GPTModel` with Transformer Engine's layers.
pub(super) fn network(
    record: &Value,
    architecture: &str,
    sizes: &Sizes,
) -> Result<Box<dyn Net>, String> {
    if architecture != "llama" {
        return Err(format!("Megatron-Core's `{architecture}` is not modelled"));
    }
    let mut sizes = sizes.clone();
    for (size, given) in [("layers", "layers"), ("kv", "kv_heads")] {
        if let Some(given) = record["model_dims"][given].as_u64() {
            sizes.set(size, given);
        }
    }
    if sizes.is_set("tied") {
        sizes.set("shares_embeddings", 1);
    }
    sizes.set("transformer_engine", 1);
    nets::build("megatron_gpt", &sizes).map_err(|error| error.to_string())
}

/// Its own way of what other trainers take from libraries.
pub(super) fn amend(record: &Value, training: &mut Training) -> Result<(), String> {
    if text(record, "precision").contains("fp8") || text(record, "other").contains("cuda graph") {
        return Err("what Transformer Engine keeps in fp8 and CUDA graphs is not modelled".into());
    }
    training.precision = Precision::Bf16;
    // `FusedAdam` of Transformer Engine, in place.
    training.optimizer = Optimizer::AdamWFused;
    let fused = text(record, "fused_or_chunked_ce").contains("fus")
        || text(record, "other").contains("loss-fusion")
        // SimuMax's names of runs with `--cross-entropy-loss-fusion`.
        || text(record, "id").ends_with("_cef");
    training.loss = if fused {
        LossKernel::Liger
    } else {
        LossKernel::Library
    };
    training.accumulation = micro_batches(record);
    Ok(())
}

/// A number, or "GBS 32 / DP 2".
fn micro_batches(record: &Value) -> u64 {
    if let Some(given) = record["grad_accum"].as_u64() {
        return given.max(1);
    }
    let said = text(record, "grad_accum");
    let numbers: Vec<u64> = said
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let each = record["micro_batch"].as_u64().unwrap_or(1).max(1);
    match numbers.as_slice() {
        [batch, data, ..] => batch / data.saturating_mul(each).max(1),
        _ => 1,
    }
    .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::predict;

    #[test]
    fn degrees_are_read_however_they_are_written() {
        for text in ["tp=4 pp=2 vpp=5", "tp4_pp2_vpp5", "tp 4 pp 2 vpp 5"] {
            let found = ["tp", "pp", "vpp", "cp"].map(|name| degree(text, name));
            assert_eq!(found, [4, 2, 5, 1], "{text}");
        }
    }

    /// `torch.cuda.max_memory_allocated()` of the fullest rank in MiB, by docs/b200/b200_release_v1.2_summary.json of SimuMax
    /// (github.com/MooreThreads/SimuMax at 4dcaae5): 8 B200, Llama 3 cut to few layers, Transformer Engine 2.11.
    #[track_caller]
    fn check(model: &str, dims: [u64; 2], parallelism: &str, sequence: u64, mib: f64) {
        let [layers, kv] = dims;
        let record = serde_json::json!({
            "framework": "Megatron-LM, SimuMax", "id": "simumax_cef", "model": model, "gpu": "B200", "n_gpus": 8,
            "model_dims": {"layers": layers, "kv_heads": kv}, "parallelism": parallelism, "task": "pretrain", "precision": "bf16",
            "optimizer": "Megatron distributed Adam", "activation_checkpointing": "none", "micro_batch": 1,
            "seq_len": sequence, "grad_accum": 4, "metric": "max_allocated", "measured_gib": 1.0,
        });
        let predicted = predict(&record).unwrap().allocated as f64 / 1024.0 / 1024.0;
        let error = 100.0 * (predicted / mib - 1.0);
        assert!(
            error.abs() < 0.25,
            "{predicted:.0} for {mib}, {error:+.2} %"
        );
    }

    #[test]
    fn megatron_with_transformer_engine_needs_what_was_measured() {
        let (small, large) = ("meta-llama/Meta-Llama-3-70B", "meta-llama/Llama-3.1-405B");
        // The launcher's Llama 3 405B has twice the published one's heads of keys.
        check(small, [12, 8], "TP=1 PP=2 DP=4", 4096, 68_149.2);
        check(small, [12, 8], "TP=2 PP=1 DP=4", 4096, 62_136.0);
        check(small, [12, 8], "TP=4 PP=1 DP=2", 4096, 40_009.0);
        check(small, [12, 8], "TP=8 PP=1 DP=1", 4096, 28_965.0);
        check(large, [4, 16], "TP=1 PP=2 DP=4", 4096, 89_173.0);
        check(large, [4, 16], "TP=2 PP=1 DP=4", 4096, 83_549.0);
        check(large, [4, 16], "TP=4 PP=1 DP=2", 4096, 54_158.0);
        check(large, [4, 16], "TP=8 PP=1 DP=1", 4096, 39_499.0);
        check(small, [12, 8], "TP=2 CP=4 PP=1 DP=1", 32_768, 70_070.0);
        check(small, [12, 8], "TP=1 CP=8 PP=1 DP=1", 32_768, 107_015.0);
        check(large, [4, 16], "TP=2 CP=4 PP=1 DP=1", 32_768, 89_113.0);
        check(large, [4, 16], "TP=1 CP=8 PP=1 DP=1", 32_768, 142_557.0);
    }
}
