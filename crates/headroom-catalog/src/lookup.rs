//! Models and GPUs by the names that people give them: a hub's id or address, with or without its owner; a card's number.

use super::typed::{Typed, squeezed};
use super::{Gpu, ModelEntry, gpu, gpus, model, models};
use headroom_base::order::sorted;

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
    ("deepseek-r1", "deepseek-v3"),
];

/// How many names are offered where none is meant.
const MOST: usize = 3;

/// The models whose names are most like a text, the nearest first: what to ask about where none is meant.
pub fn models_near(text: &str) -> Vec<&'static str> {
    let text = text.trim_end_matches('/');
    let typed = Typed::new(text.rsplit('/').next().unwrap_or(text));
    let holds = |entry: &&ModelEntry| typed.is_in(entry.id) || typed.is_in(entry.name);
    let held = models().iter().filter(holds).map(|entry| entry.id);
    some(held, models().len()).unwrap_or_else(|| {
        // A family's name counts for most: Qwen4 is no Llama, however much of its name another shares.
        let wanted = family(text);
        alike(models().iter().map(|entry| {
            let same = !wanted.is_empty() && family(entry.id) == wanted;
            let likeness = typed.likeness(entry.id);
            (likeness + if same { 1000 } else { 0 }, entry.id)
        }))
    })
}

/// The GPUs whose names are most like a text: a number that several cards bear (`h100`) has all of those.
pub fn gpus_near(text: &str) -> Vec<&'static str> {
    let typed = Typed::new(text);
    let holds = |gpu: &&Gpu| typed.is_in(gpu.id) || typed.is_in(gpu.name);
    let held = gpus().iter().filter(holds).map(|gpu| gpu.id);
    some(held, gpus().len()).unwrap_or_else(|| {
        let short = gpus().iter().map(Gpu::short_id);
        let mut near = alike(short.map(|id| (typed.likeness(id), id)));
        near.dedup();
        near
    })
}

/// The shortest of those that hold what was typed, where it tells them from others at all.
fn some(held: impl Iterator<Item = &'static str>, all: usize) -> Option<Vec<&'static str>> {
    let held: Vec<&'static str> = held.collect();
    let tells = !held.is_empty() && held.len() < all;
    let held = sorted(held, |one, other| one.len().cmp(&other.len()));
    tells.then(|| held.into_iter().take(MOST).collect())
}

/// The names that are most like a text, and those that are as good as that.
fn alike(names: impl Iterator<Item = (usize, &'static str)>) -> Vec<&'static str> {
    // A third of the pairs: less is chance.
    const LEAST: usize = 333;
    let names = names.filter(|(likeness, _)| *likeness >= LEAST);
    let names = sorted(names, |(one, _), (other, _)| other.cmp(one));
    let best = names.first().map_or(0, |(likeness, _)| *likeness);
    let good = names
        .into_iter()
        .filter(|(likeness, _)| *likeness * 20 >= best * 19);
    good.take(MOST).map(|(_, id)| id).collect()
}

/// The letters that a name begins with.
fn family(name: &str) -> String {
    let name = name.trim().chars();
    let letters: String = name.take_while(char::is_ascii_alphabetic).collect();
    letters.to_ascii_lowercase()
}

/// The GPU meant by a text: its catalogue id or name, what is left of that without its maker's words (`4090`, `H100 SXM`), or
/// what its driver calls it (`NVIDIA H100 80GB HBM3`). Several cards of such a name are not told apart: none is meant.
pub fn gpu_named(text: &str) -> Option<&'static Gpu> {
    let text = text.trim();
    let named = |gpu: &&Gpu| gpu.name.eq_ignore_ascii_case(text);
    if let Some(found) = gpu(text).or_else(|| gpus().iter().find(named)) {
        return Some(found);
    }
    let plain = squeezed(text);
    let driver = BY_DRIVER
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, id)) = driver {
        return gpu(id);
    }
    let one = |same: &dyn Fn(&Gpu) -> bool| {
        let mut same = gpus().iter().filter(|gpu| same(gpu));
        same.next().filter(|_| same.next().is_none())
    };
    let wanted = model_number(text);
    if wanted.is_empty() {
        return None;
    }
    let spelt = |gpu: &Gpu| squeezed(gpu.short_id()) == plain || squeezed(gpu.id) == plain;
    one(&spelt)
        .or_else(|| one(&|gpu| model_number(gpu.short_id()) == wanted))
        .or_else(|| one(&|gpu| has_words(gpu, &wanted)))
}

/// What NVIDIA's driver calls cards whose other forms bear a word more (nvidia-smi's `name`).
const BY_DRIVER: &[(&str, &str)] = &[
    ("nvidia h100 80gb hbm3", "h100-sxm5-80gb"),
    ("nvidia h200", "h200-sxm-141gb"),
    ("nvidia gh200 480gb", "gh200-96gb"),
];

/// Whether a card bears every word, its own number among them: the rest may say its socket and its memory.
fn has_words(gpu: &Gpu, wanted: &[String]) -> bool {
    let number = model_number(gpu.short_id());
    let own = model_number(gpu.id);
    // SXM means SXM5, too.
    let bears = |word: &String| {
        own.iter()
            .any(|own| own == word || word == "sxm" && own.starts_with("sxm"))
    };
    let numbered = number.first().is_some_and(|number| wanted.contains(number));
    numbered && wanted.iter().all(bears)
}

/// The words of a name without those that every card of a maker has.
fn model_number(name: &str) -> Vec<String> {
    const MAKERS: &[&str] = &[
        "nvidia",
        "geforce",
        "rtx",
        "gtx",
        "tesla",
        "quadro",
        "amd",
        "radeon",
        "instinct",
        "generation",
        "edition",
        "gpu",
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
        check("RTX4090", Some("rtx-4090"));
        check("RTX 4090 Laptop GPU", Some("rtx-4090-laptop"));
        // One with less power has a name of its own.
        check("H100 SXM5", Some("h100-sxm5"));
        // As drivers name them.
        check("NVIDIA H100 80GB HBM3", Some("h100-sxm5"));
        check("NVIDIA H100 PCIe", Some("h100-pcie"));
        check("NVIDIA H200", Some("h200-sxm"));
        check("NVIDIA GH200 480GB", Some("gh200"));
        check("NVIDIA A100-SXM4-40GB", Some("a100-sxm4"));
        check("NVIDIA A100 80GB PCIe", Some("a100-pcie"));
        check("Tesla V100-SXM2-32GB", Some("v100-sxm2"));
        check("NVIDIA RTX A6000", Some("rtx-a6000"));
        check("NVIDIA RTX 6000 Ada Generation", Some("rtx-6000-ada"));
        check("Quadro RTX 6000", Some("quadro-rtx-6000"));
        check("AMD Instinct MI300X", Some("mi300x"));
        check("h100-80gb-sxm", Some("h100-sxm5"));
        // Which of them?
        check("h100", None);
        check("a100 40gb", None);
        check("80gb", None);
        check("no such card", None);
        check("rtx", None);
        check("", None);
    }

    #[test]
    fn what_is_asked_has_the_typed_words() {
        #[track_caller]
        fn check(near: Vec<&str>, expected: &[&str]) {
            assert_eq!(near, expected);
        }
        check(
            gpus_near("h100"),
            &["h100-nvl-94gb", "h100-pcie-80gb", "h100-sxm5-80gb"],
        );
        check(
            gpus_near("a100-40gb"),
            &["a100-pcie-40gb", "a100-sxm4-40gb"],
        );
        check(gpus_near("rtx-4091"), &["rtx-4090"]);
        check(gpus_near("warp drive"), &[]);
        check(models_near("sdxl"), &["sdxl-unet", "openclip-bigg-text"]);
        check(
            models_near("flux"),
            &["flux.1-dev", "flux.1-schnell", "t5-xxl-encoder"],
        );
        check(
            models_near("mistral-7b-instruct"),
            &["mistral-7b-v0.1", "mistral-7b-v0.3"],
        );
        check(models_near(""), &[]);
    }
}
