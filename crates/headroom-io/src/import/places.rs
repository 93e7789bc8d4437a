//! Where adapters go and what is trained, where the input leaves it to the network.

use headroom_catalog::ModelCategory;
use headroom_core::estimate;
use headroom_reader::fact::Fact;
use headroom_reader::facts::Facts;
use headroom_reader::words::{Task, Trained};
use headroom_scenario::resolve::{Origin, resolve};
use headroom_scenario::settings::{self, SettingId};
use headroom_scenario::{Case, Draft, Objective, Scenario};

/// `all-linear`: the model's own names for its linear layers.
pub(super) fn every_linear(facts: &Facts, draft: &mut Draft) {
    let all = facts.targets.value().is_some_and(|targets| {
        targets
            .iter()
            .any(|name| matches!(name.as_str(), "all-linear" | "all"))
    });
    if let Some(setting) = settings::find(TARGETS).filter(|_| all) {
        set_every_layer(setting, draft, &resolve(draft).scenario);
        frozen_tower(facts, draft);
    }
}

/// Where a trainer keeps what sees the images frozen, its every linear layer is one of the language model (LLaMA-Factory's
/// `freeze_vision_tower` and ms-swift's `freeze_vit`, both on by default).
fn frozen_tower(facts: &Facts, draft: &mut Draft) {
    const PARTS: &[&str] = &["visual", "vision", "projector", "connector", "mlp1"];
    let freezes = matches!(facts.trainer.value(), Some(&("llamafactory" | "ms-swift")));
    let Some(setting) = settings::find("training.lora.exclude").filter(|_| freezes) else {
        return;
    };
    let mut scenario = resolve(draft).scenario;
    let sees = Case::of(&scenario)
        .model
        .is_some_and(|model| model.category == ModelCategory::VisionLanguage);
    let mut has = |part: &&&str| {
        let Some(lora) = &mut scenario.training.lora else {
            return false;
        };
        lora.exclude = vec![(**part).to_string()];
        estimate::unmatched(&Case::of(&scenario)).is_ok_and(|missing| missing.is_empty())
    };
    let parts: Vec<&str> = PARTS
        .iter()
        .filter(|_| sees)
        .filter(&mut has)
        .copied()
        .collect();
    if !parts.is_empty() {
        let origin = Origin::Assumed("what sees the images is frozen".into());
        draft.read(setting, &parts.join(","), origin);
    }
}

/// A linear probe: the last layer by any of its usual names; whether the network has one.
pub(super) fn head_alone(facts: &Facts, draft: &mut Draft) -> bool {
    const HEADS: &[&str] = &[
        "classifier",
        "fc",
        "head",
        "heads",
        "score",
        "cls",
        "lm_head",
    ];
    let Fact::Known {
        value: Trained::Part(part),
        ..
    } = &facts.trained
    else {
        return false;
    };
    let layers = estimate::linear_layers(&Case::of(&resolve(draft).scenario)).unwrap_or_default();
    let head = HEADS
        .iter()
        .find(|head| layers.iter().any(|layer| layer == *head));
    let setting = settings::find("training.train_only");
    let (true, Some(head), Some(setting)) = (part == "head", head, setting) else {
        return false;
    };
    draft.read(setting, head, Origin::Assumed("a linear probe".into()));
    true
}

/// Adapters of which nothing says where they go, on a network that has none of the layers that they are on by default: its
/// attention's projections, as diffusers' and PEFT's scripts adapt.
pub(super) fn attention_projections(draft: &mut Draft) {
    let Some(setting) = settings::find(TARGETS).filter(|one| draft.get(one).is_none()) else {
        return;
    };
    let scenario = resolve(draft).scenario;
    let Some(lora) = &scenario.training.lora else {
        return;
    };
    let layers = estimate::linear_layers(&Case::of(&scenario)).unwrap_or_default();
    let has = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        layers.iter().any(|layer| layer == name || layer == last)
    };
    if lora.targets.iter().any(|name| has(name)) {
        return;
    }
    let found = estimate::attention_projections(&Case::of(&scenario)).unwrap_or_default();
    if !found.is_empty() {
        let origin = Origin::Assumed("its attention's projections".into());
        draft.read(setting, &found.join(","), origin);
    }
}

/// What a critic leaves on the GPUs while the policy is updated: a run of its own, without a head over the vocabulary, between its
/// steps.
pub(super) fn critic(facts: &Facts, draft: &mut Draft) -> Option<String> {
    let setting = settings::find("runtime.kept_mib")?;
    let apart = facts.task.value() == Some(&Task::Ppo);
    let policy = resolve(draft).scenario;
    if !apart || policy.training.task.objective != Objective::Grpo {
        return None;
    }
    let said = "PPO: the estimate is of the policy's update";
    if facts.critic_stays.value() == Some(&false) {
        return Some(format!("{said}; its critic is elsewhere meanwhile"));
    }
    let mut critic = policy;
    critic.training.task = headroom_scenario::Task::default();
    critic.model.dims.insert("tied".into(), 1);
    let stays = estimate::estimate(&critic).ok()?.between_steps;
    let origin = Origin::Assumed("the critic's parameters and optimizer states".into());
    draft.read(setting, &stays.as_mib().ceil().to_string(), origin);
    Some(format!(
        "{said}, with the critic's parameters and optimizer states beside it: {stays}"
    ))
}

const TARGETS: &str = "training.lora.targets";
const EVERY_LAYER: &str = "every linear layer";

fn set_every_layer(setting: SettingId, draft: &mut Draft, scenario: &Scenario) {
    let layers = estimate::linear_layers(&Case::of(scenario)).unwrap_or_default();
    if !layers.is_empty() {
        let origin = Origin::Assumed(EVERY_LAYER.into());
        draft.read(setting, &layers.join(","), origin);
    }
}

/// Puts adapters of which nobody said where they go on every linear layer of the model: no one list of names fits all models.
pub fn adapt_every_layer(draft: &mut Draft) {
    let said = settings::find("training.lora").and_then(|setting| draft.get(setting));
    let adapted_here = said.is_some_and(|(_, origin)| {
        matches!(
            origin,
            Origin::User | Origin::File { .. } | Origin::Assumed(_)
        )
    });
    // A link without names means its format's.
    let is_open = draft.format().is_none() || adapted_here;
    let Some(setting) = settings::find(TARGETS).filter(|_| is_open) else {
        return;
    };
    let ours = Origin::Assumed(EVERY_LAYER.into());
    if draft
        .get(setting)
        .is_some_and(|(_, origin)| *origin == ours)
    {
        // Another model has other layers, and a run without adapters none.
        draft.forget(setting);
    }
    let resolved = resolve(draft);
    let open = matches!(resolved.origins.get(setting), Some(Origin::Format(_)));
    if open && resolved.scenario.training.lora.is_some() {
        set_every_layer(setting, draft, &resolved.scenario);
    }
}
