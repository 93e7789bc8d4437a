//! Numbers that say where they come from.

/// How a number of the catalogue is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Seen in a cited log, data-sheet table or code.
    A,
    /// Copied from a secondary source, derived by a stated rule, or taken from an equal.
    B,
    /// Recalled; no copy was read.
    C,
    /// Estimated.
    E,
    /// Not known at all.
    Unknown,
}

impl Confidence {
    pub const fn label(self) -> &'static str {
        match self {
            Self::A => "seen",
            Self::B => "derived",
            Self::C => "recalled",
            Self::E => "estimated",
            Self::Unknown => "unknown",
        }
    }
}

/// A number with its confidence and its sources. Four bytes, because the tables have thousands.
///
/// The low 23 bits are the number, in hundredths where bit 23 is set; the high 8 say where it comes from, 0 for unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sourced(u32);

/// How a number is known, and the sources that hold it.
pub(super) type Origin = (Confidence, &'static [u8]);

impl Sourced {
    pub(super) const UNKNOWN: Self = Self(0);

    pub(super) const fn new(packed: u32) -> Self {
        Self(packed)
    }

    pub fn get(self) -> Option<f64> {
        let number = f64::from(self.0 & 0x7f_ffff);
        let hundredths = self.0 & 0x80_0000 != 0;
        (self.0 >> 24 != 0).then_some(if hundredths { number / 100.0 } else { number })
    }

    /// Where it comes from, in the table of the file it came from.
    pub(super) fn origin(self, origins: &'static [Origin]) -> Option<&'static Origin> {
        origins.get(((self.0 >> 24) as usize).checked_sub(1)?)
    }
}
