//! The stacks at which a program allocated, each read once.

use super::int;
use headroom_base::document::pickle::{Pickle, Value};

/// Frames that are kept of a stack.
const FRAMES: usize = 8;

/// Letters that are kept of a name.
const LETTERS: usize = 120;

/// `file:line function` of the frames that are not PyTorch's own, the innermost first.
pub type Stack = Vec<String>;

/// The stacks of a pickle's blocks and events.
pub(super) struct Stacks {
    /// The number of each stack's value, from 1; 0 where it was not read yet. Equal stacks are one value of the pickle.
    known: Vec<u32>,
    pub found: Vec<Stack>,
}

impl Stacks {
    pub fn new(pickle: &Pickle) -> Self {
        Self {
            known: vec![0; pickle.len()],
            // The first is of what was allocated without a recorded stack.
            found: vec![Stack::new()],
        }
    }

    /// The number of a stack.
    pub fn number(&mut self, frames: Option<Value>) -> u32 {
        let Some(frames) = frames else {
            return 0;
        };
        let Some(known) = self.known.get_mut(frames.place()) else {
            return 0;
        };
        if *known == 0 {
            let stack: Stack = frames.items().filter_map(frame).take(FRAMES).collect();
            // Without memo, as other writers of pickles have it, equal stacks come one after the other.
            if self.found.last() != Some(&stack) {
                self.found.push(stack);
            }
            *known = self.found.len() as u32;
        }
        *known - 1
    }

    /// The innermost line of a stack; empty where none was recorded.
    pub fn line(&self, number: u32) -> &str {
        let stack = self.found.get(number as usize);
        stack
            .and_then(|stack| stack.first())
            .map_or("", String::as_str)
    }
}

/// A frame that is not PyTorch's own.
fn frame(frame: Value) -> Option<String> {
    const LIBRARIES: &[&str] = &["/torch/", "??", "<frozen"];
    const COMPILED: &[&str] = &[".cpp", ".cc", ".c", ".cu", ".cuh", ".h", ".hpp", ".so"];
    let file = frame.get("filename").and_then(Value::text).unwrap_or("");
    let is_library = LIBRARIES.iter().any(|library| file.contains(library))
        || COMPILED.iter().any(|ending| file.ends_with(ending));
    if file.is_empty() || is_library {
        return None;
    }
    // The folder and the file.
    let start = file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    let short = file.get(start..).unwrap_or(file);
    let function = frame.get("name").and_then(Value::text).unwrap_or("");
    let (short, function) = (clipped(short), clipped(function));
    Some(format!("{short}:{} {function}", int(frame, "line")))
}

fn clipped(name: &str) -> &str {
    let end = name
        .char_indices()
        .nth(LETTERS)
        .map_or(name.len(), |(at, _)| at);
    name.get(..end).unwrap_or(name)
}
