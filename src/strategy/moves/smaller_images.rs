//! Images of three quarters of the size.

use super::{Cost, Group, Move, less};

pub const MOVE: Move = Move {
    id: "smaller-images",
    title: "images of three quarters of the size",
    group: Group::Size,
    what: "Fewer pixels or patches: activations fall with the square.",
    needs: "A network that takes images.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster.",
    quality: "Small objects are harder to see; positions of a pre-trained ViT must be interpolated.",
    source: "arXiv 1906.06423 (train and test resolution)",
    caveat: "The model is given less.",
    code: "torchvision.transforms.v2.Resize(size)",
    apply: |s| less(s, "img", (3, 4), 32, 64),
};
