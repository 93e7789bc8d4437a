//! What follows from the model's entry in the catalogue.

use super::{Origin, Values};
use crate::settings::{self, Value};
use crate::{Case, Scenario};

/// The default sequence is no longer than the model has positions.
pub(super) fn apply(scenario: &Scenario, values: &mut Values) {
    let model = Case::of(scenario).listed_model();
    let positions = model.and_then(|model| Some((model.id, model.longest()?)));
    let (Some((model, positions)), Some(sequence)) = (positions, settings::find("data.sequence"))
    else {
        return;
    };
    let longer =
        |(value, _): &(Value, Origin)| matches!(value, Value::Whole(length) if *length > positions);
    if positions > 0 && values.get(sequence).is_some_and(longer) {
        let origin = Origin::Catalogue { model };
        values.insert(sequence, (Value::Whole(positions), origin));
    }
}
