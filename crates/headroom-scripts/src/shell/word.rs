//! Words and what is quoted or expanded in them.

use super::parse::{Parser, is_name};
use super::syntax::{Piece, Raw};

/// Where a run of pieces ends; what ends it is left standing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Word,
    /// A pattern after `=~`, which ends at a blank.
    Regex,
    DoubleQuote,
    Brace {
        quoted: bool,
    },
    /// `/` or `}`.
    Slash {
        quoted: bool,
    },
    /// `:` or `}`.
    Colon,
    Bracket,
    /// `))`
    Arithmetic,
    /// `;` or `))`.
    Semicolon,
    Body,
}

impl Parser<'_> {
    pub fn word(&mut self) -> Option<Raw> {
        let start = self.at;
        self.words = self.words.saturating_sub(1);
        if self.words == 0 {
            self.at = self.text.len();
        }
        let raw = self.pieces(End::Word);
        (self.at > start).then_some(raw)
    }

    pub fn regex(&mut self) -> Raw {
        self.pieces(End::Regex)
    }

    pub fn body(&mut self) -> Raw {
        self.pieces(End::Body)
    }

    pub fn bracket(&mut self) -> Raw {
        self.pieces(End::Bracket)
    }

    pub fn arithmetic(&mut self) -> Raw {
        let inside = self.pieces(End::Arithmetic);
        if self.starts("))") {
            self.at += 2;
        }
        inside
    }

    pub fn until_semicolon(&mut self) -> Raw {
        let inside = self.pieces(End::Semicolon);
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        inside
    }

    /// `<your_path>` as documents have it: a word, though a shell would redirect.
    pub fn placeholder(&self) -> Option<usize> {
        if self.peek() != Some(b'<') {
            return None;
        }
        let rest = self.text.get(self.at + 1..)?;
        let end = rest.bytes().take(400).position(|byte| {
            matches!(
                byte,
                b'>' | b'<' | b'\n' | b'|' | b';' | b'&' | b'$' | b'"' | b'\'' | b'('
            )
        })?;
        let inside = rest.get(..end)?;
        let closed = rest.as_bytes().get(end) == Some(&b'>');
        let after = rest.as_bytes().get(end + 1);
        let whole = matches!(
            after,
            None | Some(b' ' | b'\n' | b'\r' | b'\t' | b'\\' | b'/' | b'.' | b',' | b'_' | b'-')
        );
        let plain = !inside.is_empty() && inside.trim() == inside && !inside.starts_with('/');
        (closed && whole && plain).then_some(end + 2)
    }

    pub(super) fn pieces(&mut self, end: End) -> Raw {
        let quoted = matches!(
            end,
            End::DoubleQuote
                | End::Body
                | End::Brace { quoted: true }
                | End::Slash { quoted: true }
        );
        let mut pieces: Vec<Piece> = Vec::with_capacity(1);
        let mut parens = 0usize;
        // A plain text in the making.
        let mut text = String::new();
        let flush = |text: &mut String, pieces: &mut Vec<Piece>| {
            if !text.is_empty() {
                let text = std::mem::take(text);
                let piece = if quoted {
                    Piece::Quoted(text)
                } else {
                    Piece::Text(text)
                };
                pieces.push(piece);
            }
        };
        let start = self.at;
        while let Some(byte) = self.peek() {
            match (end, byte) {
                (End::Word, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' | b'>')
                | (End::Regex, b' ' | b'\t' | b'\r' | b'\n')
                | (End::DoubleQuote, b'"')
                | (End::Brace { .. }, b'}')
                | (End::Slash { .. }, b'}' | b'/')
                | (End::Colon, b'}' | b':')
                | (End::Bracket, b']' | b'\n')
                | (End::Arithmetic, b'\n')
                | (End::Semicolon, b';') => break,
                (End::Arithmetic | End::Semicolon, b')')
                    if parens == 0 && self.ahead(1) == Some(b')') =>
                {
                    break;
                }
                // Blanks after the backslash, which is meant to continue the line all the same.
                (End::Word, b'\\') if !self.joins() && self.continuation().is_some() => break,
                (End::Word, b'<') => {
                    let Some(length) = self.placeholder() else {
                        break;
                    };
                    flush(&mut text, &mut pieces);
                    let from = self.at;
                    self.at += length;
                    pieces.push(Piece::Placeholder(self.since(from).into()));
                    continue;
                }
                (End::Word, b'(') => {
                    let pattern = text.ends_with(['@', '!', '?', '*', '+']);
                    if !pattern || self.too_deep() {
                        break;
                    }
                    // `@(a|b)`, on one line.
                    let length = self.rest().bytes().take(300).position(|byte| byte == b')');
                    let Some(length) = length else { break };
                    let from = self.at;
                    self.at += length + 1;
                    text.push_str(self.since(from));
                    continue;
                }
                (End::Arithmetic | End::Semicolon, b'(') => parens += 1,
                (End::Arithmetic | End::Semicolon, b')') => parens = parens.saturating_sub(1),
                _ => {}
            }
            match byte {
                b'\\' => self.backslash(end, quoted, &mut text, &mut pieces),
                b'\'' if !quoted && !matches!(end, End::Arithmetic | End::Semicolon) => {
                    flush(&mut text, &mut pieces);
                    self.single_quote(&mut text, &mut pieces);
                }
                b'"' if end != End::Body && !self.too_deep() => {
                    let from = self.at;
                    self.at += 1;
                    if self.open_quote && !self.rest().contains('"') {
                        text.push('"');
                        continue;
                    }
                    flush(&mut text, &mut pieces);
                    self.depth += 1;
                    let inside = self.pieces(End::DoubleQuote);
                    self.depth -= 1;
                    if self.peek().is_none() && !self.open_quote {
                        // Nothing closes it: a plain character, and what follows is read as if it were not there.
                        self.open_quote = true;
                        self.at = from + 1;
                        text.push('"');
                        continue;
                    }
                    self.at = (self.at + 1).min(self.text.len());
                    if inside.0.is_empty() {
                        pieces.push(Piece::Quoted(String::new()));
                    }
                    pieces.extend(inside.0);
                }
                b'$' => {
                    let before = self.at;
                    match self.dollar(quoted) {
                        Some(piece) => {
                            flush(&mut text, &mut pieces);
                            pieces.push(piece);
                        }
                        None => {
                            self.at = before + 1;
                            text.push('$');
                        }
                    }
                }
                b'`' if !self.too_deep() && !self.no_backtick => match self.backtick(quoted) {
                    Some(piece) => {
                        flush(&mut text, &mut pieces);
                        pieces.push(piece);
                    }
                    None => {
                        self.no_backtick = true;
                        self.at += 1;
                        text.push('`');
                    }
                },
                _ => {
                    // A run of plain characters at once.
                    let from = self.at;
                    self.at += 1;
                    while self.peek().is_some_and(|byte| {
                        byte >= 0x80 || is_name(byte) || matches!(byte, b'.' | b',' | b'=')
                    }) {
                        self.at += 1;
                    }
                    text.push_str(self.since(from));
                }
            }
        }
        flush(&mut text, &mut pieces);
        if pieces.is_empty() && self.at > start && end == End::Word {
            pieces.push(Piece::Text(String::new()));
        }
        Raw(pieces)
    }

    /// Whether a backslash stands before the line's end here.
    fn joins(&self) -> bool {
        self.starts("\\\n") || self.starts("\\\r\n")
    }

    fn backslash(&mut self, end: End, quoted: bool, text: &mut String, pieces: &mut Vec<Piece>) {
        if self.joins() {
            self.at += if self.starts("\\\n") { 2 } else { 3 };
            return;
        }
        self.at += 1;
        let Some(next) = self.peek() else {
            text.push('\\');
            return;
        };
        if quoted && !matches!(next, b'$' | b'`' | b'"' | b'\\') {
            text.push('\\');
            return;
        }
        if end == End::Body && next == b'"' {
            text.push('\\');
            return;
        }
        let from = self.at;
        self.step();
        let escaped = self.since(from);
        if quoted {
            text.push_str(escaped);
        } else {
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(text)));
            }
            pieces.push(Piece::Quoted(escaped.into()));
        }
    }

    fn single_quote(&mut self, text: &mut String, pieces: &mut Vec<Piece>) {
        let before = self.text.as_bytes().get(self.at.wrapping_sub(1)).copied();
        let letters = before.is_some_and(|byte| byte.is_ascii_alphabetic())
            && self.ahead(1).is_some_and(|byte| byte.is_ascii_alphabetic());
        self.at += 1;
        let rest = self.rest();
        // An apostrophe, as in `don't`: no quote, unless it is closed on its line.
        let near = if letters {
            let line = rest.find('\n').unwrap_or(rest.len());
            rest.get(..line).unwrap_or_default().find('\'')
        } else {
            rest.find('\'')
        };
        match near {
            Some(length) => {
                let from = self.at;
                self.at += length;
                pieces.push(Piece::Quoted(self.since(from).into()));
                self.at += 1;
            }
            None => text.push('\''),
        }
    }
}
