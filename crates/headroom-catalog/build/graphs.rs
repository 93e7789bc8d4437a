//! `catalog/graphs/*.json.gz`, the recorded graphs of models, as a table of files.

use std::env;
use std::fmt::Write;
use std::path::Path;

/// `models` are the ids of the models that answer by a recorded graph.
pub fn table(folder: &str, models: &[&str]) -> Result<String, String> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(|e| format!("CARGO_MANIFEST_DIR: {e}"))?;
    let mut rust = String::from("const GRAPHS: &[(&str, &[u8])] = &[\n");
    for id in models {
        let path = format!("{root}/{folder}/{id}.json.gz");
        if !Path::new(&path).exists() {
            return Err(format!("{id}: no {folder}/{id}.json.gz"));
        }
        let _ = writeln!(rust, "    ({id:?}, include_bytes!({path:?})),");
    }
    rust.push_str("];\n");
    Ok(rust)
}
