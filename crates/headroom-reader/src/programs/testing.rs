//! How the readers' tests compare a text with what an expert reads from it.

use headroom_base::document::{Document, json};
use headroom_scripts::{Beside, File};

use crate::{reading, report};

/// Reads a text as a file of this name, and compares facts by their words; `outcome` and `asks` count as facts.
#[track_caller]
pub fn check(name: &str, text: &str, expected: &[(&str, &str)]) {
    check_beside(&[(name, text)], expected);
}

/// The same with other files beside the first.
#[track_caller]
pub fn check_beside(files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let mut all: Vec<File> = files
        .iter()
        .map(|(name, text)| File {
            name: (*name).into(),
            text: (*text).into(),
        })
        .collect();
    let beside = all.split_off(1);
    let main = all.pop().expect("a file");
    let facts = reading::file(&main, &Folder(beside));
    let read = report::json(&facts);
    for (fact, value) in expected {
        let found = read.get(fact).or_else(|| read.get("facts")?.get(fact));
        let found = found.map_or("unsaid".into(), plain);
        assert_eq!(&found, value, "{fact}\n{}", json::write(&read));
    }
}

struct Folder(Vec<File>);

impl Beside for Folder {
    fn text(&self, path: &str) -> Option<String> {
        self.0.text(path)
    }
}

fn plain(value: &Document) -> String {
    match value {
        Document::Text(text) => text.clone(),
        Document::Null => "null".into(),
        Document::List(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => json::write(other).trim().to_string(),
    }
}
