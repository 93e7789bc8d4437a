//! Quantities as people write them: `4k`, `4,096`, `16 GiB`.

/// The text as a plain number in a setting's unit, where it is written in another way; `None` where it cannot be read.
pub(super) fn plain(text: &str, unit: &str) -> Option<String> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_');
    let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let number = without_groups(number)?;
    let factor = factor(suffix.trim(), unit)?;
    let value = number.parse::<f64>().ok()? * factor;
    // Settings in MiB are whole: 24 GB are 22888 of them.
    let value = if unit == "MiB" { value.floor() } else { value };
    value.is_finite().then(|| value.to_string())
}

/// A number without the commas or underscores between its thousands.
fn without_groups(number: &str) -> Option<String> {
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let mut joined = String::from(first);
    for group in groups {
        // A comma elsewhere is a decimal comma to some: it is not guessed at.
        if group.len() != 3 || first.is_empty() || first.len() > 3 {
            return None;
        }
        joined.push_str(group);
    }
    if number.contains('.') {
        joined.push('.');
        joined.push_str(rest);
    }
    joined.retain(|c| c != '_');
    Some(joined)
}

/// What a suffix multiplies by, in the unit of the setting.
fn factor(suffix: &str, unit: &str) -> Option<f64> {
    if suffix.is_empty() || suffix.eq_ignore_ascii_case(unit) {
        return Some(1.0);
    }
    if let Some(own) = bytes(unit) {
        return Some(bytes(suffix)? / own);
    }
    // A length of 4k is 4096 tokens; 4k of anything else are 4000.
    let thousand = if unit == "tokens" { 1024.0 } else { 1000.0 };
    let (prefix, rest) = suffix.split_at_checked(1)?;
    let rest = rest.trim();
    if !rest.is_empty() && !rest.eq_ignore_ascii_case(unit) {
        return None;
    }
    match prefix {
        "k" | "K" => Some(thousand),
        "m" | "M" => Some(thousand * thousand),
        _ => None,
    }
}

/// How many bytes a unit of memory has.
fn bytes(unit: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 12] = [
        ("b", 1.0),
        ("kib", 1024.0),
        ("mib", 1024.0 * 1024.0),
        ("gib", 1024.0 * 1024.0 * 1024.0),
        ("tib", 1024.0 * 1024.0 * 1024.0 * 1024.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("tb", 1e12),
        // As nvidia-smi and Slurm write them.
        ("k", 1024.0),
        ("m", 1024.0 * 1024.0),
        ("g", 1024.0 * 1024.0 * 1024.0),
    ];
    let known = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit));
    known.map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        #[track_caller]
        fn check(text: &str, unit: &str, expected: Option<&str>) {
            assert_eq!(plain(text, unit).as_deref(), expected, "{text} in {unit}");
        }
        check("4k", "tokens", Some("4096"));
        check("24GB", "MiB", Some("22888"));
        check("24 GiB", "MiB", Some("24576"));
        check("4K tokens", "tokens", Some("4096"));
        check("128k", "tokens", Some("131072"));
        check("4k", "steps", Some("4000"));
        check("4,096", "tokens", Some("4096"));
        check("1_000", "samples", Some("1000"));
        check("1,000,000", "steps", Some("1000000"));
        check("2048 tokens", "tokens", Some("2048"));
        check("16 GiB", "GiB", Some("16"));
        check("16GiB", "MiB", Some("16384"));
        check("512 MiB", "GiB", Some("0.5"));
        check("0.5", "GiB", Some("0.5"));
        for wrong in [
            "",
            "k",
            "1,5",
            "4,09",
            ",096",
            "12 apples",
            "1e",
            "--1",
            "4 k k",
            "\u{1F600}",
        ] {
            check(wrong, "tokens", None);
        }
        check("16 apples", "GiB", None);
    }
}
