//! `[ … ]` and `[[ … ]]`.

use super::parse::literal;
use super::pattern;
use super::regex;
use super::state::{Shell, Status};
use super::syntax::{Piece, Raw};
use super::value::Value;

/// A word of a test: what it is, and how it was written.
struct Operand {
    value: Value,
    /// What it matches as a pattern, in `[[ … ]]`.
    raw: Option<Raw>,
    /// Whether it may be an operator: it was not quoted.
    plain: bool,
}

struct Test<'s, 'a, 'w> {
    shell: &'s mut Shell<'a>,
    words: &'w [Operand],
    at: usize,
    depth: u32,
}

impl Shell<'_> {
    /// Whether a test holds.
    pub fn test(&mut self, words: &[Raw], double: bool) -> Status {
        let mut operands = Vec::new();
        for raw in words {
            if self.is_out_of_fuel() {
                return Status::Unknown;
            }
            let plain = literal(raw).is_some();
            if !double && plain && literal(raw) == Some("]") {
                break;
            }
            let quoted = raw.0.iter().any(|piece| {
                matches!(
                    piece,
                    Piece::Quoted(_)
                        | Piece::Parameter { quoted: true, .. }
                        | Piece::Output { quoted: true, .. }
                        | Piece::Arithmetic { quoted: true, .. }
                )
            });
            if double || quoted {
                let value = self.single(raw);
                let raw = double.then(|| raw.clone());
                operands.push(Operand { value, raw, plain });
            } else {
                let fields = self.fields(raw);
                operands.extend(fields.into_iter().map(|value| Operand {
                    value,
                    raw: None,
                    plain,
                }));
            }
        }
        let mut test = Test {
            shell: self,
            words: &operands,
            at: 0,
            depth: 0,
        };
        test.or()
    }
}

fn both(left: Status, right: Status) -> Status {
    match (left, right) {
        (Status::No, _) | (_, Status::No) => Status::No,
        (Status::Yes, Status::Yes) => Status::Yes,
        _ => Status::Unknown,
    }
}

impl Test<'_, '_, '_> {
    fn operator(&self, distance: usize) -> Option<&str> {
        let word = self.words.get(self.at + distance)?;
        if !word.plain {
            return None;
        }
        word.value.parts().first().map(|part| part.text.as_str())
    }

    fn eat(&mut self, words: &[&str]) -> bool {
        let found = self.operator(0).is_some_and(|word| words.contains(&word));
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Status {
        let mut status = self.and();
        while self.eat(&["||", "-o"]) {
            let right = self.and();
            status = both(status.not(), right.not()).not();
        }
        status
    }

    fn and(&mut self) -> Status {
        let mut status = self.not();
        while self.eat(&["&&", "-a"]) {
            let right = self.not();
            status = both(status, right);
        }
        status
    }

    fn not(&mut self) -> Status {
        let mut not = false;
        while self.eat(&["!"]) {
            not = !not;
        }
        let status = self.primary();
        if not { status.not() } else { status }
    }

    fn primary(&mut self) -> Status {
        if self.depth < 20 && self.operator(0) == Some("(") {
            self.at += 1;
            self.depth += 1;
            let status = self.or();
            self.depth -= 1;
            self.eat(&[")"]);
            return status;
        }
        let binary = [
            "==", "=", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-ef",
            "-nt", "-ot",
        ];
        if let Some(operator) = self.operator(1).filter(|word| binary.contains(word)) {
            let operator = operator.to_string();
            let (left, right) = (self.words.get(self.at), self.words.get(self.at + 2));
            self.at += 3;
            return match (left, right) {
                (Some(left), Some(right)) => compare(self.shell, left, &operator, right),
                _ => Status::Unknown,
            };
        }
        let unary = self
            .operator(0)
            .filter(|word| word.len() == 2 && word.starts_with('-'));
        if let Some(operator) = unary.map(str::to_string) {
            self.at += 1;
            let Some(operand) = self.words.get(self.at) else {
                // `[ -z ]` tests a text, `[ -z $X ]` nothing.
                return Status::of(operator != "-n");
            };
            self.at += 1;
            return self.unary(&operator, operand);
        }
        match self.words.get(self.at) {
            Some(operand) => {
                self.at += 1;
                has_text(&operand.value)
            }
            None => Status::No,
        }
    }

    fn unary(&mut self, operator: &str, operand: &Operand) -> Status {
        match operator {
            "-z" => has_text(&operand.value).not(),
            "-n" => has_text(&operand.value),
            "-v" => {
                let name = operand.value.written();
                Status::of(self.shell.variables.contains_key(&name))
            }
            "-f" | "-e" | "-s" | "-r" => {
                let path = operand.value.known();
                match path.and_then(|path| self.shell.file(&path)) {
                    Some(_) => Status::Yes,
                    None if operand.value.given().as_deref() == Some("") => Status::No,
                    None => Status::Unknown,
                }
            }
            "-d" if operand.value.given().as_deref() == Some("") => Status::No,
            _ => Status::Unknown,
        }
    }
}

fn has_text(value: &Value) -> Status {
    use super::value::Known;
    let text = |part: &super::value::Part| part.known == Known::Yes && !part.text.is_empty();
    if value.parts().iter().any(text) {
        return Status::Yes;
    }
    match value.given() {
        Some(text) => Status::of(!text.is_empty()),
        None => Status::Unknown,
    }
}

fn compare(shell: &mut Shell, left: &Operand, operator: &str, right: &Operand) -> Status {
    let (Some(a), Some(b)) = (left.value.given(), right.value.given()) else {
        return Status::Unknown;
    };
    if !shell.fuel.burn(a.len() + b.len() + 8) {
        return Status::Unknown;
    }
    if operator.starts_with('-') {
        let number =
            |text: &str, shell: &mut Shell| super::arithmetic::evaluate(text.trim(), shell).ok();
        if a.trim().is_empty() || b.trim().is_empty() {
            // An argument that was not given would be a number.
            use super::value::Known;
            let open = |value: &Value| value.parts().iter().any(|part| part.known != Known::Yes);
            return if open(&left.value) || open(&right.value) {
                Status::Unknown
            } else {
                Status::No
            };
        }
        let (Some(a), Some(b)) = (number(&a, shell), number(&b, shell)) else {
            return Status::Unknown;
        };
        return match operator {
            "-eq" => Status::of(a == b),
            "-ne" => Status::of(a != b),
            "-lt" => Status::of(a < b),
            "-le" => Status::of(a <= b),
            "-gt" => Status::of(a > b),
            "-ge" => Status::of(a >= b),
            _ => Status::Unknown,
        };
    }
    match operator {
        "<" => Status::of(a < b),
        ">" => Status::of(a > b),
        "=~" => match regex::finds(&b, &a, &mut shell.fuel) {
            Some(found) => Status::of(found),
            None => Status::Unknown,
        },
        operator => {
            let equal = match &right.raw {
                None => a == b,
                Some(raw) => match shell.pattern(raw) {
                    Some(pattern) => pattern::matches(&pattern, &a, &mut shell.fuel),
                    None => return Status::Unknown,
                },
            };
            Status::of(equal == (operator != "!="))
        }
    }
}
