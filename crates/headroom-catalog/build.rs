//! Compiles `catalog/*.yaml` into constant tables, so that nothing is parsed when the page starts.
//! What is wrong with the data in a way the types can tell (an unknown key, source or confidence) stops the build.

#[path = "build/accuracy.rs"]
mod accuracy;
#[path = "build/gpus.rs"]
mod gpus;
#[path = "build/graphs.rs"]
mod graphs;
#[path = "build/models.rs"]
mod models;
#[path = "build/overheads.rs"]
mod overheads;
#[path = "build/sourced.rs"]
mod sourced;
#[path = "build/speeds.rs"]
mod speeds;
#[path = "build/stacks.rs"]
mod stacks;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=catalog");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=docs/accuracy.md");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    let page =
        fs::read_to_string("docs/accuracy.md").map_err(|e| format!("docs/accuracy.md: {e}"))?;
    write(&out, "accuracy.rs", accuracy::table(&page)?)?;
    write(&out, "gpus.rs", gpus::table(&read("catalog/gpus.yaml")?)?)?;
    write(
        &out,
        "overheads.rs",
        overheads::table(&read("catalog/overheads.yaml")?)?,
    )?;
    write(
        &out,
        "speeds.rs",
        speeds::table(&read("catalog/speeds.yaml")?)?,
    )?;
    write(
        &out,
        "stacks.rs",
        stacks::stacks(&read("catalog/stacks.yaml")?)?,
    )?;
    write(
        &out,
        "methods.rs",
        stacks::methods(&read("catalog/methods.yaml")?)?,
    )?;
    let sources = read("catalog/models/sources.yaml")?;
    let models = categories("catalog/models")?;
    let recorded = models::recorded(&models);
    write(
        &out,
        "graphs.rs",
        graphs::table("catalog/graphs", &recorded)?,
    )?;
    write(
        &out,
        "models.rs",
        models::table(&sources, &read("catalog/architectures.yaml")?, &models)?,
    )
}

/// The files of a folder but its sources, by stem.
fn categories<T: serde::de::DeserializeOwned>(folder: &str) -> Result<Vec<(String, T)>, String> {
    let mut stems = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| format!("{folder}: {e}"))? {
        let path = entry.map_err(|e| format!("{folder}: {e}"))?.path();
        match path.file_stem().and_then(|stem| stem.to_str()) {
            Some("sources") | None => {}
            Some(stem) => stems.push(stem.to_string()),
        }
    }
    stems.sort();
    stems
        .into_iter()
        .map(|stem| Ok((stem.clone(), read(&format!("{folder}/{stem}.yaml"))?)))
        .collect()
}

fn read<T: serde::de::DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    serde_yaml::from_str(&text).map_err(|e| format!("{path}: {e}"))
}

fn write(out: &Path, name: &str, rust: String) -> Result<(), String> {
    fs::write(out.join(name), rust).map_err(|e| format!("{name}: {e}"))
}
