//! Models that torchtune has components for.

/// The catalogue's models, and torchtune's module, builder, tokenizer and checkpoint type (0.6.1).
pub(super) const MODELS: &[(&str, &str, &str, Tokenizer, &str)] = &[
    (
        "llama-2-7b",
        "llama2",
        "llama2_7b",
        Tokenizer::SentencePiece("llama2.llama2_tokenizer"),
        "LLAMA2",
    ),
    (
        "llama-2-13b",
        "llama2",
        "llama2_13b",
        Tokenizer::SentencePiece("llama2.llama2_tokenizer"),
        "LLAMA2",
    ),
    (
        "llama-2-70b",
        "llama2",
        "llama2_70b",
        Tokenizer::SentencePiece("llama2.llama2_tokenizer"),
        "LLAMA2",
    ),
    ("llama-3-8b", "llama3", "llama3_8b", LLAMA3, "LLAMA3"),
    ("llama-3-70b", "llama3", "llama3_70b", LLAMA3, "LLAMA3"),
    ("llama-3.1-8b", "llama3_1", "llama3_1_8b", LLAMA3, "LLAMA3"),
    (
        "llama-3.1-70b",
        "llama3_1",
        "llama3_1_70b",
        LLAMA3,
        "LLAMA3",
    ),
    (
        "llama-3.1-405b",
        "llama3_1",
        "llama3_1_405b",
        LLAMA3,
        "LLAMA3",
    ),
    (
        "llama-3.2-1b",
        "llama3_2",
        "llama3_2_1b",
        LLAMA3,
        "LLAMA3_2",
    ),
    (
        "llama-3.2-3b",
        "llama3_2",
        "llama3_2_3b",
        LLAMA3,
        "LLAMA3_2",
    ),
    ("qwen2-0.5b", "qwen2", "qwen2_0_5b", QWEN2, "QWEN2"),
    ("qwen2-1.5b", "qwen2", "qwen2_1_5b", QWEN2, "QWEN2"),
    ("qwen2-7b", "qwen2", "qwen2_7b", QWEN2, "QWEN2"),
    ("qwen2.5-0.5b", "qwen2_5", "qwen2_5_0_5b", QWEN25, "QWEN2"),
    (
        "qwen2.5-1.5b",
        "qwen2_5",
        "qwen2_5_1_5b_base",
        QWEN25,
        "QWEN2",
    ),
    ("qwen2.5-3b", "qwen2_5", "qwen2_5_3b", QWEN25, "QWEN2"),
    ("qwen2.5-7b", "qwen2_5", "qwen2_5_7b_base", QWEN25, "QWEN2"),
    (
        "qwen2.5-14b",
        "qwen2_5",
        "qwen2_5_14b_base",
        QWEN25,
        "QWEN2",
    ),
    (
        "qwen2.5-32b",
        "qwen2_5",
        "qwen2_5_32b_base",
        QWEN25,
        "QWEN2",
    ),
    (
        "qwen2.5-72b",
        "qwen2_5",
        "qwen2_5_72b_base",
        QWEN25,
        "QWEN2",
    ),
    (
        "mistral-7b-v0.1",
        "mistral",
        "mistral_7b",
        Tokenizer::SentencePiece("mistral.mistral_tokenizer"),
        "MISTRAL",
    ),
];

/// The catalogue's id of the model that a builder of torchtune makes.
pub(crate) fn model_of(builder: &str) -> Option<&'static str> {
    let bare = |name: &'static str| name.strip_suffix("_base").unwrap_or(name);
    let asked = builder
        .strip_suffix("_base")
        .or_else(|| builder.strip_suffix("_instruct"));
    let asked = asked.unwrap_or(builder);
    let found = MODELS.iter().find(|(_, _, name, ..)| bare(name) == asked);
    found.map(|(id, ..)| *id)
}

const LLAMA3: Tokenizer = Tokenizer::Tiktoken("llama3.llama3_tokenizer");
const QWEN2: Tokenizer = Tokenizer::Bpe("qwen2.qwen2_tokenizer");
const QWEN25: Tokenizer = Tokenizer::Bpe("qwen2_5.qwen2_5_tokenizer");

/// A tokenizer's component, and which files it reads.
#[derive(Clone, Copy)]
pub(super) enum Tokenizer {
    SentencePiece(&'static str),
    Tiktoken(&'static str),
    Bpe(&'static str),
}
