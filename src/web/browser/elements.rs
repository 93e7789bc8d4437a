//! Elements of the page that are found by a selector: what they show, and which of them has the keyboard.

use js_sys::Reflect;
use leptos::prelude::document;
use leptos::reactive::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, HtmlInputElement, HtmlSelectElement, NodeList};

use super::breathe;
use crate::web::draft::Shown;

/// Gives the class to those elements whose attribute has the value, and takes it from the others.
pub fn mark_only(selector: &str, attribute: &str, value: &str, class: &str) {
    for it in all(selector) {
        let is_meant = it.get_attribute(attribute).as_deref() == Some(value);
        // A class name without spaces is never refused.
        let _ = it.class_list().toggle_with_force(class, is_meant);
    }
}

/// Selects the element of that id, and no other that the selector finds.
pub fn select_only(selector: &str, id: &str) {
    for it in all(selector) {
        // An attribute of that name is never refused.
        let _ = it.set_attribute(
            "aria-selected",
            if it.id() == id { "true" } else { "false" },
        );
    }
}

/// Puts a value into a field of any kind.
pub fn set_value(field: &Element, value: &str) {
    // What has no value ignores it.
    let _ = Reflect::set(field, &"value".into(), &value.into());
}

/// All elements that the selector finds.
fn all(selector: &str) -> impl Iterator<Item = Element> {
    let found = document().query_selector_all(selector).ok();
    let count = found.as_ref().map_or(0, NodeList::length);
    (0..count).filter_map(move |at| found.as_ref()?.get(at)?.dyn_into().ok())
}

/// Marks the fields whose ids are given as wrong, and no others.
pub fn mark_invalid(selector: &str, ids: &[String]) {
    for it in all(selector) {
        let wrong = ids.contains(&it.id());
        // An attribute of that name is never refused.
        let _ = it.set_attribute("aria-invalid", if wrong { "true" } else { "false" });
    }
}

/// Puts into a field what it shows; the field that is being typed in holds that already.
pub fn show_field(path: &str, shown: &Shown) {
    let found = |id: &str| document().get_element_by_id(id);
    let Some(control) = found(path) else {
        return;
    };
    let problem = shown.problem.as_deref();
    if let Some(hint) = found(&format!("{path}.hint")) {
        hint.set_text_content(problem);
    }
    // A selector of ours is never refused, and an attribute's name neither.
    if let Ok(Some(field)) = control.closest(".field") {
        let _ = field.toggle_attribute_with_force("hidden", !shown.applies);
        if let Ok(Some(mark)) = field.query_selector(".changed") {
            let _ = mark.toggle_attribute_with_force("hidden", !shown.changed);
        }
    }
    if let Some(input) = control.dyn_ref::<HtmlInputElement>() {
        let _ = control.set_attribute(
            "aria-invalid",
            if problem.is_some() { "true" } else { "false" },
        );
        if input.type_() == "checkbox" {
            input.set_checked(shown.text == "on");
        } else if !control.has_attribute("role") && input.value() != shown.text {
            // A list that searches shows names of its own.
            input.set_value(&shown.text);
        }
    } else if let Some(select) = control.dyn_ref::<HtmlSelectElement>() {
        select.set_value(&shown.text);
    }
}

/// Gives each element the text that belongs to its id.
pub fn set_texts(selector: &str, text: impl Fn(&str) -> String) {
    for it in all(selector) {
        it.set_text_content(Some(&text(&it.id())));
    }
}

/// Moves the keyboard to the first element that the selector finds.
pub fn focus(selector: &str) {
    let found = document().query_selector(selector).ok().flatten();
    if let Some(element) = found.and_then(|it| it.dyn_into::<HtmlElement>().ok()) {
        // Focus that is refused stays where it was.
        let _ = element.focus();
    }
}

/// The same, once the page has been drawn anew.
pub fn focus_soon(selector: String) {
    spawn_local(async move {
        breathe().await;
        focus(&selector);
    });
}

/// Keeps the keyboard where it is in a part that is drawn anew; its element is known by its id.
pub fn keep_focus(part: &str) {
    let active = document().active_element();
    let inside = active.filter(|it| matches!(it.closest(part), Ok(Some(_))));
    if let Some(id) = inside.map(|it| it.id()) {
        spawn_local(async move {
            breathe().await;
            let now = document().active_element();
            // Anything but the whole page has been chosen meanwhile.
            if now.is_none_or(|it| it.tag_name() == "BODY") {
                focus(&format!("[id=\"{id}\"]"));
            }
        });
    }
}
