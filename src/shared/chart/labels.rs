//! Measures and places labels: none overlaps another or leaves its drawing.

/// The width of a character, relative to the font size: labels are monospaced.
pub const CHARACTER: f64 = 0.6;

/// The gap between two labels in a row, in characters.
const GAP: f64 = 1.0;

/// A label with its preferred position in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub text: String,
    /// The preferred position, in pixels.
    pub at: f64,
    pub anchor: Anchor,
}

/// The part of the label that is at the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The width of a text at a font size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * CHARACTER * size
}

/// The left edges of labels in one row, given in order of importance: one that would leave the row is moved inside, one
/// that would overlap a more important one is omitted.
pub fn row(labels: &[Label], size: f64, from: f64, to: f64) -> Vec<Option<f64>> {
    let mut taken: Vec<(f64, f64)> = Vec::new();
    let gap = GAP * CHARACTER * size;
    let place = |label: &Label| {
        let width = width(&label.text, size);
        let wanted = match label.anchor {
            Anchor::Start => label.at,
            Anchor::Middle => label.at - width / 2.0,
            Anchor::End => label.at - width,
        };
        let left = wanted.min(to - width).max(from);
        let right = left + width;
        let is_free = taken
            .iter()
            .all(|(start, end)| right + gap <= *start || left >= *end + gap);
        (is_free && right <= to + 0.5).then(|| {
            taken.push((left, right));
            left
        })
    };
    labels.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_inside_and_apart() {
        #[track_caller]
        fn check(labels: &[(&str, f64, Anchor)], expected: &[Option<f64>]) {
            let labels: Vec<Label> = labels
                .iter()
                .map(|(text, at, anchor)| Label {
                    text: (*text).into(),
                    at: *at,
                    anchor: *anchor,
                })
                .collect();
            assert_eq!(row(&labels, 10.0, 0.0, 100.0), expected);
        }
        use Anchor::{End, Middle, Start};
        check(&[("four", 10.0, Start)], &[Some(10.0)]);
        // Moved in at either end.
        check(&[("four", 95.0, Start)], &[Some(76.0)]);
        check(&[("four", 3.0, End)], &[Some(0.0)]);
        // The first of two wins.
        check(
            &[("four", 50.0, Middle), ("ninth", 60.0, Start)],
            &[Some(38.0), None],
        );
        check(
            &[("four", 0.0, Start), ("four", 30.0, Start)],
            &[Some(0.0), Some(30.0)],
        );
        // Wider than all there is.
        check(&[("a very long label indeed", 0.0, Start)], &[None]);
    }
}
