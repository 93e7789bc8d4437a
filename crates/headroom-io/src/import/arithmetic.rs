//! Sums of whole numbers, as a shell script has them between `$((` and `))`.

use headroom_base::order::Map;

/// Brackets within brackets.
const DEEPEST: u32 = 32;

/// The value of a sum with the variables that are known; none where it is not a plain sum, or divides by zero.
pub(super) fn value(text: &str, known: &Map<String, String>) -> Option<i64> {
    let mut sum = Sum { rest: text, known };
    let value = sum.terms(0)?;
    sum.rest.trim().is_empty().then_some(value)
}

struct Sum<'a> {
    rest: &'a str,
    known: &'a Map<String, String>,
}

impl Sum<'_> {
    /// The next sign that is one of these.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let found = rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = rest.get(found.len_utf8()..)?;
        Some(found)
    }

    fn terms(&mut self, depth: u32) -> Option<i64> {
        let mut value = self.factors(depth)?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let other = self.factors(depth)?;
            value = match sign {
                '+' => value.checked_add(other)?,
                _ => value.checked_sub(other)?,
            };
        }
        Some(value)
    }

    fn factors(&mut self, depth: u32) -> Option<i64> {
        let mut value = self.operand(depth)?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let other = self.operand(depth)?;
            value = match sign {
                '*' => value.checked_mul(other)?,
                '/' => value.checked_div(other)?,
                _ => value.checked_rem(other)?,
            };
        }
        Some(value)
    }

    /// A number, a variable with or without its `$`, or a sum in brackets.
    fn operand(&mut self, depth: u32) -> Option<i64> {
        if self.sign(&['(']).is_some() {
            let value = (depth < DEEPEST).then(|| self.terms(depth + 1))??;
            return self.sign(&[')']).map(|_| value);
        }
        let variable = self.sign(&['$']).is_some();
        let braces = variable && self.sign(&['{']).is_some();
        let rest = self.rest.trim_start();
        let end = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        if braces {
            self.sign(&['}'])?;
        }
        match word.parse::<i64>() {
            Ok(number) => Some(number),
            Err(_) => self.known.get(word)?.trim().parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_worked_out_as_the_shell_does() {
        let known: Map<String, String> = [("a".to_string(), "3".to_string())].into_iter().collect();
        for (text, expected) in [
            ("1024 * 2", Some(2048)),
            ("(a + $a) * ${a} - 1", Some(17)),
            ("7 / 2 * 2 % 4", Some(2)),
            ("b + 1", None),
            ("1 / 0", None),
            ("9223372036854775807 + 1", None),
            ("1 +", None),
            ("", None),
        ] {
            assert_eq!(value(text, &known), expected, "{text}");
        }
        assert_eq!(value(&"(".repeat(100_000), &known), None);
    }
}
