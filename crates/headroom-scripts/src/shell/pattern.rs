//! Patterns of file names as `case` and `${X##*/}` have them, and regular expressions of `[[ =~ ]]`.

/// Work that is left; at nought everything stops.
#[derive(Clone, Debug)]
pub(super) struct Fuel(pub u64);

impl Fuel {
    /// Takes so much; whether it was there.
    pub fn burn(&mut self, amount: usize) -> bool {
        self.0 = self.0.saturating_sub(amount as u64);
        self.0 > 0
    }
}

/// Whether a whole text matches a pattern, in which a backslash makes the next character plain.
pub(super) fn matches(pattern: &str, text: &str, fuel: &mut Fuel) -> bool {
    alternatives(pattern)
        .iter()
        .any(|pattern| matches_one(&tokens(pattern), text, fuel))
}

/// `@(a|b)c` as `ac` and `bc`; other patterns as they are.
fn alternatives(pattern: &str) -> Vec<String> {
    if let Some(open) = pattern.find("@(")
        && let Some(length) = pattern.get(open..).and_then(|rest| rest.find(')'))
        && let (Some(before), Some(inside), Some(after)) = (
            pattern.get(..open),
            pattern.get(open + 2..open + length),
            pattern.get(open + length + 1..),
        )
    {
        let choice = |choice: &str| format!("{before}{choice}{after}");
        return inside.split('|').take(50).map(choice).collect();
    }
    vec![pattern.to_string()]
}

type Ranges = Vec<(char, char)>;

enum Token {
    Plain(char),
    Any,
    Many,
    /// Characters of `[…]`, and whether they are excluded.
    Set(Ranges, bool),
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(next) = chars.next() {
        all.push(match next {
            '\\' => Token::Plain(chars.next().unwrap_or('\\')),
            '?' => Token::Any,
            '*' => Token::Many,
            '[' => {
                let rest: String = chars.clone().take(100).collect();
                match set(&rest) {
                    Some((ranges, excluded, length)) => {
                        for _ in 0..length {
                            chars.next();
                        }
                        Token::Set(ranges, excluded)
                    }
                    None => Token::Plain('['),
                }
            }
            other => Token::Plain(other),
        });
    }
    all
}

/// What follows a `[`: ranges, whether they are excluded, and how many characters that is with the `]`.
fn set(rest: &str) -> Option<(Ranges, bool, usize)> {
    let chars: Vec<char> = rest.chars().collect();
    let excluded = matches!(chars.first(), Some('!' | '^'));
    let start = usize::from(excluded);
    let mut at = start;
    let mut ranges = Vec::new();
    loop {
        let first = *chars.get(at)?;
        if first == ']' && at > start {
            return Some((ranges, excluded, at + 1));
        }
        let class = rest
            .char_indices()
            .nth(at)
            .and_then(|(byte, _)| rest.get(byte..));
        if let Some(class) = class.and_then(|rest| rest.strip_prefix("[:")) {
            let name = class.split(":]").next()?;
            ranges.extend_from_slice(match name {
                "digit" => &[('0', '9')],
                "alpha" => &[('a', 'z'), ('A', 'Z')],
                "alnum" => &[('a', 'z'), ('A', 'Z'), ('0', '9')],
                "upper" => &[('A', 'Z')],
                "lower" => &[('a', 'z')],
                "space" | "blank" => &[(' ', ' '), ('\t', '\r')],
                _ => return None,
            });
            at += name.chars().count() + 4;
            continue;
        }
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(last)) if *last != ']' => {
                ranges.push((first, *last));
                at += 3;
            }
            _ => {
                ranges.push((first, first));
                at += 1;
            }
        }
    }
}

fn matches_one(pattern: &[Token], text: &str, fuel: &mut Fuel) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut token) = (0, 0);
    // Where the last `*` stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        if !fuel.burn(1) {
            return false;
        }
        let fits = match (pattern.get(token), text.get(at)) {
            (Some(Token::Many), _) => {
                star = Some((token, at));
                token += 1;
                continue;
            }
            (Some(one), Some(char)) => fits(one, *char),
            _ => false,
        };
        if fits {
            at += 1;
            token += 1;
        } else if let Some((place, taken)) = star {
            star = Some((place, taken + 1));
            token = place + 1;
            at = taken + 1;
        } else {
            return false;
        }
    }
    let rest = pattern.get(token..).unwrap_or_default();
    rest.iter().all(|token| matches!(token, Token::Many))
}

fn fits(token: &Token, char: char) -> bool {
    match token {
        Token::Plain(plain) => *plain == char,
        Token::Any => true,
        Token::Many => false,
        Token::Set(ranges, excluded) => {
            let inside = ranges.iter().any(|(a, b)| (*a..=*b).contains(&char));
            inside != *excluded
        }
    }
}

/// The bytes of the text's start (or end) that a pattern matches, the shortest or longest of them.
pub(super) fn strip(
    pattern: &str,
    text: &str,
    end: bool,
    longest: bool,
    fuel: &mut Fuel,
) -> Option<usize> {
    let tokens = tokens(pattern);
    // Without a pattern's characters there is one candidate.
    if tokens.iter().all(|token| matches!(token, Token::Plain(_))) {
        let plain = |token: &Token| match token {
            Token::Plain(char) => *char,
            _ => ' ',
        };
        let plain: String = tokens.iter().map(plain).collect();
        let found = if end {
            text.ends_with(&plain)
        } else {
            text.starts_with(&plain)
        };
        return found.then_some(plain.len());
    }
    let mut cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    cuts.push(text.len());
    // From the start on, the longest suffix or the shortest prefix comes first.
    let ascending = end == longest;
    if !ascending {
        cuts.reverse();
    }
    for cut in cuts {
        let part = if end {
            text.get(cut..)
        } else {
            text.get(..cut)
        }?;
        if !fuel.burn(1 + part.len() / 8) {
            return None;
        }
        if matches_one(&tokens, part, fuel) {
            return Some(part.len());
        }
    }
    None
}

/// The text with matches of a pattern replaced: `/` the first, `//` all, `/#` at the start, `/%` at the end.
pub(super) fn replace(pattern: &str, text: &str, by: &str, how: u8, fuel: &mut Fuel) -> String {
    match how {
        b'#' | b'%' => match strip(pattern, text, how == b'%', true, fuel) {
            Some(length) if how == b'#' => {
                format!("{by}{}", text.get(length..).unwrap_or_default())
            }
            Some(length) => {
                let kept = text.get(..text.len() - length).unwrap_or_default();
                format!("{kept}{by}")
            }
            None => text.into(),
        },
        _ => {
            let mut out = String::new();
            let mut rest = text;
            while let Some(first) = rest.chars().next() {
                match strip(pattern, rest, false, true, fuel) {
                    Some(length) if length > 0 => {
                        out.push_str(by);
                        rest = rest.get(length..).unwrap_or_default();
                        if how != b'/' {
                            break;
                        }
                    }
                    _ => {
                        out.push(first);
                        rest = rest.get(first.len_utf8()..).unwrap_or_default();
                    }
                }
                if !fuel.burn(by.len() + 1) {
                    break;
                }
            }
            out.push_str(rest);
            out
        }
    }
}
