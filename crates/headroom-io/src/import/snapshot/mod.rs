//! PyTorch's memory snapshot (`torch.cuda.memory._dump_snapshot`): what the allocator holds, how it came to that, and what
//! of it a plan does not have.

mod alignment;
mod comparison;
mod history;
mod stacks;

pub use comparison::{Comparison, Resized, TensorCount, Unplanned};
pub use history::{Held, Moment};
pub use stacks::Stack;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use headroom_base::document::pickle::{Pickle, Value};
use headroom_base::units::Bytes;
use stacks::Stacks;

/// GPUs that one process can have.
const GPUS: usize = 64;

/// Blocks that are read: a process that holds as many tensors has lost its way.
const BLOCKS: usize = 500_000;

/// Events of a history that are read.
const EVENTS: usize = 4_000_000;

/// A snapshot of one process: a state for each of its GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub devices: Vec<Device>,
}

/// The allocator's memory on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub index: i64,
    pub segments: usize,
    pub reserved: Bytes,
    /// Handed out to tensors.
    pub allocated: Bytes,
    /// Requested by tensors, before rounding.
    pub requested: Bytes,
    /// Freed by the program while another stream may still use it.
    pub pending: Bytes,
    /// The largest piece that lies free within a segment.
    pub largest_free: Bytes,
    /// Blocks in use by the line that allocated them, the most memory first.
    pub holders: Vec<Holder>,
    /// The most that was allocated within the recorded history; `None` if no history was recorded.
    pub peak: Option<Bytes>,
    /// Requests that failed within it.
    pub refused: Vec<Bytes>,
    /// The instant at which a plan is compared.
    pub moment: Moment,
    /// The blocks held at that moment: those older than the history first, the rest in the order of their allocation.
    pub held: Vec<Held>,
    pub stacks: Vec<Stack>,
}

/// Blocks that one line of a program allocated and holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// `file:line function`, the innermost that is not PyTorch's own; empty if no stack was recorded.
    pub line: String,
    pub count: u64,
    pub bytes: Bytes,
}

impl Snapshot {
    /// The snapshot in a pickle, or why it is none.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let pickle = Pickle::read(bytes)?;
        let root = pickle.root();
        // `memory_snapshot()` alone is the list of segments.
        let segments = root.get("segments").unwrap_or(root);
        let mut devices: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
        let mut blocks = 0_usize;
        for segment in segments.items() {
            let Some(held) = segment.get("blocks") else {
                continue;
            };
            blocks = blocks.saturating_add(1 + held.items().count());
            devices
                .entry(int(segment, "device"))
                .or_default()
                .push(segment);
            if devices.len() > GPUS || blocks > BLOCKS {
                return Err(format!("it has more than {GPUS} GPUs or {BLOCKS} blocks"));
            }
        }
        if devices.is_empty() {
            return Err("no segments of PyTorch's allocator are in it".into());
        }
        let traces = root.get("device_traces");
        let of = |(index, segments): (i64, Vec<Value>)| {
            let trace = usize::try_from(index)
                .ok()
                .and_then(|index| traces?.items().nth(index));
            device(index, &segments, trace, &pickle)
        };
        Ok(Self {
            devices: devices.into_iter().map(of).collect(),
        })
    }

    /// The most that was allocated on one GPU within the recorded history; `None` if none was recorded.
    pub fn peak(&self) -> Option<Bytes> {
        self.devices.iter().filter_map(|device| device.peak).max()
    }
}

fn int(value: Value, key: &str) -> i64 {
    value.get(key).and_then(Value::int).unwrap_or(0)
}

fn size(value: Value, key: &str) -> u64 {
    u64::try_from(int(value, key)).unwrap_or(0)
}

fn device(index: i64, segments: &[Value], trace: Option<Value>, pickle: &Pickle) -> Device {
    let mut found = Device {
        index,
        segments: segments.len(),
        ..Device::default()
    };
    let mut stacks = Stacks::new(pickle);
    let mut blocks = Vec::new();
    for segment in segments {
        found.reserved += Bytes::new(size(*segment, "total_size"));
        let mut address = size(*segment, "address");
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
                    blocks.push(history::Block {
                        address,
                        bytes,
                        asked,
                        stack: stacks.number(frames(block)),
                    });
                }
                Some("active_pending_free" | "active_awaiting_free") => {
                    found.pending += Bytes::new(bytes);
                }
                _ => found.largest_free = found.largest_free.max(Bytes::new(bytes)),
            }
            address = address.saturating_add(bytes);
        }
    }
    found.holders = holders(&blocks, &stacks);
    let events = trace.into_iter().flat_map(Value::items).take(EVENTS);
    let events: Vec<Value> = events.collect();
    history::follow(&mut found, blocks, &events, &mut stacks);
    found.stacks = stacks.found;
    found
}

/// The stack of a block: its own since 2.1, that of its last history before.
fn frames(block: Value) -> Option<Value> {
    let own = block.get("frames");
    own.or_else(|| block.get("history")?.items().next()?.get("frames"))
}

/// Blocks by the line that allocated them.
fn holders(blocks: &[history::Block], stacks: &Stacks) -> Vec<Holder> {
    let line = |block: &history::Block| stacks.line(block.stack);
    let mut by_line: Vec<&history::Block> = blocks.iter().collect();
    by_line.sort_by(|a, b| line(a).cmp(line(b)));
    let of_line = |blocks: &[&history::Block]| Holder {
        line: blocks.first().map_or("", |block| line(block)).into(),
        count: blocks.len() as u64,
        bytes: blocks.iter().map(|block| Bytes::new(block.bytes)).sum(),
    };
    let mut holders: Vec<Holder> = by_line
        .chunk_by(|a, b| line(a) == line(b))
        .map(of_line)
        .collect();
    holders.sort_by_key(|holder| Reverse(holder.bytes));
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes one value of a pickle.
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
                text(out, "addr");
                number(out, 65536);
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
        assert_eq!(device.peak, Some(Bytes::new(1024 + 5120)));
        assert_eq!(device.moment, Moment::Failure);
        assert_eq!(device.refused, [Bytes::new(9000)]);
        assert_eq!(device.holders[0].line, "me/train.py:42 forward");
        let held = Held {
            bytes: Bytes::new(1000),
            stack: 1,
            recorded: false,
        };
        assert_eq!(device.held, [held]);
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        for bytes in [&b""[..], b"PK", b"\x80\x04}.", b"\x80\x04]."] {
            assert!(Snapshot::read(bytes).is_err());
        }
    }
}
