//! Every command: its words, its options, what it is for.

use super::args::Args;
use super::{
    Answer, Refusal, batches, convert, doctor, estimate, guide, lists, replay, score, steps,
    strategy,
};

/// One command.
pub(super) struct Command {
    pub name: &'static str,
    /// What stands without a name; in brackets where it may be left out.
    pub words: &'static [&'static str],
    pub options: &'static [Opt],
    pub about: &'static str,
    pub run: fn(&Args) -> Result<Answer, Refusal>,
}

/// An option and the name of its value.
pub(super) struct Opt {
    pub name: &'static str,
    pub value: &'static str,
    pub about: &'static str,
}

const SET: Opt = Opt {
    name: "set",
    value: "path=value",
    about: "change one field; may be given again",
};
const TARGET: Opt = Opt {
    name: "target",
    value: "T",
    about: "the program to write for; all for every one, each in its own folder",
};
const SWITCHED: Opt = Opt {
    name: "target",
    value: "T",
    about: "show what each change makes of the files for this program",
};
const ZIP: Opt = Opt {
    name: "zip",
    value: "FILE",
    about: "an archive of every target's files",
};
const OUT: Opt = Opt {
    name: "out",
    value: "DIR",
    about: "the folder to write into; without it the files are printed",
};
const METRIC: Opt = Opt {
    name: "metric",
    value: "M",
    about: "allocated, reserved, expandable or forward",
};

const AS: Opt = Opt {
    name: "as",
    value: "FORM",
    about: "markdown: every case in tables, the worst first; plot: predicted against true, as SVG",
};

const TITLE: Opt = Opt {
    name: "title",
    value: "TEXT",
    about: "what the page or the plot is called",
};

const SCENARIO: Opt = Opt {
    name: "scenario",
    value: "WHAT",
    about: "the scenario that was run",
};

const MARGIN: Opt = Opt {
    name: "margin",
    value: "PERCENT",
    about: "how much of the usable memory must stay free",
};
const FOR: Opt = Opt {
    name: "for",
    value: "FIELD",
    about: "gpu, gpus, checkpointing, a whole number of the scenario or a dimension of the model",
};
const MULTIPLE: Opt = Opt {
    name: "multiple",
    value: "N",
    about: "try multiples of this only",
};
const COST: Opt = Opt {
    name: "cost",
    value: "COST",
    about: "the dearest change allowed: free, time (unless said) or results",
};
const BY: Opt = Opt {
    name: "by",
    value: "COLUMN",
    about: "sort by memory, name, verdict, micro-batch or time",
};
const BATCH: Opt = Opt {
    name: "batch",
    value: "N",
    about: "samples that one optimizer step should see",
};
const RATE: Opt = Opt {
    name: "rate",
    value: "LR",
    about: "the learning rate of the present batch, to be scaled",
};
const RULE: Opt = Opt {
    name: "rule",
    value: "RULE",
    about: "linear, sqrt or none; the optimizer's own unless said",
};

const RUNS: Opt = Opt {
    name: "runs",
    value: "FILE",
    about: "with recorded failures: the runs they ended, steps.jsonl beside FILE unless said",
};
const STEPS: Opt = Opt {
    name: "steps",
    value: "N",
    about: "how many, 200 unless said",
};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "estimate",
        words: &["WHAT"],
        options: &[SET],
        about: "predict the memory of a run",
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
        about: "say what to change, cheapest first, so that it fits",
        run: strategy::ladder,
    },
    Command {
        name: "moves",
        words: &["WHAT"],
        options: &[SWITCHED, SET],
        about: "say what every change would do to this run, and what folklore does not",
        run: strategy::moves,
    },
    Command {
        name: "tiers",
        words: &["WHAT"],
        options: &[SET],
        about: "make runs that fill the card to 70, 80, 90 and 98 percent",
        run: strategy::tiers,
    },
    Command {
        name: "solve",
        words: &["WHAT"],
        options: &[FOR, MULTIPLE, MARGIN, SET],
        about: "find the largest of something that fits",
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
        name: "accumulate",
        words: &["WHAT"],
        options: &[BATCH, RATE, RULE, MARGIN, SET],
        about: "find micro-batch and accumulation for a batch, whether they train alike, and its learning rate",
        run: strategy::accumulate,
    },
    Command {
        name: "gpus",
        words: &["WHAT"],
        options: &[BY, SET],
        about: "say on which GPUs the run fits, and how fast it is there",
        run: strategy::gpus,
    },
    Command {
        name: "time",
        words: &["WHAT"],
        options: &[SET],
        about: "say how long a step takes",
        run: strategy::time,
    },
    Command {
        name: "export",
        words: &["WHAT"],
        options: &[TARGET, OUT, ZIP, SET],
        about: "write the files that run it",
        run: convert::export,
    },
    Command {
        name: "import",
        words: &["FILE"],
        options: &[],
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
        options: &[METRIC, AS, TITLE, RUNS],
        about: "score predictions against recorded runs, or diagnoses against recorded failures",
        run: score::truth,
    },
    Command {
        name: "doctor",
        words: &["[FILE]"],
        options: &[SCENARIO, SET],
        about: "say why a run ran out of memory, from its error, logs and tables",
        run: doctor::doctor,
    },
    Command {
        name: "probe",
        words: &[],
        options: &[],
        about: "print the Python module that logs memory step by step",
        run: doctor::probe,
    },
    Command {
        name: "replay",
        words: &["EVENTS.jsonl[.gz]"],
        options: &[],
        about: "replay a recorded run through the allocator and compare",
        run: replay::replay,
    },
    Command {
        name: "batches",
        words: &["WHAT"],
        options: &[SET],
        about: "say what batches of varying samples need, and how often large ones come",
        run: batches::batches,
    },
    Command {
        name: "steps",
        words: &["WHAT"],
        options: &[STEPS, SET],
        about: "go through many steps with batches as they come: what fragmentation comes to",
        run: steps::steps,
    },
    Command {
        name: "guide",
        words: &["PRESET"],
        options: &[],
        about: "compare what a system's memory guide says with what is computed",
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
        about: "list what scenarios can name, or check it",
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
