//! Models and GPUs by the names that people give them: a hub's id or address, with or without its owner; a card's number.

use super::{Gpu, ModelEntry, gpu, gpus, model, models};
use crate::order::sorted;

/// The model meant by a text: its catalogue id or name, its Hugging Face id or address, or a variant of that with the same
/// shapes, such as `unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit`.
pub fn model_named(text: &str) -> Option<&'static ModelEntry> {
    let text = text.trim();
    let named = |entry: &&ModelEntry| entry.name.eq_ignore_ascii_case(text);
    // Not every entry is at the hub.
    let by_hub = |same: &dyn Fn(&str) -> bool| {
        let mut entries = models().iter();
        entries.find(|entry| !entry.hf_id.is_empty() && same(entry.hf_id))
    };
    let wanted = without_tuning(text);
    let base = wanted.strip_suffix("-base").unwrap_or(&wanted);
    let same = SAME_SIZES.iter().find(|(other, _)| *other == wanted);
    model(text)
        .or_else(|| models().iter().find(named))
        .or_else(|| by_hub(&|id| id.eq_ignore_ascii_case(text)))
        .or_else(|| by_hub(&|id| without_tuning(id) == wanted))
        .or_else(|| by_hub(&|id| without_tuning(id) == base))
        .or_else(|| model(base).filter(|_| !base.is_empty()))
        .or_else(|| same.and_then(|(_, id)| model(id)))
        .or_else(|| {
            // A run's folder often bears its model's name: `saves/qwen3-4b/full/sft`.
            let mut folders = text.split('/').rev().skip(1);
            folders.find_map(|folder| model(&without_tuning(folder)))
        })
}

/// Names of models whose sizes are another's.
const SAME_SIZES: &[(&str, &str)] = &[
    ("mistral-7b-v0.2", "mistral-7b-v0.1"),
    ("tinyllama-v1.1", "tinyllama-1.1b"),
];

/// The models whose names are most like a text, the nearest first: what to ask about where none is meant.
pub fn models_near(text: &str) -> Vec<&'static str> {
    const MOST: usize = 3;
    let words = |name: &str| -> Vec<String> {
        let name = name.to_ascii_lowercase();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        words
            .filter(|word| !word.is_empty())
            .map(String::from)
            .collect()
    };
    let wanted = words(
        text.trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(text),
    );
    // A family's name counts for most: Qwen4 is no Llama.
    let family = |words: &[String]| -> String {
        let first = words.first().map_or("", String::as_str);
        first
            .chars()
            .take_while(char::is_ascii_alphabetic)
            .collect()
    };
    let wanted_family = family(&wanted);
    let shared = |entry: &&ModelEntry| {
        let own = words(entry.id);
        let same_family = !wanted_family.is_empty() && family(&own) == wanted_family;
        let alike = own.iter().filter(|word| wanted.contains(word)).count();
        alike + if same_family { 10 } else { 0 }
    };
    let near = models().iter().filter(|entry| shared(entry) > 0);
    let mut near: Vec<&'static ModelEntry> = near.collect();
    near = sorted(near, |a, b| shared(b).cmp(&shared(a)));
    near.truncate(MOST);
    near.into_iter().map(|entry| entry.id).collect()
}

/// The GPU meant by a text: its catalogue id or name, or what is left of that without its maker's words (`4090`, `H100 SXM`).
/// Several cards that differ in memory are not told apart by such a name: none is meant.
pub fn gpu_named(text: &str) -> Option<&'static Gpu> {
    let named = |gpu: &&Gpu| gpu.name.eq_ignore_ascii_case(text.trim());
    if let Some(found) = gpu(text.trim()).or_else(|| gpus().iter().find(named)) {
        return Some(found);
    }
    let wanted = model_number(text);
    let mut same = gpus()
        .iter()
        .filter(|gpu| !wanted.is_empty() && model_number(gpu.short_id()) == wanted);
    same.next().filter(|_| same.next().is_none())
}

/// The words of a name without those that every card of a maker has.
fn model_number(name: &str) -> Vec<String> {
    const MAKERS: &[&str] = &[
        "nvidia", "geforce", "rtx", "gtx", "tesla", "quadro", "amd", "radeon", "instinct",
    ];
    let name = name.to_ascii_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty() && !MAKERS.contains(word))
        .map(String::from)
        .collect()
}

/// Without the owner and the words that say how weights were tuned or stored, not how many there are.
fn without_tuning(name: &str) -> String {
    const TUNED: &[&str] = &[
        "meta",
        "instruct",
        "chat",
        "it",
        "hf",
        "unsloth",
        "bnb",
        "4bit",
        "thinking",
        "2507",
        "0324",
        "fp16",
        "bf16",
        "deduped",
        "dequantized",
        "safeguard",
    ];
    let name = name.trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.trim().to_ascii_lowercase().replace([' ', '_'], "-");
    let words: Vec<&str> = name
        .split('-')
        .filter(|word| !TUNED.contains(word))
        .collect();
    // The base of a release bears its date: `Mistral-Nemo-Base-2407`, of which there is an `Instruct-2407`.
    let dated = |at: usize| {
        let next: Option<&&str> = words.get(at + 1);
        next.is_some_and(|next| next.len() == 4 && next.bytes().all(|b| b.is_ascii_digit()))
    };
    let kept = words.iter().enumerate();
    let kept = kept.filter(|(at, word)| **word != "base" || !dated(*at));
    let kept: Vec<&str> = kept.map(|(_, word)| *word).collect();
    kept.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_the_sizes_of_their_model() {
        #[track_caller]
        fn check(name: &str, expected: Option<&str>) {
            assert_eq!(model_named(name).map(|model| model.id), expected, "{name}");
        }
        check("llama-3.1-8b", Some("llama-3.1-8b"));
        check(
            "mistralai/Mistral-Nemo-Instruct-2407",
            Some("mistral-nemo-12b"),
        );
        check(
            "unsloth/Mistral-Small-24B-Instruct-2501-bnb-4bit",
            Some("mistral-small-24b"),
        );
        check("meta-llama/Meta-Llama-3-8B-Instruct", Some("llama-3-8b"));
        check("NousResearch/Llama-3.2-1B", Some("llama-3.2-1b"));
        check(
            "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit",
            Some("llama-3.1-8b"),
        );
        check("NousResearch/Llama-2-7b-chat-hf", Some("llama-2-7b"));
        check("Qwen/Qwen3-8B-Base", Some("qwen3-8b"));
        check("./models/Qwen2.5-7B-Instruct/", Some("qwen2.5-7b"));
        check("google/gemma-2-9b-it", Some("gemma-2-9b"));
        check(
            "https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct",
            Some("llama-3.1-8b"),
        );
        check("Llama 3.1 8B", Some("llama-3.1-8b"));
        check("resnet50", Some("resnet-50"));
        check(
            "mistralai/Mistral-7B-Instruct-v0.3",
            Some("mistral-7b-v0.3"),
        );
        for other in [
            "",
            "/",
            "-",
            "base",
            "it",
            "chat",
            "my/model",
            "Llama-3.2-1B-Vision",
        ] {
            check(other, None);
        }
        // Each is found by the hub's name for it.
        for entry in models().iter().filter(|model| !model.hf_id.is_empty()) {
            let found = model_named(entry.hf_id).map(|model| model.hf_id);
            assert!(
                found.is_some_and(|id| id.eq_ignore_ascii_case(entry.hf_id)),
                "{}",
                entry.id
            );
        }
    }

    #[test]
    fn a_card_is_found_by_its_number() {
        #[track_caller]
        fn check(name: &str, expected: Option<&str>) {
            assert_eq!(gpu_named(name).map(Gpu::short_id), expected, "{name}");
        }
        check("4090", Some("rtx-4090"));
        check("RTX 4090", Some("rtx-4090"));
        check("NVIDIA GeForce RTX 4090", Some("rtx-4090"));
        // One with less power has a name of its own.
        check("H100 SXM5", Some("h100-sxm5"));
        check("no such card", None);
        check("rtx", None);
        check("", None);
    }
}
