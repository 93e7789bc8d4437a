//! The allocator's settings, as written in `PYTORCH_ALLOC_CONF`.

use std::fmt;

use serde::Serialize;

use super::sizes::{MIN_BLOCK, MIN_LARGE_ALLOC, ROUND_LARGE, SMALL, SMALL_SEGMENT};
use headroom_base::units::Bytes;

/// What `PYTORCH_ALLOC_CONF` (or `PYTORCH_CUDA_ALLOC_CONF`) and `set_per_process_memory_fraction` choose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// `expandable_segments`: a segment grows by mapping memory at its end.
    pub expandable_segments: bool,
    /// Blocks of this size and above are not split.
    pub max_split_size: Option<Bytes>,
    /// How much larger than the request an unsplit oversize block may be.
    /// The size of a large segment unless set.
    pub max_non_split_rounding: Option<Bytes>,
    /// Acts only together with `memory_fraction`.
    pub garbage_collection_threshold: Option<f64>,
    /// `per_process_memory_fraction`: the share of the card's total that the allocator may reserve; `None` without a limit.
    pub memory_fraction: Option<f64>,
    /// `roundup_power2_divisions`.
    pub divisions: Divisions,
    /// The segment that requests between 1 and 10 MiB share.
    pub large_segment: Bytes,
}

/// Into how many parts each doubling of size is cut when requests are rounded up: the first number is for sizes
/// below 2 MiB, the next for 2 to 4 MiB, the last for 32 GiB and more. 0 and 1 leave the rounding off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Divisions([u32; 16]);

/// An entry of the settings that PyTorch refuses, or that is not modelled here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingsProblem {
    /// The name before the colon.
    pub key: String,
    /// The text after the colon.
    pub value: String,
    /// What would have been accepted, to be shown to the user.
    pub expected: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            expandable_segments: false,
            max_split_size: None,
            max_non_split_rounding: None,
            garbage_collection_threshold: None,
            memory_fraction: None,
            divisions: Divisions::default(),
            large_segment: Bytes::mib(20),
        }
    }
}

impl Settings {
    /// `expandable_segments:True`, the rest as it is.
    pub fn expandable() -> Self {
        Self {
            expandable_segments: true,
            ..Self::default()
        }
    }

    /// Reads settings such as `max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]` by the rules of
    /// `c10/core/AllocatorConfig.cpp`; what is wrong is named and left at its default.
    pub fn parse(text: &str) -> (Self, Vec<SettingsProblem>) {
        let mut settings = Self::default();
        let mut problems = Vec::new();
        for entry in entries(text) {
            let (key, value) = match entry.split_once(':') {
                Some((key, value)) => (key, value),
                None => (entry.as_str(), ""),
            };
            if let Err(expected) = settings.set(key, value) {
                problems.push(SettingsProblem {
                    key: key.into(),
                    value: value.into(),
                    expected,
                });
            }
        }
        let (large, split) = (settings.large_segment, settings.max_split_size);
        if split.is_some_and(|split| split < large) {
            problems.push(SettingsProblem {
                key: "max_split_size_mb".into(),
                value: split.unwrap_or_default().to_string(),
                expected: "at least large_segment_size_mb (20 unless set)",
            });
            settings.max_split_size = None;
        }
        (settings, problems)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        match key {
            "expandable_segments" => self.expandable_segments = boolean(value)?,
            "max_split_size_mb" => {
                self.max_split_size = Some(mebibytes(value, 20, "a number of MiB, at least 20")?);
            }
            "max_non_split_rounding_mb" => {
                self.max_non_split_rounding =
                    Some(mebibytes(value, 20, "a number of MiB, at least 20")?);
            }
            "large_segment_size_mb" => {
                self.large_segment = mebibytes(value, 11, "a number of MiB above 10")?;
            }
            "garbage_collection_threshold" => {
                let number = fraction(value, "a number between 0 and 1")?;
                if number <= 0.0 || number >= 1.0 {
                    return Err("a number between 0 and 1, both excluded");
                }
                self.garbage_collection_threshold = Some(number);
            }
            "per_process_memory_fraction" => {
                let number = fraction(value, "a number from 0 to 1")?;
                // 1 is the default and sets no limit.
                self.memory_fraction = (number < 1.0).then_some(number);
            }
            "roundup_power2_divisions" => self.divisions = Divisions::parse(value)?,
            "backend" => match value {
                "native" => {}
                "cudaMallocAsync" => return Err("native; cudaMallocAsync is not modelled"),
                _ => return Err("native or cudaMallocAsync"),
            },
            "throw_on_cudamalloc_oom" => {
                if boolean(value)? {
                    return Err("False; refusing before asking the driver is not modelled");
                }
            }
            "release_lock_on_cudamalloc"
            | "release_lock_on_hipmalloc"
            | "graph_capture_record_stream_reuse"
            | "pinned_use_cuda_host_register"
            | "pinned_use_hip_host_register"
            | "pinned_use_background_threads"
            | "pinned_free_catch_all" => {
                boolean(value)?;
            }
            // These concern host memory or address space, not memory on the card.
            "pinned_num_register_threads"
            | "pinned_reserve_segment_size_mb"
            | "pinned_max_round_threshold_mb"
            | "pinned_max_cached_size_mb"
            | "expandable_segments_reserve"
            | "expandable_segments_reserve_by_class" => {}
            _ => return Err("a setting PyTorch knows"),
        }
        Ok(())
    }

    /// The size of the block for a request.
    #[inline]
    pub(super) fn round(&self, requested: u64) -> u64 {
        if requested < MIN_BLOCK {
            return MIN_BLOCK;
        }
        let divisions = self.divisions.at(requested);
        if divisions > 1 && requested > MIN_BLOCK * divisions {
            return round_to_division(requested, divisions);
        }
        Bytes::new(requested).round_up(MIN_BLOCK).get()
    }

    /// The size of the segment made for a block where none is free.
    pub(super) fn segment_size(&self, size: u64) -> u64 {
        if size <= SMALL {
            SMALL_SEGMENT
        } else if size < MIN_LARGE_ALLOC {
            self.large_segment.get()
        } else {
            Bytes::new(size).round_up(ROUND_LARGE).get()
        }
    }
}

impl Divisions {
    /// The same number for every size.
    pub const fn all(divisions: u32) -> Self {
        Self([divisions; 16])
    }

    #[inline]
    fn at(&self, size: u64) -> u64 {
        let index = size.ilog2().saturating_sub(20).min(15);
        u64::from(self.0[index as usize])
    }

    fn parse(value: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "a power of two, or a list such as [256:1,512:2,>:8]";
        let Some(list) = value.strip_prefix('[') else {
            let number: u32 = value.parse().map_err(|_| EXPECTED)?;
            return if number.is_power_of_two() {
                Ok(Self::all(number))
            } else {
                Err(EXPECTED)
            };
        };
        let list = list.strip_suffix(']').ok_or(EXPECTED)?;
        let mut divisions = Self::default();
        let mut last = None;
        for pair in list.split(',') {
            let (from, number) = pair.split_once(':').ok_or(EXPECTED)?;
            let number: u32 = number.parse().map_err(|_| EXPECTED)?;
            if number != 0 && !number.is_power_of_two() {
                return Err(EXPECTED);
            }
            if from == ">" {
                divisions.0[last.unwrap_or(0) + 1..].fill(number);
            } else {
                let from: u64 = from.parse().map_err(|_| EXPECTED)?;
                if !from.is_power_of_two() {
                    return Err(EXPECTED);
                }
                let index = from.ilog2().min(15) as usize;
                if last.is_none() {
                    divisions.0[..index].fill(number);
                }
                divisions.0[index] = number;
                last = Some(index);
            }
        }
        Ok(divisions)
    }
}

/// Up to the next of the equal parts into which the doubling around `size` is cut.
fn round_to_division(size: u64, divisions: u64) -> u64 {
    let floor = 1_u64 << size.ilog2();
    let step = floor >> divisions.ilog2();
    match step {
        0 => floor.saturating_mul(2),
        _ => size.checked_next_multiple_of(step).unwrap_or(u64::MAX),
    }
}

/// The entries between commas outside brackets, without white space.
fn entries(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0_u32;
    for letter in text.chars().filter(|letter| !letter.is_whitespace()) {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match all.last_mut() {
            Some(entry) if letter != ',' || depth > 0 => entry.push(letter),
            _ => all.push(String::new()),
        }
    }
    if all.last().is_some_and(String::is_empty) {
        all.pop();
    }
    all
}

fn boolean(value: &str) -> Result<bool, &'static str> {
    match value {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err("True or False, written so"),
    }
}

fn mebibytes(value: &str, least: u64, expected: &'static str) -> Result<Bytes, &'static str> {
    match value.parse() {
        Ok(number) if number >= least => Ok(Bytes::mib(number)),
        _ => Err(expected),
    }
}

fn fraction(value: &str, expected: &'static str) -> Result<f64, &'static str> {
    match value.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err(expected),
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            value,
            expected,
        } = self;
        write!(
            f,
            "allocator setting {key:?} is {value:?}, expected {expected}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What PyTorch 2.15 allocated for these requests, each alone on a fresh segment of its own.
    #[track_caller]
    fn check_rounding(text: &str, cases: &[(u64, u64)]) {
        let (settings, problems) = Settings::parse(text);
        assert_eq!(problems, []);
        for &(requested, size) in cases {
            assert_eq!(settings.round(requested), size, "{requested} with {text}");
        }
    }

    #[test]
    fn rounding_follows_the_divisions() {
        check_rounding(
            "",
            &[(1, 512), (512, 512), (513, 1024), (1_500_000, 1_500_160)],
        );
        check_rounding(
            "roundup_power2_divisions:4",
            &[
                (1100, 1536),
                (5_000_000, 5_242_880),
                (68_157_440, 83_886_080),
            ],
        );
        check_rounding(
            "roundup_power2_divisions:[64:8]",
            &[(68_157_440, 75_497_472)],
        );
        check_rounding(
            "roundup_power2_divisions:[64:8,>:4]",
            &[(68_157_440, 75_497_472), (136_314_880, 167_772_160)],
        );
        check_rounding(
            "roundup_power2_divisions:[>:4]",
            &[(1_500_000, 1_500_160), (5_000_000, 5_242_880)],
        );
        check_rounding(
            "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
            &[(629_145_600, 805_306_368), (5_000_000, 5_000_192)],
        );
    }

    #[test]
    fn problems_are_named() {
        for (text, key) in [
            ("bogus:1", "bogus"),
            ("max_split_size_mb:10", "max_split_size_mb"),
            ("max_split_size_mb", "max_split_size_mb"),
            (
                "large_segment_size_mb:64,max_split_size_mb:32",
                "max_split_size_mb",
            ),
            ("large_segment_size_mb:2", "large_segment_size_mb"),
            (
                "garbage_collection_threshold:1.5",
                "garbage_collection_threshold",
            ),
            ("expandable_segments:true", "expandable_segments"),
            ("roundup_power2_divisions:3", "roundup_power2_divisions"),
            ("roundup_power2_divisions:[64:8", "roundup_power2_divisions"),
            (
                "per_process_memory_fraction:nan",
                "per_process_memory_fraction",
            ),
            ("backend:cudaMallocAsync", "backend"),
            ("max_split_size_mb:64,,expandable_segments:True", ""),
        ] {
            let (_, problems) = Settings::parse(text);
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            assert_eq!(problems[0].key, key, "{text}");
        }
        let (settings, problems) =
            Settings::parse(" expandable_segments : True , max_split_size_mb:128,");
        assert_eq!(problems, []);
        assert!(settings.expandable_segments);
        assert_eq!(settings.max_split_size, Some(Bytes::mib(128)));
    }
}
