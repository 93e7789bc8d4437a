use crate::File;
use crate::shell::{Count, evaluate, launches};

/// Launches as `launcher gpus/nodes program arguments`, with `?` for what is unknown.
#[track_caller]
fn check(script: &str, expected: &[&str]) {
    check_beside(script, &[], expected);
}

#[track_caller]
fn check_beside(script: &str, files: &[(&str, &str)], expected: &[&str]) {
    let file = |(name, text): &(&str, &str)| File {
        name: (*name).into(),
        text: (*text).into(),
    };
    let files: Vec<File> = files.iter().map(file).collect();
    let found = evaluate(script, &files);
    let found: Vec<String> = launches(&found, &files)
        .iter()
        .map(|launch| {
            let gpus = match &launch.gpus {
                Count::Known(count) => count.to_string(),
                Count::Unknown(_) => "?".into(),
            };
            let nodes = launch.nodes.map_or("?".into(), |nodes| nodes.to_string());
            let mut words = vec![format!(
                "{:?} {gpus}/{nodes} {}",
                launch.launcher, launch.program.text
            )];
            words.extend(launch.arguments.iter().map(|word| word.text.clone()));
            words.join(" ")
        })
        .collect();
    assert_eq!(found, expected, "{script}");
}

#[test]
fn python() {
    check("python train.py --a 1", &["Python 1/1 train.py --a 1"]);
    check(
        "python3 -u -W ignore -m pkg.train --a",
        &["Python 1/1 pkg.train --a"],
    );
    check(
        "CUDA_VISIBLE_DEVICES=0,1 /opt/bin/python3.10 t.py",
        &["Python 1/1 t.py"],
    );
    check("python -c 'import torch'", &[]);
    check(
        "python -m pip install x; pip install y; wandb login; huggingface-cli download z",
        &[],
    );
    check("./train.py --a", &["Python 1/1 ./train.py --a"]);
    check(
        "uv run --with x python t.py; poetry run python -m m",
        &["Python 1/1 t.py", "Python 1/1 m"],
    );
    check(
        "uv run t.py --a; uv run -m pkg.t b",
        &["Python 1/1 t.py --a", "Python 1/1 pkg.t b"],
    );
    check(
        "conda run -n env --no-capture-output python t.py",
        &["Python 1/1 t.py"],
    );
    check("nohup nice -n 5 python t.py > log &", &["Python 1/1 t.py"]);
    check(
        "singularity exec --nv -B /a:/b image.sif python t.py",
        &["Python 1/1 t.py"],
    );
    check(
        "docker run --rm --gpus all -v $PWD:/w -w /w image:1 python t.py",
        &["Python 1/1 t.py"],
    );
    check(
        "timeout 3h python t.py; time python u.py",
        &["Python 1/1 t.py", "Python 1/1 u.py"],
    );
}

#[test]
fn torchrun() {
    check(
        "torchrun --nproc_per_node=8 t.py --a 1",
        &["Torchrun 8/1 t.py --a 1"],
    );
    check(
        "torchrun --nproc-per-node 4 --nnodes 2 -m pkg.t a",
        &["Torchrun 8/2 pkg.t a"],
    );
    check("torchrun --standalone t.py", &["Torchrun 1/1 t.py"]);
    check("torchrun --nproc_per_node gpu t.py", &["Torchrun ?/1 t.py"]);
    check(
        "CUDA_VISIBLE_DEVICES=2,3,4 torchrun --nproc_per_node auto t.py",
        &["Torchrun 3/1 t.py"],
    );
    check(
        "torchrun --nnodes=1:4 --nproc_per_node=8 t.py",
        &["Torchrun ?/? t.py"],
    );
    check(
        "torchrun --nnodes=2:2 --nproc_per_node=8 t.py",
        &["Torchrun 16/2 t.py"],
    );
    check("torchrun --nproc_per_node=$N t.py", &["Torchrun ?/1 t.py"]);
    check("torchrun $ARGS t.py --a", &["Torchrun ?/? t.py --a"]);
    check(
        "torchrun $ARGS --nproc_per_node 8 --nnodes 1 t.py",
        &["Torchrun 8/1 t.py"],
    );
    check(
        "python -m torch.distributed.launch --nproc_per_node 4 --use_env t.py",
        &["Torchrun 4/1 t.py"],
    );
    check(
        "python3 -m torch.distributed.run --nnodes=2 --nproc_per_node=8 t.py",
        &["Torchrun 16/2 t.py"],
    );
    check(
        "D=(--nproc_per_node 8 --nnodes ${NNODES:-1})\ntorchrun ${D[@]} t.py",
        &["Torchrun 8/1 t.py"],
    );
    check(
        "G=0,1; torchrun --nproc_per_node=$(echo $G | tr ',' '\\n' | wc -l) t.py",
        &["Torchrun 2/1 t.py"],
    );
}

#[test]
fn accelerate() {
    check(
        "accelerate launch --num_processes 4 --mixed_precision bf16 t.py --a",
        &["Accelerate 4/1 t.py --a"],
    );
    check(
        "accelerate launch --num_processes=16 --num_machines 2 -m pkg.t",
        &["Accelerate 16/2 pkg.t"],
    );
    check("accelerate launch t.py", &["Accelerate ?/? t.py"]);
    check(
        "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --multi_gpu t.py",
        &["Accelerate 2/1 t.py"],
    );
    check(
        "accelerate launch --config_file c.yaml t.py",
        &["Accelerate ?/? t.py"],
    );
    let config = [("c.yaml", "num_machines: 1\nnum_processes: 8 # all\n")];
    check_beside(
        "accelerate launch --config_file c.yaml t.py",
        &config,
        &["Accelerate 8/1 t.py"],
    );
    check_beside(
        "accelerate launch --config_file c.yaml --num_processes 2 t.py",
        &config,
        &["Accelerate 2/1 t.py"],
    );
    check("accelerate config; accelerate env", &[]);
    check(
        "python -m accelerate.commands.launch --num_processes 2 t.py",
        &["Accelerate 2/1 t.py"],
    );
    check(
        "cat > c.yaml <<EOF\nnum_processes: 4\nEOF\naccelerate launch --config_file c.yaml t.py",
        &["Accelerate 4/? t.py"],
    );
}

#[test]
fn deepspeed() {
    check(
        "deepspeed --num_gpus 8 t.py --deepspeed z.json",
        &["Deepspeed 8/1 t.py --deepspeed z.json"],
    );
    check(
        "deepspeed --num_gpus=4 --num_nodes=2 t.py",
        &["Deepspeed 8/2 t.py"],
    );
    check(
        "deepspeed --include localhost:0,1,2 t.py",
        &["Deepspeed 3/1 t.py"],
    );
    check(
        "deepspeed -i localhost:3 --master_port 1 t.py",
        &["Deepspeed 1/1 t.py"],
    );
    check(
        "deepspeed --include=a:0,1@b:0,1 t.py",
        &["Deepspeed 4/2 t.py"],
    );
    check("deepspeed t.py", &["Deepspeed ?/? t.py"]);
    check(
        "CUDA_VISIBLE_DEVICES=0,1 deepspeed t.py",
        &["Deepspeed 2/1 t.py"],
    );
    check("deepspeed --module pkg.t --a", &["Deepspeed ?/? pkg.t --a"]);
    check(
        "deepspeed --hostfile h --num_gpus 8 t.py",
        &["Deepspeed ?/? t.py"],
    );
    check_beside(
        "deepspeed --hostfile h t.py",
        &[("h", "a slots=8\nb slots=8\n")],
        &["Deepspeed 16/2 t.py"],
    );
    check("deepspeed --num_gpus $1 t.py", &["Deepspeed ?/1 t.py"]);
}

#[test]
fn schedulers() {
    check(
        "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nsrun python t.py",
        &["Srun 8/2 t.py"],
    );
    check(
        "#SBATCH --gres=gpu:a100:4\n#SBATCH --ntasks-per-node=1\nsrun python t.py",
        &["Srun 4/1 t.py"],
    );
    check(
        "srun -N 2 -n 16 --gpus-per-node=8 python t.py",
        &["Srun 16/2 t.py"],
    );
    check(
        "srun -p gpu --gres=gpu:8 --ntasks=8 --ntasks-per-node=8 python -u t.py a",
        &["Srun 8/1 t.py a"],
    );
    check(
        "#SBATCH --gpus-per-node=8\n#SBATCH -N 4\nsrun torchrun --nnodes 4 --nproc_per_node 8 t.py",
        &["Torchrun 32/4 t.py"],
    );
    check(
        "#SBATCH --gres=gpu:4\nsrun bash -c 'accelerate launch --config_file c.yaml t.py'",
        &["Accelerate 4/1 t.py"],
    );
    check("#SBATCH --gres=gpu:8\npython t.py", &["Python 1/1 t.py"]);
    check(
        "mpirun -np 8 -H localhost:8 -bind-to none -x PATH python t.py",
        &["Python 8/? t.py"],
    );
    check(
        "sbatch --nodes=2 --gres=gpu:8 --wrap 'srun python t.py'",
        &["Srun 16/2 t.py"],
    );
    check_beside(
        "sbatch --nodes=2 j.sh x",
        &[(
            "j.sh",
            "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:8\nsrun python t.py $1",
        )],
        &["Srun 16/2 t.py x"],
    );
    check(
        "ray job submit --address=\"a\" --runtime-env-json='{}' -- python3 -m pkg.t --a",
        &["Ray 1/1 pkg.t --a"],
    );
    check(
        "python submit.py --gpus 8 --num_nodes 4 -- source a.sh \\&\\& python t.py --b",
        &["Python 32/4 t.py --b"],
    );
}

#[test]
fn own_commands() {
    check(
        "axolotl train c.yaml; axolotl preprocess c.yaml",
        &["Program ?/? axolotl train c.yaml"],
    );
    check(
        "NPROC_PER_NODE=8 swift sft --model m",
        &["Program 8/1 swift sft --model m"],
    );
    check(
        "CUDA_VISIBLE_DEVICES=0 swift sft --model m; swift infer --x",
        &["Program 1/1 swift sft --model m"],
    );
    check(
        "export NPROC_PER_NODE=4 NNODES=2; swift rlhf",
        &["Program 8/2 swift rlhf"],
    );
    check(
        "CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train c.yaml",
        &["Program 2/1 llamafactory-cli train c.yaml"],
    );
    check(
        "tune run --nproc_per_node 4 full_finetune_distributed --config c lr=1",
        &["Program 4/1 tune full_finetune_distributed --config c lr=1"],
    );
    check(
        "tune run lora_finetune_single_device --config c; tune download m",
        &["Program 1/1 tune lora_finetune_single_device --config c"],
    );
    check(
        "composer -n 8 train.py c.yaml a=1",
        &["Program 8/1 train.py c.yaml a=1"],
    );
    check(
        "NPROC_PER_NODE=8 xtuner train c --deepspeed z",
        &["Program 8/1 xtuner train c --deepspeed z"],
    );
    check(
        "litgpt finetune_lora m --devices 2; litgpt chat m",
        &["Program ?/? litgpt finetune_lora m --devices 2"],
    );
    check(
        "yolo detect train data=c.yaml device=0,1; yolo predict",
        &["Program 2/1 yolo detect train data=c.yaml device=0,1"],
    );
    check(
        "bash tools/dist_train.sh c.py 8 --amp",
        &["Torchrun 8/1 tools/train.py c.py --amp"],
    );
    check(
        "PORT=1 ./tools/dist_train.sh c.py 4",
        &["Torchrun 4/1 ./tools/train.py c.py"],
    );
    check(
        "GPUS=16 tools/slurm_train.sh p j c.py w",
        &["Srun 16/? tools/train.py c.py w"],
    );
    check(
        "uv run sft @ c.toml --a 1; uv sync; uv run pytest x",
        &["Program ?/? sft @ c.toml --a 1"],
    );
    check(
        "oumi distributed torchrun --nproc_per_node=8 -m oumi train -c x",
        &["Program 8/1 oumi train -c x"],
    );
}

#[test]
fn scripts_that_only_define() {
    check(
        "export H='torchrun --nproc_per_node 2 -m t'\nexport A='--x 1 --y'",
        &["Torchrun 2/1 t --x 1 --y"],
    );
    check(
        "L='accelerate launch --num_processes 2'; A='t.py --b'; $L $A",
        &["Accelerate 2/1 t.py --b"],
    );
    check("$LAUNCHER t.py --a", &["Program ?/? t.py --a"]);
}
