//! What a person brings on the command line: files, folders, or words.

use std::path::{Path, PathBuf};

use super::answer::Refusal;
use super::what;
use headroom_reader::{facts::Facts, reading, sentence};
use headroom_scripts::{Beside, File};

/// Files of a folder that are looked at.
const MOST_FILES: usize = 64;

/// What files say together, or else what the words say.
pub(super) fn facts(words: &[String]) -> Result<Facts, Refusal> {
    let paths: Vec<&String> = words
        .iter()
        .filter(|word| word.as_str() == "-" || Path::new(word).exists())
        .collect();
    if paths.is_empty() {
        return Ok(sentence::read(&words.join(" ")));
    }
    let mut files = Vec::new();
    for path in &paths {
        for name in names(path) {
            let text = what::text(&name)?;
            files.push(File { name, text });
        }
    }
    let folder = paths.first().map(|path| Path::new(path.as_str()));
    let folder = folder.and_then(Path::parent).unwrap_or(Path::new(""));
    let beside = Folder(folder.to_path_buf());
    Ok(reading::files(&files, &beside))
}

/// The file, or those of a folder that may say something about training.
fn names(path: &str) -> Vec<String> {
    const KINDS: &[&str] = &["sh", "py", "yaml", "yml", "json", "toml", "ipynb"];
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.into()];
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wanted = paths.filter(|path| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        path.is_file() && kind.is_some_and(|kind| KINDS.contains(&kind))
    });
    let mut names: Vec<String> = wanted
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.truncate(MOST_FILES);
    names
}

/// The folder of the first file: what it names is looked for there, and by the last part of its path.
struct Folder(PathBuf);

impl Beside for Folder {
    fn text(&self, path: &str) -> Option<String> {
        let relative = Path::new(path);
        let last = relative.file_name()?;
        // A script is started from its repository's root, which is a few folders above it.
        let roots = self.0.ancestors().take(4);
        let near = roots.map(|root| root.join(relative));
        let mut all = near.chain([self.0.join(last)]);
        let found = all.find(|path| path.is_file())?;
        what::text(found.to_str()?).ok()
    }
}
