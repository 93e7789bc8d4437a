//! PyTorch's memory snapshot (`torch.cuda.memory._dump_snapshot`): what the allocator holds, and how it came to that.

use crate::document::pickle::{Pickle, Value};
use crate::order::{Map, sorted};
use crate::units::Bytes;

/// A snapshot of one process: a state for each of its GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub devices: Vec<Device>,
}

/// What the allocator of one GPU holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub index: i64,
    pub segments: usize,
    pub reserved: Bytes,
    /// Handed out to tensors.
    pub allocated: Bytes,
    /// What tensors asked for, before rounding.
    pub requested: Bytes,
    /// Freed by the program while another stream may still use it.
    pub pending: Bytes,
    /// The largest piece that lies free within a segment.
    pub largest_free: Bytes,
    /// Blocks in use by the line that made them, the most memory first.
    pub holders: Vec<Holder>,
    /// The most that was allocated within the recorded history; none where no history was recorded.
    pub peak: Option<Bytes>,
    /// Requests that failed within it.
    pub refused: Vec<Bytes>,
}

/// Blocks that one line of a program made and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// `file:line function`, the innermost that is not PyTorch's own; empty where no stack was recorded.
    pub line: String,
    pub count: u64,
    pub bytes: Bytes,
    /// The sizes asked for, each with its count, the largest first.
    pub sizes: Vec<(Bytes, u64)>,
}

impl Snapshot {
    /// The snapshot in a pickle, or why it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let pickle = Pickle::read(bytes)?;
        let root = pickle.root();
        // `memory_snapshot()` alone is the list of segments.
        let segments = root.get("segments").unwrap_or(root);
        let mut devices: Map<i64, Vec<Value>> = Map::new();
        for segment in segments.items() {
            if segment.get("blocks").is_some() {
                let device = int(segment, "device");
                devices.or_insert_with(device, Vec::new).push(segment);
            }
        }
        if devices.is_empty() {
            return Err("no segments of PyTorch's allocator are in it".into());
        }
        let traces: Vec<Value> = root
            .get("device_traces")
            .into_iter()
            .flat_map(Value::items)
            .collect();
        let of = |(index, segments): (i64, Vec<Value>)| {
            let trace = usize::try_from(index)
                .ok()
                .and_then(|index| traces.get(index).copied());
            device(index, &segments, trace)
        };
        Ok(Self {
            devices: devices.into_iter().map(of).collect(),
        })
    }
}

impl Snapshot {
    /// The most that was allocated on one GPU within the recorded history; none where none was recorded.
    pub fn peak(&self) -> Option<Bytes> {
        self.devices.iter().filter_map(|device| device.peak).max()
    }
}

impl Device {
    /// Blocks of sizes that a run has not at its peak, or not so many of: size, how many more, and the line that made them,
    /// the most memory first. The run's sizes are as the allocator rounds them.
    pub fn beyond(&self, planned: &[(Bytes, u64)]) -> Vec<(Bytes, u64, String)> {
        let mut left: Vec<(Bytes, u64)> = planned.to_vec();
        let mut beyond = Vec::new();
        for holder in &self.holders {
            for (size, count) in &holder.sizes {
                let rounded = size.round_up(512);
                let mut more = *count;
                for (_, some) in left.iter_mut().filter(|(each, _)| *each == rounded) {
                    let matched = more.min(*some);
                    *some -= matched;
                    more -= matched;
                }
                if more > 0 {
                    beyond.push((rounded, more, holder.line.clone()));
                }
            }
        }
        sorted(beyond, |a, b| (b.0 * b.1).cmp(&(a.0 * a.1)))
    }
}

fn int(value: Value, key: &str) -> i64 {
    value.get(key).and_then(Value::int).unwrap_or(0)
}

fn size(value: Value, key: &str) -> u64 {
    u64::try_from(int(value, key)).unwrap_or(0)
}

fn device(index: i64, segments: &[Value], trace: Option<Value>) -> Device {
    let mut found = Device {
        index,
        segments: segments.len(),
        ..Device::default()
    };
    let mut holders: Map<String, Map<u64, u64>> = Map::new();
    let mut held: Map<String, u64> = Map::new();
    for segment in segments {
        found.reserved += Bytes::new(size(*segment, "total_size"));
        for block in segment.get("blocks").into_iter().flat_map(Value::items) {
            let bytes = size(block, "size");
            match block.get("state").and_then(Value::text) {
                Some("active_allocated") => {
                    let asked = match size(block, "requested_size") {
                        0 => bytes,
                        asked => asked,
                    };
                    found.allocated += Bytes::new(bytes);
                    found.requested += Bytes::new(asked);
                    let line = line(frames(block));
                    *held.or_insert_with(line.clone(), || 0) += bytes;
                    let sizes = holders.or_insert_with(line, Map::new);
                    *sizes.or_insert_with(asked, || 0) += 1;
                }
                Some("active_pending_free" | "active_awaiting_free") => {
                    found.pending += Bytes::new(bytes);
                }
                _ => found.largest_free = found.largest_free.max(Bytes::new(bytes)),
            }
        }
    }
    let of_line = |(line, sizes): (String, Map<u64, u64>)| Holder {
        count: sizes.iter().map(|(_, count)| *count).sum(),
        bytes: Bytes::new(held.get(&line).copied().unwrap_or(0)),
        sizes: sorted(
            sizes
                .into_iter()
                .map(|(size, count)| (Bytes::new(size), count)),
            |a, b| b.0.cmp(&a.0),
        ),
        line,
    };
    found.holders = sorted(holders.into_iter().map(of_line), |a, b| {
        b.bytes.cmp(&a.bytes)
    });
    if let Some(trace) = trace {
        follow(&mut found, trace);
    }
    found
}

/// The stack of a block: its own since 2.1, that of its last history before.
fn frames(block: Value) -> Option<Value> {
    let own = block.get("frames");
    own.or_else(|| block.get("history")?.items().next()?.get("frames"))
}

/// The innermost line that is not PyTorch's own.
fn line(frames: Option<Value>) -> String {
    const LIBRARIES: &[&str] = &["/torch/", "??", "<frozen", ".cpp", ".cu", ".h"];
    let Some(frames) = frames else {
        return String::new();
    };
    let name = |frame: Value| {
        let file = frame.get("filename").and_then(Value::text).unwrap_or("");
        let own = !file.is_empty() && !LIBRARIES.iter().any(|library| file.contains(library));
        let short = file.rsplit('/').take(2).collect::<Vec<_>>();
        let short: Vec<&str> = short.into_iter().rev().collect();
        let function = frame.get("name").and_then(Value::text).unwrap_or("");
        own.then(|| format!("{}:{} {function}", short.join("/"), int(frame, "line")))
    };
    frames.items().find_map(name).unwrap_or_default()
}

/// Goes back through the history from what is allocated now.
fn follow(found: &mut Device, trace: Value) {
    let events: Vec<Value> = trace.items().collect();
    if events.is_empty() {
        return;
    }
    let (mut now, mut peak) = (found.allocated.get(), found.allocated.get());
    for event in events.iter().rev() {
        let bytes = size(*event, "size");
        match event.get("action").and_then(Value::text) {
            Some("alloc") => now = now.saturating_sub(bytes),
            Some("free_completed") => now = now.saturating_add(bytes),
            Some("oom") => found.refused.push(Bytes::new(bytes)),
            _ => {}
        }
        peak = peak.max(now);
    }
    found.peak = Some(Bytes::new(peak));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What writes one value of a pickle.
    type Part<'a> = &'a dyn Fn(&mut Vec<u8>);

    /// A pickle of a snapshot: one segment with a block in use, one free, and a history of three events.
    fn pickled() -> Vec<u8> {
        let mut out = vec![0x80, 4];
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend([0x8c, text.len() as u8]);
            out.extend(text.as_bytes());
        };
        let number = |out: &mut Vec<u8>, number: u32| {
            out.push(b'J');
            out.extend(number.to_le_bytes());
        };
        let map = |out: &mut Vec<u8>, entries: &[(&str, Part)]| {
            out.extend(b"}(");
            for (key, value) in entries {
                text(out, key);
                value(out);
            }
            out.push(b'u');
        };
        let frame = |out: &mut Vec<u8>| {
            out.extend(b"](");
            for (file, line) in [("/x/torch/nn/linear.py", 9), ("/home/me/train.py", 42)] {
                out.extend(b"}(");
                text(out, "filename");
                text(out, file);
                text(out, "line");
                number(out, line);
                text(out, "name");
                text(out, "forward");
                out.push(b'u');
            }
            out.push(b'e');
        };
        let blocks = |out: &mut Vec<u8>| {
            out.extend(b"](");
            for (state, size) in [("active_allocated", 1024), ("inactive", 3072)] {
                out.extend(b"}(");
                text(out, "state");
                text(out, state);
                text(out, "size");
                number(out, size);
                text(out, "requested_size");
                number(out, 1000);
                text(out, "frames");
                frame(out);
                out.push(b'u');
            }
            out.push(b'e');
        };
        let segments = |out: &mut Vec<u8>| {
            out.extend(b"](}(");
            text(out, "device");
            number(out, 0);
            text(out, "total_size");
            number(out, 4096);
            text(out, "blocks");
            blocks(out);
            out.extend(b"ue");
        };
        let trace = |out: &mut Vec<u8>| {
            out.extend(b"](](");
            for (action, size) in [("alloc", 5000), ("free_completed", 5000), ("oom", 9000)] {
                out.extend(b"}(");
                text(out, "action");
                text(out, action);
                text(out, "size");
                number(out, size);
                out.push(b'u');
            }
            out.extend(b"ee");
        };
        map(
            &mut out,
            &[("segments", &segments), ("device_traces", &trace)],
        );
        out.push(b'.');
        out
    }

    #[test]
    fn a_snapshot_says_who_holds_what() {
        let snapshot = Snapshot::read(&pickled()).unwrap();
        let [device] = &snapshot.devices[..] else {
            panic!("{snapshot:?}");
        };
        assert_eq!(device.reserved, Bytes::new(4096));
        assert_eq!(device.allocated, Bytes::new(1024));
        assert_eq!(device.largest_free, Bytes::new(3072));
        assert_eq!(device.peak, Some(Bytes::new(6024)));
        assert_eq!(device.refused, [Bytes::new(9000)]);
        assert_eq!(device.holders[0].line, "me/train.py:42 forward");
        assert_eq!(device.holders[0].sizes, [(Bytes::new(1000), 1)]);
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        for bytes in [&b""[..], b"PK", b"\x80\x04}.", b"\x80\x04]."] {
            assert!(Snapshot::read(bytes).is_err());
        }
    }
}
