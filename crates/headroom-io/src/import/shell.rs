//! A shell script as far as it can be read without running it: commands, quotes, and variables with a plain value.

use super::arithmetic;
use headroom_base::order::Map;

/// A command and the variables that it is started with.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    pub words: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// The longest value of a variable that is put in.
const LONGEST: usize = 4096;

/// Stands between the words of a list.
const BETWEEN: char = '\u{1f}';

/// The commands in their order. What only running would tell, such as `$(nproc)`, is left out.
pub fn commands(text: &str) -> Vec<Command> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        known: Map::new(),
        exported: Map::new(),
    };
    let mut all = Vec::new();
    while let Some(words) = reader.line() {
        all.extend(reader.command(words));
    }
    all
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    known: Map<String, String>,
    exported: Map<String, String>,
}

impl Reader<'_> {
    /// The words up to the end of a command; `None` at the end of the script.
    fn line(&mut self) -> Option<Vec<String>> {
        self.rest.peek()?;
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        while let Some(next) = self.rest.next() {
            match next {
                '(' if word.as_deref().is_some_and(|word| word.ends_with('=')) => {
                    let list = self.list();
                    words.push(word.take().unwrap_or_default().replace('=', "[@]=") + &list);
                }
                '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '#' if word.is_none() => {
                    while self.rest.next().is_some_and(|letter| letter != '\n') {}
                    break;
                }
                ' ' | '\t' | '\r' => words.extend(word.take()),
                '\\' => match self.rest.next() {
                    Some('\n') | None => words.extend(word.take()),
                    Some('\r') => {}
                    Some(plain) => word.get_or_insert_default().push(plain),
                },
                '\'' => {
                    let word = word.get_or_insert_default();
                    word.extend(self.rest.by_ref().take_while(|letter| *letter != '\''));
                }
                '"' => self.quoted(word.get_or_insert_default()),
                '$' => {
                    let value = self.variable();
                    word.get_or_insert_default().push_str(&value);
                }
                plain => word.get_or_insert_default().push(plain),
            }
        }
        words.extend(word);
        // A list that is put in is as many words.
        let apart = words.iter().any(|word| word.contains(BETWEEN));
        if apart && !words.iter().any(|word| word.contains("[@]=")) {
            let parts = words.iter().flat_map(|word| word.split(BETWEEN));
            words = parts.map(String::from).collect();
        }
        Some(words)
    }

    /// The words of a list up to its closing bracket, over all its lines.
    fn list(&mut self) -> String {
        let mut words: Vec<String> = Vec::new();
        let mut word: Option<String> = None;
        while let Some(next) = self.rest.next() {
            match next {
                ')' => break,
                '#' if word.is_none() => {
                    while self.rest.next().is_some_and(|letter| letter != '\n') {}
                }
                ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
                '\\' => match self.rest.next() {
                    Some('\n' | '\r') | None => words.extend(word.take()),
                    Some(plain) => word.get_or_insert_default().push(plain),
                },
                '\'' => {
                    let word = word.get_or_insert_default();
                    word.extend(self.rest.by_ref().take_while(|letter| *letter != '\''));
                }
                '"' => self.quoted(word.get_or_insert_default()),
                '$' => {
                    let value = self.variable();
                    word.get_or_insert_default().push_str(&value);
                }
                plain => word.get_or_insert_default().push(plain),
            }
        }
        words.extend(word);
        words.join(&BETWEEN.to_string())
    }

    /// What stands between double quotes.
    fn quoted(&mut self, word: &mut String) {
        while let Some(next) = self.rest.next() {
            match next {
                '"' => return,
                '\\' => word.extend(self.rest.next().filter(|letter| *letter != '\n')),
                '$' => {
                    let value = self.variable();
                    word.push_str(&value);
                }
                plain => word.push(plain),
            }
        }
    }

    /// The value behind a `$`: `NAME`, `{NAME}`, `{NAME:-default}`; nothing where it is not known.
    fn variable(&mut self) -> String {
        match self.rest.peek() {
            Some('{') => {
                self.rest.next();
                let inside: String = self.until('{', '}');
                let (name, default) = inside.split_once(":-").unwrap_or((&inside, ""));
                let known = self.known.get(name).cloned();
                known.unwrap_or_else(|| default.trim_matches('"').into())
            }
            Some('(') => {
                self.rest.next();
                let inside = self.until('(', ')');
                let sum = inside
                    .strip_prefix('(')
                    .and_then(|sum| sum.strip_suffix(')'));
                let number = sum.and_then(|sum| arithmetic::value(sum, &self.known));
                number.map_or_else(String::new, |number| number.to_string())
            }
            Some(letter) if !letter.is_ascii_alphabetic() && *letter != '_' => {
                self.rest.next();
                String::new()
            }
            _ => {
                let mut name = String::new();
                while let Some(letter) = self
                    .rest
                    .next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                {
                    name.push(letter);
                }
                self.known.get(&name).cloned().unwrap_or_default()
            }
        }
    }

    /// What stands before the bracket that closes the one that was opened.
    fn until(&mut self, open: char, close: char) -> String {
        let mut depth = 1_u32;
        let mut text = String::new();
        for next in self.rest.by_ref() {
            if next == open {
                depth += 1;
            } else if next == close {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            text.push(next);
        }
        text
    }

    /// Takes assignments; what is left is a command.
    fn command(&mut self, words: Vec<String>) -> Option<Command> {
        let mut words = words.into_iter().peekable();
        let exports = words.next_if(|word| word == "export").is_some();
        let mut assigned = Vec::new();
        while let Some(word) = words.next_if(|word| assignment(word).is_some()) {
            if let Some((name, value)) =
                assignment(&word).filter(|(_, value)| value.len() <= LONGEST)
            {
                assigned.push((name.to_string(), value.to_string()));
            }
        }
        let words: Vec<String> = words.collect();
        if !words.is_empty() && !exports {
            let exported = self.exported.iter();
            let lasting = exported.map(|(name, value)| (name.clone(), value.clone()));
            let environment = lasting.chain(assigned).collect();
            return Some(Command { words, environment });
        }
        for (name, value) in assigned {
            if exports {
                self.exported.insert(name.clone(), value.clone());
            }
            self.known.insert(name, value);
        }
        None
    }
}

fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let list = name.strip_suffix("[@]").unwrap_or(name);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let named = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    (named && list.chars().all(plain)).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_the_shell_reads_them() {
        #[track_caller]
        fn check(text: &str, expected: &[&[&str]]) {
            let found = commands(text);
            let found: Vec<&Vec<String>> = found.iter().map(|command| &command.words).collect();
            assert_eq!(found, expected, "{text}");
        }
        check("a 'b c' \"d e\" # f\ng", &[&["a", "b c", "d e"], &["g"]]);
        check("a \\\n  --b \\\n  c", &[&["a", "--b", "c"]]);
        check(
            "N=${1:-2}\na $N ${N} \"x$N\" ${M:-y}",
            &[&["a", "2", "2", "x2", "y"]],
        );
        check(
            "$(python -c \"f; g()\")\na $(nproc) b",
            &[&[""], &["a", "", "b"]],
        );
        check("a; b && c | d", &[&["a"], &["b"], &["c"], &["d"]]);
        check("a \"open", &[&["a", "open"]]);
        check(
            "L=(\n  b=1 # one\n  \"c d\"\n)\na \"${L[@]}\" e",
            &[&["a", "b=1", "c d", "e"]],
        );
        check("", &[]);
        let found = commands("export A=1\nB=2 c");
        let expected = [("A", "1"), ("B", "2")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(found[0].environment, expected);
    }

    #[test]
    fn variables_that_grow_are_left_out() {
        let mut text = String::from("A0=xxxxxxxxxxxxxxxx\n");
        for at in 1..64 {
            text.push_str(&format!("A{at}=$A{0}$A{0}\n", at - 1));
        }
        text.push_str("c $A63");
        assert_eq!(commands(&text)[0].words, ["c", ""]);
    }
}
