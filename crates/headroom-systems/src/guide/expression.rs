//! Arithmetic over predicted quantities, as in `2 * (peak(mb=2) - peak(mb=1))`: a quantity is a name with, in brackets, the
//! changes to the preset that it is predicted for.

use headroom_core::estimate::Unsupported;
use headroom_scenario::Problem;

/// Predicts a quantity by its name and the changes in its brackets.
pub type Quantity<'a> = &'a dyn Fn(&str, &str) -> Result<f64, Unsupported>;

/// The value of an expression.
pub fn evaluate(text: &str, quantity: Quantity) -> Result<f64, Unsupported> {
    let mut reader = Reader {
        rest: text,
        quantity,
    };
    let value = reader.sum()?;
    match reader.rest.trim() {
        "" => Ok(value),
        _ => Err(reader.expected("an operator")),
    }
}

struct Reader<'a> {
    rest: &'a str,
    quantity: Quantity<'a>,
}

impl Reader<'_> {
    fn sum(&mut self) -> Result<f64, Unsupported> {
        let mut value = self.product()?;
        loop {
            if self.consume('+') {
                value += self.product()?;
            } else if self.consume('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, Unsupported> {
        let mut value = self.factor()?;
        loop {
            if self.consume('*') {
                value *= self.factor()?;
            } else if self.consume('/') {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    /// A number, an expression in brackets, a function of one, or a quantity.
    fn factor(&mut self) -> Result<f64, Unsupported> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        self.rest = rest;
        if !self.consume('(') {
            return name.parse().map_err(|_| self.expected("a number"));
        }
        let Some(end) = closing(self.rest) else {
            return Err(self.expected("a closing bracket"));
        };
        let (inner, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix(')').unwrap_or(rest);
        match name {
            "" => evaluate(inner, self.quantity),
            "round" => evaluate(inner, self.quantity).map(f64::round),
            "sqrt" => evaluate(inner, self.quantity).map(f64::sqrt),
            _ => (self.quantity)(name, inner),
        }
    }

    fn consume(&mut self, operator: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(operator);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expected(&self, what: &str) -> Unsupported {
        Unsupported::Setting(Problem::new("expression", self.rest, what))
    }
}

/// The bracket that closes the one before this text.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    text.find(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_their_values() {
        #[track_caller]
        fn check(text: &str, expected: Option<f64>) {
            let quantity = |name: &str, changes: &str| match (name, changes) {
                ("peak", "mb=2 dims=a=1,b=2") => Ok(7.0),
                ("peak", "") => Ok(4.0),
                _ => Err(Unsupported::UnknownMemory),
            };
            assert_eq!(evaluate(text, &quantity).ok(), expected, "{text}");
        }
        check("1 + 2 * 3 - 4 / 2", Some(5.0));
        check("2 * (peak(mb=2 dims=a=1,b=2) - peak()) / 1e1", Some(0.6));
        check("round(100 * sqrt(2)) / 100", Some(1.41));
        for wrong in ["", "1 +", "peak(", "(1", "1 2", "size()", "peak() )", "x"] {
            check(wrong, None);
        }
    }
}
