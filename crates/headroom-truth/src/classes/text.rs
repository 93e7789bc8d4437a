//! Causal language models on next tokens.

use serde::Deserialize;

use super::Record;
use headroom_catalog::ModelEntry;
use headroom_scenario::Scenario;

#[derive(Deserialize)]
struct Sizes {
    batch: u64,
    tokens: u64,
}

pub(super) fn set(
    record: &Record,
    entry: &ModelEntry,
    scenario: &mut Scenario,
) -> Result<(), String> {
    if record.hf_part.is_some() && entry.size("v_hidden").is_some() {
        return Err(format!("{} alone, without its towers", entry.id));
    }
    let Sizes { batch, tokens } = record.sizes()?;
    scenario.data.micro_batch = batch;
    scenario.data.sequence = tokens;
    Ok(())
}
