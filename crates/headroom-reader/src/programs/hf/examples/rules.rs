//! What the code of libraries' examples decides besides their flags.

use super::EXAMPLE;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::programs::hf::{adapters, precision};
use crate::words::{
    Adapter, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

pub(super) fn on(flags: &Keys, key: &str) -> bool {
    flags.switch(key).value() == Some(&true)
}

/// Weights as `from_pretrained` leaves them, and the sizes of images.
pub(super) fn plain(flags: &Keys, facts: &mut Facts) {
    let size = ["image_size", "image_square_size", "image_height"]
        .iter()
        .fold(Fact::Unsaid, |fact: Fact<u64>, key| {
            fact.or(flags.whole(key))
        });
    if size.is_known() {
        facts.height = size.clone();
        facts.width = size;
    }
    if on(flags, "freeze_feature_encoder") || on(flags, "freeze_encoder") {
        let part = "all but the frozen encoder";
        facts.trained = Fact::read(Trained::Part(part.into()), "freeze_encoder");
    }
    facts.packing = std::mem::take(&mut facts.packing)
        .or_default(facts.task.value() == Some(&Task::Pretraining), EXAMPLE);
}

/// One copy on each device, whatever their number; weights stay fp32.
pub(super) fn jax(flags: &Keys, facts: &mut Facts) {
    plain(flags, facts);
    facts.gpus = Fact::Unsaid;
    facts.strategy = Fact::default_of(Strategy::from(DataParallel::Ddp), "JAX's pmap");
    facts.weights = Fact::default_of(Weights::Fp32, "Flax");
    let short = flags
        .text("dtype")
        .value()
        .is_some_and(|name| name == "bfloat16");
    let compute = if short { Compute::Bf16 } else { Compute::Fp32 };
    facts.compute = Fact::default_of(compute, "Flax's dtype");
    facts
        .notes
        .push("it is a script of JAX; memory is estimated as PyTorch's".into());
}

pub(super) fn texts(flags: &Keys, pair: bool) -> Fact<u64> {
    let query = flags.whole("query_max_len");
    let passage = flags.whole("passage_max_len");
    match (query.value(), passage.value()) {
        (Some(query), Some(passage)) => {
            let length = if pair {
                query.saturating_add(*passage)
            } else {
                *query.max(passage)
            };
            Fact::follows(length, "query_max_len and passage_max_len")
        }
        _ => Fact::Unsaid,
    }
}

pub(super) fn group(flags: &Keys, facts: &mut Facts) {
    let size = flags
        .whole("train_group_size")
        .or_default(8, "train_group_size");
    if let Some(size) = size.value() {
        facts.not_modelled.push(format!(
            "train_group_size {size}: each query of the batch has {size} passages"
        ));
    }
    facts.packing = Fact::follows(false, "pairs are not packed");
    if on(flags, "grad_cache") {
        let what = "grad_cache: a batch is encoded in parts of gc_q_chunk_size and gc_p_chunk_size";
        facts.not_modelled.push(what.into());
    }
}

/// Queries and passages are encoded apart.
pub(super) fn retriever(flags: &Keys, facts: &mut Facts) {
    facts.sequence = texts(flags, false);
    group(flags, facts);
    by_engine(facts);
}

/// Each query stands in one sequence with each of its passages.
pub(super) fn pairs(flags: &Keys, facts: &mut Facts) {
    facts.sequence = texts(flags, true);
    group(flags, facts);
    by_engine(facts);
}

pub(super) fn by_engine(facts: &mut Facts) {
    let sharded = facts
        .strategy
        .value()
        .is_some_and(|strategy| strategy.data >= DataParallel::Zero0);
    if sharded {
        precision::settle(facts, "DeepSpeed");
    }
}

pub(super) fn tevatron(flags: &Keys, facts: &mut Facts) {
    retriever(flags, facts);
    // `torch_dtype` follows `bf16` and `fp16` (`driver/train.py`).
    let weights = match facts.compute.value() {
        Some(Compute::Bf16 | Compute::Bf16Autocast) => Weights::Bf16,
        Some(Compute::Fp16 | Compute::Fp16Autocast) => Weights::Fp16,
        _ => Weights::Fp32,
    };
    facts.weights = std::mem::take(&mut facts.weights).or_default(weights, "tevatron's driver");
    lora(flags, facts);
}

pub(super) fn reranker(flags: &Keys, facts: &mut Facts) {
    facts.sequence = flags.whole("rerank_max_len");
    group(flags, facts);
    by_engine(facts);
    lora(flags, facts);
}

pub(super) fn lora(flags: &Keys, facts: &mut Facts) {
    if on(flags, "lora") || flags.text("lora_name_or_path").is_known() {
        adapters::lora(flags, facts, &["lora_r"], 8, "tevatron's lora_r");
        facts.trained = Fact::follows(Trained::Adapters, "lora");
    } else {
        facts.adapter = Fact::follows(None, "no lora");
        facts.trained = Fact::follows(Trained::All, "no lora");
    }
}

/// Whisper hears 30 seconds at a time, and writes at most 448 tokens.
pub(super) fn whisper(facts: &mut Facts) {
    facts.sequence = std::mem::take(&mut facts.sequence)
        .or_follows(448, "Whisper's decoder; its encoder hears 30 s");
}

pub(super) fn whisper_int8(flags: &Keys, facts: &mut Facts) {
    const NAME: &str = "PEFT's Whisper example";
    whisper(facts);
    facts.weights = Fact::default_of(Weights::Int8, NAME);
    facts.base_dtype = facts.weights.clone();
    facts.optimizer = Fact::default_of("torch AdamW".into(), NAME);
    // `prepare_model_for_kbit_training` turns it on.
    facts.checkpointing = Fact::default_of(Checkpointing::On, NAME);
    facts.evaluation = Fact::default_of(true, NAME);
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    if on(flags, "use_adalora") {
        facts.adapter = Fact::read(Some(Adapter::Adalora), "use_adalora");
        facts.rank = flags.whole("init_r");
        let all = ["k_proj", "q_proj", "v_proj", "out_proj", "fc1", "fc2"];
        facts.targets = Fact::default_of(owned(&all), NAME);
    } else {
        facts.adapter = Fact::default_of(Some(Adapter::Lora), NAME);
        facts.rank = flags.whole("r");
        facts.targets = Fact::default_of(owned(&["q_proj", "v_proj"]), NAME);
    }
    facts.trained = Fact::follows(Trained::Adapters, "use_peft");
}

pub(super) fn frozen(flags: &Keys, facts: &mut Facts) {
    facts.adapter = Fact::follows(None, "no adapter");
    let part = if on(flags, "freeze_encoder") {
        Trained::Part("decoder (encoder frozen)".into())
    } else if on(flags, "freeze_decoder") {
        Trained::Part("encoder (decoder frozen)".into())
    } else {
        Trained::All
    };
    facts.trained = Fact::read(part, "freeze_encoder");
    if let Some(teacher) = flags.text("teacher_model_name_or_path").value() {
        facts
            .not_modelled
            .push(format!("the teacher {teacher}, frozen, is on each GPU"));
    }
    facts.packing = Fact::follows(false, "each row is one piece of audio");
}

pub(super) fn distilled(flags: &Keys, facts: &mut Facts) {
    whisper(facts);
    frozen(flags, facts);
    // The student is loaded without a type; the script turns autocast on for its own `--dtype`.
    facts.weights = Fact::default_of(Weights::Fp32, "run_distillation.py");
    let compute = match flags.text("dtype").value().map(String::as_str) {
        Some("bfloat16") => Compute::Bf16Autocast,
        Some("float16") => Compute::Fp16Autocast,
        _ => Compute::Fp32,
    };
    facts.compute = Fact::read(compute, "dtype");
}

pub(super) fn distilled_flax(flags: &Keys, facts: &mut Facts) {
    whisper(facts);
    jax(flags, facts);
    frozen(flags, facts);
    facts.offload = Fact::default_of(Offload::None, "JAX's pmap");
    let full = flags
        .text("precision")
        .value()
        .is_some_and(|precision| precision == "full");
    if !full {
        facts.compute = Fact::read(Compute::Bf16, "precision");
    }
    if flags
        .text("precision")
        .value()
        .is_some_and(|precision| precision == "full_mixed")
    {
        facts
            .not_modelled
            .push("precision full_mixed: gradients and Adam's state are in bf16".into());
    }
}
