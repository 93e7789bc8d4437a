//! `catalog/stacks.yaml` and `catalog/methods.yaml` as constants.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::overheads::pair;
use crate::sourced::{Confidence, Sources, in_order};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFile {
    sources: BTreeMap<String, String>,
    stacks: Vec<Stack>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stack {
    id: String,
    name: String,
    range: (String, String),
    /// Stacks below it, whose defaults hold where it has none of its own.
    #[serde(default)]
    on: Vec<String>,
    facts: Vec<Fact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fact {
    key: String,
    value: String,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    below: Option<String>,
    confidence: Confidence,
    sources: String,
    #[serde(default)]
    note: String,
}

pub fn stacks(file: &StackFile) -> Result<String, String> {
    in_order(
        "stacks.yaml",
        file.stacks.iter().map(|stack| stack.id.as_str()),
    )?;
    let mut sources = Sources::new(&file.sources);
    let mut rows = String::new();
    for stack in &file.stacks {
        let (first, last) = &stack.range;
        let _ = writeln!(
            rows,
            "    Stack {{ id: {:?}, name: {:?}, first: {:?}, last: {:?}, on: &{:?}, facts: &[",
            stack.id,
            stack.name,
            pair(first)?,
            pair(last)?,
            stack.on
        );
        for fact in &stack.facts {
            let what = format!("{} {}", stack.id, fact.key);
            let _ = writeln!(
                rows,
                "        Fact {{ key: {:?}, value: {:?}, from: {:?}, below: {:?}, confidence: Confidence::{:?}, set: {}, note: {:?} }},",
                fact.key,
                fact.value,
                pair(fact.from.as_deref().unwrap_or("0.0"))?,
                pair(fact.below.as_deref().unwrap_or("255.255"))?,
                fact.confidence,
                sources.set(&fact.sources, &what)?,
                fact.note,
            );
        }
        rows.push_str("    ] },\n");
    }
    Ok(format!(
        "{}pub static STACKS: &[Stack] = &[\n{rows}];\n",
        sources.table()
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodFile {
    sources: BTreeMap<String, String>,
    methods: Vec<Method>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Method {
    kind: Kind,
    id: String,
    name: String,
    #[serde(default)]
    needs: Needs,
    #[serde(default)]
    states: u8,
    #[serde(default)]
    state_bytes: f32,
    #[serde(default)]
    temporaries: u8,
    #[serde(default)]
    over: Over,
    confidence: Confidence,
    sources: String,
    #[serde(default)]
    note: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Adapter,
    Attention,
    Loss,
    Optimizer,
    Precision,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Over {
    #[default]
    Model,
    Tensor,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Needs {
    #[serde(default)]
    capability: Option<String>,
    #[serde(default)]
    torch: Option<String>,
}

pub fn methods(file: &MethodFile) -> Result<String, String> {
    let mut sources = Sources::new(&file.sources);
    let mut rows = String::new();
    for method in &file.methods {
        let least = |version: &Option<String>| pair(version.as_deref().unwrap_or("0.0"));
        let _ = writeln!(
            rows,
            "    Method {{ kind: MethodKind::{:?}, id: {:?}, name: {:?}, capability: {:?}, torch: {:?}, states: {}, \
             state_bytes: {:?}, temporaries: {}, over: Over::{:?}, confidence: Confidence::{:?}, set: {}, note: {:?} }},",
            method.kind,
            method.id,
            method.name,
            least(&method.needs.capability)?,
            least(&method.needs.torch)?,
            method.states,
            method.state_bytes,
            method.temporaries,
            method.over,
            method.confidence,
            sources.set(&method.sources, &method.id)?,
            method.note,
        );
    }
    Ok(format!(
        "{}pub static METHODS: &[Method] = &[\n{rows}];\n",
        sources.table()
    ))
}
