//! A PyTorch memory snapshot: the memory of each GPU, the lines of code that hold it, and the differences from the current
//! run, if that is the same.

use std::sync::Arc;

use leptos::prelude::*;

use crate::diagnose::measured::correct;
use crate::shared::browser;
use crate::shared::session::{Answer, OpenedSnapshot, Session};
use crate::shared::table::Table;
use crate::text;
use headroom_advice::doctor::Calibration;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_io::import::snapshot::{Comparison, Device, Holder, Snapshot};

/// The most rows.
const SHOWN: usize = 12;

/// Opens a snapshot's bytes and scrolls to the panel.
pub fn take(session: Session, bytes: Option<Vec<u8>>) {
    let opened = match bytes {
        Some(bytes) => Snapshot::read(&bytes).map_err(|why| text::no_snapshot(&why)),
        None => Err(text::SNAPSHOT_TOO_LARGE.into()),
    };
    session.snapshot.set(Some(Arc::new(opened)));
    crate::shared::places::Place::Diagnose.show();
}

/// The content of the opened snapshot.
#[component]
pub fn SnapshotPanel() -> impl IntoView {
    let session = Session::current();
    // Reset for each snapshot.
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
                let card = |device: &Device| {
                    let comparison = session.settled.with(|answer| {
                        is_compared.then(|| comparison_of(answer, device)).flatten()
                    });
                    view! { <OneGpu device=device.clone() comparison units/> }
                };
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

/// The differences between the run and a GPU's memory.
fn comparison_of(answer: &Answer, device: &Device) -> Option<Comparison> {
    Comparison::of(device, answer.prediction.as_ref()?).ok()
}

#[component]
fn OneGpu(device: Device, comparison: Option<Comparison>, units: UnitStyle) -> impl IntoView {
    let session = Session::current();
    let correct = comparison.as_ref().and(device.peak).map(|measured| {
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
    let differences = comparison.map(|comparison| {
        let tables = differences(&comparison, units)
            .into_iter()
            .map(|(name, head, rows)| {
                view! {
                    <h4>{name}</h4>
                    <ScrollingTable name head rows/>
                }
            });
        let equal = comparison.is_equal().then_some(text::SAME_AS_THE_RUN);
        view! { <p>{in_both(&comparison, units)}" "{equal}</p>{tables.collect_view()} }
    });
    view! {
        <p>{device_summary(&device, units)}</p>
        <ScrollingTable name=text::HOLDERS head=vec!["Made by", "Blocks", "Total"] rows=holders(&device, units)/>
        {correct}
        {differences}
    }
}

#[component]
fn ScrollingTable(
    name: &'static str,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
) -> impl IntoView {
    view! {
        <div class="scroller" tabindex="0" role="group" aria-label=name>
            <Table class="plain-table" head numbers=2 rows/>
        </div>
    }
}

/// "GPU 0: 20.1 GiB allocated of 23.0 GiB reserved in 120 segments. …"
fn device_summary(device: &Device, units: UnitStyle) -> String {
    let show = |bytes: Bytes| bytes.show(units);
    let free = device.reserved - device.allocated - device.pending;
    let mut summary = format!(
        "GPU {}: {} allocated of {} reserved in {} segments; {} free, the largest block {}.",
        device.index,
        show(device.allocated),
        show(device.reserved),
        device.segments,
        show(free),
        show(device.largest_free)
    );
    if let Some(peak) = device.peak {
        summary.push_str(&format!(
            " Peak of {} allocated in the recorded history.",
            show(peak)
        ));
    }
    if let Some(refused) = device.refused.last() {
        summary.push_str(&format!(" A request of {} failed.", show(*refused)));
    }
    summary
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

/// "7.10 GiB of the run's 7.20 GiB are in the snapshot. Tensors of another size are 2.00 times as large as predicted."
fn in_both(comparison: &Comparison, units: UnitStyle) -> String {
    let Comparison {
        planned,
        matched,
        scale,
        ..
    } = comparison;
    let (matched, planned) = (matched.show(units), planned.show(units));
    let mut summary = format!("{matched} of the run's {planned} is in the snapshot.");
    if let Some(scale) = scale {
        summary.push_str(&format!(
            " Tensors of another size are {scale:.2} times as large as in the run."
        ));
    }
    summary
}

type Titled = (&'static str, Vec<&'static str>, Vec<Vec<String>>);

/// Tensors of another size, those only in the snapshot, and those only in the run; empty tables are omitted.
fn differences(comparison: &Comparison, units: UnitStyle) -> Vec<Titled> {
    let resized = comparison.resized.iter().take(SHOWN).map(|resized| {
        let planned = &resized.planned;
        let change = format!(
            "{} → {}",
            planned.each.show(units),
            resized.each.show(units)
        );
        vec![planned.kind.to_string(), planned.count.to_string(), change]
    });
    let unplanned = comparison.unplanned.iter().take(SHOWN).map(|each| {
        let line = each.stack.first().map_or("", String::as_str);
        vec![by(line), each.count.to_string(), each.each.show(units)]
    });
    let absent = comparison.absent.iter().take(SHOWN).map(|planned| {
        let each = planned.each.show(units);
        vec![planned.kind.to_string(), planned.count.to_string(), each]
    });
    let mut all: Vec<Titled> = vec![
        (
            text::OF_ANOTHER_SIZE,
            vec!["Tensors", "Count", "Each"],
            resized.collect(),
        ),
        (
            text::NOT_IN_THE_RUN,
            vec!["Made by", "Blocks", "Each"],
            unplanned.collect(),
        ),
        (
            text::NOT_IN_THE_SNAPSHOT,
            vec!["Tensors", "Count", "Each"],
            absent.collect(),
        ),
    ];
    all.retain(|(.., rows)| !rows.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_core::estimate::{Category, TensorKind};
    use headroom_io::import::snapshot::{Resized, TensorCount, Unplanned};

    #[test]
    fn a_snapshot_lists_holders_and_differences() {
        let size = Bytes::new(1 << 20);
        let holder = |line: &str, count| Holder {
            line: line.into(),
            count,
            bytes: size * count,
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
            device_summary(&device, units),
            "GPU 0: 5.00 MiB allocated of 8.00 MiB reserved in 1 segments; 3.00 MiB free, the largest block 2.00 MiB. \
             Peak of 6.00 MiB allocated in the recorded history. A request of 9.00 MiB failed."
        );
        let shown = holders(&device, units);
        assert_eq!(shown[0], ["train.py:9 step", "3", "3.00 MiB"]);
        assert_eq!(shown[1][0], text::NOT_RECORDED);
    }

    #[test]
    fn differences_are_shown_in_tables() {
        let kind = TensorKind {
            category: Category::Activations,
            module: "h.*.mlp".into(),
            op: "gelu",
        };
        let size = Bytes::mib(1);
        let tensors = TensorCount {
            kind,
            count: 3,
            each: size,
        };
        let comparison = Comparison {
            when: None,
            planned: size * 4,
            held: size * 6,
            matched: size,
            resized: vec![Resized {
                planned: tensors.clone(),
                each: size * 2,
                stack: Vec::new(),
            }],
            scale: Some(2.0),
            unplanned: vec![Unplanned {
                count: 2,
                each: size,
                stack: vec!["train.py:9 step".into()],
            }],
            absent: Vec::new(),
        };
        let units = UnitStyle::Binary;
        assert_eq!(
            in_both(&comparison, units),
            "1.00 MiB of the run's 4.00 MiB is in the snapshot. Tensors of another size are 2.00 times as large as in the run."
        );
        let tables = differences(&comparison, units);
        let rows: Vec<_> = tables
            .iter()
            .map(|(name, _, rows)| (*name, rows[0].clone()))
            .collect();
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        assert_eq!(
            rows,
            [
                (
                    text::OF_ANOTHER_SIZE,
                    row(["gelu in h.*.mlp", "3", "1.00 MiB → 2.00 MiB"])
                ),
                (
                    text::NOT_IN_THE_RUN,
                    row(["train.py:9 step", "2", "1.00 MiB"])
                ),
            ]
        );
    }
}
