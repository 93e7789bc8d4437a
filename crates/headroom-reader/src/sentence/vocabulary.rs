//! The words of sentences: what each phrase says, and which numbers belong to which word.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::phrases::{PHRASES, STOP};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Task, Wanted, Weights,
};

/// What a phrase says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Say {
    Full,
    Adapter(Adapter),
    /// How a frozen base, or all weights, are stored.
    Weights(Weights),
    Compute(Compute),
    /// Autocast in a type that the card decides.
    MixedPrecision,
    Task(Task),
    Data(DataParallel),
    /// DeepSpeed, with a stage that may be said elsewhere.
    DeepSpeed,
    Offload(Offload),
    Trainer(&'static str),
    Optimizer(&'static str),
    Checkpointing(Checkpointing),
    Attention(Attention),
    Liger,
    Compile,
    Packing,
    /// A part that is trained, the rest frozen.
    Part(&'static str),
    Targets(&'static str),
    Wanted(Wanted),
    /// The optimizer runs in backward.
    InBackward,
    Ema,
    SequenceParallel,
    /// Sets nothing that the facts have; named among what is not modelled.
    Unmodelled(&'static str),
    Vllm,
    TextEncoder,
    CachedLatents,
    Number(Number),
    /// GPUs that are spread over nodes, all of them counted.
    Across,
    /// Its free GPU is a T4.
    Colab,
    /// A machine of eight.
    Dgx,
    /// `no liger`
    Denied(Switch),
    /// Understood, without effect on memory.
    Nothing,
}

/// What can be said to be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    Liger,
    Compile,
    Packing,
}

/// What a number beside a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Length,
    Prompt,
    Completion,
    Batch,
    GlobalBatch,
    Accumulation,
    Rank,
    Samples,
    Frames,
    /// Both sides of an image.
    Pixels,
    Width,
    Height,
    Nodes,
    Gpus,
    PerNode,
    Tensor,
    Pipeline,
    Context,
    Expert,
    /// Copies of the model.
    Data,
    BlocksSwapped,
    /// Of no effect on memory: epochs, a rate, alpha.
    Nothing,
}

impl Number {
    /// Whether the number stands before its word rather than behind: `1024 tokens`, not `batch 4`.
    pub fn is_unit(self, word: &str) -> bool {
        const UNITS: &[&str] = &[
            "tokens",
            "token",
            "tok",
            "toks",
            "residues",
            "residue",
            "aa",
            "amino",
            "base",
            "bp",
            "long",
            "context",
            "ctx",
            "word",
            "generations",
            "completions",
            "responses",
            "rollouts",
            "candidates",
            "epochs",
            "epoch",
            "steps",
            "samples",
            "examples",
        ];
        let counted = matches!(
            self,
            Self::Nodes | Self::Gpus | Self::Frames | Self::PerNode | Self::BlocksSwapped
        );
        counted
            || UNITS.contains(&word)
            || matches!(
                word,
                "px" | "pixels" | "pixel" | "p" | "s" | "images" | "img"
            )
    }
}

/// Each phrase in atoms, with what it says: the longest first.
pub(super) fn phrases() -> &'static [(Vec<&'static str>, Say)] {
    static ALL: OnceLock<Vec<(Vec<&'static str>, Say)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for (say, texts) in PHRASES {
            for text in texts.split('|') {
                all.push((text.split(' ').collect::<Vec<_>>(), *say));
            }
        }
        all.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
        all
    })
}

fn words() -> &'static BTreeSet<&'static str> {
    static ALL: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    ALL.get_or_init(|| {
        let of_phrases = phrases()
            .iter()
            .flat_map(|(words, _)| words.iter().copied());
        of_phrases
            .chain(STOP.split(' '))
            .chain(FAMILIES.iter().copied())
            .collect()
    })
}

/// Families' words that are spelt wrong often enough; no word that is near another of the field's.
const FAMILIES: &[&str] = &[
    "llama",
    "mistral",
    "mixtral",
    "gemma",
    "deepseek",
    "falcon",
    "vicuna",
    "pythia",
    "whisper",
    "stable",
    "diffusion",
    "deberta",
    "roberta",
    "distilbert",
    "modernbert",
    "tinyllama",
    "smollm",
    "starcoder",
    "granite",
    "starling",
    "zephyr",
    "efficientnet",
    "resnet",
    "convnext",
    "segformer",
    "qwen",
    "coder",
    "instruct",
    "vision",
    "laptop",
    "super",
    "blackwell",
    "instinct",
    "radeon",
];

/// Whether a word has no content.
pub(super) fn is_stop(word: &str) -> bool {
    static ALL: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    ALL.get_or_init(|| STOP.split(' ').collect()).contains(word)
}

pub(super) fn is_known(word: &str) -> bool {
    words().contains(word)
}

/// Whether a word says something by itself, or nothing.
pub(super) fn is_alone(word: &str) -> bool {
    is_stop(word)
        || phrases()
            .iter()
            .any(|(words, _)| words.as_slice() == [word])
}

/// The known word that is one slip from a longer one.
pub(super) fn nearest(word: &str) -> Option<&'static str> {
    match word {
        "tis" => return Some("ti"),
        "lama" => return Some("llama"),
        "quen" | "qwn" => return Some("qwen"),
        "finetuen" | "finteune" => return Some("finetune"),
        _ => {}
    }
    // A short word is one slip from many.
    if word.len() < 5 || word.len() > 24 || headroom_catalog::begins_a_name(word) {
        return None;
    }
    let near = |known: &&&'static str| known.len() >= 5 && slip(word.as_bytes(), known.as_bytes());
    words().iter().find(near).copied()
}

/// Whether two words differ by one letter that is missing, added, wrong or swapped with its neighbour.
fn slip(one: &[u8], other: &[u8]) -> bool {
    let same = one
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count();
    let rest = |word: &[u8], from: usize| word.get(from..).unwrap_or_default().to_vec();
    let (tail, known) = (rest(one, same), rest(other, same));
    let (from, to) = (
        tail.get(1..).unwrap_or_default(),
        known.get(1..).unwrap_or_default(),
    );
    let swapped = tail.len() >= 2
        && known.len() >= 2
        && tail.first() == known.get(1)
        && tail.get(1) == known.first()
        && tail.get(2..) == known.get(2..);
    from == to && !tail.is_empty() && !known.is_empty()
        || from == known.as_slice() && !tail.is_empty()
        || tail.as_slice() == to && !known.is_empty()
        || swapped
}
