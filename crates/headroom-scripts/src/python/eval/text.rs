//! Text of values.

use super::value::{Name, V};
use super::{LONGEST_TEXT, Machine};

impl Machine<'_> {
    /// `"%s of %d" % (a, b)`.
    pub(super) fn percent(&mut self, format: &str, values: &[V]) -> Option<V> {
        let mut values = values.iter();
        let mut text = String::new();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            let (before, from) = rest.split_at(at);
            text.push_str(before);
            let from = from.get(1..).unwrap_or("");
            if let Some(after) = from.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            }
            let end = from.find(|letter: char| letter.is_ascii_alphabetic())?;
            let value = values.next()?;
            let shown = self.shown(value)?;
            self.spend(shown.len() / 16);
            if text.len() + shown.len() > LONGEST_TEXT {
                return None;
            }
            let (flags, kind) = (from.get(..end)?, from.get(end..=end)?);
            let format = match kind {
                "s" | "r" => flags.to_string(),
                kind => format!("{flags}{kind}"),
            };
            text.push_str(&formatted(value, &shown, &format));
            rest = from.get(end + 1..)?;
        }
        text.push_str(rest);
        self.spend(text.len() / 16);
        (text.len() <= LONGEST_TEXT).then(|| V::text(text))
    }

    /// A value as `str()` gives it.
    pub(super) fn shown(&self, value: &V) -> Option<String> {
        Some(match value {
            V::None | V::Absent(_) => "None".into(),
            V::Bool(true) => "True".into(),
            V::Bool(false) => "False".into(),
            V::Int(value) => value.to_string(),
            V::Float(value) => float_text(*value),
            V::Text(text) => text.to_string(),
            V::Name(path) if path.starts_with("torch.") => path.to_string(),
            V::Builtin(name) => (*name).to_string(),
            V::List(id) => {
                let items = self.items(*id);
                if items.len() > 50 {
                    return None;
                }
                let parts: Option<Vec<String>> = items
                    .iter()
                    .map(|item| match item {
                        V::Text(text) => Some(format!("'{text}'")),
                        V::List(_) => None,
                        other => self.shown(other),
                    })
                    .collect();
                let parts = parts?;
                let length: usize = parts.iter().map(String::len).sum();
                return (length <= LONGEST_TEXT).then(|| format!("[{}]", parts.join(", ")));
            }
            _ => return None,
        })
    }
}

/// Python writes `1.0`, `1e-05` and `1e+16`.
pub fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, power)) => {
                let (sign, power) = match power.strip_prefix('-') {
                    Some(power) => ('-', power),
                    None => ('+', power),
                };
                format!("{digits}e{sign}{power:0>2}")
            }
            None => text,
        };
    }
    format!("{value:?}")
}

/// A value under a format such as `.2f`, `05d`, `,` or `!r`; formats that are not known leave it as it is.
pub fn formatted(value: &V, shown: &str, format: &str) -> String {
    let format = format
        .trim_start_matches("!r")
        .trim_start_matches("!s")
        .trim_start_matches(':');
    if format.is_empty() || format == "=" {
        return shown.to_string();
    }
    let kind = format.chars().last().unwrap_or(' ');
    let digits = format.rsplit_once('.').map(|(_, digits)| digits);
    let digits = digits.and_then(|digits| {
        digits
            .trim_end_matches(|c: char| !c.is_ascii_digit())
            .parse::<usize>()
            .ok()
    });
    let number = value.float();
    let text = match (kind, number) {
        ('f' | 'F', Some(number)) => format!("{number:.*}", digits.unwrap_or(6).min(30)),
        ('%', Some(number)) => format!("{:.*}%", digits.unwrap_or(6).min(30), number * 100.0),
        ('e', Some(number)) => {
            let text = format!("{number:.*e}", digits.unwrap_or(6).min(30));
            match text.split_once("e-") {
                Some((digits, power)) => format!("{digits}e-{power:0>2}"),
                None => text.replace('e', "e+0"),
            }
        }
        _ => shown.to_string(),
    };
    let width = format.trim_end_matches(|c: char| !c.is_ascii_digit());
    let width = width.split('.').next().unwrap_or("");
    let zeros = width.starts_with('0');
    let Ok(width) = width
        .trim_start_matches(['<', '>', '^', '0'])
        .parse::<usize>()
    else {
        return text;
    };
    let width = width.min(200);
    match (zeros, number.is_some()) {
        (true, _) => format!("{text:0>width$}"),
        (false, true) => format!("{text:>width$}"),
        (false, false) => format!("{text:<width$}"),
    }
}

/// Two parts of a path.
pub fn joined(left: &str, right: &str) -> Name {
    match (left, right) {
        (_, right) if right.starts_with('/') => right.into(),
        ("" | ".", right) => right.into(),
        (left, right) => format!("{}/{right}", left.trim_end_matches('/')).into(),
    }
}
