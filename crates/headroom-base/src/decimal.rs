//! Reading a decimal number, correctly rounded.
//!
//! The standard library's reader carries 10 kB of powers of five that do not compress, for speed nobody needs here:
//! they were a twentieth of what the page downloads.

/// The number that `text` writes: digits with at most one point, a sign, an exponent.
///
/// The nearest `f64` where it has up to 18 digits and 38 places; beyond that, within the last bits.
pub fn decimal(text: &str) -> Option<f64> {
    let (negative, rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let at = rest.iter().position(|b| matches!(b, b'e' | b'E'));
    let (digits, exponent) = match at {
        Some(at) => (rest.get(..at)?, exponent(rest.get(at + 1..)?)?),
        None => (rest, 0),
    };
    let (mut kept, mut scale, mut lost) = (0_u64, exponent, false);
    let (mut any, mut point) = (false, false);
    for byte in digits {
        match byte {
            b'.' if !point => point = true,
            b'0'..=b'9' => {
                any = true;
                let digit = u64::from(byte - b'0');
                if kept < 10_u64.pow(18) {
                    kept = kept * 10 + digit;
                    scale -= i32::from(point);
                } else {
                    lost |= digit != 0;
                    scale += i32::from(!point);
                }
            }
            _ => return None,
        }
    }
    let size = scaled(kept, scale, lost);
    any.then_some(if negative { -size } else { size })
}

fn exponent(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?;
    // Further out there is only zero and what is refused.
    text.parse().ok().map(|number: i16| i32::from(number))
}

/// `kept` times ten to the power of `scale`; `lost` says that it has more digits than these.
fn scaled(kept: u64, scale: i32, lost: bool) -> f64 {
    const FINEST: u32 = 38;
    if kept == 0 {
        return 0.0;
    }
    let places = scale.unsigned_abs();
    if scale >= 0 {
        let power = 10_u128.checked_pow(places);
        let whole = power.and_then(|power| u128::from(kept).checked_mul(power));
        return match whole {
            Some(whole) => (whole | u128::from(lost)) as f64,
            None => times(kept as f64, places, 10.0),
        };
    }
    let below = 10_u128.pow(places.min(FINEST));
    // Long division in binary: 64 bits of the quotient, and in the last one whether anything is left.
    let mut quotient = (u128::from(kept) / below) as u64;
    let mut left = u128::from(kept) % below;
    let mut power = 0_u64;
    while quotient >> 63 == 0 {
        left <<= 1;
        let bit = left >= below;
        left -= if bit { below } else { 0 };
        quotient = quotient << 1 | u64::from(bit);
        power += 1;
    }
    let inexact = left != 0 || lost;
    let exact = f64::from_bits((1023 - power) << 52);
    let size = (quotient | u64::from(inexact)) as f64 * exact;
    times(size, places.saturating_sub(FINEST), 0.1)
}

fn times(size: f64, often: u32, factor: f64) -> f64 {
    // After this many there is only zero and infinity.
    (0..often.min(700)).fold(size, |size, _| size * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::sample::Dice;

    #[track_caller]
    fn check(text: &str) {
        assert_eq!(decimal(text), text.parse().ok(), "{text}");
    }

    #[test]
    fn it_reads_what_the_standard_library_reads() {
        for text in [
            "0",
            "1",
            "-1",
            "+1",
            "0.9",
            "1.",
            ".5",
            "1e3",
            "1E-3",
            "2.5e+2",
            "0.30000000000000004",
            "0.1234567890123456789012345",
            "9007199254740993",
            "123456789012345678901234567890",
            "0.000000000000000000012345678901234567",
            "-0",
            "",
            ".",
            "-",
            "e",
            "1e",
            "e1",
            "1.2.3",
            "1 ",
            "x",
            "0x1",
            "--1",
            "1e1.5",
            "1_000",
        ] {
            check(text);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut dice = Dice::new(5);
        for _ in 0..20_000 {
            let parts = (
                dice.below(1 << 30),
                dice.below(1 << 23) + 1,
                dice.below(9) as u32,
            );
            let number = parts.0 as f64 / parts.1 as f64 / f64::from(10_u32.pow(parts.2));
            check(&number.to_string());
        }
    }

    #[test]
    fn numbers_out_of_every_range_do_no_harm() {
        assert_eq!(decimal("1e400"), Some(f64::INFINITY));
        assert!(decimal("1e300").is_some_and(|number| (number / 1e300 - 1.0).abs() < 1e-12));
        assert_eq!(decimal("1e99999999999"), None);
        assert!(decimal("1e-30000").is_some_and(|number| number == 0.0));
        assert!(decimal("1e-50").is_some_and(|number| (number / 1e-50 - 1.0).abs() < 1e-12));
    }
}
