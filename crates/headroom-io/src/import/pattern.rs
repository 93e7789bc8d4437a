//! Regular expressions that name modules, as adapters' targets: which last names they can match.

/// More alternatives than this are a mistake or an attack.
const MOST: usize = 256;
/// Deeper groups too.
const DEEPEST: usize = 8;
/// Stands for whatever a repeated or a numeric part matches.
const ANY: char = '\u{1}';

/// Whether a name is more than a name.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['(', '[', '\\', '*', '|', '+', '^', '$'])
}

/// The last names that an expression can match, each once; nothing where it leaves them open.
pub(super) fn last_names(pattern: &str) -> Option<Vec<String>> {
    let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
    let mut reader = Reader {
        rest: pattern
            .chars()
            .take(1000)
            .collect::<Vec<_>>()
            .into_iter()
            .peekable(),
    };
    let paths = reader.alternatives(0)?;
    if reader.rest.next().is_some() {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for path in paths {
        let name = path.rsplit('.').next().unwrap_or(&path);
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() || !plain {
            return None;
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    Some(names)
}

struct Reader {
    rest: std::iter::Peekable<std::vec::IntoIter<char>>,
}

impl Reader {
    /// `a|b`, up to a closing bracket or the end.
    fn alternatives(&mut self, depth: usize) -> Option<Vec<String>> {
        let mut all = self.sequence(depth)?;
        while self.rest.peek() == Some(&'|') {
            self.rest.next();
            all.extend(self.sequence(depth)?);
        }
        (all.len() <= MOST).then_some(all)
    }

    fn sequence(&mut self, depth: usize) -> Option<Vec<String>> {
        let mut all = vec![String::new()];
        while let Some(next) = self.rest.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            let mut part = self.atom(depth)?;
            match self.rest.peek() {
                Some('*' | '+') => {
                    self.rest.next();
                    part = vec![ANY.to_string()];
                }
                Some('?') => {
                    self.rest.next();
                    part.push(String::new());
                }
                _ => {}
            }
            if all.len() * part.len() > MOST {
                return None;
            }
            all = all
                .iter()
                .flat_map(|before| part.iter().map(move |after| format!("{before}{after}")))
                .collect();
        }
        Some(all)
    }

    fn atom(&mut self, depth: usize) -> Option<Vec<String>> {
        match self.rest.next()? {
            '(' if depth < DEEPEST => {
                if self.rest.peek() == Some(&'?') {
                    // `(?:...)` is a group like any; what looks ahead is not read.
                    self.rest.next();
                    (self.rest.next()? == ':').then_some(())?;
                }
                let inner = self.alternatives(depth + 1)?;
                (self.rest.next()? == ')').then_some(inner)
            }
            '[' => {
                let mut inside = String::new();
                loop {
                    match self.rest.next()? {
                        ']' => break,
                        c => inside.push(c),
                    }
                }
                let plain = inside.chars().all(char::is_alphanumeric) && inside.len() <= 4;
                Some(if plain {
                    inside.chars().map(String::from).collect()
                } else {
                    vec![ANY.to_string()]
                })
            }
            '\\' => Some(match self.rest.next()? {
                'd' | 'w' => vec![ANY.to_string()],
                c => vec![c.to_string()],
            }),
            '(' | '{' | '}' => None,
            c => Some(vec![c.to_string()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_names_are_told() {
        #[track_caller]
        fn check(pattern: &str, names: Option<&str>) {
            let found = last_names(pattern).map(|names| names.join(" "));
            assert_eq!(found.as_deref(), names, "{pattern}");
        }
        check(
            r"model.language_model.layers.[\d]+.(mlp|self_attn).(up|down|q|k)_proj",
            Some("up_proj down_proj q_proj k_proj"),
        );
        check(
            r".*\.layers\.(3|7)\.self_attn\.(q|o)_proj|.*\.mlp\.(gate)_proj",
            Some("q_proj o_proj gate_proj"),
        );
        check(
            r"(model\.projector\.linear_[12]|x\.fc1)",
            Some("linear_1 linear_2 fc1"),
        );
        check(r"^model\.(visual\.)?proj$", Some("proj"));
        check(r".*", None);
        check(r"layers.\d+", None);
        check(r"(((((((((((a)))))))))))", None);
        check(r"(a|b", None);
        check(&"(a|b)".repeat(20), None);
    }
}
