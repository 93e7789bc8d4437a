//! Host memory and disk that a run needs.

use leptos::prelude::*;

use crate::shared::session::Session;
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::Estimate;

/// One line per part of host memory with its reason, and the disk space of checkpoints.
fn lines(estimate: &Estimate, units: UnitStyle) -> Vec<String> {
    let host = estimate.host.parts.iter().map(|part| {
        let (name, why, _) = part.what.describe();
        format!("{name}: {} ({why})", part.bytes.expected.show(units))
    });
    let disk = &estimate.disk;
    let saved = (disk.checkpoint > Bytes::ZERO).then(|| {
        let all = disk.count.zip(disk.total);
        let all = all.map(|(count, total)| format!("; {count} need {}", total.show(units)));
        let one = disk.checkpoint.show(units);
        format!("disk: {one} per checkpoint{}", all.unwrap_or_default())
    });
    host.chain(saved).collect()
}

#[component]
pub fn HostAndDisk() -> impl IntoView {
    let session = Session::current();
    let items = move || {
        let units = session.units.get();
        let estimate = session.estimate.get();
        let lines = estimate.map_or_else(Vec::new, |estimate| lines(&estimate, units));
        let item = |line: String| view! { <li>{line}</li> };
        lines.into_iter().map(item).collect_view()
    };
    view! {
        <section class="panel" aria-label=text::HOST_AND_DISK>
            <details class="more">
                <summary>{text::HOST_AND_DISK}</summary>
                <ul class="plain-list">{items}</ul>
            </details>
        </section>
    }
}
