//! The steps of a program as a file writes them: one list of numbers, in which what has stood there before is written as how
//! far back and how many.

use smallvec::{Array, SmallVec};

use super::program::{Edge, Gradient, Instruction, Instructions, Node, Value, Values};
use headroom_base::document::Document;
use headroom_base::list::push;

/// Why steps cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// They stand for more numbers than are read.
    TooLong { most: usize },
    /// They are not as a recorder writes them.
    Unreadable,
}

/// How many entries the tables of a program have.
pub(super) struct Limits {
    pub types: usize,
    pub calls: usize,
    pub scopes: usize,
}

/// The most numbers that a program may stand for.
const MOST: usize = 5 << 18;

/// How distances are written.
#[derive(Clone, Copy)]
pub(super) enum Distances {
    /// From the last of their kind, and what is far from it as it is.
    FromLast,
    /// From one of the last places of their kind.
    FromPlaces,
}

/// What is counted up, and so written as its distance from the last.
#[derive(Clone, Copy)]
enum Counted {
    Slot,
    Save,
    Node,
    Scope,
    Leaf,
}

pub(super) struct Stream {
    numbers: std::vec::IntoIter<u32>,
    limits: Limits,
    distances: Distances,
    last: [Option<i64>; 5],
    places: [Places; 5],
    nodes: usize,
    slots: usize,
    saves: usize,
}

/// Where the last numbers of a kind were, the latest first: layers refer to a few places each, their own activations, weights
/// and what was made long before, and each of them moves on with the layers.
struct Places {
    all: [i64; Self::MOST],
    count: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            all: [0; Self::MOST],
            count: 1,
        }
    }
}

impl Places {
    const MOST: usize = 8;
    const NEAR: i64 = 100;

    /// A number that is written as its distance from one of the places, which moves to it; what is far begins another.
    fn read(&mut self, written: i64) -> Option<i64> {
        let most = Self::MOST as i64;
        let at = usize::try_from(written % most).ok()?;
        let (away, back) = (written / most / 2, written / most % 2 == 1);
        let place = *self.all.get(..self.count)?.get(at)?;
        let number = if back { place - away } else { place + away };
        let moved = if away < Self::NEAR {
            at
        } else {
            self.count = (self.count + 1).min(Self::MOST);
            self.count - 1
        };
        self.all.get_mut(..=moved)?.rotate_right(1);
        *self.all.first_mut()? = number;
        Some(number)
    }
}

impl Stream {
    /// The numbers, with what is repeated written out; they take from the room for all programs of a file.
    pub(crate) fn open(
        rows: &[Document],
        limits: Limits,
        distances: Distances,
        room: &mut usize,
    ) -> Result<Self, Damage> {
        let most = MOST.min(*room);
        let natural = |n: &i128| usize::try_from(*n).map_err(|_| Damage::Unreadable);
        let mut numbers: Vec<u32> = Vec::new();
        for row in rows {
            match row {
                Document::Int(n) => {
                    numbers.push(u32::try_from(*n).map_err(|_| Damage::Unreadable)?);
                }
                Document::List(pair) => {
                    let [Document::Int(back), Document::Int(count)] = pair.as_slice() else {
                        return Err(Damage::Unreadable);
                    };
                    let start = numbers.len().checked_sub(natural(back)?);
                    let start = start.ok_or(Damage::Unreadable)?;
                    let count = natural(count)?;
                    if numbers.len().saturating_add(count) > most {
                        return Err(Damage::TooLong { most });
                    }
                    // A run may repeat itself.
                    let whole = count.min(numbers.len() - start);
                    numbers.extend_from_within(start..start + whole);
                    for at in start + whole..start + count {
                        numbers.push(*numbers.get(at).ok_or(Damage::Unreadable)?);
                    }
                }
                _ => return Err(Damage::Unreadable),
            }
            if numbers.len() > most {
                return Err(Damage::TooLong { most });
            }
        }
        *room -= numbers.len();
        Ok(Self {
            numbers: numbers.into_iter(),
            limits,
            distances,
            last: [None; 5],
            places: Default::default(),
            nodes: 0,
            slots: 0,
            saves: 0,
        })
    }

    pub(crate) fn program(mut self) -> Option<Instructions> {
        self.nodes = self.count()?;
        let forward = self.steps()?;
        let nodes = (0..self.nodes)
            .map(|place| self.node(place))
            .collect::<Option<Vec<_>>>()?;
        let value = self.value()?;
        let node = self.below(nodes.len())?;
        self.numbers.next().is_none().then_some(Instructions {
            forward,
            nodes,
            loss: (value, node),
            slots: self.slots,
            saves: self.saves,
        })
    }

    /// How many follow: no more than there are numbers left.
    fn count(&mut self) -> Option<usize> {
        let count = self.numbers.next()? as usize;
        (count <= self.numbers.len()).then_some(count)
    }

    /// As many items as their count says, in no more room than they take: a graph has a hundred thousand lists, each of a few.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        const BELIEVED: usize = 512;
        let count = self.count()?;
        let mut all = Vec::with_capacity(count.min(BELIEVED));
        for _ in 0..count {
            push(&mut all, item(self)?);
        }
        all.shrink_to_fit();
        Some(all)
    }

    /// The same for lists that mostly have a few.
    fn few<A: Array>(
        &mut self,
        item: impl Fn(&mut Self) -> Option<A::Item>,
    ) -> Option<SmallVec<A>> {
        let mut all = SmallVec::new();
        for _ in 0..self.count()? {
            all.push(item(self)?);
        }
        all.shrink_to_fit();
        Some(all)
    }

    fn below(&mut self, limit: usize) -> Option<u32> {
        self.numbers.next().filter(|n| (*n as usize) < limit)
    }

    /// A number that is written from the last of its kind.
    fn from_last(&mut self, kind: Counted, written: i64) -> Option<i64> {
        const FAR: i64 = 400;
        let last = self.last.get_mut(kind as usize)?;
        let before = last.unwrap_or(0);
        if written % 2 == 1 {
            let number = written / 2;
            if !matches!(kind, Counted::Slot) || last.is_none() || number > before {
                *last = Some(number);
            }
            return Some(number);
        }
        let away = written / 4;
        let number = if written % 4 == 2 {
            before - away
        } else {
            before + away
        };
        *last = Some(number);
        (away < FAR).then_some(number)
    }

    fn counted(&mut self, kind: Counted) -> Option<u32> {
        let written = i64::from(self.numbers.next()?);
        let number = match self.distances {
            Distances::FromLast => self.from_last(kind, written)?,
            Distances::FromPlaces => self.places.get_mut(kind as usize)?.read(written)?,
        };
        let number = u32::try_from(number)
            .ok()
            .filter(|n| (*n as usize) < MOST)?;
        let most = number as usize + 1;
        match kind {
            Counted::Slot | Counted::Leaf => self.slots = self.slots.max(most),
            Counted::Save => self.saves = self.saves.max(most),
            Counted::Node if most > self.nodes => return None,
            Counted::Scope if most > self.limits.scopes => return None,
            Counted::Node | Counted::Scope => {}
        }
        Some(number)
    }

    fn value(&mut self) -> Option<Value> {
        Some(Value {
            slot: self.counted(Counted::Slot)?,
            tensor_type: self.below(self.limits.types)?,
        })
    }

    fn values(&mut self) -> Option<Values> {
        self.few(Self::value)
    }

    fn steps(&mut self) -> Option<Vec<Instruction>> {
        self.list(Self::step)
    }

    fn step(&mut self) -> Option<Instruction> {
        Some(match self.numbers.next()? {
            0 => Instruction::Call {
                call: self.below(self.limits.calls)?,
                scope: self.counted(Counted::Scope)?,
                inputs: self.values()?,
                made: self.values()?,
            },
            1 => Instruction::Free(self.counted(Counted::Slot)?),
            2 => Instruction::Save {
                save: self.counted(Counted::Save)?,
                value: self.value()?,
            },
            3 => Instruction::Unsave(self.counted(Counted::Save)?),
            4 => Instruction::Unpack {
                slot: self.counted(Counted::Slot)?,
                save: self.counted(Counted::Save)?,
            },
            5 => Instruction::Node(self.counted(Counted::Node)?),
            6 => Instruction::Batch(self.value()?),
            7 => Instruction::Given {
                leaf: self.counted(Counted::Leaf)?,
                gradient: self.value()?,
            },
            8 => Instruction::Output(self.value()?),
            _ => return None,
        })
    }

    fn node(&mut self, place: usize) -> Option<Node> {
        let edges = self.few(|stream| stream.edge(place))?;
        let saves = self.few(|stream| stream.counted(Counted::Save))?;
        let incoming = self.few(|stream| match stream.numbers.next()? {
            0 => Some(None),
            _ => stream.counted(Counted::Slot).map(Some),
        })?;
        let steps = self.steps()?;
        let outgoing = self.few(|stream| match stream.numbers.next()? {
            0 => Some(None),
            kind => Some(Some(Gradient {
                value: stream.value()?,
                view: kind == 2,
            })),
        })?;
        Some(Node {
            edges,
            saves,
            incoming,
            steps,
            outgoing,
        })
    }

    fn edge(&mut self, place: usize) -> Option<Edge> {
        const MOST_OUTPUTS: usize = 4096;
        Some(match self.numbers.next()? {
            0 => Edge::None,
            1 => Edge::Leaf(self.counted(Counted::Leaf)?),
            2 => {
                // Gradients flow to nodes made before: there are no circles.
                let back = self.numbers.next()? as usize;
                let node = place.checked_sub(back).filter(|node| *node < place)?;
                Edge::Node {
                    node: u32::try_from(node).ok()?,
                    output: self.below(MOST_OUTPUTS)?,
                }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::nets::graph::shipped;

    #[test]
    fn a_graph_is_no_larger_than_its_items() {
        // The largest that is shipped: with room for twice as many items it took 75 MiB.
        let graph = shipped("mamba2-370m").unwrap();
        let mut lists = 0;
        let mut check = |len: usize, capacity: usize| {
            assert_eq!(len, capacity);
            lists += 1;
        };
        for program in &graph.programs {
            check(
                program.steps.forward.len(),
                program.steps.forward.capacity(),
            );
            for node in &program.steps.nodes {
                check(node.steps.len(), node.steps.capacity());
                if node.edges.spilled() {
                    check(node.edges.len(), node.edges.capacity());
                }
                if node.outgoing.spilled() {
                    check(node.outgoing.len(), node.outgoing.capacity());
                }
            }
        }
        assert!(lists > 1_000, "{lists}");
    }
}
