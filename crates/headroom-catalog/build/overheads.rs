//! `catalog/overheads.yaml` as constants.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::sourced::{Confidence, Sources};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    sources: BTreeMap<String, String>,
    cuda_context: Vec<Entry>,
    libraries: Vec<Entry>,
    cublas_workspace: Vec<Entry>,
    nccl_world: Vec<Entry>,
    nccl_group: Vec<Entry>,
    desktop_linux: Vec<Entry>,
    desktop_windows: Vec<Entry>,
    shared_system: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    capability: Option<(String, String)>,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    torch: Versions,
    mib: (f64, f64, f64, Confidence, String),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    #[serde(default)]
    first: Option<String>,
    #[serde(default)]
    last: Option<String>,
}

pub fn table(file: &File) -> Result<String, String> {
    let mut sources = Sources::new(&file.sources);
    let mut rows = String::new();
    for (name, entries) in [
        ("CUDA_CONTEXT", &file.cuda_context),
        ("LIBRARIES", &file.libraries),
        ("CUBLAS_WORKSPACE", &file.cublas_workspace),
        ("NCCL_WORLD", &file.nccl_world),
        ("NCCL_GROUP", &file.nccl_group),
        ("DESKTOP_LINUX", &file.desktop_linux),
        ("DESKTOP_WINDOWS", &file.desktop_windows),
        ("SHARED_SYSTEM", &file.shared_system),
    ] {
        let _ = writeln!(rows, "pub static {name}: &[OverheadRow] = &[");
        for entry in entries {
            let (low, expected, high, confidence, keys) = &entry.mib;
            let kib = |mib: f64| (mib * 1024.0) as u64;
            let capability = match &entry.capability {
                Some((first, last)) => format!("Some(({:?}, {:?}))", pair(first)?, pair(last)?),
                None => "None".into(),
            };
            let first = entry.torch.first.as_deref().unwrap_or("0.0");
            let last = entry.torch.last.as_deref().unwrap_or("255.255");
            let _ = writeln!(
                rows,
                "    OverheadRow {{ capability: {capability}, architecture: {:?}, torch: ({:?}, {:?}), overhead: Overhead {{ low: Bytes::kib({}), \
                 expected: Bytes::kib({}), high: Bytes::kib({}), confidence: Confidence::{confidence:?}, set: {} }} }},",
                entry.architecture,
                pair(first)?,
                pair(last)?,
                kib(*low),
                kib(*expected),
                kib(*high),
                sources.set(keys, name)?,
            );
        }
        rows.push_str("];\n");
    }
    Ok(sources.table() + &rows)
}

/// A version as major and minor.
pub fn pair(version: &str) -> Result<(u8, u8), String> {
    version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| format!("version {version}: expected like 8.0"))
}
