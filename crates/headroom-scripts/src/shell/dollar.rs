//! Expansions as they are written: `$name`, `${name…}`, `$(…)` and backticks.

use super::parse::{Parser, is_name, parse};
use super::syntax::{Operation, Parameter, Piece, Raw};
use super::word::End;

impl Parser<'_> {
    pub(super) fn dollar(&mut self, quoted: bool) -> Option<Piece> {
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

    pub(super) fn backtick(&mut self, quoted: bool) -> Option<Piece> {
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
