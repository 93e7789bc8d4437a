//! Syntax highlighting of a file's comments, strings and keys, and marks of changed lines.

use leptos::prelude::*;

/// The token type of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Plain,
    Comment,
    Text,
    Key,
}

impl Token {
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Comment => "token-comment",
            Self::Text => "token-text",
            Self::Key => "token-key",
        }
    }
}

/// Tokenizes a line of YAML, Python or shell, approximately.
fn pieces(line: &str) -> Vec<(Token, &str)> {
    let indent = line.len() - line.trim_start().len();
    let (space, mut rest) = line.split_at(indent);
    let mut pieces = vec![(Token::Plain, space)];
    if rest.starts_with('#') {
        pieces.push((Token::Comment, rest));
        return pieces;
    }
    let key = rest.find([':', '=']).filter(|at| {
        let name = rest.get(..*at).unwrap_or_default();
        let after = rest.get(at + 1..).unwrap_or_default();
        let ends =
            after.is_empty() || after.starts_with(' ') || rest.as_bytes().get(*at) == Some(&b'=');
        let plain = |c: char| c.is_alphanumeric() || "_-./ \"".contains(c);
        !name.is_empty()
            && ends
            && !after.starts_with('=')
            && name.chars().all(plain)
            && name.split_whitespace().count() <= 2
    });
    if let Some(at) = key {
        let (name, after) = rest.split_at(at);
        pieces.push((Token::Key, name));
        rest = after;
    }
    // The start of the current piece, and its quote character.
    let (mut from, mut quote) = (0, None);
    let mut before = ' ';
    for (at, c) in rest.char_indices() {
        match quote {
            Some(open) if c == open && before != '\\' => {
                let end = at + c.len_utf8();
                pieces.push((Token::Text, rest.get(from..end).unwrap_or_default()));
                (from, quote) = (end, None);
            }
            None if (c == '"' || c == '\'') && !before.is_alphanumeric() => {
                pieces.push((Token::Plain, rest.get(from..at).unwrap_or_default()));
                (from, quote) = (at, Some(c));
            }
            None if c == '#' && before == ' ' => {
                pieces.push((Token::Plain, rest.get(from..at).unwrap_or_default()));
                pieces.push((Token::Comment, rest.get(at..).unwrap_or_default()));
                return pieces;
            }
            _ => {}
        }
        before = c;
    }
    pieces.push((Token::Plain, rest.get(from..).unwrap_or_default()));
    pieces
}

/// Whether each line is new or changed relative to the earlier text; comments, which have the link, are never marked.
pub fn changed(before: &str, now: &str) -> Vec<bool> {
    let old: Vec<&str> = before.lines().collect();
    let is_new = |line: &str| !line.trim_start().starts_with('#') && !old.contains(&line);
    now.lines().map(is_new).collect()
}

/// The lines as elements, with marks on changed ones.
pub fn lines(text: &str, before: Option<&str>) -> impl IntoView + use<> {
    let marks = before
        .map(|before| changed(before, text))
        .unwrap_or_default();
    let line = |(at, line): (usize, &str)| {
        let piece = |(token, piece): (Token, &str)| {
            let piece = piece.to_string();
            match token {
                Token::Plain => piece.into_any(),
                _ => view! { <span class=token.class()>{piece}</span> }.into_any(),
            }
        };
        let pieces = pieces(line)
            .into_iter()
            .filter(|(_, piece)| !piece.is_empty());
        let pieces = pieces.map(piece).collect_view();
        if marks.get(at) == Some(&true) {
            view! { <mark>{pieces}</mark>"\n" }.into_any()
        } else {
            view! { {pieces}"\n" }.into_any()
        }
    };
    text.lines().enumerate().map(line).collect_view()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_recognized_and_complete() {
        #[track_caller]
        fn check(line: &str, expected: &[(Token, &str)]) {
            let found = pieces(line);
            assert_eq!(
                found.iter().map(|(_, piece)| *piece).collect::<String>(),
                line
            );
            let shown = found
                .into_iter()
                .filter(|(token, piece)| *token != Token::Plain && !piece.is_empty());
            assert_eq!(shown.collect::<Vec<_>>(), expected, "{line}");
        }
        check("", &[]);
        check("# a: \"b\"", &[(Token::Comment, "# a: \"b\"")]);
        check(
            "  lr: 1e-4 # small",
            &[(Token::Key, "lr"), (Token::Comment, "# small")],
        );
        check(
            "name: 'it # is'",
            &[(Token::Key, "name"), (Token::Text, "'it # is'")],
        );
        check("if a == \"ü\":", &[(Token::Text, "\"ü\"")]);
        check("export A=1", &[(Token::Key, "export A")]);
        check("don't", &[]);
        check("x = \"open", &[(Token::Key, "x ")]);
    }

    #[test]
    fn only_changed_lines_are_marked() {
        assert_eq!(
            changed("# a\nx: 1\ny: 2", "# b\nx: 1\ny: 3\nz: 4"),
            [false, false, true, true]
        );
        assert_eq!(changed("", ""), [] as [bool; 0]);
    }
}
