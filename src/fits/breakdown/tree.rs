//! The memory as a tree: the model, its modules, their tensors.

use crate::text;
use headroom_base::order::sorted;
use headroom_base::units::Bytes;
use headroom_core::estimate::TensorGroup;

/// A module with its children, or a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub bytes: Bytes,
    /// The number of tensors in it.
    pub count: u64,
    /// The largest first.
    pub children: Vec<Node>,
}

impl Node {
    /// All live memory by module; layers that differ only by their index are merged.
    pub fn of(groups: &[TensorGroup]) -> Self {
        let mut root = Self::default();
        for group in groups {
            let mut node = &mut root;
            node.add(group);
            for name in segments(&group.module) {
                node = node.child(name);
                node.add(group);
            }
            let (_, category, _) = text::category(group.category);
            let tensor = format!("{} ({})", group.op, category.to_ascii_lowercase());
            node.child(tensor).add(group);
        }
        root.sort();
        root
    }

    fn add(&mut self, group: &TensorGroup) {
        self.bytes += group.total();
        self.count = self.count.saturating_add(group.count);
    }

    fn child(&mut self, name: String) -> &mut Self {
        let known = self.children.iter().position(|child| child.name == name);
        let at = known.unwrap_or_else(|| {
            self.children.push(Self {
                name,
                ..Self::default()
            });
            self.children.len() - 1
        });
        &mut self.children[at]
    }

    fn sort(&mut self) {
        let children = std::mem::take(&mut self.children);
        self.children = sorted(children, |one, other| other.bytes.cmp(&one.bytes));
        for child in &mut self.children {
            child.sort();
        }
    }

    /// The node at a path of names, or at its longest existing prefix.
    pub fn at(&self, path: &[String]) -> &Self {
        let next = path.first().and_then(|name| {
            let mut children = self.children.iter();
            children.find(|child| child.name == *name && !child.children.is_empty())
        });
        match (next, path) {
            (Some(child), [_, rest @ ..]) => child.at(rest),
            _ => self,
        }
    }
}

/// The names of a path; a layer's index belongs to the name of its list.
fn segments(module: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in module.split('.') {
        match names.last_mut() {
            Some(list) if name == "*" => list.push_str(".*"),
            _ => names.push(name.to_string()),
        }
    }
    if module.is_empty() {
        names = vec![text::OUTSIDE.into()];
    }
    names
}

/// One box of the chart, in percent of its width.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    pub path: Vec<String>,
    pub name: String,
    pub bytes: Bytes,
    pub depth: usize,
    pub start: f64,
    pub width: f64,
    /// Whether it has children.
    pub opens: bool,
}

/// Narrower boxes, in percent of the width, are not drawn.
const THINNEST: f64 = 0.25;

/// Every node down to a number of levels below the root, as boxes under their parents.
pub fn flame(root: &Node, path: &[String], levels: usize) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let whole = root.bytes.get().max(1) as f64;
    lay_out(root, path, whole, (0.0, 0, levels), &mut tiles);
    tiles
}

fn lay_out(
    node: &Node,
    path: &[String],
    whole: f64,
    (mut start, depth, levels): (f64, usize, usize),
    tiles: &mut Vec<Tile>,
) {
    if depth == levels {
        return;
    }
    for child in &node.children {
        let width = child.bytes.get() as f64 / whole * 100.0;
        if width < THINNEST {
            // The largest come first.
            break;
        }
        let mut inside = path.to_vec();
        inside.push(child.name.clone());
        lay_out(child, &inside, whole, (start, depth + 1, levels), tiles);
        tiles.push(Tile {
            path: inside,
            name: child.name.clone(),
            bytes: child.bytes,
            depth,
            start,
            width,
            opens: !child.children.is_empty(),
        });
        start += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_core::estimate::{At, Prediction};
    use headroom_scenario::Scenario;

    fn tree() -> Node {
        let prediction = Prediction::new(Scenario::default());
        Node::of(&prediction.tensors(At::Peak).unwrap())
    }

    #[test]
    fn children_sum_to_their_parent() {
        fn check(node: &Node) {
            if node.children.is_empty() {
                return;
            }
            let sum: Bytes = node.children.iter().map(|child| child.bytes).sum();
            assert_eq!(sum, node.bytes, "{}", node.name);
            node.children.iter().for_each(check);
        }
        check(&tree());
    }

    #[test]
    fn layers_are_one_node_and_lead_to_their_tensors() {
        let tree = tree();
        let path = ["transformer", "h.*", "attn"].map(String::from);
        let attention = tree.at(&path);
        assert_eq!(attention.name, "attn");
        assert!(attention.count > 12 && !attention.children.is_empty());
        assert_eq!(tree.at(&["nonsense".into()]), &tree);
    }

    #[test]
    fn boxes_are_below_their_parents() {
        let tiles = flame(&tree(), &[], 4);
        assert!(tiles.len() > 5);
        for tile in &tiles {
            assert!(tile.start + tile.width <= 100.0 + 1e-6, "{tile:?}");
            let parent = tile.path.split_last().map(|(_, parent)| parent);
            let parent = tiles.iter().find(|other| Some(&other.path[..]) == parent);
            if let Some(parent) = parent {
                let end = parent.start + parent.width + 1e-6;
                assert!(parent.start <= tile.start + 1e-6 && tile.start + tile.width <= end);
            }
        }
    }
}
