//! The list of commands with their arguments, options and help.

use super::command::Run::{OnRun, Plain};
use super::command::{Command, Opt};
use super::{
    batches, calibrate, check, convert, doctor, estimate, guide, lists, mcp, probe, replay, score,
    shell, snapshot, steps, strategy,
};

const SET: Opt = Opt {
    name: "set",
    value: "path=value",
    about: "set one field of the scenario; repeatable",
};
const TARGET: Opt = Opt {
    name: "target",
    value: "T",
    about: "the program to export to, or `all` for one folder per program",
};
const SWITCHED: Opt = Opt {
    name: "target",
    value: "T",
    about: "show how each change alters the files for this program",
};
const ZIP: Opt = Opt {
    name: "zip",
    value: "FILE",
    about: "write the files of all targets to an archive",
};
const STARTER: Opt = Opt {
    name: "starter",
    value: "S",
    about: "slurm, kubernetes or skypilot: also write the job file that starts launch.sh there",
};
const CARDS: Opt = Opt {
    name: "cards",
    value: "SIZES",
    about: "GPU sizes in GB, such as 80,48,16, or all: the run on each, at the same effective batch; with --out as scripts",
};
const OUT: Opt = Opt {
    name: "out",
    value: "DIR",
    about: "write to this folder instead of printing",
};
const METRIC: Opt = Opt {
    name: "metric",
    value: "M",
    about: "the metric to score: allocated, reserved, expandable, forward (at its end), forward-peak, backward-peak, optimizer-peak, static, or pinned (host memory)",
};

const AS: Opt = Opt {
    name: "as",
    value: "FORM",
    about: "markdown: tables of all cases, the worst first; plot: predicted against true, as SVG; coverage: how many cases lie in the predicted range",
};

const TITLE: Opt = Opt {
    name: "title",
    value: "TEXT",
    about: "the title of the page or plot",
};

const SCENARIO: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the scenario of the failed run",
};

const MEASURED: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the scenario of the measured run",
};

const RUN: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the scenario that FILE belongs to, if it names no model",
};

const EACH: Opt = Opt {
    name: "each",
    value: "",
    about: "check every FILE by itself; one that says nothing about training is left out",
};

const RECORD: Opt = Opt {
    name: "record",
    value: "LOG",
    about: "print what a probe log measured of the run --scenario, as a line for a truth file",
};

const FACTS: Opt = Opt {
    name: "facts",
    value: "",
    about: "print what was read, assumed and is missing, as JSON",
};

const MARGIN: Opt = Opt {
    name: "margin",
    value: "PERCENT",
    about: "percentage of the usable memory to keep free",
};
const FOR: Opt = Opt {
    name: "for",
    value: "FIELD",
    about: "gpu, gpus, checkpointing, an integer field of the scenario or a dimension of the model",
};
const MULTIPLE: Opt = Opt {
    name: "multiple",
    value: "N",
    about: "only try multiples of N",
};
const BY: Opt = Opt {
    name: "by",
    value: "COLUMN",
    about: "sort by memory (default), name, verdict, micro-batch or time",
};
const BATCH: Opt = Opt {
    name: "batch",
    value: "N",
    about: "the effective batch: samples per optimizer step",
};
const GPUS: Opt = Opt {
    name: "gpus",
    value: "N",
    about: "the number of GPUs; the scenario's own by default",
};
const RATE: Opt = Opt {
    name: "rate",
    value: "LR",
    about: "the learning rate at the current effective batch, to be scaled",
};
const RULE: Opt = Opt {
    name: "rule",
    value: "RULE",
    about: "linear, sqrt or none; the default depends on the optimizer",
};

const AIM: Opt = Opt {
    name: "goal",
    value: "G",
    about: "fits (default), faster, batch (the largest), length (the longest) or cards (the smallest GPUs)",
};
const KEEP: Opt = Opt {
    name: "keep",
    value: "SETTING",
    about: "a setting that no plan changes; repeatable",
};
const ALLOW: Opt = Opt {
    name: "allow",
    value: "CLASS",
    about: "what plans may do to results: identical, rounding, same-batch (default) or changes",
};
const PROGRAM: Opt = Opt {
    name: "program",
    value: "P",
    about: "only plans that this export target can run",
};
const RUNS: Opt = Opt {
    name: "runs",
    value: "FILE",
    about: "for recorded failures: the file of their runs; default steps.jsonl next to FILE",
};
const RECORDED: Opt = Opt {
    name: "recorded",
    value: "DIR",
    about: "the folder of the recorded models in FILE",
};
const STEPS: Opt = Opt {
    name: "steps",
    value: "N",
    about: "the number of steps, 200 by default",
};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "estimate",
        words: &["WHAT…"],
        options: &[SET],
        about: "predict the memory of a training run",
        run: Plain(estimate::estimate),
    },
    Command {
        name: "fit",
        words: &["WHAT…"],
        options: &[SET],
        about: "find the largest micro-batch that fits",
        run: OnRun(estimate::fit),
    },
    Command {
        name: "plan",
        words: &["WHAT…"],
        options: &[AIM, KEEP, ALLOW, PROGRAM, MARGIN, SET],
        about: "what to change: the fewest changes that fit, the fastest run, the one with most room",
        run: OnRun(strategy::plan),
    },
    Command {
        name: "moves",
        words: &["WHAT…"],
        options: &[SWITCHED, SET],
        about: "list the effect of every change on this run, and folklore that does not help",
        run: OnRun(strategy::moves),
    },
    Command {
        name: "tiers",
        words: &["WHAT…"],
        options: &[CARDS, OUT, SET],
        about: "list runs that fill the GPU to 70, 80, 90 and 98 percent, or the run on each GPU size",
        run: OnRun(strategy::tiers),
    },
    Command {
        name: "solve",
        words: &["WHAT…"],
        options: &[FOR, MULTIPLE, MARGIN, SET],
        about: "find the largest value of a setting that fits",
        run: OnRun(strategy::solve),
    },
    Command {
        name: "layout",
        words: &["WHAT…"],
        options: &[GPUS, MARGIN, SET],
        about: "find the fastest parallelism layout, and the fewest GPUs that can train it",
        run: OnRun(strategy::layout),
    },
    Command {
        name: "accumulate",
        words: &["WHAT…"],
        options: &[BATCH, RATE, RULE, MARGIN, SET],
        about: "split an effective batch into micro-batches, list differences from one large batch, scale the learning rate",
        run: OnRun(strategy::accumulate),
    },
    Command {
        name: "gpus",
        words: &["WHAT…"],
        options: &[BY, SET],
        about: "list the GPUs that the run fits on, and its speed on each",
        run: OnRun(strategy::gpus),
    },
    Command {
        name: "time",
        words: &["WHAT…"],
        options: &[SET],
        about: "predict how long a training step takes",
        run: OnRun(strategy::time),
    },
    Command {
        name: "export",
        words: &["WHAT…"],
        options: &[TARGET, STARTER, OUT, ZIP, SET],
        about: "write the configuration and launch files of a training program",
        run: Plain(convert::export),
    },
    Command {
        name: "import",
        words: &["FILE…"],
        options: &[RUN, FACTS],
        about: "read files, a command or a sentence as a scenario and print it as YAML",
        run: Plain(convert::import),
    },
    Command {
        name: "check",
        words: &["FILE…"],
        options: &[EACH, SET],
        about: "check in continuous integration that what files say fits: exit code 0, 1 if not, 2 if that cannot be said",
        run: Plain(check::check),
    },
    Command {
        name: "link",
        words: &["WHAT…"],
        options: &[SET],
        about: "print the scenario as a link",
        run: Plain(convert::link),
    },
    Command {
        name: "open",
        words: &["LINK"],
        options: &[],
        about: "print a link's scenario as YAML",
        run: Plain(convert::open),
    },
    Command {
        name: "truth",
        words: &["FILE"],
        options: &[METRIC, AS, TITLE, RUNS, RECORDED],
        about: "score predictions against recorded runs, or diagnoses against recorded failures",
        run: Plain(score::truth),
    },
    Command {
        name: "calibrate",
        words: &["FILE"],
        options: &[MEASURED, SET],
        about: "correct a scenario by the probe log or memory snapshot of one of its runs, and print it as YAML",
        run: Plain(calibrate::calibrate),
    },
    Command {
        name: "doctor",
        words: &["[FILE]"],
        options: &[SCENARIO, SET],
        about: "diagnose an out-of-memory failure from its error message, logs and tables",
        run: Plain(doctor::doctor),
    },
    Command {
        name: "record",
        words: &[],
        options: &[],
        about: "print a Python module that records a PyTorch model for estimates, without a GPU",
        run: Plain(doctor::record),
    },
    Command {
        name: "snapshot",
        words: &["FILE"],
        options: &[SCENARIO, SET],
        about: "list the owners of memory in a torch.cuda.memory._dump_snapshot file, and its differences from a scenario",
        run: Plain(snapshot::snapshot),
    },
    Command {
        name: "probe",
        words: &[],
        options: &[RECORD, MEASURED, SET],
        about: "print a Python module that logs memory at each step, or make a truth record of such a log",
        run: Plain(probe::probe),
    },
    Command {
        name: "replay",
        words: &["EVENTS.jsonl[.gz]"],
        options: &[],
        about: "replay a recorded event stream through the allocator and compare",
        run: Plain(replay::replay),
    },
    Command {
        name: "batches",
        words: &["WHAT…"],
        options: &[SET],
        about: "list the memory of typical and large batches of varying samples, and how often large ones occur",
        run: OnRun(batches::batches),
    },
    Command {
        name: "steps",
        words: &["WHAT…"],
        options: &[STEPS, SET],
        about: "simulate many steps with batches of varying size, to show fragmentation",
        run: OnRun(steps::steps),
    },
    Command {
        name: "guide",
        words: &["PRESET"],
        options: &[],
        about: "compare the claims of a system's memory guide with predictions",
        run: Plain(guide::guide),
    },
    Command {
        name: "presets",
        words: &[],
        options: &[],
        about: "list the named scenarios",
        run: Plain(lists::presets),
    },
    Command {
        name: "catalog",
        words: &["[gpus|models|stacks|methods|check]"],
        options: &[],
        about: "list the GPUs, models and software of the catalogue, or check it",
        run: Plain(lists::catalog),
    },
    Command {
        name: "schema",
        words: &[],
        options: &[],
        about: "print the JSON Schema of scenario files",
        run: Plain(lists::schema),
    },
    Command {
        name: "mcp",
        words: &[],
        options: &[],
        about: "serve agents by the Model Context Protocol, over standard input and output",
        run: Plain(mcp::mcp),
    },
    Command {
        name: "help",
        words: &["[COMMAND]"],
        options: &[],
        about: "explain the program or a command",
        run: Plain(shell::help),
    },
    Command {
        name: "completions",
        words: &["SHELL"],
        options: &[],
        about: "print a script that completes commands and options in bash, zsh, fish or PowerShell",
        run: Plain(shell::completions),
    },
    Command {
        name: "man",
        words: &["[COMMAND]"],
        options: &[],
        about: "print the manual page of the program or of a command",
        run: Plain(shell::man),
    },
];
