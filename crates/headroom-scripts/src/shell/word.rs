//! Words and what is quoted or expanded in them.

use super::parse::{Parser, is_name, parse};
use super::syntax::{Operation, Parameter, Piece, Raw};

/// Where a run of pieces ends; what ends it is left standing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
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

    fn pieces(&mut self, end: End) -> Raw {
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

    fn dollar(&mut self, quoted: bool) -> Option<Piece> {
        let start = self.at;
        self.at += 1;
        match self.peek()? {
            b'(' if self.ahead(1) == Some(b'(') && !self.too_deep() => {
                self.at += 2;
                self.depth += 1;
                let inside = self.arithmetic();
                self.depth -= 1;
                Some(Piece::Arithmetic {
                    inside,
                    written: self.since(start).into(),
                    quoted,
                })
            }
            b'(' if !self.too_deep() => {
                self.at += 1;
                let list = self.list(&[")"]);
                self.at += usize::from(self.peek() == Some(b')'));
                Some(Piece::Output {
                    list,
                    written: self.since(start).into(),
                    quoted,
                })
            }
            b'{' if !self.too_deep() => {
                self.at += 1;
                self.depth += 1;
                let parameter = self.parameter(start, quoted);
                self.depth -= 1;
                parameter.map(|parameter| Piece::Parameter {
                    parameter: Box::new(parameter),
                    quoted,
                })
            }
            b'\'' if !quoted => {
                self.at += 1;
                Some(Piece::Quoted(self.ansi()))
            }
            b'"' if !quoted => {
                // `$"…"` is a translated string: the quote follows.
                Some(Piece::Quoted(String::new()))
            }
            byte => {
                let from = self.at;
                if byte.is_ascii_digit() || b"@*#?$!-".contains(&byte) {
                    self.at += 1;
                } else {
                    while self.peek().is_some_and(is_name) {
                        self.at += 1;
                    }
                }
                let name = self.since(from);
                if name.is_empty() {
                    return None;
                }
                Some(Piece::Parameter {
                    parameter: Box::new(Parameter {
                        name: name.into(),
                        index: None,
                        operation: Operation::None,
                        written: self.since(start).into(),
                    }),
                    quoted,
                })
            }
        }
    }

    /// The inside of `${…}`, and its brace.
    fn parameter(&mut self, start: usize, quoted: bool) -> Option<Parameter> {
        let mut operation = Operation::None;
        let special = |byte: u8| b"@*#?$!-".contains(&byte);
        match self.peek()? {
            b'#' if self
                .ahead(1)
                .is_some_and(|byte| is_name(byte) || b"@*".contains(&byte)) =>
            {
                operation = Operation::Length;
                self.at += 1;
            }
            b'!' if self.ahead(1).is_some_and(is_name) => {
                operation = Operation::Indirect;
                self.at += 1;
            }
            _ => {}
        }
        let from = self.at;
        while self.peek().is_some_and(is_name) {
            self.at += 1;
        }
        if self.at == from && self.peek().is_some_and(special) {
            self.at += 1;
        }
        let mut name = self.since(from).to_string();
        let mut index = None;
        if self.peek() == Some(b'[') && !name.is_empty() {
            self.at += 1;
            index = Some(self.bracket());
            self.at += usize::from(self.peek() == Some(b']'));
        }
        if operation == Operation::None && !name.is_empty() {
            operation = self.operation(quoted);
        }
        if self.peek() == Some(b'}') && !name.is_empty() {
            self.at += 1;
        } else {
            // No expansion of bash, such as `${{ secrets.TOKEN }}`: it stands as it is written. What was read once is not
            // read again, so that texts of nothing but beginnings stay cheap.
            let rest = self.rest().as_bytes();
            let line = rest
                .iter()
                .take(300)
                .position(|byte| matches!(byte, b'}' | b'\n'));
            if let Some(length) = line
                && rest.get(length) == Some(&b'}')
            {
                self.at += length + 1;
                self.at += usize::from(self.starts("}") && self.since(start).starts_with("${{"));
            }
            name = self.since(start).into();
            operation = Operation::None;
            index = None;
        }
        Some(Parameter {
            name,
            index,
            operation,
            written: self.since(start).into(),
        })
    }

    fn operation(&mut self, quoted: bool) -> Operation {
        let word = End::Brace { quoted };
        let colon = self.peek() == Some(b':');
        let kind = self.ahead(usize::from(colon));
        match kind {
            Some(kind @ (b'-' | b'=' | b'+' | b'?')) => {
                self.at += 1 + usize::from(colon);
                let word = self.pieces(word);
                Operation::Default { colon, kind, word }
            }
            _ if colon => {
                self.at += 1;
                let offset = self.pieces(End::Colon);
                let length = (self.peek() == Some(b':')).then(|| {
                    self.at += 1;
                    self.pieces(word)
                });
                Operation::Slice { offset, length }
            }
            Some(kind @ (b'#' | b'%')) => {
                self.at += 1;
                let longest = self.peek() == Some(kind);
                self.at += usize::from(longest);
                Operation::Strip {
                    end: kind == b'%',
                    longest,
                    pattern: self.pieces(End::Brace { quoted: false }),
                }
            }
            Some(b'/') => {
                self.at += 1;
                let how = match self.peek() {
                    Some(how @ (b'/' | b'#' | b'%')) => {
                        self.at += 1;
                        how
                    }
                    _ => 0,
                };
                let pattern = self.pieces(End::Slash { quoted: false });
                let mut by = Raw::default();
                if self.peek() == Some(b'/') {
                    self.at += 1;
                    by = self.pieces(word);
                }
                Operation::Replace { how, pattern, by }
            }
            Some(kind @ (b'^' | b',')) => {
                self.at += 1;
                let all = self.peek() == Some(kind);
                self.at += usize::from(all);
                Operation::Case {
                    upper: kind == b'^',
                    all,
                }
            }
            Some(b'@') if self.ahead(2) == Some(b'}') => {
                self.at += 2;
                Operation::None
            }
            _ => Operation::None,
        }
    }

    /// The inside of `$'…'`.
    fn ansi(&mut self) -> String {
        let mut text = String::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' => {
                    self.at += 1;
                    break;
                }
                b'\\' => {
                    self.at += 1;
                    match self.step() {
                        "n" => text.push('\n'),
                        "t" => text.push('\t'),
                        "r" => text.push('\r'),
                        "a" | "b" | "e" | "E" | "f" | "v" | "0" => {}
                        other => text.push_str(other),
                    }
                }
                _ => text.push_str(self.step()),
            }
        }
        text
    }

    fn backtick(&mut self, quoted: bool) -> Option<Piece> {
        let start = self.at;
        let rest = self.text.get(self.at + 1..)?;
        let mut inside = String::new();
        let mut length = 0;
        let mut chars = rest.chars();
        loop {
            let next = chars.next()?;
            length += next.len_utf8();
            match next {
                '`' => break,
                '\\' => {
                    let escaped = chars.next()?;
                    length += escaped.len_utf8();
                    if !matches!(escaped, '`' | '\\' | '$') {
                        inside.push('\\');
                    }
                    inside.push(escaped);
                }
                other => inside.push(other),
            }
        }
        self.at += 1 + length;
        Some(Piece::Output {
            list: parse(&inside, self.depth + 1),
            written: self.since(start).into(),
            quoted,
        })
    }
}
