//! The five research systems' own files: their YAML, and shell scripts that call their programs.

mod flags;
mod programs;
mod yaml;

use headroom_io::import::{Imported, Plugin, allocator};
use headroom_scenario::{Problem, Scenario, presets, settings};
use headroom_scripts::{Alone, shell};
use programs::PROGRAMS;

pub(super) const READERS: Plugin = Plugin {
    recognises: yaml::recognises,
    read: yaml::read,
    script,
};

/// The run that a shell script starts, if it calls one of the systems' programs; of several calls, the first.
fn script(text: &str) -> Option<Imported> {
    let script = shell::evaluate(text, &Alone);
    let commands: Vec<Words> = script.commands.iter().map(Words::of).collect();
    let called = |words: &Vec<String>| {
        let found = |script: &str| words.iter().position(|word| word.ends_with(script));
        PROGRAMS.iter().find_map(|program| {
            let at = found(program.script)?;
            Some((program, at))
        })
    };
    let mut calls = commands
        .iter()
        .filter_map(|command| called(&command.words).map(|found| (command, found)));
    let (command, (program, at)) = calls.next()?;
    let mut run = Builder::of(program.preset);
    let more = calls.count();
    if more > 0 {
        run.note(format!("{more} more calls in this script are ignored"));
    }
    let (before, after) = command.words.split_at(at);
    flags::launcher(&mut run, before);
    allocator(&mut run.imported, &command.environment);
    flags::read(&mut run, program, after.get(1..).unwrap_or_default());
    Some(run.imported)
}

/// A command's words and environment; what only running it would show, such as `$(nproc)`, is left out.
struct Words {
    words: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Words {
    fn of(command: &shell::Command) -> Self {
        let known = |word: &&shell::Word| word.unknown.is_none();
        let variables = command.environment.iter();
        let variables = variables.filter(|(_, word)| known(word));
        Self {
            words: command
                .words
                .iter()
                .filter(known)
                .map(|word| word.text.clone())
                .collect(),
            environment: variables
                .map(|(name, word)| (name.clone(), word.text.clone()))
                .collect(),
        }
    }
}

/// A system's scenario while its command is read.
struct Builder {
    imported: Imported,
}

impl Builder {
    /// The author's own run.
    fn of(preset: &str) -> Self {
        let preset = presets::find(preset);
        Self {
            imported: Imported::over(preset.map(presets::Preset::draft).unwrap_or_default()),
        }
    }

    fn scenario(&self) -> &Scenario {
        &self.imported.scenario
    }

    /// Changes a setting; a value that it does not accept is a problem.
    fn set(&mut self, field: &str, text: &str) {
        self.imported.set(field, text, "the command", field);
    }

    /// Sets a dimension of the model.
    fn size(&mut self, flag: &str, name: &str, text: &str) {
        let size = text.parse::<u64>().ok();
        match size.filter(|size| *size <= settings::LARGEST_SIZE) {
            Some(size) => self.imported.size(name, size, "the command", flag),
            None => self.wrong(flag, text, "a whole number"),
        }
    }

    fn wrong(&mut self, flag: &str, text: &str, expected: &str) {
        let problem = Problem::new(flag, text, expected);
        self.imported.problems.push(problem);
    }

    /// A key or flag that no setting corresponds to.
    fn leave(&mut self, key: &str) {
        self.imported.unused_keys.push(key.into());
    }

    /// A difference between what the program does and what its command says.
    fn note(&mut self, note: impl Into<String>) {
        self.imported.notes.push(note.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings that are not the preset's, in the order of the table, then sizes.
    fn changed(imported: &Imported, preset: &str) -> String {
        let base = Builder::of(preset).imported.scenario;
        let scenario = &imported.scenario;
        let differs = settings::all()
            .iter()
            .filter(|setting| setting.get(scenario) != setting.get(&base));
        let shown = differs.map(|setting| format!("{}={}", setting.key, setting.get(scenario)));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(text: &str, preset: &str, expected: &str, unused_keys: &[&str], notes: usize) {
        crate::install();
        let imported = script(text).unwrap();
        assert_eq!(imported.problems, vec![], "{text}");
        assert_eq!(changed(&imported, preset), expected, "{text}");
        assert_eq!(imported.unused_keys, unused_keys, "{text}");
        assert_eq!(imported.notes.len(), notes, "{:?}", imported.notes);
    }

    #[test]
    fn scripts_of_the_guides_are_the_runs_that_they_start() {
        // A positional argument with its default, and the allocator's variable.
        check(
            "#!/bin/bash\nexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128\n\
             BATCH_SIZE=${1:-2}  # Default to 2\necho \"Batch size: $BATCH_SIZE\"\n\
             python scripts/04_train_model.py \\\n    --hariboss_csv hariboss/Complexes.csv \\\n    --num_layers 3 \\\n    \
             --batch_size $BATCH_SIZE \\\n    --num_workers 2 \\\n    --use_multi_hop --use_nonbonded --use_gate \\\n    \
             --hidden_irreps \"16x0e + 8x1o + 4x2e\"\n",
            "rna-3e-ffi",
            "dims=0e=16,1o=8,2e=4,layer_norm=0,layers=3 max_split=128",
            &[],
            0,
        );
        // Without the patch's flag the fork uses a batch of one, and --batch_size as accumulation.
        check(
            "$(python -c \"from dreams.definitions import export; export()\")\n\
             python3 dreams/training/train.py \\\n --train_objective fp_morgan_4096 --batch_size 2 --num_devices 2 \\\n \
             --num_workers_data 4 --train_precision 32 --val_check_interval 0.1 --max_peaks_n 100 --save_top_k 3 \\\n \
             --max_epochs 100 --lr 1e-4 --model DreaMS",
            "dreams",
            "mb=1 accum=2 workers=2 val_check_interval=0.25",
            &[],
            1,
        );
        check(
            "python3 dreams/training/train.py --as_given --batch_size 4 --num_devices 1 --num_workers_data 4 \
             --val_check_interval 0.5 --max_peaks_n 90 --save_top_k 3 --max_epochs 100 --gradient_clip_val 1.0",
            "dreams",
            "gpus=1 dims=peaks=90 mb=4 clip=on val_check_interval=0.5",
            &[],
            0,
        );
        check(
            "DATA_ROOT=${1:-\"data\"}\nNUM_GPUS=${2:-4}\nuv run python -m torch.distributed.run --nproc_per_node=$NUM_GPUS \\\n \
             --nnodes=1 train_prs_med.py --data_root \"$DATA_ROOT\" --batch_size 2 --gradient_accumulation_steps 4 \\\n \
             --gradient_checkpointing --use_amp --compile_model --num_workers 8",
            "prs-med",
            "gpus=4 mb=2 ckpt=layers compile=model compile_mode=reduce-overhead accum=4 workers=8",
            &[],
            1,
        );
        check(
            "python train_prs_med.py --data_root x --no-use_amp\npython train_prs_med.py --batch_size 4",
            "prs-med",
            "precision=fp32",
            &[],
            1,
        );
        check(
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True torchrun --nproc_per_node=8 training/train.py \
             --config training/configs/pretrain_512m_low_memory.yaml --output_dir outputs/gsa-512m",
            "gsa-512m",
            "gpus=8",
            &[],
            1,
        );
        assert_eq!(script("echo hello\npython other.py --batch_size 2"), None);
    }

    #[test]
    fn what_ends_a_run_at_its_start_is_a_problem() {
        crate::install();
        for (text, field) in [
            (
                "python dreams/training/train.py --train_precision 16",
                "--train_precision",
            ),
            ("python train_prs_med.py --image_size 512", "--image_size"),
            (
                "python train_prs_med.py --batch_size many",
                "data.micro_batch",
            ),
        ] {
            let found = script(text).unwrap().problems;
            let fields: Vec<&str> = found
                .iter()
                .map(headroom_scenario::Problem::field)
                .collect();
            assert_eq!(fields, [field], "{text}");
        }
    }
}
