//! The origin that is written into saved files: the program version and the scenario.

use headroom_scenario::share::DATA_VERSION;

/// The program, its data version, and the date.
pub fn origin(today: &str) -> String {
    format!(
        "Headroom {}, data {DATA_VERSION}, {today}",
        env!("CARGO_PKG_VERSION")
    )
}

/// The scenario inside a drawing, as a line that is found when the drawing is opened as a file.
pub fn metadata(address: &str, origin: &str) -> String {
    let link = address.split_once('#').map_or("", |(_, link)| link);
    // The only sequence that would end the section early.
    let link = link.replace("]]>", "]]%3E");
    format!("<metadata><![CDATA[\n# {origin}\n# Scenario: #{link}\n]]></metadata>")
}
