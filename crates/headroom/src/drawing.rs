//! What only a terminal shows: the verdict in colour, and a bar of the GPU's memory.

use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Color, RgbColor, Style};

use super::answer::name;
use headroom_base::units::Bytes;
use headroom_core::estimate::{Estimate, Fit};

/// Styled text for a terminal.
pub(super) enum Drawing {
    /// Below the first line of an answer, whose verdict is coloured.
    Memory(Memory),
    /// In place of the answer's text.
    Whole(StyledStr),
}

/// The memory of a GPU.
pub(super) struct Memory {
    fit: Option<Fit>,
    parts: Vec<(String, Bytes)>,
    needed: Bytes,
    usable: Option<Bytes>,
}

impl Drawing {
    pub(super) fn of(estimate: &Estimate) -> Self {
        let outside = [
            (
                "cached",
                estimate.reserved.expected - estimate.allocated.expected,
            ),
            (
                "context",
                estimate.device.expected - estimate.reserved.expected,
            ),
        ];
        let named = estimate.breakdown.iter();
        let named = named.map(|part| (name(part.what), part.bytes));
        let outside = outside.map(|(what, bytes)| (what.to_string(), bytes));
        let parts = named.chain(outside);
        Self::Memory(Memory {
            fit: estimate.fit(),
            parts: parts.filter(|(_, bytes)| *bytes > Bytes::ZERO).collect(),
            needed: estimate.device.expected,
            usable: estimate.usable,
        })
    }

    /// The text as a terminal shows it.
    pub(super) fn over(&self, text: &str) -> String {
        match self {
            Self::Whole(styled) => styled.ansi().to_string(),
            Self::Memory(memory) => {
                let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
                format!("{}\n{}{rest}", memory.verdict(first), memory.bar())
            }
        }
    }
}

impl Memory {
    /// The line, with its verdict in colour.
    fn verdict(&self, line: &str) -> String {
        let Some(fit) = self.fit else {
            return line.into();
        };
        let colour = match fit {
            Fit::Fits => AnsiColor::Green,
            Fit::Probably | Fit::ProbablyNot => AnsiColor::Yellow,
            Fit::No => AnsiColor::Red,
        };
        let style = colour.on_default().bold();
        let Some((before, after)) = line.rsplit_once(fit.label()) else {
            return line.into();
        };
        format!("{before}{style}{}{style:#}{after}", fit.label())
    }

    /// A bar as long as the GPU's memory or what is needed, if that is more, and what its colours are.
    fn bar(&self) -> String {
        const CELLS: u64 = 72;
        let whole = self.usable.unwrap_or(self.needed).max(self.needed);
        let cell = |bytes: Bytes| {
            let share = u128::from(bytes.get()) * u128::from(CELLS);
            (share / u128::from(whole.get().max(1))) as usize
        };
        let mut bar = String::new();
        let mut legend = String::new();
        let (mut sum, mut drawn, mut column) = (Bytes::ZERO, 0, 0);
        for (what, bytes) in &self.parts {
            sum += *bytes;
            let style = style(what);
            let cells = cell(sum).saturating_sub(drawn);
            drawn += cells;
            bar.push_str(&format!("{style}{}{style:#}", "█".repeat(cells)));
            let label = format!("{} {bytes}", what.replace('-', " "));
            // Short lines fit every terminal.
            column += label.chars().count() + 4;
            if column > CELLS as usize {
                legend.push_str("\n ");
                column = label.chars().count() + 4;
            }
            legend.push_str(&format!(" {style}■{style:#} {label} "));
        }
        let limit = self.usable.map_or(CELLS as usize, cell);
        bar.push_str(&"·".repeat(limit.saturating_sub(drawn)));
        let edge = match self.usable {
            Some(usable) if usable < self.needed => {
                format!("  {}╵ {usable} usable\n", " ".repeat(limit))
            }
            _ => String::new(),
        };
        format!("\n  {bar}\n{edge} {legend}\n")
    }
}

/// The page's colour of a part of memory.
fn style(part: &str) -> Style {
    let (red, green, blue) = match part {
        "parameters" => (0x1f, 0x56, 0xa3),
        "gradients" => (0x33, 0x8a, 0xb8),
        "optimizer-states" => (0x3c, 0x3b, 0x8e),
        "ema" => (0x62, 0xa9, 0xb3),
        "buffers" => (0x9d, 0xac, 0xbb),
        "sampler" => (0x7d, 0x62, 0xb0),
        "inputs" => (0x4a, 0x8a, 0x57),
        "activations" => (0xd0, 0x92, 0x3a),
        "autocast-copies" => (0xd9, 0xc6, 0x80),
        "backward-temporaries" => (0xb8, 0x5a, 0x33),
        "optimizer-temporaries" => (0xa1, 0x43, 0x70),
        "workspace" => (0x8a, 0x81, 0x78),
        "rounding" => (0xb3, 0xb1, 0xab),
        "cached" => (0x9a, 0xa0, 0xa6),
        _ => (0x64, 0x6b, 0x73),
    };
    Style::new().fg_color(Some(Color::Rgb(RgbColor(red, green, blue))))
}
