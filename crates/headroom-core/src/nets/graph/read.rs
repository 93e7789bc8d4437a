//! Reading a recorded file, with suspicion: every number is checked before it is used.

use std::cell::OnceCell;
use std::rc::Rc;

use super::program::{
    Declared, Graph, Program, RecordedPrecision, Role, Row, Spans, StrideOrder, Type, Value,
};
use super::size::Size;
use super::stream::{Damage, Distances, Limits, Stream};
use crate::tape::DType;
use crate::tape::ops::Call;
use headroom_base::document::{Document, json};

/// The longest file that is read.
const LONGEST: usize = 16 << 20;
const MOST_DIMS: usize = 16;
/// The most numbers that the programs of a file may stand for together: Qwen3-Next's six stand for 6.4 million.
const MOST_NUMBERS: usize = 8 << 20;
/// The most modules that stand one inside another.
const DEEPEST: usize = 64;

/// Reads the text of a recorded file.
pub fn read(text: &str) -> Result<Graph, String> {
    if text.len() > LONGEST {
        return Err(format!("the file is longer than {} MiB", LONGEST >> 20));
    }
    from_document(&json::read(text)?)
}

/// Reads the document of a recorded file.
pub fn from_document(document: &Document) -> Result<Graph, String> {
    let distances = match document.get("headroom") {
        Some(Document::Int(2)) => Distances::FromLast,
        Some(Document::Int(3)) => Distances::FromPlaces,
        Some(Document::Int(other)) => {
            return Err(format!(
                "format {other} is not known; record the model anew"
            ));
        }
        _ => return Err("not a recorded model: it lacks `headroom`".into()),
    };
    graph(document, distances)
}

/// What is said of a part that cannot be read.
fn damaged(part: &str) -> String {
    format!("the recording is damaged: `{part}` is not as a recorder writes it; record it again")
}

/// Whether a document claims to be a recorded model.
pub fn is_recorded(document: &Document) -> bool {
    document.get("headroom").is_some() && document.get("programs").is_some()
}

fn graph(document: &Document, distances: Distances) -> Result<Graph, String> {
    let rows = |name: &str| document.get(name).and_then(list);
    let params = || {
        rows("params")
            .and_then(counted_up)?
            .iter()
            .map(declared)
            .collect::<Option<Vec<_>>>()
    };
    let scopes = || {
        rows("scopes")
            .and_then(counted_up)?
            .iter()
            .map(scope)
            .collect::<Option<Vec<_>>>()
    };
    let scopes: Vec<Vec<String>> = scopes().ok_or_else(|| damaged("scopes"))?;
    let scopes = Rc::new(scopes);
    let programs = rows("programs").ok_or_else(|| damaged("programs"))?;
    let mut room = MOST_NUMBERS;
    let optional = |name: &str| match document.get(name) {
        Some(rows) => list(rows).ok_or_else(|| damaged(name)),
        None => Ok(&[] as &[Document]),
    };
    let lines = optional("leaves_out")?.iter().take(MOST_LINES).map(line);
    let layers = optional("layers")?.iter().map(layers);
    let name = document.get("name").and_then(text);
    Ok(Graph {
        name: name.ok_or_else(|| damaged("name"))?.to_string(),
        asked: match document.get("example") {
            Some(pair) => Some(example(pair).ok_or_else(|| damaged("example"))?),
            None => None,
        },
        leaves_out: lines
            .collect::<Option<_>>()
            .ok_or_else(|| damaged("leaves_out"))?,
        params: params().ok_or_else(|| damaged("params"))?,
        layers: layers
            .collect::<Option<_>>()
            .ok_or_else(|| damaged("layers"))?,
        programs: programs
            .iter()
            .map(|value| program(value, &scopes, distances, &mut room).map(Rc::new))
            .collect::<Result<_, _>>()?,
    })
}

fn scope(row: &Counted) -> Option<Vec<String>> {
    match row.path.as_str() {
        "" => Some(Vec::new()),
        path => parts(path),
    }
}

/// A batch and a length of at least one.
fn example(pair: &Document) -> Option<(u64, u64)> {
    let [batch, length] = list(pair)? else {
        return None;
    };
    let positive = |n: &Document| count(n).filter(|n| *n > 0).map(u64::from);
    Some((positive(batch)?, positive(length)?))
}

/// The most lines of words that are shown, and their longest.
const MOST_LINES: usize = 8;
const LONGEST_LINE: usize = 200;

fn line(value: &Document) -> Option<String> {
    let printable = |c: &char| !c.is_control();
    Some(
        text(value)?
            .chars()
            .filter(printable)
            .take(LONGEST_LINE)
            .collect(),
    )
}

/// The modules of a path.
fn parts(path: &str) -> Option<Vec<String>> {
    let all: Vec<String> = path.split('.').map(String::from).collect();
    (all.len() <= DEEPEST).then_some(all)
}

fn layers(row: &Document) -> Option<Row> {
    let [path, class, first, number] = list(row)? else {
        return None;
    };
    Some(Row {
        path: text(path)?.to_string(),
        class: text(class)?.to_string(),
        first: count(first)? as usize,
        count: count(number)? as usize,
    })
}

/// A row that has a path and a number, of which others may be counted up from it.
#[derive(Clone)]
struct Counted<'a> {
    path: String,
    rest: &'a [Document],
    number: u32,
}

/// The most rows that a list may stand for.
const MOST_ROWS: usize = 1 << 17;

/// Rows of which `[period, times, place, step]` repeats the last: each time with the number at this place of the path one
/// higher, and its own number by a step.
fn counted_up(rows: &[Document]) -> Option<Vec<Counted<'_>>> {
    // A few characters repeat a path of any length.
    const MOST_BYTES: usize = 32 << 20;
    let mut bytes = 0;
    let mut all: Vec<Counted> = Vec::with_capacity(rows.len());
    for row in rows {
        match row {
            Document::Text(path) => all.push(Counted {
                path: path.clone(),
                rest: &[],
                number: 0,
            }),
            Document::List(parts) => match parts.as_slice() {
                [Document::Text(path), rest @ .., slot] => all.push(Counted {
                    path: path.clone(),
                    rest,
                    number: count(slot)?,
                }),
                [period, times, place, step] => {
                    let (period, times) = (count(period)? as usize, count(times)? as usize);
                    let (place, step) = (count(place)? as usize, count(step)?);
                    let more = period.checked_mul(times)?;
                    if all.len().checked_add(more)? > MOST_ROWS {
                        return None;
                    }
                    for _ in 0..more {
                        let before = all.get(all.len().checked_sub(period)?)?;
                        let next = before.next(place, step)?;
                        bytes += next.path.len();
                        if bytes > MOST_BYTES {
                            return None;
                        }
                        all.push(next);
                    }
                }
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(all)
}

impl Counted<'_> {
    fn next(&self, place: usize, step: u32) -> Option<Self> {
        let mut parts = parts(&self.path)?;
        let part = parts.get_mut(place)?;
        let number: u32 = part.parse().ok()?;
        *part = number.checked_add(1)?.to_string();
        Some(Self {
            path: parts.join("."),
            rest: self.rest,
            number: self.number.checked_add(step)?,
        })
    }
}

fn declared(row: &Counted) -> Option<Declared> {
    let [dtype, shape, role] = row.rest else {
        return None;
    };
    let mut modules = parts(&row.path)?;
    let name = modules.pop()?;
    Some(Declared {
        modules,
        name,
        shape: list(shape)?
            .iter()
            .map(|n| count(n).map(u64::from))
            .collect::<Option<_>>()?,
        dtype: dtype_of(text(dtype)?)?,
        role: match count(role)? {
            0 => Role::Frozen,
            1 => Role::Trained,
            _ => Role::Buffer,
        },
        slot: row.number,
    })
}

fn program(
    document: &Document,
    scopes: &Rc<Vec<Vec<String>>>,
    distances: Distances,
    room: &mut usize,
) -> Result<Program, String> {
    let field = |name: &str| document.get(name).and_then(list);
    let sizes = |name: &'static str| {
        let all = || {
            field(name)?
                .iter()
                .map(|n| count(n).map(u64::from))
                .collect::<Option<Vec<u64>>>()
        };
        all().ok_or_else(|| damaged(name))
    };
    let (batches, lengths): (Vec<u64>, Vec<u64>) = (sizes("batches")?, sizes("lengths")?);
    let types = || {
        field("types")?
            .iter()
            .map(tensor_type)
            .collect::<Option<_>>()
    };
    let types: Vec<Type> = types().ok_or_else(|| damaged("types"))?;
    let calls = || {
        let named = |name| text(name).map(Call::new);
        field("ops")?.iter().map(named).collect::<Option<_>>()
    };
    let calls: Vec<Call> = calls().ok_or_else(|| damaged("ops"))?;
    let limits = Limits {
        types: types.len(),
        calls: calls.len(),
        scopes: scopes.len(),
    };
    let rows = field("steps").ok_or_else(|| damaged("steps"))?;
    let steps = Stream::open(rows, limits, distances, room).map_err(|damage| match damage {
        Damage::Unreadable => damaged("steps"),
        Damage::TooLong { most } => format!(
            "the program for batches {batches:?} and lengths {lengths:?} is too long: its steps are more than the {most} \
             numbers that are left of {MOST_NUMBERS}; record it at fewer sizes"
        ),
    })?;
    let steps = steps.program().ok_or_else(|| damaged("steps"))?;
    let kept = || match document.get("kept") {
        Some(rows) => list(rows)?
            .iter()
            .map(|row| kept(row, types.len()))
            .collect::<Option<_>>(),
        None => Some(Vec::new()),
    };
    let numbers = |name| match document.get(name) {
        Some(numbers) => list(numbers)?.iter().map(count).collect::<Option<_>>(),
        None => Some(Vec::new()),
    };
    Ok(Program {
        kind: match document.get("precision").and_then(text) {
            Some("fp32") => RecordedPrecision::Plain,
            Some("amp") => RecordedPrecision::Autocast,
            Some("half") => RecordedPrecision::Half,
            _ => return Err(damaged("precision")),
        },
        batches,
        lengths,
        calls,
        scopes: scopes.clone(),
        kept: kept().ok_or_else(|| damaged("kept"))?,
        inner: numbers("inner").ok_or_else(|| damaged("inner"))?,
        held: numbers("held").ok_or_else(|| damaged("held"))?,
        types,
        steps,
        has_layers: OnceCell::new(),
        has_linears: OnceCell::new(),
    })
}

fn kept(row: &Document, types: usize) -> Option<(Value, u32)> {
    let [slot, tensor_type, later] = list(row)? else {
        return None;
    };
    let value = Value {
        slot: count(slot)?,
        tensor_type: below(tensor_type, types)?,
    };
    Some((value, count(later)?))
}

fn tensor_type(row: &Document) -> Option<Type> {
    let (dtype, rest) = list(row)?.split_first()?;
    let (shape, rest) = rest.split_first()?;
    let sizes = |value: &Document| -> Option<Vec<Size>> {
        let all = list(value)?;
        (all.len() <= MOST_DIMS).then(|| all.iter().map(Size::read).collect())?
    };
    let shape = sizes(shape)?;
    let stride_order = match rest.first() {
        None | Some(Document::Int(0)) => StrideOrder::RowMajor,
        Some(Document::List(order)) => {
            let order = order
                .iter()
                .map(|place| below(place, shape.len()).map(|n| n as usize))
                .collect::<Option<Vec<_>>>()?;
            if order.len() != shape.len() {
                return None;
            }
            StrideOrder::Ordered(order)
        }
        Some(map) => {
            let strides = sizes(map.get("strides")?)?;
            if strides.len() != shape.len() {
                return None;
            }
            StrideOrder::Strides(strides)
        }
    };
    Some(Type {
        dtype: dtype_of(text(dtype)?)?,
        shape,
        stride_order,
        bytes: match rest.get(1) {
            None => Spans::Elements,
            Some(Document::Text(word)) if word == "reach" => Spans::Reach,
            Some(size) => Spans::Bytes(Size::read(size)?),
        },
    })
}

/// The type of as many bytes as one of PyTorch's: only they count.
fn dtype_of(name: &str) -> Option<DType> {
    Some(match name {
        "bool" => DType::Bool,
        "uint8" | "int8" | "float8_e4m3fn" | "float8_e5m2" | "float8_e4m3fnuz"
        | "float8_e5m2fnuz" => DType::U8,
        "int16" | "uint16" | "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "int32" | "uint32" => DType::I32,
        "float32" => DType::F32,
        "int64" => DType::I64,
        "uint64" => DType::U64,
        "float64" | "complex64" => DType::F64,
        _ => return None,
    })
}

fn list(value: &Document) -> Option<&[Document]> {
    match value {
        Document::List(all) => Some(all),
        _ => None,
    }
}

fn text(value: &Document) -> Option<&str> {
    match value {
        Document::Text(text) => Some(text),
        _ => None,
    }
}

fn count(value: &Document) -> Option<u32> {
    match value {
        Document::Int(n) => u32::try_from(*n).ok(),
        _ => None,
    }
}

fn below(value: &Document, limit: usize) -> Option<u32> {
    count(value).filter(|n| (*n as usize) < limit)
}
