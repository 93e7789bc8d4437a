//! `catalog/gpus.yaml` as constants.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::sourced::{Confidence, Sourced, Sources, in_order};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    sources: BTreeMap<String, String>,
    gpus: Vec<Gpu>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpu {
    id: String,
    name: String,
    vendor: Vendor,
    class: Class,
    architecture: String,
    #[serde(default)]
    compute_capability: Option<String>,
    #[serde(default)]
    sms: Option<Sourced<f64>>,
    memory: Memory,
    bandwidth_gbs: Option<Sourced<f64>>,
    tflops: BTreeMap<Rate, Sourced<f64>>,
    #[serde(default)]
    nvlink_gbs: Option<Sourced<f64>>,
    link: String,
    #[serde(default)]
    pcie: Option<Sourced<String>>,
    #[serde(default)]
    tdp_w: Option<Sourced<f64>>,
    supports: Vec<Support>,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    #[serde(rename = "type")]
    kind: String,
    marketing_gb: u16,
    #[serde(default)]
    options_gb: Vec<u16>,
    #[serde(default)]
    nvidia_smi_mib: Option<Sourced<f64>>,
    #[serde(default)]
    torch_total_mib: Option<Sourced<f64>>,
    #[serde(default)]
    observed_mib: Option<(f64, f64)>,
    #[serde(default)]
    windows_mib: Option<Sourced<f64>>,
    #[serde(default)]
    note: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Vendor {
    Nvidia,
    Amd,
    Intel,
    Apple,
    Google,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Class {
    Datacenter,
    Workstation,
    Consumer,
    Laptop,
    Unified,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Rate {
    Fp32,
    Tf32,
    Fp16,
    Bf16,
    Fp8,
    Int8,
    Fp4,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Support {
    Bf16,
    Fp8,
    Flash2,
}

pub fn table(file: &File) -> Result<String, String> {
    in_order("gpus.yaml", file.gpus.iter().map(|gpu| gpu.id.as_str()))?;
    let mut sources = Sources::new(&file.sources);
    let metal = sources.set("metal-rule", "gpus.yaml")?;
    let mut rows: Vec<(String, Row)> = Vec::new();
    for gpu in &file.gpus {
        if gpu.memory.options_gb.is_empty() {
            let memory = driver_memory(gpu, &mut sources)?;
            rows.push((
                gpu.id.clone(),
                row(gpu, &gpu.id, &gpu.name, &memory, &mut sources)?,
            ));
            continue;
        }
        for &gb in &gpu.memory.options_gb {
            let id = format!("{}-{gb}gb", gpu.id);
            let name = format!("{} {gb} GB", gpu.name);
            let memory = unified_memory(gb, metal, &mut sources)?;
            let row = row(gpu, &id, &name, &memory, &mut sources)?;
            rows.push((id, row));
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let mut rust = sources.texts() + &sources.origins();
    let _ = writeln!(rust, "pub static GPUS: [Gpu; {}] = [", rows.len());
    for (_, row) in &rows {
        rust.push_str(&row.gpu);
    }
    let _ = writeln!(
        rust,
        "];\npub static DATA_SHEETS: [DataSheet; {}] = [",
        rows.len()
    );
    for (_, row) in &rows {
        rust.push_str(&row.data_sheet);
    }
    rust.push_str("];\n");
    Ok(rust)
}

/// The two halves of an entry.
struct Row {
    gpu: String,
    data_sheet: String,
}

/// What is known of a card's memory: what estimates need, and the rest.
struct MemoryRow {
    sizes: String,
    rest: String,
}

fn row(
    gpu: &Gpu,
    id: &str,
    name: &str,
    memory: &MemoryRow,
    sources: &mut Sources,
) -> Result<Row, String> {
    let capability = match &gpu.compute_capability {
        Some(text) => text
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .map(|(major, minor): (u8, u8)| format!("Some(({major}, {minor}))"))
            .ok_or_else(|| format!("{id}: compute_capability {text}: expected like 8.0"))?,
        None => "None".into(),
    };
    let mut rate = |rate: Rate| sources.number(gpu.tflops.get(&rate), id);
    let tflops = format!(
        "Tflops {{ fp32: {}, tf32: {}, fp16: {}, bf16: {}, fp8: {}, int8: {}, fp4: {} }}",
        rate(Rate::Fp32)?,
        rate(Rate::Tf32)?,
        rate(Rate::Fp16)?,
        rate(Rate::Bf16)?,
        rate(Rate::Fp8)?,
        rate(Rate::Int8)?,
        rate(Rate::Fp4)?,
    );
    let pcie = gpu.pcie.as_ref().map_or("", |pcie| &pcie.0);
    let notes = [&*gpu.memory.note, &*gpu.note].map(str::trim);
    let note = notes
        .into_iter()
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    let has = |support| gpu.supports.contains(&support);
    let sms = sources.number(gpu.sms.as_ref(), id)?;
    let entry = format!(
        "    Gpu {{ id: {id:?}, name: {name:?}, vendor: Vendor::{:?}, class: Class::{:?}, architecture: {:?}, \
         compute_capability: {capability}, sms: {sms}, memory: {}, bf16: {}, fp8: {}, flash2: {} }},\n",
        gpu.vendor,
        gpu.class,
        gpu.architecture,
        memory.sizes,
        has(Support::Bf16),
        has(Support::Fp8),
        has(Support::Flash2),
    );
    let data_sheet = format!(
        "    DataSheet {{ {}, bandwidth: {}, tflops: {tflops}, nvlink: {}, link: {:?}, pcie: {pcie:?}, tdp: {}, \
         note: {note:?} }},\n",
        memory.rest,
        sources.number(gpu.bandwidth_gbs.as_ref(), id)?,
        sources.number(gpu.nvlink_gbs.as_ref(), id)?,
        gpu.link,
        sources.number(gpu.tdp_w.as_ref(), id)?,
    );
    Ok(Row {
        gpu: entry,
        data_sheet,
    })
}

fn driver_memory(gpu: &Gpu, sources: &mut Sources) -> Result<MemoryRow, String> {
    let memory = &gpu.memory;
    Ok(MemoryRow {
        sizes: format!(
            "Memory {{ marketing_gb: {}, torch_total: {}, windows: {} }}",
            memory.marketing_gb,
            sources.number(memory.torch_total_mib.as_ref(), &gpu.id)?,
            sources.number(memory.windows_mib.as_ref(), &gpu.id)?,
        ),
        rest: format!(
            "memory: {:?}, nvidia_smi: {}, observed: {:?}",
            memory.kind,
            sources.number(memory.nvidia_smi_mib.as_ref(), &gpu.id)?,
            memory.observed_mib.unwrap_or_default(),
        ),
    })
}

/// Memory shared with the processor: Metal recommends a working set by a rule of the size alone.
fn unified_memory(gb: u16, source: usize, sources: &mut Sources) -> Result<MemoryRow, String> {
    let mib = f64::from(gb) * 1024.0;
    let working_set = if gb <= 36 {
        mib * 2.0 / 3.0
    } else {
        mib * 0.75
    }
    .floor();
    let packed = sources.packed(working_set, Confidence::B, source, "gpus.yaml")?;
    Ok(MemoryRow {
        sizes: format!(
            "Memory {{ marketing_gb: {gb}, torch_total: Sourced::new({packed}), windows: Sourced::UNKNOWN }}"
        ),
        rest: "memory: \"LPDDR unified\", nvidia_smi: Sourced::UNKNOWN, observed: (0.0, 0.0)"
            .into(),
    })
}
