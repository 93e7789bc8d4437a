//! A script's syntax tree. Any text has one: what bash would refuse is read as plain words.

use super::syntax::{Assigned, Assignment, Joint, List, Node, Piece, Raw, Redirect, Simple};
use std::rc::Rc;

/// How deep constructs may stand in each other; deeper ones are plain text.
const DEPTH: u32 = 24;
/// Words that are read of a text; no script has so many.
const WORDS: u32 = 40_000;

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
    bodies: Vec<(usize, usize)>,
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
    fn newline(&mut self) {
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

    fn comment(&mut self) {
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
    fn keyword(&self) -> &'a str {
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

    fn take(&mut self, keyword: &str) -> bool {
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

    fn command(&mut self) -> Option<Node> {
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

    fn conditional(&mut self) -> Node {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.blanks();
            let start = self.at;
            let condition = self.list(&["then", "fi"]);
            let written = self.since(start).trim().trim_end_matches(';').trim();
            let written: Rc<str> = short(written).into();
            self.take("then");
            let body = self.list(&["elif", "else", "fi"]);
            arms.push((condition, written, body));
            if self.take("elif") {
                continue;
            }
            if self.take("else") {
                otherwise = Some(self.list(&["fi"]));
            }
            self.take("fi");
            return Node::If { arms, otherwise };
        }
    }

    fn body_of_loop(&mut self) -> List {
        self.take("do");
        let body = self.list(&["done"]);
        self.take("done");
        body
    }

    fn repeated(&mut self) -> Node {
        self.blanks();
        if self.starts("((") {
            self.at += 2;
            let start = self.until_semicolon();
            let condition = self.until_semicolon();
            let step = self.arithmetic();
            self.blanks();
            if self.peek() == Some(b';') {
                self.at += 1;
            }
            return Node::Counted {
                start,
                condition,
                step,
                body: self.body_of_loop(),
            };
        }
        let start = self.at;
        while self.peek().is_some_and(is_name) {
            self.at += 1;
        }
        let name = self.since(start).to_string();
        self.blanks_and_lines();
        let mut words = None;
        if self.keyword() == "in" {
            self.at += 2;
            let mut items = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                    Some(b'#') => self.comment(),
                    _ => {}
                }
                match self.word() {
                    Some(word) => items.push(word),
                    None => {
                        if matches!(self.peek(), None | Some(b'\n' | b';')) {
                            break;
                        }
                        self.step();
                    }
                }
            }
            words = Some(items);
        }
        self.blanks_and_lines();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        Node::For {
            name,
            words,
            body: self.body_of_loop(),
        }
    }

    fn case(&mut self) -> Node {
        self.blanks();
        let word = self.word().unwrap_or_default();
        self.take("in");
        let mut arms = Vec::new();
        loop {
            self.blanks_and_lines();
            if self.peek().is_none() || self.keyword() == "esac" {
                break;
            }
            let start = self.at;
            if self.peek() == Some(b'(') {
                self.at += 1;
            }
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.extend(self.word());
                self.blanks();
                if self.peek() == Some(b'|') {
                    self.at += 1;
                } else {
                    break;
                }
            }
            if self.peek() == Some(b')') {
                self.at += 1;
            }
            let body = self.list(&[";;", "esac"]);
            while matches!(self.peek(), Some(b';' | b'&')) {
                self.at += 1;
            }
            arms.push((patterns, body));
            if self.at == start {
                self.step();
            }
        }
        self.take("esac");
        Node::Case { word, arms }
    }

    fn function(&mut self, name: String) -> Node {
        self.blanks_and_lines();
        self.depth += 1;
        let body = self.command();
        self.depth -= 1;
        let body = match body {
            Some(Node::Group(list, _)) => list,
            Some(node) => Rc::new(vec![(Joint::Then, node)]),
            None => List::default(),
        };
        Node::Function { name, body }
    }

    /// The words of `[[ … ]]`, its operators among them.
    fn test(&mut self) -> Vec<Raw> {
        let mut words: Vec<Raw> = Vec::new();
        let plain = |text: &str| Raw(vec![Piece::Text(text.into())]);
        loop {
            self.blanks();
            if self.starts("]]") {
                self.at += 2;
                return words;
            }
            let operator = ["&&", "||", "(", ")", "<", ">"];
            let operator = operator.iter().find(|operator| self.starts(operator));
            match self.peek() {
                // What is not closed ends with its command.
                None | Some(b';') => return words,
                Some(b'\n') => self.newline(),
                _ if words.last() == Some(&plain("=~")) => words.push(self.regex()),
                _ if operator.is_some() => {
                    let operator = operator.copied().unwrap_or_default();
                    self.at += operator.len();
                    words.push(plain(operator));
                }
                _ => {
                    let start = self.at;
                    words.extend(self.word());
                    if self.at == start {
                        self.step();
                    }
                }
            }
        }
    }

    fn simple(&mut self) -> Option<Node> {
        let mut simple = Simple::default();
        let mut declares = false;
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'|' | b')') => break,
                Some(b'&') if self.ahead(1) != Some(b'>') => break,
                Some(b'#') => {
                    self.comment();
                    break;
                }
                Some(b'(') => {
                    if simple.words.len() == 1
                        && self.ahead(1) == Some(b')')
                        && let Some(name) = simple.words.first().and_then(literal)
                    {
                        self.at += 2;
                        return Some(self.function(name.to_string()));
                    }
                    // As prose has them.
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            if let Some(redirect) = self.redirect() {
                simple.redirects.extend(redirect);
                continue;
            }
            if (simple.words.is_empty() || declares)
                && let Some(assignment) = self.assignment()
            {
                if declares {
                    simple.declared.push(assignment);
                } else {
                    simple.assignments.push(assignment);
                }
                continue;
            }
            let start = self.at;
            if let Some(word) = self.word() {
                if simple.words.is_empty() {
                    let declaring = ["export", "declare", "local", "readonly", "typeset"];
                    declares = literal(&word).is_some_and(|word| declaring.contains(&word));
                }
                simple.words.push(word);
            }
            if self.at == start {
                self.step();
            }
        }
        (simple != Simple::default()).then_some(Node::Simple(simple))
    }

    /// `name=`, `name[index]=`, `name+=` and what follows.
    fn assignment(&mut self) -> Option<Assignment> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while bytes.get(at).copied().is_some_and(is_name) {
            at += 1;
        }
        if at == start || bytes.get(start).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        let name = self.text.get(start..at)?.to_string();
        let mut index = None;
        if bytes.get(at) == Some(&b'[') {
            let inside = bytes.get(at..)?;
            let length = inside.iter().take(200).position(|byte| *byte == b']')?;
            if !matches!(bytes.get(at + length + 1), Some(b'=' | b'+')) {
                return None;
            }
            self.at = at + 1;
            index = Some(self.bracket());
            at = self.at;
            if bytes.get(at) == Some(&b']') {
                at += 1;
            }
        }
        let append = bytes.get(at) == Some(&b'+');
        at += usize::from(append);
        if bytes.get(at) != Some(&b'=') {
            // An index is not read twice.
            self.at = if index.is_some() { at } else { start };
            return None;
        }
        self.at = at + 1;
        let value = if self.peek() == Some(b'(') {
            self.at += 1;
            Assigned::List(self.items())
        } else {
            Assigned::Text(self.word().unwrap_or_default())
        };
        Some(Assignment {
            name,
            index,
            append,
            value,
        })
    }

    fn items(&mut self) -> Vec<(Option<Raw>, Raw)> {
        let mut items = Vec::new();
        loop {
            self.blanks_and_lines();
            match self.peek() {
                None => return items,
                Some(b')') => {
                    self.at += 1;
                    return items;
                }
                _ => {}
            }
            let start = self.at;
            let mut key = None;
            if self.peek() == Some(b'[') && self.is_keyed() {
                self.at += 1;
                key = Some(self.bracket());
                self.at += if self.starts("]=") { 2 } else { 0 };
            }
            match self.word() {
                Some(word) => items.push((key, word)),
                None if key.is_some() => items.push((key, Raw::default())),
                None => {}
            }
            if self.at == start {
                self.step();
            }
        }
    }

    /// Whether `[key]=` stands here.
    fn is_keyed(&self) -> bool {
        let line = self.rest().as_bytes();
        let line = line.get(..line.len().min(200)).unwrap_or_default();
        let end = line.iter().position(|byte| *byte == b']');
        end.is_some_and(|end| line.get(end + 1) == Some(&b'='))
    }

    fn redirects(&mut self) -> Vec<Redirect> {
        let mut all = Vec::new();
        loop {
            self.blanks();
            match self.redirect() {
                Some(redirect) => all.extend(redirect),
                None => return all,
            }
        }
    }

    /// A redirection: what of it matters.
    fn redirect(&mut self) -> Option<Vec<Redirect>> {
        let mut digits = 0;
        while digits < 3 && self.ahead(digits).is_some_and(|byte| byte.is_ascii_digit()) {
            digits += 1;
        }
        let both = digits == 0 && self.starts("&>");
        let operator = self.ahead(digits + usize::from(both))?;
        if !matches!(operator, b'<' | b'>') || self.placeholder().is_some() {
            return None;
        }
        let descriptor = self.text.get(self.at..self.at + digits)?;
        let output = both || matches!(descriptor, "" | "1");
        self.at += digits + usize::from(both);
        if self.starts("<<<") {
            self.at += 3;
            self.blanks();
            return Some(self.word().map(Redirect::Text).into_iter().collect());
        }
        if self.starts("<<") {
            return Some(self.heredoc().map(Redirect::Text).into_iter().collect());
        }
        self.at += 1;
        if matches!(self.peek(), Some(b'(')) {
            // `>(…)` and `<(…)`: another program at the other end.
            self.at += 1;
            self.list(&[")"]);
            self.at += usize::from(self.peek() == Some(b')'));
            return Some(Vec::new());
        }
        let append = operator == b'>' && self.peek() == Some(b'>');
        self.at += usize::from(append || self.peek() == Some(b'|'));
        let copies = self.peek() == Some(b'&');
        self.at += usize::from(copies);
        self.blanks();
        if matches!(self.peek(), Some(b'<' | b'>')) && self.ahead(1) == Some(b'(') {
            self.at += 2;
            self.list(&[")"]);
            self.at += usize::from(self.peek() == Some(b')'));
            return Some(Vec::new());
        }
        let file = self.word();
        Some(match (file, operator) {
            (Some(file), b'>') if output && !copies => vec![Redirect::To { file, append }],
            (Some(file), b'<') if !copies => vec![Redirect::From(file)],
            _ => Vec::new(),
        })
    }

    /// The body of a heredoc, which stands after the line that is being read.
    fn heredoc(&mut self) -> Option<Raw> {
        self.at += 2;
        let strips = self.peek() == Some(b'-');
        self.at += usize::from(strips);
        self.blanks();
        let start = self.at;
        self.word()?;
        let written = self.since(start);
        let raw = written.contains(['\'', '"', '\\']);
        let delimiter: String = written.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let (line, from) = match self.bodies.last() {
            Some((line, end)) if *line >= self.at => (*line, *end),
            _ => {
                let line = self.line_end();
                (line, (line + 1).min(self.text.len()))
            }
        };
        let mut end = from;
        let mut after = self.text.len();
        let mut body = String::new();
        for line in self.text.get(from..)?.split_inclusive('\n') {
            let plain = line.trim_end_matches(['\n', '\r']);
            let plain = if strips {
                plain.trim_start_matches('\t')
            } else {
                plain
            };
            end += line.len();
            // Bash wants the delimiter alone; people indent it.
            if plain.trim() == delimiter {
                after = end;
                break;
            }
            body.push_str(if strips {
                line.trim_start_matches('\t')
            } else {
                line
            });
        }
        self.bodies.push((line, after));
        if raw {
            return Some(Raw(vec![Piece::Quoted(body)]));
        }
        if self.too_deep() {
            return None;
        }
        Some(parse_body(&body, self.depth + 1))
    }

    /// Where the line that is being read ends, continued lines included.
    fn line_end(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\n' => return at,
                _ => {}
            }
            at += 1;
        }
        self.text.len()
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

fn is_name_of_function(byte: u8) -> bool {
    is_name(byte) || matches!(byte, b'-' | b':' | b'.')
}

/// A condition as a message can show it.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(80).collect()
}
