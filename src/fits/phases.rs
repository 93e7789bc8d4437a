//! What is allocated at the peak of each phase, for steps that do more than train: sampling, references, evaluations.

use std::sync::Arc;

use leptos::prelude::*;

use crate::shared::bar::{Bar, MemoryBar};
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Band, Category, Estimate, Instant, Part, Phase};

/// One phase, drawn within the GPU's memory.
#[derive(Clone, Debug, PartialEq)]
struct PhasePeak {
    phase: Phase,
    bytes: Bytes,
    bar: Bar,
}

/// The phases of a step in the order in which they begin; none where forward, backward and optimizer are all.
fn peaks(estimate: &Estimate, course: &[Vec<Part<Category>>]) -> Vec<PhasePeak> {
    let instants = &estimate.timeline;
    let mut highest: Vec<(usize, Instant)> = Vec::new();
    for (at, instant) in instants.iter().enumerate() {
        let known = highest
            .iter_mut()
            .find(|(_, other)| other.phase == instant.phase);
        match known {
            None => highest.push((at, *instant)),
            Some(known) if known.1.bytes < instant.bytes => *known = (at, *instant),
            Some(_) => {}
        }
    }
    let trains = |phase: Phase| {
        matches!(
            phase,
            Phase::Setup | Phase::Forward | Phase::Backward | Phase::Optimizer
        )
    };
    if course.len() != instants.len() || highest.iter().all(|(_, instant)| trains(instant.phase)) {
        return Vec::new();
    }
    let most = highest.iter().map(|(_, instant)| instant.bytes);
    let longest = most.chain(estimate.usable).max().unwrap_or_default();
    let peak = |(at, instant): &(usize, Instant)| {
        let whole = Band {
            low: instant.bytes,
            expected: instant.bytes,
            high: instant.bytes,
        };
        let parts = course.get(*at).map_or(&[][..], Vec::as_slice);
        PhasePeak {
            phase: instant.phase,
            bytes: instant.bytes,
            bar: Bar::of(parts, [whole; 3], estimate.usable, longest),
        }
    };
    highest.iter().map(peak).collect()
}

/// A bar for each phase, in the colours of the chart above it.
#[component]
pub(crate) fn PhasePeaks(
    estimate: Memo<Option<Arc<Estimate>>>,
    course: Memo<Vec<Vec<Part<Category>>>>,
) -> impl IntoView {
    let session = Session::current();
    let all = memo(move || {
        let peaks = |estimate: &Arc<Estimate>| course.with(|course| peaks(estimate, course));
        estimate.with(|estimate| estimate.as_ref().map(peaks).unwrap_or_default())
    });
    let rows = move || {
        let units = session.units.get();
        let row = |peak: PhasePeak| {
            let bar = peak.bar;
            view! {
                <li>
                    <span>{text::phase(peak.phase)}</span>
                    <MemoryBar bar=Signal::derive(move || Some(bar.clone()))/>
                    <span class="number">{peak.bytes.show(units)}</span>
                </li>
            }
        };
        all.get().into_iter().map(row).collect_view()
    };
    view! {
        <div class="phase-peaks" hidden=move || all.with(Vec::is_empty) data-testid="phases">
            <p class="quiet">{text::PHASE_PEAKS}</p>
            <ul>{rows}</ul>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;

    #[test]
    fn phases_that_do_not_train_bring_a_bar_for_each() {
        let mut estimate = sample::estimate();
        let part = Part {
            what: Category::Parameters,
            bytes: Bytes::gib(1.0),
        };
        let course = vec![vec![part]; estimate.timeline.len()];
        assert_eq!(peaks(&estimate, &course), []);
        estimate.timeline[0].phase = Phase::Generation;
        let phases: Vec<Phase> = peaks(&estimate, &course)
            .iter()
            .map(|peak| peak.phase)
            .collect();
        assert_eq!(
            phases,
            [
                Phase::Generation,
                Phase::Forward,
                Phase::Backward,
                Phase::Optimizer
            ]
        );
        assert_eq!(peaks(&estimate, &[]), []);
    }
}
