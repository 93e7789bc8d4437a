//! How long a row is.

use super::Scenario;

impl Scenario {
    /// Tokens of a row: prompt and completion where completions are sampled.
    pub fn row_length(&self) -> u64 {
        let task = &self.training.task;
        if task.objective.samples() {
            task.prompt.saturating_add(task.completion)
        } else {
            self.data.sequence
        }
    }

    /// Gives rows another length; where completions are sampled, prompt and completion keep their proportion.
    pub fn set_row_length(&mut self, tokens: u64) {
        let whole = self.row_length().max(1);
        self.data.sequence = tokens;
        let task = &mut self.training.task;
        if task.objective.samples() {
            let prompt = u128::from(task.prompt) * u128::from(tokens) / u128::from(whole);
            task.prompt = u64::try_from(prompt).unwrap_or(u64::MAX).max(1);
            task.completion = tokens.saturating_sub(task.prompt).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Objective, Scenario};

    #[track_caller]
    fn check(objective: Objective, tokens: u64, expected: [u64; 3]) {
        let mut run = Scenario::default();
        run.training.task.objective = objective;
        run.training.task.prompt = 256;
        run.training.task.completion = 768;
        run.set_row_length(tokens);
        let task = &run.training.task;
        assert_eq!([run.data.sequence, task.prompt, task.completion], expected);
        assert_eq!(run.row_length(), tokens.max(2));
    }

    #[test]
    fn prompts_and_completions_keep_their_proportion() {
        check(Objective::Grpo, 4096, [4096, 1024, 3072]);
        check(Objective::Grpo, 2, [2, 1, 1]);
        check(Objective::Pretraining, 4096, [4096, 256, 768]);
    }
}
