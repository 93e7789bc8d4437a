//! Prompts and completions: of a row whose length alone is said.

use super::{Draft, Origin, Values};
use crate::Scenario;
use crate::settings::{self, SettingId, Value};

/// Whether a setting's default is what a row's length leaves.
pub(crate) fn follows_row(setting: SettingId, scenario: &Scenario) -> bool {
    let samples = scenario.training.task.objective.samples();
    samples && ["task.prompt", "task.completion"].contains(&setting.path)
}

/// Where nothing says how long they are: halves of the row, whose length somebody said or is usual.
pub(super) fn apply(draft: &Draft, scenario: &Scenario, values: &mut Values) {
    let find = |path: &str| settings::find(path);
    let (Some(row), Some(prompt), Some(completion)) = (
        find("data.sequence"),
        find("task.prompt"),
        find("task.completion"),
    ) else {
        return;
    };
    // An older file means the defaults of its day, unless somebody edits the length of its rows.
    let edited = matches!(draft.get(row), Some((_, Origin::User)));
    if !scenario.training.task.objective.samples() || draft.format().is_some() && !edited {
        return;
    }
    let own = |setting: SettingId| match draft.get(setting).or_else(|| values.get(setting)) {
        Some((Value::Whole(tokens), origin)) => Some((*tokens, origin.clone())),
        _ => None,
    };
    let is_said = |setting: SettingId| {
        own(setting).is_some_and(|(_, origin)| !matches!(origin, Origin::Format(_)))
    };
    let Some((length, _)) = own(row).filter(|_| is_said(row) && !is_said(completion)) else {
        return;
    };
    let asked = match own(prompt) {
        Some((tokens, _)) if is_said(prompt) => tokens,
        _ => length / 2,
    };
    let origin = || Origin::Assumed("what the row's length leaves".into());
    values.insert(prompt, (Value::Whole(asked.max(1)), origin()));
    let rest = length.saturating_sub(asked).max(1);
    values.insert(completion, (Value::Whole(rest), origin()));
}

/// The draft as whoever edits the length of its rows means it: prompts and completions that a file or a preset has keep their
/// proportion.
pub(super) fn edited(draft: &Draft, scenario: &Scenario) -> Option<Draft> {
    let row = settings::find("data.sequence")?;
    let parts = [
        settings::find("task.prompt")?,
        settings::find("task.completion")?,
    ];
    let (Value::Whole(length), Origin::User) = draft.get(row)? else {
        return None;
    };
    let weaker = |setting: &SettingId| {
        let origin = draft.get(setting).map(|(_, origin)| origin);
        origin.is_some_and(|origin| *origin != Origin::User)
    };
    if !scenario.training.task.objective.samples() || !parts.iter().all(weaker) {
        return None;
    }
    let mut run = scenario.clone();
    run.set_row_length(*length);
    let mut edited = draft.clone();
    for setting in parts {
        edited.forget(setting);
        let origin = Origin::Assumed("what the row's length leaves".into());
        edited.set_value(setting, setting.value(&run), origin);
    }
    Some(edited)
}

#[cfg(test)]
mod tests {
    use crate::resolve::{Origin, resolve};
    use crate::{Draft, settings};

    /// `preset` says what comes from a preset, `user` what a person says.
    #[track_caller]
    fn check(preset: &[(&str, &str)], user: &[(&str, &str)], expected: [u64; 2]) {
        let mut draft = Draft::default();
        let sources = [
            (preset, Origin::Preset("qwen-1.5b-grpo-24gb")),
            (user, Origin::User),
        ];
        for (said, origin) in sources {
            for (path, text) in said {
                draft.read(settings::find(path).unwrap(), text, origin.clone());
            }
        }
        let task = resolve(&draft).scenario.training.task;
        assert_eq!([task.prompt, task.completion], expected);
    }

    #[test]
    fn a_row_leaves_room_for_prompt_and_completion() {
        let grpo = ("task.objective", "grpo");
        let row = ("data.sequence", "4096");
        check(&[], &[grpo], [256, 256]);
        check(&[], &[grpo, row], [2048, 2048]);
        check(&[], &[grpo, row, ("task.prompt", "1024")], [1024, 3072]);
        check(&[], &[grpo, row, ("task.completion", "512")], [256, 512]);
        let known = [grpo, ("task.prompt", "512"), ("task.completion", "1536")];
        check(&known, &[], [512, 1536]);
        check(&known, &[row], [1024, 3072]);
        check(&known, &[row, ("task.prompt", "512")], [512, 1536]);
        check(&[], &[row], [256, 256]);
    }
}
