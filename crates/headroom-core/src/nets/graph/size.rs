//! Sizes as expressions of a batch's own: how many samples, and how long each is.

use headroom_base::document::Document;

/// `floor(sum of factor * batch^i * floor((length + add) / div)^j / den)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Fixed(u64),
    Of {
        den: u64,
        terms: Vec<Term>,
    },
    /// Rounded up to a multiple.
    Up {
        multiple: u64,
        of: Box<Size>,
    },
    Times {
        times: u64,
        plus: i64,
        of: Box<Size>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    factor: i64,
    batch: u32,
    length: u32,
    add: i64,
    div: u64,
}

impl Size {
    /// As a file writes it: a number, or the denominator and terms.
    pub(crate) fn read(value: &Document) -> Option<Self> {
        match value {
            Document::Int(n) => u64::try_from(*n).ok().map(Self::Fixed),
            Document::Map(_) => {
                let of = value
                    .get("of")
                    .filter(|of| !matches!(of, Document::Map(_)))?;
                let of = Box::new(Self::read(of)?);
                let natural = |n: &Document| number(n).and_then(|n| u64::try_from(n).ok());
                if let Some(times) = value.get("times") {
                    let (times, plus) = (natural(times)?, number(value.get("plus")?)?);
                    return Some(Self::Times { times, plus, of });
                }
                let multiple = natural(value.get("up")?)?;
                (multiple > 0).then_some(Self::Up { multiple, of })
            }
            Document::List(all) => {
                let (den, terms) = all.split_first()?;
                let terms = terms.iter().map(term).collect::<Option<Vec<_>>>()?;
                let den = number(den).and_then(|den| u64::try_from(den).ok())?;
                (den > 0 && terms.len() <= MOST_TERMS).then_some(Self::Of { den, terms })
            }
            _ => None,
        }
    }

    pub(crate) fn at(&self, batch: u64, length: u64) -> u64 {
        let (den, terms) = match self {
            Self::Fixed(n) => return *n,
            Self::Up { multiple, of } => {
                let parts = of.at(batch, length).div_ceil(*multiple);
                return parts.saturating_mul(*multiple);
            }
            Self::Times { times, plus, of } => {
                let all = of.at(batch, length).saturating_mul(*times);
                return all.saturating_add_signed(*plus);
            }
            Self::Of { den, terms } => (den, terms),
        };
        let mut sum: i128 = 0;
        for term in terms {
            let atom = i128::from(length)
                .saturating_add(term.add.into())
                .div_euclid(i128::from(term.div));
            let power = |base: i128, n: u32| (0..n).fold(1_i128, |all, _| all.saturating_mul(base));
            let product = i128::from(term.factor)
                .saturating_mul(power(batch.into(), term.batch))
                .saturating_mul(power(atom, term.length));
            sum = sum.saturating_add(product);
        }
        let value = sum.div_euclid(i128::from(*den)).max(0);
        u64::try_from(value).unwrap_or(u64::MAX)
    }
}

const MOST_TERMS: usize = 16;
const HIGHEST_POWER: u32 = 4;

fn term(value: &Document) -> Option<Term> {
    let Document::List(all) = value else {
        return None;
    };
    let [factor, batch, length, add, div] = all.as_slice() else {
        return None;
    };
    let small = |value: &Document| {
        let power = u32::try_from(number(value)?).ok()?;
        (power <= HIGHEST_POWER).then_some(power)
    };
    let div = u64::try_from(number(div)?).ok().filter(|div| *div > 0)?;
    Some(Term {
        factor: number(factor)?,
        batch: small(batch)?,
        length: small(length)?,
        add: number(add)?,
        div,
    })
}

fn number(value: &Document) -> Option<i64> {
    match value {
        Document::Int(n) => i64::try_from(*n).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_base::document::json;

    #[track_caller]
    fn check(text: &str, batch: u64, length: u64, expected: Option<u64>) {
        let size = Size::read(&json::read(text).unwrap());
        assert_eq!(size.map(|size| size.at(batch, length)), expected, "{text}");
    }

    #[test]
    fn sizes_follow_batch_and_length() {
        check("7", 2, 3, Some(7));
        check("[1, [4, 1, 2, 0, 1]]", 3, 10, Some(1200));
        check("[1, [2, 0, 1, 31, 32], [1, 0, 0, 0, 1]]", 1, 224, Some(15));
        check("[2, [3, 1, 0, 0, 1]]", 3, 0, Some(4));
        check("[1, [-9, 1, 0, 0, 1]]", 3, 0, Some(0));
        check(
            "[1, [9223372036854775807, 4, 4, 0, 1]]",
            u64::MAX,
            u64::MAX,
            Some(u64::MAX),
        );
        check(
            r#"{"up": 32, "of": [64, [1, 0, 2, 0, 1]]}"#,
            1,
            160,
            Some(416),
        );
        check("[0, [1, 0, 0, 0, 1]]", 1, 1, None);
        check("[1, [1, 9, 0, 0, 1]]", 1, 1, None);
        check("[1, [1, 0, 1, 0, 0]]", 1, 1, None);
        check("-3", 1, 1, None);
    }
}
