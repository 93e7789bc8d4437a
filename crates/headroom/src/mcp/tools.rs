//! The tools: commands, whose arguments are described by the table of settings.

use serde_json::{Map, Value, json};

use super::super::flags;
use headroom_scenario::settings::{self, Setting, ValueType};

/// One tool.
struct Tool {
    name: &'static str,
    about: &'static str,
    /// The command that answers.
    command: &'static [&'static str],
    arguments: &'static [Argument],
}

/// One argument of a tool.
#[derive(Clone, Copy)]
enum Argument {
    /// The run: words for a command.
    What,
    /// Settings that change the run.
    Settings,
    /// A log or an error message.
    Log,
    /// A run beside the log.
    Scenario,
    /// An option of the command.
    Option {
        name: &'static str,
        about: &'static str,
        required: bool,
    },
    /// What the list holds.
    Kind,
    /// Only entries with this text.
    Containing,
}

use Argument::{Containing, Kind, Log, Scenario, Settings, What};

const TOOLS: &[Tool] = &[
    Tool {
        name: "read",
        about: "Read a training configuration, script, launch command or sentence: what it says of a run, what is assumed, what is \
                missing and what cannot be modelled. `what` is a path, several lines of a file's content, or words.",
        command: &["import", "--facts"],
        arguments: &[What],
    },
    Tool {
        name: "estimate",
        about: "Predict the GPU memory of a training run: allocated, reserved and device memory with ranges, breakdown, whether it fits, \
                and every assumption.",
        command: &["estimate"],
        arguments: &[What, Settings],
    },
    Tool {
        name: "fit",
        about: "Find the largest micro-batch that fits on the GPU.",
        command: &["fit"],
        arguments: &[What, Settings],
    },
    Tool {
        name: "plan",
        about: "Find what to change so that a run fits, as whole runs with their memory and speed.",
        command: &["plan"],
        arguments: &[What, Settings],
    },
    Tool {
        name: "layout",
        about: "Find the fastest parallelism layout on several GPUs, and the fewest GPUs that can train it.",
        command: &["layout"],
        arguments: &[What, Settings],
    },
    Tool {
        name: "doctor",
        about: "Diagnose an out-of-memory failure from its error message, log, nvidia-smi table or memory summary.",
        command: &["doctor"],
        arguments: &[Log, Scenario],
    },
    Tool {
        name: "export",
        about: "Write the configuration and launch files of a training program for a run; they are returned, not written to disk.",
        command: &["export"],
        arguments: &[
            What,
            Settings,
            Argument::Option {
                name: "target",
                about: "The program: plain, hf, trl, accelerate, deepspeed, axolotl, llama-factory, …",
                required: true,
            },
        ],
    },
    Tool {
        name: "catalogue",
        about: "List the GPUs with their usable memory, or the models with their parameters.",
        command: &["catalog"],
        arguments: &[Kind, Containing],
    },
];

/// The longest answer, in bytes: an agent pays for every word.
const LONGEST: usize = 60_000;

/// All tools as the protocol lists them.
pub(super) fn list() -> Vec<Value> {
    TOOLS
        .iter()
        .filter(|tool| is_there(tool))
        .map(described)
        .collect()
}

/// Whether the tool's command is one of the program's.
fn is_there(tool: &Tool) -> bool {
    let command = tool.command.first().copied().unwrap_or_default();
    super::super::parser::find(command).is_some()
}

fn described(tool: &Tool) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in tool.arguments {
        let (name, schema, is_required) = argument.schema();
        properties.insert(name.into(), schema);
        if is_required {
            required.push(name);
        }
    }
    json!({
        "name": tool.name,
        "description": tool.about,
        "inputSchema": { "type": "object", "properties": properties, "required": required, "additionalProperties": false },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

impl Argument {
    fn schema(self) -> (&'static str, Value, bool) {
        let text = |about: &str| json!({ "type": "string", "description": about });
        match self {
            What => (
                "what",
                text(
                    "A model's name or Hugging Face id, a preset, a path, several lines of a file's content, a link, or a sentence.",
                ),
                true,
            ),
            Settings => ("settings", settings_schema(), false),
            Log => (
                "log",
                text("The text, or the path of a file with it."),
                true,
            ),
            Scenario => (
                "scenario",
                text("The run that failed, as `what` of the other tools."),
                false,
            ),
            Argument::Option {
                name,
                about,
                required,
            } => (name, text(about), required),
            Kind => (
                "kind",
                json!({ "type": "string", "enum": ["gpus", "models", "presets"], "description": "What to list." }),
                true,
            ),
            Containing => (
                "containing",
                text("Only entries whose id or name has this text."),
                false,
            ),
        }
    }
}

/// The common settings by the names of their options; others by their paths.
fn settings_schema() -> Value {
    let mut properties = Map::new();
    for (setting, name) in flags::common() {
        properties.insert(name.into(), property(setting));
    }
    json!({
        "type": "object",
        "description": "Changes of the run. Any other field of a scenario is accepted by its path, such as \"parallel.zero_bucket\".",
        "properties": properties,
        "additionalProperties": { "type": ["string", "number", "boolean"] },
    })
}

fn property(setting: &Setting) -> Value {
    let kind = match setting.value_type {
        ValueType::Whole { low, high } => {
            json!({ "type": "integer", "minimum": low, "maximum": high })
        }
        ValueType::Number { low, high } => {
            json!({ "type": "number", "minimum": low, "maximum": high })
        }
        ValueType::Switch => json!({ "type": "boolean" }),
        ValueType::Choice(choices) => {
            let ids: Vec<&str> = choices.iter().map(|choice| choice.id).collect();
            json!({ "type": "string", "enum": ids })
        }
        _ => json!({ "type": "string" }),
    };
    let Value::Object(mut property) = kind else {
        return kind;
    };
    let unit = if setting.unit.is_empty() {
        String::new()
    } else {
        format!(" ({})", setting.unit)
    };
    property.insert(
        "description".into(),
        format!("{}{unit} {}", setting.help, setting.memory).into(),
    );
    Value::Object(property)
}

/// The answer of a tool; `None` if there is no such tool.
pub(super) fn call(params: &Value) -> Option<Value> {
    let name = params.get("name").and_then(Value::as_str)?;
    let tool = TOOLS
        .iter()
        .find(|tool| tool.name == name && is_there(tool))?;
    let nothing = Value::Object(Map::new());
    let arguments = params
        .get("arguments")
        .filter(|given| given.is_object())
        .unwrap_or(&nothing);
    let words = match words(tool, arguments) {
        Ok(words) => words,
        Err(problem) => return Some(failed(&problem)),
    };
    let outcome = super::super::run(&words);
    if outcome.code > 1 {
        return Some(failed(outcome.stderr.replace("headroom: ", "").trim_end()));
    }
    let mut found: Value = serde_json::from_str(&outcome.stdout).unwrap_or(Value::Null);
    shorten(&mut found, arguments);
    let notes: Vec<&str> = outcome.stderr.lines().collect();
    if let (Value::Object(answer), false) = (&mut found, notes.is_empty()) {
        let notes = notes
            .iter()
            .map(|note| note.trim_start_matches("headroom: "));
        answer.insert("remarks".into(), notes.collect::<Vec<_>>().into());
    }
    let text = found.to_string();
    if text.len() > LONGEST {
        let said = format!(
            "the answer is longer than {LONGEST} bytes: ask for less (`containing`, or one `target`)"
        );
        return Some(failed(&said));
    }
    let content = json!([{ "type": "text", "text": text }]);
    Some(json!({ "content": content, "structuredContent": found, "isError": false }))
}

/// The problem of a tool that there is not.
pub(super) fn unknown(params: &Value) -> String {
    let given = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    format!(
        "tool is `{}`; expected one of {}",
        super::inert(given),
        names.join(", ")
    )
}

fn failed(said: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": said }], "isError": true })
}

/// The command's arguments.
fn words(tool: &Tool, arguments: &Value) -> Result<Vec<String>, String> {
    let text = |name: &str| {
        arguments
            .get(name)
            .and_then(Value::as_str)
            .map(String::from)
    };
    let needed = |name: &str| {
        let given = text(name).filter(|given| !given.trim().is_empty() && given != "-");
        given.ok_or_else(|| format!("{name}: expected a text that is not empty and not `-`"))
    };
    let mut words: Vec<String> = tool.command.iter().map(ToString::to_string).collect();
    words.push("--json".into());
    let mut positional = None;
    for argument in tool.arguments {
        match argument {
            What => positional = Some(needed("what")?),
            Log => positional = Some(several_lines(needed("log")?)),
            Kind => match needed("kind")?.as_str() {
                "presets" => words = vec!["presets".into(), "--json".into()],
                kind => positional = Some(kind.into()),
            },
            Scenario => words.extend(text("scenario").map(|run| format!("--scenario={run}"))),
            Argument::Option { name, required, .. } => {
                let value = if *required {
                    Some(needed(name)?)
                } else {
                    text(name)
                };
                words.extend(value.map(|value| format!("--{name}={value}")));
            }
            Settings => changes(arguments.get("settings"), &mut words)?,
            Containing => {}
        }
    }
    words.push("--".into());
    words.extend(positional);
    Ok(words)
}

/// An error message of one line is a text and no path.
fn several_lines(log: String) -> String {
    if std::path::Path::new(&log).is_file() {
        log
    } else {
        log + "\n"
    }
}

fn changes(given: Option<&Value>, words: &mut Vec<String>) -> Result<(), String> {
    let Some(given) = given else {
        return Ok(());
    };
    let Value::Object(given) = given else {
        return Err("settings: expected an object of names and values".into());
    };
    for (name, value) in given {
        let value = match value {
            Value::Null => continue,
            Value::Bool(on) => if *on { "on" } else { "off" }.to_string(),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => {
                return Err(format!(
                    "settings.{}: expected a text, a number or a switch",
                    super::inert(name)
                ));
            }
        };
        let common = flags::common().find(|(_, common)| common == name);
        let path = common.map(|(setting, _)| setting.path);
        let path = path.or_else(|| settings::typed(name).map(|setting| setting.path));
        words.push(format!("--set={}={value}", path.unwrap_or(name)));
    }
    Ok(())
}

/// Leaves out what a program reads and an agent does not, and the entries of a list that were not asked for.
fn shorten(found: &mut Value, arguments: &Value) {
    let containing = arguments.get("containing").and_then(Value::as_str);
    let containing = containing.unwrap_or_default().to_lowercase();
    let Value::Object(answer) = found else {
        return;
    };
    for key in ["modules", "defaults"] {
        answer.remove(key);
    }
    for key in ["gpus", "models", "presets"] {
        if let Some(Value::Array(rows)) = answer.get_mut(key) {
            rows.retain(|row| row.to_string().to_lowercase().contains(&containing));
        }
    }
}
