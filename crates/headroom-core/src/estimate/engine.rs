//! The only way from a case to the engine: its network, its machine and its runs.

use std::num::NonZero;

use std::rc::Rc;

use super::{Unsupported, device, implementations, resume, software, vllm};
use crate::nets::graph::Graph;
use crate::nets::{self, ModelError, Net, Sizes};
use crate::parallel::World;
use crate::step::{self, Detail, FEWEST_PASSES, Run, RunPlan, VllmShare};
use crate::tape::Machine;
use headroom_catalog::ModelEntry;
use headroom_scenario::{Case, Checkpointing, Objective, Parallelism, Problem, Scenario};

/// Training steps of a run from the start: all later ones equal the last.
pub const STEPS: u32 = 3;

/// A case's network on its machine, ready to run.
pub(super) struct Engine<'a> {
    scenario: &'a Scenario,
    net: Box<dyn Net>,
    machine: Machine,
    world: World,
    /// vLLM on the same GPU.
    vllm: VllmShare,
}

impl<'a> Engine<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Result<Self, Unsupported> {
        one_process(case)?;
        Ok(Self {
            scenario: case.scenario,
            net: network(case)?,
            machine: machine(case),
            world: World::of_case(case),
            vllm: vllm::share(case),
        })
    }

    /// The network by itself, for runs on another machine.
    pub(crate) fn into_net(self) -> Box<dyn Net> {
        self.net
    }

    /// The network, for questions that need no run.
    pub(crate) fn net(&self) -> &dyn Net {
        &*self.net
    }

    /// The first steps, and after them an evaluation and a resumed checkpoint where the scenario has them.
    pub(crate) fn first_steps(&self, detail: Detail) -> Result<Run, Unsupported> {
        self.run(RunPlan {
            detail,
            ..self.with_interludes(RunPlan::first_steps(STEPS))
        })
    }

    /// The same with as few micro-batches as reach every state of the memory.
    pub(crate) fn fewest_first_steps(&self, detail: Detail) -> Result<Run, Unsupported> {
        self.run(RunPlan {
            detail,
            passes: FEWEST_PASSES,
            ..self.with_interludes(RunPlan::first_steps(STEPS))
        })
    }

    /// The first steps and nothing after them.
    pub(crate) fn steps_alone(&self) -> Result<Run, Unsupported> {
        self.run(RunPlan::first_steps(STEPS))
    }

    /// One steady-state step, with as few passes as decide its peak.
    pub(crate) fn peak_only_step(&self, detail: Detail) -> Result<Run, Unsupported> {
        self.run(RunPlan {
            peak_only: true,
            ..self.steady(detail)
        })
    }

    /// One steady-state step.
    pub(crate) fn steady_step(&self, detail: Detail) -> Result<Run, Unsupported> {
        self.run(self.steady(detail))
    }

    fn steady(&self, detail: Detail) -> RunPlan {
        let mut steady = RunPlan::steady_step(&self.scenario.training, self.machine);
        if self.world.parallel.strategy == Parallelism::Zero3 {
            // ZeRO-3 records the order of the modules in the first steps and prefetches from the third on.
            steady.steps = STEPS;
        }
        RunPlan {
            detail,
            ..self.with_interludes(steady)
        }
    }

    fn with_interludes(&self, steps: RunPlan) -> RunPlan {
        RunPlan {
            evaluation: self.scenario.runtime.eval_batch.map_or(0, NonZero::get),
            resumes: resume::on_device(self.scenario),
            ..steps
        }
    }

    /// Fails if the run would take too long; as far as that can be foreseen, before it starts.
    fn run(&self, plan: RunPlan) -> Result<Run, Unsupported> {
        #[cfg(any(test, feature = "testing"))]
        counting::count();
        let Scenario { data, training, .. } = self.scenario;
        let plan = RunPlan {
            world: self.world,
            vllm: self.vllm,
            libraries: software::libraries(&self.scenario.stack),
            ..plan
        };
        let run = step::run(&*self.net, data, training, self.machine, plan);
        #[cfg(test)]
        counting::count_storages(&run.trace);
        if run.trace.over_budget {
            return Err(Unsupported::TooMuchWork);
        }
        Ok(run)
    }
}

/// A checkpoint that runs backward within backward (`use_reentrant=True`) reaches `DataParallel`'s one reduction of all gradients
/// once for every layer.
fn one_process(case: &Case) -> Result<(), Unsupported> {
    let Scenario {
        parallel,
        hardware,
        training,
        stack,
        ..
    } = case.scenario;
    let copies = parallel.strategy == Parallelism::DataParallel && hardware.gpus > 1;
    let checkpoints = training.checkpointing != Checkpointing::None;
    if !copies || !checkpoints || !software::libraries(stack).reentrant {
        return Ok(());
    }
    let expected = "ddp: reentrant checkpoints under DataParallel are not modelled";
    let problem = Problem::new("parallel.strategy", parallel.strategy.id(), expected);
    Err(Unsupported::Setting(problem))
}

/// The recorded model of a case that has one: a file's, or the catalogue's.
pub(super) fn recorded(case: &Case) -> Option<Result<Rc<Graph>, Unsupported>> {
    if let Some(network) = &case.scenario.model.network {
        let graph = nets::graph::opened(network.recording()?);
        return Some(graph.map_err(Unsupported::Recording));
    }
    let entry = case.model.filter(|entry| !entry.graph.is_empty())?;
    let graph = nets::graph::shipped(entry.id);
    Some(graph.ok_or(Unsupported::GraphAbsent(entry.id)))
}

/// Whether a run of a recorded model is one that its recording can replay; other models run as they are asked to.
pub(super) fn is_replayed(case: &Case) -> bool {
    let is_recorded = matches!(recorded(case), Some(Ok(_)));
    let replays = |error| {
        !matches!(
            error,
            Unsupported::Model(ModelError::NotReplayed(_) | ModelError::NotRecorded { .. })
        )
    };
    !is_recorded || network(case).err().is_none_or(replays)
}

fn network(case: &Case) -> Result<Box<dyn Net>, Unsupported> {
    let (model, data) = (&case.scenario.model, &case.scenario.data);
    let has_task = case.scenario.training.task.objective != Objective::Pretraining;
    let recorded = recorded(case);
    if has_task && (model.network.is_some() || recorded.is_some()) {
        return Err(no_task(case));
    }
    if let Some(graph) = recorded {
        let listed = case
            .listed_model()
            .filter(|entry| entry.graph != "sequence");
        let length = listed.and_then(|entry| Some((entry.graph, case.listed_size(entry.graph)?)));
        let net = nets::graph::of_length(graph?, length);
        let Err(refusal) = net.supports(data, &case.scenario.training) else {
            return Ok(net);
        };
        // A size that was not recorded: the architecture's forward function, where it has one.
        let unrecorded = matches!(refusal, ModelError::NotRecorded { .. });
        let by_hand = case
            .model
            .filter(|_| unrecorded)
            .and_then(|entry| forward_function(case, entry).ok());
        return by_hand.ok_or(Unsupported::Model(refusal));
    }
    if let Some(network) = &model.network {
        let plan = network.plan(&model.dims, data.micro_batch, data.sequence);
        return Ok(nets::declared(plan.map_err(Unsupported::Network)?));
    }
    let Some(entry) = case.model else {
        return Err(Unsupported::UnknownModel(model.id.clone()));
    };
    let net = forward_function(case, entry).map_err(Unsupported::Model)?;
    let objective = case.scenario.training.task.objective;
    let has_parts =
        net.language_model().is_some() || (objective.trains_head() && net.text_encoder().is_some());
    if has_task && !has_parts {
        return Err(no_task(case));
    }
    if has_task
        && net
            .language_model()
            .is_some_and(nets::LanguageModel::reads_pictures)
    {
        with_pictures(case)?;
    }
    Ok(net)
}

/// The network of an entry's architecture in the scenario's sizes.
fn forward_function(case: &Case, entry: &ModelEntry) -> Result<Box<dyn Net>, ModelError> {
    let mut sizes = Sizes::from_entry(entry);
    sizes.extend(&case.scenario.model.dims);
    let (architecture, sizes) = implementations::of_trainer(case, entry.arch, sizes);
    let net = nets::build(architecture, &sizes)?;
    net.supports(&case.scenario.data, &case.scenario.training)?;
    Ok(net)
}

/// Why a model that is no causal language model has no other task.
fn no_task(case: &Case) -> Unsupported {
    let objective = case.scenario.training.task.objective;
    let expected = if objective.trains_head() {
        "pretraining: heads of other tasks need a text encoder or a causal language model"
    } else {
        "pretraining: post-training tasks need a causal language model"
    };
    Unsupported::Setting(Problem::new("task.objective", objective.id(), expected))
}

/// The tasks of models that read pictures are those whose trainers take pictures (TRL 1.7), which pack no rows of them.
fn with_pictures(case: &Case) -> Result<(), Unsupported> {
    let objective = case.scenario.training.task.objective;
    let refused = |path, given: &str, expected: &str| {
        Err(Unsupported::Setting(Problem::new(path, given, expected)))
    };
    let trained = [
        Objective::Sft,
        Objective::Dpo,
        Objective::Grpo,
        Objective::Rloo,
    ];
    if !trained.contains(&objective) {
        let expected =
            "pretraining, sft, dpo, grpo or rloo: trainers of other tasks take no pictures";
        return refused("task.objective", objective.id(), expected);
    }
    if case.scenario.data.packing {
        let expected = "off: rows with pictures are not packed";
        return refused("data.packing", "on", expected);
    }
    Ok(())
}

/// The GPU and PyTorch.
fn machine(case: &Case) -> Machine {
    Machine {
        torch: software::torch(&case.scenario.stack),
        ..device::machine(case)
    }
}

/// Counts network runs, so that tests can check that no question causes a second one.
#[cfg(any(test, feature = "testing"))]
pub(crate) mod counting {
    use std::cell::Cell;

    #[cfg(test)]
    use crate::tape::Trace;

    thread_local! {
        static RUNS: Cell<u32> = const { Cell::new(0) };
        #[cfg(test)]
        static MADE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }

    #[cfg(test)]
    pub(super) fn count_storages(trace: &Trace) {
        MADE.with(|made| {
            let (tensors, most) = made.get();
            let (storages, bytes) = (trace.storages.len(), trace.bytes());
            made.set((tensors + storages, most.max(bytes)));
        });
    }

    /// The storages of all runs since the last call, and the bytes of the largest trace.
    #[cfg(test)]
    pub(crate) fn take_counts() -> (usize, usize) {
        MADE.with(Cell::take)
    }

    pub(super) fn count() {
        RUNS.with(|runs| runs.set(runs.get() + 1));
    }

    /// The result of `work`, and how many networks it ran.
    pub fn runs_of<T>(work: impl FnOnce() -> T) -> (T, u32) {
        let before = RUNS.with(Cell::get);
        let found = work();
        (found, RUNS.with(Cell::get) - before)
    }
}
