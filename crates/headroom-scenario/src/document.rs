//! A scenario as a document (YAML or JSON) and back.

use super::network::Network;
use super::settings::{self, Setting, Value, ValueType};
use super::{Draft, Origin, Problem, Scenario, resolve::resolve, versions};
use headroom_base::document::{Document, Entry};

/// Every setting that means something in this scenario, with its value.
pub fn write(scenario: &Scenario) -> Document {
    let mut document = Document::new().with("version", scenario.version);
    for setting in settings::all() {
        let absent = setting.value(scenario) == Value::Network(None);
        if setting.applies(scenario) && !is_open_parent(setting, scenario) && !absent {
            *document.at(setting.path.split('.')) = value(setting.value(scenario));
        }
    }
    document
}

/// A switch whose children say that it is on.
fn is_open_parent(setting: &Setting, scenario: &Scenario) -> bool {
    let is_parent = settings::all()
        .iter()
        .any(|other| other.parent == Some(setting.path));
    is_parent && setting.value(scenario) == Value::Switch(true)
}

fn value(value: Value) -> Document {
    match value {
        Value::Whole(value) => value.into(),
        Value::Number(value) => value.into(),
        Value::Switch(value) => value.into(),
        Value::Text(value) => value.into(),
        version @ Value::Version(..) => version.to_string().into(),
        Value::Network(value) => value.map_or(Document::Null, |network| network.document()),
        Value::Words(value) => value.into(),
        Value::Sizes(value) => value
            .into_iter()
            .map(|(key, size)| (key, size.into()))
            .collect(),
    }
}

/// The scenario, and everything in the document that could not be used, found at once.
pub fn read(document: &Document) -> (Scenario, Vec<Problem>) {
    let (draft, mut problems) = draft(document);
    let resolved = resolve(&draft);
    problems.extend(resolved.problems);
    (resolved.scenario, problems)
}

/// What the document says, and the problems of what is no value of a setting; resolving the draft finds the others.
pub fn draft(document: &Document) -> (Draft, Vec<Problem>) {
    let Document::Map(entries) = document else {
        let expected = "fields such as model and data";
        let problem = Problem::new("scenario", shown(document), expected);
        return (Draft::of_format(Scenario::VERSION), vec![problem]);
    };
    let mut problems = Vec::new();
    let version = entries.iter().find(|entry| entry.key == "version");
    let version = version.map_or(Scenario::VERSION, |version| {
        known_version(&version.value, &mut problems)
    });
    let mut draft = Draft::of_format(version);
    for entry in entries.iter().filter(|entry| entry.key != "version") {
        collect(&entry.key, &entry.value, &mut draft, &mut problems);
    }
    (draft, problems)
}

fn known_version(value: &Document, problems: &mut Vec<Problem>) -> u32 {
    let number = match value {
        Document::Int(value) => u32::try_from(*value).ok(),
        _ => None,
    };
    let known = number.filter(|format| versions::defaults(*format).is_some());
    known.unwrap_or_else(|| {
        let expected = format!("a whole number from 1 to {}", Scenario::VERSION);
        problems.push(Problem::new("version", shown(value), expected));
        Scenario::VERSION
    })
}

/// Takes the value at a path into the draft.
fn collect(path: &str, value: &Document, draft: &mut Draft, problems: &mut Vec<Problem>) {
    let below = format!("{path}.");
    let is_group = settings::all()
        .iter()
        .any(|setting| setting.path.starts_with(&below));
    let origin = || Origin::File {
        tool: "the scenario file",
        key: path.into(),
    };
    match (settings::find(path), value) {
        (_, Document::Null) if is_group || settings::find(path).is_some() => {}
        (setting, Document::Map(entries)) if is_group => {
            if let Some(switch) = setting {
                draft.set_value(switch, Value::Switch(true), origin());
            }
            for Entry { key, value, .. } in entries {
                collect(&format!("{below}{key}"), value, draft, problems);
            }
        }
        (Some(setting), Document::Map(_)) if setting.value_type == ValueType::Network => {
            match Network::from_document(value) {
                Ok(network) => draft.set_value(setting, Value::Network(Some(network)), origin()),
                Err(problem) => problems.push(problem),
            }
        }
        (Some(setting), _) => match text(setting.value_type, value) {
            Some(text) => draft.read(setting, &text, origin()),
            None => problems.push(Problem::new(path, shown(value), setting.expected())),
        },
        (None, _) if is_group => {
            problems.push(Problem::new(path, shown(value), "a group of fields"));
        }
        (None, _) => problems.push(settings::unknown(path, &shown(value))),
    }
}

/// A value as the text that its setting reads.
fn text(kind: ValueType, value: &Document) -> Option<String> {
    // A comma inside an item would make two of it.
    let item = |document: &Document| scalar(document).filter(|text| !text.contains(','));
    let pair = |entry: &Entry| item(&entry.value).map(|value| format!("{}={value}", entry.key));
    match (kind, value) {
        (ValueType::Words, Document::List(items)) => {
            let items: Option<Vec<String>> = items.iter().map(item).collect();
            items.map(|items| items.join(","))
        }
        (ValueType::Sizes, Document::Map(entries)) => {
            let pairs: Option<Vec<String>> = entries.iter().map(pair).collect();
            pairs.map(|pairs| pairs.join(","))
        }
        // YAML reads 2.10 as the number 2.1: which version was meant cannot be known.
        (ValueType::Version { .. }, Document::Number(_)) => None,
        (_, other) => scalar(other),
    }
}

fn scalar(value: &Document) -> Option<String> {
    match value {
        Document::Bool(value) => Some(if *value { "on" } else { "off" }.into()),
        Document::Int(value) => Some(value.to_string()),
        Document::Number(value) => Some(value.to_string()),
        Document::Text(value) => Some(value.clone()),
        Document::Null | Document::List(_) | Document::Map(_) => None,
    }
}

fn shown(value: &Document) -> String {
    match value {
        Document::List(_) => "a list".into(),
        Document::Map(_) => "a group of fields".into(),
        other => scalar(other).unwrap_or_else(|| "nothing".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use headroom_base::document::{json, yaml};
    use headroom_testing::Dice;

    #[test]
    fn scenarios_survive_json_and_yaml() {
        let mut dice = Dice::new(5);
        for _ in 0..1000 {
            let scenario = sample::scenario(&mut dice);
            let text = json::write(&write(&scenario));
            let back = read(&json::read(&text).unwrap());
            assert_eq!(back, (scenario.clone(), vec![]), "{text}");
            let text = yaml::write(&write(&scenario));
            let back = read(&yaml::read(&text).unwrap());
            assert_eq!(back, (scenario, vec![]), "{text}");
        }
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let text = r#"{
            "version": 1,
            "hardwear": {"gpu": "h100"},
            "data": {"micro_batch": 0, "sequence": "long", "microbatch": 4},
            "training": {"attention": "magic", "lora": {"rank": 8, "rnk": 9}, "freeze": ["a,b"], "clip": [1]},
            "stack": {"torch": 2.10},
            "model": "gpt2"
        }"#;
        let (scenario, problems) = read(&json::read(text).unwrap());
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = [
            "hardwear is `a group of fields`; expected a known field; did you mean hardware?",
            "data.microbatch is `4`; expected a known field; did you mean data.micro_batch?",
            "training.lora.rnk is `9`; expected a known field; did you mean training.lora.rank?",
            "training.freeze is `a list`; expected names separated by commas",
            "training.clip is `a list`; expected on or off",
            "stack.torch is `2.1`; expected a version from \"1.10\" to \"2.15\" in quotes",
            "model is `gpt2`; expected a group of fields",
            "data.micro_batch is `0`; expected a whole number from 1 to 1000000",
            "data.sequence is `long`; expected a whole number from 1 to 100000000",
            "training.attention is `magic`; expected one of sdpa, eager, flash_attention_2",
        ];
        assert_eq!(problems, expected);
        assert_eq!(scenario.training.lora.map(|lora| lora.rank), Some(8));
    }

    #[test]
    fn a_short_file_is_enough_and_adapters_open_by_name() {
        #[track_caller]
        fn check(text: &str, changes: &[(&str, &str)]) {
            let (scenario, problems) = read(&json::read(text).unwrap());
            let mut expected = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut expected, name, value).unwrap();
            }
            assert_eq!((scenario, problems), (expected, vec![]));
        }
        check("{}", &[]);
        check(r#"{"stack": {"torch": "2.10"}}"#, &[("torch", "2.10")]);
        check(r#"{"data": {"micro_batch": 4}}"#, &[("mb", "4")]);
        check(r#"{"training": {"lora": {}}}"#, &[("lora", "on")]);
        check(r#"{"training": {"lora": true}}"#, &[("lora", "on")]);
        check(r#"{"training": {"lora": null}}"#, &[]);
        check(
            r#"{"training": {"lora": {"rank": 2}}}"#,
            &[("lora_rank", "2")],
        );
        check(
            r#"{"model": {"dims": {"layers": 2}}}"#,
            &[("dims", "layers=2")],
        );
    }
}
