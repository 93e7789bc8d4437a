//! What a script says to transformers' trainer, or to one of TRL's.

use super::call::Call;
use headroom_base::document::Document;

/// The file of keys that says the same as the calls of a script around transformers' trainer.
pub fn document(
    calls: &[Call],
    model: &Call,
    config: Option<&Call>,
    trainer: Option<&Call>,
) -> Document {
    const OF_THE_MODEL: &[&str] = &[
        "torch_dtype",
        "dtype",
        "attn_implementation",
        "load_in_4bit",
    ];
    let mut document = Document::new();
    let named = model.get("pretrained_model_name_or_path");
    let named = named.or_else(|| model.get("model_name"));
    // A name that only running the script would tell is asked for.
    let unknown = Document::from("");
    let name = named.or(model.positional.first()).unwrap_or(&unknown);
    document = document.with("model_name_or_path", name.clone());
    let mut add = |key: &str, value: &Document| {
        if document.get(key).is_none() {
            document = std::mem::take(&mut document).with(key, value.clone());
        }
    };
    for key in OF_THE_MODEL {
        if let Some(value) = model.get(key) {
            add(key, value);
        }
    }
    for (key, value) in config.into_iter().flat_map(|config| &config.named) {
        add(key, value);
    }
    for key in ["max_seq_length", "packing"] {
        if let Some(value) = trainer.and_then(|trainer| trainer.get(key)) {
            add(key, value);
        }
    }
    if let Some(lora) = calls.iter().rev().find(|call| call.is("LoraConfig")) {
        add("use_peft", &Document::Bool(true));
        for (to, from) in [
            ("lora_r", "r"),
            ("lora_dropout", "lora_dropout"),
            ("lora_target_modules", "target_modules"),
            ("lora_exclude_modules", "exclude_modules"),
            ("lora_modules_to_save", "modules_to_save"),
        ] {
            if let Some(value) = lora.get(from) {
                add(to, value);
            }
        }
    }
    if let Some(bits) = calls
        .iter()
        .rev()
        .find(|call| call.is("BitsAndBytesConfig"))
    {
        for key in [
            "load_in_4bit",
            "bnb_4bit_use_double_quant",
            "bnb_4bit_quant_type",
        ] {
            if let Some(value) = bits.get(key) {
                add(key, value);
            }
        }
    }
    document
}
