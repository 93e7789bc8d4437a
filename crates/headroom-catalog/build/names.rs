//! `catalog/names.yaml` as constants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    same: Names,
    other: Names,
    spoken: Names,
    families: Vec<String>,
}

type Names = BTreeMap<String, Vec<String>>;

/// `ids` are those of all models.
pub fn table(file: &File, ids: &BTreeSet<&str>) -> Result<String, String> {
    let mut rust = String::new();
    for (name, rows) in [
        ("SAME", &file.same),
        ("OTHER", &file.other),
        ("SPOKEN", &file.spoken),
    ] {
        let _ = writeln!(rust, "pub static {name}: &[(&str, &str)] = &[");
        for (id, names) in rows {
            if !ids.contains(id.as_str()) {
                return Err(format!("names.yaml: {id} is no model"));
            }
            // Owners are for people: the name decides. One text a model is less to download than a list.
            let plain = names
                .iter()
                .map(|name| name.rsplit('/').next().unwrap_or(name));
            let joined = plain.collect::<Vec<_>>().join("\n");
            let _ = writeln!(rust, "    ({id:?}, {joined:?}),");
        }
        rust.push_str("];\n");
    }
    let _ = writeln!(rust, "pub static FAMILIES: &[&str] = &{:?};", file.families);
    Ok(rust)
}
