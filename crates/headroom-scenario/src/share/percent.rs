//! Percent-encoding, so that any text fits into a fragment and links stay readable.

/// Appends the text; what chat programs and shells leave alone is written as it is.
pub(super) fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-_.~,=:/@+".contains(&byte);
        if plain {
            into.push(char::from(byte));
        } else {
            into.push('%');
            for digit in [byte >> 4, byte & 15] {
                into.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
}

/// The text, or nothing where an escape is cut or the bytes are not UTF-8.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_and_stays_readable() {
        #[track_caller]
        fn check(text: &str, encoded: &str) {
            let mut link = String::new();
            encode(text, &mut link);
            assert_eq!(link, encoded);
            assert_eq!(decode(&link).as_deref(), Some(text));
        }
        check("q_proj,v_proj", "q_proj,v_proj");
        check("layers=2", "layers=2");
        check("a b&c", "a%20b%26c");
        check("ä%#", "%C3%A4%25%23");
        check("", "");
    }

    #[test]
    fn broken_escapes_are_refused() {
        for text in ["%", "%4", "%zz", "%ff", "ok%C3"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
