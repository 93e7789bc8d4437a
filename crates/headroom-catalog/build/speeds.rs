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
    products_low: Vec<Entry>,
    attention_forward: Vec<Entry>,
    attention_backward: Vec<Entry>,
    convolutions: Vec<Entry>,
    convolutions_fp32: Vec<Entry>,
    channels_first: Vec<Entry>,
    depthwise: Vec<Entry>,
    bandwidth: Vec<Entry>,
    launch_us: Vec<Entry>,
    zero_hooks_us: Vec<Entry>,
    host_gbs: Vec<Entry>,
    links: Vec<Entry>,
    start_us: Vec<Entry>,
    start_each_us: Vec<Entry>,
    network_linked_gbs: Vec<Entry>,
    network_gbs: Vec<Entry>,
    between_machines: Between,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Between {
    measured_gbs: f64,
    /// Sizes in MiB, and the share of the rate.
    reached: Vec<(f64, f64)>,
    sources: String,
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
        ("PRODUCTS_LOW", &file.products_low),
        ("ATTENTION_FORWARD", &file.attention_forward),
        ("ATTENTION_BACKWARD", &file.attention_backward),
        ("CONVOLUTIONS", &file.convolutions),
        ("CONVOLUTIONS_FP32", &file.convolutions_fp32),
        ("CHANNELS_FIRST", &file.channels_first),
        ("DEPTHWISE", &file.depthwise),
        ("BANDWIDTH", &file.bandwidth),
        ("LAUNCH_US", &file.launch_us),
        ("ZERO_HOOKS_US", &file.zero_hooks_us),
        ("HOST_GBS", &file.host_gbs),
        ("LINKS", &file.links),
        ("START_US", &file.start_us),
        ("START_EACH_US", &file.start_each_us),
        ("NETWORK_LINKED_GBS", &file.network_linked_gbs),
        ("NETWORK_GBS", &file.network_gbs),
    ] {
        let _ = writeln!(rows, "pub static {name}: &[RateRow] = &[");
        for entry in entries {
            let (low, expected, high, confidence, keys) = &entry.rate;
            let _ = writeln!(
                rows,
                "    RateRow {{ architecture: {:?}, gpu: {:?}, rate: Rate {{ low: {low:?}, expected: {expected:?}, high: {high:?}, \
                 confidence: Confidence::{confidence:?}, set: {} }} }},",
                entry.architecture,
                entry.gpu,
                sources.set(keys, name)?,
            );
        }
        rows.push_str("];\n");
    }
    let Between {
        measured_gbs,
        reached,
        sources: keys,
    } = &file.between_machines;
    let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
    if !reached.windows(2).all(rises) {
        return Err("between_machines.reached: sizes and shares must rise".into());
    }
    sources.set(keys, "between_machines")?;
    let _ = writeln!(
        rows,
        "pub static BETWEEN_GBS: f64 = {measured_gbs:?};\npub static BETWEEN_MACHINES: &[(f64, f64)] = &{reached:?};"
    );
    Ok(sources.table() + &rows)
}
