"""The models of transformers that see, hear and read at once, or whose classes leave the loss to others: as scripts/graphs_hf.py."""
import graphs_objects
import torch
import torch.nn.functional as F
from graphs_hf import LONG, NO_AUGMENT, NO_PATHS, hf, masked, padded, seen, words

# --- images ----------------------------------------------------------------------------------------------------------

# COCO has seven objects in a picture on average.
OBJECTS = 7


def scenes(objects=OBJECTS):
    return graphs_objects.scenes(seen, objects)


SCENES = [(2, 640), (2, 800)]
hf("yolos-tiny", "YolosForObjectDetection", [(2, 512), (2, 800)], scenes(), hidden_size=192, num_hidden_layers=12, num_attention_heads=3,
   intermediate_size=768, image_size=[800, 1333], use_mid_position_embeddings=False, num_labels=91)
RESNET_18 = dict(model_type="timm_backbone", backbone="resnet18", num_channels=3, features_only=True, use_pretrained_backbone=False, out_indices=[1, 2, 3, 4])
hf("table-transformer-detection", "TableTransformerForObjectDetection", SCENES, scenes(), backbone_config=RESNET_18, num_queries=15, num_labels=2)
hf("d-fine-m", "DFineForObjectDetection", SCENES, scenes(), num_labels=80, anchor_image_size=None)
hf("conditional-detr-resnet-50", "ConditionalDetrForObjectDetection", SCENES, scenes(), num_labels=91)
hf("deformable-detr", "DeformableDetrForObjectDetection", SCENES, scenes(), num_labels=91)


# --- speech and sound ------------------------------------------------------------------------------------------------


def frames(b, s, device):
    """Fifty frames a second, and sixteen letters."""
    return dict(input_features=torch.randn(b, s, 160, device=device), labels=torch.ones(b, s // 4, dtype=torch.long, device=device))


hf("w2v-bert-2.0", "Wav2Vec2BertForCTC", [(2, 256), (2, 512)], frames, NO_AUGMENT, vocab_size=32, layerdrop=0.0, apply_spec_augment=False)


def compared(model, batch):
    return model(**batch, return_loss=True).loss


def captioned(b, s, device):
    """Ten seconds of sound, with a caption."""
    ids = torch.randint(3, 50000, (b, s), device=device)
    return dict(input_ids=ids, attention_mask=padded(ids), input_features=torch.randn(b, 1, 1001, 64, device=device))


hf("clap-htsat-unfused", "ClapModel", [(2, 64), (2, 128)], captioned, None, compared)

# --- images and text -------------------------------------------------------------------------------------------------


def written(b, s, device):
    """A line of handwriting as a picture, and its letters."""
    return dict(pixel_values=torch.randn(b, 3, 384, 384, device=device), labels=torch.randint(3, 50000, (b, s), device=device))


hf("trocr-base", "VisionEncoderDecoderModel", [(2, 64), (2, 128)], written, encoder=dict(model_type="vit", image_size=384, qkv_bias=False),
   decoder=dict(model_type="trocr", is_decoder=True, add_cross_attention=True, cross_attention_hidden_size=768, use_cache=False), pad_token_id=1,
   decoder_start_token_id=2, tie_word_embeddings=True)


def tokens(image, top, count):
    """Padded text whose first tokens are a picture's, which are not learnt."""

    def batch(b, s, device):
        ids = torch.randint(3, top, (b, s), device=device)
        ids[:, :count] = image
        labels = ids.clone()
        labels[:, :count] = -100
        return dict(input_ids=ids, labels=labels, attention_mask=padded(ids))

    return batch


def looked(batch, *shape, **more):
    """With pixels of this shape for each sample, and further values as they are for each sample."""

    def made(b, s, device):
        extra = {key: torch.tensor([value] * b, device=device) for key, value in more.items()}
        return dict(batch(b, s, device), pixel_values=torch.randn(b, *shape, device=device), **extra)

    return made


QUIET = dict(use_cache=False)
hf("florence2-base", "Florence2ForConditionalGeneration", [(2, 640), (2, 768)], looked(tokens(51289, 51000, 577), 3, 768, 768), NO_PATHS,
   image_token_id=51289, vision_config=dict(projection_dim=768, drop_path_rate=0.0),
   text_config=dict(model_type="bart", vocab_size=51328, d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12,
                    decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072, max_position_embeddings=4096, **QUIET))

hf("gemma-3n-e4b", "Gemma3nForConditionalGeneration", LONG, looked(tokens(262145, 262000, 256), 3, 768, 768), "sound", text_config=QUIET, **QUIET)


def patches(rows, columns, values, grid=None):
    """A picture for each sample as its patches, with their places or with the grid that they fill."""

    def made(batch):
        def both(b, s, device):
            found = batch(b, s, device)
            if grid:
                kinds = (found["input_ids"] == grid).int()
                shape = torch.tensor([[1, rows, columns]] * b, device=device)
                return dict(found, pixel_values=torch.randn(b * rows * columns, values, device=device), image_grid_thw=shape, mm_token_type_ids=kinds)
            place = torch.arange(rows * columns, device=device)
            places = torch.stack([place % columns, place // columns], 1).repeat(b, 1, 1)
            return dict(found, pixel_values=torch.randn(b, rows * columns, values, device=device), image_position_ids=places)

        return both

    return made


# 32 by 32 patches are 256 tokens.
QWEN_EYE = dict(patch_size=16, spatial_merge_size=2, temporal_patch_size=2)
hf("qwen3.5-27b", "Qwen3_5ForConditionalGeneration", [(2, 1024)], patches(32, 32, 1536, 248056)(tokens(248056, 248000, 256)),
   "the kernels of flash-linear-attention and causal-conv1d: this is transformers' own code", tie_word_embeddings=False,
   vision_config=dict(out_hidden_size=5120, **QWEN_EYE),
   text_config=dict(hidden_size=5120, intermediate_size=17408, num_hidden_layers=64, num_attention_heads=24, num_key_value_heads=4,
                    linear_num_value_heads=48, **QUIET))

# --- sound and text --------------------------------------------------------------------------------------------------


def tune(b, s, device):
    """A description of 32 tokens, and music of 50 frames a second in four codebooks."""
    ids = torch.randint(3, 32000, (b, 32), device=device)
    return dict(input_ids=ids, attention_mask=padded(ids), labels=torch.randint(0, 2048, (b, s, 4), device=device))


hf("musicgen-small", "MusicgenForConditionalGeneration", [(2, 256), (2, 512)], tune, decoder_start_token_id=2048, pad_token_id=2048,
   text_encoder=dict(model_type="t5", vocab_size=32128, d_model=768, d_ff=3072, num_layers=12, num_heads=12, num_decoder_layers=12, **QUIET),
   audio_encoder=dict(model_type="encodec", sampling_rate=32000, upsampling_ratios=[8, 5, 4, 4], num_filters=64, codebook_size=2048,
                      target_bandwidths=[2.2], use_causal_conv=False, use_conv_shortcut=False),
   decoder=dict(model_type="musicgen_decoder", decoder_start_token_id=2048, **QUIET))


def translated(b, s, device):
    """Speech in frames of 20 ms, and what is said in another language."""
    return dict(input_features=torch.randn(b, s, 160, device=device), labels=torch.randint(3, 250000, (b, s // 8), device=device))


hf("seamless-m4t-medium", "SeamlessM4TForSpeechToText", [(2, 256), (2, 512)], translated, "layers that are left out by chance (`speech_encoder_layerdrop`)",
   vocab_size=256206, encoder_layers=12, decoder_layers=12, encoder_ffn_dim=4096, decoder_ffn_dim=4096, speech_encoder_layers=12, t2u_encoder_layers=4,
   t2u_decoder_layers=4, max_position_embeddings=4096, encoder_layerdrop=0.0, decoder_layerdrop=0.0, speech_encoder_layerdrop=0.0, **QUIET)
