//! LTX-2 (diffusers/models/transformers/transformer_ltx2.py): two streams, of video and of sound, which attend to their texts and to each
//! other in every block.

mod attention;
mod block;
mod positions;

use self::block::{Block, Stream};
use self::positions::rotary;
use crate::nets::diffusion::{
    Pixels, blocks, caption_projection, flow_matching, scaled_and_shifted, sinusoids, text_bias,
    timestep_embedding,
};
use crate::nets::{Cx, ModelError, Net, Output, Sizes};
use crate::tape::{DType, Tensor};
use headroom_scenario::Data;

#[derive(Clone, Copy, Debug)]
struct Ltx2 {
    pixels: Pixels,
    frames: u64,
    channels: u64,
    sound_channels: u64,
    layers: u64,
    block: Block,
    words: u64,
    context: u64,
    masked: bool,
    split: bool,
}

pub(crate) fn build(sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let split = sizes.or("split_rotary", 1) != 0;
    Ok(Box::new(Ltx2 {
        pixels: Pixels::moving(sizes, sizes.or("vae", 32), 8),
        frames: sizes.or("frames", 121),
        channels: sizes.or("channels", 128),
        sound_channels: sizes.or("audio_channels", 128),
        layers: sizes.need("layers")?,
        block: Block {
            video: Stream {
                heads: sizes.need("heads")?.max(1),
                head_dim: sizes.need("head_dim")?,
            },
            sound: Stream {
                heads: sizes.or("audio_heads", 32).max(1),
                head_dim: sizes.or("audio_head_dim", 64),
            },
        },
        words: sizes.or("ctx_len", 1024),
        context: sizes.or("ctx_dim", 3840),
        masked: sizes.or("masked", 1) != 0,
        split,
    }))
}

impl Net for Ltx2 {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let n = data.micro_batch;
        let tokens = self.pixels.latents(data).count();
        let frames = if data.frames > 0 {
            data.frames
        } else {
            self.frames
        };
        // Twenty-five latents of sound a second, at twenty-four pictures.
        let sounds = (frames.saturating_mul(25) + 12) / 24;
        let make = |name, shape: &[u64]| cx.tape.empty(name, shape, cx.env.weights);
        let mut all = vec![
            make("latents", &[n, tokens, self.channels]),
            make("audio_latents", &[n, sounds.max(1), self.sound_channels]),
            make("encoder_hidden_states", &[n, self.words, self.context]),
            make(
                "audio_encoder_hidden_states",
                &[n, self.words, self.context],
            ),
        ];
        if self.masked {
            all.push(make("encoder_attention_mask", &[n, self.words]));
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [latents, sounds, text, sound_text, mask @ ..] = batch else {
            return Output::empty(cx);
        };
        let noised = flow_matching(latents);
        let sound = flow_matching(sounds);
        let inputs = [&noised.input, &sound.input];
        let [video, audio] =
            self.model(cx, inputs, &noised.level, [text, sound_text], mask.first());
        let loss = cx.module("loss", |_| {
            let error = |made: &Tensor, target: &Tensor| {
                let target = target.to(DType::F32);
                made.to(DType::F32).pipe(|made| made.mse_loss(&target))
            };
            let first = error(&video, &noised.target);
            let second = error(&audio, &sound.target);
            first.add(&second)
        });
        Output {
            loss,
            held: vec![video, audio],
        }
    }
}

impl Ltx2 {
    /// `LTX2VideoTransformer3DModel.forward`.
    fn model(
        &self,
        cx: &Cx,
        [latents, sounds]: [&Tensor; 2],
        level: &Tensor,
        [text, sound_text]: [&Tensor; 2],
        mask: Option<&Tensor>,
    ) -> [Tensor; 2] {
        let n = latents.size(0);
        let (width, narrow) = (self.block.video.width(), self.block.sound.width());
        let timestep = level.mul_scalar();
        let masks = mask.map(|mask| [latents, sounds].map(|x| text_bias(mask, x.dtype())));
        let heads = self.block.video.heads;
        let tables = [
            rotary(latents, width, 3, heads, self.split),
            rotary(sounds, narrow, 1, self.block.sound.heads, self.split),
            rotary(latents, narrow, 1, heads, self.split),
            rotary(sounds, narrow, 1, self.block.sound.heads, self.split),
        ];
        let mut hidden = cx.linear("proj_in", latents, width, true);
        let mut audio = cx.linear("audio_proj_in", sounds, narrow, true);
        let time = |name, width, parts| {
            let [made, embedded] = ada_norm(cx, name, &timestep, width, parts, hidden.dtype());
            [
                made.view(&[n, 1, parts * width]),
                embedded.view(&[n, 1, width]),
            ]
        };
        let [temb, embedded] = time("time_embed", width, 6);
        let [sound_temb, sound_embedded] = time("audio_time_embed", narrow, 6);
        let [cross, _] = time("av_cross_attn_video_scale_shift", width, 4);
        let [gate, _] = time("av_cross_attn_video_a2v_gate", width, 1);
        let [sound_cross, _] = time("av_cross_attn_audio_scale_shift", narrow, 4);
        let [sound_gate, _] = time("av_cross_attn_audio_v2a_gate", narrow, 1);
        let text = caption_projection(cx, "caption_projection", text, width);
        let sound_text = caption_projection(cx, "audio_caption_projection", sound_text, narrow);
        let block = self.block;
        let around = block::Around {
            texts: [text, sound_text],
            times: [temb, sound_temb],
            cross: [cross, sound_cross],
            gates: [gate, sound_gate],
            tables,
            masks,
        };
        let state = blocks(cx).equal_layers(
            "transformer_blocks",
            self.layers,
            vec![hidden.clone(), audio.clone()],
            move |cx, state| match state {
                [hidden, audio] => block.run(cx, [hidden, audio], &around).to_vec(),
                _ => Vec::new(),
            },
        );
        let Ok([made, sound_made]) = <[Tensor; 2]>::try_from(state) else {
            return [hidden, audio];
        };
        hidden = made;
        audio = sound_made;
        let finished =
            |x: Tensor, table: &'static str, out: &'static str, embedded: &Tensor, channels| {
                let table = cx.param(table, [2, x.size(-1)]).tensor();
                let values = {
                    let table = table.unsqueeze(0).unsqueeze(0);
                    table.add(&embedded.unsqueeze(2))
                };
                let [shift, scale] = [(); 2].map(|()| values.select(2));
                let mut x = x.layer_norm(None, None);
                x = scaled_and_shifted(&x, &scale, &shift);
                cx.linear(out, &x, channels, true)
            };
        let video = finished(
            hidden,
            "scale_shift_table",
            "proj_out",
            &embedded,
            self.channels,
        );
        let sound = finished(
            audio,
            "audio_scale_shift_table",
            "audio_proj_out",
            &sound_embedded,
            self.sound_channels,
        );
        [video, sound]
    }
}

/// `LTX2AdaLayerNormSingle`: so many parts, and the embedding of the time step that they are made of.
fn ada_norm(
    cx: &Cx,
    name: &'static str,
    timestep: &Tensor,
    width: u64,
    parts: u64,
    dtype: DType,
) -> [Tensor; 2] {
    cx.module(name, |cx| {
        let embedded = cx.module("emb", |cx| {
            let waves = sinusoids(timestep, 256).to(dtype);
            timestep_embedding(cx, "timestep_embedder", &waves, width)
        });
        let made = embedded
            .silu()
            .pipe(|x| cx.linear("linear", x, parts * width, true));
        [made, embedded]
    })
}
