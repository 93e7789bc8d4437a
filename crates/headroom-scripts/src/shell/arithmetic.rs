//! `$((…))`: whole numbers, variables by name.

/// What an expression may ask for and change.
pub(super) trait Numbers {
    /// The text of a variable; an error says what it depends on.
    fn number(&mut self, name: &str) -> Result<String, String>;
    fn assign(&mut self, name: &str, value: i64);
}

/// The value of an expression; an error says why it cannot be known.
pub(super) fn evaluate(text: &str, numbers: &mut dyn Numbers) -> Result<i64, String> {
    let mut at = Expression {
        bytes: text.as_bytes(),
        text,
        at: 0,
        depth: 0,
        quiet: false,
        numbers,
    };
    let value = at.comma()?;
    at.blanks();
    if at.at < text.len() {
        return Err(text.trim().into());
    }
    Ok(value)
}

struct Expression<'a, 'n> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    depth: u32,
    /// In the branch that is not taken nothing is assigned.
    quiet: bool,
    numbers: &'n mut dyn Numbers,
}

/// Binary operators by how tightly they bind, the loosest first; longer ones before their beginnings.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Expression<'_, '_> {
    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, word: &str) -> bool {
        self.blanks();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = rest.starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn broken<T>(&self) -> Result<T, String> {
        Err(self.text.trim().chars().take(80).collect())
    }

    fn comma(&mut self) -> Result<i64, String> {
        let mut value = self.conditional()?;
        while self.eat(",") {
            value = self.conditional()?;
        }
        Ok(value)
    }

    fn conditional(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > 30 {
            return self.broken();
        }
        let mut value = self.binary(0)?;
        if self.eat("?") {
            let before = self.quiet;
            self.quiet = before || value == 0;
            let yes = self.conditional();
            if !self.eat(":") {
                return self.broken();
            }
            self.quiet = before || value != 0;
            let no = self.conditional();
            self.quiet = before;
            value = if value == 0 { no? } else { yes? };
        }
        self.depth -= 1;
        Ok(value)
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        self.blanks();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = LEVELS
            .get(level)?
            .iter()
            .find(|word| rest.starts_with(word.as_bytes()))?;
        let next = rest.get(found.len()).copied().unwrap_or(0);
        let longer = match *found {
            "|" | "&" => next == found.as_bytes().first().copied().unwrap_or(0) || next == b'=',
            "<" | ">" => next == found.as_bytes().first().copied().unwrap_or(0),
            "+" | "-" | "/" | "%" | "^" => next == b'=',
            "*" => next == b'=' || next == b'*',
            _ => false,
        };
        if longer {
            return None;
        }
        self.at += found.len();
        Some(found)
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        if level >= LEVELS.len() {
            return self.power();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let before = self.quiet;
            let decided = (operator == "&&" && left == 0) || (operator == "||" && left != 0);
            self.quiet |= decided;
            let right = self.binary(level + 1);
            self.quiet = before;
            if decided {
                left = i64::from(left != 0);
                continue;
            }
            let right = right?;
            let whole = |value: Option<i64>| value.ok_or_else(|| self.text.trim().to_string());
            let shift = u32::try_from(right).ok();
            left = match operator {
                "||" | "&&" => i64::from(right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<<" => whole(shift.and_then(|by| left.checked_shl(by)))?,
                ">>" => whole(shift.and_then(|by| left.checked_shr(by)))?,
                "+" => whole(left.checked_add(right))?,
                "-" => whole(left.checked_sub(right))?,
                "*" => whole(left.checked_mul(right))?,
                "/" => whole(left.checked_div(right))?,
                _ => whole(left.checked_rem(right))?,
            };
        }
        Ok(left)
    }

    fn power(&mut self) -> Result<i64, String> {
        let base = self.unary()?;
        if self.eat("**") {
            self.depth += 1;
            if self.depth > 30 {
                return self.broken();
            }
            let exponent = self.power()?;
            self.depth -= 1;
            let exponent = u32::try_from(exponent).ok();
            let value = exponent.and_then(|exponent| base.checked_pow(exponent));
            return value.map_or_else(|| self.broken(), Ok);
        }
        Ok(base)
    }

    fn unary(&mut self) -> Result<i64, String> {
        let mut signs = Vec::new();
        loop {
            self.blanks();
            let double = self.bytes.get(self.at..self.at + 2);
            if matches!(double, Some(b"++" | b"--")) {
                let by = if double == Some(b"++") { 1 } else { -1 };
                self.at += 2;
                let name = self.name();
                if name.is_empty() {
                    return self.broken();
                }
                let value = self.variable(&name)?.wrapping_add(by);
                self.set(&name, value);
                return Ok(signed(value, &signs));
            }
            match self.bytes.get(self.at) {
                Some(sign @ (b'-' | b'+' | b'!' | b'~')) => {
                    signs.push(*sign);
                    self.at += 1;
                }
                _ => break,
            }
        }
        let value = self.primary()?;
        Ok(signed(value, &signs))
    }

    fn name(&mut self) -> String {
        self.blanks();
        let start = self.at;
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        while self.bytes.get(self.at).is_some_and(name) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default().into()
    }

    fn set(&mut self, name: &str, value: i64) {
        if !self.quiet {
            self.numbers.assign(name, value);
        }
    }

    fn variable(&mut self, name: &str) -> Result<i64, String> {
        let text = self.numbers.number(name)?;
        let text = text.trim();
        match text.parse() {
            Ok(value) => Ok(value),
            Err(_) if text.is_empty() => Ok(0),
            Err(_) => Err(name.into()),
        }
    }

    fn primary(&mut self) -> Result<i64, String> {
        if self.eat("(") {
            let value = self.comma()?;
            return if self.eat(")") {
                Ok(value)
            } else {
                self.broken()
            };
        }
        let name = self.name();
        if name.is_empty() {
            return self.broken();
        }
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            return number(&name).map_or_else(|| self.broken(), Ok);
        }
        self.blanks();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(b"++") || rest.starts_with(b"--") {
            let by = if rest.starts_with(b"++") { 1 } else { -1 };
            self.at += 2;
            let value = self.variable(&name)?;
            self.set(&name, value.wrapping_add(by));
            return Ok(value);
        }
        let compound = ["+=", "-=", "*=", "/=", "%="];
        if let Some(operator) = compound
            .iter()
            .find(|word| rest.starts_with(word.as_bytes()))
        {
            self.at += 2;
            let right = self.conditional()?;
            let left = self.variable(&name)?;
            let value = match *operator {
                "+=" => left.checked_add(right),
                "-=" => left.checked_sub(right),
                "*=" => left.checked_mul(right),
                "/=" => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            let Some(value) = value else {
                return self.broken();
            };
            self.set(&name, value);
            return Ok(value);
        }
        if rest.starts_with(b"=") && !rest.starts_with(b"==") {
            self.at += 1;
            let value = self.conditional()?;
            self.set(&name, value);
            return Ok(value);
        }
        self.variable(&name)
    }
}

fn signed(value: i64, signs: &[u8]) -> i64 {
    signs.iter().rev().fold(value, |value, sign| match sign {
        b'-' => value.wrapping_neg(),
        b'!' => i64::from(value == 0),
        b'~' => !value,
        _ => value,
    })
}

fn number(text: &str) -> Option<i64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(hex, 16).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return i64::from_str_radix(text, 8).ok();
    }
    text.parse().ok()
}
