//! Where a saved file comes from: what it says of the program and the scenario.

use headroom_scenario::share::DATA_VERSION;

/// Who made it, of which data, and when.
pub fn origin(today: &str) -> String {
    format!(
        "Headroom {}, data {DATA_VERSION}, {today}",
        env!("CARGO_PKG_VERSION")
    )
}

/// The scenario inside a drawing, as a line that opening the drawing as a file finds.
pub fn metadata(address: &str, origin: &str) -> String {
    let link = address.split_once('#').map_or("", |(_, link)| link);
    // The one thing that would end the section early.
    let link = link.replace("]]>", "]]%3E");
    format!("<metadata><![CDATA[\n# {origin}\n# Scenario: #{link}\n]]></metadata>")
}
