use headroom_testing::{Dice, HOSTILE, cases};

use super::{Module, Value, evaluate};
use crate::{Alone, File};

mod hostile;
mod language;
mod libraries;

/// A value as Python would write it; `#3` is the fourth call's object, `?why` is unknown.
fn shown(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(shown).collect::<Vec<_>>().join(", ");
    match value {
        Value::None => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(text) => format!("'{text}'"),
        Value::List(items) => format!("[{}]", list(items)),
        Value::Dict(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", shown(key), shown(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Object(index) => format!("#{index}"),
        Value::Name(path) => path.clone(),
        Value::Unknown(reason) => format!("?{reason}"),
    }
}

/// The calls of a module, one a line: `#0.train(1, seed=2)`, with `maybe` in front of conditional ones.
fn calls(module: &Module) -> Vec<String> {
    let lines = module.calls.iter().map(|call| {
        let mut args: Vec<String> = call.args.iter().map(shown).collect();
        let named = call.kwargs.iter();
        args.extend(named.map(|(name, value)| format!("{name}={}", shown(value))));
        let on = call.on.as_ref().map_or(String::new(), shown);
        let condition = if call.conditional { "maybe " } else { "" };
        format!("{condition}{on}{}({})", call.path, args.join(", "))
    });
    lines.collect()
}

/// A module's names and their values.
fn names(module: &Module) -> Vec<String> {
    let names = module.names.iter();
    names
        .map(|(name, value)| format!("{name} = {}", shown(value)))
        .collect()
}

fn run(text: &str, arguments: &str, files: &[(&str, &str)]) -> Module {
    let files: Vec<File> = files
        .iter()
        .map(|(name, text)| File {
            name: (*name).into(),
            text: (*text).into(),
        })
        .collect();
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_string).collect();
    evaluate(text, &arguments, &files)
}
