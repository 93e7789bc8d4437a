//! The commands `doctor` and `record`.

use std::io::Read;

use super::answer::{Answer, Refusal, unreadable};
use super::args::Args;
use super::what;
use headroom_advice::doctor::{Diagnosis, Findings, PredictedUsage, diagnose};
use headroom_advice::planner::{self, Locks, Plan};
use headroom_base::document::Document;
use headroom_core::estimate::{Fit, Prediction};
use headroom_core::graph::RECORDER;
use headroom_scenario::{Problem, Scenario};

/// Ranks the causes of the failure in a text; without a file it reads standard input.
pub(super) fn doctor(args: &Args) -> Result<Answer, Refusal> {
    let name = match args.positional(0) {
        "" => "-",
        name => name,
    };
    // Several lines are the text itself.
    let text = if name.contains('\n') {
        name.to_string()
    } else {
        text(name)?
    };
    if text.trim().is_empty() {
        let nothing = "nothing to diagnose: pipe the failed run's log into it, or name the file";
        return Err(Refusal(vec![nothing.into()]));
    }
    let Some(findings) = Findings::parse(&text) else {
        let expected =
            "an out-of-memory error, nvidia-smi's table, a memory summary or a probe log";
        return Err(Problem::new("FILE", name, expected).into());
    };
    let mut of_run = Vec::new();
    let mut said = String::new();
    let expected = match args.option("scenario") {
        None => None,
        Some(scenario) => {
            let given = what::of(&[scenario.into()], args)?;
            said = given.said();
            let prediction = Prediction::new(given.scenario().clone());
            of_run = remedies(prediction.scenario());
            Some(PredictedUsage::compared(&findings, &prediction)?)
        }
    };
    let diagnosis = diagnose(&findings, expected);
    let mut json = serde_json::to_value(&diagnosis)
        .map_err(|error| Refusal(vec![format!("the diagnosis cannot be written: {error}")]))?;
    if let Some(fields) = json.as_object_mut() {
        fields.insert("of_this_run".into(), of_run.clone().into());
    }
    let text = said + &shown(&diagnosis, &of_run);
    Ok(Answer::with_json(text, format!("{json}\n")))
}

/// The planner's plans for this very run, each with what the GPU then holds; none if it fits as it is.
fn remedies(scenario: &Scenario) -> Vec<String> {
    let Ok(plans) = planner::plan(scenario, Locks::default()) else {
        return Vec::new();
    };
    if plans.now.estimate.fit() == Some(Fit::Fits) {
        return Vec::new();
    }
    let whole = |plan: &Plan| {
        let changes = plan.changes.iter().map(|change| change.text.as_str());
        let changes: Vec<&str> = changes.collect();
        format!("{}: {} on the GPU", changes.join(", "), plan.full.device())
    };
    let plans_of_it = plans.plans.iter().map(|plan| {
        let label = plan.id.label();
        format!("{label}: {}", whole(plan))
    });
    let unlocked = plans.unlock.iter().map(|row| {
        let whole = whole(&row.plan);
        format!("changing what is trained: {whole}")
    });
    plans_of_it.chain(unlocked).collect()
}

/// Prints the module that records a model.
#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn record(_: &Args) -> Result<Answer, Refusal> {
    let document = Document::new().with("headroom_record.py", RECORDER.to_string());
    Ok(Answer::new(RECORDER.into(), &document))
}

/// The content of a file, or of standard input for `-`; what is larger than any log or snapshot is refused.
pub(super) fn bytes(name: &str) -> Result<Vec<u8>, Refusal> {
    const LARGEST: u64 = 1 << 30;
    let mut bytes = Vec::new();
    let mut read = |from: &mut dyn Read| from.take(LARGEST + 1).read_to_end(&mut bytes);
    let read = match name {
        "-" => read(&mut std::io::stdin().lock()),
        _ => std::fs::File::open(name).and_then(|mut file| read(&mut file)),
    };
    read.map_err(|error| unreadable(name, &error))?;
    if bytes.len() as u64 > LARGEST {
        let expected = format!("a file of at most {} GiB", LARGEST >> 30);
        return Err(Problem::new("FILE", name, expected).into());
    }
    Ok(bytes)
}

/// The end of the text, where a log has its failure; invalid UTF-8 is replaced.
fn text(name: &str) -> Result<String, Refusal> {
    const LONGEST: usize = 16 << 20;
    let bytes = bytes(name)?;
    let start = bytes.len().saturating_sub(LONGEST);
    Ok(String::from_utf8_lossy(&bytes[start..]).into_owned())
}

fn shown(diagnosis: &Diagnosis, of_run: &[String]) -> String {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut text = format!(
        "cause: {} ({} confidence)\n",
        diagnosis.cause.id(),
        percent(diagnosis.confidence)
    );
    if diagnosis.undecided {
        text += "No cause stands out: several are about equally likely.\n";
    }
    let others: Vec<String> = diagnosis
        .ranking
        .iter()
        .skip(1)
        .filter(|other| other.confidence >= 0.05)
        .map(|other| format!("{} {}", other.cause.id(), percent(other.confidence)))
        .collect();
    if !others.is_empty() {
        text += &format!("or: {}\n", others.join(", "));
    }
    for (title, lines) in [
        ("evidence", &diagnosis.evidence[..]),
        ("what makes this run fit", of_run),
        ("what to change", &diagnosis.advice[..]),
        ("to be more certain", &diagnosis.checks[..]),
    ] {
        if !lines.is_empty() {
            text += &format!("\n{title}:\n");
        }
        for line in lines {
            text += &format!("- {line}\n");
        }
    }
    text
}
