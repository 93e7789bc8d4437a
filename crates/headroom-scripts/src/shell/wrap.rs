//! Commands that run another command: how many of their words stand before it.

/// A wrapper: its names, options that take a word, and how many words of its own it wants before the command.
struct Wrapper {
    names: &'static [&'static str],
    valued: &'static [&'static str],
    own: usize,
}

const fn plain(names: &'static [&'static str]) -> Wrapper {
    Wrapper {
        names,
        valued: &[],
        own: 0,
    }
}

const WRAPPERS: &[Wrapper] = &[
    plain(&[
        "nohup",
        "exec",
        "command",
        "builtin",
        "setsid",
        "unbuffer",
        "xvfb-run",
        "proxychains4",
        "caffeinate",
        "catchsegv",
    ]),
    Wrapper {
        names: &["time"],
        valued: &["-f", "-o"],
        own: 0,
    },
    Wrapper {
        names: &["sudo"],
        valued: &["-u", "-g", "--user", "--group"],
        own: 0,
    },
    Wrapper {
        names: &["env"],
        valued: &["-u", "--unset", "-C", "-S"],
        own: 0,
    },
    Wrapper {
        names: &["nice", "ionice", "chrt"],
        valued: &["-n", "-c", "-p"],
        own: 0,
    },
    Wrapper {
        names: &["stdbuf"],
        valued: &["-o", "-e", "-i"],
        own: 0,
    },
    Wrapper {
        names: &["numactl"],
        valued: &[
            "-N",
            "-m",
            "-C",
            "-i",
            "--cpunodebind",
            "--membind",
            "--physcpubind",
        ],
        own: 0,
    },
    Wrapper {
        names: &["taskset"],
        valued: &["-c"],
        own: 0,
    },
    Wrapper {
        names: &["timeout"],
        valued: &["-k", "-s", "--signal", "--kill-after"],
        own: 1,
    },
    Wrapper {
        names: &["flock"],
        valued: &["-w", "-E"],
        own: 1,
    },
    Wrapper {
        names: &["singularity", "apptainer"],
        valued: &[
            "-B",
            "--bind",
            "--pwd",
            "--env",
            "--home",
            "-H",
            "--overlay",
            "--env-file",
            "-W",
        ],
        own: 2,
    },
    Wrapper {
        names: &["uv", "poetry", "pdm", "pipenv", "rye", "hatch", "pixi"],
        valued: &[
            "--with",
            "--extra",
            "--group",
            "--python",
            "-p",
            "--project",
            "--directory",
            "--env-file",
            "--index-url",
            "-e",
            "--environment",
            "--package",
            "--with-requirements",
            "-C",
            "--manifest-path",
            "--no-group",
            "--index",
        ],
        own: 1,
    },
    Wrapper {
        names: &["conda", "mamba", "micromamba"],
        valued: &["-n", "--name", "-p", "--prefix", "--cwd"],
        own: 1,
    },
    Wrapper {
        names: &["nsys"],
        valued: &["-o", "-t", "--output", "--trace", "-s", "-c", "-w", "-f"],
        own: 1,
    },
    Wrapper {
        names: &["ncu", "viztracer", "kernprof", "scalene"],
        valued: &["-o", "--output_file"],
        own: 0,
    },
    Wrapper {
        names: &["py-spy"],
        valued: &["-o", "-r", "-f", "-d"],
        own: 1,
    },
    Wrapper {
        names: &["coverage"],
        valued: &["--source", "--rcfile"],
        own: 1,
    },
    Wrapper {
        names: &["docker", "podman", "nvidia-docker"],
        valued: &[
            "-v",
            "-e",
            "--name",
            "--gpus",
            "--shm-size",
            "-w",
            "--network",
            "--net",
            "--ipc",
            "-p",
            "-u",
            "--user",
            "--env",
            "--volume",
            "--workdir",
            "--runtime",
            "--mount",
            "--ulimit",
            "--entrypoint",
            "--cpus",
            "--memory",
            "-m",
            "--env-file",
            "--device",
            "--hostname",
            "-h",
            "--pid",
            "--cap-add",
            "--security-opt",
            "--restart",
            "--platform",
            "--add-host",
            "--label",
            "-l",
            "--tmpfs",
            "--cpuset-cpus",
        ],
        own: 2,
    },
];

/// Options of `srun` and `sbatch` that take no word.
const SLURM_SWITCHES: &[&str] = &[
    "-l",
    "--label",
    "--exclusive",
    "--overlap",
    "--pty",
    "-K",
    "--kill-on-bad-exit",
    "-v",
    "--verbose",
    "-Q",
    "--quiet",
    "-u",
    "--unbuffered",
    "--no-container-mount-home",
    "--container-writable",
    "-O",
    "--overcommit",
    "-s",
    "--oversubscribe",
    "-W0",
    "--requeue",
    "--no-requeue",
    "--parsable",
    "--wait",
    "--container-remap-root",
    "-H",
    "--hold",
    "--disable-status",
    "-X",
    "--exact",
    "--whole",
    "--spread-job",
    "--no-kill",
];

pub(super) fn is_switch_of_slurm(word: &str) -> bool {
    SLURM_SWITCHES.contains(&word) || word.contains('=')
}

pub(super) fn is_name(text: &str) -> bool {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty()
        && text.bytes().all(byte)
        && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// How many words a wrapper in front of a command has; 0 if there is none.
pub(super) fn skip(words: &[&str]) -> usize {
    let Some(first) = words.first() else { return 0 };
    let name = first.rsplit('/').next().unwrap_or(first);
    if let Some((variable, _)) = first.split_once('=')
        && is_name(variable)
    {
        return 1;
    }
    match name {
        "srun" => return options(words, 1, |word| !is_switch_of_slurm(word)),
        "mpirun" | "mpiexec" | "horovodrun" | "orterun" => {
            return mpi(words);
        }
        "ray" if words.get(1) == Some(&"job") => return after_dashes(words),
        "gantry" | "beaker" | "sky" | "kubectl" | "runai" | "rlaunch" | "pueue" | "jet"
        | "dstack" | "modal" => {
            return after_dashes(words);
        }
        "accelerate-launch" => return 0,
        _ => {}
    }
    let Some(wrapper) = WRAPPERS
        .iter()
        .find(|wrapper| wrapper.names.contains(&name))
    else {
        return 0;
    };
    let valued = |word: &str| wrapper.valued.contains(&word);
    match name {
        "uv" | "poetry" | "pdm" | "pipenv" | "rye" | "hatch" | "pixi" | "conda" | "mamba"
        | "micromamba" | "coverage" => {
            // Options may stand before `run` and after it.
            let at = options(words, 1, valued);
            if words.get(at) != Some(&"run") {
                return 0;
            }
            let end = options(words, at + 1, valued);
            // `uv run -m module` is `python -m module`.
            if matches!(words.get(end.saturating_sub(1)), Some(&("-m" | "--module"))) {
                end - 1
            } else {
                end
            }
        }
        "nsys" | "py-spy" => {
            if !matches!(words.get(1), Some(&("profile" | "record"))) {
                return 0;
            }
            options(words, 2, valued)
        }
        "singularity" | "apptainer" => {
            let at = options(words, 1, valued);
            if !matches!(words.get(at), Some(&("exec" | "run"))) {
                return 0;
            }
            options(words, at + 1, valued) + 1
        }
        "docker" | "podman" | "nvidia-docker" => {
            if !matches!(words.get(1), Some(&("run" | "exec"))) {
                return 0;
            }
            options(words, 2, valued) + 1
        }
        _ => options(words, 1, valued) + wrapper.own,
    }
}

/// Where words follow that are neither options nor what options take.
fn options(words: &[&str], from: usize, valued: impl Fn(&str) -> bool) -> usize {
    let mut at = from;
    while let Some(word) = words.get(at) {
        if *word == "--" {
            return at + 1;
        }
        if !word.starts_with('-') || word.len() == 1 {
            return at;
        }
        at += 1;
        let joined =
            word.contains('=') || (!word.starts_with("--") && word.len() > 2 && !valued(word));
        at += usize::from(!joined && valued(word));
    }
    at
}

fn mpi(words: &[&str]) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !word.starts_with('-') {
            return at;
        }
        at += match *word {
            "-np" | "-n" | "--np" | "-N" | "-H" | "--host" | "-hostfile" | "--hostfile"
            | "-machinefile" | "-x" | "-bind-to" | "--bind-to" | "-map-by" | "--map-by"
            | "-ppn" | "--num-proc" | "-rf" | "-host" | "-npernode" | "--npernode" | "-c"
            | "--rankfile" | "-f" | "-p" | "--ssh-port" => 2,
            "-mca" | "--mca" | "-genv" | "-env" | "-gmca" => 3,
            _ => 1,
        };
    }
    at
}

/// What stands after `--`.
fn after_dashes(words: &[&str]) -> usize {
    words
        .iter()
        .position(|word| *word == "--")
        .map_or(0, |at| at + 1)
}

/// Whether a path ends in one of these extensions.
pub(super) fn has_extension(path: &str, extensions: &[&str]) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| extensions.contains(&extension))
}
