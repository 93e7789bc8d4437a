//! Commands that list: `presets`, `catalog`, `schema`.

use super::args::Args;
use super::{Answer, Refusal};
use crate::catalog;
use crate::document::Document;
use crate::export::json;
use crate::scenario::{presets as named, schema as described};

#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn presets(_: &Args) -> Result<Answer, Refusal> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for preset in named::all() {
        text.push_str(&format!("{:<20} {}\n", preset.id, preset.title));
        rows.push(
            Document::new()
                .with("id", preset.id)
                .with("title", preset.title)
                .with("about", preset.about),
        );
    }
    Ok(Answer::new(
        text,
        &Document::new().with("presets", Document::List(rows)),
    ))
}

#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn catalog(_: &Args) -> Result<Answer, Refusal> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for gpu in catalog::gpus() {
        let usable = gpu.usable_bytes(catalog::Os::Linux);
        let shown = usable.map_or("?".into(), |it| it.to_string());
        text.push_str(&format!("{:<28} {shown:>10}  {}\n", gpu.id, gpu.name));
        rows.push(
            Document::new()
                .with("id", gpu.id)
                .with("name", gpu.name)
                .with("usable", usable),
        );
    }
    Ok(Answer::new(
        text,
        &Document::new().with("gpus", Document::List(rows)),
    ))
}

#[expect(clippy::unnecessary_wraps, reason = "commands share one signature")]
pub(super) fn schema(_: &Args) -> Result<Answer, Refusal> {
    let schema = described::schema();
    Ok(Answer::new(json::write(&schema), &schema))
}
