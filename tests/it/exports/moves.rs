//! What a target says it can express is in its files, move by move.

use super::*;

/// Changes to a run that give each move something to do.
const VARIATIONS: &[&str] = &[
    "",
    "precision=fp32",
    "precision=fp32 gpu=t4",
    "precision=amp-bf16",
    "precision=bf16",
    "keep_outputs=on",
    "use_cache=on",
    "zero_none=off",
    "ema=on",
    "runtime.eval_batch=64",
    "attn=eager",
    "gpus=2 par=ddp",
    "gpus=2 par=dp",
    "mask=on",
    "mask=on dist=padded-to-max mean=300 p95=900",
    "kernels=liger",
    "loss=liger-linear",
    "loss=library",
    "loss=library precision=bf16",
    "optim=adamw",
    "optim=adamw precision=bf16",
    "lora=on precision=fp32",
    "lora=on precision=bf16 lora_fp32=off",
    "lora=on lora_rank=16 precision=amp-bf16-on-bf16",
    "lora=on lora_dropout=0.1 precision=amp-bf16-on-bf16",
    "lora=on lora_targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj precision=amp-bf16-on-bf16",
    "model=llava-1.5-7b seq=1024",
];

/// A run that this target can write, or nearly, with one of the variations.
fn varied(target: &str, variation: &str) -> Scenario {
    let mut scenario = Scenario::default();
    if let Some((_, preset)) = SYSTEMS.iter().find(|(id, _)| *id == target) {
        scenario = presets::find(preset).unwrap().scenario();
    } else {
        set(
            &mut scenario,
            "model=llama-3.1-8b precision=bf16 gpu=h100-sxm5 seq=1024",
        );
        let own = match target {
            "swift" => "mask=on",
            "deepspeed" => "precision=amp-bf16",
            "torchtitan" => "precision=amp-bf16 clip=on loss=chunked-checkpoint",
            "verl" => "task=grpo sampler=vllm generations=2 mb=4 clip=on precision=amp-bf16",
            "megatron" => "precision=amp-bf16 optim=adamw-fused",
            "unsloth" => {
                "lora=on precision=amp-bf16-on-bf16 optim=adamw-8bit kernels=fused-norms loss=liger clip=on"
            }
            _ => "",
        };
        set(&mut scenario, own);
    }
    set(&mut scenario, variation);
    scenario
}

#[test]
fn a_program_runs_the_moves_that_its_files_can_express() {
    /// Programs whose own file is read back.
    const READ: &[&str] = &["trl", "axolotl", "llama-factory", "hf", "torchtune"];
    /// Settings that a file of theirs does not hold: the launch script has the first, rows without padding mean the second.
    const UNREAD: &[&str] = &["runtime.expandable_segments", "data.packing"];
    #[track_caller]
    fn check(ids: &[&str], moves: &str) {
        for id in ids {
            let target = targets().iter().find(|known| known.id == *id).unwrap();
            let mut found: Vec<&str> = Vec::new();
            for (step, variation) in MOVES
                .iter()
                .flat_map(|step| VARIATIONS.iter().map(move |variation| (step, variation)))
            {
                let before = varied(target.id, variation);
                let Some(after) = (step.apply)(&before) else {
                    continue;
                };
                if !target.change(&before, &after).is_expressed() {
                    continue;
                }
                if !found.contains(&step.id) {
                    found.push(step.id);
                }
                // Nothing that the move changed is lost on the way through the file.
                let files = (target.write)(&after, &estimate()).unwrap();
                if READ.contains(&target.id) {
                    let read = read_back(&files).unwrap();
                    for setting in settings::all() {
                        let value = setting.get(&after);
                        let is_said = !UNREAD.contains(&setting.path);
                        if is_said && setting.get(&before) != value {
                            let id = target.id;
                            assert_eq!(setting.get(&read), value, "{id} {} {variation}", step.id);
                        }
                    }
                }
            }
            assert_eq!(found.join(" "), moves, "{}", target.id);
        }
    }
    if !slow() {
        return;
    }
    let always = "drop-outputs no-cache zero-to-none expandable-segments fused-adamw";
    let wider = "amp-bf16 amp-fp16 bf16-base no-adapter-dropout";
    let trained = format!("paged-adamw {wider}");
    check(
        &[
            "plain",
            "slurm",
            "kubernetes",
            "trainjob",
            "skypilot",
            "ray",
        ],
        &format!(
            "{always} bucket-view eval-batch sdpa liger-kernels liger-loss chunked-loss optimizer-in-backward keep-matmuls \
             keep-half checkpoint-half keep-attention checkpointing chunked-head ema-on-host paged-adamw \
             offload-activations offload-optimizer {wider} bf16-adapters adamw-8bit paged-adamw-8bit half-rank freeze-embeddings packing no-dropout bf16 fewer-adapters adafactor lora qlora \
             half-sequence"
        ),
    );
    check(
        &["hf", "accelerate"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing {trained} bf16-adapters adamw-8bit paged-adamw-8bit \
             half-rank packing bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["deepspeed"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing paged-adamw amp-bf16 amp-fp16 bf16-adapters adamw-8bit \
             paged-adamw-8bit half-rank packing adafactor half-sequence"
        ),
    );
    check(
        &["trl"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing chunked-head {trained} adamw-8bit paged-adamw-8bit \
             half-rank packing bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["axolotl"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing paged-adamw bf16-base no-adapter-dropout adamw-8bit \
             paged-adamw-8bit half-rank bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["llama-factory"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing {trained} adamw-8bit paged-adamw-8bit half-rank packing \
             bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["swift"],
        &format!(
            "{always} sdpa liger-kernels liger-loss checkpointing {trained} adamw-8bit paged-adamw-8bit half-rank bf16 \
             fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["lightning"],
        &format!(
            "{always} bucket-view sdpa liger-kernels liger-loss chunked-loss keep-matmuls keep-half checkpoint-half \
             keep-attention checkpointing chunked-head {trained} bf16-adapters adamw-8bit paged-adamw-8bit half-rank \
             freeze-embeddings packing no-dropout bf16 fewer-adapters adafactor lora qlora half-sequence"
        ),
    );
    check(
        &["torchtune"],
        &format!(
            "{always} sdpa chunked-loss optimizer-in-backward checkpointing paged-adamw adamw-8bit paged-adamw-8bit \
             half-rank packing bf16 half-sequence"
        ),
    );
    check(
        &["torchtitan"],
        &format!(
            "{always} sdpa liger-loss keep-half checkpointing chunked-head amp-bf16 packing bf16 half-sequence"
        ),
    );
    check(
        &["megatron"],
        &format!("{always} sdpa checkpointing amp-bf16 amp-fp16 packing half-sequence"),
    );
    check(
        &["unsloth"],
        "drop-outputs no-cache zero-to-none expandable-segments sdpa liger-loss checkpointing bf16-base no-adapter-dropout adamw-8bit \
         half-rank packing fewer-adapters qlora half-sequence",
    );
    check(
        &["verl"],
        "drop-outputs no-cache zero-to-none expandable-segments fused-adamw checkpointing paged-adamw vllm-sleep amp-bf16 bf16-base \
         no-adapter-dropout adamw-8bit paged-adamw-8bit half-rank fewer-adapters lora half-sequence",
    );
    check(
        &["dreams"],
        "drop-outputs no-cache zero-to-none expandable-segments reset-metrics sdpa freeze-encoder fewer-peaks",
    );
    check(
        &["gsa"],
        "no-cache zero-to-none sdpa amp-bf16 amp-fp16 fewer-keys",
    );
    check(
        &["rna-3e-ffi"],
        "drop-outputs no-cache zero-to-none sdpa checkpointing amp-fp16 no-dropout fewer-edges half-irreps",
    );
    check(
        &["prs-med"],
        "no-cache zero-to-none sdpa checkpointing checkpoint-encoder amp-fp16 no-adapter-dropout half-rank fewer-adapters four-bit-base",
    );
    check(
        &["peptrm"],
        "drop-outputs no-cache zero-to-none expandable-segments sdpa checkpointing amp-bf16 amp-fp16 no-dropout \
         fewer-peaks fewer-bins",
    );
}
