//! What was understood of a run, as chips that can be changed where they stand.

use leptos::ev::{FocusEvent, KeyboardEvent};
use leptos::prelude::*;

use crate::field::form::Field;
use crate::shared::browser;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_catalog as catalog;
use headroom_scenario::resolve::{Origin, Resolved};
use headroom_scenario::settings::{self, Setting};
use headroom_scenario::{Case, Objective, Quantization, Scenario};

/// One decision about the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    pub setting: &'static Setting,
    pub words: String,
    /// What said so, if that was not the person: the value is assumed.
    pub source: Option<String>,
}

/// What the chips show, in the order people say it.
const SHOWN: &[&str] = &[
    "model.id",
    "hardware.gpus",
    "hardware.gpu",
    "hardware.nodes",
    "parallel.strategy",
    "task.objective",
    "training.lora",
    "training.quantization",
    "training.precision",
    "data.micro_batch",
    "data.sequence",
    "data.height",
    "data.frames",
    "training.accumulation",
    "training.optimizer",
    "training.checkpointing",
];

/// The chips of a run.
pub fn chips(resolved: &Resolved) -> Vec<Chip> {
    let scenario = &resolved.scenario;
    let chip = |path: &&str| {
        let setting = settings::find(path)?;
        let words = words(setting, scenario)?;
        let origin = resolved.origins.get(setting);
        Some(Chip {
            setting,
            words,
            source: origin
                .filter(|origin| is_assumed(origin))
                .and_then(text::source),
        })
    };
    SHOWN.iter().filter_map(chip).collect()
}

const fn is_assumed(origin: &Origin) -> bool {
    !matches!(
        origin,
        Origin::User | Origin::File { .. } | Origin::Link | Origin::Preset(_)
    )
}

/// A setting's value as people say it; `None` where it goes without saying.
fn words(setting: &Setting, scenario: &Scenario) -> Option<String> {
    let (training, case) = (&scenario.training, Case::of(scenario));
    let gpus = scenario.hardware.gpus;
    let adapted = training.lora.is_some();
    Some(match setting.path {
        "model.id" => match (&scenario.model.network, case.model) {
            (None, Some(model)) if scenario.model.dims.is_empty() => model.name.into(),
            // With other sizes it is another model.
            (None, Some(model)) => text::like(model.name),
            (Some(_), _) => text::DECLARED.into(),
            (None, None) => scenario.model.id.clone(),
        },
        "hardware.gpu" => catalog::gpu(&scenario.hardware.gpu)
            .map_or(scenario.hardware.gpu.clone(), |gpu| gpu.name.into()),
        "hardware.gpus" => text::gpus(gpus),
        "hardware.nodes" if scenario.hardware.nodes > 1 => {
            text::machines_in_all(scenario.hardware.nodes)
        }
        "parallel.strategy" if gpus > 1 => text::short_choice(scenario.parallel.strategy.label()),
        "task.objective" if training.task.objective != Objective::Pretraining => {
            text::short_choice(training.task.objective.label())
        }
        "training.lora" => text::method(training),
        "training.quantization" if adapted || training.quantization != Quantization::None => {
            text::quantization(training.quantization)
        }
        "training.precision" => text::short_choice(training.precision.label()),
        "data.micro_batch" => text::batch(&scenario.data.micro_batch.to_string()),
        "data.sequence" if scenario.row_length() > 1 && settings::takes_length(scenario) => {
            text::tokens(scenario.row_length())
        }
        "data.height" => text::resolution(scenario)?,
        "data.frames" => text::frames(scenario)?,
        "training.accumulation" if training.accumulation > 1 => {
            text::accumulate(training.accumulation)
        }
        "training.optimizer" => text::short_choice(training.optimizer.label()),
        "training.checkpointing" => text::checkpointing(training.checkpointing),
        _ => return None,
    })
}

/// What the ids of the fields in chips begin with.
const PLACE: &str = "chip.";

/// The chips; a press opens a chip's field below it.
#[component]
pub fn Chips() -> impl IntoView {
    let session = Session::current();
    let all = memo(move || session.resolved(chips));
    let paths =
        memo(move || all.with(|all| all.iter().map(|chip| chip.setting.path).collect::<Vec<_>>()));
    let opened = RwSignal::new("");
    view! {
        <ul class="chips" aria-label=text::UNDERSTOOD data-testid="chips">
            <For each=move || paths.get() key=|path| *path let(path)>
                <OneChip path all opened/>
            </For>
        </ul>
    }
}

#[component]
fn OneChip(
    path: &'static str,
    all: Memo<Vec<Chip>>,
    opened: RwSignal<&'static str>,
) -> impl IntoView {
    let chip =
        memo(move || all.with(|all| all.iter().find(|chip| chip.setting.path == path).cloned()));
    let is_open = memo(move || opened.get() == path);
    let words = move || chip.with(|chip| chip.as_ref().map(|chip| chip.words.clone()));
    let source = memo(move || chip.with(|chip| chip.as_ref()?.source.clone()));
    let said = move || source.get().map(|source| text::assumed_by(&source));
    let button = move || format!("[data-chip='{path}']");
    let press = move |_| {
        if is_open.get_untracked() {
            opened.set("");
        } else {
            opened.set(path);
            browser::focus_soon(format!("[id='{PLACE}{path}']"));
        }
    };
    let on_key = move |event: KeyboardEvent| {
        if event.key() == "Escape" && is_open.get_untracked() {
            opened.set("");
            browser::focus_soon(button());
        }
    };
    // Whoever goes elsewhere is done.
    let left = move |event: FocusEvent| {
        if browser::leaves(&event) && is_open.get_untracked() {
            opened.set("");
        }
    };
    view! {
        <li on:keydown=on_key on:focusout=left>
            <button
                type="button"
                class="chip"
                class:assumed=move || source.with(Option::is_some)
                data-chip=path
                title=said
                aria-expanded=move || is_open.get().to_string()
                on:click=press
            >
                {words}
                <span class="aside">{said}</span>
            </button>
            <Show when=move || is_open.get()>
                <div class="chip-field">
                    {settings::find(path).map(|setting| view! { <Field setting place=PLACE/> })}
                    <p class="quiet">{said}</p>
                </div>
            </Show>
        </li>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_io::import;
    use headroom_scenario::resolve::resolve;
    use headroom_scripts::Alone;

    #[test]
    fn what_a_sentence_says_is_told_apart_from_what_is_assumed() {
        let mut draft = import::words("RTX 4090, LoRA on Llama-3.1-8B at 4k", &Alone).draft;
        draft.bring_usual_run();
        let chips = chips(&resolve(&draft));
        let words = |assumed: bool| {
            let of = chips.iter().filter(|chip| chip.source.is_some() == assumed);
            of.map(|chip| chip.words.as_str()).collect::<Vec<_>>()
        };
        let said = words(false);
        for expected in ["Llama 3.1 8B", "GeForce RTX 4090", "LoRA", "4096 tokens"] {
            assert!(
                said.iter().any(|said| said.starts_with(expected)),
                "{expected}: {said:?}"
            );
        }
        assert!(words(true).contains(&"batch 1"), "{:?}", words(true));
        assert!(chips.len() <= 14);
    }
}
