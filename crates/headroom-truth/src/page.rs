//! A report as a page: every case in a table, family by family, the worst first, and a plot of predicted against true.

use super::score::{Report, Row, Summary};

const GIB: f64 = (1_u64 << 30) as f64;

/// The share of truths that a band is to hold, in percent.
const MEANT_TO_HOLD: u32 = 95;

/// The report in Markdown under a heading; `plot` is the file that `plot` was written to.
pub fn markdown(report: &Report, title: &str, plot: &str) -> String {
    let mut page = format!(
        "## {title}\n\n`{}`\n\n![Predicted against true, {title}]({plot})\n\n",
        report.all
    );
    if !report.selected.is_empty() {
        page.push_str("Runs on one GPU with a named metric and all settings stated, by metric:\n\n| metric | cases | expressed | median | p90 | inside the band |\n|---|--:|--:|--:|--:|--:|\n");
    }
    for (class, of) in &report.selected {
        let expressed = format!("{:.1}%", of.expressed);
        let [median, p90] = [of.median, of.p90].map(|error| of.percent(error, 3));
        let cells = [expressed, median, p90, of.percent(of.inside, 1)];
        page.push_str(&format!(
            "| {class} | {} | {} |\n",
            of.cases,
            spaced(&cells)
        ));
    }
    if !report.selected.is_empty() {
        page.push('\n');
    }
    page.push_str("| family | cases | unsupported | median | p90 | max | worst under |\n|---|--:|--:|--:|--:|--:|--:|\n");
    let mut families: Vec<(&String, &Summary)> = report.by.iter().collect();
    families.sort_by(|(a, x), (b, y)| y.max.total_cmp(&x.max).then_with(|| a.cmp(b)));
    for (name, summary) in &families {
        let (cases, unsupported) = (summary.cases, summary.unsupported);
        page.push_str(&format!(
            "| {name} | {cases} | {unsupported} | {} |\n",
            spaced(&summary.errors())
        ));
    }
    for (name, _) in families {
        page.push_str(&format!("\n### {name}\n\n"));
        family(
            &mut page,
            report.rows.iter().filter(|row| row.group == *name),
        );
    }
    page.push('\n');
    page
}

/// Rows of a table: what a figure is of, the share of truths that its band is meant to hold, the share that it held, and of how many.
pub fn coverage(report: &Report, title: &str) -> String {
    let rows = report.coverage().into_iter().map(|(kind, of)| {
        let comma = if kind.is_empty() { "" } else { ", " };
        let held = 100.0 * of.inside as f64 / of.cases.max(1) as f64;
        format!(
            "| {title}{comma}{kind} | {MEANT_TO_HOLD} % | {held:.1} % | {} |\n",
            of.cases
        )
    });
    rows.collect()
}

/// Cells of a table's row, with a space before each sign of percent.
fn spaced(cells: &[String]) -> String {
    cells.join(" | ").replace('%', " %")
}

fn family<'a>(page: &mut String, rows: impl Iterator<Item = &'a Row>) {
    let (mut scored, unsupported): (Vec<&Row>, Vec<&Row>) =
        rows.partition(|row| row.unsupported.is_none());
    scored.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.id.cmp(&b.id)));
    if !scored.is_empty() {
        page.push_str("| case | true | predicted | error |\n|---|--:|--:|--:|\n");
    }
    for row in scored {
        let gib = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / GIB;
        page.push_str(&format!(
            "| {} | {:.4} GiB | {:.4} GiB | {:+.4} % |\n",
            row.id,
            gib(row.truth),
            gib(row.predicted),
            row.error.unwrap_or(0.0)
        ));
    }
    if !unsupported.is_empty() {
        page.push_str("\nUnsupported:\n");
    }
    for row in unsupported {
        let why = row.unsupported.as_deref().unwrap_or_default();
        page.push_str(&format!("- `{}`: {why}\n", row.id));
    }
}

fn size(row: &Row) -> f64 {
    row.error.unwrap_or(0.0).abs()
}

/// Predicted against true on logarithmic axes, one dot a case, with the diagonal on which they are equal.
pub fn plot(report: &Report, title: &str) -> String {
    const SIDE: f64 = 520.0;
    const EDGE: f64 = 60.0;
    let pairs: Vec<(f64, f64)> = report
        .rows
        .iter()
        .filter_map(|row| Some((row.truth? as f64 / GIB, row.predicted? as f64 / GIB)))
        .filter(|(truth, predicted)| *truth > 0.0 && *predicted > 0.0)
        .collect();
    let both = pairs.iter().flat_map(|(a, b)| [a.log2(), b.log2()]);
    let low = both.clone().fold(0.0, f64::min).floor();
    let high = both.fold(1.0, f64::max).ceil();
    let place = |log: f64| (log - low) / (high - low) * SIDE;
    let x = |gib: f64| EDGE + place(gib.log2());
    let y = |gib: f64| EDGE + SIDE - place(gib.log2());
    let whole = SIDE + 2.0 * EDGE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" role=\"img\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#777\">\n<title>{title}: predicted against true</title>\n<rect x=\"{EDGE}\" y=\"{EDGE}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#999\"/>\n"
    );
    for power in low as i64..=high as i64 {
        let gib = (power as f64).exp2();
        let label = if power < 0 {
            format!("1/{}", 1_u64 << (-power).min(62))
        } else {
            format!("{}", 1_u64 << power.min(62))
        };
        let (at, up, right, foot) = (x(gib), y(gib), EDGE + SIDE, EDGE + SIDE);
        svg.push_str(&format!(
            "<path d=\"M{at:.1} {EDGE}V{foot}M{EDGE} {up:.1}H{right}\" stroke=\"#999\" stroke-opacity=\".25\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
            foot + 18.0,
            EDGE - 6.0,
            up + 4.0
        ));
    }
    let (end, start) = (EDGE + SIDE, EDGE);
    svg.push_str(&format!(
        "<path d=\"M{start} {end}L{end} {start}\" stroke=\"#999\"/>\n<g fill=\"#2a78d6\" fill-opacity=\".6\">\n"
    ));
    for (truth, predicted) in pairs {
        svg.push_str(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/>\n",
            x(truth),
            y(predicted)
        ));
    }
    svg.push_str(&format!(
        "</g>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">true peak, GiB</text>\n<text x=\"{start}\" y=\"{:.1}\">predicted peak, GiB</text>\n</svg>\n",
        whole / 2.0,
        whole - 14.0,
        EDGE - 24.0
    ));
    svg
}

#[cfg(test)]
mod tests {
    use super::super::score::report;
    use super::*;
    use headroom_base::units::Bytes;
    use headroom_core::estimate::Band;

    #[test]
    fn a_page_shows_every_case_and_the_worst_first() {
        let rows = vec![
            Row::scored("good", "g", 1 << 30, 1 << 30),
            Row::scored("bad", "g", 1 << 30, 3 << 29),
            Row::unsupported("none", "g", "why".into()),
            Row::unsupported("alone", "none", "why".into()),
        ];
        let page = markdown(&report(rows), "Cases", "cases.svg");
        let at = |text: &str| page.find(text).unwrap();
        assert!(at("| bad | 1.0000 GiB | 1.5000 GiB | +50.0000 % |") < at("| good |"));
        assert!(page.contains("- `none`: why"));
        assert!(page.contains("| g | 3 | 1 | 50.000 % | 50.000 % | 50.000 % | 0.000 % |"));
        assert!(page.contains("| none | 1 | 1 | – | – | – | – |"), "{page}");
    }

    #[test]
    fn bands_are_counted_kind_by_kind() {
        let of = |kind, truth, high| {
            let [low, expected, high] = [90, 100, high].map(Bytes::new);
            let band = Band {
                low,
                expected,
                high,
            };
            Row {
                kind,
                ..Row::scored("a", "g", truth, 100).within(Some(band))
            }
        };
        let (apart, none) = (Some("apart"), None);
        let none_stated = Row::scored("b", "g", 1, 1);
        let rows = vec![of(none, 90, 100), of(none, 101, 100), none_stated.clone()];
        let expected = "| Runs | 95 % | 50.0 % | 2 |\n";
        assert_eq!(coverage(&report(rows), "Runs"), expected);
        let rows = vec![of(apart, 110, 110), of(none, 1, 100), none_stated];
        let expected = "| Runs, apart | 95 % | 100.0 % | 1 |\n";
        assert_eq!(coverage(&report(rows), "Runs"), expected);
        assert_eq!(coverage(&report(Vec::new()), "Runs"), "");
    }

    #[test]
    fn a_plot_has_a_dot_for_each_scored_case() {
        let rows = vec![
            Row::scored("a", "g", 1 << 28, 1 << 28),
            Row::scored("b", "g", 5 << 30, 6 << 30),
            Row::unsupported("c", "g", "why".into()),
        ];
        let svg = plot(&report(rows), "Cases");
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(!svg.contains("NaN"));
        assert!(!plot(&report(Vec::new()), "None").contains("NaN"));
    }
}
