//! A claim of a guide: its quotation, the numbers computed for it, and the rule that compares the two.

use serde::Deserialize;

use super::amount::{Amount, Unit};
use super::expression::evaluate;
use super::variants::Variants;
use headroom_core::estimate::Unsupported;

/// One claim of a guide.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The heading that it stands under.
    pub section: String,
    /// The guide's sentence, verbatim.
    pub quote: String,
    #[serde(default)]
    pub numbers: Vec<Comparison>,
    /// Why no predicted number could confirm or refute it; empty where `numbers` do.
    #[serde(default)]
    pub not_computable: String,
    /// Why the claim holds or fails, in a sentence or two.
    pub why: String,
    /// Where that can be read: a file of the system, a manual.
    pub source: String,
}

/// One number: the guide's value, and how it is computed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    pub what: String,
    /// Absent where the number is context and decides nothing.
    #[serde(default)]
    pub claimed: Option<ClaimedValue>,
    pub computed: Computation,
}

/// The value that a guide gives for a number, in the unit of what is computed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimedValue {
    /// "~35 GB": within a tenth.
    About(f64),
    /// "38-40 GB": between the two, with a tolerance of a twentieth at either end.
    Between(f64, f64),
    AtLeast(f64),
    AtMost(f64),
    Exactly(f64),
    /// A change that saves memory, without a number: by a fiftieth or more.
    Less,
    /// A change that costs memory, without a number: by a fiftieth or more.
    More,
}

/// An expression over predicted quantities (`expression.rs`), and what its value means.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Computation {
    /// Bytes.
    Size(String),
    /// A ratio, shown as a percentage.
    Share(String),
    /// A ratio of after to before, shown as the difference in percent.
    Change(String),
    Number(String),
}

/// The result of checking a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// The numbers, each with the guide's value.
    pub computed: String,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every number is as the guide says.
    Right,
    /// Some numbers are.
    Partly,
    /// None is.
    Wrong,
    /// It is said to change memory, and changes nothing.
    NoEffect,
    NotComputable,
}

impl Claim {
    /// Computes the claim's numbers and compares them with the guide's.
    pub fn check(&self, variants: &Variants) -> Result<Finding, Unsupported> {
        if self.numbers.is_empty() {
            return Ok(Finding {
                verdict: Verdict::NotComputable,
                computed: self.not_computable.clone(),
            });
        }
        let mut results = Vec::new();
        let mut lines = Vec::new();
        for number in &self.numbers {
            let amount = number.computed.amount(variants)?;
            let claimed = number
                .claimed
                .map_or(String::new(), |claimed| claimed.in_brackets(amount.unit));
            lines.push(format!("{}: {amount}{claimed}", number.what));
            results.push((number.claimed, amount));
        }
        Ok(Finding {
            verdict: Verdict::of(&results),
            computed: lines.join("; "),
        })
    }
}

impl Computation {
    fn amount(&self, variants: &Variants) -> Result<Amount, Unsupported> {
        let value = |expression: &str| {
            evaluate(expression, &|name, changes| {
                variants.quantity(name, changes)
            })
        };
        let (value, unit) = match self {
            Self::Size(bytes) => (value(bytes)? / 1e9, Unit::Gigabytes),
            Self::Share(ratio) => (value(ratio)? * 100.0, Unit::Share),
            Self::Change(ratio) => ((value(ratio)? - 1.0) * 100.0, Unit::Change),
            Self::Number(number) => (value(number)?, Unit::Number),
        };
        Ok(Amount { value, unit })
    }
}

impl Verdict {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Partly => "partly right",
            Self::Wrong => "wrong",
            Self::NoEffect => "no effect",
            Self::NotComputable => "not computable here",
        }
    }

    /// All comparisons hold, some do, or none; with none, the question is whether anything changed at all.
    fn of(results: &[(Option<ClaimedValue>, Amount)]) -> Self {
        let decided: Vec<bool> = results
            .iter()
            .filter_map(|(claimed, amount)| Some(claimed.as_ref()?.holds(amount.value)))
            .collect();
        let right = decided.iter().filter(|holds| **holds).count();
        let mut effects = results.iter().map(|(claimed, amount)| {
            claimed
                .is_some_and(|claimed| claimed.is_of_an_effect(amount.unit))
                .then_some(amount)
        });
        match right {
            _ if decided.is_empty() => Self::NotComputable,
            _ if right == decided.len() => Self::Right,
            0 if effects.clone().any(|effect| effect.is_some())
                && effects.all(|effect| effect.is_none_or(|amount| amount.is_no_change())) =>
            {
                Self::NoEffect
            }
            0 => Self::Wrong,
            _ => Self::Partly,
        }
    }
}

impl ClaimedValue {
    /// Whether a computed value is as claimed.
    fn holds(self, value: f64) -> bool {
        match self {
            Self::About(claimed) => (value - claimed).abs() <= claimed.abs() / 10.0,
            Self::Between(low, high) => {
                low - low.abs() / 20.0 <= value && value <= high + high.abs() / 20.0
            }
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Exactly(claimed) => (value - claimed).abs() < 1e-9,
            Self::Less => value <= -2.0,
            Self::More => value >= 2.0,
        }
    }

    /// Whether the guide claims that something changes.
    fn is_of_an_effect(self, unit: Unit) -> bool {
        match self {
            Self::Less | Self::More => true,
            Self::About(_) | Self::Between(..) => unit == Unit::Change,
            _ => false,
        }
    }

    /// The text that follows a computed number.
    fn in_brackets(self, unit: Unit) -> String {
        let show = |value| Amount { value, unit };
        let claimed = match self {
            Self::About(value) => format!("about {}", show(value)),
            Self::Between(low, high) => format!("{} to {}", show(low), show(high)),
            Self::AtLeast(value) => format!("at least {}", show(value)),
            Self::AtMost(value) => format!("at most {}", show(value)),
            Self::Exactly(value) => show(value).to_string(),
            Self::Less => "less".into(),
            Self::More => "more".into(),
        };
        format!(" (guide: {claimed})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClaimedValue::{About, AtLeast, Between, Exactly, Less, More};
    use Unit::{Change, Gigabytes, Number, Share};

    #[test]
    fn a_verdict_follows_from_the_comparisons() {
        #[track_caller]
        fn check(unit: Unit, comparisons: &[(Option<ClaimedValue>, f64)], expected: Verdict) {
            let results: Vec<_> = comparisons
                .iter()
                .map(|(claimed, value)| {
                    (
                        *claimed,
                        Amount {
                            value: *value,
                            unit,
                        },
                    )
                })
                .collect();
            assert_eq!(Verdict::of(&results), expected, "{comparisons:?}");
        }
        let about = Some(About(35.0));
        check(Gigabytes, &[(about, 38.5)], Verdict::Right);
        check(Gigabytes, &[(about, 38.6)], Verdict::Wrong);
        check(Gigabytes, &[(about, 31.5), (about, 31.4)], Verdict::Partly);
        let range = Some(Between(38.0, 40.0));
        check(Gigabytes, &[(range, 36.1)], Verdict::Right);
        check(Gigabytes, &[(range, 42.1)], Verdict::Wrong);
        let half = Some(Between(-50.0, -30.0));
        check(Change, &[(half, -52.0)], Verdict::Right);
        check(Change, &[(half, -58.0)], Verdict::Wrong);
        check(Change, &[(half, 0.0)], Verdict::NoEffect);
        check(Change, &[(Some(Less), -0.04)], Verdict::NoEffect);
        check(Change, &[(Some(Less), -0.3)], Verdict::Wrong);
        check(Change, &[(Some(Less), 3.0)], Verdict::Wrong);
        check(Change, &[(Some(Less), -2.0)], Verdict::Right);
        check(Change, &[(Some(More), -2.0)], Verdict::Wrong);
        check(Share, &[(Some(AtLeast(100.0)), 99.0)], Verdict::Wrong);
        check(Share, &[(Some(AtLeast(100.0)), 100.0)], Verdict::Right);
        check(Number, &[(Some(Exactly(256.0)), 252.0)], Verdict::Wrong);
        // Context decides nothing.
        check(Gigabytes, &[(None, 1.0)], Verdict::NotComputable);
        check(Gigabytes, &[(None, 1.0), (about, 35.0)], Verdict::Right);
    }

    #[test]
    fn amounts_are_shown_with_the_claimed_value() {
        #[track_caller]
        fn check(value: f64, unit: Unit, claimed: ClaimedValue, expected: &str) {
            let shown = Amount { value, unit };
            assert_eq!(format!("{shown}{}", claimed.in_brackets(unit)), expected);
        }
        check(
            11.8,
            Gigabytes,
            About(35.0),
            "11.8 GB (guide: about 35.0 GB)",
        );
        check(0.01, Change, Less, "0 % (guide: less)");
        check(-1.4, Change, More, "−1.4 % (guide: more)");
        check(7.8, Change, About(-50.0), "+7.8 % (guide: about −50 %)");
        check(
            37.2,
            Share,
            Between(60.0, 70.0),
            "37 % (guide: 60 % to 70 %)",
        );
        check(1.988, Number, Exactly(2.0), "1.99 (guide: 2)");
        check(3915.0, Change, Less, "40 times as much (guide: less)");
        check(50_806_010_009.0, Number, Exactly(1.0), "5.1e10 (guide: 1)");
    }
}
