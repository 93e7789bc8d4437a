//! The breakdown: the gauge and the table that names its parts, explains each and holds the same numbers.

use leptos::prelude::*;

use super::gauge::{GaugeView, Piece, pieces};
use super::session::Session;
use crate::estimate::Estimate;
use crate::units::{Bytes, UnitStyle};

/// One line of the table, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub piece: Piece,
    pub bytes: String,
    pub share: String,
}

pub fn lines(estimate: &Estimate, units: UnitStyle) -> Vec<Line> {
    let whole = estimate.device.expected;
    pieces(estimate)
        .into_iter()
        .map(|(piece, bytes)| Line {
            piece,
            bytes: bytes.show(units),
            share: share(bytes, whole),
        })
        .collect()
}

/// A part of the whole in percent.
pub fn share(part: Bytes, whole: Bytes) -> String {
    match part.get() as f64 / whole.get().max(1) as f64 * 100.0 {
        it if it > 0.0 && it < 0.1 => "< 0.1 %".into(),
        it if it < 9.95 => format!("{it:.1} %"),
        it => format!("{it:.0} %"),
    }
}

#[component]
pub fn Breakdown(session: Session) -> impl IntoView {
    let pointed = RwSignal::new(None::<Piece>);
    let opened = RwSignal::new(None::<Piece>);
    let estimate = Memo::new(move |_| session.answer.with(|it| it.estimate.clone()));
    let rows = move || {
        let units = session.units.get();
        let estimate = estimate.get()?;
        let rows = lines(&estimate, units).into_iter();
        Some(rows.map(|line| row(line, pointed, opened)).collect_view())
    };
    let total = move || Some(estimate.get()?.device.expected.show(session.units.get()));
    view! {
        <section class="panel" class:stale=move || session.answer.with(|it| it.stale) aria-labelledby="breakdown-title">
            <header>
                <h2 id="breakdown-title">"What is on the GPU at the step’s peak"</h2>
                <p class="quiet">
                    {move || Some(format!("peak in {}", super::text::phase(estimate.get()?.phase).to_lowercase()))}
                </p>
            </header>
            <GaugeView session pointed/>
            <table class="breakdown" data-testid="breakdown">
                <caption class="aside">"Parts of the memory on the device at the peak"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Part"</th>
                        <th scope="col" class="number">"Size"</th>
                        <th scope="col" class="number">"Share"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
                <tfoot>
                    <tr>
                        <th scope="row">"On the device"</th>
                        <td class="number">{total}</td>
                        <td class="number">"100 %"</td>
                    </tr>
                </tfoot>
            </table>
        </section>
    }
}

fn row(
    line: Line,
    pointed: RwSignal<Option<Piece>>,
    opened: RwSignal<Option<Piece>>,
) -> impl IntoView {
    let piece = line.piece;
    let (id, label, why) = piece.words();
    let open = move || opened.get() == Some(piece);
    let toggle = move |_| {
        opened.update(|it| {
            *it = if *it == Some(piece) {
                None
            } else {
                Some(piece)
            }
        });
    };
    view! {
        <tr
            data-part=id class:pointed=move || pointed.get() == Some(piece)
            on:pointerenter=move |_| pointed.set(Some(piece)) on:pointerleave=move |_| pointed.set(None)
        >
            <th scope="row">
                <button type="button" aria-expanded=move || open().to_string() on:click=toggle>
                    <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
                        <rect width="12" height="12" class=format!("part-{id}")/>
                    </svg>
                    {label}
                </button>
            </th>
            <td class="number">{line.bytes}</td>
            <td class="number">{line.share}</td>
        </tr>
        {move || open().then(|| view! { <tr class="why"><td colspan="3">{why}</td></tr> })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::sample;

    #[test]
    fn lines_show_size_and_share() {
        let all = lines(&sample::estimate(), UnitStyle::Binary);
        let shown: Vec<_> = all
            .iter()
            .map(|it| format!("{} {}", it.bytes, it.share))
            .collect();
        let expected = [
            "3.00 GiB 30 %",
            "5.00 GiB 50 %",
            "1.00 GiB 10 %",
            "1.00 GiB 10 %",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn shares_keep_small_parts_visible() {
        let check = |part, expected: &str| {
            assert_eq!(share(Bytes::new(part), Bytes::new(100_000)), expected);
        };
        check(0, "0.0 %");
        check(1, "< 0.1 %");
        check(1_234, "1.2 %");
        check(50_000, "50 %");
    }
}
