//! The doctor: an out-of-memory message in, its cause out, against what this scenario was predicted to need.

use leptos::prelude::*;

use super::markup::escape;
use super::part::Part;
use super::session::Session;
use super::{browser, measured, text};
use crate::estimate::Estimate;
use crate::strategy::doctor::{Diagnosis, Findings, PROBE, diagnose};

/// What the text says, as HTML; nothing where there is no text.
pub fn report(pasted: &str, estimate: Option<&Estimate>) -> String {
    if pasted.trim().is_empty() {
        return String::new();
    }
    match Findings::parse(pasted) {
        Some(findings) => shown(&diagnose(&findings, estimate.map(Into::into))),
        None => format!("<p>{}</p>", text::NOT_UNDERSTOOD),
    }
}

fn shown(diagnosis: &Diagnosis) -> String {
    let list = |title: &str, lines: &[String]| {
        let items: Vec<_> = lines
            .iter()
            .map(|it| format!("<li>{}</li>", escape(it)))
            .collect();
        match lines {
            [] => String::new(),
            _ => format!("<h3>{title}</h3><ul>{}</ul>", items.concat()),
        }
    };
    let others = diagnosis
        .ranking
        .iter()
        .filter(|it| it.cause != diagnosis.cause);
    let others: Vec<_> = others
        .filter(|it| it.confidence >= 0.05)
        .map(|it| format!("{} ({:.0} %)", text::cause(it.cause), it.confidence * 100.0))
        .collect();
    format!(
        "<p><strong>{}</strong> ({:.0} % sure)</p>{}{}{}{}",
        text::cause(diagnosis.cause),
        diagnosis.confidence * 100.0,
        list(text::EVIDENCE, &diagnosis.evidence),
        list(text::ADVICE, &diagnosis.advice),
        list(text::CHECKS, &diagnosis.checks),
        list(text::OR_ELSE, &others),
    )
}

pub fn view(session: Session, width: ReadSignal<u32>) -> Part {
    let pasted = session.pasted;
    let report = move || {
        pasted.with(|it| {
            session
                .estimate
                .with(|estimate| report(it, estimate.as_deref()))
        })
    };
    let save_probe = move |_| browser::download("headroom_probe.py", "text/x-python", PROBE);
    Part::new(&format!(
        r#"<section class="panel" aria-labelledby="doctor-title" data-testid="doctor">
            <header><h2 id="doctor-title">Ran out of memory?</h2></header>
            <label class="quiet" for="doctor">{}</label>
            <textarea id="doctor" class="listing" rows="4" spellcheck="false"></textarea>
            <div class="report" role="status" aria-live="polite"></div>
            <slot name="measured"></slot>
            <div class="actions">
                <button type="button" data-testid="probe">{}</button>
                <p class="quiet">{}</p>
            </div>
        </section>"#,
        text::PASTE,
        text::SAVE_PROBE,
        text::PROBE_ABOUT
    ))
    .value("textarea", move || pasted.get())
    .on("textarea", "input", move |event| {
        pasted.set(browser::value_under(&event));
    })
    .html(".report", report)
    .on("button", "click", save_probe)
    .put("measured", measured::view(session, width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::sample;

    const MESSAGE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total \
        capacity of 23.64 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 22.50 GiB memory \
        in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";

    #[test]
    fn a_message_gets_a_cause_with_evidence() {
        let html = report(MESSAGE, None);
        assert!(html.contains("% sure") && html.contains("<li>"), "{html}");
        let html = report(MESSAGE, Some(&sample::estimate()));
        assert!(html.contains(text::ADVICE));
    }

    #[test]
    fn other_text_is_not_trusted_and_not_understood() {
        assert_eq!(report("  \n", None), "");
        let html = report("<script>alert(1)</script>", None);
        assert!(html.contains(text::NOT_UNDERSTOOD) && !html.contains("script"));
    }
}
