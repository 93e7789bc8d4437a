//! Many words looked for in one pass: a paste may be megabytes long, and a pass for each of two hundred words takes a second.

use headroom_base::order::Map;

/// The words that a text has, and where each stands last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found(Map<&'static str, usize>);

impl Found {
    pub fn in_text(text: &str, words: impl Iterator<Item = &'static str>) -> Self {
        let vocabulary = Vocabulary::of(words);
        let mut last: Vec<Option<usize>> = vec![None; vocabulary.words.len()];
        vocabulary.each(text.as_bytes(), |word, at| last[word] = Some(at));
        let found = vocabulary.words.into_iter().zip(last);
        Self(found.filter_map(|(word, at)| Some((word, at?))).collect())
    }

    pub fn has(&self, word: &str) -> bool {
        self.0.contains_key(word)
    }

    pub fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.has(word))
    }

    /// Where the last of any of these words begins.
    pub fn last_of(&self, words: &[&str]) -> Option<usize> {
        words
            .iter()
            .filter_map(|word| self.0.get(*word))
            .max()
            .copied()
    }
}

/// Words by the two bytes they begin with.
struct Vocabulary {
    /// In order, so that those with one beginning are neighbours.
    words: Vec<&'static str>,
    /// Which pairs of bytes begin a word: a bit each.
    beginnings: Vec<u64>,
}

impl Vocabulary {
    fn of(words: impl Iterator<Item = &'static str>) -> Self {
        let mut words: Vec<&str> = words.filter(|word| word.len() > 1).collect();
        words.sort_unstable();
        words.dedup();
        let mut beginnings = vec![0_u64; (1 << 16) / 64];
        for word in &words {
            if let [first, second, ..] = word.as_bytes() {
                let pair = pair(*first, *second);
                beginnings[pair / 64] |= 1 << (pair % 64);
            }
        }
        Self { words, beginnings }
    }

    /// Every word and where it begins, from the first to the last.
    fn each(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        for (at, two) in text.windows(2).enumerate() {
            let pair = pair(two[0], two[1]);
            if self.beginnings[pair / 64] & (1 << (pair % 64)) == 0 {
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            let first = self
                .words
                .partition_point(|word| word.as_bytes().get(..2) < rest.get(..2));
            let alike = self.words.iter().enumerate().skip(first);
            for (number, word) in alike.take_while(|(_, word)| word.as_bytes().starts_with(two)) {
                if rest.starts_with(word.as_bytes()) {
                    found(number, at);
                }
            }
        }
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_a_search_for_each_word_finds() {
        const WORDS: &[&str] = &[
            "val", "valid", "eval_", "in val", "aa", "aaa", "step", " step", "ä ", "é/", "oom",
        ];
        for text in [
            "",
            "a",
            "in validate: eval_step, no step",
            "aaaaa",
            "eine Zeile mit ä  und é/, oom",
            "stepstep va l",
        ] {
            let found = Found::in_text(text, WORDS.iter().copied());
            for word in WORDS {
                assert_eq!(found.last_of(&[word]), text.rfind(word), "{text} {word}");
                assert_eq!(found.has(word), text.contains(word));
            }
        }
    }
}
