//! A sheet as a table: rows that can be applied, sortable columns, ten rows at first.

use leptos::prelude::*;

use super::sheet::{Cell, Order, Row, Sheet};
use crate::change::compare;
use crate::shared::browser;
use crate::shared::session::Session;
use crate::text;
use headroom_base::units::UnitStyle;
use headroom_scenario::share;

/// Rows shown at first.
const FIRST: usize = 10;

/// The sentences and the table.
#[component]
pub fn SheetTable(
    #[prop(into)] sheet: Signal<Sheet>,
    head: &'static [&'static str],
    #[prop(optional)] sortable: bool,
    /// The element that gets the focus once a row is applied: its button may be gone by then.
    focus: &'static str,
) -> impl IntoView {
    let order = RwSignal::new(None::<Order>);
    let all = RwSignal::new(false);
    let messages = move || {
        let messages = sheet.with(|sheet| sheet.messages.clone());
        messages
            .into_iter()
            .map(|line| view! { <p>{line}</p> })
            .collect_view()
    };
    let count = Memo::new(move |_| sheet.with(|sheet| sheet.rows.len()));
    // Sortable headings can have the focus: they stay while rows are recomputed.
    let is_shown = Memo::new(move |before: Option<&bool>| {
        let stays = sortable && before == Some(&true);
        sheet.with(|sheet| !sheet.rows.is_empty() || stays && sheet.messages.is_empty())
    });
    let rows = Memo::new(move |_| {
        let mut sheet = sheet.get();
        if let Some(order) = order.get() {
            sheet.sort(order);
        }
        let most = if all.get() { usize::MAX } else { FIRST };
        sheet.rows.truncate(most);
        sheet.rows
    });
    // Numbers are right-aligned under their heads.
    let numbers = Memo::new(move |before: Option<&Vec<bool>>| {
        let of = |row: &Row| row.cells.iter().map(Cell::is_number).collect();
        let first = sheet.with(|sheet| sheet.rows.first().map(of));
        first.or_else(|| before.cloned()).unwrap_or_default()
    });
    let heads = head.iter().enumerate().map(|(column, name)| {
        let is_number = move || numbers.with(|all| all.get(column) == Some(&true));
        let sorted = move || order.get().filter(|order| order.0 == column);
        let sign = move || match sorted() {
            Some((_, true)) => "descending",
            Some((_, false)) => "ascending",
            None => "none",
        };
        let press = move |_| {
            // The same column again reverses the order.
            let largest_first = order.get_untracked() == Some((column, false));
            order.set(Some((column, largest_first)));
        };
        if sortable {
            view! {
                <th scope="col" class:number=is_number aria-sort=sign><button type="button" data-sort=column on:click=press>{*name}</button></th>
            }
            .into_any()
        } else {
            view! { <th scope="col" class:number=is_number>{*name}</th> }.into_any()
        }
    });
    let heads = heads.collect_view();
    let more = move || {
        let hidden = count.get().saturating_sub(FIRST);
        (hidden > 0).then(|| {
            let name = move || {
                if all.get() {
                    text::FEWER_ROWS.into()
                } else {
                    text::more_rows(hidden)
                }
            };
            view! {
                <button type="button" class="plain" aria-expanded=move || all.get().to_string()
                    on:click=move |_| all.update(|all| *all = !*all)>
                    {name}
                </button>
            }
        })
    };
    view! {
        {messages}
        <table class="plain-table sheet" hidden=move || !is_shown.get()>
            <thead><tr>{heads}<td></td></tr></thead>
            <tbody>
                <For each=move || rows.get() key=|row| row.key() let(row)>
                    <OneRow row head focus/>
                </For>
            </tbody>
        </table>
        {more}
    }
}

#[component]
fn OneRow(row: Row, head: &'static [&'static str], focus: &'static str) -> impl IntoView {
    let session = Session::current();
    let last = row.cells.len().saturating_sub(1);
    let title = row.cells.first().map(Cell::title).unwrap_or_default();
    let cell = |(column, cell): (usize, Cell)| {
        // The last cell of a short row spans the missing ones.
        let span = if column == last {
            head.len().saturating_sub(column).max(1)
        } else {
            1
        };
        let number = cell.is_number();
        let shown = move || shown(&cell, session.units.get());
        let name = head.get(column).copied().unwrap_or_default();
        if column == 0 {
            view! { <th scope="row" colspan=span>{shown}</th> }.into_any()
        } else {
            view! { <td class:number=number colspan=span data-head=name>{shown}</td> }.into_any()
        }
    };
    let cells = row.cells.into_iter().enumerate().map(cell).collect_view();
    let apply = row.link.map(|link| {
        let take = move |_| {
            session.apply(share::read(&link).scenario);
            browser::focus_soon(focus.into());
        };
        let name = format!("{} {title}", text::APPLY);
        view! { <button type="button" aria-label=name on:click=take>{text::APPLY}</button> }
    });
    view! { <tr>{cells}<td>{apply}</td></tr> }
}

fn shown(cell: &Cell, units: UnitStyle) -> AnyView {
    match cell {
        Cell::Text(text) | Cell::Shown(_, text) => text.clone().into_any(),
        Cell::Note(text, note) if note.is_empty() => text.clone().into_any(),
        Cell::Note(text, note) => {
            let (text, note) = (text.clone(), note.clone());
            view! { {text}" "<span class="note">{note}</span> }.into_any()
        }
        Cell::Steps(name, steps) => {
            let step = |(what, why): &(String, String)| {
                let (what, why) = (what.clone(), why.clone());
                view! { <li>{what}" "<span class="note">{why}</span></li> }
            };
            let steps = steps.iter().map(step).collect_view();
            view! { <strong>{name.clone()}</strong><ol class="steps">{steps}</ol> }.into_any()
        }
        Cell::Size(bytes) => bytes.show(units).into_any(),
        Cell::Change(from, to) => compare::change(*from, *to, units).into_any(),
    }
}
