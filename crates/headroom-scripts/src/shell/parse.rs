//! A script's syntax tree. Any text has one: what bash would refuse is read as plain words.

use super::syntax::{Joint, List, Node, Piece, Raw};
use std::rc::Rc;

/// How deep constructs may stand in each other; deeper ones are plain text.
pub(super) const DEPTH: u32 = 24;
/// Words that are read of a text; no script has so many.
pub(super) const WORDS: u32 = 40_000;

pub(super) fn parse(text: &str, depth: u32) -> List {
    let mut parser = Parser {
        text,
        at: 0,
        depth,
        bodies: Vec::new(),
        words: WORDS,
        no_backtick: false,
        // In texts of texts of texts nothing is read twice.
        open_quote: depth > 3,
    };
    parser.list(&[])
}

/// A text as the inside of double quotes, where quotes themselves are plain, as in a heredoc.
pub(super) fn parse_body(text: &str, depth: u32) -> Raw {
    let mut parser = Parser {
        text,
        at: 0,
        depth,
        bodies: Vec::new(),
        words: WORDS,
        no_backtick: false,
        open_quote: depth > 3,
    };
    parser.body()
}

pub(super) struct Parser<'a> {
    pub text: &'a str,
    pub at: usize,
    pub depth: u32,
    /// Heredocs of lines ahead: where their line ends, where their bodies end.
    pub bodies: Vec<(usize, usize)>,
    /// Words that may still be read.
    pub words: u32,
    /// No closing backtick follows.
    pub no_backtick: bool,
    /// A double quote was opened that nothing closes.
    pub open_quote: bool,
}

impl<'a> Parser<'a> {
    pub fn peek(&self) -> Option<u8> {
        self.ahead(0)
    }

    pub fn ahead(&self, distance: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + distance).copied()
    }

    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn starts(&self, with: &str) -> bool {
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        bytes.starts_with(with.as_bytes())
    }

    pub fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub fn too_deep(&self) -> bool {
        self.depth >= DEPTH
    }

    /// Past one character.
    pub fn step(&mut self) -> &'a str {
        let start = self.at;
        let first = self.rest().chars().next();
        self.at += first.map_or(1, char::len_utf8);
        self.since(start)
    }

    /// Past a line's end, and the bodies of its heredocs.
    pub(super) fn newline(&mut self) {
        let here = self.at;
        self.at += 1;
        for (line, end) in &self.bodies {
            if *line == here {
                self.at = (*end).max(self.at);
            }
        }
        self.bodies.retain(|(line, _)| *line > here);
    }

    /// How long a continued line's end is: a backslash, blanks that do not belong there, a newline.
    pub fn continuation(&self) -> Option<usize> {
        if self.peek() != Some(b'\\') {
            return None;
        }
        let mut length = 1;
        while matches!(self.ahead(length), Some(b' ' | b'\t' | b'\r')) {
            length += 1;
            // Blanks are counted once for every backslash, of which a line of blanks has one.
            if length > 200 {
                return None;
            }
        }
        match self.ahead(length) {
            Some(b'\n') => Some(length + 1),
            // `\   # why` as people write it, though it ends the command.
            Some(b'#') if length > 1 => {
                let rest = self.text.get(self.at + length..)?;
                let line = rest.find('\n')?;
                Some(length + line + 1)
            }
            _ => None,
        }
    }

    pub fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') => match self.continuation() {
                    Some(length) => self.at += length,
                    None => return,
                },
                _ => return,
            }
        }
    }

    pub(super) fn comment(&mut self) {
        let line = self.rest().find('\n');
        self.at = line.map_or(self.text.len(), |length| self.at + length);
    }

    pub fn blanks_and_lines(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline(),
                Some(b'#') => self.comment(),
                _ => return,
            }
        }
    }

    /// The plain word ahead, as keywords are written.
    pub(super) fn keyword(&self) -> &'a str {
        let end = |byte: &u8| {
            matches!(
                byte,
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
            )
        };
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = bytes.iter().take(10).position(end);
        let length = length.unwrap_or(bytes.len().min(11));
        self.text.get(self.at..self.at + length).unwrap_or_default()
    }

    pub(super) fn take(&mut self, keyword: &str) -> bool {
        self.blanks_and_lines();
        let found = self.keyword() == keyword;
        if found {
            self.at += keyword.len();
        }
        found
    }

    fn at_end(&self, ends: &[&str]) -> bool {
        let keyword = self.keyword();
        ends.iter().any(|end| match *end {
            ")" => self.peek() == Some(b')'),
            ";;" => self.starts(";;") || self.starts(";&"),
            end => keyword == end,
        })
    }

    /// Commands until one of the words that end them, which is left standing.
    pub fn list(&mut self, ends: &[&str]) -> List {
        let mut nodes = Vec::with_capacity(1);
        let mut joint = Joint::Then;
        self.depth += 1;
        loop {
            self.blanks_and_lines();
            if self.peek().is_none() || self.at_end(ends) {
                break;
            }
            match self.peek() {
                Some(b';') => {
                    self.at += 1;
                    continue;
                }
                Some(b'&') if self.ahead(1) != Some(b'>') => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let start = self.at;
            let stray = ["then", "fi", "elif", "else", "do", "done", "esac", "}"];
            if let Some(word) = stray.iter().find(|word| **word == self.keyword()) {
                self.at += word.len();
                continue;
            }
            if let Some(node) = self.pipeline() {
                nodes.push((joint, node));
            }
            if self.at == start {
                self.step();
            }
            self.blanks();
            joint = if self.starts("&&") {
                self.at += 2;
                Joint::And
            } else if self.starts("||") {
                self.at += 2;
                Joint::Or
            } else {
                Joint::Then
            };
        }
        self.depth -= 1;
        Rc::new(nodes)
    }

    fn pipeline(&mut self) -> Option<Node> {
        let mut not = false;
        while self.keyword() == "!" {
            self.at += 1;
            self.blanks();
            not = !not;
        }
        let mut parts: Vec<Node> = Vec::with_capacity(1);
        parts.extend(self.command());
        loop {
            self.blanks();
            if self.peek() == Some(b'|') && self.ahead(1) != Some(b'|') {
                self.at += if self.ahead(1) == Some(b'&') { 2 } else { 1 };
                self.blanks_and_lines();
                parts.extend(self.command());
            } else {
                break;
            }
        }
        let node = if parts.len() > 1 {
            Node::Pipe(parts)
        } else {
            parts.pop()?
        };
        Some(if not { Node::Not(Box::new(node)) } else { node })
    }

    pub(super) fn command(&mut self) -> Option<Node> {
        if self.too_deep() {
            return self.simple();
        }
        let keyword = self.keyword();
        match keyword {
            "if" => {
                self.at += keyword.len();
                Some(self.conditional())
            }
            "while" | "until" => {
                self.at += keyword.len();
                let start = self.at;
                let condition = self.list(&["do"]);
                let written = self.since(start).trim();
                let body = self.body_of_loop();
                Some(Node::While {
                    until: keyword == "until",
                    condition,
                    written: written.trim_end_matches(';').into(),
                    body,
                })
            }
            "for" | "select" => {
                self.at += keyword.len();
                Some(self.repeated())
            }
            "case" => {
                self.at += keyword.len();
                Some(self.case())
            }
            "function" => {
                self.at += keyword.len();
                self.blanks();
                let start = self.at;
                while self.peek().is_some_and(is_name_of_function) {
                    self.at += 1;
                }
                let name = self.since(start).to_string();
                self.blanks();
                if self.starts("()") {
                    self.at += 2;
                }
                Some(self.function(name))
            }
            "{" => {
                self.at += 1;
                let list = self.list(&["}"]);
                self.take("}");
                Some(Node::Group(list, self.redirects()))
            }
            "[[" => {
                self.at += 2;
                Some(Node::Test(self.test()))
            }
            "time"
                if !self
                    .text
                    .get(self.at + 4..)
                    .unwrap_or_default()
                    .starts_with(" -") =>
            {
                self.at += 4;
                self.blanks();
                self.command()
            }
            _ if self.peek() == Some(b'(') => {
                if self.ahead(1) == Some(b'(') {
                    self.at += 2;
                    let inside = self.arithmetic();
                    return Some(Node::Arithmetic(inside));
                }
                self.at += 1;
                let list = self.list(&[")"]);
                if self.peek() == Some(b')') {
                    self.at += 1;
                }
                Some(Node::Subshell(list, self.redirects()))
            }
            _ => self.simple(),
        }
    }
}

/// The text of a word that is plain.
pub(super) fn literal(word: &Raw) -> Option<&str> {
    match word.0.as_slice() {
        [Piece::Text(text)] => Some(text),
        _ => None,
    }
}

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn is_name_of_function(byte: u8) -> bool {
    is_name(byte) || matches!(byte, b'-' | b':' | b'.')
}

/// A condition as a message can show it.
pub(super) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(80).collect()
}
