//! Python's tokens: logical lines, indentation, strings with prefixes.

use std::rc::Rc;

/// Most tokens of one text; what follows is left out, so that work is bounded.
const MOST: usize = 60_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Name(Rc<str>),
    Int(i128),
    Float(f64),
    Text(Rc<str>),
    /// The body of an f-string, and whether its backslashes are kept.
    Format(Rc<str>, bool),
    Op(&'static str),
    /// A line of IPython such as `!pip install trl` or `%cd work`.
    Magic(Rc<str>),
    Newline,
    Indent,
    Dedent,
}

/// The tokens, and the comments with the number of their line.
#[derive(Debug, Default)]
pub struct Tokens {
    pub tokens: Vec<Token>,
    pub comments: Vec<(usize, String)>,
}

/// Longest first.
const OPERATORS: [&str; 47] = [
    "**=", "//=", ">>=", "<<=", "...", "!=", "==", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=",
    "%=", "&=", "|=", "^=", "@=", "**", "//", ">>", "<<", "+", "-", "*", "/", "%", "@", "&", "|",
    "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
];

pub fn tokens(text: &str) -> Tokens {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 0,
        depth: 0,
        fields: 0,
        indents: vec![0],
        out: Tokens::default(),
    };
    lexer.run();
    lexer.out
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// Open brackets.
    depth: usize,
    /// Tokens that the fields of f-strings may hold.
    fields: usize,
    indents: Vec<usize>,
    out: Tokens,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn push(&mut self, token: Token) {
        self.out.tokens.push(token);
    }

    fn run(&mut self) {
        while self.at < self.text.len() && self.out.tokens.len() + self.fields < MOST {
            if self.depth == 0 && self.line_starts() && !self.indentation() {
                continue;
            }
            self.token();
        }
        self.newline();
        for _ in 1..self.indents.len() {
            self.out.tokens.push(Token::Dedent);
        }
    }

    fn line_starts(&self) -> bool {
        self.at == 0 || self.text.as_bytes().get(self.at - 1) == Some(&b'\n')
    }

    /// Ends the logical line, if there is one.
    fn newline(&mut self) {
        let open = !matches!(
            self.out.tokens.last(),
            None | Some(Token::Newline | Token::Indent | Token::Dedent)
        );
        if open {
            self.push(Token::Newline);
        }
    }

    /// Reads the white space in front of a logical line; false if the line is empty or IPython's.
    fn indentation(&mut self) -> bool {
        let mut width = 0;
        while let Some(byte) = self.byte() {
            match byte {
                b' ' => width += 1,
                b'\t' => width += 8 - width % 8,
                b'\x0c' => width = 0,
                _ => break,
            }
            self.at += 1;
        }
        match self.byte() {
            None | Some(b'\n' | b'\r' | b'#') => {
                self.comment();
                if self.byte().is_some() {
                    self.step();
                }
                return false;
            }
            _ => {}
        }
        let last = self.out.tokens.last();
        let continues = !matches!(
            last,
            None | Some(Token::Newline | Token::Indent | Token::Dedent | Token::Magic(_))
        );
        if !continues {
            self.indent(width);
        }
        if matches!(self.byte(), Some(b'!' | b'%')) && !continues {
            let line = self.physical_lines();
            self.push(Token::Magic(line.into()));
            self.push(Token::Newline);
            return false;
        }
        true
    }

    fn indent(&mut self, width: usize) {
        let now = self.indents.last().copied().unwrap_or(0);
        if width > now {
            self.indents.push(width);
            self.push(Token::Indent);
        }
        while self.indents.last().is_some_and(|&indent| width < indent) {
            self.indents.pop();
            self.push(Token::Dedent);
        }
    }

    /// A line with those that a backslash joins to it.
    fn physical_lines(&mut self) -> String {
        let mut joined = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = rest.get(..end).unwrap_or("").trim_end().to_string();
            self.at += end;
            if self.byte().is_some() {
                self.step();
            }
            match line.strip_suffix('\\') {
                Some(line) if self.byte().is_some() => joined.push_str(line),
                _ => {
                    joined.push_str(&line);
                    return joined;
                }
            }
        }
    }

    /// Passes one character.
    fn step(&mut self) {
        let Some(letter) = self.rest().chars().next() else {
            return;
        };
        if letter == '\n' {
            self.line += 1;
        }
        self.at += letter.len_utf8();
    }

    fn comment(&mut self) {
        if self.byte() != Some(b'#') {
            return;
        }
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        let comment = rest.get(1..end).unwrap_or("").trim().to_string();
        self.at += end;
        self.out.comments.push((self.line, comment));
    }

    fn token(&mut self) {
        let Some(byte) = self.byte() else { return };
        match byte {
            b'\n' => {
                self.step();
                if self.depth == 0 {
                    self.newline();
                } else if self.statement_starts() {
                    self.depth = 0;
                    self.newline();
                }
            }
            b'\\' => {
                self.at += 1;
                if self.rest().starts_with("\r\n") {
                    self.at += 1;
                }
                if self.byte() == Some(b'\n') {
                    self.step();
                    self.blank();
                }
            }
            b'#' => self.comment(),
            b'"' | b'\'' => self.string(""),
            b'0'..=b'9' => self.number(),
            b'.' if self
                .rest()
                .as_bytes()
                .get(1)
                .is_some_and(u8::is_ascii_digit) =>
            {
                self.number();
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii() => self.name(),
            _ => self.operator(),
        }
    }

    /// Passes white space behind a joined line, which starts no logical line.
    fn blank(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// A line that can only start a statement, although a bracket is still open: the bracket was never closed.
    fn statement_starts(&self) -> bool {
        [
            "def ", "class ", "import ", "from ", "return ", "while ", "with ", "try:", "@",
        ]
        .iter()
        .any(|word| self.rest().starts_with(word))
    }

    fn operator(&mut self) {
        let rest = self.rest();
        let first = self.byte();
        let mut starting = OPERATORS
            .iter()
            .filter(|op| op.as_bytes().first() == first.as_ref());
        let Some(op) = starting.find(|op| rest.starts_with(**op)) else {
            self.step();
            return;
        };
        match *op {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" | "}" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.at += op.len();
        self.push(Token::Op(op));
    }

    fn name(&mut self) {
        let rest = self.rest();
        let part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !part(letter)).unwrap_or(rest.len());
        if end == 0 {
            self.step();
            return;
        }
        let name = rest.get(..end).unwrap_or("");
        let quoted = matches!(rest.as_bytes().get(end), Some(b'"' | b'\''));
        if quoted && end <= 2 && name.chars().all(|letter| "rRbBuUfFtT".contains(letter)) {
            let prefix = name.to_ascii_lowercase();
            self.at += end;
            self.string(&prefix);
            return;
        }
        let name = name.into();
        self.at += end;
        self.push(Token::Name(name));
    }

    fn number(&mut self) {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let mut end = 0;
        let hexadecimal = matches!(bytes.get(..2), Some(b"0x" | b"0X"));
        while let Some(&byte) = bytes.get(end) {
            let exponent = !hexadecimal
                && matches!(byte, b'+' | b'-')
                && end > 0
                && matches!(bytes.get(end - 1), Some(b'e' | b'E'));
            if !(byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || exponent) {
                break;
            }
            end += 1;
        }
        let written = rest.get(..end).unwrap_or("").replace('_', "");
        self.at += end;
        self.push(number(&written));
    }

    fn string(&mut self, prefix: &str) {
        let raw = prefix.contains('r');
        let format = prefix.contains('f') || prefix.contains('t');
        let quote = if self.byte() == Some(b'"') { '"' } else { '\'' };
        let triple: String = [quote; 3].iter().collect();
        let long = self.rest().starts_with(&triple);
        self.at += if long { 3 } else { 1 };
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = None;
        while let Some(&byte) = bytes.get(self.at) {
            if byte == b'\\' {
                self.at += 1;
                self.step();
                continue;
            }
            if byte == quote as u8 && (!long || self.rest().starts_with(&triple)) {
                end = Some(self.at);
                self.at += if long { 3 } else { 1 };
                break;
            }
            if byte == b'\n' {
                if !long {
                    break;
                }
                self.line += 1;
            }
            self.at += 1;
        }
        let body = self.text.get(start..end.unwrap_or(self.at)).unwrap_or("");
        if format {
            self.fields += 6 * body.matches('{').count();
        }
        let token = if format {
            Token::Format(body.into(), raw)
        } else if raw {
            Token::Text(body.into())
        } else {
            Token::Text(unescaped(body).into())
        };
        self.push(token);
    }
}

fn number(written: &str) -> Token {
    let lower = written.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return i128::from_str_radix(digits, radix)
                .map_or(Token::Float(f64::INFINITY), Token::Int);
        }
    }
    match lower.parse::<i128>() {
        Ok(int) => Token::Int(int),
        Err(_) => Token::Float(lower.trim_end_matches('j').parse().unwrap_or(f64::NAN)),
    }
}

/// A string's text, with its escapes replaced.
pub fn unescaped(body: &str) -> String {
    if !body.contains('\\') {
        return body.to_string();
    }
    let mut text = String::with_capacity(body.len());
    let mut letters = body.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('0') => text.push('\0'),
            Some('\n') | None => {}
            Some('x') => text.extend(code(&mut letters, 2)),
            Some('u') => text.extend(code(&mut letters, 4)),
            Some('U') => text.extend(code(&mut letters, 8)),
            Some(same @ ('\\' | '\'' | '"')) => text.push(same),
            Some(other) => text.extend(['\\', other]),
        }
    }
    text
}

fn code(letters: &mut std::str::Chars, digits: usize) -> Option<char> {
    let written: String = letters.as_str().chars().take(digits).collect();
    let number = u32::from_str_radix(&written, 16).ok()?;
    for _ in written.chars() {
        letters.next();
    }
    char::from_u32(number)
}
