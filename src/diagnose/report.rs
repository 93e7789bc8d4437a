//! A diagnosis as the page shows it, and the worker's job that compares one with the run on the screen.

use leptos::prelude::*;

use crate::shared::worker::{JobKind, Work};
use crate::text;
use headroom_advice::doctor::{Cause, Diagnosis, Findings, PredictedUsage, diagnose};
use headroom_core::estimate::Prediction;
use headroom_scenario::Scenario;

pub const KIND: JobKind = JobKind {
    id: "doctor",
    start: |scenario, text| {
        Box::new(Comparison {
            scenario: scenario.clone(),
            text: text.into(),
            told: None,
        })
    },
};

/// What is shown of a diagnosis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The cause, and how sure it is; nothing was diagnosed without one.
    cause: Option<(Cause, f64)>,
    lines: Vec<(Part, String)>,
}

/// The lists of a diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Evidence,
    Advice,
    Checks,
    OrElse,
}

impl Part {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Evidence, text::EVIDENCE),
        (Self::Advice, text::ADVICE),
        (Self::Checks, text::CHECKS),
        (Self::OrElse, text::OR_ELSE),
    ];
}

impl From<Diagnosis> for Told {
    fn from(found: Diagnosis) -> Self {
        const LEAST: f64 = 0.05;
        let others = found.ranking.iter();
        let others = others.filter(|it| it.cause != found.cause && it.confidence >= LEAST);
        let others = others.map(|it| text::likely(text::cause(it.cause), it.confidence));
        let all = [
            (Part::Evidence, found.evidence),
            (Part::Advice, found.advice),
            (Part::Checks, found.checks),
            (Part::OrElse, others.collect()),
        ];
        let lines = all
            .into_iter()
            .flat_map(|(part, lines)| lines.into_iter().map(move |line| (part, line)));
        Self {
            cause: Some((found.cause, found.confidence)),
            lines: lines.collect(),
        }
    }
}

impl Told {
    /// One line for the cause, and one for each of the lists' lines.
    fn write(&self) -> Vec<String> {
        let cause = self
            .cause
            .map(|(cause, confidence)| format!("{} {confidence}", cause.id()));
        let lines = self.lines.iter().map(|(part, line)| {
            let place = Part::ALL.iter().position(|(it, _)| it == part);
            let line = line.replace('\n', " ");
            format!("{} {line}", place.unwrap_or_default())
        });
        cause.into_iter().chain(lines).collect()
    }

    /// From the worker's lines; nothing while there are none.
    pub fn read(lines: &[String]) -> Option<Self> {
        let (first, rest) = lines.split_first()?;
        let (id, confidence) = first.split_once(' ')?;
        let cause = Cause::ALL.into_iter().find(|cause| cause.id() == id)?;
        let line = |line: &String| {
            let (place, line) = line.split_once(' ')?;
            let (part, _) = Part::ALL.get(place.parse::<usize>().ok()?)?;
            Some((*part, line.to_string()))
        };
        Some(Self {
            cause: Some((cause, confidence.parse().ok()?)),
            lines: rest.iter().filter_map(line).collect(),
        })
    }
}

/// Compares a text with a run: its steps are replayed, and the failed request is looked for in them.
struct Comparison {
    scenario: Scenario,
    text: String,
    told: Option<Told>,
}

impl Work for Comparison {
    fn is_done(&self) -> bool {
        self.told.is_some()
    }

    fn step(&mut self) {
        let prediction = Prediction::new(self.scenario.clone());
        let told = Findings::parse(&self.text).map(|findings| {
            // A run that cannot be estimated adds nothing to the text.
            let expected = PredictedUsage::compared(&findings, &prediction).ok();
            Told::from(diagnose(&findings, expected))
        });
        self.told = Some(told.unwrap_or_default());
    }

    fn lines(&self) -> Vec<String> {
        self.told.as_ref().map(Told::write).unwrap_or_default()
    }
}

/// The cause, its evidence and what to do about it.
#[component]
pub fn Report(
    told: Told,
    /// Whole runs that fit, after the evidence.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let list = |part: Part| {
        let title = Part::ALL.iter().find(|(it, _)| *it == part)?.1;
        let lines = told.lines.iter().filter(|(it, _)| *it == part);
        let items: Vec<_> = lines
            .map(|(_, line)| view! { <li>{line.clone()}</li> })
            .collect();
        (!items.is_empty()).then(|| view! { <h4>{title}</h4><ul>{items}</ul> })
    };
    let cause = told.cause.map(|(cause, confidence)| {
        view! { <p><strong>{text::cause(cause)}</strong>" "{text::confidence(confidence)}</p> }
    });
    view! {
        {cause}
        {list(Part::Evidence)}
        {children.map(|children| children())}
        {list(Part::Advice)}
        {list(Part::Checks)}
        {list(Part::OrElse)}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that GPT-2 makes at step 40, with less free than it asks for.
    const FAILED: &str = "step 40: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total \
        capacity of 23.64 GiB of which 1.10 GiB is free. Including non-PyTorch memory, this process has 22.50 GiB memory \
        in use. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.";

    #[test]
    fn a_text_is_compared_with_the_run_and_crosses_to_the_page() {
        let text = format!("line\n{FAILED}\n");
        let mut work = (KIND.start)(&Scenario::default(), &text);
        assert_eq!(Told::read(&work.lines()), None);
        while !work.is_done() {
            work.step();
        }
        let told = Told::read(&work.lines()).unwrap();
        assert_eq!(told.write(), work.lines());
        let alone = Told::from(diagnose(&Findings::parse(&text).unwrap(), None));
        assert_ne!(told, alone);
        for (part, _) in Part::ALL.into_iter().take(2) {
            assert!(told.lines.iter().any(|(it, _)| *it == part), "{told:?}");
        }
    }
}
