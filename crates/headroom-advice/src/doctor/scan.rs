//! Finding sizes and numbers in free text.

use headroom_base::decimal::decimal;
use headroom_base::units::Bytes;

/// The size that ends right before `marker`, as in "11.91 GiB total capacity".
pub(super) fn size_before(text: &str, marker: &str) -> Option<Bytes> {
    let (before, _) = text.split_once(marker)?;
    let mut words = before.split_whitespace().rev();
    let unit = words.next()?;
    let number = words.next()?;
    size(number, unit)
}

/// The size right after `marker`, as in "Tried to allocate 20.00 MiB".
pub(super) fn size_after(text: &str, marker: &str) -> Option<Bytes> {
    let (_, after) = text.split_once(marker)?;
    first_size(after)
}

/// The size a text begins with; number and unit may stand together ("512MiB").
pub(super) fn first_size(text: &str) -> Option<Bytes> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let unit = rest.split_whitespace().next().unwrap_or("");
    if number.is_empty() && rest.starts_with("more than 1EB") {
        // What PyTorch writes for sizes that no number is printed for.
        return Some(Bytes::new(1 << 60));
    }
    size(number, unit)
}

/// The whole number a text begins with.
pub(super) fn first_number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

/// PyTorch and `nvidia-smi` mean powers of two whatever they write.
fn size(number: &str, unit: &str) -> Option<Bytes> {
    let number = number.trim_start_matches(|c: char| !c.is_ascii_digit());
    let number = decimal(number)?;
    let unit: String = unit.chars().take_while(char::is_ascii_alphabetic).collect();
    let power = match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => 0,
        "kib" | "kb" | "k" => 10,
        "mib" | "mb" | "m" => 20,
        "gib" | "gb" | "g" => 30,
        "tib" | "tb" => 40,
        "pib" | "pb" => 50,
        _ => return None,
    };
    let bytes = number * (1_u64 << power) as f64;
    (bytes.is_finite() && bytes < (1_u64 << 62) as f64).then(|| Bytes::new(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_around_their_words() {
        let text = "(GPU 0; 11.50 GiB total capacity; 21.75 MiB free; 512MiB cached; 0 bytes x)";
        assert_eq!(size_before(text, " total capacity"), Some(Bytes::gib(11.5)));
        assert_eq!(size_before(text, " free"), Some(Bytes::new(22_806_528)));
        assert_eq!(size_after(text, "free; "), Some(Bytes::mib(512)));
        assert_eq!(size_before(text, " x)"), Some(Bytes::ZERO));
        assert_eq!(size_before(text, "absent"), None);
        for text in [
            "",
            "GiB",
            "9e99 GiB",
            "é GiB free",
            "1.2.3 GiB",
            "99999999999999999999 TiB",
        ] {
            assert_eq!(first_size(text), None, "{text}");
        }
        assert_eq!(first_number("step: 37/300"), Some(37));
    }
}
