//! Words and signs of a Rust file, without comments, literals and tests: as much of the language as imports take.

/// A name that a `use` declaration brings and the path it stands for; `*` brings all of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub name: String,
    pub path: Vec<String>,
}

pub struct Tokens(Vec<String>);

impl Tokens {
    pub fn of(text: &str) -> Self {
        Self(without_tests(words(text)))
    }

    /// The modules in files of their own that are compiled for tests alone.
    pub fn test_modules(text: &str) -> Vec<String> {
        let words = words(text);
        let starts = (0..words.len()).filter(|at| is_test(&words[*at..]));
        let module = |at: usize| {
            let item: Vec<&String> = words[at..]
                .iter()
                .take_while(|word| !["{", ";"].contains(&word.as_str()))
                .collect();
            let name = item.iter().position(|word| *word == "mod")?;
            item.get(name + 1).map(|name| (*name).clone())
        };
        starts.filter_map(module).collect()
    }

    pub fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        for (at, word) in self.0.iter().enumerate() {
            if word == "use" {
                tree(&self.0[at + 1..], &[], &mut found);
            }
        }
        found
    }

    /// Paths of two names and more.
    pub fn paths(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.0.len() {
            let mut path = vec![self.0[at].clone()];
            while is_name(&self.0[at]) && self.0.get(at + 1).is_some_and(|sign| sign == "::") {
                let Some(next) = self.0.get(at + 2).filter(|next| is_name(next)) else {
                    break;
                };
                path.push(next.clone());
                at += 2;
            }
            if path.len() > 1 {
                found.push(path);
            }
            at += 1;
        }
        found
    }
}

/// One tree of a `use` declaration; returns how many words it took.
fn tree(words: &[String], before: &[String], found: &mut Vec<Import>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while words.get(at).is_some_and(|word| word != "}") {
                    at += tree(&words[at..], &path, found);
                    at += usize::from(words.get(at).is_some_and(|word| word == ","));
                }
                return at + 1;
            }
            "as" => {
                let name = words.get(at + 1).cloned().unwrap_or_default();
                found.push(Import { name, path });
                return at + 2;
            }
            word if is_name(word) || word == "*" => {
                // `self` at the end of a list is the module itself.
                if word != "self" || path.is_empty() {
                    path.push(word.to_string());
                }
                at += 1;
            }
            _ => break,
        }
    }
    if let Some(name) = path.last().cloned() {
        found.push(Import { name, path });
    }
    at
}

/// The words without items under `#[cfg(test)]`.
fn without_tests(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if !is_test(&words[at..]) {
            kept.push(words[at].clone());
            at += 1;
            continue;
        }
        let mut depth = 0;
        while at < words.len() {
            match words[at].as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(words[at - 1].as_str(), "}" | ";") {
                break;
            }
        }
    }
    kept
}

/// Whether an item under `#[cfg(test)]` begins here.
fn is_test(words: &[String]) -> bool {
    let attribute = ["#", "[", "cfg", "("];
    words.len() > attribute.len()
        && words.iter().zip(attribute).all(|(word, sign)| word == sign)
        && words
            .iter()
            .take_while(|word| *word != "]")
            .any(|word| word == "test")
}

fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let start = at;
        match rest {
            ['/', '/', ..] => at += rest.iter().take_while(|c| **c != '\n').count(),
            ['r', '#' | '"', ..] => at += raw_string(rest),
            ['"', ..] => at += string(rest),
            ['\'', ..] => at += character(rest),
            [':', ':', ..] => {
                words.push("::".into());
                at += 2;
            }
            [c, ..] if is_word(*c) => {
                at += rest.iter().take_while(|c| is_word(**c)).count();
                words.push(chars[start..at].iter().collect());
            }
            [c, ..] => {
                if !c.is_whitespace() {
                    words.push(c.to_string());
                }
                at += 1;
            }
            [] => {}
        }
    }
    words
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// `r"…"`, `r#"…"#`; a raw name such as `r#type` counts as one sign.
fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 1;
    }
    let end: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = &rest[2 + hashes..];
    let length = body
        .windows(end.len())
        .position(|window| window == end)
        .unwrap_or(body.len());
    2 + hashes + length + end.len()
}

/// A character, or a lifetime's mark.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', ..] => 3 + rest[3..].iter().take_while(|c| **c != '\'').count(),
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
