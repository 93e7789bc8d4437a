//! Causal language models on next tokens.

use serde::Deserialize;

use super::Record;
use headroom_catalog::{self as catalog, ModelEntry};
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
        let alone = catalog::model(&format!("{}-text", entry.id));
        let missing = || format!("{} alone, without its towers", entry.id);
        scenario.model.id = alone.ok_or_else(missing)?.id.into();
    }
    let Sizes { batch, tokens } = record.sizes()?;
    scenario.data.micro_batch = batch;
    scenario.data.sequence = tokens;
    Ok(())
}
