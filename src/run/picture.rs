//! The answer as a self-contained drawing: the sentence, the bar to scale, its parts, and the link.

use crate::fits::breakdown::lines::lines;
use crate::fits::gauge::{Gauge, pieces};
use crate::fits::verdict::Sentence;
use crate::shared::colours::COLOURS;
use crate::shared::origin::metadata;
use crate::shared::session::Answer;
use crate::text;
use headroom_base::units::UnitStyle;

const WIDTH: f64 = 720.0;
const EDGE: f64 = 24.0;

/// The drawing; `address` is the page's address with the link.
pub fn picture(answer: &Answer, units: UnitStyle, address: &str, origin: &str) -> Option<String> {
    let estimate = answer.estimate.as_ref()?;
    let gauge = Gauge::of(estimate, units);
    let across = WIDTH - 2.0 * EDGE;
    let at = |percent: f64| EDGE + percent / 100.0 * across;
    let parts = lines(estimate, units);
    let height = height(parts.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#555\">\
         <title>{}</title>{}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
        escape(&Sentence::of(estimate, units).full_text()),
        metadata(address, origin),
    );
    let about = text::about(&answer.scenario);
    svg.push_str(&format!(
        "<text x=\"{EDGE}\" y=\"28\">{}</text><text x=\"{EDGE}\" y=\"58\" font-size=\"22\" fill=\"#111\">{}</text>",
        escape(&cut(&about, 118)),
        escape(&Sentence::of(estimate, units).full_text())
    ));
    if let Some((limit, name)) = &gauge.limit {
        let limit = at(*limit);
        svg.push_str(&format!(
            "<rect x=\"{EDGE}\" y=\"94\" width=\"{:.1}\" height=\"34\" fill=\"#eee\"/>\
             <text x=\"{limit:.1}\" y=\"84\" text-anchor=\"end\">{name}</text>",
            limit - EDGE
        ));
    }
    for segment in &gauge.segments {
        svg.push_str(&format!(
            "<rect x=\"{:.1}\" y=\"94\" width=\"{:.1}\" height=\"34\" fill=\"{}\" stroke=\"#fff\"/>",
            at(segment.start),
            segment.width / 100.0 * across,
            colour(segment.piece.describe().0)
        ));
    }
    if let Some((limit, _)) = &gauge.limit {
        let limit = at(*limit);
        svg.push_str(&format!(
            "<path d=\"M{limit:.1} 88v46\" stroke=\"#111\" stroke-width=\"2\"/>"
        ));
    }
    for (index, line) in parts.iter().enumerate() {
        let (id, label, _) = line.piece.describe();
        let x = if index % 2 == 0 { EDGE } else { WIDTH / 2.0 };
        let y = 150 + index / 2 * 22;
        svg.push_str(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{label}</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#111\">{}</text>",
            colour(id),
            x + 20.0,
            y + 11,
            x + 300.0,
            y + 11,
            line.bytes
        ));
    }
    svg.push_str(&format!(
        "<text x=\"{EDGE}\" y=\"{}\" font-size=\"10\"><a href=\"{}\">{}</a></text></svg>\n",
        height - 10,
        escape(address),
        escape(&cut(&format!("{origin}  {address}"), 130))
    ));
    Some(svg)
}

/// The size of the drawing.
pub fn size(answer: &Answer) -> (u32, u32) {
    let parts = answer
        .estimate
        .as_ref()
        .map_or(0, |estimate| pieces(estimate).len());
    (WIDTH as u32, height(parts) as u32)
}

fn height(parts: usize) -> usize {
    176 + parts.div_ceil(2) * 22
}

fn colour(id: &str) -> &'static str {
    let known = COLOURS.iter().find(|(name, _)| *name == id);
    known.map_or("#888", |(_, colour)| colour)
}

fn cut(text: &str, most: usize) -> String {
    let short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        return format!("{short}…");
    }
    short
}

/// Escapes text for SVG.
fn escape(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::field::open::{Opened, opened};
    use crate::shared::sample;
    use headroom_scenario::Scenario;
    use headroom_scenario::resolve::resolve;
    use headroom_scenario::share;

    #[test]
    fn the_drawing_opens_as_the_scenario_it_shows() {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = 3;
        scenario.hardware.gpu = "]]><b>".into();
        let answer = Answer {
            estimate: Some(Arc::new(sample::estimate())),
            scenario: Arc::new(scenario.clone()),
            ..Answer::default()
        };
        let address = format!("https://example.org/#{}", share::write(&scenario));
        let svg = picture(&answer, UnitStyle::Binary, &address, "Headroom").unwrap();
        assert!(svg.contains("Needs 10.0 GiB") && svg.contains(">Activations<"));
        assert!(!svg.contains("<b>") && svg.matches("]]>").count() == 1);
        match opened("", &svg, &Scenario::default()) {
            Opened::Scenario { draft, .. } => {
                assert_eq!(resolve(&draft).scenario.data.micro_batch, 3);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(picture(&Answer::default(), UnitStyle::Binary, "", ""), None);
    }

    #[test]
    fn every_part_has_a_colour() {
        let sheet = include_str!("../../style/tokens.css");
        for (id, _) in COLOURS {
            assert!(sheet.contains(&format!("--part-{id}:")), "{id}");
        }
        let parts = sheet.matches("--part-").count();
        assert_eq!(parts, COLOURS.len());
    }
}
