//! `model.to(memory_format=torch.channels_last)`: weights laid out anew, and what that leaves of the allocator.

use super::{Event, Group, Tape, Trace};

impl Tape {
    /// Weights of four dimensions were made contiguous; once all are there, each is copied and lets its old memory go.
    pub fn lay_out_anew(&self) {
        let mut trace = self.0.trace.borrow_mut();
        let mut copied = vec![false; trace.blocks.len()];
        for param in self.0.params.borrow().iter() {
            let block = param.data.block().map(|block| block as usize);
            let place = block.and_then(|block| copied.get_mut(block));
            if let Some(place) = place {
                *place = param.data.shape().len() == 4;
            }
        }
        trace.lay_out_anew(&copied);
    }
}

impl Trace {
    fn lay_out_anew(&mut self, copied: &[bool]) {
        let made = self.setup.len();
        let groups = std::mem::take(&mut self.setup_groups);
        self.setup_groups.clone_from(&groups);
        let mut from = 0;
        for group in &groups {
            self.copy(from..group.start, copied);
            let start = self.setup.len();
            self.copy(group.start..group.end, copied);
            self.setup_groups.push(Group {
                start,
                end: self.setup.len(),
                times: group.times,
                carries: Vec::new(),
                reversed: false,
            });
            from = group.end;
        }
        self.copy(from..made, copied);
    }

    fn copy(&mut self, events: std::ops::Range<usize>, copied: &[bool]) {
        for at in events {
            let Some(&event) = self.setup.get(at) else {
                return;
            };
            let place = event.block() as usize;
            let (false, Some(true), Some(&block)) =
                (event.is_free(), copied.get(place), self.blocks.get(place))
            else {
                continue;
            };
            let first = self.blocks.len() as u32;
            self.blocks.push(block);
            if let Some(place) = self.setup.get_mut(at) {
                *place = Event::alloc(first);
            }
            self.setup.extend([event, Event::free(first)]);
        }
    }
}
