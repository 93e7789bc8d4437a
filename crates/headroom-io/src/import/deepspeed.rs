//! DeepSpeed's JSON.

use super::Imported;
use super::take::Take;
use headroom_base::document::Document;
use headroom_scenario::Scenario;

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    let marks = ["zero_optimization", "train_micro_batch_size_per_gpu"];
    marks.iter().any(|key| document.get(key).is_some())
}

/// The run with what the file says; of the model and the sequence it says nothing.
pub fn read(document: &Document, run: &Scenario) -> Imported {
    let mut take = Take::new(document);
    take.part_of(run);
    take.copy("train_micro_batch_size_per_gpu", "data.micro_batch");
    take.copy("gradient_accumulation_steps", "training.accumulation");
    take.copy("train_batch_size", "data.global_batch");
    take.clip("gradient_clipping");
    let enabled = |take: &mut Take, key: &str| take.switch(&format!("{key}.enabled")) == Some(true);
    let bf16 = enabled(&mut take, "bf16") || enabled(&mut take, "bfloat16");
    let precision = match (bf16, enabled(&mut take, "fp16")) {
        (true, _) => "amp-bf16",
        (_, true) => "amp-fp16",
        _ => "fp32",
    };
    take.set("training.precision", precision);
    zero(&mut take, "zero_optimization.stage");
    offload(
        &mut take,
        "zero_optimization.offload_optimizer.device",
        "zero_optimization.offload_param.device",
    );
    take.optimizer("optimizer.type", "optimizer.params.");
    take.finish(&[
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
pub(super) fn zero(take: &mut Take, path: &str) {
    let strategy = match take.value(path) {
        Some(Document::Int(0)) => "ddp",
        Some(Document::Int(1)) => "zero1",
        Some(Document::Int(2)) => "zero2",
        Some(Document::Int(3)) => "zero3",
        Some(_) => return take.leave(path),
        None => return,
    };
    take.set("parallel.strategy", strategy);
}

/// What is kept on the host, from the devices of states and of weights.
pub(super) fn offload(take: &mut Take, states: &str, weights: &str) {
    let mut is_host = |path: &str| match take.text(path) {
        Some("cpu") => true,
        Some("none") | None => false,
        Some(_) => {
            take.leave(path);
            false
        }
    };
    let (states, weights) = (is_host(states), is_host(weights));
    if weights {
        take.set("parallel.offload", "parameters");
    } else if states {
        take.set("parallel.offload", "optimizer");
    }
}
