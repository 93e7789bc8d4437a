//! Which stretches of a recorded forward pass are layers and linear modules, which a run may change.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::program::{Graph, Instruction, Program, Role, StrideOrder, Value};
use super::region::{Region, Survey};

/// What a recorded program consists of, as far as methods of training know it: each part is looked for when a run asks, for a
/// plain run needs neither.
#[derive(Debug)]
pub(super) struct Plan {
    graph: Rc<Graph>,
    program: Rc<Program>,
    survey: OnceCell<Survey>,
    layers: OnceCell<Vec<Layer>>,
    linears: OnceCell<Linears>,
    /// The places of parameters and buffers, by their memory.
    pub params: BTreeMap<u32, usize>,
}

#[derive(Debug)]
struct Linears {
    all: Vec<Linear>,
    /// The memory of their parameters, and the nodes that they make.
    held: BTreeSet<u32>,
    nodes: BTreeSet<u32>,
}

/// One run of an item of a list of equal modules.
#[derive(Debug)]
pub(super) struct Layer {
    pub region: Region,
    /// The module's path, and its place in the list.
    pub path: Vec<String>,
    pub index: usize,
}

/// One run of an `nn.Linear`, or of transformers' `Conv1D`.
#[derive(Debug)]
pub(super) struct Linear {
    pub region: Region,
    /// Its weight among the graph's parameters.
    pub param: usize,
    pub bias: bool,
    /// The weight is `[in, out]`.
    pub turned: bool,
    pub output: Value,
}

/// The most layers and linear modules that are distinguished.
const MOST: usize = 1 << 14;

impl Plan {
    pub(crate) fn of(graph: &Rc<Graph>, program: &Rc<Program>) -> Self {
        Self {
            params: (0..)
                .zip(&graph.params)
                .map(|(place, param)| (param.slot, place))
                .collect(),
            graph: graph.clone(),
            program: program.clone(),
            survey: OnceCell::new(),
            layers: OnceCell::new(),
            linears: OnceCell::new(),
        }
    }

    fn survey(&self) -> &Survey {
        self.survey.get_or_init(|| Survey::of(&self.program.steps))
    }

    /// Whether there is a layer. Searches ask that of one program thousands of times.
    pub(crate) fn has_layers(&self) -> bool {
        let known = &self.program.has_layers;
        *known.get_or_init(|| !self.layers().is_empty())
    }

    /// The same for linear modules.
    pub(crate) fn has_linears(&self) -> bool {
        let known = &self.program.has_linears;
        *known.get_or_init(|| !self.linears().is_empty())
    }

    /// Whether the program says what the model returns.
    pub(crate) fn returns(&self) -> bool {
        let mut steps = self.program.steps.forward.iter();
        steps.any(|step| matches!(step, Instruction::Output(_)))
    }

    /// In the order of their steps, apart from one another.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.layers
            .get_or_init(|| layers(&self.graph, &self.program, self.survey()))
    }

    /// The same for linear modules.
    pub(crate) fn linears(&self) -> &[Linear] {
        &self.found().all
    }

    fn found(&self) -> &Linears {
        self.linears.get_or_init(|| {
            let graph = &*self.graph;
            let mut all = linears(graph, &self.program, self.survey());
            let elsewhere = used_outside(&self.program, &all);
            let mut slots: BTreeMap<&[String], Vec<u32>> = BTreeMap::new();
            for param in &graph.params {
                slots.entry(&param.modules).or_default().push(param.slot);
            }
            let slots_of = |linear: &Linear| {
                let weight = graph.params.get(linear.param);
                let own = weight.and_then(|weight| slots.get(weight.modules.as_slice()));
                own.into_iter().flatten().copied()
            };
            all.retain(|linear| slots_of(linear).all(|slot| !elsewhere.contains(&slot)));
            let nodes = all.iter().flat_map(|linear| &linear.region.nodes);
            Linears {
                held: all.iter().flat_map(slots_of).collect(),
                nodes: nodes.copied().collect(),
                all,
            }
        })
    }

    /// Whether memory is a linear module's parameter.
    pub(crate) fn holds(&self, slot: u32) -> bool {
        self.found().held.contains(&slot)
    }

    /// Whether a node is a linear module's.
    pub(crate) fn replaces(&self, node: u32) -> bool {
        self.found().nodes.contains(&node)
    }

    pub(crate) fn layer_at(&self, step: usize) -> Option<&Layer> {
        let layers = self.layers();
        let place = layers.binary_search_by_key(&step, |layer| layer.region.steps.start);
        place.ok().and_then(|place| layers.get(place))
    }

    pub(crate) fn linear_at(&self, step: usize) -> Option<&Linear> {
        let linears = self.linears();
        let place = linears.binary_search_by_key(&step, |linear| linear.region.steps.start);
        place.ok().and_then(|place| linears.get(place))
    }
}

/// Memory that steps outside of linear modules use.
fn used_outside(program: &Program, linears: &[Linear]) -> BTreeSet<u32> {
    let mut used = BTreeSet::new();
    let mut rest = linears.iter().peekable();
    for (at, step) in program.steps.forward.iter().enumerate() {
        while rest
            .next_if(|linear| linear.region.steps.end <= at)
            .is_some()
        {}
        let inside = rest
            .peek()
            .is_some_and(|linear| linear.region.steps.contains(&at));
        match step {
            _ if inside => {}
            Instruction::Call { inputs, .. } => used.extend(inputs.iter().map(|value| value.slot)),
            Instruction::Save { value, .. } => {
                used.insert(value.slot);
            }
            _ => {}
        }
    }
    used
}

fn layers(graph: &Graph, program: &Program, survey: &Survey) -> Vec<Layer> {
    let rows: Vec<(Vec<&str>, &super::program::Row)> = graph
        .layers
        .iter()
        .map(|row| (row.path.split('.').collect(), row))
        .collect();
    // The item of a list that a scope is in: the row, and the item's place.
    let item = |scope: &Vec<String>| {
        rows.iter().enumerate().find_map(|(at, (path, row))| {
            let starts = scope.iter().zip(path).all(|(part, name)| part == name);
            let place: usize = scope.get(path.len())?.parse().ok()?;
            let holds = starts && scope.len() > path.len() && row.places().contains(&place);
            (holds && place < MOST).then_some((at * MOST + place) as u32)
        })
    };
    let owners: Vec<Option<u32>> = program.scopes.iter().map(item).collect();
    let owner = |scope: u32| owners.get(scope as usize).copied().flatten();
    let stretches = survey.stretches(&program.steps, owner);
    let found = stretches.into_iter().filter_map(|(owner, range)| {
        let (row, index) = (owner as usize / MOST, owner as usize % MOST);
        let region = survey.region(&program.steps, range)?;
        let (path, _) = rows.get(row)?;
        let mut path: Vec<String> = path.iter().map(ToString::to_string).collect();
        path.push(index.to_string());
        Some(Layer {
            region,
            path,
            index,
        })
    });
    found.take(MOST).collect()
}

fn linears(graph: &Graph, program: &Program, survey: &Survey) -> Vec<Linear> {
    let weights = graph.params.iter().enumerate().filter(|(_, param)| {
        param.name == "weight" && param.shape.len() == 2 && param.role != Role::Buffer
    });
    let by_path: BTreeMap<&[String], usize> = weights
        .map(|(place, param)| (param.modules.as_slice(), place))
        .collect();
    let owners: Vec<Option<u32>> = program
        .scopes
        .iter()
        .map(|scope| by_path.get(scope.as_slice()).map(|place| *place as u32))
        .collect();
    let owner = |scope: u32| owners.get(scope as usize).copied().flatten();
    let stretches = survey.stretches(&program.steps, owner);
    let found = stretches.into_iter().filter_map(|(owner, range)| {
        let region = survey.region(&program.steps, range)?;
        linear(graph, program, survey, owner as usize, region)
    });
    found.take(MOST).collect()
}

/// A region as a linear module; none where it does anything else.
fn linear(
    graph: &Graph,
    program: &Program,
    survey: &Survey,
    param: usize,
    region: Region,
) -> Option<Linear> {
    const PARTS: &[&str] = &[
        "t",
        "view",
        "_to_copy",
        "mm",
        "addmm",
        "_unsafe_view",
        "transpose",
    ];
    let weight = graph.params.get(param)?;
    let [_] = region.inputs.as_slice() else {
        return None;
    };
    // Casts of its weight under autocast outlive it, and nobody reads them.
    let end = region.steps.end;
    let mut read = region.outputs.iter();
    let mut read = read
        .by_ref()
        .filter(|value| survey.is_read_from(value.slot, end));
    let output = *read.next()?;
    if read.next().is_some() {
        return None;
    }
    let mut turned = true;
    let mut products = 0;
    let own = |slot: u32| {
        graph
            .params
            .get(param)
            .is_some_and(|weight| weight.slot == slot)
    };
    for step in program.steps.forward.get(region.steps.clone())? {
        let Instruction::Call { call, inputs, .. } = step else {
            continue;
        };
        let name = program.calls.get(*call as usize)?.name();
        if !PARTS.contains(&name) {
            return None;
        }
        // `nn.Linear` transposes its weight.
        let transposed = |value: &Value| match program.types.get(value.tensor_type as usize) {
            Some(tensor_type) => matches!(tensor_type.stride_order, StrideOrder::Ordered(_)),
            None => false,
        };
        turned &= !inputs
            .iter()
            .any(|value| own(value.slot) && transposed(value));
        products += usize::from(matches!(name, "mm" | "addmm"));
    }
    if products != 1 {
        return None;
    }
    let bias = graph
        .params
        .iter()
        .any(|other| other.name == "bias" && other.modules == weight.modules);
    Some(Linear {
        region,
        param,
        bias,
        turned,
        output,
    })
}
