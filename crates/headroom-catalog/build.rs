//! Compiles `catalog/*.yaml` into constant tables, so that nothing is parsed when the page starts.
//! What is wrong with the data in a way the types can tell (an unknown key, source or confidence) stops the build.

#[path = "build/configurations.rs"]
mod configurations;
#[path = "build/gpus.rs"]
mod gpus;
#[path = "build/graphs.rs"]
mod graphs;
#[path = "build/models.rs"]
mod models;
#[path = "build/names.rs"]
mod names;
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

/// The data, for people to read: at the top of the repository.
const CATALOG: &str = "../../catalog";

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed={CATALOG}");
    println!("cargo:rerun-if-changed=build");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    write(&out, "gpus.rs", gpus::table(&read("gpus.yaml")?)?)?;
    write(
        &out,
        "configurations.rs",
        configurations::table(
            &read::<Vec<_>>("model-types.yaml")?,
            &read::<Vec<_>>("configurations.yaml")?,
        )?,
    )?;
    write(
        &out,
        "overheads.rs",
        overheads::table(&read("overheads.yaml")?)?,
    )?;
    write(&out, "speeds.rs", speeds::table(&read("speeds.yaml")?)?)?;
    write(&out, "stacks.rs", stacks::stacks(&read("stacks.yaml")?)?)?;
    write(&out, "methods.rs", stacks::methods(&read("methods.yaml")?)?)?;
    let sources = read("models/sources.yaml")?;
    let models = categories("models")?;
    write(
        &out,
        "names.rs",
        names::table(&read("names.yaml")?, &models::ids(&models))?,
    )?;
    let recorded = models::recorded(&models);
    write(
        &out,
        "graphs.rs",
        graphs::table(&format!("{CATALOG}/graphs"), &recorded)?,
    )?;
    write(
        &out,
        "models.rs",
        models::table(&sources, &read("architectures.yaml")?, &models)?,
    )
}

/// The files of a folder but its sources, by stem.
fn categories<T: serde::de::DeserializeOwned>(folder: &str) -> Result<Vec<(String, T)>, String> {
    let mut stems = Vec::new();
    let path = format!("{CATALOG}/{folder}");
    for entry in fs::read_dir(&path).map_err(|e| format!("{folder}: {e}"))? {
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
    let path = &format!("{CATALOG}/{path}");
    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    serde_yaml::from_str(&text).map_err(|e| format!("{path}: {e}"))
}

fn write(out: &Path, name: &str, rust: String) -> Result<(), String> {
    fs::write(out.join(name), rust).map_err(|e| format!("{name}: {e}"))
}
