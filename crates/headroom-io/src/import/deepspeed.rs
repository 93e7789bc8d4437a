//! DeepSpeed's JSON.

use super::Imported;
use super::take::KeyReader;
use headroom_base::document::Document;
use headroom_scenario::Scenario;

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let marks = ["zero_optimization", "train_micro_batch_size_per_gpu"];
    marks.iter().any(|key| document.get(key).is_some())
}

/// The run with the file's settings; it has neither model nor sequence length.
pub fn read(document: &Document, run: &Scenario) -> Imported {
    let mut reader = KeyReader::new(document);
    reader.part_of(run);
    reader.copy("train_micro_batch_size_per_gpu", "data.micro_batch");
    reader.copy("gradient_accumulation_steps", "training.accumulation");
    reader.copy("train_batch_size", "data.global_batch");
    reader.clip("gradient_clipping");
    let enabled =
        |reader: &mut KeyReader, key: &str| reader.switch(&format!("{key}.enabled")) == Some(true);
    let bf16 = enabled(&mut reader, "bf16") || enabled(&mut reader, "bfloat16");
    let precision = match (bf16, enabled(&mut reader, "fp16")) {
        (true, _) => "amp-bf16",
        (_, true) => "amp-fp16",
        _ => "fp32",
    };
    reader.set("training.precision", precision);
    zero(&mut reader, "zero_optimization.stage");
    offload(
        &mut reader,
        "zero_optimization.offload_optimizer.device",
        "zero_optimization.offload_param.device",
    );
    reader.optimizer("optimizer.type", "optimizer.params.");
    reader.finish(&[
        "steps_per_print",
        "wall_clock_breakdown",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
        "zero_optimization.overlap_comm",
        "zero_optimization.contiguous_gradients",
        "zero_optimization.offload_optimizer.pin_memory",
        "zero_optimization.offload_param.pin_memory",
        "optimizer.params.lr",
        "optimizer.params.betas",
        "optimizer.params.eps",
        "optimizer.params.weight_decay",
        "scheduler",
        "bf16.enabled",
        "fp16",
    ])
}

/// ZeRO's stage.
pub(super) fn zero(reader: &mut KeyReader, path: &str) {
    let strategy = match reader.value(path) {
        Some(Document::Int(0)) => "zero0",
        Some(Document::Int(1)) => "zero1",
        Some(Document::Int(2)) => "zero2",
        Some(Document::Int(3)) => "zero3",
        Some(_) => return reader.mark_unused(path),
        None => return,
    };
    reader.set("parallel.strategy", strategy);
}

/// Offloading, from the devices of optimizer states and of weights.
pub(super) fn offload(reader: &mut KeyReader, states: &str, weights: &str) {
    let mut is_host = |path: &str| match reader.text(path) {
        Some("cpu") => true,
        Some("none") | None => false,
        Some(_) => {
            reader.mark_unused(path);
            false
        }
    };
    let (states, weights) = (is_host(states), is_host(weights));
    if weights {
        reader.set("parallel.offload", "parameters");
    } else if states {
        reader.set("parallel.offload", "optimizer");
    }
}
