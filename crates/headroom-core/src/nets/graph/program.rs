//! What a file records: parameters, and for each precision the operations of forward and backward.

use std::cell::OnceCell;
use std::rc::Rc;

use smallvec::SmallVec;

use super::size::Size;
use crate::tape::DType;
use crate::tape::ops::Call;

/// A recorded model.
#[derive(Debug)]
pub struct Graph {
    /// As its author calls it.
    pub name: String,
    /// The batch and the length of the example it was recorded from; older files do not say it.
    pub(super) asked: Option<(u64, u64)>,
    /// What of it is not in the recording, in words.
    pub leaves_out: Vec<String>,
    pub(super) params: Vec<Declared>,
    /// Lists of equal modules.
    pub(super) layers: Vec<Row>,
    pub(super) programs: Vec<Rc<Program>>,
}

impl Graph {
    /// Operations of its first program that make memory and have no rule, with how often each is called.
    pub fn unruled(&self) -> Vec<(String, usize)> {
        let mut all: Vec<(String, usize)> = Vec::new();
        let Some(program) = self.programs.first() else {
            return all;
        };
        let backward = program.steps.nodes.iter().flat_map(|node| &node.steps);
        for step in program.steps.forward.iter().chain(backward) {
            let Instruction::Call { call, made, .. } = step else {
                continue;
            };
            let other = program.calls.get(*call as usize).and_then(Call::unruled);
            if let Some(name) = other.filter(|_| !made.is_empty()) {
                match all.iter_mut().find(|(known, _)| known == name) {
                    Some((_, count)) => *count += 1,
                    None => all.push((name.to_string(), 1)),
                }
            }
        }
        all
    }

    /// The classes of the modules that stand in lists, as Python imports them, each once.
    pub fn layer_classes(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for row in &self.layers {
            if !all.contains(&row.class.as_str()) {
                all.push(&row.class);
            }
        }
        all
    }

    /// The item of a list of layers that a parameter is in: its path, and its place in the list.
    pub(super) fn layer_of(&self, param: &Declared) -> Option<(Vec<String>, usize)> {
        self.layers.iter().find_map(|row| {
            let mut modules = param.modules.iter();
            let mut path = Vec::new();
            for part in row.path.split('.') {
                path.push(modules.next().filter(|module| *module == part)?.clone());
            }
            let item = modules.next()?;
            let index: usize = item.parse().ok()?;
            path.push(item.clone());
            row.places().contains(&index).then_some((path, index))
        })
    }

    /// How many numbers its parameters hold.
    pub fn parameters(&self) -> u64 {
        let params = self
            .params
            .iter()
            .filter(|param| param.role != Role::Buffer);
        let count = |param: &Declared| {
            let sizes = param.shape.iter();
            sizes.fold(1, |all: u64, size| all.saturating_mul(*size))
        };
        params.map(count).fold(0, u64::saturating_add)
    }

    /// The batch and the length of its example, else of its first program.
    pub fn example(&self) -> Option<(u64, u64)> {
        if self.asked.is_some() {
            return self.asked;
        }
        let program = self.programs.first()?;
        Some((*program.batches.first()?, *program.lengths.first()?))
    }
}

/// Items of a list of modules that are of one class and stand side by side.
#[derive(Debug)]
pub(super) struct Row {
    /// Of the list.
    pub path: String,
    /// As Python imports it.
    pub class: String,
    pub first: usize,
    pub count: usize,
}

impl Row {
    pub(crate) fn places(&self) -> std::ops::Range<usize> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// A parameter or a buffer of the model.
#[derive(Debug)]
pub(super) struct Declared {
    /// The modules it is in, and its own name.
    pub modules: Vec<String>,
    pub name: String,
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub role: Role,
    pub slot: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Frozen,
    Trained,
    Buffer,
}

/// The precision a program was recorded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedPrecision {
    /// In the weights' own type.
    Plain,
    Autocast,
    /// All floating tensors in 16 bits.
    Half,
}

/// One recorded step, with sizes as expressions.
#[derive(Debug)]
pub(super) struct Program {
    pub kind: RecordedPrecision,
    /// The batches and lengths it was recorded at; where there is one alone it holds for no other.
    pub batches: Vec<u64>,
    pub lengths: Vec<u64>,
    pub calls: Vec<Call>,
    pub scopes: Rc<Vec<Vec<String>>>,
    pub types: Vec<Type>,
    pub steps: Instructions,
    /// Memory that modules keep from a step to the next, each with what is kept in its place after this one.
    pub kept: Vec<(Value, u32)>,
    /// Nodes that a backward pass within forward makes (`create_graph`), in rising order.
    pub inner: Vec<u32>,
    /// Tensors of the batch that require a gradient, which they hold as long as they live.
    pub held: Vec<u32>,
    /// Whether layers and linear modules are found in it, which is looked for once.
    pub has_layers: OnceCell<bool>,
    pub has_linears: OnceCell<bool>,
}

/// What a program does.
#[derive(Debug)]
pub(super) struct Instructions {
    pub forward: Vec<Instruction>,
    pub nodes: Vec<Node>,
    /// The loss, and the node that made it.
    pub loss: (Value, u32),
    /// One more than the highest number of a slot, and of a saved tensor.
    pub slots: usize,
    pub saves: usize,
}

/// What a tensor looks like.
#[derive(Debug)]
pub(super) struct Type {
    pub dtype: DType,
    pub shape: Vec<Size>,
    pub stride_order: StrideOrder,
    /// Of the memory it lies in.
    pub bytes: Spans,
}

/// The memory of a tensor.
#[derive(Debug)]
pub(super) enum Spans {
    /// Its elements alone.
    Elements,
    /// From its first element to its last, with the gaps that its strides leave.
    Reach,
    Bytes(Size),
}

/// The memory layout of a tensor.
#[derive(Debug)]
pub(super) enum StrideOrder {
    RowMajor,
    /// Dense, the dimensions from outermost to innermost.
    Ordered(Vec<usize>),
    Strides(Vec<Size>),
}

/// A tensor in a program: the number of its memory and its type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub slot: u32,
    pub tensor_type: u32,
}

/// The tensors of a call, of which most have few: a graph has so many calls that a piece of memory for each list would be
/// most of the work of reading it.
pub(super) type Values = SmallVec<[Value; 2]>;

#[derive(Clone, Debug)]
pub(super) enum Instruction {
    Call {
        call: u32,
        scope: u32,
        inputs: Values,
        made: Values,
    },
    /// The last Python reference to this memory is dropped.
    Free(u32),
    Save {
        save: u32,
        value: Value,
    },
    /// The node that held it is freed.
    Unsave(u32),
    Unpack {
        slot: u32,
        save: u32,
    },
    Node(u32),
    Batch(Value),
    /// A backward pass within forward has given a parameter its gradient.
    Given {
        leaf: u32,
        gradient: Value,
    },
    /// What the model returns, which a loop may keep.
    Output(Value),
}

/// A node of the graph that the loss leads to.
#[derive(Debug)]
pub(super) struct Node {
    pub edges: SmallVec<[Edge; 2]>,
    pub saves: SmallVec<[u32; 4]>,
    /// The memory of its incoming gradients.
    pub incoming: SmallVec<[Option<u32>; 2]>,
    pub steps: Vec<Instruction>,
    pub outgoing: SmallVec<[Option<Gradient>; 2]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Edge {
    None,
    /// To a parameter, by the number of its memory.
    Leaf(u32),
    Node {
        node: u32,
        output: u32,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gradient {
    pub value: Value,
    pub view: bool,
}
