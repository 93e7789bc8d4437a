//! Graph breaks: a region of several graphs, and the frames that they interrupt.

use crate::tape::core::Pass;
use crate::tape::{Tape, Tensor, borrowing, grads};

impl Tape {
    /// A graph break: one compiled graph ends with this tensor, and another continues with it. The frame that was interrupted
    /// holds it until backward reaches this place in the next step.
    pub fn break_graph(&self, crossing: &Tensor) -> Tensor {
        let core = &self.0;
        if core.compiler.region.borrow().is_none() {
            return crossing.clone();
        }
        crossing.allocate_deferred();
        let Some(mut region) = core.compiler.region.take() else {
            return crossing.clone();
        };
        let casts = std::mem::take(&mut region.casts);
        drop(casts);
        let made = std::mem::take(&mut region.made);
        (region.saved, region.external) = (0, false);
        (region.open, region.reads) = (Vec::new(), Vec::new());
        region.kept_storages.clear();
        let mut over = None;
        match &mut region.run {
            Pass::Trace(graph) => {
                let graph = std::mem::take(graph);
                region.traced.push(core.plan(graph, made, region.budget));
            }
            Pass::Run {
                plan, next, live, ..
            } => {
                if let Some(next) = next.pop_front() {
                    *plan = next;
                }
                over = Some(std::mem::take(live));
                core.compiler
                    .escaping
                    .borrow_mut()
                    .extend(crossing.storage_id());
                core.compiler.crossed.borrow_mut().push(crossing.detach());
            }
        }
        drop(over);
        let tape = self.clone();
        let out = crossing.with_edge(None).from_op(&[crossing], move |_| {
            borrowing(move |g| {
                tape.forget_crossed();
                grads([Some(g.clone())])
            })
        });
        core.compiler.region.replace(Some(region));
        out
    }

    /// All interrupted frames go: what CUDA graphs hold of a step is over with its backward.
    pub fn forget_interrupted(&self) {
        drop(self.0.compiler.crossed.take());
    }

    /// Interrupted frames of steps before this one go.
    fn forget_crossed(&self) {
        let mut crossed = self.0.compiler.crossed.borrow_mut();
        let last = crossed.pop();
        let before = std::mem::take(&mut *crossed);
        crossed.extend(last);
        drop(crossed);
        drop(before);
    }
}
