//! Strings, f-strings among them.

use super::ast::{Expr, Piece};
use super::token::{self, Token};
use super::{Broken, Parse, Parser};

impl Parser<'_> {
    /// Strings that stand side by side are one.
    pub(super) fn strings(&mut self) -> Parse<Expr> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut formatted = false;
        loop {
            match self.peek() {
                Some(Token::Text(part)) => text.push_str(part),
                Some(Token::Format(body, raw)) => {
                    formatted = true;
                    self.pieces(body, *raw, &mut text, &mut pieces)?;
                }
                _ => break,
            }
            self.at += 1;
        }
        if !formatted {
            return Ok(Expr::Text(text.into()));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.into()));
        }
        Ok(Expr::Format(pieces))
    }

    /// The pieces of an f-string; literal text is gathered in `text`.
    pub(super) fn pieces(
        &self,
        body: &str,
        raw: bool,
        text: &mut String,
        pieces: &mut Vec<Piece>,
    ) -> Parse<()> {
        let plain = |part: &str| {
            if raw {
                part.to_string()
            } else {
                token::unescaped(part)
            }
        };
        let mut rest = body;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            text.push_str(&plain(before));
            if from.starts_with("{{") || from.starts_with("}}") {
                text.push_str(from.get(..1).unwrap_or(""));
                rest = from.get(2..).unwrap_or("");
                continue;
            }
            let inside = from.get(1..).unwrap_or("");
            if from.starts_with('}') {
                rest = inside;
                continue;
            }
            let end = field_end(inside).ok_or(Broken)?;
            let field = inside.get(..end).unwrap_or("");
            rest = inside.get(end + 1..).unwrap_or("");
            let (value, format) = split_field(field);
            let tokens = token::tokens(value.trim());
            let mut parser = Parser::new(&tokens.tokens, self.depth + 1);
            let value = parser.deeper(Parser::tests)?;
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(text).into()));
            }
            pieces.push(Piece::Value(value, format.into()));
        }
        text.push_str(&plain(rest));
        Ok(())
    }
}

/// Where the field of an f-string ends that this text begins with.
pub fn field_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) => quote = (byte != open).then_some(open),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b'}') if depth == 0 => return Some(at),
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A field's expression, and its conversion and format.
pub fn split_field(field: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut quote = None;
    let bytes = field.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1).copied();
        match (quote, byte) {
            (Some(open), _) => quote = (byte != open).then_some(open),
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b'!') if depth == 0 && next != Some(b'=') => {
                return (field.get(..at).unwrap_or(""), field.get(at..).unwrap_or(""));
            }
            (None, b':') if depth == 0 => {
                return (
                    field.get(..at).unwrap_or(""),
                    field.get(at + 1..).unwrap_or(""),
                );
            }
            _ => {}
        }
    }
    match field.trim_end().strip_suffix('=') {
        Some(value) if !value.ends_with(['=', '!', '<', '>']) => (value, "="),
        _ => (field, ""),
    }
}
