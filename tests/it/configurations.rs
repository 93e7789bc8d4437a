//! The hundred most downloaded families by their `config.json`, in sizes that the catalogue has not: each answers with the
//! parameters of transformers' class, or says why not.
//!
//! The files are of our own making: transformers 5.23's configuration classes with odd sizes, written as `save_pretrained` writes
//! them (half of them with every key), and the parameters of the class that `architectures` names, built on the meta device.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;

use headroom_base::document::{Document, json};
use headroom_core::estimate::estimate;
use headroom_io::import::config;
use headroom_scenario::settings;

/// What a row comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Parameters(u64),
    /// The answer is of a class with another head, and says so.
    OtherHead,
    Refused,
}

/// Says the answer to a configuration.
fn answer(document: &Document) -> Answer {
    let imported = config::read(document);
    if !imported.problems.is_empty() {
        return Answer::Refused;
    }
    if !imported.notes.is_empty() {
        return Answer::OtherHead;
    }
    match estimate(&imported.scenario) {
        Ok(estimate) => Answer::Parameters(estimate.parameters),
        Err(_) => Answer::Refused,
    }
}

#[track_caller]
fn check(file: &str, least_exact: usize, least_types: usize) {
    let text = headroom_testing::unpacked_text(&format!("tests/data/{file}.jsonl.gz"));
    let (mut exact, mut types, mut wrong) = (0, BTreeSet::new(), Vec::new());
    for line in text.lines() {
        let row = json::read(line).unwrap();
        let (Some(document), Some(Document::Int(parameters))) =
            (row.get("config"), row.get("parameters"))
        else {
            panic!("{line}")
        };
        let expected = match row.get("answer") {
            Some(Document::Text(word)) if word == "refused" => Answer::Refused,
            Some(Document::Text(word)) if word == "other head" => Answer::OtherHead,
            _ => Answer::Parameters(u64::try_from(*parameters).unwrap()),
        };
        let found = answer(document);
        if found != expected {
            wrong.push(format!("{line}: {found:?}"));
        } else if matches!(found, Answer::Parameters(_)) {
            exact += 1;
            types.insert(format!("{:?}", document.get("model_type")));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(
        exact >= least_exact && types.len() >= least_types,
        "{exact} exact of {} types",
        types.len()
    );
}

#[test]
fn configurations_of_any_size_have_the_parameters_of_their_class() {
    check("configurations", 333, 165);
}

/// Some of these configurations, trained by the real classes on a bookkeeping GPU (PyTorch 2.15, transformers 5.23, AdamW, three
/// steps): the most bytes allocated, and how many in a thousand the answer may be off.
#[test]
fn configurations_of_any_size_have_the_peaks_of_their_class() {
    let text = headroom_testing::unpacked_text("tests/data/configuration_peaks.jsonl.gz");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for line in text.lines() {
        let row = json::read(line).unwrap();
        let int = |key: &str| match row.get(key) {
            Some(Document::Int(value)) => u64::try_from(*value).unwrap(),
            _ => panic!("{line}"),
        };
        let (Some(document), Some(Document::Text(given))) =
            (row.get("config"), row.get("settings"))
        else {
            panic!("{line}")
        };
        let mut scenario = config::read(document).scenario;
        for (name, value) in given.split(' ').filter_map(|word| word.split_once('=')) {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let peak = estimate(&scenario).unwrap().allocated.expected.get();
        let (expected, permille) = (int("peak_allocated"), int("permille"));
        if peak.abs_diff(expected) * 1000 > expected * permille {
            wrong.push(format!("{given} {document:?}: {peak}, not {expected}"));
        }
        compared += 1;
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(compared >= 120, "{compared}");
}
