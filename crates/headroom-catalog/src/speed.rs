//! Speeds: how much of its data sheet a card reaches while it trains.

use super::{Confidence, Gpu, Sourced};

/// A rate, or a share of one, with its sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
    pub confidence: Confidence,
    set: u8,
}

impl Rate {
    /// Where it was read.
    pub fn sources(self) -> impl Iterator<Item = &'static str> {
        let set = table::SOURCE_SETS.get(usize::from(self.set)).copied();
        set.unwrap_or_default()
            .iter()
            .filter_map(|&source| table::SOURCES.get(usize::from(source)).copied())
    }

    fn times(self, factor: f64) -> Self {
        Self {
            low: self.low * factor,
            expected: self.expected * factor,
            high: self.high * factor,
            ..self
        }
    }
}

/// A GPU's speeds, in FLOP/s, bytes/s and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// Matrix products of fp32 numbers, which PyTorch runs without tensor cores by default.
    pub products_fp32: Rate,
    pub products_half: Rate,
    /// 8-bit matrix products; as the 16-bit ones where the GPU has none.
    pub products_low: Rate,
    pub attention_forward: Rate,
    pub attention_backward: Rate,
    /// Convolutions of fp32 numbers, which cuDNN runs as TF32 if the GPU has it.
    pub convolutions_fp32: Rate,
    /// 16-bit convolutions of channels-last tensors, the layout that tensor cores use.
    pub convolutions_half: Rate,
    /// The same of tensors whose channels lie first, which are put in order before and after.
    pub convolutions_half_channels_first: Rate,
    /// The bandwidth that depthwise convolutions reach.
    pub depthwise: Rate,
    /// Arithmetic outside matrix products.
    pub arithmetic: f64,
    pub bandwidth: Rate,
    /// The data sheet's value.
    pub sheet_bandwidth: f64,
    /// From one launch to the next.
    pub launch: Rate,
    /// The CPU time of ZeRO-3's hooks for each pass of a module.
    pub zero_hooks: Rate,
    /// To or from the host's memory.
    pub host: Rate,
    /// Ring bandwidth between GPUs, one direction; `None` if unknown.
    pub links: Option<Rate>,
    /// Seconds of a collective on one machine that do not depend on its size, and those for each other GPU of its group.
    pub start: Rate,
    pub start_each: Rate,
    /// Each GPU's share of its machine's network cards, one way.
    pub network: Rate,
    /// The data sheet's dense rate in 16 bits: what utilisation is counted against.
    pub peak_half: f64,
    pub peak_fp32: f64,
}

/// The card's speeds; `None` if its data sheet lacks the rates or the bandwidth.
pub fn speeds(gpu: &Gpu) -> Option<Speeds> {
    speeds_without(gpu, &|_| false)
}

/// The same without rows that used some of these sources: the prediction as if a source had not been read.
pub fn speeds_without(gpu: &Gpu, left_out: &dyn Fn(&str) -> bool) -> Option<Speeds> {
    const TERA: f64 = 1e12;
    let sheet = gpu.data_sheet()?;
    let tera = |number: Sourced| number.get().map(|number| number * TERA);
    let half = tera(sheet.tflops.bf16).or(tera(sheet.tflops.fp16));
    let fp32 = tera(sheet.tflops.fp32);
    let peak_half = half.or(fp32)?;
    let peak_fp32 = fp32.or(half.map(|rate| rate / 8.0))?;
    let tf32 = tera(sheet.tflops.tf32).unwrap_or(peak_fp32);
    let of = |rows: &'static [RateRow]| rate(rows, gpu, left_out);
    let products = of(table::PRODUCTS);
    let convolutions = of(table::CONVOLUTIONS).times(peak_half);
    // If unknown, these are like the rest.
    let known = |rate: Rate| (rate != NOTHING).then_some(rate);
    let channels_first = known(of(table::CHANNELS_FIRST)).map_or(1.0, |rate| rate.expected);
    let depthwise = known(of(table::DEPTHWISE)).unwrap_or_else(|| of(table::BANDWIDTH));
    // A GPU's links are counted both ways; PCIe is used if there are none.
    let sheet_bandwidth = sheet.bandwidth.get()? * 1e9;
    let pcie = of(table::HOST_GBS).times(1e9);
    let links = sheet.nvlink.get().map(|both| both / 2.0 * 1e9);
    Some(Speeds {
        products_fp32: products.times(peak_fp32),
        products_half: products.times(peak_half),
        products_low: match tera(sheet.tflops.fp8) {
            Some(rate) => of(table::PRODUCTS_LOW).times(rate),
            None => products.times(peak_half),
        },
        attention_forward: of(table::ATTENTION_FORWARD).times(peak_half),
        attention_backward: of(table::ATTENTION_BACKWARD).times(peak_half),
        convolutions_fp32: of(table::CONVOLUTIONS_FP32).times(tf32),
        convolutions_half: convolutions,
        convolutions_half_channels_first: convolutions.times(channels_first),
        depthwise: depthwise.times(sheet_bandwidth),
        arithmetic: peak_fp32,
        bandwidth: of(table::BANDWIDTH).times(sheet_bandwidth),
        sheet_bandwidth,
        launch: of(table::LAUNCH_US).times(1e-6),
        zero_hooks: of(table::ZERO_HOOKS_US).times(1e-6),
        host: pcie,
        links: Some(links.map_or(pcie, |links| of(table::LINKS).times(links))),
        start: of(table::START_US).times(1e-6),
        start_each: of(table::START_EACH_US).times(1e-6),
        network: of(if links.is_some() {
            table::NETWORK_LINKED_GBS
        } else {
            table::NETWORK_GBS
        })
        .times(1e9),
        peak_half,
        peak_fp32,
    })
}

/// The share of `rate`, the bytes a second of a machine's network cards together, that an all-reduce of so many bytes reaches
/// between machines. Between the sizes that were measured it rises with their logarithm; below the smallest a message takes
/// as long as that one, whatever it holds.
pub fn reached(bytes: f64, rate: f64) -> f64 {
    const MIB: f64 = 1_048_576.0;
    let mib = bytes / MIB * (table::BETWEEN_GBS * 1e9) / rate.max(1.0);
    let measured = table::BETWEEN_MACHINES;
    let above = measured.iter().position(|(size, _)| mib < *size);
    match above {
        None => measured.last().map_or(1.0, |(_, share)| *share),
        Some(0) => measured
            .first()
            .map_or(1.0, |(size, share)| share * (mib / size)),
        Some(at) => {
            let (Some(a), Some(b)) = (measured.get(at - 1), measured.get(at)) else {
                return 1.0;
            };
            a.1 + (b.1 - a.1) * (mib / a.0).ln() / (b.0 / a.0).ln()
        }
    }
}

impl Speeds {
    /// The same card with another dense 16-bit rate and another bandwidth, in FLOP/s and bytes/s.
    pub fn given(self, peak_half: Option<f64>, bandwidth: Option<f64>) -> Self {
        let faster = peak_half.map_or(1.0, |rate| rate / self.peak_half);
        let wider = bandwidth.map_or(1.0, |given| given / self.sheet_bandwidth);
        Self {
            products_fp32: self.products_fp32.times(faster),
            products_half: self.products_half.times(faster),
            products_low: self.products_low.times(faster),
            attention_forward: self.attention_forward.times(faster),
            attention_backward: self.attention_backward.times(faster),
            convolutions_fp32: self.convolutions_fp32.times(faster),
            convolutions_half: self.convolutions_half.times(faster),
            convolutions_half_channels_first: self.convolutions_half_channels_first.times(faster),
            depthwise: self.depthwise.times(wider),
            arithmetic: self.arithmetic * faster,
            bandwidth: self.bandwidth.times(wider),
            sheet_bandwidth: self.sheet_bandwidth * wider,
            peak_half: self.peak_half * faster,
            peak_fp32: self.peak_fp32 * faster,
            ..self
        }
    }

    /// An A100's speeds, used to compare runs where the GPU's speed is unknown.
    pub fn a100() -> Self {
        super::gpu("a100-sxm4-80gb")
            .and_then(speeds)
            .unwrap_or(Self {
                products_fp32: NOTHING,
                products_half: NOTHING,
                products_low: NOTHING,
                attention_forward: NOTHING,
                attention_backward: NOTHING,
                convolutions_fp32: NOTHING,
                convolutions_half: NOTHING,
                convolutions_half_channels_first: NOTHING,
                depthwise: NOTHING,
                arithmetic: 1.0,
                bandwidth: NOTHING,
                sheet_bandwidth: 1.0,
                launch: NOTHING,
                zero_hooks: NOTHING,
                host: NOTHING,
                links: None,
                start: NOTHING,
                start_each: NOTHING,
                network: NOTHING,
                peak_half: 1.0,
                peak_fp32: 1.0,
            })
    }
}

/// When a rate applies. The first row that applies is used.
struct RateRow {
    /// Part of the card's architecture; empty for any.
    architecture: &'static str,
    /// Part of the card's id; empty for any.
    gpu: &'static str,
    rate: Rate,
}

fn rate(rows: &[RateRow], gpu: &Gpu, left_out: &dyn Fn(&str) -> bool) -> Rate {
    let applies =
        |row: &RateRow| gpu.architecture.contains(row.architecture) && gpu.id.contains(row.gpu);
    let row = rows
        .iter()
        .find(|row| applies(row) && !row.rate.sources().any(left_out));
    row.map_or(NOTHING, |row| row.rate)
}

/// Every table ends with a row for all cards; a test holds it to that.
const NOTHING: Rate = Rate {
    low: 0.0,
    expected: 0.0,
    high: 0.0,
    confidence: Confidence::Unknown,
    set: u8::MAX,
};

#[allow(clippy::pedantic)]
mod table {
    use super::{Confidence, Rate, RateRow};
    include!(concat!(env!("OUT_DIR"), "/speeds.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpus;

    #[test]
    fn every_card_with_a_data_sheet_has_ordered_speeds_with_sources() {
        let mut known = 0;
        for gpu in gpus() {
            let Some(speeds) = speeds(gpu) else { continue };
            known += 1;
            for rate in [
                speeds.products_fp32,
                speeds.products_half,
                speeds.products_low,
                speeds.attention_forward,
                speeds.attention_backward,
                speeds.convolutions_fp32,
                speeds.convolutions_half,
                speeds.convolutions_half_channels_first,
                speeds.depthwise,
                speeds.bandwidth,
                speeds.launch,
                speeds.zero_hooks,
                speeds.host,
                speeds.start,
                speeds.start_each,
                speeds.network,
            ] {
                assert!(0.0 < rate.low && rate.low <= rate.expected, "{}", gpu.id);
                assert!(rate.expected <= rate.high, "{}", gpu.id);
                assert!(rate.sources().count() > 0, "{}", gpu.id);
            }
            assert!(speeds.products_half.expected <= speeds.peak_half);
        }
        assert!(known > 130, "{known}");
    }

    #[test]
    fn without_a_source_the_next_row_serves() {
        let gpu = crate::gpu("rtx-3090-24gb").unwrap();
        let all = speeds(gpu).unwrap();
        let fewer = speeds_without(gpu, &|source| source.contains("pytorch-image-models")).unwrap();
        let used = |rate: Rate| {
            rate.sources()
                .any(|source| source.contains("pytorch-image-models"))
        };
        assert!(used(all.convolutions_half) && !used(fewer.convolutions_half));
        assert!(used(all.depthwise) && !used(fewer.depthwise));
        assert!(fewer.depthwise.expected > 0.0);
        assert_eq!(all.products_half, fewer.products_half);
    }

    #[test]
    fn longer_messages_reach_more_of_the_network() {
        #[track_caller]
        fn check(mib: f64, gbs: f64, expected: f64) {
            let found = reached(mib * 1_048_576.0, gbs * 1e9);
            assert!((found - expected).abs() < 1e-9, "{found}");
        }
        check(16.0, 400.0, 0.16);
        check(8.0, 400.0, 0.08);
        check(512.0, 400.0, 0.82);
        check(128.0, 400.0, 0.48);
        check(1e9, 400.0, 0.955);
        // Half the rate needs as long for half the bytes.
        check(256.0, 200.0, 0.82);
    }
}
