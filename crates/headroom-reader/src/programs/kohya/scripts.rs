//! The scripts of sd-scripts and musubi-tuner, by name: which network each trains, and what of it.

use crate::keys::Keys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// LoRA and its kin.
    Network,
    Full,
    /// Full, and the text encoder as well.
    DreamBooth,
    ControlNet,
    TextualInversion,
}

#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub struct Script {
    pub name: &'static str,
    pub kind: Kind,
    /// Its one network; empty where a checkpoint decides.
    pub network: &'static str,
    /// The family, where `--task` or `--model_version` names the size.
    pub sized: Option<Family>,
    pub unet: bool,
    pub video: bool,
    /// Other programs have scripts of this name.
    pub common: bool,
    /// musubi-tuner, which always caches latents and texts beforehand.
    pub musubi: bool,
}

/// Networks of several sizes under one script.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    name: &'static str,
    /// The parser's default.
    pub usual: &'static str,
    tasks: &'static [(&'static str, &'static str)],
}

/// `wan/configs/__init__.py` of musubi-tuner.
const WAN: Family = Family {
    name: "Wan",
    usual: "t2v-14B",
    tasks: &[
        ("t2v-1.3B", "Wan-AI/Wan2.1-T2V-1.3B"),
        ("t2v-14B", "Wan-AI/Wan2.1-T2V-14B"),
        ("t2i-14B", "Wan-AI/Wan2.1-T2V-14B"),
        ("i2v-14B", "Wan-AI/Wan2.1-I2V-14B-720P"),
        ("t2v-A14B", "Wan-AI/Wan2.2-T2V-A14B"),
        ("i2v-A14B", "Wan-AI/Wan2.2-I2V-A14B"),
        ("ti2v-5B", "Wan-AI/Wan2.2-TI2V-5B"),
    ],
};

const FLUX_2: Family = Family {
    name: "FLUX.2",
    usual: "dev",
    tasks: &[
        ("dev", "black-forest-labs/FLUX.2-dev"),
        ("klein-4b", "black-forest-labs/FLUX.2-klein-4B"),
        ("klein-base-4b", "black-forest-labs/FLUX.2-klein-base-4B"),
        ("klein-9b", "black-forest-labs/FLUX.2-klein-9B"),
        ("klein-base-9b", "black-forest-labs/FLUX.2-klein-base-9B"),
    ],
};

const KANDINSKY: Family = Family {
    name: "Kandinsky 5",
    usual: "k5-pro-t2v-5s-sd",
    tasks: &[],
};

/// The model of a task.
pub fn of_task(family: Family, task: &str) -> String {
    let known = family.tasks.iter().find(|(name, _)| *name == task);
    known.map_or_else(|| format!("{} {task}", family.name), |(_, id)| (*id).into())
}

const SDXL: &str = "stabilityai/stable-diffusion-xl-base-1.0";
pub const FLUX: &str = "black-forest-labs/FLUX.1-dev";
const LUMINA: &str = "Alpha-VLLM/Lumina-Image-2.0";
const HUNYUAN_IMAGE: &str = "tencent/HunyuanImage-2.1";
const ANIMA: &str = "circlestone-labs/Anima";

const fn of(name: &'static str, kind: Kind, network: &'static str) -> Script {
    Script {
        name,
        kind,
        network,
        sized: None,
        unet: false,
        video: false,
        common: false,
        musubi: false,
    }
}

/// Stable Diffusion 1 and 2, whose scripts' names are common.
const fn sd(name: &'static str, kind: Kind) -> Script {
    Script {
        unet: true,
        common: true,
        ..of(name, kind, "")
    }
}

const fn sdxl(name: &'static str, kind: Kind) -> Script {
    Script {
        unet: true,
        ..of(name, kind, SDXL)
    }
}

const fn musubi(name: &'static str, network: &'static str, video: bool) -> Script {
    Script {
        video,
        musubi: true,
        ..of(name, Kind::Network, network)
    }
}

const SCRIPTS: &[Script] = &[
    sd("train_network", Kind::Network),
    sd("train_db", Kind::DreamBooth),
    sd("fine_tune", Kind::Full),
    sd("train_textual_inversion", Kind::TextualInversion),
    sd("train_textual_inversion_XTI", Kind::TextualInversion),
    sd("train_control_net", Kind::ControlNet),
    sdxl("sdxl_train", Kind::Full),
    sdxl("sdxl_train_network", Kind::Network),
    sdxl("sdxl_train_textual_inversion", Kind::TextualInversion),
    sdxl("sdxl_train_control_net", Kind::ControlNet),
    sdxl("sdxl_train_control_net_lllite", Kind::ControlNet),
    of("flux_train", Kind::Full, FLUX),
    of("flux_train_network", Kind::Network, FLUX),
    of("flux_train_control_net", Kind::ControlNet, FLUX),
    of("sd3_train", Kind::Full, ""),
    of("sd3_train_network", Kind::Network, ""),
    of("lumina_train", Kind::Full, LUMINA),
    of("lumina_train_network", Kind::Network, LUMINA),
    of("hunyuan_image_train_network", Kind::Network, HUNYUAN_IMAGE),
    of("anima_train", Kind::Full, ANIMA),
    of("anima_train_network", Kind::Network, ANIMA),
    musubi("hv_train_network", "tencent/HunyuanVideo", true),
    Script {
        kind: Kind::Full,
        ..musubi("hv_train", "tencent/HunyuanVideo", true)
    },
    musubi("hv_1_5_train_network", "tencent/HunyuanVideo-1.5", true),
    Script {
        sized: Some(WAN),
        ..musubi("wan_train_network", "", true)
    },
    musubi("fpack_train_network", "lllyasviel/FramePackI2V_HY", true),
    musubi(
        "flux_kontext_train_network",
        "black-forest-labs/FLUX.1-Kontext-dev",
        false,
    ),
    Script {
        sized: Some(FLUX_2),
        ..musubi("flux_2_train_network", "", false)
    },
    musubi("qwen_image_train_network", "Qwen/Qwen-Image", false),
    Script {
        kind: Kind::Full,
        ..musubi("qwen_image_train", "Qwen/Qwen-Image", false)
    },
    musubi("hidream_o1_train_network", "HiDream-ai/HiDream-O1", false),
    Script {
        kind: Kind::Full,
        ..musubi("hidream_o1_train", "HiDream-ai/HiDream-O1", false)
    },
    musubi("ideogram4_train_network", "ideogram-ai/ideogram-4", false),
    musubi("krea2_train_network", "krea/Krea-2-Raw", false),
    Script {
        sized: Some(FLUX_2),
        ..musubi("flux_2_train_network_self_flow", "", false)
    },
    musubi("zimage_train_network", "Tongyi-MAI/Z-Image", false),
    Script {
        kind: Kind::Full,
        ..musubi("zimage_train", "Tongyi-MAI/Z-Image", false)
    },
    Script {
        sized: Some(KANDINSKY),
        ..musubi("kandinsky5_train_network", "", true)
    },
];

pub fn named(name: &str) -> Option<Script> {
    SCRIPTS.iter().find(|script| script.name == name).copied()
}

/// Scripts of musubi-tuner by a part of the name of the module that each is given.
const BY_MODULE: &[(&str, &str)] = &[
    ("wan", "wan_train_network"),
    ("qwen_image", "qwen_image_train_network"),
    ("flux_2", "flux_2_train_network"),
    ("flux", "flux_kontext_train_network"),
    ("hv_1_5", "hv_1_5_train_network"),
    ("framepack", "fpack_train_network"),
    ("zimage", "zimage_train_network"),
    ("kandinsky", "kandinsky5_train_network"),
    ("hidream_o1", "hidream_o1_train_network"),
    ("ideogram4", "ideogram4_train_network"),
    ("krea2", "krea2_train_network"),
    ("networks.lora", "hv_train_network"),
];

/// The script that a file of settings is for, by what it holds.
pub fn of_settings(keys: &Keys) -> Script {
    let module = keys.text("network_module").or(keys.text("LoRA_type"));
    let module = module.value().map(|name| name.to_ascii_lowercase());
    let has = |part: &str| module.as_deref().is_some_and(|name| name.contains(part));
    let of_module = BY_MODULE.iter().find(|(part, _)| has(part));
    if keys.has("dit")
        && let Some(script) = of_module.and_then(|(_, name)| named(name))
    {
        return script;
    }
    let on = |key: &str| keys.switch(key).value() == Some(&true);
    let network = module.is_some() || keys.has("network_dim");
    let kind = if network { Kind::Network } else { Kind::Full };
    let path = keys.text("pretrained_model_name_or_path");
    let path = path
        .value()
        .map(|path| path.to_ascii_lowercase())
        .unwrap_or_default();
    if has("flux") || on("flux1_checkbox") || keys.has("t5xxl") && keys.has("ae") {
        of("flux_train_network", kind, FLUX)
    } else if has("sd3") || on("sd3_checkbox") {
        of("sd3_train_network", kind, "")
    } else if has("lumina") {
        of("lumina_train_network", kind, LUMINA)
    } else if has("hunyuan_image") {
        of("hunyuan_image_train_network", kind, HUNYUAN_IMAGE)
    } else if has("anima") {
        of("anima_train_network", kind, ANIMA)
    } else if on("sdxl") || on("sdxl_checkbox") || path.contains("xl") || path.contains("pony") {
        sdxl("sdxl_train_network", kind)
    } else {
        sd("train_network", kind)
    }
}
