//! A launcher's own options, which stand before the program.

use super::Word;
use super::wrap::has_extension;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Options {
    /// Names without dashes and with underscores, and their values; an empty text for a switch.
    pub all: Vec<(String, Word)>,
    /// A variable among the options whose text is not known, which may hold any of them.
    pub bundle: Option<String>,
}

impl Options {
    /// The last value of an option, by its names.
    pub fn get(&self, names: &[&str]) -> Option<&Word> {
        let named = |(name, _): &&(String, Word)| names.contains(&name.as_str());
        self.all.iter().rev().find(named).map(|(_, word)| word)
    }

    pub fn number(&self, names: &[&str]) -> Option<u64> {
        let word = self.get(names)?;
        if word.unknown.is_some() {
            return None;
        }
        word.text.trim().parse().ok()
    }

    /// Options in front of a program, the program, and what is given to it. Options that are not `switches` take a word.
    pub fn before_program(words: &[Word], switches: &[&str]) -> Option<(Self, Word, Vec<Word>)> {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            if text == "--" {
                at += 1;
                break;
            }
            // `$ARGS`, of which nothing is known.
            let bundle = word.unknown.is_some()
                && text.starts_with('$')
                && !text.contains('/')
                && !has_extension(text, &["py"]);
            if bundle && at + 1 < words.len() {
                options.bundle.clone_from(&word.unknown);
                at += 1;
                continue;
            }
            if !text.starts_with('-') || text.len() < 2 {
                break;
            }
            at += options.take(words, at, |name| switches.contains(&name));
        }
        let program = words.get(at)?.clone();
        Some((options, program, words.get(at + 1..)?.to_vec()))
    }

    /// All options among words, where what takes a word is told by whether one follows.
    pub fn all(words: &[Word]) -> Self {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            if !word.text.starts_with('-') {
                at += 1;
                continue;
            }
            let followed = words.get(at + 1).is_some_and(|next| !is_option(&next.text));
            at += options.take(words, at, |_| !followed);
        }
        options
    }

    /// One option; how many words it was.
    fn take(&mut self, words: &[Word], at: usize, switch: impl Fn(&str) -> bool) -> usize {
        let Some(word) = words.get(at) else { return 1 };
        let text = word.text.trim_start_matches('-');
        let dashes = word.text.len() - text.len();
        if let Some((name, _)) = text.split_once('=') {
            let value = tail(word, dashes + name.len() + 1);
            self.all.push((name.replace('-', "_"), value));
            return 1;
        }
        let name = text.replace('-', "_");
        if switch(&name) {
            self.all.push((name, Word::default()));
            return 1;
        }
        // `-n4`.
        if dashes == 1
            && let Some(rest) = text.get(1..)
            && rest.parse::<u64>().is_ok()
            && let Some(letter) = text.get(..1)
        {
            self.all.push((letter.into(), tail(word, 2)));
            return 1;
        }
        let value = words.get(at + 1).cloned().unwrap_or_default();
        self.all.push((name, value));
        2
    }
}

/// Whether a word is an option, not a negative number.
pub(super) fn is_option(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-') else {
        return false;
    };
    match rest.chars().next() {
        None => false,
        Some(first) if first.is_ascii_digit() || first == '.' => rest.parse::<f64>().is_err(),
        Some(_) => true,
    }
}

/// What follows in a word from a byte on. What its beginning depended on is not known apart.
pub(super) fn tail(word: &Word, from: usize) -> Word {
    Word {
        text: word.text.get(from..).unwrap_or_default().into(),
        unknown: word.unknown.clone(),
    }
}
