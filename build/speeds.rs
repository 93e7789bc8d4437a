//! `catalog/speeds.yaml` as constants.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::sourced::{Confidence, Sources};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    sources: BTreeMap<String, String>,
    products: Vec<Entry>,
    attention_forward: Vec<Entry>,
    attention_backward: Vec<Entry>,
    convolutions: Vec<Entry>,
    convolutions_fp32: Vec<Entry>,
    channels_first: Vec<Entry>,
    depthwise: Vec<Entry>,
    bandwidth: Vec<Entry>,
    launch_us: Vec<Entry>,
    host_gbs: Vec<Entry>,
    links: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    gpu: String,
    rate: (f64, f64, f64, Confidence, String),
}

pub fn table(file: &File) -> Result<String, String> {
    let mut sources = Sources::new(&file.sources);
    let mut rows = String::new();
    for (name, entries) in [
        ("PRODUCTS", &file.products),
        ("ATTENTION_FORWARD", &file.attention_forward),
        ("ATTENTION_BACKWARD", &file.attention_backward),
        ("CONVOLUTIONS", &file.convolutions),
        ("CONVOLUTIONS_FP32", &file.convolutions_fp32),
        ("CHANNELS_FIRST", &file.channels_first),
        ("DEPTHWISE", &file.depthwise),
        ("BANDWIDTH", &file.bandwidth),
        ("LAUNCH_US", &file.launch_us),
        ("HOST_GBS", &file.host_gbs),
        ("LINKS", &file.links),
    ] {
        let _ = writeln!(rows, "pub static {name}: &[Row] = &[");
        for entry in entries {
            let (low, expected, high, confidence, keys) = &entry.rate;
            let _ = writeln!(
                rows,
                "    Row {{ architecture: {:?}, gpu: {:?}, rate: Rate {{ low: {low:?}, expected: {expected:?}, high: {high:?}, \
                 confidence: Confidence::{confidence:?}, set: {} }} }},",
                entry.architecture,
                entry.gpu,
                sources.set(keys, name)?,
            );
        }
        rows.push_str("];\n");
    }
    Ok(sources.table() + &rows)
}
