//! Reading JSON: strict, bounded in depth, without a panic on any input.

use crate::decimal::decimal;
use crate::document::{Document, Entry};

/// The document, or what was wrong and where.
pub fn read(text: &str) -> Result<Document, String> {
    let mut reader = Reader { text, at: 0 };
    let document = reader.value(0)?;
    reader.blanks();
    match reader.peek() {
        None => Ok(document),
        Some(_) => Err(reader.expected("the end")),
    }
}

const DEEPEST: u32 = 64;
/// Keys of a map that are compared with all before them; of more than these, all are compared in order at the end.
const FEW: usize = 32;

/// A key that a large map has twice.
fn repeated(entries: &[Entry]) -> Option<&str> {
    if entries.len() <= FEW {
        return None;
    }
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    keys.sort_unstable();
    let pair = keys.windows(2).find(|pair| pair[0] == pair[1])?;
    pair.first().copied()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|b| b" \t\r\n".contains(&b)) {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> String {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |line| line.chars().count())
            + 1;
        format!("line {line}, column {column}: expected {what}")
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(token.as_bytes());
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn value(&mut self, depth: u32) -> Result<Document, String> {
        if depth > DEEPEST {
            return Err(self.expected(&format!("at most {DEEPEST} levels of nesting")));
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Document::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.eat("true") => Ok(Document::Bool(true)),
            _ if self.eat("false") => Ok(Document::Bool(false)),
            _ if self.eat("null") => Ok(Document::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn map(&mut self, depth: u32) -> Result<Document, String> {
        let mut entries: Vec<Entry> = Vec::new();
        self.at += 1;
        self.blanks();
        if self.eat("}") {
            return Ok(Document::Map(entries));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in quotes"));
            }
            let key = self.string()?;
            self.blanks();
            if !self.eat(":") {
                return Err(self.expected("a colon"));
            }
            let value = self.value(depth + 1)?;
            let few = entries.len() < FEW;
            if few && entries.iter().any(|entry| entry.key == key) {
                return Err(self.expected(&format!("`{key}` only once")));
            }
            entries.push(Entry {
                key,
                value,
                comment: "",
            });
            self.blanks();
            if self.eat("}") {
                return match repeated(&entries) {
                    Some(key) => Err(self.expected(&format!("`{key}` only once"))),
                    None => Ok(Document::Map(entries)),
                };
            }
            if !self.eat(",") {
                return Err(self.expected("a comma or }"));
            }
        }
    }

    fn list(&mut self, depth: u32) -> Result<Document, String> {
        let mut items = Vec::new();
        self.at += 1;
        self.blanks();
        if self.eat("]") {
            return Ok(Document::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.eat("]") {
                return Ok(Document::List(items));
            }
            if !self.eat(",") {
                return Err(self.expected("a comma or ]"));
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let special = |b: u8| b == b'"' || b == b'\\' || b < 0x20;
            let plain = rest.bytes().position(special).unwrap_or(rest.len());
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            let Some(end) = self.peek() else {
                return Err(self.expected("a closing quote"));
            };
            self.at += 1;
            match end {
                b'"' => return Ok(out),
                b'\\' => out.push(self.escape()?),
                _ => return Err(self.expected("no control characters")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some_and(|b| b.is_ascii()));
        Ok(match letter {
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => return self.code_point(),
            _ => return Err(self.expected("a known escape")),
        })
    }

    /// `\uXXXX`, or two of them where they are the halves of one character.
    fn code_point(&mut self) -> Result<char, String> {
        let first = self.four_digits()?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first) && self.eat("\\u") {
            let second = self.four_digits()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(self.expected("the second half of a character"));
            }
            code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        }
        char::from_u32(code).ok_or_else(|| self.expected("a character"))
    }

    fn four_digits(&mut self) -> Result<u32, String> {
        let digits = self.text.get(self.at..self.at + 4);
        let hex = |text: &&str| text.bytes().all(|b| b.is_ascii_hexdigit());
        let code = digits
            .filter(hex)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += if code.is_some() { 4 } else { 0 };
        code.ok_or_else(|| self.expected("four hexadecimal digits"))
    }

    fn number(&mut self) -> Result<Document, String> {
        let rest = &self.text[self.at..];
        let part = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
        let length = rest.bytes().take_while(|b| part(*b)).count();
        let text = &rest[..length];
        let number = match text.parse::<i128>() {
            Ok(whole) => Some(Document::Int(whole)),
            Err(_) => decimal(text)
                .filter(|number| number.is_finite())
                .map(Document::Number),
        };
        if number.is_some() {
            self.at += length;
        }
        number.ok_or_else(|| self.expected("a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::json::write;
    use headroom_scenario::sample::Dice;

    #[test]
    fn mistakes_are_named_with_their_place() {
        #[track_caller]
        fn check(text: &str, message: &str) {
            assert_eq!(read(text).unwrap_err(), message);
        }
        check("", "line 1, column 1: expected a value");
        check("{\n  \"a\" 1}", "line 2, column 7: expected a colon");
        check("{\"a\":1,}", "line 1, column 8: expected a key in quotes");
        check("[1, 2", "line 1, column 6: expected a comma or ]");
        check(
            "\"\\u12",
            "line 1, column 4: expected four hexadecimal digits",
        );
        check("1 2", "line 1, column 3: expected the end");
        check(
            "{\"a\":1,\"a\":2}",
            "line 1, column 13: expected `a` only once",
        );
        let deep = "[".repeat(100_000);
        check(
            &deep,
            "line 1, column 66: expected at most 64 levels of nesting",
        );
    }

    #[test]
    fn escapes_are_read() {
        let read = read("\"\\u00e4\\ud83e\\udd80\\n\\/\"");
        assert_eq!(read, Ok(Document::Text("ä🦀\n/".into())));
    }

    #[test]
    fn mutilated_documents_never_panic() {
        let text = write(&headroom_scenario::document::write(
            &headroom_scenario::Scenario::default(),
        ));
        let mut dice = Dice::new(4);
        for _ in 0..3000 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=dice.below(4) {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] = dice.roll() as u8;
            }
            bytes.truncate(dice.below(bytes.len() as u64 + 1) as usize);
            let _ = read(&String::from_utf8_lossy(&bytes));
        }
    }
}
