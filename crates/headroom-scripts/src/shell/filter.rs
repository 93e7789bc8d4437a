//! Small programs whose output follows from what they are given: `basename`, `seq`, `tr`, `wc` and the like.

use super::pattern;
use super::state::{Input, Shell};
use super::value::Value;

/// What a program prints.
pub(super) enum Printed {
    /// It is none of these programs.
    No,
    Unknown,
    Text(Value),
}

pub(super) fn run(shell: &mut Shell, name: &str, words: &[Value]) -> Printed {
    match output(shell, name, words) {
        Ok(Some(value)) => Printed::Text(value),
        Ok(None) => Printed::Unknown,
        Err(NoFilter) => Printed::No,
    }
}

struct NoFilter;

/// The output, if it can be known; an error for other programs.
fn output(shell: &mut Shell, name: &str, words: &[Value]) -> Result<Option<Value>, NoFilter> {
    let input = |shell: &Shell| match &shell.input {
        Input::Text(value) => value.known(),
        _ => None,
    };
    let texts: Option<Vec<String>> = words.iter().map(Value::known).collect();
    let known = |output: fn(&[String]) -> Option<String>| {
        texts.as_deref().and_then(output).map(Value::text)
    };
    Ok(match name {
        "basename" => words.first().and_then(|path| basename(path, words.get(1))),
        "dirname" => words.first().and_then(dirname),
        "realpath" | "readlink" => words.last().cloned(),
        "seq" => known(seq),
        "expr" => {
            let text = Value::joined(words, " ").known();
            let value = text.and_then(|text| super::arithmetic::evaluate(&text, shell).ok());
            value.map(|value| Value::text(format!("{value}\n")))
        }
        "bc" => {
            let text = input(shell);
            let plain = text.filter(|text| !text.contains(['.', ';']));
            let value = plain.and_then(|text| super::arithmetic::evaluate(text.trim(), shell).ok());
            value.map(|value| Value::text(format!("{value}\n")))
        }
        "tr" | "wc" | "cut" | "awk" | "sed" | "head" | "tail" | "sort" | "uniq" | "grep" => {
            // With a file's name it reads that.
            if words
                .last()
                .is_some_and(|word| reads_file(name, words.len(), &word.written()))
            {
                return Ok(None);
            }
            let Some(text) = input(shell) else {
                return Ok(None);
            };
            if !shell.fuel.burn(text.len() * 2 + 50) {
                return Ok(None);
            }
            let words = texts.unwrap_or_default();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            filter(name, &words, &text, shell).map(Value::text)
        }
        "xargs" if words.is_empty() => {
            let Some(text) = input(shell) else {
                return Ok(None);
            };
            let words: Vec<&str> = text.split_whitespace().collect();
            Some(Value::text(words.join(" ") + "\n"))
        }
        _ => return Err(NoFilter),
    })
}

fn reads_file(name: &str, words: usize, last: &str) -> bool {
    match name {
        "wc" | "head" | "tail" | "sort" | "uniq" => {
            !last.starts_with('-') && last.parse::<u64>().is_err()
        }
        "cut" => words > 2 && !last.starts_with('-') && last.contains('.'),
        "grep" | "sed" | "awk" => {
            words > 2 && last.contains(['.', '/']) && !last.starts_with(['s', '{'])
        }
        _ => false,
    }
}

fn basename(path: &Value, suffix: Option<&Value>) -> Option<Value> {
    let text = path.written();
    let plain = text.trim_end_matches('/');
    let start = plain.rfind('/').map_or(0, |at| at + 1);
    let mut end = plain.len();
    if let Some(suffix) = suffix.and_then(Value::known)
        && plain
            .get(start..)
            .is_some_and(|name| name.ends_with(&suffix) && name != suffix)
    {
        end -= suffix.len();
    }
    let value = path.slice(start, end);
    let cut = path
        .parts()
        .iter()
        .any(|part| part.known != super::value::Known::Yes && part.text.contains('/'));
    (!cut).then_some(value)
}

fn dirname(path: &Value) -> Option<Value> {
    let text = path.written();
    let plain = text.trim_end_matches('/');
    match plain.rfind('/') {
        Some(0) => Some(Value::text("/")),
        Some(at) => Some(path.slice(0, at)),
        None if path.is_known() => Some(Value::text(".")),
        None => None,
    }
}

fn seq(words: &[String]) -> Option<String> {
    let (separator, words) = match words.split_first()? {
        (first, rest) if first == "-s" => (rest.first()?.as_str(), rest.get(1..)?),
        (first, rest) => match first.strip_prefix("-s") {
            Some(separator) => (separator, rest),
            None => ("\n", words),
        },
    };
    let numbers: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
    let (first, step, last) = match numbers?.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] => (*first, *step, *last),
        _ => return None,
    };
    let mut all = Vec::new();
    let mut at = first;
    while step != 0 && all.len() < 1024 && if step > 0 { at <= last } else { at >= last } {
        all.push(at.to_string());
        at = at.checked_add(step)?;
    }
    Some(all.join(separator) + "\n")
}

fn filter(name: &str, words: &[&str], text: &str, shell: &mut Shell) -> Option<String> {
    let has = |flag: &str| words.contains(&flag);
    let after = |flag: &str| {
        let at = words.iter().position(|word| word.starts_with(flag))?;
        let joined = words.get(at)?.strip_prefix(flag)?;
        if joined.is_empty() {
            words.get(at + 1).copied()
        } else {
            Some(joined)
        }
    };
    match name {
        "tr" => {
            let delete = words
                .first()
                .is_some_and(|word| word.starts_with('-') && word.contains('d'));
            let complement = words
                .first()
                .is_some_and(|word| word.starts_with('-') && word.contains(['c', 'C']));
            if delete {
                let set = characters(words.get(1)?);
                return Some(
                    text.chars()
                        .filter(|char| set.contains(char) == complement)
                        .collect(),
                );
            }
            if complement || words.len() != 2 {
                return None;
            }
            let (from, to) = (characters(words.first()?), characters(words.get(1)?));
            let change = |char: char| match from.iter().position(|known| *known == char) {
                Some(at) => to.get(at).or(to.last()).copied().unwrap_or(char),
                None => char,
            };
            Some(text.chars().map(change).collect())
        }
        "wc" => {
            let count = match *words.first()? {
                "-l" => text.matches('\n').count(),
                "-w" => text.split_whitespace().count(),
                "-c" | "-m" => text.len(),
                _ => return None,
            };
            Some(format!("{count}\n"))
        }
        "cut" => {
            let field = after("-f")?;
            let (first, last) = match field.split_once('-') {
                Some((first, "")) => (first.parse().ok()?, usize::MAX),
                Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
                None => (field.parse().ok()?, field.parse().ok()?),
            };
            let separator = after("-d").unwrap_or("\t");
            let line = |line: &str| {
                let fields: Vec<&str> = line.split(separator).collect();
                let start = fields.len().min(usize::max(first, 1) - 1);
                let end = fields.len().min(last).max(start);
                fields.get(start..end).unwrap_or_default().join(separator) + "\n"
            };
            Some(text.lines().map(line).collect())
        }
        "awk" => {
            let separator = after("-F").map(|text| text.trim_matches(['"', '\'']));
            let program = words.last()?.replace(' ', "");
            let what = program
                .strip_prefix("{print")?
                .strip_suffix('}')?
                .to_string();
            let line = |line: &str| {
                let fields: Vec<&str> = match separator {
                    Some(separator) if !separator.is_empty() => line.split(separator).collect(),
                    _ => line.split_whitespace().collect(),
                };
                Some(match what.as_str() {
                    "NF" => format!("{}\n", fields.len()),
                    "$NF" => format!("{}\n", fields.last()?),
                    "$0" => format!("{line}\n"),
                    field => {
                        let field: usize = field.strip_prefix('$')?.parse().ok()?;
                        format!(
                            "{}\n",
                            fields
                                .get(field.checked_sub(1)?)
                                .copied()
                                .unwrap_or_default()
                        )
                    }
                })
            };
            text.lines().map(line).collect()
        }
        "sed" => {
            let program = words.iter().find(|word| !word.starts_with('-'))?;
            let mark = program.strip_prefix('s')?.chars().next()?;
            let mut parts = program.get(1 + mark.len_utf8()..)?.split(mark);
            let (from, to, flags) = (parts.next()?, parts.next()?, parts.next()?);
            if from.contains(['*', '[', '(', '^', '$', '\\', '+', '.']) || to.contains(['\\', '&'])
            {
                return None;
            }
            let how = if flags.contains('g') { b'/' } else { 0 };
            let line = |line: &str| pattern::replace(from, line, to, how, &mut shell.fuel) + "\n";
            Some(text.lines().map(line).collect())
        }
        "head" | "tail" => {
            let count = after("-n")
                .or_else(|| words.first()?.strip_prefix('-'))
                .unwrap_or("10");
            let count: usize = count.parse().ok()?;
            let lines: Vec<&str> = text.lines().collect();
            let cut = lines.len().min(count);
            let lines = if name == "head" {
                lines.get(..cut)?
            } else {
                lines.get(lines.len() - cut..)?
            };
            Some(lines.join("\n") + "\n")
        }
        "sort" | "uniq" => {
            let mut lines: Vec<&str> = text.lines().collect();
            if words.iter().any(|word| *word != "-u" && *word != "-n") {
                return None;
            }
            if name == "sort" {
                lines.sort_unstable();
            }
            if name == "uniq" || has("-u") {
                lines.dedup();
            }
            Some(lines.join("\n") + "\n")
        }
        "grep" => {
            let wanted = words.iter().find(|word| !word.starts_with('-'))?;
            if wanted.is_empty() || wanted.contains(['*', '[', '^', '$', '\\', '.', '+', '|']) {
                return None;
            }
            if has("-o") {
                return Some(format!("{wanted}\n").repeat(text.matches(wanted).count().min(4096)));
            }
            if has("-c") {
                return Some(format!(
                    "{}\n",
                    text.lines().filter(|line| line.contains(wanted)).count()
                ));
            }
            None
        }
        _ => None,
    }
}

/// The characters of a set of `tr`.
fn characters(set: &str) -> Vec<char> {
    match set {
        "[:upper:]" | "A-Z" => return ('A'..='Z').collect(),
        "[:lower:]" | "a-z" => return ('a'..='z').collect(),
        "[:space:]" => return vec![' ', '\t', '\n', '\r'],
        "0-9" | "[:digit:]" => return ('0'..='9').collect(),
        _ => {}
    }
    let plain = set.replace("\\n", "\n").replace("\\t", "\t");
    plain.chars().collect()
}

/// `printf FORMAT WORDS`.
pub(super) fn printf(words: &[Value]) -> Option<Value> {
    let format = words.first()?.known()?;
    let mut rest = words.iter().skip(1);
    let mut parts = Vec::new();
    let mut chars = format.chars().peekable();
    let mut text = String::new();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            '%' => match chars.next() {
                Some('%') => text.push('%'),
                Some('s' | 'd' | 'i') => {
                    parts.push(Value::text(std::mem::take(&mut text)));
                    parts.extend(rest.next().cloned());
                }
                _ => return None,
            },
            other => text.push(other),
        }
    }
    parts.push(Value::text(text));
    // A format is used again for words that are left.
    rest.next().is_none().then(|| Value::joined(&parts, ""))
}
