//! A name as somebody typed it, compared with the names that there are.

/// Longest text that is compared with all names.
const LONGEST: usize = 64;

/// A typed name.
#[derive(Clone, Debug)]
pub struct Typed {
    words: Vec<String>,
    pairs: Vec<[u8; 2]>,
}

impl Typed {
    pub fn new(text: &str) -> Self {
        let text: String = text.chars().take(2 * LONGEST).collect();
        let words = text
            .split(|c: char| c.is_whitespace() || matches!(c, '/' | '-' | '_' | ',' | '(' | ')'));
        Self {
            words: words
                .map(squeezed)
                .filter(|word| !word.is_empty())
                .collect(),
            pairs: pairs(&squeezed(&text)),
        }
    }

    /// Whether a name holds every typed word. Nothing typed is in every name.
    pub fn is_in(&self, name: &str) -> bool {
        let name = squeezed(name);
        self.words.iter().all(|word| name.contains(word.as_str()))
    }

    /// How many of a thousand pairs of characters a name shares (the Dice coefficient).
    pub fn likeness(&self, name: &str) -> usize {
        let other = pairs(&squeezed(name));
        let mut left = other.clone();
        let mut shared = 0;
        for pair in &self.pairs {
            if let Some(at) = left.iter().position(|other| other == pair) {
                left.swap_remove(at);
                shared += 1;
            }
        }
        2000 * shared / (self.pairs.len() + other.len()).max(1)
    }
}

/// Only letters and digits: people disagree about what stands between them.
pub(super) fn squeezed(text: &str) -> String {
    let plain = text.chars().filter(char::is_ascii_alphanumeric);
    plain
        .take(2 * LONGEST)
        .collect::<String>()
        .to_ascii_lowercase()
}

/// Neighbouring characters, which survive a typo elsewhere.
fn pairs(text: &str) -> Vec<[u8; 2]> {
    let bytes = text.as_bytes().iter().take(LONGEST);
    let bytes: Vec<u8> = bytes.copied().collect();
    bytes
        .windows(2)
        .filter_map(|pair| pair.try_into().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_wherever_they_stand() {
        #[track_caller]
        fn check(typed: &str, name: &str, expected: bool) {
            assert_eq!(Typed::new(typed).is_in(name), expected, "{typed} in {name}");
        }
        check("h100-80gb", "h100-sxm5-80gb", true);
        check("RTX_4090", "rtx-4090-24gb", true);
        check("llama 8b", "Llama 3.1 8B", true);
        check("a100", "a10-24gb", false);
        check("", "anything", true);
    }

    #[test]
    fn a_typo_leaves_most_of_a_name() {
        let typed = Typed::new("resnet-5o");
        assert!(typed.likeness("resnet-50") > typed.likeness("resnext-50"));
        assert_eq!(typed.likeness("gpt2"), 0);
        assert_eq!(Typed::new("").likeness(""), 0);
    }
}
