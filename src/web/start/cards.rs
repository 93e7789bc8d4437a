//! Five runs to start from, each with the picture of its memory, which the worker makes.

use leptos::prelude::*;

use crate::estimate::Prediction;
use crate::scenario::Scenario;
use crate::scenario::presets::{self, Preset};
use crate::units::UnitStyle;
use crate::web::browser;
use crate::web::gauge::Gauge;
use crate::web::session::Session;
use crate::web::signals::{memo, whenever};
use crate::web::verdict::Sentence;
use crate::web::worker::{Helper, JobKind, Work};

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

/// What the picture of a run shows, in percent of its width.
#[derive(Clone, Debug, Default, PartialEq)]
struct Picture {
    /// The card's memory.
    limit: String,
    /// Each part's name in classes, its start and its width.
    parts: Vec<[String; 3]>,
    /// "17.2 GiB of 23.6".
    said: String,
}

impl Picture {
    fn of(preset: &Preset) -> Option<Self> {
        let prediction = Prediction::new(preset.scenario());
        let estimate = prediction.estimate().ok()?;
        let gauge = Gauge::of(estimate, UnitStyle::Binary);
        let said = Sentence::of(estimate, UnitStyle::Binary);
        let of = said.usable.map(|usable| format!(" of {usable}"));
        let part = |segment: &crate::web::gauge::Segment| {
            let name = segment.piece.words().0;
            [name.into(), percent(segment.start), percent(segment.width)]
        };
        Some(Self {
            limit: percent(gauge.limit.map_or(100.0, |(limit, _)| limit)),
            parts: gauge.segments.iter().map(part).collect(),
            said: format!("{}{}", said.needs, of.unwrap_or_default()),
        })
    }

    /// What is said, the limit, and a field for each part.
    fn write(&self) -> String {
        let parts = self.parts.iter().map(|part| part.join(" "));
        let head = [self.said.clone(), self.limit.clone()];
        head.into_iter().chain(parts).collect::<Vec<_>>().join("\t")
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t').map(String::from);
        let (said, limit) = (fields.next()?, fields.next()?);
        let part = |field: String| {
            let mut words = field.split(' ').map(String::from);
            Some([words.next()?, words.next()?, words.next()?])
        };
        Some(Self {
            said,
            limit,
            parts: fields.filter_map(part).collect(),
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
    let bar = move || {
        let picture = picture.get()?;
        let part = |[name, x, width]: [String; 3]| {
            let class = format!("segment part-{name}");
            view! { <rect class=class x=x width=width height="100%"></rect> }
        };
        Some(view! {
            <rect class="bed" width=picture.limit height="100%"></rect>
            {picture.parts.into_iter().map(part).collect_view()}
        })
    };
    let said = move || picture.get().map(|picture| picture.said);
    let choose = move |_| {
        session.start_from(preset.scenario());
        browser::show("answers");
    };
    view! {
        <li>
            <button type="button" class="card" data-preset=preset.id on:click=choose>
                <span class="name">{preset.title}</span>
                <svg class="bar" aria-hidden="true">{bar}</svg>
                <span class="quiet said">{said}</span>
            </button>
        </li>
    }
}

fn percent(value: f64) -> String {
    format!("{value:.3}%")
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
        assert!(picture.parts.len() > 3, "{picture:?}");
        assert_eq!(Picture::read(&work.lines()[0]), Some(picture));
    }
}
