//! The list of commands: their words, their options and what they do.

use super::command::{Command, Opt};
use super::{
    batches, calibrate, convert, doctor, estimate, guide, lists, replay, score, snapshot, steps,
    strategy,
};

const SET: Opt = Opt {
    name: "set",
    value: "path=value",
    about: "set one field of the scenario; may be repeated",
};
const TARGET: Opt = Opt {
    name: "target",
    value: "T",
    about: "the program to export to, or `all` for each in a folder of its own",
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
    about: "slurm, kubernetes or skypilot: write what starts launch.sh there too",
};
const CARDS: Opt = Opt {
    name: "cards",
    value: "SIZES",
    about: "sizes in GB, such as 80,48,16, or all: the run on each, its effective batch kept; with --out as scripts",
};
const OUT: Opt = Opt {
    name: "out",
    value: "DIR",
    about: "write to this folder instead of printing",
};
const METRIC: Opt = Opt {
    name: "metric",
    value: "M",
    about: "what is scored: allocated, reserved, expandable, forward (its end), forward-peak, backward-peak, optimizer-peak, static, or pinned (host memory)",
};

const AS: Opt = Opt {
    name: "as",
    value: "FORM",
    about: "markdown: tables of all cases, the worst first; plot: predicted against true, as SVG; coverage: how many lay in the band that was stated",
};

const TITLE: Opt = Opt {
    name: "title",
    value: "TEXT",
    about: "the title of the page or the plot",
};

const SCENARIO: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the scenario of the failed run",
};

const MEASURED: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the scenario of the run that was measured",
};

const RUN: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the run that FILE is a part of, where it names no model",
};

const MARGIN: Opt = Opt {
    name: "margin",
    value: "PERCENT",
    about: "percent of the usable memory to keep free",
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
const COST: Opt = Opt {
    name: "cost",
    value: "COST",
    about: "the most expensive kind of change allowed: free, time (default) or results",
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
    about: "the learning rate at the present effective batch, to be scaled",
};
const RULE: Opt = Opt {
    name: "rule",
    value: "RULE",
    about: "linear, sqrt or none; the default depends on the optimizer",
};

const RUNS: Opt = Opt {
    name: "runs",
    value: "FILE",
    about: "for recorded failures: the runs they ended; default steps.jsonl beside FILE",
};
const RECORDED: Opt = Opt {
    name: "recorded",
    value: "DIR",
    about: "the folder of the recorded models that the cases name",
};
const STEPS: Opt = Opt {
    name: "steps",
    value: "N",
    about: "the number of steps, 200 by default",
};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "estimate",
        words: &["WHAT"],
        options: &[SET],
        about: "predict the memory of a training run",
        run: estimate::estimate,
    },
    Command {
        name: "fit",
        words: &["WHAT"],
        options: &[SET],
        about: "find the largest micro-batch that fits",
        run: estimate::fit,
    },
    Command {
        name: "ladder",
        words: &["WHAT"],
        options: &[MARGIN, SET],
        about: "list the fewest changes that make the run fit, cheapest first",
        run: strategy::ladder,
    },
    Command {
        name: "moves",
        words: &["WHAT"],
        options: &[SWITCHED, SET],
        about: "list the effect of every change on this run, and the folklore that does not help",
        run: strategy::moves,
    },
    Command {
        name: "tiers",
        words: &["WHAT"],
        options: &[CARDS, OUT, SET],
        about: "list runs that fill the GPU to 70, 80, 90 and 98 percent, or the run on each size of card",
        run: strategy::tiers,
    },
    Command {
        name: "solve",
        words: &["WHAT"],
        options: &[FOR, MULTIPLE, MARGIN, SET],
        about: "find the largest value of a setting that fits",
        run: strategy::solve,
    },
    Command {
        name: "search",
        words: &["WHAT"],
        options: &[COST, MARGIN, SET],
        about: "find the fastest combination of changes that fits",
        run: strategy::search,
    },
    Command {
        name: "layout",
        words: &["WHAT"],
        options: &[GPUS, MARGIN, SET],
        about: "find how GPUs share the run fastest, and the fewest GPUs that train it",
        run: strategy::layout,
    },
    Command {
        name: "accumulate",
        words: &["WHAT"],
        options: &[BATCH, RATE, RULE, MARGIN, SET],
        about: "split an effective batch into micro-batches, check what differs from one large batch, scale the learning rate",
        run: strategy::accumulate,
    },
    Command {
        name: "gpus",
        words: &["WHAT"],
        options: &[BY, SET],
        about: "list the GPUs that the run fits on, and its speed on each",
        run: strategy::gpus,
    },
    Command {
        name: "time",
        words: &["WHAT"],
        options: &[SET],
        about: "predict how long a training step takes",
        run: strategy::time,
    },
    Command {
        name: "export",
        words: &["WHAT"],
        options: &[TARGET, STARTER, OUT, ZIP, SET],
        about: "write the configuration and launch files of a training program",
        run: convert::export,
    },
    Command {
        name: "import",
        words: &["FILE"],
        options: &[RUN],
        about: "read a file as a scenario and print it as YAML",
        run: convert::import,
    },
    Command {
        name: "link",
        words: &["WHAT"],
        options: &[SET],
        about: "print the scenario as a link",
        run: convert::link,
    },
    Command {
        name: "open",
        words: &["LINK"],
        options: &[],
        about: "print a link's scenario as YAML",
        run: convert::open,
    },
    Command {
        name: "truth",
        words: &["FILE"],
        options: &[METRIC, AS, TITLE, RUNS, RECORDED],
        about: "score predictions against recorded runs, or diagnoses against recorded failures",
        run: score::truth,
    },
    Command {
        name: "calibrate",
        words: &["FILE"],
        options: &[MEASURED, SET],
        about: "correct a scenario by the probe log or the memory snapshot of one of its runs, and print it as YAML",
        run: calibrate::calibrate,
    },
    Command {
        name: "doctor",
        words: &["[FILE]"],
        options: &[SCENARIO, SET],
        about: "diagnose an out-of-memory failure from its error message, logs and tables",
        run: doctor::doctor,
    },
    Command {
        name: "record",
        words: &[],
        options: &[],
        about: "print a Python module that records a PyTorch model for an estimate, without a GPU",
        run: doctor::record,
    },
    Command {
        name: "snapshot",
        words: &["FILE"],
        options: &[SCENARIO, SET],
        about: "tell who holds what in a snapshot of torch.cuda.memory._dump_snapshot, and how a scenario differs from it",
        run: snapshot::snapshot,
    },
    Command {
        name: "probe",
        words: &[],
        options: &[],
        about: "print a Python module that logs memory at each step",
        run: doctor::probe,
    },
    Command {
        name: "replay",
        words: &["EVENTS.jsonl[.gz]"],
        options: &[],
        about: "replay a recorded event stream through the allocator and compare",
        run: replay::replay,
    },
    Command {
        name: "batches",
        words: &["WHAT"],
        options: &[SET],
        about: "list what typical and large batches need where samples vary, and how often large ones occur",
        run: batches::batches,
    },
    Command {
        name: "steps",
        words: &["WHAT"],
        options: &[STEPS, SET],
        about: "simulate many steps with batches of varying size, to show fragmentation",
        run: steps::steps,
    },
    Command {
        name: "guide",
        words: &["PRESET"],
        options: &[],
        about: "compare the claims of a system's memory guide with predictions",
        run: guide::guide,
    },
    Command {
        name: "presets",
        words: &[],
        options: &[],
        about: "list the named scenarios",
        run: lists::presets,
    },
    Command {
        name: "catalog",
        words: &["[gpus|models|stacks|methods|check]"],
        options: &[],
        about: "list the GPUs, models and software that scenarios can name, or check the catalogue",
        run: lists::catalog,
    },
    Command {
        name: "schema",
        words: &[],
        options: &[],
        about: "print the JSON Schema of scenario files",
        run: lists::schema,
    },
];
