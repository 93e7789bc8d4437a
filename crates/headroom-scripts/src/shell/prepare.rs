//! What is taken from a text before it is read as a script: prompts, directives, code blocks of documents.

/// The script in a text; `None` if it is of another shell. Directives of schedulers go into `directives`.
pub(super) fn prepare(text: &str, directives: &mut Vec<(String, String)>) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shebang = text.starts_with("#!");
    if shebang {
        let first = text.lines().next().unwrap_or_default();
        if ["python", "perl", "ruby", "node", "pwsh", "fish", "tcl"]
            .iter()
            .any(|other| first.contains(other))
        {
            return None;
        }
    } else if is_other_shell(text) {
        return None;
    }
    let blocks = (!shebang).then(|| code_blocks(text)).flatten();
    let text = blocks.as_deref().unwrap_or(text);
    let mut script = String::with_capacity(text.len());
    let prompts = text.lines().any(|line| prompt(line).is_some());
    for line in text.split_inclusive('\n') {
        let plain = line.trim_start();
        if let Some(directive) = plain
            .strip_prefix("#SBATCH")
            .or_else(|| plain.strip_prefix("#FLUX:"))
            && directives.len() < 64
        {
            options(directive, directives);
        }
        if plain.starts_with("%%") || plain.starts_with("%cd") || plain.starts_with("%env") {
            if let Some(setting) = plain.strip_prefix("%env ") {
                script.push_str("export ");
                script.push_str(&setting.replacen(' ', "=", usize::from(!setting.contains('='))));
            } else {
                script.push('\n');
            }
            continue;
        }
        let bare = match prompt(line) {
            Some(rest) => rest,
            // Notebooks run what follows an exclamation mark.
            None => match plain.strip_prefix('!') {
                Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.') => {
                    rest
                }
                _ => match plain.strip_prefix("> ") {
                    Some(rest) if prompts => rest,
                    _ => line,
                },
            },
        };
        script.push_str(bare);
    }
    Some(script)
}

/// What follows a prompt.
fn prompt(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix("$ ") {
        return Some(rest);
    }
    // `(env) user@host:~/dir$ command`.
    let at = line.get(..line.len().min(80)).unwrap_or(line).find("$ ")?;
    let before = line.get(..at)?;
    let typical = before.starts_with('(') && before.contains(')')
        || before.contains('@') && before.contains(':');
    (typical && !before.contains(['=', '"', '\'']))
        .then(|| line.get(at + 2..))
        .flatten()
}

/// Options of a scheduler's directive.
fn options(directive: &str, into: &mut Vec<(String, String)>) {
    let directive = directive.split(" #").next().unwrap_or_default();
    let mut words = directive.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-');
        if name.len() == word.len() {
            continue;
        }
        let short = word.len() > 2 && !word.starts_with("--");
        if let Some((name, value)) = name.split_once('=') {
            into.push((name.into(), value.trim_matches(['"', '\'']).into()));
        } else if short && let (Some(name), Some(value)) = (name.get(..1), name.get(1..)) {
            into.push((name.into(), value.into()));
        } else {
            let value = words
                .next_if(|next| !next.starts_with('-'))
                .unwrap_or_default();
            into.push((name.into(), value.trim_matches(['"', '\'']).into()));
        }
    }
}

/// The shell code of a document's fenced blocks; `None` if it has no such blocks.
fn code_blocks(text: &str) -> Option<String> {
    let mut script = String::new();
    let mut inside: Option<bool> = None;
    let mut any = false;
    for line in text.split_inclusive('\n') {
        let plain = line.trim();
        if let Some(language) = plain
            .strip_prefix("```")
            .or_else(|| plain.strip_prefix("~~~"))
        {
            inside = match inside {
                Some(_) => None,
                None => {
                    let language = language
                        .trim()
                        .trim_matches(['{', '}', '.'])
                        .to_ascii_lowercase();
                    let shell = matches!(
                        language.split_whitespace().next().unwrap_or_default(),
                        "" | "bash"
                            | "sh"
                            | "shell"
                            | "console"
                            | "zsh"
                            | "cmd"
                            | "terminal"
                            | "shell-session"
                    );
                    any |= shell;
                    Some(shell)
                }
            };
            script.push('\n');
            continue;
        }
        if inside == Some(true) {
            script.push_str(line);
        }
    }
    any.then_some(script)
}

/// PowerShell and batch files.
fn is_other_shell(text: &str) -> bool {
    let mut signs = 0;
    for line in text.lines().take(200) {
        let line = line.trim_start();
        let lower = line
            .get(..line.len().min(24))
            .unwrap_or_default()
            .to_ascii_lowercase();
        let batch = lower.starts_with("@echo off")
            || lower.starts_with("setlocal")
            || lower.starts_with("rem ");
        let power = lower.starts_with("$env:")
            || lower.starts_with("write-host")
            || lower.starts_with("write-output")
            || lower.starts_with("param(")
            || lower.starts_with("set-location")
            || is_power_assignment(line);
        signs += usize::from(batch || power);
    }
    signs > 0
}

/// `$name = value`.
fn is_power_assignment(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('$') else {
        return false;
    };
    let name = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    name > 0 && rest.get(name..).is_some_and(|rest| rest.starts_with(" = "))
}
