use super::*;
use headroom_scenario::settings;

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)], not_taken: &[&str]) {
    let imported = script(text, &Scenario::default()).unwrap();
    assert_eq!((&imported.problems, &imported.question), (&vec![], &None));
    for (key, value) in expected {
        let setting = settings::named(key).unwrap();
        assert_eq!(setting.get(&imported.scenario), *value, "{key}");
    }
    assert_eq!(imported.not_taken, not_taken);
}

#[test]
fn unsloth_trains_for_tasks_with_vllm_beside_it() {
    let script = |trainer: &str, arguments: &str| {
        let beside = match trainer {
            "GRPO" => "fast_inference = True, max_lora_rank = 32, gpu_memory_utilization = 0.7",
            _ => "",
        };
        format!(
            "from unsloth import FastLanguageModel\nlength = 2048\nprompt = 202\n\
             model, tokenizer = FastLanguageModel.from_pretrained(model_name = \"unsloth/Qwen3-4B-Base\",\n    \
             max_seq_length = length, load_in_4bit = False, {beside})\n\
             model = FastLanguageModel.get_peft_model(model, r = 32, target_modules = [\"q_proj\"],\n    \
             use_gradient_checkpointing = \"unsloth\")\n\
             args = {trainer}Config(per_device_train_batch_size = 1, optim = \"adamw_8bit\", {arguments})\n\
             trainer = {trainer}Trainer(model = model, args = args, train_dataset = data)\ntrainer.train()"
        )
    };
    let grpo = "gradient_accumulation_steps = 2, num_generations = 4, max_prompt_length = prompt,\n    \
                max_completion_length = length - prompt * 1";
    check(
        &script("GRPO", grpo),
        &[
            ("model", "qwen3-4b"),
            ("trainer", "unsloth"),
            ("task", "grpo"),
            ("sampler", "vllm"),
            ("vllm_share", "0.7"),
            ("generations", "4"),
            ("prompt", "202"),
            ("completion", "1846"),
            // A group is kept together.
            ("mb", "4"),
            ("accum", "2"),
            ("quant", "none"),
            ("lora_rank", "32"),
        ],
        &[],
    );
    check(
        &script("DPO", "gradient_accumulation_steps = 2"),
        &[("task", "dpo"), ("mb", "1")],
        &[],
    );
    check(
        &script("Nash", "beta = 0.1"),
        &[("task", "pretraining")],
        &["NashTrainer"],
    );
}

#[test]
fn scripts_say_what_they_train() {
    check(
        "# A comment with \"quotes\nmax_seq_length = 1024 * 2 # any\nfrom unsloth import FastLanguageModel\n\
         names = [\"unsloth/gemma-2-9b\", # more\n]\n\
         model, tokenizer = FastLanguageModel.from_pretrained(\n    model_name = \"unsloth/Llama-3.1-8B\",\n    \
         max_seq_length = max_seq_length, load_in_4bit = True, token = os.environ[\"X\"],\n)\n\
         model = FastLanguageModel.get_peft_model(model, r = 32, target_modules = [\"q_proj\",\n  \"v_proj\",],\n    \
         lora_dropout = 0, use_gradient_checkpointing = \"unsloth\")\nprompt = \"\"\"one ' two \" three\n{}\"\"\"\n\
         trainer = SFTTrainer(model = model, train_dataset = dataset.map(f, batched = True,), packing = False,\n    \
         args = SFTConfig(per_device_train_batch_size = 4, gradient_accumulation_steps = 2,\n    optim = \"adamw_torch\",\n    \
         learning_rate = 2e-4, fp16 = not is_bfloat16_supported()),\n)\ntrainer.train()",
        &[
            ("model", "llama-3.1-8b"),
            ("trainer", "unsloth"),
            ("seq", "2048"),
            ("mb", "4"),
            ("accum", "2"),
            ("optim", "adamw"),
            ("ckpt", "layers"),
            ("lora_rank", "32"),
            ("lora_targets", "q_proj,v_proj"),
            ("quant", "nf4-double"),
        ],
        &[],
    );
    check(
        "model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.2-1B', torch_dtype=torch.bfloat16,\n  \
         attn_implementation=\"eager\", quantization_config=BitsAndBytesConfig(load_in_4bit=True))\n\
         peft_config = LoraConfig(r=(8), target_modules=['q_proj'], task_type=TaskType.CAUSAL_LM)\n\
         args = TrainingArguments(output_dir=f'out/{name}', output=1, per_device_train_batch_size=2, bf16=True,\n  \
         gradient_checkpointing=True, max_grad_norm=1.0)\nTrainer(model, args).train()",
        &[
            ("model", "llama-3.2-1b"),
            ("trainer", "trl"),
            ("mb", "2"),
            ("attn", "eager"),
            ("ckpt", "layers"),
            ("lora_rank", "8"),
            ("lora_targets", "q_proj"),
            ("quant", "nf4"),
            ("precision", "amp-bf16-on-bf16"),
        ],
        &["output"],
    );
}

#[test]
fn other_scripts_are_left_to_others() {
    for text in [
        "",
        "python train.py --model_name_or_path x",
        "print('AutoModel.from_pretrained(')",
        "model = AutoModel.from_pretrained('x')",
    ] {
        assert!(script(text, &Scenario::default()).is_none(), "{text}");
    }
}

#[test]
fn no_text_makes_it_panic_or_last() {
    let script_of = |text: &str| script(&format!("X.from_pretrained({text}"), &Scenario::default());
    for piece in [
        "(", "[", "{", "a(", "\"", "'''", "a=", "1e", "*", "f'{", "\\", "\n", ",", ")",
    ] {
        script_of(&piece.repeat(20_000));
    }
    let doubled: Vec<String> = (1..60)
        .map(|at| format!("a{at}=[a{0},a{0}]\n", at - 1))
        .collect();
    let doubled = doubled.concat();
    script_of(&format!("\na0=1\n{doubled}"));
    for text in [
        "r=9999999999999999999999999999999999999999",
        "a=1*1*",
        "a=170141183460469231731687303715884105727*2",
    ] {
        script_of(text);
    }
}
