//! Where output goes, and what may go there.

use std::io::IsTerminal;

/// What reads standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Terminal {
    /// A file, a pipe, or a terminal without colour.
    #[default]
    Plain,
    /// A terminal that shows colour.
    Styled,
}

impl Terminal {
    /// That of this process. `NO_COLOR` (no-color.org) and a dumb terminal get plain text.
    pub fn detect() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|name| name == "dumb");
        if std::io::stdout().is_terminal() && set("NO_COLOR").is_none() && !dumb {
            Self::Styled
        } else {
            Self::Plain
        }
    }
}

/// A text that only says something: names in files can contain characters that drive a terminal or reorder a line.
pub(super) fn inert(text: &str) -> String {
    let drives = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || reorders(c);
    if !text.contains(drives) {
        return text.into();
    }
    let shown = |c: char| if drives(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// The same for what must stay one line.
pub(super) fn line(text: &str) -> String {
    inert(text).replace('\n', " ")
}

/// Unicode's controls of direction, and line separators.
const fn reorders(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{inert, line};

    #[track_caller]
    fn check(given: &str, shown: &str) {
        assert_eq!(inert(given), shown);
    }

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        check("plain × text\n\tgrüße", "plain × text\n\tgrüße");
        check("\u{1b}[2Jgone", "\u{fffd}[2Jgone");
        check("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}");
        check("a\rb\u{8}\u{9b}", "a\u{fffd}b\u{fffd}\u{fffd}");
        check(
            "\u{202e}txet\u{2069}\u{61c}",
            "\u{fffd}txet\u{fffd}\u{fffd}",
        );
        assert_eq!(line("a\nfits\u{2028}b"), "a fits\u{fffd}b");
    }
}
