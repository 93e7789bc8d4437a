//! The comment at the head of every exported file.

use super::Target;
use headroom_base::document::yaml;
use headroom_core::estimate::{Band, Estimate};
use headroom_scenario::Scenario;
use headroom_scenario::share;

/// The longest link that is written into a file: some programs choke on long comments.
const LONGEST_LINK: usize = 1000;

/// Comment lines: what this was computed for, what was predicted, and the link that opens the scenario.
pub(super) fn header(target: &Target, scenario: &Scenario, estimate: &Estimate) -> String {
    let Scenario {
        hardware, model, ..
    } = scenario;
    let fragment = share::write(scenario);
    let link = if fragment.len() < LONGEST_LINK {
        format!("Scenario: #{fragment}")
    } else {
        "Scenario: too long for a comment; see scenario.yaml".into()
    };
    let fits = match estimate.fits {
        Some(true) => "; fits",
        Some(false) => "; DOES NOT FIT",
        None => "",
    };
    let differs = match target.differs {
        "" => String::new(),
        differs => format!("\nNot as predicted: {differs}"),
    };
    let shared = scenario.replicas() != u64::from(hardware.gpus);
    let gpus = if shared {
        "copies of the model"
    } else {
        "GPUs"
    };
    let text = format!(
        "Headroom {}: {} on {} × {}\n\
         Effective batch: {} (micro-batch × accumulation × {gpus})\n\
         Predicted for each GPU: {} allocated, {} reserved, {} in nvidia-smi{fits}\n\
         Written for: {}{differs}\n{link}",
        env!("CARGO_PKG_VERSION"),
        model.id,
        hardware.gpus,
        hardware.gpu,
        scenario.batch(),
        range(estimate.allocated),
        range(estimate.reserved),
        range(estimate.device),
        target.versions,
    );
    yaml::comment(&text)
}

fn range(band: Band) -> String {
    if band.low == band.high {
        return band.expected.to_string();
    }
    format!("{} ({} to {})", band.expected, band.low, band.high)
}
