//! The breakdown: the gauge and the table that names its parts, explains each and holds the same numbers.

mod inside;

#[cfg(test)]
pub(super) use inside::{places, tensors as inside};

use leptos::prelude::*;
use web_sys::Event;

use super::gauge::{self, Piece, pieces};
use super::part::Part;
use super::session::{Answer, Session};
use super::signals::whenever;
use super::{browser, markup, text};
use crate::estimate::{At, Estimate, Prediction, TensorGroup};
use crate::order::{Map, sorted};
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

/// The tensors of a part: each kind in words, and the smaller ones together.
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

/// The tensors by module, the largest first; layers that differ only by their number count as one.
pub fn modules(prediction: &Prediction, units: UnitStyle) -> Option<Vec<Vec<String>>> {
    const MOST: usize = 16;
    let mut modules: Map<String, (u64, Bytes)> = Map::new();
    let mut whole = Bytes::ZERO;
    for group in prediction.tensors(At::Peak).ok()? {
        whole += group.total();
        let (count, bytes) = modules.or_default(group.module.clone());
        *count += group.count;
        *bytes += group.total();
    }
    let modules = sorted(modules, |(_, (_, a)), (_, (_, b))| b.cmp(a));
    let rest: Bytes = modules
        .iter()
        .skip(MOST)
        .map(|(_, (_, bytes))| *bytes)
        .sum();
    let row = |name: &str, count: String, bytes: Bytes| {
        let name = if name.is_empty() { text::OUTSIDE } else { name };
        vec![name.into(), count, bytes.show(units), share(bytes, whole)]
    };
    let listed = modules.iter().take(MOST);
    let mut rows: Vec<_> = listed
        .map(|(name, (count, bytes))| row(name, count.to_string(), *bytes))
        .collect();
    if rest > Bytes::ZERO {
        rows.push(row(text::SMALLER, String::new(), rest));
    }
    Some(rows)
}

/// A part of the whole in percent.
pub fn share(part: Bytes, whole: Bytes) -> String {
    match part.get() as f64 / whole.get().max(1) as f64 * 100.0 {
        it if it > 0.0 && it < 0.1 => "< 0.1 %".into(),
        it if it < 9.95 => format!("{it:.1} %"),
        it => format!("{it:.0} %"),
    }
}

pub fn view(session: Session) -> Part {
    let pointed = RwSignal::new(String::new());
    let opened = RwSignal::new(String::new());
    let estimate = session.estimate;
    let rows = move || {
        let units = session.units.get();
        let all = estimate.with(|it| it.as_ref().map(|it| lines(it, units)));
        let row = |line: &Line| {
            let (id, _, why) = line.piece.words();
            let open = opened.with(|it| it == id);
            let tensors = |it: &Answer| tensors(it.prediction.as_deref()?, line.piece, units);
            let why = open.then(|| (why, session.answer.with(tensors)));
            row(line, why)
        };
        browser::keep_focus(".breakdown");
        all.iter().flatten().map(row).collect::<String>()
    };
    // The outside here is the table: it is not drawn anew for a pointer.
    whenever(move |_| {
        pointed.with(|it| browser::mark_only(".breakdown [data-part]", "data-part", it, "pointed"));
    });
    let point = move |event: Event| {
        pointed.set(browser::attribute_around(&event, "data-part"));
    };
    let toggle = move |event: Event| {
        let id = browser::attribute_around(&event, "data-open");
        if !id.is_empty() {
            let same = opened.with_untracked(|it| *it == id);
            opened.set(if same { String::new() } else { id });
        }
    };
    let total = move || {
        let whole = session
            .estimate
            .with(|it| it.as_ref().map(|it| it.device.expected));
        whole
            .map(|it| it.show(session.units.get()))
            .unwrap_or_default()
    };
    let peak = move || {
        let phase = session.estimate.with(|it| it.as_ref().map(|it| it.phase));
        let peak = |it| format!("peak in {}", text::phase(it).to_ascii_lowercase());
        phase.map(peak).unwrap_or_default()
    };
    Part::new(
        r#"<section class="panel on-paper" aria-labelledby="breakdown-title">
            <header>
                <h2 id="breakdown-title">What is on the GPU at the step’s peak</h2>
                <p class="quiet"></p>
            </header>
            <slot name="gauge"></slot>
            <table class="breakdown" data-testid="breakdown">
                <caption class="aside">Parts of the memory on the device at the peak</caption>
                <thead>
                    <tr>
                        <th scope="col">Part</th>
                        <th scope="col" class="number">Size</th>
                        <th scope="col" class="number">Share</th>
                    </tr>
                </thead>
                <tbody></tbody>
                <tfoot>
                    <tr>
                        <th scope="row">On the device</th>
                        <td class="number total"></td>
                        <td class="number">100 %</td>
                    </tr>
                </tfoot>
            </table>
            <slot name="modules"></slot>
        </section>"#,
    )
    .class("", "stale", move || session.stale.get())
    .text("p", peak)
    .html("tbody", rows)
    .on("tbody", "click", toggle)
    .on("tbody", "pointerover", point)
    .on("tbody", "pointerleave", move |_| pointed.set(String::new()))
    .text(".total", total)
    .put("gauge", gauge::view(session, pointed))
    .put("modules", by_module(session))
}

/// A part's row, and beneath it, where it is open, why it is there and what it is made of.
fn row(line: &Line, why: Option<(&str, Option<Vec<Vec<String>>>)>) -> String {
    let Line {
        piece,
        bytes,
        share,
    } = line;
    let (id, label, _) = piece.words();
    let open = why.is_some();
    let mut html = format!(
        "<tr data-part=\"{id}\"><th scope=\"row\">\
         <button type=\"button\" id=\"part-{id}\" data-open=\"{id}\" aria-expanded=\"{open}\">\
         <svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect width=\"12\" height=\"12\" \
         class=\"part-{id}\"/></svg>{label}</button></th>\
         <td class=\"number\">{bytes}</td><td class=\"number\">{share}</td></tr>"
    );
    if let Some((why, tensors)) = why {
        let head = ["Made by", "In", "Tensors", "Together"];
        let table = tensors.map(|rows| markup::table("tensors", &head, 2, &rows));
        html.push_str(&format!(
            "<tr class=\"why\"><td colspan=\"3\"><p>{}</p><div class=\"scroller\" tabindex=\"0\" role=\"region\" \
             aria-label=\"{}\">{}</div></td></tr>",
            markup::escape(why),
            text::TENSORS,
            table.unwrap_or_default()
        ));
    }
    html
}

/// The same memory by module, worked out when it is opened.
fn by_module(session: Session) -> Part {
    let open = RwSignal::new(false);
    let table = move || {
        let units = session.units.get();
        let rows = open.get().then(|| {
            session
                .answer
                .with(|it| modules(it.prediction.as_deref()?, units))
        });
        let head = ["Module", "Tensors", "Together", "Share"];
        let table = |rows: Vec<_>| markup::table("tensors", &head, 3, &rows);
        rows.flatten().map(table).unwrap_or_default()
    };
    let title = text::BY_MODULE;
    Part::new(&format!(
        r#"<details class="numbers" data-testid="modules">
            <summary>{title}</summary>
            <div class="scroller" tabindex="0" role="region" aria-label="{title}"></div>
            <div class="contents"></div>
        </details>"#
    ))
    .tells_open("", open)
    .html(".scroller", table)
    .shows(".contents", move || {
        open.get().then(|| inside::view(session))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
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
    fn a_part_lists_the_tensors_it_is_made_of() {
        let piece = Piece::Tensor(crate::estimate::Category::Parameters);
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
    fn modules_of_all_layers_count_together() {
        let prediction = Prediction::new(Scenario::default());
        let rows = modules(&prediction, UnitStyle::Binary).unwrap();
        assert!(rows.len() <= 17 && rows.iter().any(|row| row[0] == "transformer.h.*.mlp"));
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
