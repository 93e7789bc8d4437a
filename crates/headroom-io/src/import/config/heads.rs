//! What a file's class is trained for: the head that `architectures` names (transformers' `AutoModelFor…`).

use headroom_base::document::Document;
use headroom_core::network::{self as nets, Sizes};

use super::TOOL;
use super::values::{labels, text};
use crate::import::Imported;

/// The tasks of classes that have a head of their own, by the ending of their name.
const TASKS: &[(&str, &str)] = &[
    ("ForSequenceClassification", "classification"),
    ("ForTokenClassification", "token-classification"),
    ("ForQuestionAnswering", "question-answering"),
];

/// Sets the task that the class is for; says where the network has another head than the class.
pub(super) fn read(document: &Document, arch: &str, imported: &mut Imported) {
    let Some(class) = class(document) else {
        return;
    };
    let key = "architectures";
    let (decodes, encodes) = kind(arch);
    let task = TASKS.iter().find(|(ending, _)| class.ends_with(ending));
    let hears = matches!(arch, "wav2vec2" | "hubert" | "unispeech_sat" | "wavlm");
    if let Some((_, task)) = task {
        let classes = labels(document).unwrap_or(2);
        // BART's class for sequences has a head of its own behind both stacks.
        if arch == "bart" && *task == "classification" {
            imported.size("sequence_classes", classes, TOOL, key);
            return;
        }
        if hears && *task == "classification" {
            imported.size("audio_classes", classes, TOOL, key);
            return;
        }
        // `problem_type` of a single label is `regression`.
        let task = match *task {
            "classification" if classes == 1 => "regression",
            task => task,
        };
        imported.set("task.objective", task, TOOL, key);
        if task.ends_with("classification") {
            imported.set("task.classes", &classes.to_string(), TOOL, "id2label");
        }
    } else if is_bare(class) && arch == "dinov2_hf" {
        imported.size("headless", 1, TOOL, key);
    } else if is_bare(class) && (decodes || encodes) {
        // A text model without a head is trained as an embedder.
        imported.set("task.objective", "contrastive", TOOL, key);
    } else if let Some(own) = own_ending(arch, encodes).filter(|own| !class.ends_with(own)) {
        imported.notes.push(format!(
            "architectures names {class}; the estimate is of the class that ends in {own}, whose head has other parameters"
        ));
    }
}

/// The first class of `architectures`.
fn class(document: &Document) -> Option<&str> {
    match document.get("architectures")? {
        Document::List(all) => match all.first()? {
            Document::Text(class) => Some(class),
            _ => None,
        },
        _ => text(document, "architectures"),
    }
}

/// `LlamaModel`, `BertModel`: no head.
fn is_bare(class: &str) -> bool {
    class.ends_with("Model") && !class.contains("For") && !class.ends_with("HeadModel")
}

/// Whether tasks can put their heads on the network: on a decoder, on an encoder of text.
fn kind(arch: &str) -> (bool, bool) {
    let entry = headroom_catalog::models()
        .iter()
        .find(|entry| entry.arch == arch && entry.graph.is_empty());
    let net = entry.and_then(|entry| nets::build(arch, &Sizes::from_entry(entry)).ok());
    net.map_or((false, false), |net| {
        let decoder = net.language_model();
        let decodes = decoder.is_some_and(|model| !model.reads_pictures());
        (decodes, net.text_encoder().is_some())
    })
}

/// How the class ends whose head the network has, where others of the type are as usual.
fn own_ending(arch: &str, encodes: bool) -> Option<&'static str> {
    match arch {
        "electra" | "vit_mae" => Some("ForPreTraining"),
        "vit" | "deit" | "dinov2_hf" | "beit_hf" | "convnextv2" | "mobilenet_v2_hf"
        | "mobilevit" | "regnet" | "swinv2" => Some("ForImageClassification"),
        "xlnet" => Some("LMHeadModel"),
        "depth_anything" | "dpt" => Some("ForDepthEstimation"),
        "d_fine" | "deformable_detr" | "detr" | "grounding_dino" | "owlv2" | "owlvit"
        | "rf_detr" | "rt_detr" | "rt_detr_v2" | "yolos" => Some("ForObjectDetection"),
        "videomae" | "vjepa2" => Some("ForVideoClassification"),
        "wav2vec2_bert" => Some("ForCTC"),
        "layoutlmv3" => Some("ForTokenClassification"),
        "mask2former" => Some("ForUniversalSegmentation"),
        "speecht5" => Some("ForTextToSpeech"),
        "segformer" => Some("ForSemanticSegmentation"),
        "dinov3" | "siglip2" => Some("Model"),
        "albert" | "esm" | "mpnet" => Some("ForMaskedLM"),
        "bart" | "blip" | "blip_2" | "led" | "mbart" | "t5" | "whisper" => {
            Some("ForConditionalGeneration")
        }
        _ if encodes => Some("ForMaskedLM"),
        _ => None,
    }
}
