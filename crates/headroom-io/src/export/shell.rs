//! Shell: the one place where text becomes a word of a command.

/// The text as one word of a POSIX shell: bare where that is safe, else in single quotes.
///
/// Quoting cannot stop a program from taking a leading dash for an option: give such text only as the value of an
/// option (`--name=value`) or after `--`. A shell word cannot hold NUL, which is left out.
pub fn quote(text: &str) -> String {
    let text: String = text.chars().filter(|c| *c != '\0').collect();
    let bare = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,-".contains(c);
    // A tilde or an equals sign would be bare in some places and not in others.
    if !text.is_empty() && text.chars().all(bare) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A command line of quoted words, broken before its options where it is long.
pub fn command(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    let line = quoted.join(" ");
    if line.len() <= 100 {
        return line;
    }
    let mut text = String::new();
    for word in quoted {
        if !text.is_empty() {
            text.push_str(if word.starts_with("--") {
                " \\\n  "
            } else {
                " "
            });
        }
        text.push_str(&word);
    }
    text
}

/// The allocator's names for its settings.
///
/// The old name alone works before 2.8 and up to 2.10, the new one after; the same value in both is right everywhere.
pub const ALLOCATOR_NAMES: [&str; 2] = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"];

/// The lines that set the allocator's options under both of its names.
pub fn allocator(settings: &str) -> String {
    let value = quote(settings);
    let [new, old] = ALLOCATOR_NAMES;
    format!("export {new}={value}\nexport {old}=\"${new}\"\n")
}

/// The mark that ends a here-document: no line of the text is the same.
pub fn end_mark(text: &str) -> String {
    let mut mark = String::from("END_OF_FILE");
    while text.lines().any(|line| line == mark) {
        mark.push('_');
    }
    mark
}

/// Lines that write a file of this name, as it is.
pub fn here(name: &str, contents: &str) -> String {
    let end = end_mark(contents);
    let line_end = if contents.ends_with('\n') { "" } else { "\n" };
    format!(
        "cat >{} <<'{end}'\n{contents}{line_end}{end}\n",
        quote(name)
    )
}

/// A script's first lines: it stops at the first error and runs beside its files.
pub fn opening(header: &str) -> String {
    format!(
        "#!/usr/bin/env bash\n{header}set -euo pipefail\ncd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bare_only_where_no_shell_reads_them_otherwise() {
        #[track_caller]
        fn check(text: &str, word: &str) {
            assert_eq!(quote(text), word);
        }
        check("train.py", "train.py");
        check("--nproc-per-node", "--nproc-per-node");
        check("", "''");
        check("a b", "'a b'");
        check("it's", "'it'\\''s'");
        check("$(id)", "'$(id)'");
        check("~", "'~'");
        check("a=b", "'a=b'");
        check("a\nb", "'a\nb'");
        check("a\0b", "ab");
        check("größe", "'größe'");
    }

    #[test]
    fn long_commands_break_before_options() {
        let long = "x".repeat(60);
        let line = command(&["run", "--a", &long, "--b", &long]);
        assert_eq!(line, format!("run \\\n  --a {long} \\\n  --b {long}"));
    }
}
