//! Five runs to start from, each with the picture of its memory, which the worker makes.

use leptos::prelude::*;

use crate::bar::{Bar, Drawn};
use crate::browser;
use crate::session::Session;
use crate::signals::{memo, whenever};
use crate::verdict::Sentence;
use crate::worker::{Helper, JobKind, Work};
use headroom_base::units::UnitStyle;
use headroom_core::estimate::Prediction;
use headroom_scenario::Scenario;
use headroom_scenario::presets::{self, Preset};

/// One of each kind: small, adapters, four bits, everything trained, a system with a guide.
const CARDS: [&str; 5] = [
    "gpt2-small",
    "llama-8b-lora-24gb",
    "qwen-14b-qlora-24gb",
    "llama-8b-full-80gb",
    "dreams",
];

/// How a worker draws the pictures, whatever the scenario.
pub const KIND: JobKind = JobKind {
    id: "cards",
    start: |_, _| Box::new(Pictures::default()),
};

/// What the picture of a run shows.
#[derive(Clone, Debug, Default, PartialEq)]
struct Picture {
    bar: Bar,
    /// "17.2 GiB of 23.6".
    said: String,
}

impl Picture {
    fn of(preset: &Preset) -> Option<Self> {
        let prediction = Prediction::new(preset.scenario());
        let estimate = prediction.estimate().ok()?;
        let bands = [estimate.allocated, estimate.reserved, estimate.device];
        let longest = estimate
            .device
            .expected
            .max(estimate.usable.unwrap_or_default());
        let said = Sentence::of(estimate, UnitStyle::Binary);
        let of = said.usable.map(|usable| format!(" of {usable}"));
        Some(Self {
            bar: Bar::of(&estimate.breakdown, bands, estimate.usable, longest),
            said: format!("{}{}", said.needs, of.unwrap_or_default()),
        })
    }

    fn write(&self) -> String {
        format!("{}\t{}", self.said, self.bar.write())
    }

    fn read(line: &str) -> Option<Self> {
        let (said, bar) = line.split_once('\t')?;
        Some(Self {
            said: said.into(),
            bar: Bar::read(bar),
        })
    }
}

/// The work: a line for each card.
#[derive(Default)]
struct Pictures {
    lines: Vec<String>,
}

impl Work for Pictures {
    fn is_done(&self) -> bool {
        self.lines.len() == CARDS.len()
    }

    fn step(&mut self) {
        let preset = CARDS.get(self.lines.len()).and_then(|id| presets::find(id));
        let picture = preset.and_then(Picture::of);
        self.lines
            .push(picture.map(|picture| picture.write()).unwrap_or_default());
    }

    fn lines(&self) -> Vec<String> {
        self.lines.clone()
    }
}

#[component]
pub fn Cards() -> impl IntoView {
    let helper = Helper::new(KIND.id);
    whenever(move |first| {
        if first {
            helper.ask(Scenario::default());
        }
    });
    let card = |(at, id): (usize, &&'static str)| {
        let preset = presets::find(id)?;
        Some(view! { <Card preset at helper/> })
    };
    view! { <ul class="cards">{CARDS.iter().enumerate().map(card).collect_view()}</ul> }
}

/// A run to start from, with the picture of its memory.
#[component]
fn Card(preset: &'static Preset, at: usize, helper: Helper) -> impl IntoView {
    let session = Session::current();
    let picture = memo(move || {
        let line = helper.reply.with(|reply| reply.lines.get(at).cloned());
        Picture::read(&line?)
    });
    let bar = Signal::derive(move || picture.get().map(|picture| picture.bar));
    let said = move || picture.get().map(|picture| picture.said);
    let choose = move |_| {
        session.start_from(preset.scenario());
        browser::show("answers");
    };
    view! {
        <li>
            <button type="button" class="card" data-preset=preset.id on:click=choose>
                <span class="name">{preset.title}</span>
                <Drawn bar/>
                <span class="quiet said">{said}</span>
            </button>
        </li>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_a_preset_and_its_picture_crosses_from_the_worker() {
        for id in CARDS {
            assert!(presets::find(id).is_some(), "{id}");
        }
        let mut work = Pictures::default();
        work.step();
        let picture = Picture::of(presets::find(CARDS[0]).unwrap()).unwrap();
        assert!(picture.said.contains("GiB of "), "{picture:?}");
        assert_eq!(Picture::read(&work.lines()[0]), Some(picture));
    }
}
