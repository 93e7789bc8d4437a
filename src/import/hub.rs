//! Models by the names that people give them: a hub's, with or without its owner, tuned for talk or not.

use crate::catalog::{self, ModelEntry};

/// The model of the catalogue with this name's sizes: its id, its name at the hub, or a variant of that with the same
/// weights' shapes, such as `unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit`.
pub(super) fn model(name: &str) -> Option<&'static ModelEntry> {
    // Not every entry is at the hub.
    let by = |same: &dyn Fn(&str) -> bool| {
        let mut entries = catalog::models().iter();
        entries.find(|it| !it.hf_id.is_empty() && same(it.hf_id))
    };
    let wanted = plain(name);
    let bare = wanted.strip_suffix("-base").unwrap_or(&wanted);
    catalog::model(name)
        .or_else(|| by(&|id| id.eq_ignore_ascii_case(name)))
        .or_else(|| by(&|id| plain(id) == wanted))
        .or_else(|| by(&|id| plain(id) == bare))
}

/// Without the owner and the words that say how weights were tuned or stored, not how many there are.
fn plain(name: &str) -> String {
    const TUNED: &[&str] = &[
        "meta", "instruct", "chat", "it", "hf", "unsloth", "bnb", "4bit",
    ];
    let name = name.trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split('-').filter(|it| !TUNED.contains(it)).collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_the_sizes_of_their_model() {
        #[track_caller]
        fn check(name: &str, expected: Option<&str>) {
            assert_eq!(model(name).map(|it| it.id), expected, "{name}");
        }
        check("llama-3.1-8b", Some("llama-3.1-8b"));
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
        for entry in catalog::models().iter().filter(|it| !it.hf_id.is_empty()) {
            let found = model(entry.hf_id).map(|it| it.hf_id);
            assert!(
                found.is_some_and(|it| it.eq_ignore_ascii_case(entry.hf_id)),
                "{}",
                entry.id
            );
        }
    }
}
