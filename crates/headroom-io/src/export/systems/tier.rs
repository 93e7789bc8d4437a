//! A script for a size of card, called as the guides' own: with the folder of the data and a number of GPUs.

use super::super::common::script;
use super::super::{File, shell};
use headroom_base::document::yaml;

/// The files for so many cards, and what they need in a line.
#[derive(Debug)]
pub struct Tier {
    pub gpus: u32,
    pub folder: String,
    pub about: String,
}

/// A size of card and the name of its script.
const SCRIPTS: &[(&str, &str)] = &[
    ("80", "train_80gb.sh"),
    ("48", "train_48gb.sh"),
    ("40", "train_40gb.sh"),
    ("24", "train_24gb.sh"),
    ("16", "train_16gb.sh"),
    ("8", "train_8gb.sh"),
];

/// The script, where anything fits cards of that size.
pub fn tier_script(size: &str, tiers: &[Tier]) -> Option<File> {
    let (_, name) = SCRIPTS.iter().find(|(known, _)| *known == size)?;
    let first = tiers.first()?;
    let mut about =
        format!("For cards of {size} GB; the effective batch is the same for each number.\n");
    let mut cases = String::new();
    for tier in tiers {
        let plural = if tier.gpus == 1 { "GPU" } else { "GPUs" };
        about.push_str(&format!("{} {plural}, {}\n", tier.gpus, tier.about));
        cases.push_str(&format!(
            "  {}) exec bash {}/launch.sh ;;\n",
            tier.gpus,
            shell::quote(&tier.folder)
        ));
    }
    let counts: Vec<String> = tiers.iter().map(|tier| tier.gpus.to_string()).collect();
    // The data's folder is looked up where the script is called from.
    Some(script(
        name,
        format!(
            "#!/usr/bin/env bash\n{about}set -euo pipefail\nusage='usage: {name} DATA_ROOT [NUM_GPUS]'\n\
             DATA_ROOT=$(realpath -- \"${{1:?$usage}}\")\nexport DATA_ROOT\n\
             cd -- \"$(dirname -- \"${{BASH_SOURCE[0]}}\")\"\n\
             case \"${{2:-{default}}}\" in\n{cases}  \
             *)\n    echo \"$usage, where NUM_GPUS is one of {counts}\" >&2\n    exit 2\n    ;;\nesac\n",
            about = yaml::comment(&about),
            default = first.gpus,
            counts = counts.join(", ")
        ),
    ))
}
