//! A recorded run, compared line by line with the replay of its requests.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::{FileReport, Mismatch};
use crate::allocator::{Allocator, Card, Counters, DriverCall, Settings, Stream};
use headroom_base::units::Bytes;

/// The first line: what was run, of which only the allocator's part matters.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    #[serde(default)]
    id: String,
    config: Config,
    /// What the card had free before the first request; absent on a card without end.
    usable_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(default)]
    alloc: String,
    /// `set_per_process_memory_fraction`.
    frac: Option<f64>,
    #[serde(default)]
    ctx_mb: u64,
    /// Another process's memory from the start, in addition to what is usable.
    #[serde(default)]
    other_mb: u64,
    other: Option<Other>,
}

/// Another process that comes at the beginning of a step.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Other {
    step: u64,
    #[serde(default)]
    mb: u64,
    /// The part it takes of what the card has free then.
    free_frac: Option<f64>,
}

/// The replay so far.
#[derive(Debug)]
pub(super) struct Comparison {
    allocator: Allocator,
    pub report: FileReport,
    /// Dense handles for the file's names of allocations.
    handles: HashMap<u64, u32>,
    unused: Vec<u32>,
    /// Driver calls recorded since the last request, with the line of the first.
    recorded: Vec<DriverCall>,
    recorded_at: usize,
    capped: bool,
    /// Whether the file has driver calls: if so, one precedes the first request.
    has_driver_calls: bool,
    /// The counters at the failure of a request and after each block freed since. The recorder reads them where the exception is
    /// caught: what the failed operation had made is gone by then, what the step had made is not.
    since_failure: Vec<Counters>,
    /// Whether the last request failed: a program that continues empties the cache first.
    failed: bool,
    card: Card,
    other: Option<Other>,
    /// The recording's numbers of streams; the default one is the first.
    streams: Vec<u64>,
}

impl Comparison {
    pub(crate) fn new(header: Header) -> Result<Self, String> {
        let Header {
            id,
            config,
            usable_bytes,
        } = header;
        let (mut settings, problems) = Settings::parse(&config.alloc);
        if let Some(problem) = problems.first() {
            return Err(format!("line 1: {problem}"));
        }
        if config.frac.is_some() {
            settings.memory_fraction = config.frac;
        }
        let card = match usable_bytes {
            None => Card::UNLIMITED,
            Some(usable) => {
                let context = Bytes::mib(config.ctx_mb);
                let others = Bytes::mib(config.other_mb);
                Card {
                    total: Some(Bytes::new(usable) + context + others),
                    context,
                    others,
                }
            }
        };
        let mut allocator = Allocator::new(settings, card);
        allocator.calls = Some(Vec::new());
        Ok(Self {
            allocator,
            report: FileReport {
                id,
                ..FileReport::default()
            },
            handles: HashMap::new(),
            unused: Vec::new(),
            recorded: Vec::new(),
            recorded_at: 0,
            capped: usable_bytes.is_some(),
            has_driver_calls: false,
            since_failure: Vec::new(),
            failed: false,
            card,
            other: config.other,
            streams: vec![0],
        })
    }

    /// Streams are numbered as they appear: each has pools, and a recording's numbers are arbitrary.
    fn stream(&mut self, recorded: u64) -> Result<Stream, String> {
        const MOST: usize = 256;
        let known = self.streams.iter().position(|stream| *stream == recorded);
        let number = known.unwrap_or_else(|| {
            self.streams.push(recorded);
            self.streams.len() - 1
        });
        if number >= MOST {
            return Err(format!("field 3 names more than {MOST} streams"));
        }
        Ok(number as Stream)
    }

    pub(crate) fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Value::Array(fields) = value else {
            // Remarks on how the run ended.
            return Ok(());
        };
        let kind = fields.first().and_then(Value::as_str).unwrap_or("");
        let field = |index: usize| {
            fields
                .get(index)
                .and_then(Value::as_u64)
                .ok_or_else(|| format!("field {index} of {kind:?} is not a whole number"))
        };
        if let Some(call) = driver_call(kind, &field)? {
            if self.recorded.is_empty() {
                self.recorded_at = number;
            }
            self.recorded.push(call);
            self.has_driver_calls |= self.report.events == 0;
            return Ok(());
        }
        match kind {
            "a" => {
                self.report.events += 1;
                self.settle_release_before_request();
                let handle = self.new_handle(field(1)?);
                let stream = self.stream(field(3).unwrap_or(0))?;
                let outcome = self
                    .allocator
                    .malloc_on(handle, Bytes::new(field(2)?), stream);
                self.compare_calls(number);
                if let Err(oom) = outcome {
                    self.mismatch(number, "request", "served", oom);
                }
            }
            "oom" => {
                self.report.events += 1;
                self.settle_release_before_request();
                let handle = self.spare_handle();
                let stream = self.stream(field(3).unwrap_or(0))?;
                let outcome = self
                    .allocator
                    .malloc_on(handle, Bytes::new(field(1)?), stream);
                self.unused.push(handle);
                self.compare_calls(number);
                self.since_failure = vec![*self.allocator.counters()];
                self.failed = true;
                self.report.driver_calls += 1;
                match outcome {
                    Err(oom) if oom.free.get() == field(2)? => {}
                    Err(oom) => {
                        self.report.wrong_driver_calls += 1;
                        self.mismatch(number, "free at failure", field(2)?, oom.free.get());
                    }
                    Ok(()) => {
                        self.report.wrong_driver_calls += 1;
                        self.allocator.free(handle);
                        self.mismatch(number, "request", "out of memory", "served");
                    }
                }
            }
            "f" | "fr" => {
                self.settle_outside_release();
                let name = field(1)?;
                // A block that waited for another stream is recorded twice; the second time it is freed already.
                if kind == "fr" {
                    if let Some(handle) = self.handles.get(&name) {
                        self.allocator.free_deferred(*handle);
                    }
                } else if let Some(handle) = self.handles.remove(&name) {
                    self.report.events += 1;
                    self.allocator.free(handle);
                    self.unused.push(handle);
                }
                if !self.since_failure.is_empty() {
                    self.since_failure.push(*self.allocator.counters());
                }
            }
            "empty" => {
                self.settle_outside_release();
                self.allocator.empty_cache();
                self.compare_calls(number);
            }
            "step" => {
                self.settle_outside_release();
                self.step(number, &fields);
            }
            _ => return Err(format!("{kind:?} is not a kind of event")),
        }
        Ok(())
    }

    /// Compares the counters at the end of a step, then starts the next as the recorder did: with fresh peaks.
    fn step(&mut self, number: usize, fields: &[Value]) {
        let recorded = |index: usize| fields.get(index).and_then(Value::as_u64);
        let counters = self.counters_for(recorded(4));
        let replayed = [
            ("peak allocated", counters.allocated.peak.get()),
            ("allocated", counters.allocated.current.get()),
            ("reserved", counters.reserved.current.get()),
            ("peak reserved", counters.reserved.peak.get()),
            ("peak active", counters.active.peak.get()),
            ("inactive split", counters.inactive_split.current.get()),
            ("peak inactive split", counters.inactive_split.peak.get()),
            ("retries", counters.retries),
            ("out-of-memory errors", counters.ooms),
            ("segments", counters.segments),
        ];
        self.allocator.reset_peaks();
        let next = fields
            .get(1)
            .and_then(Value::as_i64)
            .map_or(0, |last| last.saturating_add(1));
        self.let_others_in(next);
        // The mark after the model is built has no numbers.
        if fields.len() <= 2 {
            return;
        }
        self.report.steps += 1;
        let before = self.report.mismatches.len();
        for (index, (what, replayed)) in replayed.into_iter().enumerate() {
            let recorded = recorded(index + 3);
            if recorded != Some(replayed) {
                let recorded = recorded.map_or("nothing".into(), |call| call.to_string());
                self.mismatch(number, what, recorded, replayed);
            }
        }
        if self.report.mismatches.len() > before {
            self.report.wrong_steps += 1;
        }
    }

    /// The counters as the recorder read them: after a failure when as much was allocated as it says.
    fn counters_for(&mut self, allocated: Option<u64>) -> Counters {
        let since = std::mem::take(&mut self.since_failure);
        let is_then = |counters: &&Counters| Some(counters.allocated.current.get()) == allocated;
        let then = since.iter().find(is_then).or(since.first());
        then.copied().unwrap_or(*self.allocator.counters())
    }

    fn let_others_in(&mut self, step: i64) {
        if let Some(other) = self
            .other
            .take_if(|other| i64::try_from(other.step) == Ok(step))
        {
            let free = self.allocator.device_free();
            let share = other
                .free_frac
                .map_or(Bytes::ZERO, |fraction| free.scale(fraction));
            self.card.others += Bytes::mib(other.mb) + share;
            self.allocator.set_card(self.card);
        }
    }

    /// Memory given back without a request is `empty_cache`, which the recorder does not write down.
    pub(crate) fn settle_outside_release(&mut self) {
        if !self.recorded.is_empty() {
            self.allocator.empty_cache();
            self.compare_calls(self.recorded_at);
        }
    }

    /// On a card without end a request never makes the allocator give memory back, and after a failure there is
    /// nothing left to give back: `empty_cache` came before it.
    fn settle_release_before_request(&mut self) {
        let releases = self
            .recorded
            .iter()
            .take_while(|call| matches!(call, DriverCall::Free { .. } | DriverCall::Unmap { .. }))
            .count();
        let failed = std::mem::take(&mut self.failed);
        if releases > 0 && (failed || !self.capped) {
            let rest = self.recorded.split_off(releases);
            self.settle_outside_release();
            self.recorded = rest;
        }
    }

    /// Compares recorded and replayed driver calls since the last event.
    fn compare_calls(&mut self, number: usize) {
        let replayed = self.allocator.calls.replace(Vec::new()).unwrap_or_default();
        let recorded = std::mem::take(&mut self.recorded);
        if !self.has_driver_calls {
            return;
        }
        self.report.driver_calls += recorded.len().max(replayed.len());
        if recorded != replayed {
            let right = recorded
                .iter()
                .zip(&replayed)
                .take_while(|(a, b)| a == b)
                .count();
            self.report.wrong_driver_calls += recorded.len().max(replayed.len()) - right;
            self.mismatch(
                number,
                "driver calls",
                format!("{recorded:?}"),
                format!("{replayed:?}"),
            );
        }
    }

    fn new_handle(&mut self, name: u64) -> u32 {
        let handle = self.spare_handle();
        self.handles.insert(name, handle);
        handle
    }

    fn spare_handle(&mut self) -> u32 {
        self.unused.pop().unwrap_or(self.handles.len() as u32)
    }

    fn mismatch(
        &mut self,
        line: usize,
        what: &str,
        recorded: impl fmt::Display,
        replayed: impl fmt::Display,
    ) {
        self.report.mismatches.push(Mismatch {
            line,
            what: what.into(),
            recorded: recorded.to_string(),
            replayed: replayed.to_string(),
        });
    }
}

/// The driver call a line records, if it records one.
fn driver_call(
    kind: &str,
    field: &impl Fn(usize) -> Result<u64, String>,
) -> Result<Option<DriverCall>, String> {
    // Segments are numbered from 1 in the file.
    let segment = || field(1).map(|number| number.saturating_sub(1) as u32);
    let bytes = || field(2).map(Bytes::new);
    Ok(Some(match kind {
        "S" => DriverCall::Malloc {
            segment: segment()?,
            bytes: bytes()?,
        },
        "s" => DriverCall::Free {
            segment: segment()?,
            bytes: bytes()?,
        },
        "M" => DriverCall::Map { bytes: bytes()? },
        "m" => DriverCall::Unmap { bytes: bytes()? },
        _ => return Ok(None),
    }))
}
