//! A small stacked bar of memory within a GPU's, for lists; the worker sends it as text.

use leptos::prelude::*;

use crate::fits::gauge::{Piece, pieces_of};
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, Category, Part};

/// What a bar shows, in percent of its width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// The GPU's memory.
    limit: String,
    /// Each part's name in classes, its start and its width.
    parts: Vec<[String; 3]>,
}

impl Bar {
    /// The memory of a device, scaled to the longest of several bars.
    pub fn of(
        breakdown: &[Part<Category>],
        [allocated, reserved, device]: [Band; 3],
        usable: Option<Bytes>,
        longest: Bytes,
    ) -> Self {
        let whole = longest.get().max(1) as f64;
        let at = |bytes: Bytes| percent(bytes.get() as f64 / whole * 100.0);
        let pieces = pieces_of(
            breakdown,
            reserved.expected - allocated.expected,
            device.expected - reserved.expected,
        );
        let mut start = Bytes::ZERO;
        let part = |(piece, bytes): (Piece, Bytes)| {
            let part = [piece.describe().0.into(), at(start), at(bytes)];
            start += bytes;
            part
        };
        Self {
            parts: pieces.into_iter().map(part).collect(),
            limit: at(usable.unwrap_or(longest)),
        }
    }

    /// The limit, and a field for each part.
    pub fn write(&self) -> String {
        let parts = self.parts.iter().map(|part| part.join(" "));
        [self.limit.clone()]
            .into_iter()
            .chain(parts)
            .collect::<Vec<_>>()
            .join(";")
    }

    pub fn read(text: &str) -> Self {
        let mut fields = text.split(';').map(String::from);
        let part = |field: String| {
            let mut words = field.split(' ').map(String::from);
            Some([words.next()?, words.next()?, words.next()?])
        };
        Self {
            limit: fields.next().unwrap_or_default(),
            parts: fields.filter_map(part).collect(),
        }
    }
}

/// The drawing; empty until it is known.
#[component]
pub fn MemoryBar(#[prop(into)] bar: Signal<Option<Bar>>) -> impl IntoView {
    let inside = move || {
        let Bar { limit, parts } = bar.get()?;
        let part = |[name, x, width]: [String; 3]| {
            let class = format!("segment part-{name}");
            view! { <rect class=class x=x width=width height="100%"></rect> }
        };
        Some(view! {
            <rect class="bed" width=limit height="100%"></rect>
            {parts.into_iter().map(part).collect_view()}
        })
    };
    view! { <svg class="bar" aria-hidden="true">{inside}</svg> }
}

fn percent(value: f64) -> String {
    format!("{value:.3}%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;

    #[test]
    fn a_bar_round_trips_as_text() {
        let estimate = sample::estimate();
        let bands = [estimate.allocated, estimate.reserved, estimate.device];
        let longest = estimate.device.high;
        let bar = Bar::of(&estimate.breakdown, bands, estimate.usable, longest);
        assert!(bar.parts.len() > 2, "{bar:?}");
        assert_eq!(Bar::read(&bar.write()), bar);
        assert_eq!(Bar::read("").parts, Vec::<[String; 3]>::new());
    }
}
