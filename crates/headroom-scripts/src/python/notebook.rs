//! Notebooks: their code cells as one text.

use headroom_base::document::{Document, json};

/// The code of a notebook, where the text is one. Lines of IPython stay; cells of another language become calls, as
/// IPython itself writes them.
pub fn notebook(text: &str) -> Option<String> {
    if !text.trim_start().starts_with('{') || !text.contains("\"cells\"") {
        return None;
    }
    let document = json::read(text).ok()?;
    let Some(Document::List(cells)) = document.get("cells") else {
        return None;
    };
    let mut code = String::new();
    for cell in cells {
        if !matches!(cell.get("cell_type"), Some(Document::Text(kind)) if kind == "code") {
            continue;
        }
        let source = match cell.get("source") {
            Some(Document::Text(source)) => source.clone(),
            Some(Document::List(lines)) => lines
                .iter()
                .filter_map(|line| match line {
                    Document::Text(line) => Some(line.as_str()),
                    _ => None,
                })
                .collect(),
            _ => continue,
        };
        code.push_str(&of_cell(&source));
        code.push('\n');
    }
    Some(code)
}

fn of_cell(source: &str) -> String {
    let body = source.trim_start();
    let Some(rest) = body.strip_prefix("%%") else {
        return source.to_string();
    };
    let (first, body) = rest.split_once('\n').unwrap_or((rest, ""));
    let (kind, line) = first.trim().split_once(' ').unwrap_or((first.trim(), ""));
    match kind {
        "bash" | "sh" | "script" | "shell" | "writefile" | "file" => format!(
            "get_ipython().run_cell_magic({}, {}, {})",
            quoted(kind),
            quoted(line),
            quoted(body)
        ),
        "time" | "timeit" | "capture" | "wandb" | "prun" => body.to_string(),
        _ => String::new(),
    }
}

/// A text as Python writes it.
fn quoted(text: &str) -> String {
    let mut made = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\\' => made.push_str("\\\\"),
            '"' => made.push_str("\\\""),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            other => made.push(other),
        }
    }
    made.push('"');
    made
}
