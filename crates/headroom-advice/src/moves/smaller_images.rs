//! Images at three quarters of the size.

use super::{Cost, Group, Move, Results, less, with};
use headroom_scenario::Scenario;

pub const MOVE: Move = Move {
    id: "smaller-images",
    title: "images of three quarters the size",
    group: Group::Size,
    what: "Fewer pixels or patches: activations shrink quadratically.",
    needs: "A network on images.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster.",
    quality: "Small objects are harder to see; position embeddings of a pre-trained ViT must be interpolated.",
    source: "arXiv 1906.06423 (train and test resolution)",
    caveat: "The model sees less input.",
    code: "torchvision.transforms.v2.Resize(size)",
    apply: |run| match (run.data.height, run.data.width) {
        (0, _) | (_, 0) => less(run, "img", (3, 4), 32, 64),
        (height, width) => smaller(run, [height, width]),
    },
};

/// Both sides in pixels, in steps that every autoencoder and patch divides.
fn smaller(run: &Scenario, sides: [u64; 2]) -> Option<Scenario> {
    let [height, width] = sides.map(|side| side * 3 / 4 / 32 * 32);
    (height >= 64 && width >= 64).then(|| {
        with(run, |changed| {
            changed.data.height = height;
            changed.data.width = width;
        })
    })
}
