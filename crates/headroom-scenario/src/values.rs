//! Text of links, files and flags as values, each within bounds.

use super::Irreps;
use headroom_base::order::Map;

/// Longest name of a model, a GPU or a module: bounds what links and files can make the program hold.
pub const LONGEST_NAME: usize = 100;
/// Most entries in a list.
pub const LONGEST_LIST: usize = 64;
/// Largest size a model's dimension may have.
pub const LARGEST_SIZE: u64 = 10_000_000;

/// A whole number; `1_000` reads as people write it in code.
pub(super) fn whole(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    digits.parse().ok()
}

pub(super) fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A version's first two numbers; years go without their century, and a patch release behind them changes nothing here.
pub(super) fn version(text: &str) -> Option<(u8, u8)> {
    let mut parts = text.split('.');
    let (major, minor): (u16, u8) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    // 2026.10 and 26.10 are one version.
    let major = if major < 2000 { major } else { major - 2000 };
    Some((u8::try_from(major).ok()?, minor))
}

/// A name in one line: letters of any script, digits and the signs that paths and ids use.
pub(super) fn name(text: &str) -> Option<String> {
    let short = !text.is_empty() && text.chars().count() <= LONGEST_NAME;
    let plain = !text.chars().any(char::is_control) && text.trim() == text;
    (short && plain).then(|| text.to_string())
}

pub(super) fn words(text: &str) -> Option<Vec<String>> {
    let words: Vec<String> = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect();
    let fine = words.len() <= LONGEST_LIST && words.iter().all(|word| is_word(word));
    fine.then_some(words)
}

/// Sizes by name. Irreps stand for a size of each kind of feature: `irreps=16x0e+8x1o` is `0e=16,1o=8`.
pub(super) fn sizes(text: &str) -> Option<Map<String, u64>> {
    let pairs = words(&text.replace(" + ", "+"))?;
    let pair = |pair: &String| {
        let (key, value) = pair.split_once('=')?;
        let value = whole(value.trim()).filter(|size| *size <= LARGEST_SIZE)?;
        let key = key.trim();
        is_key(key).then(|| (key.to_string(), value))
    };
    let mut sizes = Map::new();
    for text in &pairs {
        if let Some(irreps) = text.strip_prefix("irreps=") {
            sizes.extend(Irreps::parse(irreps).ok()?.sizes());
            continue;
        }
        let (key, value) = pair(text)?;
        sizes.insert(key, value);
    }
    Some(sizes)
}

/// A word of a list: no blanks, commas or control characters.
pub(super) fn is_word(word: &str) -> bool {
    let banned = |c: char| c == ',' || c.is_whitespace() || c.is_control();
    !word.is_empty() && word.chars().count() <= LONGEST_NAME && !word.chars().any(banned)
}

/// A dimension's name, as in a model's configuration.
pub(super) fn is_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    is_word(key) && key.chars().all(plain)
}
