//! The answer as Markdown, for issues, notebooks and chats.

use crate::fits::breakdown::lines::lines;
use crate::fits::verdict::Sentence;
use crate::shared::session::Answer;
use crate::text;
use headroom_base::units::UnitStyle;

/// The sentence, the breakdown, and the link.
pub fn markdown(answer: &Answer, units: UnitStyle, link: &str, origin: &str) -> Option<String> {
    let estimate = answer.estimate.as_ref()?;
    let about = text::about(&answer.scenario);
    let sentence = Sentence::of(estimate, units).full_text();
    let mut page = format!("**{about}**\n\n{sentence}\n\n| part | size | share |\n|---|--:|--:|\n");
    for line in lines(estimate, units) {
        let (_, label, _) = line.piece.describe();
        page.push_str(&format!("| {label} | {} | {} |\n", line.bytes, line.share));
    }
    page.push_str(&format!("\n[{}]({link}) ({origin})\n", text::OPEN_IN));
    Some(page)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shared::sample;

    #[test]
    fn the_summary_has_the_sentence_the_parts_and_the_link() {
        let answer = Answer {
            estimate: Some(Arc::new(sample::estimate())),
            ..Answer::default()
        };
        let page = markdown(
            &answer,
            UnitStyle::Binary,
            "https://example.org/#v=1",
            "Headroom 1",
        )
        .unwrap();
        assert!(page.contains("Needs 10.0 GiB (9.50–11.0) of 20.0: fits, 10.0 spare."));
        assert!(page.contains("| Activations | 5.00 GiB | 50 % |"));
        assert!(page.ends_with("(https://example.org/#v=1) (Headroom 1)\n"));
        assert_eq!(
            markdown(&Answer::default(), UnitStyle::Binary, "", ""),
            None
        );
    }
}
