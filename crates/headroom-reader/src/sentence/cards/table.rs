//! The catalogue's cards by the words that people name them by.

use std::sync::OnceLock;

use headroom_catalog::gpus;

/// A catalogue's card by the words that people name it by.
pub(super) struct Known {
    pub id: &'static str,
    /// `a`, `100`; `4070`, `ti`, `super`.
    pub core: Vec<String>,
    /// `sxm`, `pcie`, `laptop`: said beside the core or left out.
    pub variant: &'static str,
    pub gb: u64,
}

pub(super) const VARIANTS: &[(&str, &[&str])] = &[
    ("sxm", &["sxm", "sxm2", "sxm4", "sxm5"]),
    ("pcie", &["pcie"]),
    ("nvl", &["nvl"]),
    ("laptop", &["laptop"]),
    ("maxq", &["maxq"]),
    ("server", &["server"]),
    ("hbm2e", &["hbm2e"]),
];

/// Words before a card's number, which say nothing more.
pub(super) const MAKERS: &[&str] = &[
    "nvidia", "geforce", "rtx", "gtx", "tesla", "amd", "radeon", "rx", "instinct", "intel",
    "google",
];

/// Names that leave several cards open, with the usual one first; and names that ids do not have.
pub(super) const USUAL: &[(&[&str], &[&str])] = &[
    (
        &["rtx", "6000"],
        &[
            "rtx-6000-ada-48gb",
            "quadro-rtx-6000-24gb",
            "rtx-pro-6000-blackwell-96gb",
        ],
    ),
    (
        &["rtx", "5000"],
        &[
            "rtx-5000-ada-32gb",
            "quadro-rtx-5000-16gb",
            "rtx-pro-5000-blackwell-48gb",
        ],
    ),
    (
        &["rtx", "4000"],
        &[
            "rtx-4000-ada-20gb",
            "quadro-rtx-4000-8gb",
            "rtx-pro-4000-blackwell-24gb",
        ],
    ),
    (&["rtx", "8000"], &["quadro-rtx-8000-48gb"]),
    (&["quadro", "rtx", "4000"], &["quadro-rtx-4000-8gb"]),
    (&["quadro", "rtx", "5000"], &["quadro-rtx-5000-16gb"]),
    (&["quadro", "rtx", "6000"], &["quadro-rtx-6000-24gb"]),
    (&["quadro", "rtx", "8000"], &["quadro-rtx-8000-48gb"]),
    (&["pro", "w", "7900"], &["radeon-pro-w7900-48gb"]),
    (&["6000", "pro"], &["rtx-pro-6000-blackwell-96gb"]),
    (&["6000", "blackwell"], &["rtx-pro-6000-blackwell-96gb"]),
    (&["a", "6000", "ada"], &["rtx-6000-ada-48gb"]),
    (&["mi", "300"], &["mi300x-192gb"]),
    (&["mi", "250"], &["mi250-64gb-gcd"]),
    (&["mi", "325"], &["mi325x-256gb"]),
    (&["mi", "355"], &["mi355x-288gb"]),
    (&["a", "770"], &["arc-a770-16gb"]),
    (&["b", "580"], &["arc-b580-12gb"]),
    (&["gv", "100"], &["quadro-gv100-32gb"]),
    (&["gaudi", "2"], &["gaudi2-96gb"]),
    (&["gaudi", "3"], &["gaudi3-128gb"]),
    (&["v", "5", "e"], &["tpu-v5e"]),
    (&["v", "5", "p"], &["tpu-v5p"]),
    (&["v", "6", "e"], &["tpu-v6e"]),
    (&["trillium"], &["tpu-v6e"]),
    (&["m", "3", "max"], &["apple-m3-max"]),
    (&["m", "3", "ultra"], &["apple-m3-ultra"]),
    (&["m", "1", "max"], &["apple-m1-max"]),
    (&["m", "1", "ultra"], &["apple-m1-ultra"]),
    (&["m", "2", "max"], &["apple-m2-max"]),
    (&["m", "2", "ultra"], &["apple-m2-ultra"]),
    (&["m", "4", "max"], &["apple-m4-max"]),
    (&["m", "4", "pro"], &["apple-m4-pro"]),
];

/// The card that is meant where memory and socket are left out.
pub(super) const FIRST: &[&str] = &[
    "a100-sxm4-80gb",
    "a100-pcie-80gb",
    "h100-sxm5-80gb",
    "h200-sxm-141gb",
    "p100-pcie-16gb",
];

/// Machines of clouds by the beginning of their names: the card and, if every size has as many, the number.
pub(super) const MACHINES: &[(&str, &str, u64)] = &[
    ("p4de", "a100-sxm4-80gb", 8),
    ("p4d", "a100-sxm4-40gb", 8),
    ("p5en", "h200-sxm-141gb", 8),
    ("p5e", "h200-sxm-141gb", 8),
    ("p5", "h100-sxm5-80gb", 8),
    ("p3dn", "v100-sxm2-32gb", 8),
    ("p3", "v100-sxm2-16gb", 0),
    ("g4dn", "t4-16gb", 0),
    ("g5", "a10g-24gb", 0),
    ("g6e", "l40s-48gb", 0),
    ("g6", "l4-24gb", 0),
];

/// Cards that people have and the catalogue has not.
pub(super) const UNKNOWN: &[&[&str]] = &[
    &["jetson"],
    &["orin"],
    &["dgx", "spark"],
    &["gb", "10"],
    &["k", "80"],
    &["m", "40"],
    &["m", "60"],
    &["strix", "halo"],
    &["cmp", "170", "hx"],
    &["rtx", "2050"],
    &["gtx", "970"],
    &["gtx", "980"],
    &["3050", "laptop"],
    &["mx", "150"],
];

pub(super) fn known() -> &'static [Known] {
    static KNOWN: OnceLock<Vec<Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        gpus()
            .iter()
            .map(|gpu| of_id(gpu.id, u64::from(gpu.memory.marketing_gb)))
            .collect()
    })
}

fn of_id(id: &'static str, gb: u64) -> Known {
    let mut core = Vec::new();
    let mut variant = "";
    for part in id.split('-') {
        let class = VARIANTS.iter().find(|(_, words)| words.contains(&part));
        let memory = part
            .strip_suffix("gb")
            .is_some_and(|number| number.parse::<u64>().is_ok());
        if let Some((class, _)) = class {
            variant = class;
        } else if !memory
            && !matches!(
                part,
                "rtx" | "gtx" | "rx" | "radeon" | "blackwell" | "tile" | "gcd"
            )
        {
            core.extend(pieces(part));
        }
    }
    match id {
        "titan-rtx-24gb" => core.push("rtx".into()),
        "radeon-pro-w7900-48gb" => core.retain(|word| word != "pro"),
        _ => {}
    }
    Known {
        id,
        core,
        variant,
        gb,
    }
}

/// Runs of letters and of digits.
fn pieces(word: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for c in word.chars() {
        let digit = c.is_ascii_digit();
        match all.last_mut() {
            Some(last) if last.starts_with(|c: char| c.is_ascii_digit()) == digit => last.push(c),
            _ => all.push(c.into()),
        }
    }
    all
}
