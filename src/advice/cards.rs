//! The same run on every GPU: those that fit, the smallest first, each with its memory and where it can be rented.

use super::Panel;
use super::changes::Once;
use super::cloud::instances;
use super::sheet::{Cell, Sheet};
use crate::text;
use crate::wishes::Limits;
use crate::worker::JobKind;
use headroom_advice::{self as strategy, By, GpuRow, GpuVerdict};
use headroom_core::estimate::Unsupported;
use headroom_scenario::Scenario;

pub static GPUS: Panel = Panel {
    kind: JobKind {
        id: "gpus",
        start: |scenario, limits| Once::start(scenario, limits, gpus),
    },
    title: text::OTHER_CARDS,
    about: text::OTHER_CARDS_ABOUT,
    head: &[
        "GPU",
        "This run",
        "Largest micro-batch",
        "A step takes",
        "Needs",
        "Usable",
    ],
    open: false,
    sortable: true,
};

#[expect(clippy::unnecessary_wraps, reason = "all work has one form")]
fn gpus(scenario: &Scenario, _: Limits) -> Result<Sheet, Unsupported> {
    let mut sheet = Sheet::default();
    let rows = strategy::sort_gpus(strategy::gpus(scenario), By::Memory);
    let (able, rest): (Vec<GpuRow>, Vec<GpuRow>) =
        rows.into_iter().partition(|row| row.micro_batch.is_some());
    let (as_is, smaller): (Vec<_>, Vec<_>) = able
        .into_iter()
        .partition(|row| matches!(row.verdict, GpuVerdict::Fits | GpuVerdict::Tight));
    if as_is.is_empty() {
        sheet.say(text::NO_CARD_AS_IT_IS);
    }
    for row in as_is.iter().chain(&smaller) {
        sheet.row(Some(&there(scenario, row)), cells(row));
    }
    let named = |rows: &[&GpuRow]| {
        let names: Vec<_> = rows.iter().map(|row| row.gpu.name).collect();
        names.join(", ")
    };
    let (impossible, small): (Vec<_>, Vec<_>) = rest
        .iter()
        .partition(|row| row.verdict == GpuVerdict::Unknown);
    if !small.is_empty() {
        sheet.aside(text::too_small(small.len()), named(&small));
    }
    if !impossible.is_empty() {
        sheet.aside(text::not_there(impossible.len()), named(&impossible));
    }
    Ok(sheet)
}

fn there(scenario: &Scenario, row: &GpuRow) -> Scenario {
    let mut there = scenario.clone();
    there.hardware.gpu = row.gpu.id.into();
    there.hardware.memory_mib = 0;
    if let Some(size) = row.micro_batch.filter(|_| row.verdict == GpuVerdict::No) {
        there = strategy::with_batch(&there, size);
    }
    there
}

fn cells(row: &GpuRow) -> Vec<Cell> {
    let none = || Cell::from("–");
    let memory = row.gpu.memory.marketing_gb;
    let note = match instances(row.gpu.id) {
        "" => format!("{memory} GB"),
        instances => format!("{memory} GB · {instances}"),
    };
    let verdict = match row.verdict {
        GpuVerdict::Fits => text::FITS,
        GpuVerdict::Tight => text::TIGHT,
        _ => text::SMALLER_BATCH,
    };
    vec![
        Cell::Note(row.gpu.name.into(), note),
        verdict.into(),
        row.micro_batch
            .map_or_else(none, |size| size.to_string().into()),
        row.time.map_or_else(none, |time| {
            Cell::Shown(time.expected.get(), time.expected.to_string())
        }),
        row.device
            .map_or_else(none, |device| Cell::Size(device.expected)),
        row.usable.map_or_else(none, Cell::Size),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_named_once_and_those_that_fit_come_first() {
        let mut scenario = Scenario::default();
        let small = [("layers", 1), ("hidden", 64), ("heads", 2), ("vocab", 500)];
        scenario.model.dims = small.map(|(name, size)| (name.to_string(), size)).into();
        let sheet = gpus(&scenario, Limits::default()).unwrap();
        let named = sheet.asides.iter().flat_map(|(_, names)| names.split(", "));
        assert_eq!(
            sheet.rows.len() + named.count(),
            headroom_catalog::gpus().len()
        );
        let words: String = sheet.lines().concat();
        assert!(!words.contains("expected"), "{words}");
        let verdicts = sheet.rows.iter().map(|row| row.cells[1].clone());
        let fits: Vec<bool> = verdicts
            .map(|verdict| verdict != Cell::from(text::SMALLER_BATCH))
            .collect();
        assert!(fits.is_sorted_by(|a, b| a >= b), "{fits:?}");
    }
}
