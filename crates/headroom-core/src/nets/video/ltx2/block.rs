//! `LTX2VideoTransformerBlock`.

use crate::nets::Cx;
use crate::nets::diffusion::{bare_rms_norm, feed_forward, scaled_and_shifted};
use crate::tape::Tensor;

/// Heads of attention in one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) heads: u64,
    pub(super) head_dim: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) video: Stream,
    pub(super) sound: Stream,
}

/// What all blocks are given: of video first, then of sound.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) texts: [Tensor; 2],
    pub(super) times: [Tensor; 2],
    /// Scales and shifts of the attention to the other stream, and gates behind it.
    pub(super) cross: [Tensor; 2],
    pub(super) gates: [Tensor; 2],
    /// Positions of video and sound, and of both as they see each other.
    pub(super) tables: [[Tensor; 2]; 4],
    pub(super) masks: Option<[Tensor; 2]>,
}

impl Stream {
    pub(super) const fn width(self) -> u64 {
        self.heads.saturating_mul(self.head_dim)
    }
}

/// `get_mod_params`: a block's table and the time's parts.
fn parts(table: &Tensor, time: &Tensor) -> Vec<Tensor> {
    let (count, width) = (table.size(0), table.size(1));
    let values = {
        let table = table.unsqueeze(0).unsqueeze(0);
        table.add(&time.reshape(&[time.size(0), time.size(1), count, width]))
    };
    values.unbind_along(2)
}

impl Block {
    pub(super) fn run(
        self,
        cx: &Cx,
        [hidden, audio]: [&Tensor; 2],
        around: &Around,
    ) -> [Tensor; 2] {
        let Self { video, sound, .. } = self;
        let (width, narrow) = (video.width(), sound.width());
        let table = |name, rows, width| cx.param(name, [rows, width]).tensor();
        let tables = [
            table("scale_shift_table", 6, width),
            table("audio_scale_shift_table", 6, narrow),
            table("video_a2v_cross_attn_scale_shift_table", 5, width),
            table("audio_a2v_cross_attn_scale_shift_table", 5, narrow),
        ];
        let [of_video, of_sound, seen_table, heard_table] = &tables;
        let parts_of_video = parts(of_video, &around.times[0]);
        let parts_of_sound = parts(of_sound, &around.times[1]);
        let (
            [shift, scale, gate, ff_shift, ff_scale, ff_gate],
            [a_shift, a_scale, a_gate, af_shift, af_scale, af_gate],
        ) = (&parts_of_video[..], &parts_of_sound[..])
        else {
            return [hidden.clone(), audio.clone()];
        };
        let modulated = |x: &Tensor, scale: &Tensor, shift: &Tensor| {
            bare_rms_norm(x).pipe(|normed| scaled_and_shifted(normed, scale, shift))
        };
        let [seen, heard, crossing, crossing_back] = &around.tables;
        let masks = around.masks.as_ref();
        let mut normed = modulated(hidden, scale, shift);
        let mut attended = cx.module("attn1", |cx| {
            video.attention(cx, &normed, &normed, Some([seen, seen]), None)
        });
        let mut hidden = attended.mul(gate).pipe(|more| hidden.add(more));
        let mut a_normed = modulated(audio, a_scale, a_shift);
        let mut a_attended = cx.module("audio_attn1", |cx| {
            sound.attention(cx, &a_normed, &a_normed, Some([heard, heard]), None)
        });
        let mut audio = a_attended.mul(a_gate).pipe(|more| audio.add(more));
        normed = bare_rms_norm(&hidden);
        attended = cx.module("attn2", |cx| {
            let mask = masks.map(|masks| &masks[0]);
            video.attention(cx, &normed, &around.texts[0], None, mask)
        });
        hidden = hidden.add(&attended);
        a_normed = bare_rms_norm(&audio);
        a_attended = cx.module("audio_attn2", |cx| {
            let mask = masks.map(|masks| &masks[1]);
            sound.attention(cx, &a_normed, &around.texts[1], None, mask)
        });
        audio = audio.add(&a_attended);
        normed = bare_rms_norm(&hidden);
        a_normed = bare_rms_norm(&audio);
        let of_crossing = |table: &Tensor, at: usize| {
            let scales = parts(&table.narrow(0, 4), &around.cross[at]);
            let gate = parts(&table.narrow(0, 1), &around.gates[at]);
            (scales, gate)
        };
        let (scales, gates) = of_crossing(seen_table, 0);
        let (a_scales, a_gates) = of_crossing(heard_table, 1);
        let ([s0, h0, s1, h1], [t0, k0, t1, k1]) = (&scales[..], &a_scales[..]) else {
            return [hidden, audio];
        };
        let (Some(gate), Some(a_gate)) = (gates.first(), a_gates.first()) else {
            return [hidden, audio];
        };
        let mut given = scaled_and_shifted(&normed, s0, h0);
        let mut a_given = scaled_and_shifted(&a_normed, t0, k0);
        let to_video = cx.module("audio_to_video_attn", |cx| {
            let tables = Some([crossing, crossing_back]);
            sound.attention(cx, &given, &a_given, tables, None)
        });
        hidden = gate.mul(&to_video).pipe(|more| hidden.add(more));
        given = scaled_and_shifted(&normed, s1, h1);
        a_given = scaled_and_shifted(&a_normed, t1, k1);
        let to_sound = cx.module("video_to_audio_attn", |cx| {
            let tables = Some([crossing_back, crossing]);
            sound.attention(cx, &a_given, &given, tables, None)
        });
        audio = a_gate.mul(&to_sound).pipe(|more| audio.add(more));
        normed = modulated(&hidden, ff_scale, ff_shift);
        let out = feed_forward(cx, "ff", &normed);
        hidden = out.mul(ff_gate).pipe(|more| hidden.add(more));
        a_normed = modulated(&audio, af_scale, af_shift);
        let a_out = feed_forward(cx, "audio_ff", &a_normed);
        audio = a_out.mul(af_gate).pipe(|more| audio.add(more));
        drop((
            given, a_given, to_video, to_sound, attended, a_attended, out, a_out, normed, a_normed,
        ));
        [hidden, audio]
    }
}
