//! Models by the names that people give them: an id or address at the hub with any owner, a folder, a tag, a variant.
//!
//! A name is a network's if its words are those of one of the network's names, less the words that leave a network as it is:
//! tuning, formats, quantisation, dates. Derivatives under names of their own are rows of `catalog/names.yaml`.

mod index;
mod near;
mod storage;
mod words;

pub use near::models_near;
pub use storage::Storage;

use crate::{ModelEntry, models};
use words::{LEVELS, is_free, is_tuning, joined, kept, readings};

/// What a name means.
#[derive(Clone, Debug, Default)]
pub struct ModelName {
    /// The entry of this very network: all sizes, the vocabulary and tied embeddings included.
    pub entry: Option<&'static ModelEntry>,
    /// What the checkpoint is quantised to, by its name.
    pub storage: Option<Storage>,
    /// Why its weights are not trained, if they are in another program's format.
    pub unusable: Option<&'static str>,
    /// Entries that may be meant if there is none, the nearest first; none if nothing is near.
    pub near: Vec<&'static str>,
}

/// An entry by a name's claim to it.
#[derive(Clone, Copy, Debug)]
pub enum Meant {
    /// Its very network.
    Same(&'static ModelEntry),
    /// Another network, whose name is like the entry's.
    Near(&'static ModelEntry),
}

impl Meant {
    fn agrees(self, other: Self) -> bool {
        match (self, other) {
            (Self::Same(one), Self::Same(other)) => same_network(one, other),
            (Self::Near(_), Self::Near(_)) => true,
            _ => false,
        }
    }
}

fn same_network(one: &ModelEntry, other: &ModelEntry) -> bool {
    one.parameters == other.parameters && (one.sizes() == other.sizes() || one.graph != other.graph)
}

/// Reads a model's name.
pub fn model_name(text: &str) -> ModelName {
    let path = Path::new(text);
    let read = Read::new(&path);
    let meant = read.meant().or_else(|| {
        let folders = path.run_folders();
        folders
            .iter()
            .find_map(|folder| Read::of(folder, "").meant())
    });
    let entry = match meant {
        Some(Meant::Same(entry)) => Some(entry),
        _ => None,
    };
    let near = match meant {
        Some(Meant::Same(_)) => Vec::new(),
        Some(Meant::Near(entry)) => {
            let mut near = vec![entry.id];
            near.extend(
                near::of(&read.words)
                    .into_iter()
                    .filter(|id| *id != entry.id),
            );
            near
        }
        None => near::of(&read.words),
    };
    ModelName {
        entry,
        storage: read.storage,
        unusable: read.unusable,
        near,
    }
}

/// The entry of the network that a name means.
pub fn model_named(text: &str) -> Option<&'static ModelEntry> {
    let path = Path::new(text);
    let found = Read::new(&path).meant().or_else(|| {
        let folders = path.run_folders();
        folders
            .iter()
            .find_map(|folder| Read::of(folder, "").meant())
    });
    match found? {
        Meant::Same(entry) => Some(entry),
        Meant::Near(_) => None,
    }
}

/// The entry that people mean in a sentence by a name without its version or its part: `llama 8b`, `flux`.
pub fn model_spoken(text: &str) -> Option<&'static ModelEntry> {
    readings(text)
        .iter()
        .find_map(|words| index::spoken(&joined(words)))
}

/// The entry that a name means to the letter, or less words of tuning: nothing that merely begins so, no date or length left out. It
/// costs little, for those who try many texts.
pub fn model_written(text: &str) -> Option<Meant> {
    Read::of(text, "").whole(1)
}

/// Whether a word of a name leaves the network as it is: tuning, a format, a release.
pub fn leaves_network(word: &str) -> bool {
    is_tuning(word) || words::is_format(word)
}

/// Whether some name of a model begins with a word.
pub fn begins_a_name(word: &str) -> bool {
    index::has_beginning(word)
}

/// Where an entry stands in lists: the newest and most used first.
pub fn usage_rank(entry: &ModelEntry) -> usize {
    let begins = |family: &&str| entry.id.starts_with(*family);
    let families = table::FAMILIES.iter().enumerate();
    let own = families.filter(|(_, family)| begins(family));
    own.max_by_key(|(_, family)| family.len())
        .map_or(table::FAMILIES.len(), |(at, _)| at)
}

/// All models, the newest and most used first; those of a family by their size.
pub fn models_by_use() -> Vec<&'static ModelEntry> {
    let place = |entry: &ModelEntry| (usage_rank(entry), entry.parameters);
    headroom_base::order::sorted(models().iter(), |one, other| place(one).cmp(&place(other)))
}

/// One component of a path, read.
struct Read {
    /// In the likeliest reading.
    words: Vec<String>,
    readings: Vec<Vec<String>>,
    storage: Option<Storage>,
    unusable: Option<&'static str>,
}

impl Read {
    fn new(path: &Path) -> Self {
        let mut read = Self::of(path.name, path.owner);
        if path.gguf {
            read.unusable = storage::of(&["gguf".into()], "").unusable;
        }
        read
    }

    fn of(name: &str, owner: &str) -> Self {
        let mut stored = readings(name)
            .into_iter()
            .map(|words| storage::of(&words, owner));
        let Some(first) = stored.next() else {
            return Self {
                words: Vec::new(),
                readings: Vec::new(),
                storage: None,
                unusable: None,
            };
        };
        let mut readings = vec![first.words.clone()];
        readings.extend(stored.map(|other| other.words));
        Self {
            words: first.words,
            readings,
            storage: first.storage,
            unusable: first.unusable,
        }
    }

    fn whole(&self, levels: u8) -> Option<Meant> {
        (0..=levels).find_map(|level| {
            self.readings.iter().find_map(|words| {
                let words: Vec<&str> = kept(words, level)
                    .into_iter()
                    .map(|(_, word)| word)
                    .collect();
                index::written(&joined(&words))
            })
        })
    }

    fn meant(&self) -> Option<Meant> {
        self.whole(LEVELS)
            .or_else(|| self.readings.iter().find_map(|words| begins(words)))
    }
}

/// The network whose name a tuned model's name begins with: `Qwen3-0.6B-Reverse-Text-SFT`.
fn begins(words: &[String]) -> Option<Meant> {
    let tuned = words.iter().position(|word| is_tuning(word))?;
    let left = kept(words, LEVELS);
    (1..left.len()).rev().find_map(|length| {
        let (name, rest) = left.split_at_checked(length)?;
        let name: Vec<&str> = name.iter().map(|(_, word)| *word).collect();
        let meant = index::written(&joined(&name))?;
        // A family's name alone is no network.
        let digits = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit());
        let sized = name.len() >= 2 || name.iter().any(digits);
        let free = rest.iter().all(|(at, word)| is_free(word, *at > tuned));
        (sized && free).then_some(meant)
    })
}

/// A name, and where it stands.
struct Path<'a> {
    name: &'a str,
    owner: &'a str,
    /// The other components, the last first.
    folders: Vec<&'a str>,
    gguf: bool,
}

impl<'a> Path<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.trim().trim_matches(['"', '\'', '`']);
        let (text, at_hub) = without_host(text);
        let text = text.split(['@', '?', '#']).next().unwrap_or(text);
        let mut parts: Vec<&str> = text
            .split(['/', '\\'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect();
        if at_hub {
            parts.truncate(2);
        }
        let file = parts.last().copied().unwrap_or_default();
        let gguf = file.to_ascii_lowercase().ends_with(".gguf");
        // The hub's cache: `models--meta-llama--Llama-3.1-8B/snapshots/0e9e39…`.
        let cached = parts.iter().find_map(|part| part.strip_prefix("models--"));
        let (owner, name) = match cached.and_then(|cached| cached.split_once("--")) {
            Some(cached) => cached,
            None => {
                let owner = parts.len().checked_sub(2).and_then(|at| parts.get(at));
                (owner.copied().unwrap_or_default(), without_extension(file))
            }
        };
        parts.pop();
        parts.reverse();
        Self {
            name,
            owner,
            folders: parts,
            gguf,
        }
    }

    /// The folders that may bear the name of a run's model, the nearest first: `saves/qwen3-4b/full/sft`.
    fn run_folders(&self) -> Vec<&'a str> {
        let mut found = Vec::new();
        let mut name = self.name;
        for folder in self.folders.iter().take(6) {
            if !is_run(name) {
                break;
            }
            found.push(*folder);
            name = folder;
        }
        found
    }
}

/// Whether a component names a run or a part of one, and no model.
fn is_run(name: &str) -> bool {
    const RUN: &[&str] = &[
        "actor",
        "checkpoints",
        "consolidated",
        "converted",
        "exp",
        "experiment",
        "global",
        "iter",
        "last",
        "lit",
        "main",
        "output",
        "outputs",
        "policy",
        "pytorch",
        "run",
        "snapshots",
        "snapshot",
        "stage",
        "train",
        "v",
        "version",
    ];
    let hash = name.len() >= 20 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = readings(name).into_iter().next().unwrap_or_default();
    hash || !words.is_empty()
        && words.iter().all(|word| {
            let plain = word.trim_end_matches(|c: char| c.is_ascii_digit());
            plain.is_empty() || RUN.contains(&plain) || words::is_format(plain) || is_tuning(plain)
        })
}

/// An address without its host, and whether it is a repository's: the hub's paths go on after the name.
fn without_host(text: &str) -> (&str, bool) {
    let plain = ["https://", "http://", "hf://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .unwrap_or(text);
    let hosts = [
        "huggingface.co/",
        "www.huggingface.co/",
        "hf.co/",
        "hf-mirror.com/",
    ];
    match hosts.iter().find_map(|host| plain.strip_prefix(host)) {
        Some(rest) => (rest, true),
        None => {
            let modelscope = ["modelscope.cn/models/", "www.modelscope.cn/models/"];
            let rest = modelscope.iter().find_map(|host| plain.strip_prefix(host));
            let ollama = plain.strip_prefix("ollama.com/library/");
            (rest.or(ollama).unwrap_or(plain), rest.is_some())
        }
    }
}

/// A file's name without the ending of weights.
fn without_extension(name: &str) -> &str {
    const ENDINGS: &[&str] = &[
        ".safetensors",
        ".gguf",
        ".bin",
        ".ckpt",
        ".pt",
        ".pth",
        ".nemo",
    ];
    let lower = name.to_ascii_lowercase();
    let ending = ENDINGS.iter().find(|ending| lower.ends_with(*ending));
    let length = name.len() - ending.map_or(0, |ending| ending.len());
    name.get(..length).unwrap_or(name)
}

mod table {
    include!(concat!(env!("OUT_DIR"), "/names.rs"));
}

#[cfg(test)]
mod tests;
