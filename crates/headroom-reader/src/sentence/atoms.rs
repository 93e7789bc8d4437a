//! A sentence as atoms: runs of letters, numbers, and what stands between them. `8xH100` is `8`, `x`, `h`, `100`.

/// Longest text that is read, and the most atoms of it: the rest of a longer one is left.
const LONGEST: usize = 4000;
const MOST: usize = 160;

/// What stands before an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Gap {
    /// Nothing: `h`, `100`.
    Glued,
    /// A dash, an underscore, a slash, a point.
    Joined,
    /// `=` or a colon.
    Equals,
    Space,
    /// A comma, the end of a sentence, a parenthesis.
    Break,
}

#[derive(Clone, Debug)]
pub(super) struct Atom {
    /// In lower case, and spelt right where a known word is one slip away.
    pub text: String,
    /// Bytes of the sentence.
    pub start: usize,
    pub end: usize,
    pub gap: Gap,
    pub used: bool,
}

impl Atom {
    pub fn number(&self) -> Option<f64> {
        let value: f64 = self.text.parse().ok()?;
        (self.text.starts_with(|c: char| c.is_ascii_digit()) && value.is_finite()).then_some(value)
    }

    pub fn whole(&self) -> Option<u64> {
        let digits = self.text.len() <= 12 && self.text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| self.text.parse().ok()).flatten()
    }

    fn is_word(&self) -> bool {
        self.text.starts_with(char::is_alphabetic)
    }
}

/// A sentence being read.
#[derive(Debug)]
pub(super) struct Sentence<'a> {
    pub text: &'a str,
    pub atoms: Vec<Atom>,
}

impl<'a> Sentence<'a> {
    /// `known` are the words that a slip may mean.
    pub fn new(
        text: &'a str,
        known: impl Fn(&str) -> bool,
        nearest: impl Fn(&str) -> Option<&'static str>,
    ) -> Self {
        let mut end = text.len().min(LONGEST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text.get(..end).unwrap_or_default();
        let mut atoms = split(text);
        atoms.truncate(MOST);
        for at in 0..atoms.len() {
            let glued = |at: usize| {
                atoms
                    .get(at)
                    .is_some_and(|atom| atom.gap == Gap::Glued && !atom.is_word())
            };
            let Some(atom) = atoms.get(at) else { break };
            // Letters beside digits are a name's: `qwen3`, `smollm2`.
            let alone = !glued(at + 1) && atom.gap != Gap::Glued;
            let short = atom.text.len() < 4 && atom.text != "tis";
            if !atom.is_word() || known(&atom.text) || !alone && short {
                continue;
            }
            let singular = atom
                .text
                .strip_suffix('s')
                .filter(|word| word.len() >= 3 && known(word));
            let right = singular
                .map(String::from)
                .or_else(|| nearest(&atom.text).map(String::from));
            if let (Some(right), Some(atom)) = (right, atoms.get_mut(at)) {
                atom.text = right;
            }
        }
        Self { text, atoms }
    }

    pub fn get(&self, at: usize) -> Option<&Atom> {
        self.atoms.get(at)
    }

    /// The text of an atom that is not used yet.
    pub fn free(&self, at: usize) -> Option<&str> {
        self.get(at)
            .filter(|atom| !atom.used)
            .map(|atom| atom.text.as_str())
    }

    /// Whether an atom is that word and not used yet.
    pub fn is(&self, at: usize, word: &str) -> bool {
        self.free(at) == Some(word)
    }

    pub fn gap(&self, at: usize) -> Gap {
        self.get(at).map_or(Gap::Break, |atom| atom.gap)
    }

    /// Whether no atom of a range is used yet.
    pub fn are_free(&self, range: std::ops::Range<usize>) -> bool {
        range.end <= self.atoms.len()
            && self
                .atoms
                .get(range)
                .is_some_and(|atoms| atoms.iter().all(|atom| !atom.used))
    }

    pub fn use_up(&mut self, range: std::ops::Range<usize>) {
        for atom in self.atoms.iter_mut().take(range.end).skip(range.start) {
            atom.used = true;
        }
    }

    /// The user's own words.
    pub fn words(&self, range: std::ops::Range<usize>) -> String {
        let start = self.get(range.start).map_or(0, |atom| atom.start);
        let end = range.end.checked_sub(1).and_then(|last| self.get(last));
        let end = end.map_or(start, |atom| atom.end);
        self.text.get(start..end).unwrap_or_default().to_string()
    }

    /// Where a phrase of words, each an atom, ends, if it begins here.
    pub fn phrase(&self, at: usize, words: &[&str]) -> Option<usize> {
        let end = at + words.len();
        let same = |(offset, word): (usize, &&str)| {
            let gap = self.gap(at + offset);
            self.is(at + offset, word) && (offset == 0 || gap != Gap::Break && gap != Gap::Equals)
        };
        words.iter().enumerate().all(same).then_some(end)
    }

    /// What is left, in the user's words: neighbours together.
    pub fn left(&self, ignored: impl Fn(&str) -> bool) -> Vec<String> {
        let mut left = Vec::new();
        let mut from: Option<usize> = None;
        for at in 0..=self.atoms.len() {
            let open = self.free(at).is_some() && (from.is_none() || self.gap(at) != Gap::Break);
            if open {
                from = from.or(Some(at));
                continue;
            }
            if let Some(start) = from.take() {
                let mut range = start..at;
                while range.start < range.end && self.free(range.start).is_some_and(&ignored) {
                    range.start += 1;
                }
                while range.start < range.end && self.free(range.end - 1).is_some_and(&ignored) {
                    range.end -= 1;
                }
                if !range.is_empty() {
                    left.push(self.words(range));
                }
            }
            if self.free(at).is_some() {
                from = Some(at);
            }
        }
        left
    }
}

fn split(text: &str) -> Vec<Atom> {
    let mut atoms: Vec<Atom> = Vec::new();
    let mut gap = Gap::Break;
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let kind = |at: usize| chars.get(at).map(|(_, c)| Kind::of(*c));
    let mut at = 0;
    while let Some((start, c)) = chars.get(at).copied() {
        if atoms.len() > MOST {
            break;
        }
        let begin = at;
        match Kind::of(c) {
            Kind::Digit => {
                at += 1;
                loop {
                    let thousand = chars.get(at).is_some_and(|(_, c)| *c == ',')
                        && (1..=3).all(|next| kind(at + next) == Some(Kind::Digit))
                        && kind(at + 4) != Some(Kind::Digit);
                    let point = chars.get(at).is_some_and(|(_, c)| *c == '.')
                        && kind(at + 1) == Some(Kind::Digit);
                    if kind(at) == Some(Kind::Digit) || thousand || point {
                        at += 1;
                    } else {
                        break;
                    }
                }
            }
            Kind::Letter => {
                while kind(at) == Some(Kind::Letter) {
                    at += 1;
                }
                // `8xH100` and `2xA6000` are counts, `7900XTX` and `SDXL` are names.
                let after_number =
                    gap == Gap::Glued && atoms.last().is_some_and(|atom| !atom.is_word());
                let run: String = chars
                    .iter()
                    .take(at)
                    .skip(begin)
                    .map(|(_, c)| c.to_ascii_lowercase())
                    .collect();
                let name = matches!(run.as_str(), "xt" | "xtx" | "xl" | "xxl")
                    && kind(at) != Some(Kind::Digit);
                if after_number && run.starts_with('x') && !name {
                    at = begin + 1;
                }
            }
            Kind::Times => at += 1,
            Kind::Other(other) => {
                // `Glued` is the least.
                gap = if other > gap { other } else { gap };
                at += 1;
                continue;
            }
        }
        let end = chars.get(at).map_or(text.len(), |(end, _)| *end);
        let own: String = text
            .get(start..end)
            .unwrap_or_default()
            .chars()
            .filter(|c| *c != ',')
            .collect();
        let own = if matches!(own.as_str(), "×" | "*" | "✕") {
            "x".into()
        } else {
            own.to_lowercase()
        };
        atoms.push(Atom {
            text: own,
            start,
            end,
            gap,
            used: false,
        });
        gap = Gap::Glued;
    }
    atoms
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Letter,
    Digit,
    Times,
    Other(Gap),
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            '0'..='9' => Self::Digit,
            '×' | '*' | '✕' => Self::Times,
            '-' | '_' | '/' | '.' | '\'' | '’' | '–' | '+' | '~' | '`' => {
                Self::Other(Gap::Joined)
            }
            '=' | ':' => Self::Other(Gap::Equals),
            ' ' | '\t' | '@' => Self::Other(Gap::Space),
            c if c.is_alphabetic() => Self::Letter,
            c if c.is_whitespace() && c != '\n' => Self::Other(Gap::Space),
            _ => Self::Other(Gap::Break),
        }
    }
}
