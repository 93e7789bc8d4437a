//! One module or layer: its tensors at the peak, their shapes, and what keeps them alive.

use leptos::prelude::*;

use crate::shared::session::{Answer, Session};
use crate::shared::signals::memo;
use crate::shared::table::Table;
use crate::text;
use headroom_base::DType;
use headroom_base::order::distinct;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_core::estimate::{At, Prediction, TensorDetail};

/// The tensors of one module or layer.
#[component]
pub fn Inside() -> impl IntoView {
    let session = Session::current();
    let places = memo(move || {
        let places = |answer: &Answer| answer.prediction.as_deref().map(places);
        session.settled.with(places).unwrap_or_default()
    });
    let chosen = RwSignal::new(String::new());
    // If the network changed and has no such module, show the first layer.
    let module = memo(move || {
        let chosen = chosen.get();
        places.with(|all| {
            let known = all.iter().find(|place| **place == chosen);
            let layer = || all.iter().find(|place| place.ends_with('*'));
            let module = known.or_else(layer).or(all.first());
            module.cloned().unwrap_or_default()
        })
    });
    let options = move || {
        let option = |place: String| {
            let selected = module.with_untracked(|module| *module == place);
            view! { <option selected=selected>{place.clone()}</option> }
        };
        places.get().into_iter().map(option).collect_view()
    };
    let table = move || {
        let units = session.units.get();
        let read = |answer: &Answer| tensors(answer.prediction.as_deref()?, &module.get(), units);
        let rows = session.settled.with(read)?;
        let head = vec![
            "Made by", "In", "Shape", "Type", "Kept for", "Tensors", "Total",
        ];
        Some(view! { <Table class="tensors" head numbers=2 rows/> })
    };
    view! {
        <p class="actions inside">
            <label for="inside">{text::INSIDE}</label>
            <select
                id="inside"
                class="plain"
                prop:value=move || module.get()
                on:change=move |event| chosen.set(event_target_value(&event))
            >
                {options}
            </select>
        </p>
        <div
            class="scroller"
            tabindex="0"
            role="region"
            aria-label=text::TENSORS
            data-testid="inside"
        >
            {table}
        </div>
    }
}

/// The selectable modules: every layer of a stack, and every module with live tensors.
pub fn places(prediction: &Prediction) -> Vec<String> {
    let groups = prediction.tensors(At::Peak).unwrap_or_default();
    let layer = |module: &str| Some(format!("{}.*", module.split_once(".*.")?.0));
    let modules = groups.into_iter().map(|group| group.module);
    let places = modules.flat_map(|module| [layer(&module), Some(module)]);
    distinct(places.flatten().filter(|place| !place.is_empty()))
}

/// The tensors alive inside a module at the peak: their shapes, and why they are kept.
pub fn tensors(
    prediction: &Prediction,
    module: &str,
    units: UnitStyle,
) -> Option<Vec<Vec<String>>> {
    const MOST: usize = 40;
    let all = prediction.tensors_in(module).ok()?;
    let rest: Bytes = all
        .iter()
        .skip(MOST)
        .map(|tensor| tensor.group.total())
        .sum();
    let mut rows: Vec<_> = all
        .iter()
        .take(MOST)
        .map(|tensor| cells(tensor, units))
        .collect();
    if rest > Bytes::ZERO {
        let mut row = vec![String::new(); 7];
        row[0] = text::SMALLER.into();
        row[6] = rest.show(units);
        rows.push(row);
    }
    Some(rows)
}

fn cells(detail: &TensorDetail, units: UnitStyle) -> Vec<String> {
    let TensorDetail {
        group,
        shape,
        dtype,
        saved_for,
    } = detail;
    let sizes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let why = if saved_for.is_empty() {
        text::category(group.category).1.to_ascii_lowercase()
    } else {
        text::kept_for(&saved_for.join(", "))
    };
    vec![
        group.op.into(),
        group.module.clone(),
        if sizes.is_empty() {
            "–".into()
        } else {
            sizes.join(" × ")
        },
        dtype.map_or("–", DType::name).into(),
        why,
        group.count.to_string(),
        group.total().show(units),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::Scenario;

    #[test]
    fn a_layer_shows_its_tensors() {
        let prediction = Prediction::new(Scenario::default());
        let places = places(&prediction);
        assert!(places.contains(&"transformer.h.*".into()) && !places.contains(&String::new()));
        let rows = tensors(&prediction, "transformer.h.*", UnitStyle::Binary).unwrap();
        let [_, module, shape, dtype, why, count, _] = &rows[0][..] else {
            unreachable!("seven columns")
        };
        let shown = [module, shape, dtype, why, count].map(String::as_str);
        let expected = [
            "transformer.h.*.mlp",
            "8 × 1024 × 3072",
            "float32",
            "backward of pow",
            "12",
        ];
        assert_eq!(shown, expected);
    }
}
