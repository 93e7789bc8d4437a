//! The worker's job queue: requests in, replies out, both as text messages.

use headroom_scenario::Scenario;
use headroom_scenario::share;

/// Incremental work.
pub trait Work {
    fn is_done(&self) -> bool;
    /// One step of it: about one estimate.
    fn step(&mut self);
    /// The result so far.
    fn lines(&self) -> Vec<String>;
}

/// A kind of job: its id, and how it starts.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    pub id: &'static str,
    /// From a scenario and the request's limits.
    pub start: fn(&Scenario, &str) -> Box<dyn Work>,
}

/// The result so far for the request with this number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub kind: String,
    pub number: u32,
    pub done: bool,
    pub lines: Vec<String>,
}

/// A request: the kind of job, a number, the scenario as a link, and limits, which may have several lines. Without a
/// scenario it cancels the previous one.
pub fn request(kind: &str, number: u32, limits: &str, scenario: Option<&Scenario>) -> String {
    let link = scenario.map(share::write).unwrap_or_default();
    format!("{kind}\n{number}\n{link}\n{limits}")
}

impl Reply {
    fn write(&self) -> String {
        let Self {
            kind,
            number,
            done,
            lines,
        } = self;
        let mut text = format!("{kind}\n{number}\n{}", u8::from(*done));
        for line in lines {
            text.push('\n');
            text.push_str(line);
        }
        text
    }

    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.split('\n').map(String::from);
        Some(Self {
            kind: lines.next()?,
            number: lines.next()?.parse().ok()?,
            done: lines.next()? == "1",
            lines: lines.collect(),
        })
    }
}

/// The running jobs, at most one of each kind, in the order of the kinds.
#[derive(Default)]
pub struct JobQueue {
    jobs: Vec<Job>,
}

struct Job {
    kind: &'static str,
    /// Its priority: the index of its kind.
    place: usize,
    number: u32,
    work: Box<dyn Work>,
}

impl JobQueue {
    /// Adds a request; it replaces an earlier one of the same kind.
    pub fn take(&mut self, kinds: &'static [JobKind], request: &str) {
        let mut parts = request.splitn(4, '\n');
        let mut next = || parts.next();
        let (Some(id), Some(number), Some(link), Some(limits)) = (next(), next(), next(), next())
        else {
            return;
        };
        let known = kinds.iter().enumerate().find(|(_, kind)| kind.id == id);
        let (Some((place, kind)), Ok(number)) = (known, number.parse()) else {
            return;
        };
        self.jobs.retain(|job| job.kind != kind.id);
        if !link.is_empty() {
            let work = (kind.start)(&share::read(link).scenario, limits);
            let before = |job: &Job| job.place < place;
            let job = Job {
                kind: kind.id,
                place,
                number,
                work,
            };
            self.jobs.insert(self.jobs.partition_point(before), job);
        }
    }

    /// Works on the first job while there is time, and returns its state. The kinds are ordered by priority.
    pub fn work(&mut self, mut has_time: impl FnMut() -> bool) -> Option<String> {
        let job = self.jobs.first_mut()?;
        while !job.work.is_done() {
            job.work.step();
            if !has_time() {
                break;
            }
        }
        let reply = Reply {
            kind: job.kind.into(),
            number: job.number,
            done: job.work.is_done(),
            lines: job.work.lines(),
        };
        if reply.done {
            self.jobs.remove(0);
        }
        Some(reply.write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up to the micro-batch.
    struct Count(u64, u64);

    impl Work for Count {
        fn is_done(&self) -> bool {
            self.0 == self.1
        }
        fn step(&mut self) {
            self.0 += 1;
        }
        fn lines(&self) -> Vec<String> {
            vec![self.0.to_string()]
        }
    }

    const KINDS: &[JobKind] = &[
        JobKind {
            id: "count",
            start: |scenario, _| Box::new(Count(0, scenario.data.micro_batch)),
        },
        JobKind {
            id: "again",
            start: |scenario, _| Box::new(Count(0, scenario.data.micro_batch)),
        },
    ];

    fn asked(kind: &str, number: u32, micro_batch: u64) -> String {
        let mut scenario = Scenario::default();
        scenario.data.micro_batch = micro_batch;
        request(kind, number, "", Some(&scenario))
    }

    fn reply(queue: &mut JobQueue) -> Option<Reply> {
        Reply::read(&queue.work(|| false)?)
    }

    #[test]
    fn a_job_runs_in_steps_and_reports_progress() {
        let mut queue = JobQueue::default();
        queue.take(KINDS, &asked("count", 7, 2));
        let said: Vec<_> = std::iter::from_fn(|| reply(&mut queue)).collect();
        let said: Vec<_> = said
            .iter()
            .map(|said| (said.number, said.done, said.lines.join(" ")))
            .collect();
        assert_eq!(said, [(7, false, "1".into()), (7, true, "2".into())]);
    }

    #[test]
    fn requests_replace_and_cancel_and_run_by_priority() {
        let mut queue = JobQueue::default();
        queue.take(KINDS, &asked("count", 1, 5));
        queue.take(KINDS, &asked("again", 2, 5));
        queue.take(KINDS, &asked("count", 3, 5));
        let numbers: Vec<_> = (0..4)
            .filter_map(|_| reply(&mut queue))
            .map(|reply| reply.number)
            .collect();
        assert_eq!(numbers, [3, 3, 3, 3]);
        queue.take(KINDS, &asked("count", 3, 1));
        assert_eq!(reply(&mut queue).map(|reply| reply.number), Some(3));
        assert_eq!(reply(&mut queue).map(|reply| reply.number), Some(2));
        queue.take(KINDS, &request("again", 4, "", None));
        queue.take(KINDS, &request("count", 5, "", None));
        assert_eq!(reply(&mut queue), None);
    }

    #[test]
    fn invalid_requests_are_ignored() {
        let mut queue = JobQueue::default();
        for text in [
            "",
            "count",
            "count\n1",
            "count\nx\n#v=1\n",
            "other\n1\n#v=1\n",
        ] {
            queue.take(KINDS, text);
            assert_eq!(reply(&mut queue), None, "{text:?}");
        }
        assert_eq!(Reply::read("count"), None);
    }
}
