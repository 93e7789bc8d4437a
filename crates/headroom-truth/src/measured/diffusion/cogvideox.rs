//! cogvideox-factory: training/cogvideox/cogvideox_text_to_video_{lora,sft}.py at 223add1, on latents and prompts that were encoded
//! before. Its tables print what was reserved at most.

use super::{Built, Record, Source, listed, numbers};
use headroom_scenario::{Data, Lora, Optimizer, Precision, Training};

pub(super) const SOURCE: Source = Source {
    recognises,
    network,
    size,
    training,
    libraries: |_| {},
    // Printed before the first validation: in full training a batch of four leaves the same figure whether the optimizer's
    // states are on the card in 8 bits or on the host.
    is_one_step: |record| record.task.starts_with("full"),
};

fn recognises(record: &Record) -> bool {
    record.model.starts_with("thudm/cogvideox")
}

fn network(record: &Record) -> Built {
    listed(if record.model.ends_with("2b") {
        "cogvideox-2b"
    } else {
        "cogvideox-5b"
    })
}

fn size(record: &Record, data: &mut Data) {
    if let [frames, height, width] = numbers(record.image_size.text())[..] {
        (data.frames, data.height, data.width) = (frames, height, width);
    }
}

fn training(record: &Record, training: &mut Training) {
    // `--mixed_precision bf16`; what is trained was kept in fp32 when the tables were made: what they say is there before
    // training grows by four bytes for each adapter's weight, and by the whole network's in full training.
    training.precision = Precision::AmpBf16;
    if let Some(lora) = &mut training.lora {
        training.precision = Precision::AmpBf16OnBf16;
        *lora = Lora {
            rank: numbers(&record.task).first().copied().unwrap_or(64),
            targets: ["to_q", "to_k", "to_v", "to_out.0"].map(Into::into).into(),
            fp32_adapters: true,
            ..lora.clone()
        };
    }
    if record.parallelism.starts_with("deepspeed") {
        // DeepSpeed casts the model itself, adapters and all.
        training.precision = Precision::Bf16;
        if let Some(lora) = &mut training.lora {
            lora.fp32_adapters = false;
        }
    }
    // `--max_grad_norm 1.0` of its shell scripts.
    training.clip = true;
    if record.optimizer.contains("cpuoffloadoptimizer") {
        // torchao steps on the host: each gradient leaves the card as soon as it is complete, and no state is on it.
        training.optimizer = Optimizer::Sgd;
        training.optimizer_in_backward = true;
        training.clip = false;
    }
}
