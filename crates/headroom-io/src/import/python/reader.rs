//! The calls of a script, in the order in which they end, and the plain values that its names were given.

use super::call::Call;
use super::tokens::{Token, tokens};
use headroom_base::document::Document;
use headroom_base::order::Map;

/// Bytes that names may stand for altogether, each time they stand.
const ROOM: usize = 1 << 20;

/// Brackets within brackets.
const DEEPEST: usize = 32;

/// The calls of a script in the order in which they end.
pub fn calls(text: &str) -> Vec<Call> {
    let mut reader = Reader {
        tokens: tokens(text),
        at: 0,
        known: Map::new(),
        room: ROOM,
        calls: Vec::new(),
    };
    while reader.at < reader.tokens.len() {
        reader.statement();
    }
    reader.calls
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    /// Names that were given a plain value.
    known: Map<String, Document>,
    room: usize,
    calls: Vec<Call>,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next_is(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    fn skip(&mut self, sign: char) -> bool {
        let is = self.next_is(sign);
        self.at += usize::from(is);
        is
    }

    /// Takes a name that is given a plain value, or passes over a token; calls are noted wherever they stand.
    fn statement(&mut self) {
        let (name, assigned) = (self.tokens.get(self.at), self.tokens.get(self.at + 1));
        if let (Some(Token::Name(name)), Some(Token::Sign('='))) = (name, assigned)
            && self.tokens.get(self.at + 2) != Some(&Token::Sign('='))
        {
            let name = name.clone();
            self.at += 2;
            match self.expression(0) {
                Some(value) if self.known.len() < 1_000 => {
                    self.known.insert(name, value);
                }
                _ => drop(self.known.remove(&name)),
            }
            return;
        }
        let before = self.at;
        self.expression(0);
        if self.at == before {
            self.at += 1;
        }
    }

    /// A value, where it is plain; what is not is passed over to the end of the expression.
    fn expression(&mut self, depth: usize) -> Option<Document> {
        let mut value = self.operand(depth);
        loop {
            let line = self.peek() == Some(&Token::Line) && depth > 0;
            if line {
                self.at += 1;
                continue;
            }
            match self.peek() {
                None | Some(Token::Line | Token::Sign(',' | ')' | ']' | '}' | ':' | '=')) => {
                    return value;
                }
                Some(Token::Sign('*')) => value = self.times(value, depth),
                Some(Token::Sign(sign @ ('+' | '-'))) => {
                    let minus = *sign == '-';
                    self.at += 1;
                    let mut other = self.operand(depth);
                    while self.peek() == Some(&Token::Sign('*')) {
                        other = self.times(other, depth);
                    }
                    value = match (value, other) {
                        (Some(Document::Int(a)), Some(Document::Int(b))) if minus => {
                            a.checked_sub(b).map(Document::Int)
                        }
                        (Some(Document::Int(a)), Some(Document::Int(b))) => {
                            a.checked_add(b).map(Document::Int)
                        }
                        _ => None,
                    };
                }
                Some(_) => {
                    let before = self.at;
                    self.operand(depth);
                    if self.at == before {
                        self.at += 1;
                    }
                    value = None;
                }
            }
        }
    }

    /// A product of whole numbers, from its sign on.
    fn times(&mut self, value: Option<Document>, depth: usize) -> Option<Document> {
        self.at += 1;
        match (value, self.operand(depth)) {
            (Some(Document::Int(a)), Some(Document::Int(b))) => a.checked_mul(b).map(Document::Int),
            _ => None,
        }
    }

    fn operand(&mut self, depth: usize) -> Option<Document> {
        while depth > 0 && self.peek() == Some(&Token::Line) {
            self.at += 1;
        }
        if depth >= DEEPEST {
            return None;
        }
        match self.peek()?.clone() {
            Token::Value(Document::Text(mut text)) => {
                self.at += 1;
                // Texts that follow each other are one.
                while let Some(Token::Value(Document::Text(more))) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Some(Document::Text(text))
            }
            Token::Value(value) => {
                self.at += 1;
                Some(value)
            }
            Token::Name(name) => {
                self.at += 1;
                if self.skip('(') {
                    self.call(name, depth + 1);
                    return None;
                }
                let number_format = name.strip_prefix("torch.").map(Document::from);
                number_format.or_else(|| self.value_of(&name))
            }
            Token::Sign(open @ ('[' | '(')) => {
                self.at += 1;
                let close = if open == '[' { ']' } else { ')' };
                self.list(close, depth + 1)
            }
            Token::Sign('{') => {
                self.at += 1;
                self.list('}', depth + 1);
                None
            }
            Token::Sign(_) | Token::Line => None,
        }
    }

    /// What a name was given, while there is room: names that stand for lists of names grow without end.
    fn value_of(&mut self, name: &str) -> Option<Document> {
        let value = self.known.get(name)?;
        self.room = self.room.checked_sub(size(value))?;
        Some(value.clone())
    }

    /// The items up to the closing bracket, where all of them are plain; one in round brackets is itself.
    fn list(&mut self, close: char, depth: usize) -> Option<Document> {
        let mut items = Some(Vec::new());
        let mut commas = false;
        loop {
            while self.peek() == Some(&Token::Line) {
                self.at += 1;
            }
            if self.skip(close) || self.peek().is_none() {
                break;
            }
            if self.skip(',') {
                commas = true;
                continue;
            }
            let before = self.at;
            match (self.expression(depth), &mut items) {
                (Some(item), Some(items)) => items.push(item),
                _ => items = None,
            }
            if self.at == before {
                self.at += 1;
            }
        }
        let mut items = items?;
        if close == ')' && !commas && items.len() == 1 {
            return items.pop();
        }
        Some(Document::List(items))
    }

    /// What is said to a call, up to its closing bracket.
    fn call(&mut self, name: String, depth: usize) {
        let mut call = Call {
            name,
            positional: Vec::new(),
            named: Vec::new(),
        };
        loop {
            while self.peek() == Some(&Token::Line) {
                self.at += 1;
            }
            if self.skip(')') || self.peek().is_none() {
                break;
            }
            if self.skip(',') {
                continue;
            }
            let before = self.at;
            let assigned = self.tokens.get(self.at + 1) == Some(&Token::Sign('='));
            match self.peek().cloned() {
                Some(Token::Name(key)) if assigned => {
                    self.at += 2;
                    if let Some(value) = self.expression(depth) {
                        call.named.push((key, value));
                    }
                }
                _ => call.positional.extend(self.expression(depth)),
            }
            if self.at == before {
                self.at += 1;
            }
        }
        self.calls.push(call);
    }
}

/// About the memory that a value takes.
fn size(value: &Document) -> usize {
    let inside = match value {
        Document::Text(text) => text.len(),
        Document::List(items) => items.iter().map(size).sum(),
        _ => 0,
    };
    inside + size_of::<Document>()
}
