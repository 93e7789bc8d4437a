//! The recorded history of a GPU's allocations: the most that was allocated, and what was held then.

use super::stacks::Stacks;
use super::{Device, int, size};
use headroom_base::document::pickle::Value;
use headroom_base::units::Bytes;

/// The instant of a snapshot at which a plan is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// When the snapshot was taken: it has no history.
    #[default]
    End,
    /// When the most was allocated.
    Peak,
    /// When a request failed.
    Failure,
}

/// A tensor's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What was asked for.
    pub bytes: Bytes,
    /// Where it was allocated, by its place among the stacks.
    pub stack: u32,
    /// Whether its allocation is in the history, which gives it a place in the order.
    pub recorded: bool,
}

/// A block in use when the snapshot was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub address: u64,
    pub bytes: u64,
    /// What was asked for.
    pub asked: u64,
    pub stack: u32,
}

/// An allocation or a free at an address.
#[derive(Clone, Copy)]
struct Change {
    address: u64,
    at: usize,
    is_free: bool,
    bytes: u64,
    stack: u32,
}

/// Memory from its allocation to its free, by their places in the history.
struct Lifetime {
    /// None: it is older than the history.
    born: Option<usize>,
    /// None: it was in use when the snapshot was taken.
    freed: Option<usize>,
    held: Held,
}

impl Lifetime {
    fn holds(&self, instant: usize) -> bool {
        self.born.is_none_or(|born| born <= instant)
            && self.freed.is_none_or(|freed| freed > instant)
    }
}

/// Finds the instant of the history that a plan is compared with, and what was held then.
pub(super) fn follow(
    found: &mut Device,
    blocks: Vec<Block>,
    events: &[Value],
    stacks: &mut Stacks,
) {
    let (changes, failure) = changes(found, events, stacks);
    let count = changes.len();
    let lifetimes = lifetimes(changes, blocks);
    found.held = if count == 0 {
        lifetimes.iter().map(|lifetime| lifetime.held).collect()
    } else {
        let (instant, peak) = highest(&lifetimes, count);
        found.peak = Some(peak);
        found.moment = match failure {
            Some(_) => Moment::Failure,
            None => Moment::Peak,
        };
        let instant = failure.unwrap_or(instant);
        let mut alive: Vec<&Lifetime> = lifetimes
            .iter()
            .filter(|lifetime| lifetime.holds(instant))
            .collect();
        alive.sort_by_key(|lifetime| lifetime.born);
        alive.iter().map(|lifetime| lifetime.held).collect()
    };
}

/// Allocations and frees in their order, and how many came before the last request that failed.
fn changes<'a>(
    found: &mut Device,
    events: &[Value<'a>],
    stacks: &mut Stacks,
) -> (Vec<Change>, Option<usize>) {
    let action = |event: Value<'a>| event.get("action").and_then(Value::text);
    // PyTorch counts memory as allocated until its free is requested, not until other streams are done with it.
    let requested = events
        .iter()
        .any(|event| action(*event) == Some("free_requested"));
    let free = if requested {
        "free_requested"
    } else {
        "free_completed"
    };
    let mut changes: Vec<Change> = Vec::new();
    let mut failure = None;
    for &event in events {
        let is_free = match action(event) {
            Some("alloc") => false,
            Some(name) if name == free => true,
            Some("oom") => {
                found.refused.push(Bytes::new(size(event, "size")));
                failure = changes.len().checked_sub(1);
                continue;
            }
            _ => continue,
        };
        changes.push(Change {
            address: int(event, "addr") as u64,
            at: changes.len(),
            is_free,
            bytes: size(event, "size"),
            stack: if is_free {
                0
            } else {
                stacks.number(event.get("frames"))
            },
        });
    }
    (changes, failure)
}

/// Pairs allocations with frees by their address.
fn lifetimes(mut changes: Vec<Change>, mut blocks: Vec<Block>) -> Vec<Lifetime> {
    changes.sort_by_key(|change| (change.address, change.at));
    blocks.sort_by_key(|block| block.address);
    let mut lifetimes = Vec::new();
    let mut of_block = |born: Option<usize>, bytes: u64, stack: u32, freed: Option<usize>| {
        lifetimes.push(Lifetime {
            born,
            freed,
            held: Held {
                bytes: Bytes::new(bytes),
                stack,
                recorded: born.is_some(),
            },
        });
    };
    let mut blocks = blocks.into_iter().peekable();
    for at_address in changes.chunk_by(|a, b| a.address == b.address) {
        let address = at_address.first().map_or(0, |change| change.address);
        // Blocks whose address the history does not name are older than it.
        while let Some(block) = blocks.next_if(|block| block.address < address) {
            of_block(None, block.asked, block.stack, None);
        }
        let mut open: Option<&Change> = None;
        for change in at_address {
            if change.is_free {
                let born = open.take();
                let (bytes, stack) =
                    born.map_or((change.bytes, 0), |born| (born.bytes, born.stack));
                of_block(born.map(|born| born.at), bytes, stack, Some(change.at));
            } else {
                open = Some(change);
            }
        }
        let mut block = None;
        while let Some(next) = blocks.next_if(|block| block.address == address) {
            block = Some(next);
        }
        if let (Some(born), Some(block)) = (open, block) {
            let stack = if born.stack == 0 {
                block.stack
            } else {
                born.stack
            };
            of_block(Some(born.at), born.bytes, stack, None);
        }
    }
    for block in blocks {
        of_block(None, block.asked, block.stack, None);
    }
    lifetimes
}

/// The first place in the history at which the most is allocated, and how much that is.
fn highest(lifetimes: &[Lifetime], count: usize) -> (usize, Bytes) {
    let mut changes = vec![0_i128; count];
    let mut now = 0_i128;
    for lifetime in lifetimes {
        let bytes = i128::from(lifetime.held.bytes.round_up(512).get());
        match lifetime.born {
            Some(born) => changes[born] += bytes,
            None => now += bytes,
        }
        if let Some(freed) = lifetime.freed {
            changes[freed] -= bytes;
        }
    }
    let (mut at, mut most) = (0, now);
    for (place, change) in changes.iter().enumerate() {
        now += change;
        if now > most {
            (at, most) = (place, now);
        }
    }
    (at, Bytes::new(u64::try_from(most).unwrap_or(u64::MAX)))
}
