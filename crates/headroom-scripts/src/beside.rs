//! `Beside`: the files that another file may name.

/// Texts that may be wanted beside the input: a folder's files, or files dropped together.
pub trait Beside {
    /// The text of a file by the path that another one names; `None` where it is not there.
    fn text(&self, path: &str) -> Option<String>;
}

/// Nothing beside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Beside for Alone {
    fn text(&self, _: &str) -> Option<String> {
        None
    }
}

/// A file of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub text: String,
}

/// Files that are read together, found by the end of their path.
impl Beside for [File] {
    fn text(&self, path: &str) -> Option<String> {
        let parts = |path: &str| -> Vec<String> {
            let parts = path.split(['/', '\\']);
            let plain = parts.filter(|part| !matches!(*part, "" | "." | ".."));
            plain.rev().map(str::to_string).collect()
        };
        let wanted = parts(path);
        let shared = |file: &&File| {
            let own = parts(&file.name);
            own.iter().zip(&wanted).take_while(|(a, b)| a == b).count()
        };
        let best = self.iter().max_by_key(shared)?;
        (shared(&best) > 0).then(|| best.text.clone())
    }
}

impl Beside for Vec<File> {
    fn text(&self, path: &str) -> Option<String> {
        self.as_slice().text(path)
    }
}
