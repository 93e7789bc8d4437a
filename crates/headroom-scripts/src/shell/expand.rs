//! Expansion of words: quoting, variables, substitutions, splitting.

use super::arithmetic::{self, Numbers};
use super::parameter::Found;
use super::parse::literal;
use super::state::{Flow, Shell};
use super::syntax::{List, Node, Piece, Raw};
use super::value::{Known, Part, Value, Variable};

/// Fields in the making.
#[derive(Default)]
struct Fields {
    done: Vec<Value>,
    current: Option<Vec<Part>>,
}

impl Fields {
    fn push(&mut self, part: Part) {
        self.current.get_or_insert_default().push(part);
    }

    fn quoted(&mut self, value: &Value) {
        let current = self.current.get_or_insert_default();
        current.extend(value.parts().iter().cloned());
        if value.parts().is_empty() {
            current.push(plain(""));
        }
    }

    fn end(&mut self) {
        if let Some(parts) = self.current.take() {
            self.done.push(Value::of(parts));
        }
    }

    fn split(&mut self, value: &Value, separators: &[char]) {
        for part in value.parts() {
            if part.known != Known::Yes {
                self.push(part.clone());
                continue;
            }
            for (place, text) in part.text.split(separators).enumerate() {
                if place > 0 {
                    self.end();
                }
                if !text.is_empty() {
                    self.push(plain(text));
                }
            }
        }
    }
}

fn plain(text: &str) -> Part {
    Part {
        text: text.into(),
        known: Known::Yes,
    }
}

const BLANKS: &[char] = &[' ', '\t', '\n'];

impl Shell<'_> {
    /// The words that a word becomes.
    pub fn fields(&mut self, raw: &Raw) -> Vec<Value> {
        if let Some(text) = literal(raw) {
            let all = braces(text);
            if !self
                .fuel
                .burn(all.iter().map(|text| text.len() + 48).sum::<usize>())
            {
                return Vec::new();
            }
            return all.into_iter().map(Value::text).collect();
        }
        let mut fields = Fields::default();
        for piece in &raw.0 {
            if self.is_out_of_fuel() {
                break;
            }
            match piece {
                Piece::Text(text) | Piece::Quoted(text) => {
                    self.fuel.burn(text.len() + 32);
                    fields.push(plain(text));
                }
                Piece::Placeholder(text) => fields.push(placeholder(text)),
                Piece::Parameter { parameter, quoted } => {
                    let values = match self.parameter(parameter) {
                        Found::Many(values) if *quoted && parameter.is_joined() => {
                            vec![Value::joined(&values, " ")]
                        }
                        Found::Many(values) => values,
                        Found::One(value) => vec![value],
                        Found::Nothing => vec![Value::not_given(&parameter.written)],
                    };
                    self.add(&mut fields, &values, *quoted);
                }
                Piece::Arithmetic {
                    inside,
                    written,
                    quoted,
                } => {
                    let value = self.arithmetic(inside, written);
                    self.add(&mut fields, &[value], *quoted);
                }
                Piece::Output {
                    list,
                    written,
                    quoted,
                } => {
                    let value = self.output(list, written);
                    self.add(&mut fields, &[value], *quoted);
                }
            }
        }
        fields.end();
        fields.done
    }

    fn add(&mut self, fields: &mut Fields, values: &[Value], quoted: bool) {
        let separators: Vec<char> = match self.variables.get("IFS") {
            Some(Variable::Text(value)) => match value.known() {
                Some(text) => text.chars().collect(),
                None => BLANKS.to_vec(),
            },
            _ => BLANKS.to_vec(),
        };
        for (place, value) in values.iter().enumerate() {
            if !self.fuel.burn(value.len()) {
                return;
            }
            if place > 0 {
                fields.end();
            }
            if quoted {
                fields.quoted(value);
            } else {
                fields.split(value, &separators);
            }
        }
    }

    /// What a word becomes where it stays one, as in an assignment.
    pub fn single(&mut self, raw: &Raw) -> Value {
        let mut parts = Vec::new();
        for piece in &raw.0 {
            if self.is_out_of_fuel() {
                break;
            }
            let value = match piece {
                Piece::Text(text) | Piece::Quoted(text) => {
                    self.fuel.burn(text.len() + 32);
                    parts.push(plain(text));
                    continue;
                }
                Piece::Placeholder(text) => {
                    parts.push(placeholder(text));
                    continue;
                }
                Piece::Parameter { parameter, .. } => match self.parameter(parameter) {
                    Found::Many(values) => Value::joined(&values, " "),
                    Found::One(value) => value,
                    Found::Nothing => Value::not_given(&parameter.written),
                },
                Piece::Arithmetic {
                    inside, written, ..
                } => self.arithmetic(inside, written),
                Piece::Output { list, written, .. } => self.output(list, written),
            };
            if !self.fuel.burn(value.len()) {
                break;
            }
            parts.extend(value.parts().iter().cloned());
        }
        Value::of(parts)
    }

    /// A word as a pattern, in which what was quoted is plain; `None` if it cannot be known.
    pub fn pattern(&mut self, raw: &Raw) -> Option<String> {
        let mut pattern = String::new();
        let escaped = |text: &str, pattern: &mut String| {
            for char in text.chars() {
                if "*?[]\\@!+".contains(char) {
                    pattern.push('\\');
                }
                pattern.push(char);
            }
        };
        for piece in &raw.0 {
            match piece {
                Piece::Text(text) | Piece::Placeholder(text) => pattern.push_str(text),
                Piece::Quoted(text) => escaped(text, &mut pattern),
                piece => {
                    let quoted = matches!(
                        piece,
                        Piece::Parameter { quoted: true, .. }
                            | Piece::Arithmetic { quoted: true, .. }
                            | Piece::Output { quoted: true, .. }
                    );
                    let value = self.single(&Raw(vec![piece.clone()]));
                    let text = value.given()?;
                    if quoted {
                        escaped(&text, &mut pattern);
                    } else {
                        pattern.push_str(&text);
                    }
                }
            }
        }
        self.fuel.burn(pattern.len()).then_some(pattern)
    }

    pub fn arithmetic(&mut self, inside: &Raw, written: &str) -> Value {
        let value = self.single(inside);
        if let Some(why) = value.why() {
            return Value::unknown(written, &why);
        }
        let text = value.written();
        if !self.fuel.burn(text.len() * 4) {
            return Value::unknown(written, written);
        }
        match arithmetic::evaluate(&text, self) {
            Ok(value) => Value::text(value.to_string()),
            Err(why) => Value::unknown(written, &why),
        }
    }

    /// What a command prints.
    pub fn output(&mut self, list: &List, written: &str) -> Value {
        if self.depth > 30 || !self.fuel.burn(100) {
            return Value::unknown(written, written);
        }
        self.depth += 1;
        let silent = std::mem::replace(&mut self.silent, true);
        let kept = self.changes(list).then(|| self.variables.clone());
        let flow = self.flow;
        let output = self.captured(|shell| {
            shell.list(list);
        });
        self.flow = flow;
        if let Some(kept) = kept {
            self.variables = kept;
        }
        self.silent = silent;
        self.depth -= 1;
        if output.unknown || self.is_out_of_fuel() {
            return Value::unknown(written, written);
        }
        let mut parts = output.parts;
        while let Some(last) = parts.last_mut() {
            let length = last.text.trim_end_matches(['\n', '\r']).len();
            last.text.truncate(length);
            if !last.text.is_empty() {
                break;
            }
            parts.pop();
        }
        Value::of(parts)
    }

    /// Whether commands could change variables.
    fn changes(&self, list: &List) -> bool {
        list.iter().any(|(_, node)| match node {
            Node::Simple(simple) => {
                let first = simple.words.first().and_then(literal);
                !simple.assignments.is_empty()
                    || !simple.declared.is_empty()
                    || first.is_none_or(|name| {
                        self.functions.contains_key(name)
                            || matches!(name, "read" | "eval" | "source" | "." | "let" | "unset")
                    })
            }
            Node::Pipe(_) => false,
            _ => true,
        })
    }

    /// Stops the loop, function or script unless this is what it says already.
    pub fn leave(&mut self, flow: Flow) {
        if self.flow == Flow::Next {
            self.flow = flow;
        }
    }
}

impl Numbers for Shell<'_> {
    fn number(&mut self, name: &str) -> Result<String, String> {
        if !self.fuel.burn(16) {
            return Err(name.into());
        }
        let Found::One(value) = self.lookup(name) else {
            return Err(name.into());
        };
        value.known().ok_or_else(|| value.why().unwrap_or_default())
    }

    fn assign(&mut self, name: &str, value: i64) {
        self.set_text(name, Value::text(value.to_string()));
    }
}

fn placeholder(text: &str) -> Part {
    Part {
        text: text.into(),
        known: Known::No(text.into()),
    }
}

/// `{a,b}` and `{1..4}` of an unquoted word.
fn braces(text: &str) -> Vec<String> {
    let whole = vec![text.to_string()];
    let (Some(open), Some(close)) = (text.find('{'), text.find('}')) else {
        return whole;
    };
    let (Some(before), Some(inside), Some(after)) = (
        text.get(..open),
        text.get(open + 1..close.max(open + 1)),
        text.get(close + 1..),
    ) else {
        return whole;
    };
    if close < open || inside.contains('{') || after.contains(['{', '}']) {
        return whole;
    }
    let around = |item: String| format!("{before}{item}{after}");
    if let Some((first, last)) = inside.split_once("..")
        && let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>())
        && first.abs() < 1 << 20
        && last.abs() < 1 << 20
        && (last - first).abs() <= 512
    {
        return if first <= last {
            (first..=last)
                .map(|number| around(number.to_string()))
                .collect()
        } else {
            (last..=first)
                .rev()
                .map(|number| around(number.to_string()))
                .collect()
        };
    }
    if inside.contains(',') && inside.len() < 4096 && text.len() < 8192 {
        return inside
            .split(',')
            .take(64)
            .map(|item| around(item.into()))
            .collect();
    }
    whole
}
