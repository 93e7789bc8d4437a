//! Numbers with the units that guides use.

use std::fmt;

use headroom_base::units::{Bytes, UnitStyle};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    pub value: f64,
    pub unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Gigabytes,
    /// A part of something, in percent.
    Share,
    /// The difference that a change makes, in percent: −50 is half.
    Change,
    /// A count or a ratio.
    Number,
}

/// Changes from here on are factors.
const MANY: f64 = 900.0;
/// Numbers from here on are shown as powers of ten.
const LARGE: f64 = 1e7;

impl Amount {
    /// Changes below this many percent count as none.
    const NO_CHANGE: f64 = 0.05;

    /// Whether it is a change too small to show.
    pub fn is_no_change(self) -> bool {
        self.value.abs() < Self::NO_CHANGE
    }
}

/// Percentages with two figures, which is as precise as a comparison of predictions gets.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.unit {
            Unit::Gigabytes => {
                let bytes = Bytes::new((value * 1e9).round() as u64);
                f.write_str(&bytes.show(UnitStyle::Decimal))
            }
            Unit::Share => write!(f, "{value:.0} %"),
            Unit::Change if self.is_no_change() => f.write_str("0 %"),
            // Beyond that nobody reads a percentage.
            Unit::Change if value >= MANY => write!(f, "{:.0} times as much", 1.0 + value / 100.0),
            Unit::Change => {
                let sign = if value < 0.0 { '−' } else { '+' };
                let digits = usize::from(value.abs() < 10.0);
                write!(f, "{sign}{:.digits$} %", value.abs())
            }
            Unit::Number if value.abs() >= LARGE => write!(f, "{value:.1e}"),
            Unit::Number if value.fract() == 0.0 => write!(f, "{value:.0}"),
            Unit::Number => write!(f, "{value:.2}"),
        }
    }
}
