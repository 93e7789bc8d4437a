//! Simple commands: assignments, words, redirections and heredocs.

use super::parse::{Parser, is_name, literal, parse_body};
use super::syntax::{Assigned, Assignment, Node, Piece, Raw, Redirect, Simple};

impl Parser<'_> {
    pub(super) fn simple(&mut self) -> Option<Node> {
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

    pub(super) fn redirects(&mut self) -> Vec<Redirect> {
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
