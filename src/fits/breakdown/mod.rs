//! The breakdown: the gauge, and a table with the same numbers that explains each part.

mod inside;
pub(crate) mod lines;
mod modules;
mod tree;

#[cfg(test)]
pub(crate) use inside::{places, tensors as inside};
#[cfg(test)]
pub(crate) use tree::Node;

use leptos::prelude::*;

use crate::fits::gauge::{Meter, Piece, Pointed};
use crate::run::picture;
use crate::shared::browser;
use crate::shared::origin::origin;
use crate::shared::session::{Answer, Session};
use crate::shared::signals::memo;
use crate::shared::table::{Folded, Swatch, Table};
use crate::text;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{At, Prediction, TensorGroup};
use inside::Inside;
use lines::{Line, lines, share};
use modules::Modules;

/// The tensors of a part: one line per kind, the smaller ones together.
pub fn tensors(
    prediction: &Prediction,
    piece: Piece,
    units: UnitStyle,
) -> Option<Vec<Vec<String>>> {
    const MOST: usize = 10;
    let Piece::Tensor(category) = piece else {
        return None;
    };
    let mut groups = prediction.tensors(At::Peak).ok()?;
    groups.retain(|group| group.category == category);
    let rest: Bytes = groups.iter().skip(MOST).map(TensorGroup::total).sum();
    let words = |group: &TensorGroup| {
        let module = if group.module.is_empty() {
            text::OUTSIDE
        } else {
            &group.module
        };
        let size = match group.count {
            1 => String::new(),
            many => format!("{many} × {}", group.each.show(units)),
        };
        let total = group.total().show(units);
        vec![group.op.into(), module.into(), size, total]
    };
    let mut listed: Vec<_> = groups.iter().take(MOST).map(words).collect();
    if rest > Bytes::ZERO {
        listed.push(vec![
            text::SMALLER.into(),
            String::new(),
            String::new(),
            rest.show(units),
        ]);
    }
    (!listed.is_empty()).then_some(listed)
}

/// The bar of the first screen.
#[component]
pub fn Bar() -> impl IntoView {
    let session = Session::current();
    let peak = move || {
        let phase = session
            .estimate
            .with(|estimate| Some(estimate.as_ref()?.phase));
        phase.map(text::at_the_peak)
    };
    view! {
        <section
            class="panel on-paper"
            class:stale=move || session.stale.get()
            aria-labelledby="bar-title"
        >
            <header>
                <h2 class="title" id="bar-title">{text::BAR}</h2>
                <p class="quiet">{peak}</p>
                <SaveGauge/>
            </header>
            <Meter/>
        </section>
    }
}

#[component]
pub fn Breakdown() -> impl IntoView {
    let session = Session::current();
    view! {
        <section
            class="panel on-paper"
            class:stale=move || session.stale.get()
            aria-labelledby="breakdown-title"
        >
            <header>
                <h3 id="breakdown-title">{text::BREAKDOWN}</h3>
            </header>
            <div class="parts">
                <Parts/>
                <Folded title=text::BY_MODULE testid="modules">
                    <Modules/>
                    <Inside/>
                </Folded>
            </div>
        </section>
    }
}

/// A button that saves the gauge as a picture, with the sentence and its parts.
#[component]
fn SaveGauge() -> impl IntoView {
    let session = Session::current();
    let save = move |_| {
        let address = browser::address(&session.link_untracked());
        let (answer, units) = (
            session.answer.get_untracked(),
            session.units.get_untracked(),
        );
        if let Some(svg) = picture::picture(&answer, units, &address, &origin(&browser::today())) {
            browser::download_png("breakdown.png", &svg, picture::size(&answer));
        }
    };
    view! {
        <button
            type="button"
            class="plain save-picture screen-only"
            data-testid="picture-breakdown"
            on:click=save
        >
            "Save picture"
        </button>
    }
}

/// The table of parts; each expands to its explanation and its tensors.
#[component]
fn Parts() -> impl IntoView {
    let session = Session::current();
    let Pointed(pointed) = expect_context();
    let opened = RwSignal::new("");
    let shown = memo(move || {
        let units = session.units.get();
        let estimate = session.estimate.get();
        estimate.map_or_else(Vec::new, |estimate| lines(&estimate, units))
    });
    let total = move || {
        let whole = session
            .estimate
            .with(|estimate| Some(estimate.as_ref()?.device.expected));
        whole.map(|whole| whole.show(session.units.get()))
    };
    view! {
        <table class="breakdown" data-testid="breakdown">
            <caption class="aside">"Parts of the memory on the device at the peak"</caption>
            <thead>
                <tr>
                    <th scope="col">"Part"</th>
                    <th scope="col" class="number">
                        "Size"
                    </th>
                    <th scope="col" class="number">
                        "Share"
                    </th>
                </tr>
            </thead>
            <tbody on:pointerleave=move |_| pointed.set("")>
                // A row keeps its element, and so the focus, while its numbers change.
                <For
                    each=move || shown.with(|lines| lines.iter().map(|line| line.piece).collect::<Vec<_>>())
                    key=|piece| piece.describe().0
                    let:piece
                >
                    <PartRow piece shown opened pointed/>
                </For>
            </tbody>
            <tfoot>
                <tr>
                    <th scope="row">{text::WHOLE}</th>
                    <td class="number total">{total}</td>
                    <td class="number">"100 %"</td>
                </tr>
            </tfoot>
        </table>
    }
}

/// One part, and below it, if expanded, its explanation and its tensors.
#[component]
fn PartRow(
    piece: Piece,
    shown: Memo<Vec<Line>>,
    opened: RwSignal<&'static str>,
    pointed: RwSignal<&'static str>,
) -> impl IntoView {
    let session = Session::current();
    let (id, label, why) = piece.describe();
    let read = move |read: fn(&Line) -> &String| {
        shown.with(|lines| {
            let line = lines.iter().find(|line| line.piece == piece);
            line.map(|line| read(line).clone())
        })
    };
    let is_open = move || opened.get() == id;
    let toggle = move |_| opened.update(|opened| *opened = if *opened == id { "" } else { id });
    let table = move || {
        let units = session.units.get();
        let tensors = |answer: &Answer| tensors(answer.prediction.as_deref()?, piece, units);
        let rows = session.settled.with(tensors)?;
        let head = vec!["Made by", "In", "Tensors", "Total"];
        Some(view! { <Table class="tensors" head numbers=2 rows/> })
    };
    view! {
        <tr
            data-part=id
            class:pointed=move || pointed.get() == id
            on:pointerenter=move |_| pointed.set(id)
        >
            <th scope="row">
                <button
                    type="button"
                    id=format!("part-{id}")
                    aria-expanded=move || is_open().to_string()
                    on:click=toggle
                >
                    <Swatch part=id/>
                    {label}
                </button>
            </th>
            <td class="number">{move || read(|line| &line.bytes)}</td>
            <td class="number">{move || read(|line| &line.share)}</td>
        </tr>
        <Show when=is_open>
            <tr class="why">
                <td colspan="3">
                    <p>{why}</p>
                    <div class="scroller" tabindex="0" role="region" aria-label=text::TENSORS>
                        {table}
                    </div>
                </td>
            </tr>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sample;
    use headroom_scenario::Scenario;

    #[test]
    fn lines_show_size_and_share() {
        let all = lines(&sample::estimate(), UnitStyle::Binary);
        let shown: Vec<_> = all
            .iter()
            .map(|line| format!("{} {}", line.bytes, line.share))
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
    fn a_part_lists_its_tensors() {
        let piece = Piece::Tensor(headroom_core::estimate::Category::Parameters);
        let prediction = Prediction::new(Scenario::default());
        let listed = tensors(&prediction, piece, UnitStyle::Binary).unwrap();
        let [_, module, size, all] = &listed[0][..] else {
            unreachable!("four columns")
        };
        assert_eq!(
            (module.as_str(), size.as_str(), all.as_str()),
            ("transformer.wte", "", "147 MiB")
        );
        assert!(
            listed[1][1].contains('*') && listed[1][2].starts_with("12 × "),
            "{listed:?}"
        );
        assert_eq!(
            tensors(&prediction, Piece::Context, UnitStyle::Binary),
            None
        );
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
