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

/// A number with its confidence and the set of sources that hold it. Eight bytes, because the tables have thousands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sourced {
    value: f32,
    confidence: Confidence,
    set: u8,
}

impl Sourced {
    pub const UNKNOWN: Self = Self {
        value: 0.0,
        confidence: Confidence::Unknown,
        set: u8::MAX,
    };

    pub(super) const fn new(value: f32, confidence: Confidence, set: u8) -> Self {
        Self {
            value,
            confidence,
            set,
        }
    }

    pub fn get(self) -> Option<f64> {
        (self.confidence != Confidence::Unknown).then_some(f64::from(self.value))
    }

    pub const fn confidence(self) -> Confidence {
        self.confidence
    }

    /// The texts of its sources, from the tables of the file it came from.
    pub(super) fn texts(
        self,
        sets: &'static [&'static [u8]],
        sources: &'static [&'static str],
    ) -> impl Iterator<Item = &'static str> {
        sets.get(usize::from(self.set))
            .copied()
            .unwrap_or_default()
            .iter()
            .filter_map(|&source| sources.get(usize::from(source)).copied())
    }
}
