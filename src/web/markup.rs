//! Tables and bars as HTML text. What only shows and never listens is written out, which costs the download a
//! fraction of what views of it would.

/// Text that stands for itself inside HTML.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// A table: its first column names the rows, and the last `numbers` columns are numbers.
pub fn table(class: &str, head: &[&str], numbers: usize, rows: &[Vec<String>]) -> String {
    let cell = |html: &mut String, tag: &str, number: bool, text: &str| {
        let (name, _) = tag.split_once(' ').unwrap_or((tag, ""));
        let class = if number { " class=\"number\"" } else { "" };
        html.push_str(&format!("<{tag}{class}>{}</{name}>", escape(text)));
    };
    let is_number = |column| column + numbers >= head.len();
    let mut html = format!("<table class=\"{class}\"><thead><tr>");
    for (column, text) in head.iter().enumerate() {
        cell(&mut html, "th scope=\"col\"", is_number(column), text);
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (column, text) in row.iter().enumerate() {
            let tag = if column == 0 {
                "th scope=\"row\""
            } else {
                "td"
            };
            cell(&mut html, tag, is_number(column), text);
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_with_its_scopes_and_without_trust() {
        let html = table(
            "t",
            &["Part", "Size"],
            1,
            &[vec!["<b>".into(), "1 & 2".into()]],
        );
        let expected = "<table class=\"t\"><thead><tr><th scope=\"col\">Part</th>\
            <th scope=\"col\" class=\"number\">Size</th></tr></thead><tbody><tr>\
            <th scope=\"row\">&lt;b&gt;</th><td class=\"number\">1 &amp; 2</td></tr></tbody></table>";
        assert_eq!(html, expected);
    }
}
