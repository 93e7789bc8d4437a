//! The form, derived from the table of settings: the most important ones are visible, all others are found by a filter or
//! under their section.

mod field;
mod find;

pub use field::Field;

use leptos::ev::{Event, SubmitEvent};
use leptos::prelude::*;

use self::find::FindSetting;
use crate::field::plans::SavedPlans;
use crate::shared::browser;
use crate::shared::chart::Width;
use crate::shared::later::Later;
use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::text;
use headroom_scenario::settings::{self, SECTIONS, Setting};

/// The visible settings, of any model at most twelve, and of a video its frames; all others are collapsed under their section's title.
const FRONT: &[(&str, &[&str])] = &[
    ("Hardware", &["hardware.gpu", "hardware.gpus"]),
    ("Model", &["model.id"]),
    (
        "Data",
        &[
            "data.micro_batch",
            "data.sequence",
            "data.height",
            "data.width",
            "data.frames",
            "training.accumulation",
        ],
    ),
    (
        "Training",
        &[
            "training.precision",
            "training.optimizer",
            "training.checkpointing",
            "training.lora",
            "training.lora.rank",
        ],
    ),
];

/// The collapsed settings of a section.
fn folded(section: &str) -> impl Iterator<Item = &'static Setting> {
    let front = |path| FRONT.iter().any(|(_, paths)| paths.contains(&path));
    settings::all()
        .iter()
        .filter(move |setting| setting.section() == section && !front(setting.path))
}

/// Windows of at most this width have one column (`style/layout.css`): the form is folded there, so that the plans are in sight.
const NARROW: u32 = 800;

/// The form. The help of the focused field is shown below it.
#[component]
pub fn Questions() -> impl IntoView {
    let session = Session::current();
    let focused = RwSignal::new(None::<&'static Setting>);
    let explain = move |event: Event| {
        let setting = settings::find(&browser::attribute_under(&event, "name"));
        if setting.is_some() {
            focused.set(setting);
        }
    };
    let group = |(title, paths): &'static (&str, &[&str])| {
        let fields = paths
            .iter()
            .filter_map(|path| settings::find(path))
            .map(|setting| view! { <Field setting/> });
        view! {
            <fieldset>
                <legend>{*title}</legend>
                <div class="fields">{fields.collect_view()}</div>
            </fieldset>
        }
    };
    let sections = SECTIONS
        .iter()
        .filter(|(id, _)| folded(id).next().is_some())
        .map(|(id, title)| view! { <Later><Section id title/></Later> })
        .collect_view();
    let explained = move || {
        focused.get().map(|setting| {
            let source = session.shown(setting).source;
            view! {
                <p>
                    <strong>{setting.label}</strong>
                    " "
                    {setting.help}
                </p>
                <p class="quiet">{setting.memory}</p>
                <p class="quiet">{source.map(|source| text::set_by(&source))}</p>
            }
        })
    };
    let Width(width) = expect_context();
    let is_beside = memo(move || width.get() > NARROW);
    view! {
        <form
            class="questions"
            aria-label=text::SETTINGS
            on:submit=|event: SubmitEvent| event.prevent_default()
            on:focusin=move |event| explain(event.into())
        >
            <details class="form-fold" data-testid="form-fold" open=is_beside>
                <summary>{text::FORM}</summary>
                {FRONT.iter().map(group).collect_view()}
                <FindSetting/>
                <details class="every-setting" data-testid="settings">
                    <summary>{text::EVERY_SETTING}</summary>
                    <div class="rooms">{sections}</div>
                </details>
                <SavedPlans/>
            </details>
            <div class="explainer" aria-hidden="true">
                {explained}
            </div>
        </form>
    }
}

/// A collapsed section with the number of settings that differ from the preset.
#[component]
fn Section(id: &'static str, title: &'static str) -> impl IntoView {
    let session = Session::current();
    let changed = memo(move || {
        let differs = |setting: &&'static Setting| session.shown(setting).preset.is_some();
        folded(id).filter(differs).count()
    });
    view! {
        <details>
            <summary>
                {title}
                <span class="count">{move || text::changed(changed.get())}</span>
            </summary>
            <div class="fields">
                {folded(id).map(|setting| view! { <Field setting sourced=true/> }).collect_view()}
            </div>
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_catalog as catalog;
    use headroom_scenario::Scenario;

    #[test]
    fn every_setting_is_in_the_form_once() {
        for (_, paths) in FRONT {
            for path in *paths {
                assert!(settings::find(path).is_some(), "{path}");
            }
        }
        let paths = || FRONT.iter().flat_map(|(_, paths)| paths.iter());
        for model in ["gpt2", "sdxl-unet", "wan2.1-t2v-1.3b"] {
            let mut scenario = Scenario::default();
            scenario.model.id = model.into();
            assert!(catalog::model(model).is_some(), "{model}");
            let shown = paths().filter_map(|path| settings::find(path));
            let shown = shown.filter(|setting| setting.applies(&scenario)).count();
            let frames = usize::from(model.starts_with("wan"));
            assert!(shown <= 12 + frames, "{model}: {shown}");
        }
        let front = paths().count();
        let rest = SECTIONS
            .iter()
            .map(|(id, _)| folded(id).count())
            .sum::<usize>();
        assert_eq!(front + rest, settings::all().len());
    }
}
