use super::*;
use crate::models;

/// A row for each: names, and the entry of all of them.
#[track_caller]
fn table(text: &str) {
    let mut wrong = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, id) = line.split_once(" = ").unwrap_or((line, "none"));
        let found = model_named(name).map_or("none", |entry| entry.id);
        if found != id {
            wrong += &format!("{name}: {found}, expected {id}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn variants_have_the_sizes_of_their_model() {
    table(
        "
        llama-3.1-8b = llama-3.1-8b
        Llama 3.1 8B = llama-3.1-8b
        llama_3.1_8b = llama-3.1-8b
        llama 3 70b = llama-3-70b
        Llama-3_1-8B = llama-3.1-8b
        llama-3-1-8b = llama-3.1-8b
        meta llama 3 8b instruct = llama-3-8b
        meta-llama/Meta-Llama-3-8B-Instruct = llama-3-8b
        NousResearch/Meta-Llama-3-8B = llama-3-8b
        NousResearch/Llama-3.2-1B = llama-3.2-1b
        NousResearch/Llama-2-7b-chat-hf = llama-2-7b
        unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit = llama-3.1-8b
        unsloth/Mistral-Small-24B-Instruct-2501-bnb-4bit = mistral-small-24b
        unsloth/Qwen3-14B-unsloth-bnb-4bit = qwen3-14b
        unsloth/gemma-3-4b-it = gemma-3-4b
        unsloth/gpt-oss-20b-BF16 = gpt-oss-20b
        openai/gpt-oss-safeguard-20b = gpt-oss-20b
        mistralai/Mistral-Nemo-Instruct-2407 = mistral-nemo-12b
        mistralai/Mistral-7B-Instruct-v0.3 = mistral-7b-v0.3
        mistralai/Mistral-7B-Instruct-v0.2 = mistral-7b-v0.1
        mistralai/Mixtral-8x7B-Instruct-v0.1 = mixtral-8x7b
        Mixtral 8×7B = mixtral-8x7b
        Qwen/Qwen3-8B-Base = qwen3-8b
        Qwen/Qwen3-4B-Instruct-2507 = qwen3-4b
        Qwen/Qwen3-30B-A3B-Thinking-2507-FP8 = qwen3-30b-a3b
        Qwen/Qwen3-Coder-30B-A3B-Instruct = qwen3-30b-a3b
        Qwen/Qwen2.5-Coder-7B-Instruct = qwen2.5-7b
        Qwen2.5-Coder-1.5B-Instruct = qwen2.5-1.5b
        qwen2.5-coder:7b-instruct = qwen2.5-7b
        Qwen/Qwen2.5-Coder-32B-Instruct-GPTQ-Int4 = qwen2.5-32b
        open-r1/Qwen2.5-Math-7B-RoPE-300k = qwen2.5-7b
        Qwen/Qwen-7B-Chat-Int4 = qwen1.5-7b
        Qwen/Qwen-1_8B = qwen1.5-1.8b
        PrimeIntellect/Qwen3-0.6B-Reverse-Text-SFT = qwen3-0.6b
        OpenRLHF/Llama-3-8b-sft-mixture = llama-3-8b
        OpenRLHF/Llama-3-8b-rm-mixture = llama-3-8b
        princeton-nlp/Llama-3-Base-8B-SFT = llama-3-8b
        princeton-nlp/Llama-3-Instruct-8B-SimPO-v0.2 = llama-3-8b
        alignment-handbook/zephyr-7b-sft-full = mistral-7b-v0.1
        HuggingFaceH4/zephyr-7b-beta = mistral-7b-v0.1
        lmsys/vicuna-7b-v1.5 = llama-2-7b
        deepseek-ai/DeepSeek-R1-Distill-Qwen-7B = qwen2.5-7b
        unsloth/DeepSeek-R1-Distill-Llama-8B-unsloth-bnb-4bit = llama-3.1-8b
        deepseek-ai/DeepSeek-R1-0528-Qwen3-8B = qwen3-8b
        deepseek-ai/DeepSeek-R1-0528 = deepseek-v3
        deepseek-ai/DeepSeek-V3-0324 = deepseek-v3
        deepseek-ai/DeepSeek-V3-Base = deepseek-v3
        huihui-ai/Llama-3.2-3B-Instruct-abliterated = llama-3.2-3b
        EleutherAI/pythia-1.4b-deduped = pythia-1.4b
        bigscience/bloom-7b1 = bloom-7b1
        microsoft/phi-1_5 = phi-1.5
        microsoft/Phi-3-mini-128k-instruct = phi-3-mini
        microsoft/Phi-3.5-mini-instruct = phi-3.5-mini
        microsoft/Phi-4-mini-instruct = phi-4-mini
        internlm/internlm2-1_8b = internlm2-1.8b
        internlm/internlm2-chat-7b = internlm2-7b
        OpenGVLab/InternVL2_5-1B = internvl3-1b
        TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T = tinyllama-1.1b
        TinyLlama/TinyLlama_v1.1 = tinyllama-1.1b
        tiny_LLaMA_1b = tinyllama-1.1b
        allenai/OLMo-2-1124-7B-SFT = olmo-2-7b
        allenai/OLMoE-1B-7B-0125-Instruct = olmoe-1b-7b
        zai-org/GLM-4-9B-0414 = glm-4-9b-0414
        unsloth/GLM-4-9B-0414-bnb-4bit = glm-4-9b-0414
        google/gemma-2-9b-it = gemma-2-9b
        google/medgemma-4b-it = gemma-3-4b
        BAAI/bge-reranker-v2-gemma = gemma-2b
        BAAI/bge-base-en-v1.5 = bert-base-uncased
        bert-base-uncased = bert-base-uncased
        distilbert-base-uncased-finetuned-sst-2-english = distilbert-base
        intfloat/multilingual-e5-large = xlm-roberta-large
        google/t5-v1_1-xxl = flan-t5-xxl
        resnet50 = resnet-50
        timm/resnet50.a1_in1k = resnet-50
        google/vit-base-patch16-224-in21k = vit-b16
        facebook/esm2_t33_650M_UR50D = esm2-650m
        runwayml/stable-diffusion-v1-5 = sd-1.5-unet
        CompVis/stable-diffusion-v1-4 = sd-1.5-unet
        stabilityai/stable-diffusion-xl-base-1.0 = sdxl-unet
        sd_xl_base_1.0.safetensors = sdxl-unet
        black-forest-labs/FLUX.1-dev = flux.1-dev
        black-forest-labs/flux.1-krea-dev = flux.1-dev
        flux1-dev.safetensors = flux.1-dev
        flux1-dev-fp8.safetensors = flux.1-dev
        stabilityai/stable-diffusion-3.5-medium = sd3.5-medium
        stabilityai/stable-diffusion-3-medium-diffusers = sd3-medium
        stabilityai/stable-diffusion-2-1 = sd-2.1-unet
        openai/whisper-large-v2 = whisper-large-v2
        Helsinki-NLP/opus-mt-en-de = opus-mt-en-de
        unsloth/DeepSeek-R1-Distill-Qwen-1.5B-GRPO = deepseek-r1-distill-qwen-1.5b
        codellama/CodeLlama-7b-Instruct-hf = codellama-7b
        codellama/CodeLlama-70b-hf = codellama-70b
        NousResearch/Nous-Hermes-2-Mistral-7B-DPO = openhermes-2.5-mistral-7b
        allenai/Llama-3.1-Tulu-3-8B-SFT = llama-3.1-tulu-3-8b
        NousResearch/Hermes-2-Pro-Llama-3-8B = hermes-2-pro-llama-3-8b
        deepseek-ai/deepseek-coder-6.7b-instruct = deepseek-coder-6.7b
        nvidia/Nemotron-Mini-4B-Instruct = minitron-4b
        openai/whisper-small.en = whisper-small.en
        google-bert/bert-base-chinese = bert-base-chinese
        dmis-lab/biobert-v1.1 = bert-base-cased
        facebook/bart-large-cnn = bart-large-cnn
        google/mt5-small = mt5-small
        canopylabs/orpheus-3b-0.1-pretrained = orpheus-3b
        ",
    );
}

#[test]
fn another_network_is_never_taken_for_it() {
    let others = [
        "",
        "/",
        "-",
        "base",
        "it",
        "chat",
        "instruct",
        "my/model",
        "/model",
        "/path/to/your/model",
        "model",
        "<model size>",
        "./checkpoints/$MODEL_VERSION",
        "Llama-3.2-1B-Vision",
        "microsoft/Phi-3-vision-128k-instruct",
        "facebook/seamless-m4t-v2-large-unknown",
        "databricks/dbrx-instruct",
        "./gpt-oss-120b-w4a16-experts-4bit-2:4",
        "lodestones/Chroma1-Radiance",
        "xiaozaa/flux1-fill-dev-diffusers",
        "distil-whisper/large-32-2",
        "beomi/llama-2-ko-7b",
        "hfl/chinese-llama-2-7b",
        "mistralai/Mistral-Small-Instruct-2409",
        "mistralai/Mistral-7B-Instruct",
        "mistral-7b",
        "CohereForAI/c4ai-command-r-08-2024",
        "allenai/OLMo-1B-0724-hf",
        "ibm-granite/granite-3.3-8b-instruct",
        "stabilityai/stable-diffusion-xl-refiner-1.0",
        "segmind/SSD-1B",
        "microsoft/Phi-4-mini-flash-reasoning",
        "llama",
        "qwen",
        "gemma",
    ];
    let taken: Vec<_> = others
        .into_iter()
        .filter_map(|other| Some((other, model_named(other)?.id)))
        .collect();
    assert_eq!(taken, Vec::new());
}

#[test]
fn places_are_no_part_of_a_name() {
    table(
        r"
        https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct = llama-3.1-8b
        https://huggingface.co/Qwen/Qwen2.5-7B/tree/main = qwen2.5-7b
        meta-llama/Llama-3.1-8B@0e9e39f = llama-3.1-8b
        ./models/Qwen2.5-7B-Instruct/ = qwen2.5-7b
        /mnt/data3/models/GLM-4.5-Air = glm-4.5-air
        ~/model_weights/llama-13b = llama-13b
        C:\models\gemma-2-9b-it = gemma-2-9b
        saves/qwen3-4b/full/sft = qwen3-4b
        out/Llama-3.1-8B/checkpoint-500 = llama-3.1-8b
        checkpoints/tiiuae/falcon-7b = falcon-7b
        ~/.cache/huggingface/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e39f249a16976918f6564b8830bc894c89659 = llama-3.1-8b
        gpt2/my-own-model = none
        llama-7b/mamba-custom = none
        ",
    );
}

#[test]
fn entries_are_found_by_their_own_names() {
    for entry in models() {
        let found = model_named(entry.id);
        assert_eq!(found.map(|entry| entry.id), Some(entry.id));
        if !entry.hf_id.is_empty() {
            let found = model_named(entry.hf_id.split(' ').next().unwrap_or_default());
            assert!(found.is_some(), "{}", entry.hf_id);
        }
    }
}

#[test]
fn quantised_weights_are_said() {
    #[track_caller]
    fn check(name: &str, storage: Option<Storage>, unusable: bool) {
        let found = model_name(name);
        assert_eq!(found.storage, storage, "{name}");
        assert_eq!(found.unusable.is_some(), unusable, "{name}");
    }
    check(
        "unsloth/Meta-Llama-3.1-8B-bnb-4bit",
        Some(Storage::Nf4),
        false,
    );
    check(
        "unsloth/Qwen3-14B-unsloth-bnb-4bit",
        Some(Storage::Nf4),
        false,
    );
    check(
        "hugging-quants/Meta-Llama-3.1-8B-Instruct-GPTQ-INT4",
        Some(Storage::GptqInt4),
        false,
    );
    check(
        "TheBloke/Llama-2-7B-Chat-GPTQ",
        Some(Storage::GptqInt4),
        false,
    );
    check("Qwen/Qwen-7B-Chat-Int4", Some(Storage::GptqInt4), false);
    check(
        "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8",
        Some(Storage::Int8),
        false,
    );
    check(
        "Qwen/Qwen2.5-7B-Instruct-AWQ",
        Some(Storage::AwqInt4),
        false,
    );
    check(
        "neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic",
        Some(Storage::Fp8),
        false,
    );
    check(
        "RedHatAI/Llama-3.1-8B-Instruct-quantized.w4a16",
        Some(Storage::Int4),
        false,
    );
    check("openai/gpt-oss-20b-mxfp4", Some(Storage::Mxfp4), false);
    check("google/gemma-3-4b-it-qat-q4_0-unquantized", None, false);
    check("unsloth/gpt-oss-20b-BF16", None, false);
    check("Qwen/Qwen2.5-7B", None, false);
    check("bartowski/Llama-3.2-3B-Instruct-GGUF", None, true);
    check("/models/llama-2-7b.Q4_K_M.gguf", None, true);
    check("llama3.1:8b-instruct-q4_K_M", None, true);
    check(
        "mlx-community/Qwen2.5-7B-Instruct-4bit",
        Some(Storage::Nf4),
        true,
    );
    check("onnx-community/Qwen2.5-0.5B-Instruct-ONNX", None, true);
    check("turboderp/Llama-3.1-8B-exl2", None, true);
    check("facebook/opt-1.3b", None, false);
}

#[test]
fn suggestions_are_near_or_none() {
    #[track_caller]
    fn check(name: &str, expected: &[&str]) {
        assert_eq!(models_near(name), expected, "{name}");
    }
    check("/model", &[]);
    check("model", &[]);
    check("", &[]);
    check("<model size>", &[]);
    check("/path/to/your/model", &[]);
    check("databricks/dbrx-instruct", &[]);
    check("sdxl", &["sdxl-unet"]);
    check("Alibaba-NLP/gte-Qwen2-1.5B-instruct", &["qwen2-1.5b"]);
    check("Qwen/Qwen3.5-2B", &["qwen3.5-2b"]);
    check("falcon-11b", &[]);
    check(
        "Qwen/Qwen2.5-Math-PRM-7B",
        &["qwen2.5-7b", "qwen2.5-omni-7b", "qwen2.5-vl-7b"],
    );
    check("lama-3.1-8b", &["llama-3.1-8b"]);
}

#[test]
fn what_people_leave_out_is_known_in_sentences_only() {
    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(
            model_spoken(name).map(|entry| entry.id),
            Some(expected),
            "{name}"
        );
    }
    check("llama 8b", "llama-3.1-8b");
    check("Llama-70B", "llama-3.1-70b");
    check("SDXL", "sdxl-unet");
    check("flux dev", "flux.1-dev");
    check("mistral-7b", "mistral-7b-v0.1");
    assert!(model_named("llama-8b").is_none());
}

#[test]
fn no_text_is_too_odd() {
    for text in [
        "\u{0}",
        "日本語-7b",
        "a\u{301}-8b",
        "////",
        "--",
        "@@",
        "8b",
        "v",
        "models--",
        "models----",
        ".gguf",
        "\\\\",
        "é.pt",
    ] {
        let _ = model_name(text);
    }
    let long = "llama-".repeat(10_000);
    let _ = model_name(&long);
    let _ = model_name(&long.replace('-', "/"));
}
