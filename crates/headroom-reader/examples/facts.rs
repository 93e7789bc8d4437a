//! Prints what is read from files or words: `facts import FILE… --facts`, as the command line does, without the engine.

use headroom_base::document::json;
use headroom_reader::{reading, report, sentence};
use headroom_scripts::{Beside, File};

struct Folder(std::path::PathBuf);

impl Beside for Folder {
    fn text(&self, path: &str) -> Option<String> {
        let last = std::path::Path::new(path).file_name()?;
        if let Ok(text) = std::fs::read_to_string(self.0.join(last)) {
            return Some(text);
        }
        // A repository's files in one folder, with `__` for `/`.
        let wanted = format!("__{}", path.trim_start_matches("./").replace('/', "__"));
        let entries = std::fs::read_dir(&self.0).ok()?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let found = paths.find(|path| path.to_string_lossy().ends_with(&wanted))?;
        std::fs::read_to_string(found).ok()
    }
}

#[expect(clippy::print_stdout, reason = "it is for looking")]
fn main() {
    let arguments = std::env::args().skip(1);
    let words: Vec<String> = arguments
        .filter(|word| !matches!(word.as_str(), "import" | "--facts"))
        .collect();
    let mut files = Vec::new();
    for name in &words {
        if let Ok(text) = std::fs::read_to_string(name) {
            files.push(File {
                name: name.clone(),
                text,
            });
        }
    }
    let folder = words.first().map(std::path::PathBuf::from);
    let folder = folder.and_then(|path| Some(path.parent()?.to_path_buf()));
    let facts = if files.is_empty() {
        sentence::read(&words.join(" "))
    } else {
        reading::files(&files, &Folder(folder.unwrap_or_default()))
    };
    println!("{}", json::write(&report::json(&facts)));
}
