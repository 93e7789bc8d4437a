//! Which file takes which name from which: read from `use` declarations and from paths in the code, tests left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use super::tokens::{Import, Tokens};

/// One name that a file takes from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    pub from: String,
    pub to: String,
    pub name: String,
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", self.from, self.to, self.name)
    }
}

/// The files of the crate by module path, and what each takes from the others.
pub struct Sources {
    modules: BTreeMap<Vec<String>, Module>,
    arrows: BTreeSet<Arrow>,
}

struct Module {
    file: String,
    /// Names that `use` declarations bring, with the whole path of each.
    imports: Vec<Import>,
    /// Paths in the code, as written.
    paths: Vec<Vec<String>>,
}

impl Sources {
    /// The Rust files below a folder.
    pub fn read(folder: &str) -> Self {
        let mut files = Vec::new();
        collect(Path::new(folder), &mut files);
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(file, text)| (&**file, &**text))
            .collect();
        Self::of(&files)
    }

    /// The same from names and contents.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let tests: BTreeSet<Vec<String>> = files
            .iter()
            .flat_map(|(file, text)| {
                let inner = Tokens::test_modules(text).into_iter();
                inner.map(|name| [module_path(file), vec![name]].concat())
            })
            .collect();
        let is_test = |file: &str| {
            let path = module_path(file);
            (0..=path.len()).any(|n| tests.contains(&path[..n]))
        };
        let files = || files.iter().filter(|(file, _)| !is_test(file));
        let known: BTreeSet<Vec<String>> = files().map(|(file, _)| module_path(file)).collect();
        let modules: BTreeMap<Vec<String>, Module> = files()
            .map(|(file, text)| {
                let path = module_path(file);
                let tokens = Tokens::of(text);
                let mut imports = tokens.imports();
                for import in &mut imports {
                    import.path = absolute(&import.path, &path, |module| known.contains(module));
                }
                let module = Module {
                    file: (*file).to_string(),
                    imports,
                    paths: tokens.paths(),
                };
                (path, module)
            })
            .collect();
        let mut sources = Self {
            modules,
            arrows: BTreeSet::new(),
        };
        sources.arrows = sources.all_arrows();
        sources
    }

    pub fn arrows(&self) -> impl Iterator<Item = &Arrow> {
        self.arrows.iter()
    }

    /// Groups of files each of which reaches all others of its group.
    ///
    /// What a folder's `mod.rs` takes from its own files counts for nothing: it is their face.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for arrow in self
            .arrows
            .iter()
            .filter(|arrow| !is_face_of(&arrow.from, &arrow.to))
        {
            next.entry(&arrow.from).or_default().insert(&arrow.to);
        }
        let reached: BTreeMap<&str, BTreeSet<&str>> = next
            .keys()
            .map(|from| (*from, reachable(from, &next)))
            .collect();
        let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
        for (from, others) in &reached {
            let back = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(from));
            let circle: Vec<String> = others
                .iter()
                .filter(back)
                .map(|file| (*file).to_string())
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }

    fn all_arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (path, module) in &self.modules {
            let written = module
                .paths
                .iter()
                .filter_map(|used| self.meaning(used, path, module));
            for target in module
                .imports
                .iter()
                .map(|import| import.path.clone())
                .chain(written)
            {
                if let Some((to, name)) = self.resolve(&target)
                    && to != module.file
                {
                    arrows.insert(Arrow {
                        from: module.file.clone(),
                        to,
                        name,
                    });
                }
            }
        }
        arrows
    }

    /// The whole path that a path in a module's code stands for.
    fn meaning(&self, used: &[String], path: &[String], module: &Module) -> Option<Vec<String>> {
        let (first, rest) = used.split_first()?;
        if let Some(import) = module.imports.iter().find(|import| import.name == *first) {
            return Some([&import.path, rest].concat());
        }
        let whole = absolute(used, path, |module| self.modules.contains_key(module));
        (whole[0] == "crate").then_some(whole)
    }

    /// The file that a path leads to, and the name that is taken there. `None` for what is outside the crate, or a
    /// module as a whole. What a folder's face re-exports counts as the face's.
    fn resolve(&self, path: &[String]) -> Option<(String, String)> {
        let known = (2..path.len())
            .rev()
            .find(|n| self.modules.contains_key(&path[..*n]))?;
        Some((
            self.modules[&path[..known]].file.clone(),
            path[known].clone(),
        ))
    }
}

fn reachable<'a>(from: &str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut todo: Vec<&str> = vec![from];
    while let Some(file) = todo.pop() {
        for to in next.get(file).into_iter().flatten() {
            if seen.insert(*to) {
                todo.push(to);
            }
        }
    }
    seen
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push((
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            ));
        }
    }
}

fn is_face_of(face: &str, file: &str) -> bool {
    face.strip_suffix("mod.rs")
        .is_some_and(|folder| file.starts_with(folder))
}

/// `src/tape/ops/mod.rs` is `crate::tape::ops`.
fn module_path(file: &str) -> Vec<String> {
    let inner = file
        .trim_start_matches("src/")
        .trim_end_matches(".rs")
        .split('/');
    let inner = inner.filter(|part| !["lib", "main", "mod"].contains(part));
    std::iter::once("crate")
        .chain(inner)
        .map(String::from)
        .collect()
}

/// A path as written in a module, from the crate's root; one that leads out of the crate stays as it is.
fn absolute(
    path: &[String],
    module: &[String],
    is_module: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let mut base = module.to_vec();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.truncate(1),
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        rest = after;
    }
    let whole = [base, rest.to_vec()].concat();
    let child = whole.get(..=module.len()).is_some_and(is_module);
    if rest.len() < path.len() || child {
        whole
    } else {
        path.to_vec()
    }
}
