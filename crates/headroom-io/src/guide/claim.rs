//! A claim of a guide: its words, the numbers computed for them, and the rule that compares the two.

use std::fmt;

use super::Variants;
use super::variants::decimal;
use headroom_base::units::Bytes;
use headroom_core::estimate::Unsupported;

/// One claim of a guide.
#[derive(Debug)]
pub struct Claim {
    /// The heading that it stands under.
    pub section: &'static str,
    /// What the guide says, word for word.
    pub quote: &'static str,
    pub evidence: Evidence,
    /// Why the claim holds or fails, in a sentence or two.
    pub why: &'static str,
    /// Where that can be read: a file of the system, a manual.
    pub source: &'static str,
}

/// What a claim is held against.
#[derive(Debug)]
pub enum Evidence {
    /// Numbers computed from the preset and its variants.
    Computed(&'static [Comparison]),
    /// Nothing that a predicted step could confirm or refute, and why not.
    NotComputable(&'static str),
}

/// One number: what the guide says of it, and how it is computed.
#[derive(Debug)]
pub struct Comparison {
    pub what: &'static str,
    pub said: Said,
    pub compute: fn(&Variants) -> Result<Amount, Unsupported>,
}

/// What a guide says of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Said {
    /// "~35 GB": within a tenth.
    About(Amount),
    /// "38-40 GB": between the two, with a twentieth to spare at either end.
    Between(Amount, Amount),
    AtLeast(Amount),
    AtMost(Amount),
    Exactly(Amount),
    /// That a change saves memory, without a number: by a fiftieth or more.
    Saves,
    /// That something takes more memory, without a number: by a fiftieth or more.
    Adds,
    /// Nothing: the number is given for context and decides nothing.
    Nothing,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Size(Bytes),
    /// A part of a whole, in per cent.
    Share(f64),
    /// What a change makes of a size, in per cent: −50 is half.
    Change(f64),
    /// A count or a ratio.
    Number(f64),
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub verdict: Verdict,
    /// The numbers beside what the guide says of them.
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
    fn of(results: &[(Said, Amount)]) -> Self {
        let decided = results
            .iter()
            .filter_map(|(said, amount)| said.holds(*amount));
        let (mut right, mut all) = (0, 0);
        for holds in decided {
            all += 1;
            right += usize::from(holds);
        }
        let without_effect = |(said, amount): &(Said, Amount)| {
            !said.is_of_an_effect() || amount.value().abs() < NOTHING
        };
        match right {
            _ if all == 0 => Self::NotComputable,
            _ if right == all => Self::Right,
            0 if results.iter().any(|(said, _)| said.is_of_an_effect())
                && results.iter().all(without_effect) =>
            {
                Self::NoEffect
            }
            0 => Self::Wrong,
            _ => Self::Partly,
        }
    }
}

/// A change below this many per cent is none.
const NOTHING: f64 = 0.05;

impl Claim {
    /// Computes the claim's numbers and compares them with what the guide says.
    pub fn examine(&self, variants: &Variants) -> Result<Finding, Unsupported> {
        let comparisons = match &self.evidence {
            Evidence::Computed(comparisons) => *comparisons,
            Evidence::NotComputable(reason) => {
                return Ok(Finding {
                    verdict: Verdict::NotComputable,
                    computed: (*reason).into(),
                });
            }
        };
        let mut results = Vec::new();
        let mut words = Vec::new();
        for comparison in comparisons {
            let Comparison {
                what,
                said,
                compute,
            } = comparison;
            let amount = compute(variants)?;
            results.push((*said, amount));
            words.push(format!("{what}: {amount}{said}"));
        }
        Ok(Finding {
            verdict: Verdict::of(&results),
            computed: words.join("; "),
        })
    }
}

impl Said {
    /// Whether a computed amount is as the guide says; `None` where it says nothing.
    pub fn holds(self, computed: Amount) -> Option<bool> {
        let value = computed.value();
        Some(match self {
            Self::About(said) => (value - said.value()).abs() <= said.value().abs() / 10.0,
            Self::Between(low, high) => {
                let (low, high) = (low.value(), high.value());
                low - low.abs() / 20.0 <= value && value <= high + high.abs() / 20.0
            }
            Self::AtLeast(least) => value >= least.value(),
            Self::AtMost(most) => value <= most.value(),
            Self::Exactly(said) => (value - said.value()).abs() < 1e-9,
            Self::Saves => value <= -2.0,
            Self::Adds => value >= 2.0,
            Self::Nothing => return None,
        })
    }

    /// Whether the guide says that something changes.
    fn is_of_an_effect(self) -> bool {
        match self {
            Self::Saves | Self::Adds => true,
            Self::About(said) | Self::Between(said, _) => matches!(said, Amount::Change(_)),
            _ => false,
        }
    }
}

/// In brackets after a number; empty where the guide says nothing of it.
impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(said) => write!(f, " (guide: about {said})"),
            Self::Between(low, high) => write!(f, " (guide: {low} to {high})"),
            Self::AtLeast(said) => write!(f, " (guide: at least {said})"),
            Self::AtMost(said) => write!(f, " (guide: at most {said})"),
            Self::Exactly(said) => write!(f, " (guide: {said})"),
            Self::Saves => write!(f, " (guide: less)"),
            Self::Adds => write!(f, " (guide: more)"),
            Self::Nothing => Ok(()),
        }
    }
}

impl Amount {
    fn value(self) -> f64 {
        match self {
            Self::Size(bytes) => bytes.get() as f64,
            Self::Share(number) | Self::Change(number) | Self::Number(number) => number,
        }
    }

    /// What a change makes of a size.
    pub fn change(before: Bytes, after: Bytes) -> Self {
        let ratio = after.get() as f64 / before.get().max(1) as f64;
        Self::Change((ratio - 1.0) * 100.0)
    }

    /// A part of a whole.
    pub fn share(part: Bytes, whole: Bytes) -> Self {
        Self::Share(100.0 * part.get() as f64 / whole.get().max(1) as f64)
    }
}

/// Sizes as guides write them, in decimal units; per cent with the two figures that a comparison of predictions is worth.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size(bytes) => write!(f, "{}", decimal(bytes)),
            Self::Share(percent) => write!(f, "{percent:.0} %"),
            Self::Change(percent) => {
                let sign = if percent < 0.0 { "−" } else { "+" };
                match percent.abs() {
                    size if size < NOTHING => write!(f, "0 %"),
                    size if size < 10.0 => write!(f, "{sign}{size:.1} %"),
                    size => write!(f, "{sign}{size:.0} %"),
                }
            }
            Self::Number(number) if number.fract() == 0.0 => write!(f, "{number:.0}"),
            Self::Number(number) => write!(f, "{number:.2}"),
        }
    }
}

/// A size in GB, as guides give it.
pub(super) const fn gb(number: f64) -> Amount {
    Amount::Size(Bytes::new((number * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn change(percent: f64) -> Amount {
        Amount::Change(percent)
    }

    #[test]
    fn a_verdict_follows_from_the_comparisons() {
        #[track_caller]
        fn check(comparisons: &[(Said, Amount)], expected: Verdict) {
            assert_eq!(Verdict::of(comparisons), expected, "{comparisons:?}");
        }
        let about = Said::About(gb(35.0));
        check(&[(about, gb(38.5))], Verdict::Right);
        check(&[(about, gb(38.6))], Verdict::Wrong);
        check(&[(about, gb(31.5)), (about, gb(31.4))], Verdict::Partly);
        let range = Said::Between(gb(38.0), gb(40.0));
        check(&[(range, gb(36.1))], Verdict::Right);
        check(&[(range, gb(42.1))], Verdict::Wrong);
        let half = Said::Between(change(-50.0), change(-30.0));
        check(&[(half, change(-52.0))], Verdict::Right);
        check(&[(half, change(-58.0))], Verdict::Wrong);
        check(&[(half, change(0.0))], Verdict::NoEffect);
        check(&[(Said::Saves, change(-0.04))], Verdict::NoEffect);
        check(&[(Said::Saves, change(-0.3))], Verdict::Wrong);
        check(&[(Said::Saves, change(3.0))], Verdict::Wrong);
        check(&[(Said::Saves, change(-2.0))], Verdict::Right);
        check(&[(Said::Adds, change(-2.0))], Verdict::Wrong);
        let least = Said::AtLeast(Amount::Share(100.0));
        check(&[(least, Amount::Share(99.0))], Verdict::Wrong);
        check(&[(least, Amount::Share(100.0))], Verdict::Right);
        let exact = Said::Exactly(Amount::Number(256.0));
        check(&[(exact, Amount::Number(252.0))], Verdict::Wrong);
        // What the guide does not speak of decides nothing.
        check(&[(Said::Nothing, gb(1.0))], Verdict::NotComputable);
        check(
            &[(Said::Nothing, gb(1.0)), (about, gb(35.0))],
            Verdict::Right,
        );
    }

    #[test]
    fn amounts_and_what_is_said_of_them_read_well() {
        #[track_caller]
        fn check(amount: Amount, said: Said, expected: &str) {
            assert_eq!(format!("{amount}{said}"), expected);
        }
        check(
            gb(11.8),
            Said::About(gb(35.0)),
            "11.8 GB (guide: about 35.0 GB)",
        );
        check(change(0.01), Said::Saves, "0 % (guide: less)");
        check(change(-1.4), Said::Nothing, "−1.4 %");
        check(
            change(7.8),
            Said::About(change(-50.0)),
            "+7.8 % (guide: about −50 %)",
        );
        let low = Amount::Share(60.0);
        let said = Said::Between(low, Amount::Share(70.0));
        check(Amount::Share(37.2), said, "37 % (guide: 60 % to 70 %)");
        let said = Said::Exactly(Amount::Number(2.0));
        check(Amount::Number(1.988), said, "1.99 (guide: 2)");
    }
}
