//! What a person brings on the command line: files, folders, or words.

use std::path::{Path, PathBuf};

use super::answer::Refusal;
use super::what;
use headroom_io::import::{self, Input};
use headroom_reader::{facts::Facts, reading};
use headroom_scripts::{Alone, Beside, File};

/// Files of a folder that are looked at.
const MOST_FILES: usize = 64;

/// The facts of files or words, as an expert reads them.
pub(super) fn facts(words: &[String]) -> Result<Facts, Refusal> {
    Ok(match files(words)? {
        Some((files, beside)) => reading::files(&files, &beside),
        None => reading::words(&words.join(" "), &Alone),
    })
}

/// The draft of files or words.
pub(super) fn load(words: &[String]) -> Result<Input, Refusal> {
    Ok(match files(words)? {
        Some((files, beside)) => {
            let input = import::files(&files, &beside, None);
            if let (Some(_), [file]) = (&input.refused, &files[..])
                && is_document(Path::new(&file.name))
            {
                // Where it is broken says more than that nothing was understood.
                what::parse(&file.text)?;
            }
            input
        }
        None => import::words(&words.join(" "), &Alone),
    })
}

/// The files that words name, with their folder; `None` where they are words.
fn files(words: &[String]) -> Result<Option<(Vec<File>, Folder)>, Refusal> {
    // Several lines are a file's content.
    if let [text] = words
        && text.contains('\n')
    {
        let name = "pasted".to_string();
        let text = text.clone();
        return Ok(Some((vec![File { name, text }], Folder(PathBuf::new()))));
    }
    let is_file = |word: &&String| word.as_str() == "-" || Path::new(word).exists();
    let paths: Vec<&String> = words.iter().filter(is_file).collect();
    if paths.is_empty() {
        // A name with a file's ending is no sentence.
        return match words {
            [word] if has_kind(Path::new(word)) && !word.contains(' ') => {
                let error = std::io::Error::from(std::io::ErrorKind::NotFound);
                Err(what::missing(word, &error))
            }
            _ => Ok(None),
        };
    }
    // A file that is not there is none of the words of a sentence.
    let absent =
        |word: &&String| !is_file(word) && has_kind(Path::new(word)) && !word.contains(' ');
    if let Some(word) = words.iter().find(absent) {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(what::missing(word, &error));
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
    Ok(Some((files, Folder(folder.to_path_buf()))))
}

/// Files that may say something about training.
const KINDS: &[&str] = &["sh", "py", "yaml", "yml", "json", "toml", "ipynb"];

fn is_document(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str());
    kind.is_some_and(|kind| ["yaml", "yml", "json", "toml"].contains(&kind))
}

fn has_kind(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str());
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// The file, or those of a folder that may say something about training.
fn names(path: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return vec![path.into()];
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wanted = paths.filter(|path| path.is_file() && has_kind(path));
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
        let found = all
            .find(|path| path.is_file())
            .or_else(|| self.flattened(path))?;
        what::text(found.to_str()?).ok()
    }
}

impl Folder {
    /// A file whose name is its path with `__` for `/`, as where a repository's files were put into one folder.
    fn flattened(&self, path: &str) -> Option<PathBuf> {
        let wanted = path.trim_start_matches("./").replace('/', "__");
        let entries = std::fs::read_dir(&self.0).ok()?;
        let ends = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.ends_with(&format!("__{wanted}")))
        };
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(ends)
            .collect();
        found.sort();
        found.into_iter().next()
    }
}
