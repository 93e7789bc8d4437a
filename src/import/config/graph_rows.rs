//! The configurations that single models of the catalogue are of, one row each; most of these answer by recorded graphs.

/// A `model_type`, a model of the catalogue, and the values that it is of. What transformers' class has
/// where a file says nothing bears a `?`.
pub(super) struct Row {
    pub model_type: &'static str,
    pub id: &'static str,
    pub values: &'static str,
}

const fn row(model_type: &'static str, id: &'static str, values: &'static str) -> Row {
    Row {
        model_type,
        id,
        values,
    }
}

/// Values as the configuration classes of transformers 5.23 write them for the models that `scripts/graphs.py` records.
pub(super) const ROWS: &[Row] = &[
    row(
        "beit",
        "beit-base-p16-224-hf",
        "vocab_size?=8192 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 image_size?=224 patch_size?=16 use_absolute_position_embeddings?=false use_relative_position_bias=true use_shared_relative_position_bias?=false use_mean_pooling?=true add_fpn?=false",
    ),
    row(
        "convnext",
        "convnext-tiny-hf",
        "patch_size?=4 num_stages?=4 hidden_sizes?=96,192,384,768 depths?=3,3,9,3 image_size?=224",
    ),
    row(
        "detr",
        "detr-resnet-50",
        "d_model?=256 encoder_layers?=6 decoder_layers?=6 encoder_ffn_dim?=2048 decoder_ffn_dim?=2048 num_queries?=100 backbone?=resnet50 dilation?=false auxiliary_loss?=false",
    ),
    row(
        "hubert",
        "hubert-base-ls960",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false conv_pos_batch_norm?=false",
    ),
    row(
        "layoutlm",
        "layoutlm-base-uncased",
        "vocab_size?=30522 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 max_position_embeddings?=512 type_vocab_size?=2",
    ),
    row(
        "layoutlmv3",
        "layoutlmv3-base",
        "vocab_size?=50265 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 max_position_embeddings=514 type_vocab_size=1 shape_size?=128 has_relative_attention_bias?=true has_spatial_attention_bias?=true text_embed?=true visual_embed?=true input_size?=224 patch_size?=16",
    ),
    row(
        "longformer",
        "longformer-base-4096",
        "hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 vocab_size=50265 attention_window?=512,512,512,512,512,512,512,512,512,512,512,512",
    ),
    row(
        "mamba2",
        "mamba2-130m",
        "hidden_size=768 num_hidden_layers=24 num_heads=24 state_size?=128 vocab_size=50288 n_groups=1 chunk_size?=256",
    ),
    row(
        "mamba2",
        "mamba2-370m",
        "hidden_size=1024 num_hidden_layers=48 num_heads=32 state_size?=128 vocab_size=50288 n_groups=1 chunk_size?=256",
    ),
    row(
        "mllama",
        "llama-3.2-11b-vision",
        "vision_config.hidden_size?=1280 vision_config.num_hidden_layers?=32 vision_config.num_global_layers?=8 vision_config.attention_heads?=16 vision_config.intermediate_size?=5120 vision_config.image_size=560 vision_config.patch_size?=14 vision_config.max_num_tiles?=4 vision_config.intermediate_layers_indices?=3,7,15,23,30 text_config.vocab_size?=128256 text_config.hidden_size?=4096 text_config.num_hidden_layers?=40 text_config.num_attention_heads?=32 text_config.num_key_value_heads?=8 text_config.intermediate_size?=14336 text_config.max_position_embeddings?=131072 text_config.cross_attention_layers?=3,8,13,18,23,28,33,38 image_token_index?=128256",
    ),
    row(
        "patchtst",
        "patchtst-etth1",
        "d_model?=128 num_hidden_layers?=3 num_attention_heads=16 ffn_dim?=512 context_length=512 patch_length=12 patch_stride=12 num_input_channels=7 prediction_length=96",
    ),
    row(
        "phimoe",
        "phi-3.5-moe",
        "vocab_size?=32064 hidden_size?=4096 intermediate_size?=6400 num_hidden_layers?=32 num_attention_heads?=32 num_key_value_heads?=8 max_position_embeddings?=131072 sliding_window=131072 num_experts_per_tok?=2 num_local_experts?=16 attention_bias=true lm_head_bias=true",
    ),
    row(
        "resnet",
        "resnet-18-hf",
        "embedding_size?=64 hidden_sizes=64,128,256,512 depths=2,2,2,2 layer_type=basic downsample_in_first_stage?=false downsample_in_bottleneck?=false",
    ),
    row(
        "resnet",
        "resnet-50-hf",
        "embedding_size?=64 hidden_sizes?=256,512,1024,2048 depths?=3,4,6,3 layer_type?=bottleneck downsample_in_first_stage?=false downsample_in_bottleneck?=false",
    ),
    row(
        "sam",
        "sam-vit-base",
        "vision_config.hidden_size?=768 vision_config.num_hidden_layers?=12 vision_config.num_attention_heads?=12 vision_config.image_size?=1024 vision_config.patch_size?=16 mask_decoder_config.hidden_size?=256",
    ),
    row(
        "sam",
        "sam-vit-huge",
        "vision_config.hidden_size=1280 vision_config.num_hidden_layers=32 vision_config.num_attention_heads=16 vision_config.image_size?=1024 vision_config.patch_size?=16 mask_decoder_config.hidden_size?=256",
    ),
    row(
        "sam",
        "sam-vit-large",
        "vision_config.hidden_size=1024 vision_config.num_hidden_layers=24 vision_config.num_attention_heads=16 vision_config.image_size?=1024 vision_config.patch_size?=16 mask_decoder_config.hidden_size?=256",
    ),
    row(
        "segformer",
        "segformer-b0",
        "depths?=2,2,2,2 hidden_sizes?=32,64,160,256 num_attention_heads?=1,2,5,8 sr_ratios?=8,4,2,1 decoder_hidden_size?=256",
    ),
    row(
        "swin",
        "swin-tiny-hf",
        "image_size?=224 patch_size?=4 embed_dim?=96 depths?=2,2,6,2 num_heads?=3,6,12,24 window_size?=7 use_absolute_embeddings?=false encoder_stride?=32 num_layers?=4 hidden_size?=768",
    ),
    row(
        "wav2vec2",
        "wav2vec2-base",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false add_adapter?=false",
    ),
    row(
        "wavlm",
        "wavlm-base",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false num_buckets?=320 add_adapter?=false",
    ),
    row(
        "xlnet",
        "xlnet-base-cased",
        "d_model=768 n_layer=12 n_head=12 d_inner=3072 vocab_size?=32000",
    ),
];
