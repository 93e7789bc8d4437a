//! A field's markup. It is written out once; what it shows follows the draft by name.

use crate::scenario::settings::{Setting, ValueType};
use crate::web::markup::escape;
use crate::web::text;

/// A folded group, which has room to say how many of its settings differ from the defaults.
pub fn room<'a>(id: &str, title: &str, fields: impl Iterator<Item = &'a Setting>) -> String {
    let fields: String = fields.map(field).collect();
    let title = escape(&text::more(title));
    format!(
        "<details><summary>{title}<span class=\"count\" id=\"count.{id}\"></span></summary>\
         <div class=\"fields\">{fields}</div></details>"
    )
}

/// One setting: its label, its control, and room for what is wrong with it.
pub fn field(setting: &Setting) -> String {
    let (class, path) = (class(setting), setting.path);
    // A switch carries its label beside it.
    let label = match setting.value_type {
        ValueType::Switch => String::new(),
        _ => label(setting),
    };
    let (control, notes) = (control(setting), notes(setting));
    format!("<div class=\"field{class}\" data-path=\"{path}\">{label}{control}{notes}</div>")
}

/// A setting whose values are a catalogue: what searches it goes into the slot of its section.
pub fn searched(setting: &Setting) -> String {
    let class = match setting.value_type {
        ValueType::Gpu => "long",
        _ => "wide",
    };
    let (label, notes) = (label(setting), notes(setting));
    let (path, slot) = (setting.path, setting.section());
    format!(
        "<div class=\"field {class}\" data-path=\"{path}\">{label}<slot name=\"{slot}\"></slot>{notes}</div>"
    )
}

fn label(Setting { path, label, .. }: &Setting) -> String {
    let (label, changed) = (escape(label), text::CHANGED_SETTING);
    format!("<label for=\"{path}\">{label}<span class=\"changed\" hidden>{changed}</span></label>")
}

fn notes(Setting { path, help, .. }: &Setting) -> String {
    let help = escape(help);
    format!(
        "<p class=\"aside\" id=\"{path}.help\">{help}</p><p class=\"hint wrong\" id=\"{path}.hint\"></p>"
    )
}

/// Lists and names need the whole row.
fn class(setting: &Setting) -> &'static str {
    match setting.value_type {
        ValueType::Switch => " switch",
        ValueType::Words | ValueType::Sizes | ValueType::Choice(_) => " wide",
        _ if setting.path == "hardware.gpus" => " short",
        _ => "",
    }
}

fn control(setting: &Setting) -> String {
    let Setting { path, label, .. } = setting;
    let name =
        format!("id=\"{path}\" name=\"{path}\" aria-describedby=\"{path}.hint {path}.help\"");
    match setting.value_type {
        ValueType::Switch => format!(
            "<label><input {name} type=\"checkbox\">{}</label>",
            escape(label)
        ),
        ValueType::Choice(choices) => {
            let option = |id: &str, label: &str| {
                format!("<option value=\"{id}\">{}</option>", escape(label))
            };
            let options: String = choices.iter().map(|it| option(it.id, it.label)).collect();
            format!("<select {name}>{options}</select>")
        }
        _ => {
            let mode = match setting.value_type {
                ValueType::Whole { .. } | ValueType::Number { .. } => "decimal",
                _ => "text",
            };
            let unit = escape(setting.unit);
            format!(
                "<div class=\"boxed\"><input {name} type=\"text\" autocomplete=\"off\" spellcheck=\"false\" \
                 inputmode=\"{mode}\"><span class=\"unit\" aria-hidden=\"true\">{unit}</span></div>"
            )
        }
    }
}
