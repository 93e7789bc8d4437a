//! The training step: what a training loop does around a network's forward function.

mod buckets;
mod clipping;
mod ema;
mod hooks;
mod interlude;
mod optimizer;
mod scaler;

use std::rc::Rc;

use crate::nets::{self, Cx, Env, Libraries, Net, Output, construct};
use crate::scenario::{Checkpointing, Data, Kernels, Optimizer, Precision, Training};
use crate::tape::{DType, Folding, Machine, Param, Phase, Tape, Tensor, Trace};
pub use buckets::Buckets;
use buckets::Reducer;
use ema::Average;
pub use hooks::foldable;
use optimizer::{OptimizerState, is_given};
use scaler::GradScaler;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run {
    pub trace: Trace,
    pub parameters: u64,
    pub trainable: u64,
    /// Bytes of the optimizer's states and of what else it keeps in the host's memory.
    pub host_states: u64,
    /// Bytes of the weights, and of those that are trained.
    pub bytes: u64,
    pub trainable_bytes: u64,
}

/// What was last said to the model: `model.train()` or `model.eval()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Train,
    Evaluate,
}

/// How much of a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    pub steps: u32,
    /// The optimizer's states are there before the first step, so that one step shows what every later one needs.
    pub warm: bool,
    /// Which equal layers are run once for all.
    pub folding: Folding,
    /// How gradients meet those of other GPUs.
    pub buckets: Buckets,
    /// Samples of an evaluation after the last step; 0 where nothing is evaluated.
    pub evaluation: u64,
    /// A script may leave out `model.train()`, forgotten or on purpose: its modules evaluate while it trains them.
    pub mode: Mode,
    /// After the last step a checkpoint's weights lie on the device beside the model's own, as when a run is resumed.
    pub resumes: bool,
    pub told: Told,
    /// What the versions in use of the libraries do.
    pub libraries: Libraries,
}

/// What a run tells: each of these what those before it do, and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// What memory does.
    Memory,
    /// Launches of kernels, for the time they take.
    Kernels,
    /// What tensors look like, to be shown.
    Notes,
}

impl Course {
    /// The first `steps` steps from the beginning.
    pub const fn from_the_start(steps: u32) -> Self {
        Self {
            steps,
            warm: false,
            folding: Folding::FromSecond,
            buckets: Buckets::None,
            evaluation: 0,
            mode: Mode::Train,
            resumes: false,
            told: Told::Kernels,
            libraries: Libraries::NEWEST,
        }
    }

    /// The least that shows a steady step: what a loop carries from step to step beside its states needs two.
    pub const fn steady(training: &Training, machine: Machine) -> Self {
        Self {
            steps: if carries(training, machine) { 2 } else { 1 },
            warm: true,
            folding: Folding::FromSecond,
            buckets: Buckets::None,
            evaluation: 0,
            mode: Mode::Train,
            resumes: false,
            told: Told::Kernels,
            libraries: Libraries::NEWEST,
        }
    }
}

/// Whether gradients live from step to step, as zeros.
const fn keeps_gradients(training: &Training, machine: Machine) -> bool {
    !training.zero_to_none || machine.torch.zeroes_gradients
}

/// Whether something of one step is there in the next.
const fn carries(training: &Training, machine: Machine) -> bool {
    training.keep_outputs
        || training.zero_late
        || keeps_gradients(training, machine)
        || matches!(training.optimizer, Optimizer::Muon)
}

/// Runs training steps of `net`.
pub fn run(
    net: &dyn Net,
    data: &Data,
    training: &Training,
    machine: Machine,
    course: Course,
) -> Run {
    let mut course = course;
    if !foldable(training) || matches!(course.buckets, Buckets::Viewed { .. }) {
        course.folding = Folding::Nothing;
    } else if course.folding == Folding::FromSecond && training.kernels != Kernels::Library {
        // The fused norms write over the gradient that comes in, and the last norm's is no layer's.
        course.folding = Folding::Between;
    }
    loop {
        let run = run_as(net, data, training, machine, course);
        // Where equal layers turned out not to be, fewer are run once for all.
        match course.folding.less().filter(|_| run.trace.broken) {
            Some(less) => course.folding = less,
            None => return run,
        }
    }
}

/// Each step as a plain loop does it: forward and backward of every micro-batch, clipping, the optimizer,
/// the moving average, and gradients let go.
pub fn run_as(
    net: &dyn Net,
    data: &Data,
    training: &Training,
    machine: Machine,
    course: Course,
) -> Run {
    let Course {
        steps,
        warm,
        folding,
        buckets,
        evaluation,
        mode,
        resumes,
        told,
        libraries,
    } = course;
    let reducer = Reducer::new(buckets);
    let tape = Tape::new(machine);
    match told {
        Told::Memory => tape.leave_kernels_out(),
        Told::Kernels => {}
        Told::Notes => tape.keep_notes(),
    }
    tape.evaluate(mode == Mode::Evaluate);
    let cx = Cx::new(
        tape.clone(),
        Rc::new(Env::new(training.clone(), libraries, folding)),
    );
    let model = construct(net, &cx, data);
    hooks::install(&model, training, warm);
    reducer.wrap(&model);
    let trainable: Vec<Rc<Param>> = model.trainable().cloned().collect();
    let mut optimizer = OptimizerState::new(training.optimizer, warm);
    let mut scaler = (training.precision == Precision::AmpFp16).then(GradScaler::default);
    let mut average = training.ema.then(|| Average::new(training.ema_on_host));
    // A script that keeps `outputs` frees the one before only when the name is bound again.
    let mut kept: Option<Vec<Tensor>> = None;
    // The same goes for its `loss`, and with the outputs for what the graph holds.
    let mut kept_loss: Option<Tensor> = None;
    let mut graph: Vec<Tensor> = Vec::new();
    // What is done once, after the last step, needs what a step leaves.
    let alike = evaluation == 0 && !resumes;
    for step in 0..steps {
        // The first makes what stays, and DDP lays its buckets out anew in the second.
        if step > 1 && alike && tape.again(step) {
            continue;
        }
        tape.mark(step, Phase::Setup);
        let (micro, _waiting) = micro_batches(net, &cx, data, training.accumulation.max(1));
        for (place, batch) in micro.iter().enumerate() {
            tape.mark(step, Phase::Forward);
            if step == 1 && place == 0 {
                reducer.rebuild(&model);
            }
            let forward = || cx.autocast(|| net.forward(&cx, batch));
            let Output { mut loss, held } = if training.checkpointing == Checkpointing::Offload {
                tape.offloading(forward)
            } else {
                forward()
            };
            drop(kept_loss.take());
            reducer.meets(place + 1 == micro.len());
            if training.keep_outputs {
                kept.replace(held);
            } else {
                drop(held);
            }
            if training.accumulation > 1 {
                loss = loss.scale();
            }
            if let Some(scaler) = &mut scaler {
                loss = scaler.scale(&tape, &loss);
            }
            drop(std::mem::take(&mut graph));
            if training.zero_late && place == 0 && !keeps_gradients(training, machine) {
                for param in model.state() {
                    if is_given(training.optimizer, param) {
                        param.grad.take();
                    }
                }
            }
            tape.mark(step, Phase::Backward);
            kept_loss = training.keep_outputs.then(|| loss.clone());
            loss.backward();
            graph = tape.take_graph();
            if !training.keep_outputs {
                graph.clear();
            }
        }
        tape.mark(step, Phase::Optimizer);
        if let Some(scaler) = &mut scaler {
            scaler.unscale(&tape);
        }
        if training.clip {
            clipping::clip_by_norm(&tape, &trainable);
        }
        if !training.optimizer_in_backward {
            optimizer.step(&tape, &trainable);
        }
        if let Some(scaler) = &mut scaler {
            scaler.update();
        }
        if let Some(average) = &mut average {
            average.update(&model);
        }
        if !training.zero_late && !keeps_gradients(training, machine) {
            for param in &trainable {
                if is_given(training.optimizer, param) {
                    param.grad.take();
                }
            }
        }
        if step + 1 == steps {
            if evaluation > 0 {
                tape.mark(step, Phase::Evaluation);
                interlude::evaluate(net, &cx, data, evaluation);
            }
            if resumes {
                tape.mark(step, Phase::Resume);
                interlude::load(&model, training.lora.is_some());
            }
        }
    }
    tape.mark(steps, Phase::Setup);
    Run {
        parameters: nets::count(model.parameters()),
        trainable: nets::count(model.trainable()),
        host_states: optimizer::on_host(training.optimizer, &trainable),
        bytes: nets::bytes(model.parameters()),
        trainable_bytes: nets::bytes(model.trainable()),
        trace: tape.finish(),
    }
}

/// The batches of one step. All are on the device before the first forward; beyond a few, which show every
/// state the memory can be in, the rest are held as they are and not run.
fn micro_batches(
    net: &dyn Net,
    cx: &Cx,
    data: &Data,
    accumulation: u64,
) -> (Vec<Vec<Tensor>>, Option<Tensor>) {
    const RUN: u64 = 8;
    let all: Vec<_> = (0..accumulation.min(RUN))
        .map(|_| net.batch(cx, data))
        .collect();
    let first = all.first().filter(|_| accumulation > RUN);
    let waiting = first.map(|first| {
        let bytes: u64 = first.iter().map(Tensor::bytes).fold(0, u64::saturating_add);
        let rest = bytes.saturating_mul(accumulation - RUN);
        cx.tape.empty("inputs", [rest], DType::U8)
    });
    (all, waiting)
}
