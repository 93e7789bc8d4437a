//! Images of three quarters the size.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "smaller-images",
    title: "images of three quarters the size",
    group: Group::Size,
    what: "Fewer pixels or patches: activations shrink with the square.",
    needs: "A network that takes images.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "Small objects are harder to see; positions of a pre-trained ViT have to be interpolated.",
    source: "arXiv 1906.06423 (train and test resolution)",
    caveat: "The model gets less input.",
    code: "torchvision.transforms.v2.Resize(size)",
    apply: |run| less(run, "img", (3, 4), 32, 64),
};
