//! The doctor: diagnoses a pasted error, table, log or snapshot; compares it with the current run only if the user confirms
//! that it is the same.

use std::num::NonZero;

use leptos::prelude::*;

use crate::change::planner::{PlanRows, Planned};
use crate::diagnose::measured::Measured;
use crate::diagnose::report::{self, Report, Told};
use crate::diagnose::snapshot::SnapshotPanel;
use crate::shared::browser;
use crate::shared::follow::follow;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::table::Table;
use crate::shared::worker::Helper;
use crate::text;
use headroom_advice::doctor::{Findings, PROBE, Smi, Source, diagnose};
use headroom_base::units::{Bytes, UnitStyle};
use headroom_catalog as catalog;
use headroom_scenario::{Case, Scenario};

/// The kind of a pasted text.
#[derive(Clone, Debug, PartialEq)]
enum Paste {
    Nothing,
    /// PyTorch's memory snapshot, which the snapshot panel shows.
    Snapshot,
    Unknown,
    Findings(Box<Findings>),
}

impl Paste {
    fn of(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Nothing;
        }
        if let Some(findings) = Findings::parse(text) {
            return Self::Findings(Box::new(findings));
        }
        let snapshot = text.contains("device_traces") && text.contains("segments");
        if snapshot {
            Self::Snapshot
        } else {
            Self::Unknown
        }
    }

    fn findings(&self) -> Option<&Findings> {
        match self {
            Self::Findings(findings) => Some(findings),
            _ => None,
        }
    }
}

/// Whether the text can be compared with the current run: an nvidia-smi table alone cannot.
fn can_be_compared(findings: &Findings) -> bool {
    let logged = findings.log.is_some() || findings.printed.is_some();
    findings.failure.is_some() || logged || findings.summary.is_some()
}

/// The message for a text that is not diagnosed.
fn notice(findings: &Findings) -> Option<&'static str> {
    let failure = findings.failure.as_ref()?;
    match failure.source {
        Source::Host => Some(text::OF_THE_HOST),
        _ if failure.tried.is_none() && failure.total.is_none() => Some(text::NO_NUMBERS),
        _ => None,
    }
}

/// The GPU that a message is about: the scenario's own if its memory agrees, else the catalogue's closest. With the
/// message's memory size in MiB.
fn card(findings: &Findings, scenario: &Scenario) -> Option<(&'static catalog::Gpu, u64)> {
    const CLOSE: f64 = 0.02;
    let total = findings.failure.as_ref().and_then(|failure| failure.total);
    let first = || findings.smi.as_ref()?.cards.first().map(|card| card.total);
    let total = total.or_else(first)?;
    let mib = total.get() >> 20;
    let far = |gpu: &catalog::Gpu| {
        let known = gpu.memory.torch_total.get().unwrap_or_default();
        (known / mib.max(1) as f64 - 1.0).abs()
    };
    let own = Case::of(scenario).gpu.filter(|gpu| far(gpu) < CLOSE);
    let near = catalog::gpus()
        .iter()
        .filter(|gpu| gpu.vendor == catalog::Vendor::Nvidia);
    let near = near
        .min_by(|a, b| far(a).total_cmp(&far(b)))
        .filter(|gpu| far(gpu) < CLOSE);
    own.or(near).map(|gpu| (gpu, mib))
}

/// What a person said of a text: whether it is about the run.
#[derive(Clone)]
struct Confirmed {
    text: String,
    run: Scenario,
    is_yours: bool,
}

/// The panel that finds out why a run ran out of memory.
#[component]
pub fn Doctor(width: ReadSignal<u32>) -> impl IntoView {
    let session = Session::current();
    let pasted = session.pasted;
    let paste = memo(move || pasted.with(|text| Paste::of(text)));
    let is_yours = RwSignal::new(None::<Confirmed>);
    // Another text, or a changed run, is asked about again.
    let yours = memo(move || {
        let confirmed = is_yours.get()?;
        let same = pasted.with(|text| *text == confirmed.text)
            && session.scenario.with(|run| *run == confirmed.run);
        same.then_some(confirmed.is_yours)
    });
    let is_compared = memo(move || yours.get() == Some(true));
    let helper = Helper::new(report::KIND.id);
    follow(
        session,
        helper,
        move || is_compared.get(),
        move || pasted.get(),
    );
    let told = memo(move || {
        if is_compared.get() {
            helper.reply.with(|reply| Told::read(&reply.lines))
        } else {
            let diagnosed = |findings: &Findings| Told::from(diagnose(findings, None));
            paste.with(|paste| paste.findings().map(diagnosed))
        }
    });
    let waits = move || is_compared.get() && told.with(Option::is_none);
    let asks = memo(move || paste.with(|paste| paste.findings().is_some_and(can_be_compared)));
    let plain = move || {
        paste.with(|paste| match paste {
            Paste::Nothing => None,
            Paste::Snapshot => Some(text::SNAPSHOT),
            Paste::Unknown => Some(text::NOT_UNDERSTOOD),
            Paste::Findings(findings) => notice(findings),
        })
    };
    let tables = move || {
        let smi = paste.with(|paste| paste.findings().and_then(|findings| findings.smi.clone()));
        smi.map(|smi| view! { <Cards smi units=session.units.get()/> })
    };
    let save_probe = move |_| browser::download("headroom_probe.py", "text/x-python", PROBE);
    view! {
        <section class="panel" id="diagnose" aria-labelledby="diagnose-title" data-testid="doctor">
            <header><h3 id="diagnose-title" tabindex="-1">{text::DIAGNOSE}</h3></header>
            <label class="quiet" for="doctor">{text::PASTE}</label>
            <textarea id="doctor" class="listing" rows="4" spellcheck="false"
                prop:value=move || pasted.get() on:input:target=move |event| pasted.set(event.target().value())></textarea>
            <Show when=move || asks.get()>
                <YourRun paste yours answer=is_yours/>
            </Show>
            <div class="report" role="status" aria-live="polite">
                {move || plain().map(|words| view! { <p>{words}</p> })}
                {move || waits().then(|| view! { <p class="working">{text::WORKING}</p> })}
                {move || told.get().map(|told| view! { <Report told><Remedies shown=is_compared/></Report> })}
                {tables}
            </div>
            <SnapshotPanel/>
            <Measured width/>
            <div class="actions">
                <button type="button" data-testid="probe" on:click=save_probe>{text::SAVE_PROBE}</button>
                <p class="quiet">{text::PROBE_ABOUT}</p>
            </div>
        </section>
    }
}

/// Asks whether the text is about the current run, and offers the text's GPU.
#[component]
fn YourRun(
    paste: Memo<Paste>,
    yours: Memo<Option<bool>>,
    answer: RwSignal<Option<Confirmed>>,
) -> impl IntoView {
    let session = Session::current();
    let say = move |is_yours: bool| {
        answer.set(Some(Confirmed {
            text: session.pasted.get_untracked(),
            run: session.scenario.get_untracked(),
            is_yours,
        }));
        browser::focus_soon("#diagnose-title".into());
    };
    let about = move || session.answer.with(|answer| text::about(&answer.scenario));
    let card = memo(move || {
        let scenario = session.scenario.get();
        let found = paste.with(|paste| {
            paste
                .findings()
                .and_then(|findings| card(findings, &scenario))
        })?;
        let (gpu, mib) = found;
        let same = Case::of(&scenario).gpu.is_some_and(|own| own.id == gpu.id);
        (!same).then_some((gpu.id, gpu.name, mib))
    });
    let offer = move || {
        card.get().map(|(id, name, mib)| {
            let take = move |_| {
                let mut scenario = session.scenario.get_untracked();
                scenario.hardware.gpu = id.into();
                scenario.hardware.memory_mib = NonZero::new(mib);
                session.replace(scenario);
                browser::focus_soon("#diagnose-title".into());
            };
            let memory = Bytes::new(mib << 20).show(session.units.get());
            view! { <button type="button" on:click=take>{text::use_card(name, &memory)}</button> }
        })
    };
    let question = move || {
        match yours.get() {
        None => view! {
            <p><strong>{text::YOUR_RUN}</strong>" "{about}</p>
            <div class="actions">
                <button type="button" class="primary" on:click=move |_| say(true)>{text::YES_COMPARE}</button>
                <button type="button" on:click=move |_| say(false)>{text::NO_COMPARE}</button>
                {offer}
            </div>
        }
        .into_any(),
        Some(true) => view! { <p class="quiet">{text::COMPARED_WITH_RUN}" "{about}</p> }.into_any(),
        Some(false) => view! {
            <p class="quiet">{text::OTHER_RUN}</p>
            <div class="actions">{offer}</div>
        }
        .into_any(),
    }
    };
    view! { <div class="question">{question}</div> }
}

/// The plans of the run that the text is about, where it does not fit as it is.
#[component]
fn Remedies(shown: Memo<bool>) -> impl IntoView {
    let planned = Planned::current();
    view! {
        <Show when=move || shown.get() && planned.is_needed()>
            <h4>{text::WHAT_FITS}</h4>
            <PlanRows focus="#diagnose-title"/>
        </Show>
    }
}

/// An `nvidia-smi` table: used memory of each GPU, and its processes.
#[component]
fn Cards(smi: Smi, units: UnitStyle) -> impl IntoView {
    let show = |bytes: Bytes| bytes.show(units);
    let cards = smi.cards.iter().map(|card| {
        let free = card.total - card.used.min(card.total);
        vec![
            card.index.to_string(),
            show(card.used),
            show(free),
            show(card.total),
        ]
    });
    let cards: Vec<_> = cards.collect();
    let processes = smi.processes.iter().map(|process| {
        vec![
            process.name.clone(),
            process.pid.to_string(),
            process.card.to_string(),
            show(process.used),
        ]
    });
    let processes: Vec<_> = processes.collect();
    let table = (!processes.is_empty()).then(|| {
        view! {
            <h4>{text::ITS_PROCESSES}</h4>
            <Table class="plain-table" head=vec!["Process", "Number", "GPU", "Used"] numbers=3 rows=processes/>
        }
    });
    view! {
        <h4>{text::ON_THE_GPUS}</h4>
        <Table class="plain-table" head=vec!["GPU", "Used", "Free", "Total"] numbers=3 rows=cards/>
        {table}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
        capacity of 79.10 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory \
        in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";

    #[test]
    fn each_kind_of_text_gets_its_own_answer() {
        let notice = |text: &str| Paste::of(text).findings().and_then(notice);
        assert_eq!(Paste::of("  \n"), Paste::Nothing);
        assert_eq!(Paste::of("<script>alert(1)</script>"), Paste::Unknown);
        assert_eq!(
            Paste::of("{'segments': [], 'device_traces': []}"),
            Paste::Snapshot
        );
        assert_eq!(notice(MESSAGE), None);
        assert!(can_be_compared(Paste::of(MESSAGE).findings().unwrap()));
        assert_eq!(
            notice("RuntimeError: CUDA error: out of memory"),
            Some(text::NO_NUMBERS)
        );
    }

    #[test]
    fn the_gpu_is_read_from_the_message() {
        let findings = Findings::parse(MESSAGE).unwrap();
        let (gpu, mib) = card(&findings, &Scenario::default()).unwrap();
        assert!(gpu.memory.marketing_gb == 80, "{}", gpu.name);
        assert_eq!(mib, (79.10_f64 * 1024.0) as u64);
        let mut own = Scenario::default();
        own.hardware.gpu = "a100-sxm4-80gb".into();
        assert_eq!(card(&findings, &own).unwrap().0.id, "a100-sxm4-80gb");
    }
}
