//! Operators, truth, comparison, text of values.

use super::text::joined;
use super::value::{Instance, V};
use super::{Cell, LONGEST_TEXT, ListKind, Machine};
use crate::python::syntax::ast::{Comparison, Op};

/// Elements that an operator may make.
const MOST_ELEMENTS: usize = 5_000;

/// Attributes and functions of which the answer is yes in the first process on a GPU.
const TRUE: [&str; 16] = [
    "is_main_process",
    "is_local_main_process",
    "is_world_process_zero",
    "is_local_process_zero",
    "is_rank_zero",
    "is_global_zero",
    "is_rank_0",
    "is_master",
    "is_last_process",
    "is_bf16_supported",
    "is_bfloat16_supported",
    "is_torch_bf16_gpu_available",
    "is_peft_available",
    "is_cuda_available",
    "is_main",
    "should_log",
];

/// Functions of which the answer is no on an NVIDIA GPU.
const FALSE: [&str; 10] = [
    "is_xpu_available",
    "is_npu_available",
    "is_torch_npu_available",
    "is_torch_xla_available",
    "is_torch_tpu_available",
    "is_mlu_available",
    "is_mps_available",
    "is_torch_xpu_available",
    "is_torch_mps_available",
    "is_hpu_available",
];

/// Attributes that are a process's place among all.
const RANKS: [&str; 7] = [
    "process_index",
    "local_process_index",
    "global_rank",
    "local_rank",
    "get_rank",
    "get_local_rank",
    "node_rank",
];

/// What is known of an attribute or function by its name alone.
pub fn by_name(name: &str) -> Option<V> {
    if TRUE.contains(&name) {
        return Some(V::Bool(true));
    }
    if FALSE.contains(&name) {
        return Some(V::Bool(false));
    }
    RANKS.contains(&name).then_some(V::Int(0))
}

impl Machine<'_> {
    pub(super) fn truth(&self, value: &V) -> Option<bool> {
        match value {
            V::None | V::Absent(_) => Some(false),
            V::Bool(value) => Some(*value),
            V::Int(value) => Some(*value != 0),
            V::Float(value) => Some(*value != 0.0),
            V::Text(text) => Some(!text.is_empty()),
            V::List(id) => Some(!self.items(*id).is_empty()),
            V::Dict(id) => Some(!self.entries(*id).is_empty()),
            V::Object(index) => self.is_constructed(*index).then_some(true),
            V::Name(path) if path.ends_with(".TYPE_CHECKING") => Some(false),
            V::Name(path) => super::packages::is_known_package(path).then_some(true),
            V::Unknown(_) | V::Part(..) | V::File(_) => None,
            _ => Some(true),
        }
    }

    /// Whether an object is an instance, which is neither `None` nor false.
    pub(super) fn is_constructed(&self, index: usize) -> bool {
        let Some(call) = self.out.calls.get(index) else {
            return false;
        };
        let last = call.path.rsplit('.').next().unwrap_or("");
        last.starts_with(|letter: char| letter.is_ascii_uppercase())
            || last.starts_with("from_")
            || last.starts_with("get_peft")
            || last.starts_with("load_")
            || last.starts_with("create_")
    }

    pub(super) fn compare(&self, comparison: Comparison, left: &V, right: &V) -> Option<bool> {
        match comparison {
            Comparison::Equal => self.equal(left, right),
            Comparison::Unequal => self.equal(left, right).map(|equal| !equal),
            Comparison::Is => self.same(left, right),
            Comparison::IsNot => self.same(left, right).map(|same| !same),
            Comparison::In => self.contains(right, left),
            Comparison::NotIn => self.contains(right, left).map(|inside| !inside),
            Comparison::Less => self.less(left, right),
            Comparison::Greater => self.less(right, left),
            Comparison::LessEqual => self.less(right, left).map(|less| !less),
            Comparison::GreaterEqual => self.less(left, right).map(|less| !less),
        }
    }

    /// Steps that a comparison of this value takes.
    pub(super) fn weight(&self, value: &V) -> usize {
        match value {
            V::Text(text) => text.len() / 16,
            V::List(id) => self.items(*id).len(),
            V::Dict(id) => self.entries(*id).len(),
            _ => 0,
        }
    }

    pub(super) fn less(&self, left: &V, right: &V) -> Option<bool> {
        if let (Some(left), Some(right)) = (left.int(), right.int()) {
            return Some(left < right);
        }
        if let (Some(left), Some(right)) = (left.float(), right.float()) {
            return Some(left < right);
        }
        match (left, right) {
            (V::Text(left), V::Text(right)) => Some(left < right),
            (V::List(left), V::List(right)) => {
                let pairs = self.items(*left).iter().zip(self.items(*right)).take(16);
                for (left, right) in pairs {
                    match (left.float()?, right.float()?) {
                        (a, b) if a < b => return Some(true),
                        (a, b) if a > b => return Some(false),
                        _ => {}
                    }
                }
                Some(self.items(*left).len() < self.items(*right).len())
            }
            _ => None,
        }
    }

    /// `is`, which scripts use with `None`, booleans and classes.
    pub(super) fn same(&self, left: &V, right: &V) -> Option<bool> {
        let none = |value: &V| matches!(value, V::None | V::Absent(_));
        match (none(left), none(right)) {
            (true, true) => Some(true),
            (true, false) => self.is_something(right).then_some(false),
            (false, true) => self.is_something(left).then_some(false),
            (false, false) => self.equal(left, right),
        }
    }

    pub(super) fn is_something(&self, value: &V) -> bool {
        match value {
            V::Unknown(_) | V::Part(..) => false,
            V::Object(index) => self.is_constructed(*index),
            V::Name(path) => super::packages::is_known_package(path),
            _ => true,
        }
    }

    pub(super) fn equal(&self, left: &V, right: &V) -> Option<bool> {
        self.equal_within(left, right, 2)
    }

    pub(super) fn equal_within(&self, left: &V, right: &V, depth: usize) -> Option<bool> {
        if let (Some(left), Some(right)) = (left.float(), right.float()) {
            return Some(left.partial_cmp(&right) == Some(std::cmp::Ordering::Equal));
        }
        match (left, right) {
            (V::Unknown(_) | V::Part(..), _) | (_, V::Unknown(_) | V::Part(..)) => None,
            (V::None | V::Absent(_), V::None | V::Absent(_)) => Some(true),
            (V::None | V::Absent(_), other) | (other, V::None | V::Absent(_)) => {
                self.is_something(other).then_some(false)
            }
            (V::Text(left), V::Text(right)) if left.len() != right.len() => Some(false),
            // Long elements of lists are not compared: their length is not counted as work.
            (V::Text(left), V::Text(_)) if depth < 2 && left.len() > 1_000 => None,
            (V::Text(left), V::Text(right)) => Some(left == right),
            (V::Name(left), V::Name(right)) => (left == right).then_some(true),
            (V::Object(left), V::Object(right)) if left == right => Some(true),
            (V::List(left), V::List(right)) if depth > 0 => {
                let (left, right) = (self.items(*left), self.items(*right));
                if left.len() != right.len() {
                    return Some(false);
                }
                if left.len() > 64 {
                    return None;
                }
                for (left, right) in left.iter().zip(right) {
                    match self.equal_within(left, right, depth - 1) {
                        Some(true) => {}
                        other => return other,
                    }
                }
                Some(true)
            }
            (V::Dict(left), V::Dict(right)) if left == right => Some(true),
            (V::Instance(left), V::Instance(right)) if left == right => Some(true),
            (V::Dict(left), V::Dict(right)) => {
                let (left, right) = (self.entries(*left), self.entries(*right));
                (left.len() != right.len()).then_some(false)
            }
            (V::Builtin(left), V::Builtin(right)) => Some(left == right),
            (V::Instance(_), V::Instance(_))
            | (V::List(_), V::List(_))
            | (V::Object(_) | V::Name(_), _)
            | (_, V::Object(_) | V::Name(_)) => None,
            _ => Some(false),
        }
    }

    pub(super) fn contains(&self, whole: &V, part: &V) -> Option<bool> {
        match (whole, part) {
            (V::Text(whole), V::Text(part)) => Some(whole.contains(&**part)),
            (V::List(id), _) => self.any_equal(self.items(*id).iter(), part),
            (V::Dict(id), _) => self.any_equal(self.entries(*id).iter().map(|(key, _)| key), part),
            (V::Instance(id), V::Text(name)) => match self.heap.get(*id) {
                Some(Cell::Instance(Instance { attributes, .. })) => {
                    Some(attributes.iter().any(|(own, _)| own == name))
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn any_equal<'v>(
        &self,
        items: impl Iterator<Item = &'v V>,
        part: &V,
    ) -> Option<bool> {
        let mut unknown = matches!(part, V::Unknown(_) | V::Part(..));
        for item in items.take(MOST_ELEMENTS) {
            match self.equal_within(item, part, 1) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => unknown = true,
            }
        }
        if unknown { None } else { Some(false) }
    }

    pub(super) fn arithmetic(&mut self, op: Op, left: &V, right: &V) -> V {
        self.known_arithmetic(op, left, right).unwrap_or_else(|| {
            let part = match (left, right) {
                (V::Unknown(reason), _) | (_, V::Unknown(reason)) => reason.clone(),
                (V::Absent(option), _) | (_, V::Absent(option)) => {
                    format!("{option} was not given").into()
                }
                (V::Name(path), _) | (_, V::Name(path)) => path.clone(),
                (V::Part(_, path), _) | (_, V::Part(_, path)) => {
                    path.trim_start_matches('.').into()
                }
                _ => "a calculation".into(),
            };
            V::Unknown(part)
        })
    }

    pub(super) fn known_arithmetic(&mut self, op: Op, left: &V, right: &V) -> Option<V> {
        match (op, left, right) {
            (Op::Add, V::Text(left), V::Text(right)) => {
                self.spend((left.len() + right.len()) / 16);
                let fits = left.len() + right.len() <= LONGEST_TEXT;
                return fits.then(|| V::text(format!("{left}{right}")));
            }
            (Op::Mod, V::Text(format), values) => {
                let values = match values {
                    V::List(id) if self.list_kind(*id) == ListKind::Tuple => {
                        self.items(*id).to_vec()
                    }
                    other => vec![other.clone()],
                };
                return self.percent(format, &values);
            }
            // `Path(a) / b`.
            (Op::Div, V::Text(left), V::Text(right)) => return Some(V::text(joined(left, right))),
            (Op::Mul, V::Text(text), V::Int(times)) | (Op::Mul, V::Int(times), V::Text(text)) => {
                let times = usize::try_from((*times).max(0)).ok()?;
                let length = times.checked_mul(text.len())?;
                if length > LONGEST_TEXT || times > LONGEST_TEXT {
                    return None;
                }
                self.spend(length / 16);
                return Some(V::text(text.repeat(times)));
            }
            (Op::Mul, V::List(id), V::Int(times)) | (Op::Mul, V::Int(times), V::List(id)) => {
                let times = usize::try_from((*times).max(0)).ok()?;
                let length = self.items(*id).len().checked_mul(times)?;
                if length > MOST_ELEMENTS || times > MOST_ELEMENTS {
                    return None;
                }
                let items = self.items(*id).to_vec();
                let kind = self.list_kind(*id);
                return Some(self.sequence(kind, repeated(&items, times)));
            }
            (Op::Add, V::List(a), V::List(b)) => {
                if self.items(*a).len() + self.items(*b).len() > MOST_ELEMENTS {
                    return None;
                }
                let mut items = self.items(*a).to_vec();
                items.extend_from_slice(self.items(*b));
                let kind = self.list_kind(*a);
                return Some(self.sequence(kind, items));
            }
            (Op::BitOr, V::Dict(a), V::Dict(b)) => {
                let copy = self.entries(*a).to_vec();
                let copy = self.dict(copy);
                if let V::Dict(id) = copy {
                    self.update(id, *b);
                }
                return Some(copy);
            }
            (Op::BitOr | Op::BitAnd | Op::Sub, V::List(a), V::List(b)) => {
                return self.set_operation(op, *a, *b);
            }
            (Op::BitOr, V::Builtin(_) | V::Class(_) | V::Name(_), _) => return Some(left.clone()),
            _ => {}
        }
        if let (Some(left), Some(right)) = (left.int(), right.int()) {
            return integers(op, left, right);
        }
        floats(op, left.float()?, right.float()?)
    }

    pub(super) fn set_operation(&mut self, op: Op, a: usize, b: usize) -> Option<V> {
        let steps = self.items(a).len().checked_mul(self.items(b).len())?;
        if steps > 20_000 {
            return None;
        }
        self.spend(steps);
        let (left, right) = (self.items(a).to_vec(), self.items(b).to_vec());
        let mut made = Vec::new();
        for item in &left {
            let inside = self.any_equal(right.iter(), item)?;
            if op == Op::BitOr || inside == (op == Op::BitAnd) {
                made.push(item.clone());
            }
        }
        if op == Op::BitOr {
            for item in right {
                if !self.any_equal(left.iter(), &item)? {
                    made.push(item);
                }
            }
        }
        Some(self.sequence(ListKind::Set, made))
    }
}

fn repeated(items: &[V], times: usize) -> Vec<V> {
    let length = items.len() * times;
    items.iter().cycle().take(length).cloned().collect()
}

fn integers(op: Op, left: i128, right: i128) -> Option<V> {
    let value = match op {
        Op::Add => left.checked_add(right)?,
        Op::Sub => left.checked_sub(right)?,
        Op::Mul => left.checked_mul(right)?,
        Op::Div => return (right != 0).then(|| V::Float(left as f64 / right as f64)),
        Op::FloorDiv => {
            let quotient = left.checked_div(right)?;
            let exact = left.checked_rem(right)? == 0;
            let negative = (left < 0) != (right < 0);
            if negative && !exact {
                quotient - 1
            } else {
                quotient
            }
        }
        Op::Mod => {
            let rest = left.checked_rem(right)?;
            let other_sign = rest != 0 && (rest < 0) != (right < 0);
            if other_sign { rest + right } else { rest }
        }
        Op::Pow => {
            if right < 0 {
                return Some(V::Float((left as f64).powf(right as f64)));
            }
            left.checked_pow(u32::try_from(right).ok()?)?
        }
        Op::BitAnd => left & right,
        Op::BitOr => left | right,
        Op::BitXor => left ^ right,
        Op::ShiftLeft => {
            let power = 2_i128.checked_pow(u32::try_from(right).ok()?)?;
            left.checked_mul(power)?
        }
        Op::ShiftRight => left.checked_shr(u32::try_from(right).ok()?)?,
        Op::MatMul => return None,
    };
    Some(V::Int(value))
}

fn floats(op: Op, left: f64, right: f64) -> Option<V> {
    Some(V::Float(match op {
        Op::Add => left + right,
        Op::Sub => left - right,
        Op::Mul => left * right,
        Op::Div if right != 0.0 => left / right,
        Op::FloorDiv if right != 0.0 => (left / right).floor(),
        Op::Mod if right != 0.0 => left - right * (left / right).floor(),
        Op::Pow => left.powf(right),
        _ => return None,
    }))
}
