//! Runs with Megatron-LM and Megatron-Bridge: parallel sizes in text, and its own network.

use super::Record;
use headroom_base::mesh::Mesh;
use headroom_core::World;
use headroom_core::network::{self as nets, Net, Sizes};
use headroom_scenario::{
    ContextParallel, LossKernel, Optimizer, Parallel, Parallelism, Precision, Schedule, Trainer,
    Training,
};

pub(super) fn is_record(record: &Record) -> bool {
    record.framework.contains("megatron")
}

/// "TP=4 PP=4 VPP=5 DP=2", "tp1_pp2_dp4": the number after a name.
pub(super) fn degree(text: &str, name: &str) -> u32 {
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
pub(super) fn world(record: &Record, gpus: u32) -> Result<World, String> {
    let how = &*record.parallelism;
    let [tensor, stages, virtual_stages, context, expert] =
        ["tp", "pp", "vpp", "cp", "ep"].map(|name| degree(how, name));
    let each = tensor.saturating_mul(stages).saturating_mul(context);
    if !how.contains("tp") || !gpus.is_multiple_of(each) {
        return Err(format!("the layout `{how}` is not stated in full"));
    }
    let texts = [
        &record.other,
        &record.attention_impl,
        &record.notes,
        &record.framework,
    ];
    // simu_tools/megatron_scripts of SimuMax: `CP_COMM_TYPE:-a2a`.
    let exchanges = texts
        .into_iter()
        .any(|text| text.contains_any(&["a2a", "simumax"]));
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
    record: &Record,
    architecture: &str,
    sizes: &Sizes,
) -> Result<Box<dyn Net>, String> {
    let mut sizes = sizes.clone();
    match architecture {
        "llama" => {}
        "qwen2" => sizes.set("qkv_bias", 1),
        "qwen3" => sizes.set("qk_norm", 1),
        other => return Err(format!("Megatron-Core's `{other}` is not modelled")),
    }
    for (name, written) in [("layers", "layers"), ("kv", "kv_heads")] {
        if let Some(size) = record.dim(written) {
            sizes.set(name, size);
        }
    }
    if sizes.is_set("tied") {
        sizes.set("shares_embeddings", 1);
    }
    sizes.set("transformer_engine", 1);
    nets::build("megatron_gpt", &sizes).map_err(|error| error.to_string())
}

/// Its replacements for what other trainers import from libraries.
pub(super) fn amend(record: &Record, training: &mut Training) -> Result<(), String> {
    if record.precision.contains("fp8") || record.other.contains("cuda graph") {
        return Err("what Transformer Engine keeps in fp8 and CUDA graphs is not modelled".into());
    }
    training.precision = Precision::Bf16;
    // `FusedAdam` of Transformer Engine, in place.
    training.optimizer = Optimizer::AdamWFused;
    let fused = record.fused_or_chunked_ce.contains("fus")
        || record.other.contains("loss-fusion")
        // SimuMax's names of runs with `--cross-entropy-loss-fusion`.
        || record.id.ends_with("_cef");
    training.loss = if fused {
        LossKernel::Liger
    } else {
        LossKernel::Library
    };
    training.accumulation = micro_batches(record);
    Ok(())
}

/// A number, or "GBS 32 / DP 2".
fn micro_batches(record: &Record) -> u64 {
    if let Some(number) = record.grad_accum.number() {
        return number.max(1);
    }
    let numbers: Vec<u64> = (record.grad_accum.text())
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let each = record.micro_batch.number().unwrap_or(1).max(1);
    match numbers.as_slice() {
        [batch, data, ..] => batch / data.saturating_mul(each).max(1),
        _ => 1,
    }
    .max(1)
}

#[cfg(test)]
mod tests {
    use super::degree;

    #[test]
    fn degrees_are_read_however_they_are_written() {
        for text in ["tp=4 pp=2 vpp=5", "tp4_pp2_vpp5", "tp 4 pp 2 vpp 5"] {
            let found = ["tp", "pp", "vpp", "cp"].map(|name| degree(text, name));
            assert_eq!(found, [4, 2, 5, 1], "{text}");
        }
    }
}
