//! Compiles `docs/accuracy.md` into a constant table of recorded runs, which the page shows beside its answer.

#[path = "build/accuracy.rs"]
mod accuracy;

use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), String> {
    const PAGE: &str = "docs/accuracy.md";
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={PAGE}");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|e| format!("OUT_DIR: {e}"))?);
    let page = fs::read_to_string(PAGE).map_err(|e| format!("{PAGE}: {e}"))?;
    let rust = accuracy::table(&page)?;
    fs::write(out.join("accuracy.rs"), rust).map_err(|e| format!("accuracy.rs: {e}"))
}
