//! A memory snapshot of PyTorch: what each GPU held, which lines of the program hold it, and what the run on the screen
//! does not have, if that is the run.

use std::sync::Arc;

use leptos::prelude::*;

use super::measured::correct;
use super::session::{Answer, OpenedSnapshot, Session};
use super::table::Table;
use super::{browser, text};
use crate::estimate::At;
use crate::import::snapshot::{Device, Holder, Snapshot};
use crate::strategy::doctor::Calibration;
use crate::units::{Bytes, UnitStyle};

/// Rows that are shown.
const SHOWN: usize = 12;

/// Reads a file's bytes, and goes there.
pub fn take(session: Session, bytes: Option<Vec<u8>>) {
    let opened = match bytes {
        Some(bytes) => Snapshot::read(&bytes).map_err(|why| text::no_snapshot(&why)),
        None => Err(text::SNAPSHOT_TOO_LARGE.into()),
    };
    session.snapshot.set(Some(Arc::new(opened)));
    super::places::Place::Diagnose.show();
}

/// What the snapshot that was opened says.
#[component]
pub fn Held() -> impl IntoView {
    let session = Session::current();
    // Asked anew of each snapshot.
    let compared = RwSignal::new(None::<Arc<OpenedSnapshot>>);
    let content = move || {
        let opened = session.snapshot.get()?;
        let units = session.units.get();
        Some(match &*opened {
            Err(why) => view! { <p>{why.clone()}</p> }.into_any(),
            Ok(snapshot) => {
                let is_compared = compared
                    .get()
                    .is_some_and(|other| Arc::ptr_eq(&other, &opened));
                let planned = session
                    .settled
                    .with(|answer| is_compared.then(|| planned(answer)).flatten());
                let card = |device: &Device| view! { <OneGpu device=device.clone() planned=planned.clone() units/> };
                let cards = snapshot.devices.iter().map(card).collect_view();
                let asked = opened.clone();
                let compare = move |_| {
                    compared.set(Some(asked.clone()));
                    browser::focus_soon("#diagnose-title".into());
                };
                let about = session.settled.with(|answer| text::about(&answer.scenario));
                let question = (!is_compared).then(|| {
                    view! {
                        <p><strong>{text::YOUR_RUN}</strong>" "{about}</p>
                        <div class="actions"><button type="button" class="primary" on:click=compare>{text::YES_COMPARE}</button></div>
                    }
                });
                view! { {question}{cards} }.into_any()
            }
        })
    };
    let close = move |_| {
        session.snapshot.set(None);
        browser::focus_soon("#diagnose-title".into());
    };
    view! {
        <div class="report" data-testid="snapshot" hidden=move || session.snapshot.with(Option::is_none)>
            <h4>{text::SNAPSHOT_TITLE}</h4>
            <div role="status">{content}</div>
            <div class="actions"><button type="button" on:click=close>{text::SNAPSHOT_CLOSE}</button></div>
        </div>
    }
}

/// The sizes of the run's tensors at its peak, and how many there are of each.
fn planned(answer: &Answer) -> Option<Vec<(Bytes, u64)>> {
    let groups = answer.prediction.as_ref()?.tensors(At::Peak).ok()?;
    Some(
        groups
            .iter()
            .map(|group| (group.each, group.count))
            .collect(),
    )
}

#[component]
fn OneGpu(device: Device, planned: Option<Vec<(Bytes, u64)>>, units: UnitStyle) -> impl IntoView {
    let session = Session::current();
    let correct = planned.as_ref().and(device.peak).map(|measured| {
        let take = move |_| {
            if let Some(estimate) = session.estimate.get_untracked() {
                let predicted = estimate.allocated.expected;
                let found = Calibration {
                    measured,
                    predicted,
                    outside: None,
                };
                correct(session, &found);
            }
        };
        view! { <div class="actions"><button type="button" on:click=take>{text::CALIBRATE}</button></div> }
    });
    let beyond = planned.map(|planned| {
        let rows: Vec<_> = beyond(&device, &planned, units);
        view! {
            <h4>{text::NOT_IN_THE_RUN}</h4>
            <Scrolled name=text::NOT_IN_THE_RUN head=vec!["Made by", "Blocks", "Each"] rows/>
        }
    });
    view! {
        <p>{said(&device, units)}</p>
        <Scrolled name=text::HOLDERS head=vec!["Made by", "Blocks", "Total"] rows=holders(&device, units)/>
        {correct}
        {beyond}
    }
}

#[component]
fn Scrolled(name: &'static str, head: Vec<&'static str>, rows: Vec<Vec<String>>) -> impl IntoView {
    view! {
        <div class="scroller" tabindex="0" role="group" aria-label=name>
            <Table class="plain-table" head numbers=2 rows/>
        </div>
    }
}

/// "GPU 0: 20.1 GiB allocated of 23.0 GiB reserved in 120 segments. …"
fn said(device: &Device, units: UnitStyle) -> String {
    let show = |bytes: Bytes| bytes.show(units);
    let free = device.reserved - device.allocated - device.pending;
    let mut said = format!(
        "GPU {}: {} allocated of {} reserved in {} segments; {} free, the largest piece {}.",
        device.index,
        show(device.allocated),
        show(device.reserved),
        device.segments,
        show(free),
        show(device.largest_free)
    );
    if let Some(peak) = device.peak {
        said.push_str(&format!(
            " At most {} allocated in the recorded history.",
            show(peak)
        ));
    }
    if let Some(refused) = device.refused.last() {
        said.push_str(&format!(" A request of {} failed.", show(*refused)));
    }
    said
}

fn by(line: &str) -> String {
    if line.is_empty() {
        text::NOT_RECORDED.into()
    } else {
        line.into()
    }
}

fn holders(device: &Device, units: UnitStyle) -> Vec<Vec<String>> {
    let row = |holder: &Holder| {
        vec![
            by(&holder.line),
            holder.count.to_string(),
            holder.bytes.show(units),
        ]
    };
    device.holders.iter().take(SHOWN).map(row).collect()
}

fn beyond(device: &Device, planned: &[(Bytes, u64)], units: UnitStyle) -> Vec<Vec<String>> {
    let more = device.beyond(planned).into_iter().take(SHOWN);
    more.map(|(size, count, line)| vec![by(&line), count.to_string(), size.show(units)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_told_with_who_holds_it_and_what_the_run_has_not() {
        let size = Bytes::new(1 << 20);
        let holder = |line: &str, count| Holder {
            line: line.into(),
            count,
            bytes: size * count,
            sizes: vec![(size, count)],
        };
        let device = Device {
            segments: 1,
            reserved: size * 8,
            allocated: size * 5,
            largest_free: size * 2,
            holders: vec![holder("train.py:9 step", 3), holder("", 2)],
            peak: Some(size * 6),
            refused: vec![size * 9],
            ..Device::default()
        };
        let units = UnitStyle::Binary;
        assert_eq!(
            said(&device, units),
            "GPU 0: 5.00 MiB allocated of 8.00 MiB reserved in 1 segments; 3.00 MiB free, the largest piece 2.00 MiB. At \
             most 6.00 MiB allocated in the recorded history. A request of 9.00 MiB failed."
        );
        let shown = holders(&device, units);
        assert_eq!(shown[0], ["train.py:9 step", "3", "3.00 MiB"]);
        assert_eq!(shown[1][0], text::NOT_RECORDED);
        let more = beyond(&device, &[(size, 4)], units);
        assert_eq!(more, [[text::NOT_RECORDED, "1", "1.00 MiB"]]);
    }
}
