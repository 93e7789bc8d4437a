//! Vocabularies by the tokenizer's name, for networks whose embedding a tokenizer decides.

/// The end of a tokenizer's name or file, and the tokens that `len(tokenizer)` counts.
const KNOWN: &[(&str, u64)] = &[
    ("20b_tokenizer.json", 50_277),
    ("gpt-neox-20b", 50_277),
    ("gpt2-vocab.json", 50_257),
    ("gpt2", 50_257),
    ("bert-large-cased-vocab.txt", 28_996),
    ("bert-base-cased-vocab.txt", 28_996),
    ("bert-large-uncased-vocab.txt", 30_522),
    ("llama-2-7b-hf", 32_000),
    ("llama-2-13b-hf", 32_000),
    ("llama-2-70b-hf", 32_000),
    ("meta-llama-3-8b", 128_256),
    ("meta-llama-3.1-8b", 128_256),
    ("llama-3.1-8b", 128_256),
    ("llama-3.1-8b-instruct", 128_256),
    ("llama-3.2-1b", 128_256),
    ("mistral-7b-v0.1", 32_000),
    ("mixtral-8x7b-v0.1", 32_000),
    ("olmo-2-1124-7b-sft", 100_278),
    ("olmo-2-1124-7b", 100_278),
];

/// The tokens of a tokenizer; `None` if it is not known.
pub fn vocabulary(name: &str) -> Option<u64> {
    let lower = name.to_ascii_lowercase();
    let last = lower.trim_end_matches('/').rsplit('/').next()?;
    let (_, size) = KNOWN.iter().find(|(known, _)| *known == last)?;
    Some(*size)
}

/// Rounded up so that it divides: Megatron's and GPT-NeoX's padding of the embedding.
pub fn padded(size: u64, multiple: u64) -> u64 {
    size.div_ceil(multiple.max(1))
        .saturating_mul(multiple.max(1))
}
