//! Sizes by expression: whole numbers and names with `+ - * /` and parentheses.

use super::items::LARGEST;
use headroom_base::order::Map;

/// The value of an expression, or what is wrong with it as the end of "expected ...".
pub(super) fn value(text: &str, sizes: &Map<String, u64>) -> Result<u64, String> {
    let mut reader = Reader {
        rest: text.trim(),
        sizes,
        depth: 0,
    };
    let value = reader.sum()?;
    if !reader.rest.is_empty() {
        return Err("an expression such as 4*hidden+1".into());
    }
    if value > LARGEST {
        return Err(format!("a size of at most {LARGEST}, which {value} is not"));
    }
    Ok(value)
}

struct Reader<'a> {
    rest: &'a str,
    sizes: &'a Map<String, u64>,
    depth: u32,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<u64, String> {
        let mut value = self.product()?;
        loop {
            let next = match self.sign(&['+', '-']) {
                Some('+') => value.checked_add(self.product()?),
                Some(_) => value.checked_sub(self.product()?),
                None => return Ok(value),
            };
            value = next.ok_or("a size that is not below zero, nor beyond counting")?;
        }
    }

    fn product(&mut self) -> Result<u64, String> {
        let mut value = self.atom()?;
        loop {
            let next = match self.sign(&['*', '/']) {
                Some('*') => value.checked_mul(self.atom()?),
                Some(_) => value.checked_div(self.atom()?),
                None => return Ok(value),
            };
            value = next.ok_or("a size that can be counted: no division by zero")?;
        }
    }

    fn atom(&mut self) -> Result<u64, String> {
        const DEEPEST: u32 = 16;
        if self.sign(&['(']).is_some() {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(format!("at most {DEEPEST} parentheses in one another"));
            }
            let value = self.sum()?;
            self.depth -= 1;
            return match self.sign(&[')']) {
                Some(_) => Ok(value),
                None => Err("a closing parenthesis".into()),
            };
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !plain(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map_err(|_| "a whole number".to_string());
        }
        self.sizes.get(word).copied().ok_or_else(|| {
            let names: Vec<&str> = self.sizes.keys().map(String::as_str).collect();
            format!("a size that is named: {}", names.join(", "))
        })
    }

    fn sign(&mut self, signs: &[char]) -> Option<char> {
        let first = self.rest.chars().next().filter(|c| signs.contains(c))?;
        self.rest = self.rest.get(1..).unwrap_or_default().trim_start();
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_their_usual_meaning() {
        #[track_caller]
        fn check(text: &str, expected: Result<u64, &str>) {
            let sizes = [("hidden", 384), ("heads", 6)].map(|(k, v)| (k.to_string(), v));
            let found = value(text, &sizes.into());
            assert_eq!(found, expected.map_err(String::from), "{text}");
        }
        check("384", Ok(384));
        check("4*hidden", Ok(1536));
        check("4 * (hidden + 1) / 2", Ok(770));
        check("hidden/heads-1", Ok(63));
        check("2+3*4", Ok(14));
        check("width", Err("a size that is named: heads, hidden"));
        check(
            "1/0",
            Err("a size that can be counted: no division by zero"),
        );
        check(
            "1-2",
            Err("a size that is not below zero, nor beyond counting"),
        );
        check("4*", Err("a size that is named: heads, hidden"));
        check("(4", Err("a closing parenthesis"));
        check("4 4", Err("an expression such as 4*hidden+1"));
        check(
            "10000001",
            Err("a size of at most 10000000, which 10000001 is not"),
        );
        check("99999999999999999999", Err("a whole number"));
        let deep = "(".repeat(30) + "1";
        check(&deep, Err("at most 16 parentheses in one another"));
    }
}
