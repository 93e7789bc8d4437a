//! Commands that list: `presets`, `catalog`, `schema`.

use super::answer::{Answer, Refusal};
use super::args::Args;
use headroom_base::document::Document;
use headroom_base::document::json;
use headroom_catalog as catalog;
use headroom_scenario::Problem;
use headroom_scenario::{presets as named, schema as described};

#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn presets(_: &Args) -> Result<Answer, Refusal> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for preset in named::all() {
        text.push_str(&format!("{:<20} {}\n", preset.id, preset.title));
        rows.push(
            Document::new()
                .with("id", preset.id)
                .with("title", preset.title)
                .with("about", preset.about),
        );
    }
    Ok(Answer::new(
        text,
        &Document::new().with("presets", Document::List(rows)),
    ))
}

pub(super) fn catalog(args: &Args) -> Result<Answer, Refusal> {
    match args.positional(0) {
        "" => {
            let (gpus, models) = (gpus(), models());
            let both = [
                ("gpus", Document::List(gpus.1)),
                ("models", Document::List(models.1)),
            ];
            Ok(Answer::new(gpus.0 + &models.0, &Document::map(both)))
        }
        "gpus" => Ok(answer("gpus", gpus())),
        "models" => Ok(answer("models", models())),
        "stacks" => Ok(answer("stacks", stacks())),
        "methods" => Ok(answer("methods", methods())),
        "check" => Ok(check()),
        other => {
            let all = ["gpus", "models", "stacks", "methods", "check"];
            Err(Problem::unknown_choice("catalog", other, &all).into())
        }
    }
}

fn answer(name: &str, (text, rows): (String, Vec<Document>)) -> Answer {
    Answer::new(text, &Document::new().with(name, Document::List(rows)))
}

fn gpus() -> (String, Vec<Document>) {
    let mut text = String::new();
    let mut rows = Vec::new();
    for gpu in catalog::gpus() {
        let usable = gpu.usable_bytes(catalog::Os::Linux);
        let shown = usable.map_or("?".into(), |bytes| bytes.to_string());
        text.push_str(&format!("{:<32} {shown:>10}  {}\n", gpu.id, gpu.name));
        rows.push(
            Document::new()
                .with("id", gpu.id)
                .with("name", gpu.name)
                .with("usable", usable),
        );
    }
    (text, rows)
}

/// Models that can be estimated.
fn models() -> (String, Vec<Document>) {
    let mut text = String::new();
    let mut rows = Vec::new();
    for model in catalog::models().iter().filter(|model| model.runs) {
        let (id, name, parameters) = (model.id, model.name, model.parameters);
        text.push_str(&format!("{id:<32} {parameters:>16}  {name}\n"));
        rows.push(
            Document::new()
                .with("id", id)
                .with("name", name)
                .with("architecture", model.arch)
                .with("parameters", parameters),
        );
    }
    (text, rows)
}

/// Defaults of software, with their versions.
fn stacks() -> (String, Vec<Document>) {
    let mut text = String::new();
    let mut rows = Vec::new();
    let shown = |(major, minor): (u8, u8)| format!("{major}.{minor}");
    for stack in catalog::stacks() {
        let (first, last) = (shown(stack.first), shown(stack.last));
        text.push_str(&format!("{} {first} to {last}\n", stack.name));
        let mut facts = Vec::new();
        for fact in stack.all_facts() {
            let since = (fact.from > stack.first).then(|| shown(fact.from));
            let until = (fact.below <= stack.last).then(|| shown(fact.below));
            let span = match (&since, &until) {
                (None, None) => String::new(),
                (Some(since), None) => format!(" since {since}"),
                (None, Some(until)) => format!(" before {until}"),
                (Some(since), Some(until)) => format!(" since {since}, before {until}"),
            };
            text.push_str(&format!("  {:<28} {}{span}\n", fact.key, fact.value));
            let sources: Vec<String> = fact.sources().map(String::from).collect();
            facts.push(
                Document::new()
                    .with("key", fact.key)
                    .with("value", fact.value)
                    .with("from", since)
                    .with("below", until)
                    .with("sources", sources)
                    .with("note", fact.note),
            );
        }
        rows.push(
            Document::new()
                .with("id", stack.id)
                .with("name", stack.name)
                .with("first", first)
                .with("last", last)
                .with("facts", Document::List(facts)),
        );
    }
    (text, rows)
}

/// Optimizers, number formats, attention, losses and adapters.
fn methods() -> (String, Vec<Document>) {
    let mut text = String::new();
    let mut rows = Vec::new();
    for method in catalog::methods() {
        let kind = format!("{:?}", method.kind).to_lowercase();
        let (id, name) = (method.id, method.name);
        text.push_str(&format!("{kind:<10} {id:<24} {name}\n"));
        let sources: Vec<String> = method.sources().map(String::from).collect();
        rows.push(
            Document::new()
                .with("kind", kind)
                .with("id", id)
                .with("name", name)
                .with("sources", sources)
                .with("note", method.note),
        );
    }
    (text, rows)
}

fn check() -> Answer {
    let report = headroom_truth::catalog::check();
    let mut text = format!(
        "{} GPUs, {} models: {} have exactly the listed parameter count, {} do not\n",
        report.gpus,
        report.models,
        report.exact.len(),
        report.mismatches.len()
    );
    let mut mismatches = Vec::new();
    for mismatch in &report.mismatches {
        let counted = match &mismatch.counted {
            Ok(counted) => format!("counted {counted}"),
            Err(problem) => problem.clone(),
        };
        text.push_str(&format!(
            "{:<32} {:<14} expected {}, {counted}\n",
            mismatch.id, mismatch.arch, mismatch.expected
        ));
        mismatches.push(
            Document::new()
                .with("id", mismatch.id)
                .with("expected", mismatch.expected)
                .with("counted", mismatch.counted.clone().ok())
                .with("problem", mismatch.counted.clone().err()),
        );
    }
    let mut without = Document::new();
    for (arch, models) in &report.without_forward {
        text.push_str(&format!(
            "not offered, no forward function: {arch} ({models})\n"
        ));
        without = without.with(*arch, *models as u64);
    }
    for entry in &report.missing_sources {
        text.push_str(&format!("no source: {entry}\n"));
    }
    let exact = report.exact.iter().map(|id| Document::from(*id)).collect();
    let missing = report.missing_sources.iter();
    let missing = missing
        .map(|entry| Document::from(entry.as_str()))
        .collect();
    let document = Document::new()
        .with("gpus", report.gpus as u64)
        .with("models", report.models as u64)
        .with("exact", Document::List(exact))
        .with("mismatches", Document::List(mismatches))
        .with("without_forward", without)
        .with("missing_sources", Document::List(missing));
    Answer {
        fits: report.is_clean(),
        ..Answer::new(text, &document)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn schema(_: &Args) -> Result<Answer, Refusal> {
    let schema = described::schema();
    Ok(Answer::new(json::write(&schema), &schema))
}
