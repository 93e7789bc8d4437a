//! A name taken apart into words, and the words that leave a network as it is.

/// Longest name that is read.
const LONGEST: usize = 200;

/// What joins a number's two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    Dot,
    /// As `internlm2-1_8b` is written.
    Underscore,
    /// As `llama-3-1-8b` is written.
    Dash,
}

/// The words of a name in each way that its separators can be meant, the likeliest first.
pub(super) fn readings(name: &str) -> Vec<Vec<String>> {
    let name: String = name
        .chars()
        .take(LONGEST)
        .map(|c| {
            if c == '×' {
                'x'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    let mut all = vec![split(&name, Joint::Dot)];
    for joint in [Joint::Underscore, Joint::Dash] {
        let words = split(&name, joint);
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all
}

fn split(name: &str, joint: Joint) -> Vec<String> {
    let bytes = name.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let single = |at: usize| {
        !digit(at.checked_sub(2)) && !bytes.get(at + 2).is_some_and(u8::is_ascii_alphanumeric)
    };
    let mut words = vec![String::new()];
    for (at, byte) in bytes.iter().enumerate() {
        let between = digit(at.checked_sub(1)) && digit(Some(at + 1));
        let joins = match byte {
            b'.' => between,
            b'_' => between && joint == Joint::Underscore,
            b'-' | b' ' => between && joint == Joint::Dash && single(at),
            _ => false,
        };
        match words.last_mut() {
            Some(word) if byte.is_ascii_alphanumeric() => word.push(char::from(*byte)),
            Some(word) if joins => word.push('.'),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The words as one key: `qwen2.5 7b`, `Qwen-2.5-7B` and `qwen2.5-7b` have the same.
pub(super) fn joined<T: AsRef<str>>(words: &[T]) -> String {
    let mut key = String::new();
    for word in words {
        let word = word.as_ref();
        let digits = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        if digits(key.as_bytes().last()) && digits(word.as_bytes().first()) {
            key.push('-');
        }
        key.push_str(word);
    }
    key
}

/// How much of a name is left out before it is compared.
pub(super) const LEVELS: u8 = 4;

/// The words that are left at a level: 0 all; from 1 none of tuning, formats and makers; from 2 no dates and lengths; from 3 no
/// `base` beside a size or date. The place of each in the name comes with it.
pub(super) fn kept(words: &[String], level: u8) -> Vec<(usize, &str)> {
    // The base of a release bears its date: `Mistral-Nemo-Base-2407`, of which there is an `Instruct-2407`.
    let sized = words.iter().any(|word| is_size(word) || is_date(word));
    let drop = |(at, word): &(usize, &str)| {
        level >= 1
            && (is_tuning(word) || FORMAT.contains(word) || *at == 0 && MAKERS.contains(word))
            || level >= 2 && (is_date(word) || is_length(word))
            || level >= 3 && sized && *word == "base"
    };
    let all = words.iter().map(String::as_str).enumerate();
    let left: Vec<(usize, &str)> = all.clone().filter(|word| !drop(word)).collect();
    // A name of such words alone is a name.
    if left.is_empty() { all.collect() } else { left }
}

/// Whether training that leaves every size as it is gave a name this word.
pub(super) fn is_tuning(word: &str) -> bool {
    const TUNED: &[&str] = &[
        "abliterated",
        "aligned",
        "chat",
        "cpo",
        "dapo",
        "distilabel",
        "dpo",
        "fft",
        "finetune",
        "finetuned",
        "finetuning",
        "ft",
        "full",
        "grpo",
        "gspo",
        "inst",
        "instruct",
        "instruction",
        "ipo",
        "it",
        "kto",
        "lora",
        "merged",
        "orpo",
        "ppo",
        "pt",
        "qlora",
        "reasoning",
        "reward",
        "rl",
        "rlaif",
        "rlhf",
        "rloo",
        "rm",
        "safeguard",
        "sft",
        "simplerl",
        "simpo",
        "think",
        "thinking",
        "tuned",
        "uncensored",
    ];
    TUNED.binary_search(&word).is_ok()
}

/// Words of formats, releases and folders.
const FORMAT: &[&str] = &[
    "bf16",
    "best",
    "bfloat16",
    "checkpoint",
    "ckpt",
    "deduped",
    "dequantized",
    "diffusers",
    "final",
    "float16",
    "fp16",
    "fp32",
    "hf",
    "intermediate",
    "latest",
    "model",
    "official",
    "original",
    "preview",
    "pretrained",
    "qat",
    "rope",
    "sharded",
    "step",
    "transformers",
    "unquantized",
    "unsloth",
    "weights",
    "ms",
    "ra",
    "tv",
    "a1",
    "a2",
    "a3",
    "augreg",
    "fb",
    "in1k",
    "in12k",
    "in21k",
    "in22k",
];

/// Owners that are written before a name.
const MAKERS: &[&str] = &[
    "alibaba",
    "eleutherai",
    "facebook",
    "google",
    "meta",
    "microsoft",
    "mistralai",
    "openai",
];

/// Words of another network than the one that a name begins with.
const CHANGED: &[&str] = &[
    "audio",
    "bitnet",
    "canny",
    "chinese",
    "control",
    "controlnet",
    "depth",
    "distil",
    "distill",
    "distilled",
    "draft",
    "eagle",
    "eagle3",
    "embed",
    "embedding",
    "embeddings",
    "expanded",
    "experts",
    "extended",
    "fill",
    "flash",
    "half",
    "hybrid",
    "inpaint",
    "inpainting",
    "ja",
    "japanese",
    "ko",
    "korean",
    "large",
    "layers",
    "lite",
    "mamba",
    "medium",
    "medusa",
    "micro",
    "mini",
    "minitron",
    "moe",
    "multimodal",
    "nano",
    "omni",
    "prune",
    "pruned",
    "random",
    "redux",
    "refiner",
    "reranker",
    "slim",
    "small",
    "sparse",
    "speculator",
    "super",
    "tiny",
    "ultra",
    "upscaled",
    "vision",
    "vl",
    "vlm",
    "vocab",
    "width",
    "xl",
    "xxl",
    "zh",
];

/// Whether a word is of a format or a release.
pub(super) fn is_format(word: &str) -> bool {
    FORMAT.contains(&word)
}

/// Whether a word may follow a network's name without changing the network. After a word of tuning a number is the tuning's.
pub(super) fn is_free(word: &str, tuned: bool) -> bool {
    let number = word
        .trim_start_matches('v')
        .starts_with(|c: char| c.is_ascii_digit());
    // The side of images is a size of the network.
    let side = matches!(
        word,
        "224" | "256" | "336" | "384" | "448" | "512" | "768" | "896"
    );
    !is_size(word) && !side && !CHANGED.contains(&word) && (tuned || !number || is_length(word))
}

/// `8b`, `1.5b`, `135m`, `8x7b`, `a3b`.
pub(super) fn is_size(word: &str) -> bool {
    let word = word.strip_prefix('a').unwrap_or(word);
    let Some(number) = word.strip_suffix(['b', 'm']) else {
        return false;
    };
    let mut parts = number.split(['x', '.']);
    parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The parameters that a word says.
pub(super) fn size(word: &str) -> Option<f64> {
    let (number, unit) = match word.as_bytes().last()? {
        b'b' => (word.strip_suffix('b')?, 1e9),
        b'm' => (word.strip_suffix('m')?, 1e6),
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number * unit)
}

/// A release's date: `2507`, `0528`, `20241022`.
fn is_date(word: &str) -> bool {
    let number =
        |range: std::ops::Range<usize>| word.get(range).and_then(|part| part.parse::<u32>().ok());
    let month = |range| number(range).is_some_and(|month| (1..=12).contains(&month));
    let year = |range| number(range).is_some_and(|year| (22..=29).contains(&year));
    let day = |range| number(range).is_some_and(|day| (1..=31).contains(&day));
    match word.len() {
        4 => year(0..2) && month(2..4) || month(0..2) && day(2..4),
        8 => word.starts_with("20") && year(2..4) && month(4..6) && day(6..8),
        _ => false,
    }
}

/// A context's length, or a number of tokens that were trained on: `128k`, `3t`.
fn is_length(word: &str) -> bool {
    word.strip_suffix(['k', 't'])
        .is_some_and(|number| number.parse::<f64>().is_ok())
}
