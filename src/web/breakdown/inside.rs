//! One module or one layer: its tensors at the peak, what they look like, and what keeps them.

use leptos::prelude::*;

use crate::estimate::{self, Held, Kept};
use crate::order::distinct;
use crate::scenario::Scenario;
use crate::tape::DType;
use crate::units::{Bytes, UnitStyle};
use crate::web::part::Part;
use crate::web::session::Session;
use crate::web::signals::memo;
use crate::web::{browser, markup, text};

/// One module's or one layer's tensors, as they look.
pub fn view(session: Session) -> Part {
    let places = memo(move || session.answer.with(|it| places(&it.scenario)));
    let chosen = RwSignal::new(String::new());
    // Another network has other modules: the first is then as good as any.
    let module = memo(move || {
        let chosen = chosen.get();
        places.with(|all| {
            let known = all.iter().find(|it| **it == chosen);
            let layer = || all.iter().find(|it| it.ends_with('*'));
            known
                .or_else(layer)
                .or(all.first())
                .cloned()
                .unwrap_or_default()
        })
    });
    let options = move || {
        let option = |it: &String| {
            let chosen = if module.with(|at| at == it) {
                " selected"
            } else {
                ""
            };
            format!("<option{chosen}>{}</option>", markup::escape(it))
        };
        places.with(|all| all.iter().map(option).collect::<String>())
    };
    let table = move || {
        let units = session.units.get();
        let rows = session
            .answer
            .with(|it| kept(&it.scenario, &module.get(), units));
        let head = [
            "Made by",
            "In",
            "Shape",
            "Type",
            "There for",
            "Tensors",
            "Together",
        ];
        rows.map(|rows| markup::table("tensors", &head, 2, &rows))
            .unwrap_or_default()
    };
    let title = text::INSIDE;
    Part::new(&format!(
        r#"<p class="actions inside">
            <label for="inside">{title}</label>
            <select id="inside" class="plain"></select>
        </p>
        <div class="scroller" tabindex="0" role="region" aria-label="{title}" data-testid="inside"></div>"#
    ))
    .html("select", options)
    .on("select", "change", move |event| chosen.set(browser::value_under(&event)))
    .html(".scroller", table)
}

/// Where one can look: each layer of a row of equal ones, and every module that holds something.
pub fn places(scenario: &Scenario) -> Vec<String> {
    let held = estimate::held_at_peak(scenario).unwrap_or_default();
    let around = |it: &str| Some(format!("{}.*", it.split_once(".*.")?.0));
    let both = |Held { module, .. }| [around(&module), Some(module)];
    let places = held.into_iter().flat_map(both).flatten();
    distinct(places.filter(|it| !it.is_empty()))
}

/// What is alive inside a module at the peak: what it looks like, and why it is there.
pub fn kept(scenario: &Scenario, module: &str, units: UnitStyle) -> Option<Vec<Vec<String>>> {
    const MOST: usize = 40;
    let all = estimate::kept_in(scenario, module).ok()?;
    let rest: Bytes = all.iter().skip(MOST).map(|it| it.held.all()).sum();
    let mut rows: Vec<_> = all.iter().take(MOST).map(|it| words(it, units)).collect();
    if rest > Bytes::ZERO {
        let mut row = vec![String::new(); 7];
        row[0] = text::SMALLER.into();
        row[6] = rest.show(units);
        rows.push(row);
    }
    Some(rows)
}

fn words(it: &Kept, units: UnitStyle) -> Vec<String> {
    let sizes: Vec<_> = it.shape.iter().map(ToString::to_string).collect();
    let why = if it.kept_for.is_empty() {
        text::category(it.held.category).1.to_ascii_lowercase()
    } else {
        text::kept_for(&it.kept_for.join(", "))
    };
    vec![
        it.held.op.into(),
        it.held.module.clone(),
        if sizes.is_empty() {
            "–".into()
        } else {
            sizes.join(" × ")
        },
        it.dtype.map_or("–", DType::name).into(),
        why,
        it.held.count.to_string(),
        it.held.all().show(units),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_can_be_looked_into() {
        let scenario = Scenario::default();
        let places = places(&scenario);
        assert!(places.contains(&"transformer.h.*".into()) && !places.contains(&String::new()));
        let rows = kept(&scenario, "transformer.h.*", UnitStyle::Binary).unwrap();
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
