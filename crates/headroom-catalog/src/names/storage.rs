//! What a checkpoint's name says of how its weights are stored.

/// What weights are quantised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Nf4,
    Fp4,
    Int8,
    Int4,
    GptqInt4,
    AwqInt4,
    Fp8,
    Mxfp4,
}

/// What the words say, and the words without those.
pub(super) struct Stored {
    pub storage: Option<Storage>,
    pub unusable: Option<&'static str>,
    pub words: Vec<String>,
}

/// Formats of other programs, which PyTorch does not train.
const UNUSABLE: &[(&[&str], &str)] = &[
    (
        &["gguf", "ggml", "llamafile"],
        "GGUF weights run in llama.cpp and Ollama; a trainer needs the original checkpoint",
    ),
    (
        &["mlx"],
        "MLX weights run on Apple's MLX; PyTorch needs the original checkpoint",
    ),
    (
        &["onnx"],
        "ONNX graphs are for inference; a trainer needs the original checkpoint",
    ),
    (
        &["exl2", "exl3"],
        "EXL weights run in ExLlama; a trainer needs the original checkpoint",
    ),
    (
        &["openvino"],
        "OpenVINO graphs are for inference; a trainer needs the original checkpoint",
    ),
    (
        &["tensorrt", "trt"],
        "TensorRT engines are for inference; a trainer needs the original checkpoint",
    ),
    (
        &["nvfp4"],
        "NVFP4 weights are for inference; a trainer needs the original checkpoint",
    ),
];

pub(super) fn of(words: &[String], owner: &str) -> Stored {
    let has = |known: &str| words.iter().any(|word| word == known);
    let any = |known: &[&str]| known.iter().any(|known| has(known));
    let gguf = words.iter().any(|word| is_llama_cpp(word)) && !has("unquantized");
    let mlx = owner == "mlx-community";
    let unusable = UNUSABLE
        .iter()
        .find(|(known, _)| {
            any(known) || gguf && known.contains(&"gguf") || mlx && known.contains(&"mlx")
        })
        .map(|(_, why)| *why);
    let four = any(&["4bit", "int4", "w4a16", "4bits"]);
    let eight = any(&["8bit", "int8", "w8a8", "w8a16", "8bits"]);
    let storage = if has("unquantized") || has("dequantized") {
        None
    } else if any(&["gptq", "autogptq"]) {
        Some(if eight {
            Storage::Int8
        } else {
            Storage::GptqInt4
        })
    } else if has("awq") {
        Some(Storage::AwqInt4)
    } else if has("mxfp4") {
        Some(Storage::Mxfp4)
    } else if has("fp8") {
        Some(Storage::Fp8)
    } else if has("nf4") || any(&["4bit", "4bits"]) {
        Some(Storage::Nf4)
    } else if has("fp4") {
        Some(Storage::Fp4)
    } else if four {
        // The first Qwen's `-Int4` are GPTQ.
        let qwen = words.first().is_some_and(|word| word == "qwen");
        Some(if qwen {
            Storage::GptqInt4
        } else {
            Storage::Int4
        })
    } else if eight {
        Some(Storage::Int8)
    } else {
        None
    };
    let said = storage.is_some() || unusable.is_some();
    let own = |word: &&String| {
        let word = word.as_str();
        let stored = WORDS.contains(&word) || is_llama_cpp(word);
        let detail = DETAILS.contains(&word) || is_group(word) || gguf && LLAMA_CPP.contains(&word);
        stored || said && detail
    };
    let mut left: Vec<String> = words.iter().filter(|word| !own(word)).cloned().collect();
    if left.is_empty() {
        left = words.to_vec();
    }
    Stored {
        storage,
        unusable,
        words: left,
    }
}

const WORDS: &[&str] = &[
    "gguf",
    "ggml",
    "llamafile",
    "mlx",
    "onnx",
    "exl2",
    "exl3",
    "openvino",
    "tensorrt",
    "trt",
    "nvfp4",
    "4bit",
    "4bits",
    "int4",
    "w4a16",
    "8bit",
    "8bits",
    "int8",
    "w8a8",
    "w8a16",
    "gptq",
    "autogptq",
    "awq",
    "mxfp4",
    "fp8",
    "nf4",
    "fp4",
    "bnb",
];

/// Words beside those.
const DETAILS: &[&str] = &[
    "quantized",
    "quant",
    "quants",
    "marlin",
    "autoround",
    "dynamic",
    "static",
    "kv",
    "block",
    "torchao",
    "e4m3fn",
    "imatrix",
    "i1",
];

/// What follows llama.cpp's types.
const LLAMA_CPP: &[&str] = &["k", "m", "s", "l", "xs", "xxs", "nl", "0", "1", "ud"];

/// llama.cpp's types: `q4`, `iq2`.
fn is_llama_cpp(word: &str) -> bool {
    let word = word.strip_prefix('i').unwrap_or(word);
    matches!(word.as_bytes(), [b'q', b'2'..=b'8'])
}

/// `128g`, `g128`, `gs128`.
fn is_group(word: &str) -> bool {
    matches!(
        word,
        "32g" | "64g" | "128g" | "g64" | "g128" | "gs128" | "gs64"
    )
}
