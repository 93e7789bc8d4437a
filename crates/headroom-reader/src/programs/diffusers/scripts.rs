//! The scripts of diffusers' `examples/`, by name: what each trains, and the defaults of its parser (main, 2026).

/// What a script trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All of a network, in fp32 under autocast.
    Full(&'static str),
    /// The same, in the type of mixed precision.
    FullShort(&'static str),
    Lora,
    /// A network beside the frozen model.
    Beside(&'static str),
    Tokens,
}

#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub name: &'static str,
    pub kind: Kind,
    pub size: (u64, u64),
    pub frames: Option<u64>,
    pub batch: u64,
    pub rank: u64,
    /// The longest text, where the network's memory depends on it.
    pub sequence: Option<u64>,
    pub targets: &'static [&'static str],
    /// The model where none is given.
    pub model: Option<&'static str>,
    pub flax: bool,
}

const ATTENTION: &[&str] = &["to_k", "to_q", "to_v", "to_out.0"];
const JOINT: &[&str] = &[
    "to_k",
    "to_q",
    "to_v",
    "to_out.0",
    "add_k_proj",
    "add_v_proj",
];
const FLUX: &[&str] = &[
    "attn.to_k",
    "attn.to_q",
    "attn.to_v",
    "attn.to_out.0",
    "attn.add_k_proj",
    "attn.add_q_proj",
    "attn.add_v_proj",
    "attn.to_add_out",
    "ff.net.0.proj",
    "ff.net.2",
    "ff_context.net.0.proj",
    "ff_context.net.2",
];
const FLUX_2: &[&str] = &[
    "to_k",
    "to_q",
    "to_v",
    "to_out.0",
    "to_qkv_mlp_proj",
    "single_transformer_blocks.*.attn.to_out",
];
const SD_3: &[&str] = &[
    "attn.add_k_proj",
    "attn.add_q_proj",
    "attn.add_v_proj",
    "attn.to_add_out",
    "attn.to_k",
    "attn.to_out.0",
    "attn.to_q",
    "attn.to_v",
];

const fn of(name: &'static str, kind: Kind, edge: u64, batch: u64) -> Script {
    Script {
        name,
        kind,
        size: (edge, edge),
        frames: None,
        batch,
        rank: 4,
        sequence: None,
        targets: ATTENTION,
        model: None,
        flax: false,
    }
}

const fn unet(name: &'static str, edge: u64, batch: u64) -> Script {
    of(name, Kind::Full("unet"), edge, batch)
}

const fn lora(name: &'static str, edge: u64, batch: u64) -> Script {
    of(name, Kind::Lora, edge, batch)
}

/// LoRA on a transformer that reads texts of this length.
const fn joint(name: &'static str, sequence: u64, targets: &'static [&'static str]) -> Script {
    Script {
        sequence: Some(sequence),
        targets,
        ..of(name, Kind::Lora, 512, 4)
    }
}

const fn flax(script: Script) -> Script {
    Script {
        flax: true,
        ..script
    }
}

const fn ranked(rank: u64, script: Script) -> Script {
    Script { rank, ..script }
}

const CONTROL: Kind = Kind::Beside("the ControlNet");
const DISTILLED: Kind = Kind::Full("student unet");

pub const SCRIPTS: &[Script] = &[
    unet("train_text_to_image", 512, 16),
    unet("train_text_to_image_sdxl", 1024, 16),
    lora("train_text_to_image_lora", 512, 16),
    lora("train_text_to_image_lora_sdxl", 1024, 16),
    flax(unet("train_text_to_image_flax", 512, 16)),
    Script {
        model: Some("kandinsky-community/kandinsky-2-2-decoder"),
        ..unet("train_text_to_image_decoder", 512, 1)
    },
    of("train_text_to_image_prior", Kind::Full("prior"), 512, 1),
    Script {
        model: Some("kandinsky-community/kandinsky-2-2-decoder"),
        ..lora("train_text_to_image_lora_decoder", 512, 1)
    },
    lora("train_text_to_image_lora_prior", 512, 1),
    unet("train_dreambooth", 512, 4),
    Script {
        targets: JOINT,
        ..lora("train_dreambooth_lora", 512, 4)
    },
    lora("train_dreambooth_lora_sdxl", 1024, 4),
    lora("train_dreambooth_lora_sdxl_advanced", 1024, 4),
    lora("train_dreambooth_lora_sd15_advanced", 512, 4),
    flax(unet("train_dreambooth_flax", 512, 4)),
    Script {
        sequence: Some(77),
        ..of("train_dreambooth_flux", Kind::Full("transformer"), 512, 4)
    },
    Script {
        sequence: Some(77),
        ..of("train_dreambooth_sd3", Kind::Full("transformer"), 512, 4)
    },
    joint("train_dreambooth_lora_flux", 512, FLUX),
    joint("train_dreambooth_lora_flux_advanced", 512, FLUX),
    joint("train_dreambooth_lora_flux_kontext", 512, FLUX),
    joint("train_dreambooth_lora_flux_miniature", 77, ATTENTION),
    joint("train_dreambooth_lora_flux2", 512, FLUX_2),
    joint("train_dreambooth_lora_flux2_img2img", 512, FLUX_2),
    joint("train_dreambooth_lora_flux2_klein", 512, FLUX_2),
    joint("train_dreambooth_lora_flux2_klein_img2img", 512, FLUX_2),
    joint("train_dreambooth_lora_hidream", 128, ATTENTION),
    joint("train_dreambooth_lora_ideogram4", 2048, ATTENTION),
    ranked(32, joint("train_dreambooth_lora_krea2", 512, ATTENTION)),
    joint("train_dreambooth_lora_lumina2", 256, ATTENTION),
    joint("train_dreambooth_lora_qwen_image", 512, ATTENTION),
    joint("train_dreambooth_lora_sana", 300, ATTENTION),
    joint("train_dreambooth_lora_sd3", 77, SD_3),
    joint("train_dreambooth_lora_sd3_miniature", 77, ATTENTION),
    joint("train_dreambooth_lora_z_image", 512, ATTENTION),
    of("train_controlnet", CONTROL, 512, 4),
    of("train_controlnet_sdxl", CONTROL, 512, 4),
    of("train_controlnet_flux", CONTROL, 512, 4),
    of("train_controlnet_sd3", CONTROL, 512, 4),
    of("train_controlnet_webdataset", CONTROL, 512, 4),
    flax(of("train_controlnet_flax", CONTROL, 512, 1)),
    of("train_pixart_controlnet_hf", CONTROL, 512, 16),
    of(
        "train_t2i_adapter_sdxl",
        Kind::Beside("the T2I-Adapter"),
        1024,
        4,
    ),
    of(
        "train_control_flux",
        Kind::FullShort("transformer"),
        1024,
        4,
    ),
    Script {
        sequence: Some(512),
        ..of("train_control_lora_flux", Kind::Lora, 1024, 4)
    },
    of(
        "train_control_cogview4",
        Kind::FullShort("transformer"),
        1024,
        4,
    ),
    unet("train_instruct_pix2pix", 256, 16),
    unet("train_instruct_pix2pix_sdxl", 256, 16),
    lora("train_instruct_pix2pix_lora", 256, 16),
    of(
        "train_custom_diffusion",
        Kind::Beside("the keys and values of cross-attention"),
        512,
        4,
    ),
    of("textual_inversion", Kind::Tokens, 512, 16),
    of("textual_inversion_sdxl", Kind::Tokens, 512, 16),
    flax(of("textual_inversion_flax", Kind::Tokens, 512, 16)),
    Script {
        model: Some("UNet2DModel 64x64 (128,128,256,256,512,512), built in the script"),
        ..of("train_unconditional", Kind::Full(""), 64, 16)
    },
    Script {
        model: Some("UNet2DModel, built in the script"),
        ..of("train_cm_ct_unconditional", Kind::Full(""), 64, 16)
    },
    of("train_autoencoderkl", Kind::Full("autoencoder"), 512, 4),
    of("train_vqgan", Kind::Full("autoencoder"), 512, 16),
    of("train_amused", Kind::Full("transformer"), 512, 16),
    ranked(64, lora("train_lcm_distill_lora_sd_wds", 512, 16)),
    ranked(64, lora("train_lcm_distill_lora_sdxl_wds", 1024, 16)),
    ranked(64, lora("train_lcm_distill_lora_sdxl", 1024, 16)),
    of("train_lcm_distill_sd_wds", DISTILLED, 512, 16),
    of("train_lcm_distill_sdxl_wds", DISTILLED, 1024, 16),
    lora("train_diffusion_dpo", 512, 4),
    lora("train_diffusion_dpo_sdxl", 1024, 4),
    lora("train_diffusion_orpo_sdxl_lora", 1024, 4),
    lora("train_diffusion_orpo_sdxl_lora_wds", 1024, 4),
    unet("train_sdxl_lpl", 1024, 16),
    unet("train_dreambooth_inpaint", 512, 4),
    lora("train_dreambooth_inpaint_lora", 512, 4),
    unet("train_multi_subject_dreambooth", 512, 4),
    unet("train_multi_subject_dreambooth_inpaint", 512, 4),
    unet("train_dreambooth_colossalai", 512, 4),
    lora("train_control_lora_cogview4", 1024, 4),
    unet("train_multi_subject_dreambooth_inpainting", 512, 4),
    ranked(16, lora("train_realfill", 512, 4)),
    of(
        "train_gligen_text",
        Kind::Beside("the grounding layers"),
        512,
        4,
    ),
    Script {
        sequence: Some(300),
        ..of(
            "train_sana_sprint_diffusers",
            Kind::FullShort("student transformer plus the discriminator heads"),
            512,
            4,
        )
    },
    Script {
        size: (480, 720),
        frames: Some(49),
        ..ranked(128, lora("train_cogvideox_lora", 480, 4))
    },
    Script {
        size: (480, 720),
        frames: Some(49),
        ..ranked(128, lora("train_cogvideox_image_to_video_lora", 480, 4))
    },
    Script {
        size: (704, 1280),
        frames: Some(93),
        ..ranked(32, lora("train_cosmos_predict25_lora", 704, 1))
    },
];

/// A script by its path.
pub fn named(path: &str) -> Option<&'static Script> {
    let file = path.rsplit('/').next()?;
    let name = file.strip_suffix(".py").unwrap_or(file);
    SCRIPTS.iter().find(|script| script.name == name)
}
