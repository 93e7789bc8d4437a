//! Quantities people confuse, each its own type, and the one formatter.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A number of bytes. Arithmetic saturates: a scenario of absurd size gives an absurd answer, never a wrap-around.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    pub const fn kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1 << 10))
    }
    pub const fn mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }
    /// Binary gibibytes (2^30), the unit of `torch` and `nvidia-smi`.
    pub fn gib(gib: f64) -> Self {
        Self((gib * f64::from(1 << 30)) as u64)
    }
    /// Decimal gigabytes (10^9), the unit on the box.
    pub fn gb(gb: f64) -> Self {
        Self((gb * 1e9) as u64)
    }
    pub const fn get(self) -> u64 {
        self.0
    }
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / f64::from(1 << 30)
    }
    pub fn as_gb(self) -> f64 {
        self.0 as f64 / 1e9
    }
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / f64::from(1 << 20)
    }
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Rounded up to a multiple of `step`.
    pub const fn round_up(self, step: u64) -> Self {
        match step {
            0 => self,
            _ => Self(self.0.div_ceil(step).saturating_mul(step)),
        }
    }
    /// Scaled by a factor; used for bands, never for sizes of tensors.
    pub fn scale(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}
impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

/// Which family of units a person reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitStyle {
    /// KiB, MiB, GiB: what `torch` and `nvidia-smi` mean.
    #[default]
    Binary,
    /// kB, MB, GB: what the box says.
    Decimal,
}

impl Bytes {
    /// The one formatter: three significant figures and a named unit.
    pub fn show(self, style: UnitStyle) -> String {
        let (base, unit) = style.scale(self);
        if base <= 1.0 {
            return format!("{} {unit}", self.0);
        }
        format!("{} {unit}", figures(self.0 as f64 / base))
    }

    /// The number alone, in the unit `whole` is shown in: the "6.4" of "6.4 of 23.6 GiB".
    pub fn show_in_unit_of(self, whole: Self, style: UnitStyle) -> String {
        let (base, _) = style.scale(whole);
        figures(self.0 as f64 / base)
    }
}

/// Three significant figures, and no more than two places.
fn figures(value: f64) -> String {
    let digits = match value {
        0.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

impl UnitStyle {
    /// The unit in which a quantity of this size is shown: how many bytes it has and its name.
    pub fn scale(self, bytes: Bytes) -> (f64, &'static str) {
        let (base, names): (f64, _) = match self {
            Self::Binary => (1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]),
            Self::Decimal => (1000.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]),
        };
        let mut size = 1.0;
        let mut unit = 0;
        while bytes.0 as f64 / size >= 999.5 && unit + 1 < names.len() {
            size *= base;
            unit += 1;
        }
        (size, names[unit])
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show(UnitStyle::Binary))
    }
}

/// Floating-point operations (a multiply-add counts two).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flops(f64);

impl Flops {
    pub const fn new(flops: f64) -> Self {
        Self(flops)
    }
    pub const fn get(self) -> f64 {
        self.0
    }
}
impl Add for Flops {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Flops {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

/// A duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(f64);

impl Seconds {
    pub const ZERO: Self = Self(0.0);

    pub const fn new(seconds: f64) -> Self {
        Self(seconds)
    }
    pub const fn get(self) -> f64 {
        self.0
    }
}
impl Add for Seconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl Sum for Seconds {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Seconds {
    /// Three significant figures in a unit that people read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            s if s < 1e-3 => (s * 1e6, "µs"),
            s if s < 1.0 => (s * 1e3, "ms"),
            s if s < 600.0 => (s, "s"),
            s if s < 36_000.0 => (s / 60.0, "min"),
            s => (s / 3600.0, "h"),
        };
        write!(f, "{} {unit}", figures(value))
    }
}

/// Numbers that are rounded up to whole blocks, as far as a number goes.
pub trait RoundUp {
    /// Rounded up to a multiple of `step`.
    #[must_use]
    fn round_up(self, step: u64) -> u64;
}

impl RoundUp for u64 {
    fn round_up(self, step: u64) -> u64 {
        match step {
            0 => self,
            _ => self.div_ceil(step).saturating_mul(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: u64, binary: &str, decimal: &str) {
        assert_eq!(Bytes::new(bytes).show(UnitStyle::Binary), binary);
        assert_eq!(Bytes::new(bytes).show(UnitStyle::Decimal), decimal);
    }

    #[test]
    fn the_formatter_always_names_the_unit() {
        check(0, "0 B", "0 B");
        check(512, "512 B", "512 B");
        check(1 << 20, "1.00 MiB", "1.05 MB");
        check(10_127_260_672, "9.43 GiB", "10.1 GB");
        check(85_899_345_920, "80.0 GiB", "85.9 GB");
        check(1_072_693_248, "1.00 GiB", "1.07 GB");
        check(u64::MAX, "16.0 EiB", "18.4 EB");
    }

    #[test]
    fn a_number_shares_the_unit_of_another() {
        let check = |bytes, expected: &str| {
            assert_eq!(
                Bytes::new(bytes).show_in_unit_of(Bytes::gib(23.6), UnitStyle::Binary),
                expected
            );
        };
        check(6_871_947_674, "6.40");
        check(1 << 29, "0.50");
        check(0, "0");
        check(1 << 41, "2048");
    }

    #[test]
    fn durations_are_shown_in_a_unit_that_people_read() {
        let check = |seconds, expected: &str| {
            assert_eq!(Seconds::new(seconds).to_string(), expected);
        };
        check(0.000_25, "250 µs");
        check(0.0421, "42.1 ms");
        check(3.2456, "3.25 s");
        check(900.0, "15.0 min");
        check(1e6, "278 h");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Bytes::MAX + Bytes::new(1), Bytes::MAX);
        assert_eq!(Bytes::MAX * 3, Bytes::MAX);
        assert_eq!(Bytes::new(1) - Bytes::new(2), Bytes::ZERO);
        assert_eq!(Bytes::new(513).round_up(512), Bytes::new(1024));
        assert_eq!(
            [129_u64, 0, u64::MAX].map(|number| number.round_up(128)),
            [256, 0, u64::MAX]
        );
    }
}
