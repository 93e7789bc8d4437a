//! Expansion of words: quoting, variables, substitutions, splitting.

use super::arithmetic::{self, Numbers};
use super::parse::literal;
use super::pattern;
use super::state::{Flow, Shell};
use super::syntax::{List, Node, Operation, Parameter, Piece, Raw};
use super::value::{Known, Part, Value, Variable};

/// What a parameter stands for.
pub(super) enum Found {
    Nothing,
    One(Value),
    Many(Vec<Value>),
}

/// Fields in the making.
#[derive(Default)]
struct Fields {
    done: Vec<Value>,
    current: Option<Vec<Part>>,
}

impl Fields {
    fn push(&mut self, part: Part) {
        self.current.get_or_insert_default().push(part);
    }

    fn quoted(&mut self, value: &Value) {
        let current = self.current.get_or_insert_default();
        current.extend(value.parts().iter().cloned());
        if value.parts().is_empty() {
            current.push(plain(""));
        }
    }

    fn end(&mut self) {
        if let Some(parts) = self.current.take() {
            self.done.push(Value::of(parts));
        }
    }

    fn split(&mut self, value: &Value, separators: &[char]) {
        for part in value.parts() {
            if part.known != Known::Yes {
                self.push(part.clone());
                continue;
            }
            for (place, text) in part.text.split(separators).enumerate() {
                if place > 0 {
                    self.end();
                }
                if !text.is_empty() {
                    self.push(plain(text));
                }
            }
        }
    }
}

fn plain(text: &str) -> Part {
    Part {
        text: text.into(),
        known: Known::Yes,
    }
}

const BLANKS: &[char] = &[' ', '\t', '\n'];

impl Shell<'_> {
    /// The words that a word becomes.
    pub fn fields(&mut self, raw: &Raw) -> Vec<Value> {
        if let Some(text) = literal(raw) {
            let all = braces(text);
            if !self
                .fuel
                .burn(all.iter().map(|text| text.len() + 48).sum::<usize>())
            {
                return Vec::new();
            }
            return all.into_iter().map(Value::text).collect();
        }
        let mut fields = Fields::default();
        for piece in &raw.0 {
            if self.spent() {
                break;
            }
            match piece {
                Piece::Text(text) | Piece::Quoted(text) => {
                    self.fuel.burn(text.len() + 32);
                    fields.push(plain(text));
                }
                Piece::Placeholder(text) => fields.push(placeholder(text)),
                Piece::Parameter { parameter, quoted } => {
                    let values = match self.parameter(parameter) {
                        Found::Many(values) if *quoted && parameter.is_joined() => {
                            vec![Value::joined(&values, " ")]
                        }
                        Found::Many(values) => values,
                        Found::One(value) => vec![value],
                        Found::Nothing => vec![Value::not_given(&parameter.written)],
                    };
                    self.add(&mut fields, &values, *quoted);
                }
                Piece::Arithmetic {
                    inside,
                    written,
                    quoted,
                } => {
                    let value = self.arithmetic(inside, written);
                    self.add(&mut fields, &[value], *quoted);
                }
                Piece::Output {
                    list,
                    written,
                    quoted,
                } => {
                    let value = self.output(list, written);
                    self.add(&mut fields, &[value], *quoted);
                }
            }
        }
        fields.end();
        fields.done
    }

    fn add(&mut self, fields: &mut Fields, values: &[Value], quoted: bool) {
        let separators: Vec<char> = match self.variables.get("IFS") {
            Some(Variable::Text(value)) => match value.known() {
                Some(text) => text.chars().collect(),
                None => BLANKS.to_vec(),
            },
            _ => BLANKS.to_vec(),
        };
        for (place, value) in values.iter().enumerate() {
            if !self.fuel.burn(value.len()) {
                return;
            }
            if place > 0 {
                fields.end();
            }
            if quoted {
                fields.quoted(value);
            } else {
                fields.split(value, &separators);
            }
        }
    }

    /// What a word becomes where it stays one, as in an assignment.
    pub fn single(&mut self, raw: &Raw) -> Value {
        let mut parts = Vec::new();
        for piece in &raw.0 {
            if self.spent() {
                break;
            }
            let value = match piece {
                Piece::Text(text) | Piece::Quoted(text) => {
                    self.fuel.burn(text.len() + 32);
                    parts.push(plain(text));
                    continue;
                }
                Piece::Placeholder(text) => {
                    parts.push(placeholder(text));
                    continue;
                }
                Piece::Parameter { parameter, .. } => match self.parameter(parameter) {
                    Found::Many(values) => Value::joined(&values, " "),
                    Found::One(value) => value,
                    Found::Nothing => Value::not_given(&parameter.written),
                },
                Piece::Arithmetic {
                    inside, written, ..
                } => self.arithmetic(inside, written),
                Piece::Output { list, written, .. } => self.output(list, written),
            };
            if !self.fuel.burn(value.len()) {
                break;
            }
            parts.extend(value.parts().iter().cloned());
        }
        Value::of(parts)
    }

    /// A word as a pattern, in which what was quoted is plain; `None` if it cannot be known.
    pub fn pattern(&mut self, raw: &Raw) -> Option<String> {
        let mut pattern = String::new();
        let escaped = |text: &str, pattern: &mut String| {
            for char in text.chars() {
                if "*?[]\\@!+".contains(char) {
                    pattern.push('\\');
                }
                pattern.push(char);
            }
        };
        for piece in &raw.0 {
            match piece {
                Piece::Text(text) | Piece::Placeholder(text) => pattern.push_str(text),
                Piece::Quoted(text) => escaped(text, &mut pattern),
                piece => {
                    let quoted = matches!(
                        piece,
                        Piece::Parameter { quoted: true, .. }
                            | Piece::Arithmetic { quoted: true, .. }
                            | Piece::Output { quoted: true, .. }
                    );
                    let value = self.single(&Raw(vec![piece.clone()]));
                    let text = value.given()?;
                    if quoted {
                        escaped(&text, &mut pattern);
                    } else {
                        pattern.push_str(&text);
                    }
                }
            }
        }
        self.fuel.burn(pattern.len()).then_some(pattern)
    }

    pub fn arithmetic(&mut self, inside: &Raw, written: &str) -> Value {
        let value = self.single(inside);
        if let Some(why) = value.why() {
            return Value::unknown(written, &why);
        }
        let text = value.written();
        if !self.fuel.burn(text.len() * 4) {
            return Value::unknown(written, written);
        }
        match arithmetic::evaluate(&text, self) {
            Ok(value) => Value::text(value.to_string()),
            Err(why) => Value::unknown(written, &why),
        }
    }

    /// What a command prints.
    pub fn output(&mut self, list: &List, written: &str) -> Value {
        if self.depth > 30 || !self.fuel.burn(100) {
            return Value::unknown(written, written);
        }
        self.depth += 1;
        let silent = std::mem::replace(&mut self.silent, true);
        let kept = self.changes(list).then(|| self.variables.clone());
        let flow = self.flow;
        let output = self.captured(|shell| {
            shell.list(list);
        });
        self.flow = flow;
        if let Some(kept) = kept {
            self.variables = kept;
        }
        self.silent = silent;
        self.depth -= 1;
        if output.unknown || self.spent() {
            return Value::unknown(written, written);
        }
        let mut parts = output.parts;
        while let Some(last) = parts.last_mut() {
            let length = last.text.trim_end_matches(['\n', '\r']).len();
            last.text.truncate(length);
            if !last.text.is_empty() {
                break;
            }
            parts.pop();
        }
        Value::of(parts)
    }

    /// Whether commands could change variables.
    fn changes(&self, list: &List) -> bool {
        list.iter().any(|(_, node)| match node {
            Node::Simple(simple) => {
                let first = simple.words.first().and_then(literal);
                !simple.assignments.is_empty()
                    || !simple.declared.is_empty()
                    || first.is_none_or(|name| {
                        self.functions.contains_key(name)
                            || matches!(name, "read" | "eval" | "source" | "." | "let" | "unset")
                    })
            }
            Node::Pipe(_) => false,
            _ => true,
        })
    }

    fn parameter(&mut self, parameter: &Parameter) -> Found {
        self.fuel.burn(48);
        let Parameter {
            name,
            index,
            operation,
            written,
        } = parameter;
        let all = index
            .as_ref()
            .and_then(literal)
            .is_some_and(|index| matches!(index, "@" | "*"));
        if *operation == Operation::Indirect {
            return self.indirect(parameter, all);
        }
        let base = match index {
            None => self.lookup(name),
            Some(_) if all => match self.variables.get(name) {
                Some(variable) => Found::Many(variable.values()),
                None if name == "BASH_SOURCE" => Found::One(Value::unknown(written, written)),
                None => Found::Many(Vec::new()),
            },
            Some(index) => self.element(name, index, written),
        };
        self.operate(parameter, base)
    }

    fn indirect(&mut self, parameter: &Parameter, all: bool) -> Found {
        let Parameter { name, written, .. } = parameter;
        if all {
            let number = |count: usize| (0..count).map(|at| Value::text(at.to_string())).collect();
            return Found::Many(match self.variables.get(name) {
                Some(Variable::Map(values)) => values.keys().map(Value::text).collect(),
                Some(Variable::List(values)) => number(values.len()),
                Some(Variable::Text(_)) => number(1),
                None => Vec::new(),
            });
        }
        let Found::One(other) = self.lookup(name) else {
            return Found::Nothing;
        };
        match other.known() {
            Some(other) => match self.lookup(&other) {
                Found::Nothing => Found::One(Value::not_given(written)),
                found => found,
            },
            None => Found::One(Value::unknown(written, &other.why().unwrap_or_default())),
        }
    }

    fn element(&mut self, name: &str, index: &Raw, written: &str) -> Found {
        match self.variables.get(name).cloned() {
            Some(Variable::Map(values)) => {
                let key = self.single(index);
                match key.known() {
                    Some(key) => values
                        .get(&key)
                        .map_or(Found::Nothing, |value| Found::One(value.clone())),
                    None => Found::One(Value::unknown(written, &key.why().unwrap_or_default())),
                }
            }
            Some(variable) => {
                let values = variable.values();
                let at = self.arithmetic(index, written);
                let Some(at) = at.known().and_then(|at| at.parse::<i64>().ok()) else {
                    let why = at.why().unwrap_or_else(|| written.into());
                    return Found::One(Value::unknown(written, &why));
                };
                let at = if at < 0 { at + values.len() as i64 } else { at };
                let value = usize::try_from(at)
                    .ok()
                    .and_then(|at| values.get(at).cloned());
                Found::One(value.unwrap_or_else(|| Value::text("")))
            }
            None if is_ambient(name) => Found::One(Value::unknown(written, written)),
            None => Found::Nothing,
        }
    }

    /// A variable or special parameter by its name.
    pub fn lookup(&mut self, name: &str) -> Found {
        if let Some(variable) = self.variables.get(name) {
            return match variable {
                Variable::Text(value) => Found::One(value.clone()),
                variable => variable
                    .values()
                    .into_iter()
                    .next()
                    .map_or(Found::Nothing, Found::One),
            };
        }
        if let Ok(place) = name.parse::<usize>() {
            if place == 0 {
                return Found::One(Value::unknown("$0", "$0"));
            }
            return match self.arguments.values.get(place - 1) {
                Some(value) => Found::One(value.clone()),
                None if self.arguments.given => Found::One(Value::text("")),
                None => Found::Nothing,
            };
        }
        match name {
            "@" | "*" => Found::Many(self.arguments.values.clone()),
            "#" => Found::One(Value::text(self.arguments.values.len().to_string())),
            "?" => Found::One(Value::text("0")),
            "IFS" => Found::One(Value::text(" \t\n")),
            name if is_ambient(name) => {
                let written = format!("${name}");
                Found::One(Value::unknown(&written, &written))
            }
            name => match self.scheduled(name) {
                Some(value) => Found::One(Value::text(value)),
                None => Found::Nothing,
            },
        }
    }

    /// What a scheduler sets by the directives of its script.
    fn scheduled(&self, name: &str) -> Option<String> {
        let name = name.strip_prefix("SLURM_")?;
        let directives = &self.out.directives;
        let find = |keys: &[&str]| {
            let found = directives
                .iter()
                .rev()
                .find(|(key, _)| keys.contains(&key.as_str()));
            found.map(|(_, value)| value.clone())
        };
        let gpus = |text: &str| text.rsplit(':').next().map(str::to_string);
        let nodes = || find(&["nodes", "N"]).filter(|nodes| nodes.parse::<u64>().is_ok());
        let per_node = || {
            find(&["gpus-per-node"])
                .or_else(|| find(&["gres"]).filter(|gres| gres.starts_with("gpu")))
                .and_then(|text| gpus(&text))
        };
        match name {
            "NNODES" | "JOB_NUM_NODES" => {
                nodes().or_else(|| (!directives.is_empty()).then(|| "1".into()))
            }
            "GPUS_ON_NODE" | "GPUS_PER_NODE" => per_node(),
            "GPUS" => find(&["gpus", "G"]).and_then(|text| gpus(&text)),
            "NTASKS_PER_NODE" | "TASKS_PER_NODE" => find(&["ntasks-per-node", "tasks-per-node"]),
            "CPUS_PER_TASK" => find(&["cpus-per-task", "c"]),
            "NTASKS" | "NPROCS" => find(&["ntasks", "n"]).or_else(|| {
                let tasks: u64 = find(&["ntasks-per-node", "tasks-per-node"])?.parse().ok()?;
                let nodes: u64 = nodes().unwrap_or_else(|| "1".into()).parse().ok()?;
                Some(tasks.checked_mul(nodes)?.to_string())
            }),
            _ => None,
        }
    }

    fn operate(&mut self, parameter: &Parameter, base: Found) -> Found {
        let written = &parameter.written;
        match &parameter.operation {
            Operation::None | Operation::Indirect => base,
            Operation::Length => Found::One(match base {
                Found::Many(values) => Value::text(values.len().to_string()),
                Found::One(value) => match value.known() {
                    Some(text) => Value::text(text.chars().count().to_string()),
                    None => Value::unknown(written, &value.why().unwrap_or_default()),
                },
                Found::Nothing => Value::not_given(written),
            }),
            Operation::Default { colon, kind, word } => {
                let empty = match &base {
                    Found::Nothing => true,
                    Found::One(value) => {
                        let given = value.given();
                        let unset = given.as_deref() == Some("") && !value.is_known();
                        unset || (*colon && given.as_deref() == Some(""))
                    }
                    Found::Many(values) => values.is_empty(),
                };
                match (kind, empty) {
                    (b'-' | b'=', false) | (b'?', _) => base,
                    (b'+', true) => Found::Many(Vec::new()).or_blank(parameter),
                    (kind, _) => {
                        if *kind == b'+' && parameter.index.is_some() {
                            return Found::Many(self.fields(word));
                        }
                        let value = self.single(word);
                        if *kind == b'=' {
                            self.set_text(&parameter.name, value.clone());
                        }
                        Found::One(value)
                    }
                }
            }
            Operation::Slice { offset, length } => {
                self.slice(parameter, base, offset, length.as_ref())
            }
            _ => match base {
                Found::Nothing => Found::Nothing,
                Found::One(value) => Found::One(self.change(parameter, &value)),
                Found::Many(values) => Found::Many(
                    values
                        .iter()
                        .map(|value| self.change(parameter, value))
                        .collect(),
                ),
            },
        }
    }

    fn slice(
        &mut self,
        parameter: &Parameter,
        base: Found,
        offset: &Raw,
        length: Option<&Raw>,
    ) -> Found {
        let written = &parameter.written;
        let mut number = |raw: &Raw| {
            let value = self.arithmetic(raw, written);
            value.known().and_then(|text| text.parse::<i64>().ok())
        };
        let offset = number(offset);
        let length = match length.map(number) {
            None => Some(i64::MAX),
            Some(length) => length,
        };
        let (Some(offset), Some(length)) = (offset, length) else {
            return Found::One(Value::unknown(written, written));
        };
        let bounds = |count: i64| {
            let start = if offset < 0 { count + offset } else { offset };
            let start = start.clamp(0, count);
            let end = if length < 0 {
                count + length
            } else {
                start.saturating_add(length)
            };
            (start as usize, end.clamp(start, count) as usize)
        };
        match base {
            Found::Nothing => Found::Nothing,
            Found::One(value) => Found::One(match value.known() {
                Some(text) => {
                    let (start, end) = bounds(text.chars().count() as i64);
                    Value::text(
                        text.chars()
                            .skip(start)
                            .take(end - start)
                            .collect::<String>(),
                    )
                }
                None => Value::unknown(written, &value.why().unwrap_or_default()),
            }),
            Found::Many(mut values) => {
                if parameter.index.is_none() {
                    values.insert(0, Value::unknown("$0", "$0"));
                }
                let (start, end) = bounds(values.len() as i64);
                Found::Many(values.into_iter().skip(start).take(end - start).collect())
            }
        }
    }

    fn change(&mut self, parameter: &Parameter, value: &Value) -> Value {
        let written = &parameter.written;
        let unknown =
            || Value::unknown(written, &value.why().unwrap_or_else(|| written.to_string()));
        if !value.is_known() && value.parts().iter().all(|part| part.known != Known::Yes) {
            return unknown();
        }
        if !self.fuel.burn(value.len()) {
            return unknown();
        }
        match &parameter.operation {
            Operation::Strip {
                end,
                longest,
                pattern: raw,
            } => {
                let Some(pattern) = self.pattern(raw) else {
                    return unknown();
                };
                // Unknown parts are characters that no pattern names.
                let masked: String = value.parts().iter().map(masked).collect();
                match pattern::strip(&pattern, &masked, *end, *longest, &mut self.fuel) {
                    Some(cut) if *end => value.slice(0, masked.len() - cut),
                    Some(cut) => value.slice(cut, masked.len()),
                    None => value.clone(),
                }
            }
            Operation::Replace {
                how,
                pattern: raw,
                by,
            } => {
                let Some(pattern) = self.pattern(raw) else {
                    return unknown();
                };
                let by = self.single(by);
                let Some(by) = by.given() else {
                    return unknown();
                };
                let mut part = |part: &Part| Part {
                    text: match part.known {
                        Known::Yes => {
                            pattern::replace(&pattern, &part.text, &by, *how, &mut self.fuel)
                        }
                        _ => part.text.clone(),
                    },
                    known: part.known.clone(),
                };
                Value::of(value.parts().iter().map(&mut part).collect())
            }
            Operation::Case { upper, all } => {
                let change = |text: &str| {
                    let case = |text: &str| {
                        if *upper {
                            text.to_uppercase()
                        } else {
                            text.to_lowercase()
                        }
                    };
                    let first = text.chars().next().map_or(0, char::len_utf8);
                    match (all, text.get(..first), text.get(first..)) {
                        (false, Some(first), Some(rest)) => case(first) + rest,
                        _ => case(text),
                    }
                };
                let part = |part: &Part| Part {
                    text: if part.known == Known::Yes {
                        change(&part.text)
                    } else {
                        part.text.clone()
                    },
                    known: part.known.clone(),
                };
                Value::of(value.parts().iter().map(part).collect())
            }
            _ => value.clone(),
        }
    }

    /// Stops the loop, function or script unless this is what it says already.
    pub fn leave(&mut self, flow: Flow) {
        if self.flow == Flow::Next {
            self.flow = flow;
        }
    }
}

impl Parameter {
    /// Whether a list becomes one word between quotes.
    fn is_joined(&self) -> bool {
        self.name == "*" || self.index.as_ref().and_then(literal) == Some("*")
    }
}

impl Found {
    /// An empty text where a list is not meant.
    fn or_blank(self, parameter: &Parameter) -> Self {
        let list = parameter.index.is_some() || matches!(parameter.name.as_str(), "@" | "*");
        if list {
            self
        } else {
            Self::One(Value::text(""))
        }
    }
}

impl Numbers for Shell<'_> {
    fn number(&mut self, name: &str) -> Result<String, String> {
        if !self.fuel.burn(16) {
            return Err(name.into());
        }
        let Found::One(value) = self.lookup(name) else {
            return Err(name.into());
        };
        value.known().ok_or_else(|| value.why().unwrap_or_default())
    }

    fn assign(&mut self, name: &str, value: i64) {
        self.set_text(name, Value::text(value.to_string()));
    }
}

fn placeholder(text: &str) -> Part {
    Part {
        text: text.into(),
        known: Known::No(text.into()),
    }
}

fn masked(part: &Part) -> String {
    match part.known {
        Known::Yes => part.text.clone(),
        _ => "\u{1}".repeat(part.text.len()),
    }
}

/// Variables that every shell has, whose values a run decides.
fn is_ambient(name: &str) -> bool {
    matches!(
        name,
        "HOME"
            | "USER"
            | "PWD"
            | "OLDPWD"
            | "PATH"
            | "HOSTNAME"
            | "SHELL"
            | "RANDOM"
            | "SECONDS"
            | "UID"
            | "LINENO"
            | "BASH_SOURCE"
            | "LOGNAME"
            | "$"
            | "!"
            | "-"
            | "_"
            | "EPOCHSECONDS"
            | "TMPDIR"
    )
}

/// `{a,b}` and `{1..4}` of an unquoted word.
fn braces(text: &str) -> Vec<String> {
    let whole = vec![text.to_string()];
    let (Some(open), Some(close)) = (text.find('{'), text.find('}')) else {
        return whole;
    };
    let (Some(before), Some(inside), Some(after)) = (
        text.get(..open),
        text.get(open + 1..close.max(open + 1)),
        text.get(close + 1..),
    ) else {
        return whole;
    };
    if close < open || inside.contains('{') || after.contains(['{', '}']) {
        return whole;
    }
    let around = |item: String| format!("{before}{item}{after}");
    if let Some((first, last)) = inside.split_once("..")
        && let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>())
        && first.abs() < 1 << 20
        && last.abs() < 1 << 20
        && (last - first).abs() <= 512
    {
        return if first <= last {
            (first..=last)
                .map(|number| around(number.to_string()))
                .collect()
        } else {
            (last..=first)
                .rev()
                .map(|number| around(number.to_string()))
                .collect()
        };
    }
    if inside.contains(',') && inside.len() < 4096 && text.len() < 8192 {
        return inside
            .split(',')
            .take(64)
            .map(|item| around(item.into()))
            .collect();
    }
    whole
}
