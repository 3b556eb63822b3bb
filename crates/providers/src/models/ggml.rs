//! Writes the file that whisper.cpp reads from a CTranslate2 Whisper model in 16-bit floats.
//!
//! Matrices become blocks of 8-bit numbers (ggml's `q8_0`), which costs no words and makes recognition 1.7 times as
//! fast on a CPU; the rest keeps its values. What the other form lacks is computed: the mel filter bank from its
//! definition and the byte vocabulary from the tokenizer. Form: magic, eleven hyperparameters, filters, vocabulary,
//! then each tensor as rank, name length, type, dims with the fastest first, name, data.

use super::ModelError;
use super::ct2::{Halves, Variables};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

const MAGIC: u32 = 0x6767_6d6c;
const HEAD_WIDTH: u32 = 64;
const ENGLISH_ONLY: u32 = 51_864;
/// Natural logarithms, written out so that no machine's own last bit counts.
const LN_6_4: f64 = 1.856_297_990_365_626_3;
const LN_8: f64 = std::f64::consts::LN_2 * 3.0;
const FLOAT: u32 = 0;
const HALF: u32 = 1;
const BLOCKS: u32 = 8;
/// Numbers in a block, which share one scale.
const BLOCK: usize = 32;
/// The file type of `q8_0` in the second version of its form.
const FILE_TYPE: u32 = 2007;

/// Converts the model at `weights` with the tokenizer at `tokenizer` into `out`, which is synced before this returns.
pub(super) fn from_ct2(weights: &Path, tokenizer: &Path, out: &Path) -> Result<(), ModelError> {
    let read = |path: &Path| fs::read(path).map_err(|error| ModelError::io(path, &error));
    let name = |path: &Path| path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let (bytes, vocabulary) = (read(weights)?, read(tokenizer)?);
    let variables = Variables::read(&bytes).map_err(|reason| ModelError::convert(&name(weights), reason))?;
    let tokens =
        byte_vocabulary(&vocabulary).map_err(|reason| ModelError::convert(&name(tokenizer), reason))?;
    let io = |error: &std::io::Error| ModelError::io(out, error);
    let mut writer = Writer { out: BufWriter::new(File::create(out).map_err(|e| io(&e))?), variables };
    writer.whole(tokens).map_err(|error| match error {
        Failure::Io(error) => io(&error),
        Failure::Form(reason) => ModelError::convert(&name(weights), reason),
    })?;
    writer.out.into_inner().map_err(|error| io(error.error()))?.sync_all().map_err(|e| io(&e))
}

enum Failure {
    Io(std::io::Error),
    Form(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Form(reason)
    }
}

struct Writer<'a> {
    out: BufWriter<File>,
    variables: Variables<'a>,
}

/// Rows of a stacked projection: the `index`-th block of as many rows as the model is wide.
#[derive(Clone, Copy)]
enum Rows {
    All,
    Block(usize),
}

impl<'a> Writer<'a> {
    fn whole(&mut self, mut tokens: Vec<Vec<u8>>) -> Result<(), Failure> {
        let [vocabulary, width] = self.dims("decoder/embeddings/weight")?;
        let [audio, _] = self.dims("encoder/position_encodings/encodings")?;
        let [text, _] = self.dims("decoder/position_encodings/encodings")?;
        let [_, mels, _] = self.dims("encoder/conv1/weight")?;
        let (encoder, decoder) = (self.layers("encoder"), self.layers("decoder"));
        let heads = width / HEAD_WIDTH;
        self.numbers(&[
            MAGIC, vocabulary, audio, width, heads, encoder, text, width, heads, decoder, mels, FILE_TYPE,
        ])?;
        self.filters(mels)?;
        if vocabulary == ENGLISH_ONLY {
            tokens.push(b"<|endoftext|>".to_vec());
        }
        self.numbers(&[count(tokens.len())])?;
        for token in &tokens {
            self.numbers(&[count(token.len())])?;
            self.out.write_all(token)?;
        }
        self.stem()?;
        self.side("encoder", "encoder.ln_post", encoder)?;
        self.side("decoder", "decoder.ln", decoder)
    }

    fn filters(&mut self, mels: u32) -> Result<(), Failure> {
        let filters = mel_filters(mels);
        self.numbers(&[mels, count(filters.first().map_or(0, Vec::len))])?;
        for weight in filters.iter().flatten() {
            self.out.write_all(&weight.to_le_bytes())?;
        }
        Ok(())
    }

    fn stem(&mut self) -> Result<(), Failure> {
        self.floats("encoder.positional_embedding", "encoder/position_encodings/encodings", Rows::All)?;
        for conv in ["conv1", "conv2"] {
            self.halves(&format!("encoder.{conv}.weight"), &format!("encoder/{conv}/weight"), Rows::All)?;
            self.column(&format!("encoder.{conv}.bias"), &format!("encoder/{conv}/bias"))?;
        }
        self.floats("decoder.positional_embedding", "decoder/position_encodings/encodings", Rows::All)?;
        self.blocks("decoder.token_embedding.weight", "decoder/embeddings/weight", Rows::All)
    }

    fn side(&mut self, side: &str, last: &str, layers: u32) -> Result<(), Failure> {
        self.norm(last, &format!("{side}/layer_norm"))?;
        for layer in 0..layers {
            let (to, from) = (format!("{side}.blocks.{layer}"), format!("{side}/layer_{layer}"));
            self.norm(&format!("{to}.attn_ln"), &format!("{from}/self_attention/layer_norm"))?;
            let stacked = format!("{from}/self_attention/linear_0");
            self.linear(&format!("{to}.attn.query"), &stacked, Rows::Block(0))?;
            self.key(&format!("{to}.attn.key"), &stacked, 1)?;
            self.linear(&format!("{to}.attn.value"), &stacked, Rows::Block(2))?;
            self.linear(&format!("{to}.attn.out"), &format!("{from}/self_attention/linear_1"), Rows::All)?;
            if side == "decoder" {
                self.cross(&format!("{to}.cross_attn"), &format!("{from}/attention"))?;
            }
            self.norm(&format!("{to}.mlp_ln"), &format!("{from}/ffn/layer_norm"))?;
            self.linear(&format!("{to}.mlp.0"), &format!("{from}/ffn/linear_0"), Rows::All)?;
            self.linear(&format!("{to}.mlp.2"), &format!("{from}/ffn/linear_1"), Rows::All)?;
        }
        Ok(())
    }

    fn cross(&mut self, to: &str, from: &str) -> Result<(), Failure> {
        self.norm(&format!("{to}_ln"), &format!("{from}/layer_norm"))?;
        self.linear(&format!("{to}.query"), &format!("{from}/linear_0"), Rows::All)?;
        self.key(&format!("{to}.key"), &format!("{from}/linear_1"), 0)?;
        self.linear(&format!("{to}.value"), &format!("{from}/linear_1"), Rows::Block(1))?;
        self.linear(&format!("{to}.out"), &format!("{from}/linear_2"), Rows::All)
    }

    fn norm(&mut self, to: &str, from: &str) -> Result<(), Failure> {
        self.floats(&format!("{to}.weight"), &format!("{from}/gamma"), Rows::All)?;
        self.floats(&format!("{to}.bias"), &format!("{from}/beta"), Rows::All)
    }

    fn linear(&mut self, to: &str, from: &str, rows: Rows) -> Result<(), Failure> {
        self.blocks(&format!("{to}.weight"), &format!("{from}/weight"), rows)?;
        self.floats(&format!("{to}.bias"), &format!("{from}/bias"), rows)
    }

    /// Whisper's key projection has no bias; a model that has one is not Whisper.
    fn key(&mut self, to: &str, from: &str, block: usize) -> Result<(), Failure> {
        let bias = format!("{from}/bias");
        if self.variables.has(&bias) {
            let (_, bytes) = self.rows(&bias, Rows::Block(block))?;
            if bytes.chunks_exact(2).any(|half| half[0] != 0 || half[1] & 0x7f != 0) {
                return Err(format!("{bias} has a bias for the keys, which Whisper has not").into());
            }
        }
        self.blocks(&format!("{to}.weight"), &format!("{from}/weight"), Rows::Block(block))
    }

    fn blocks(&mut self, to: &str, from: &str, rows: Rows) -> Result<(), Failure> {
        let (dims, bytes) = self.rows(from, rows)?;
        if !dims.last().is_some_and(|&width| (width as usize).is_multiple_of(BLOCK)) {
            return Err(format!("{from} has rows that are no multiple of {BLOCK}").into());
        }
        self.header(to, &dims, BLOCKS)?;
        for block in bytes.chunks_exact(2 * BLOCK) {
            self.out.write_all(&quantised(block))?;
        }
        Ok(())
    }

    fn halves(&mut self, to: &str, from: &str, rows: Rows) -> Result<(), Failure> {
        let (dims, bytes) = self.rows(from, rows)?;
        self.header(to, &dims, HALF)?;
        Ok(self.out.write_all(bytes)?)
    }

    fn floats(&mut self, to: &str, from: &str, rows: Rows) -> Result<(), Failure> {
        let (dims, bytes) = self.rows(from, rows)?;
        self.header(to, &dims, FLOAT)?;
        self.widened(bytes)
    }

    /// A vector as a column, the shape in which the convolutions' biases are read.
    fn column(&mut self, to: &str, from: &str) -> Result<(), Failure> {
        let (mut dims, bytes) = self.rows(from, Rows::All)?;
        dims.push(1);
        self.header(to, &dims, FLOAT)?;
        self.widened(bytes)
    }

    fn widened(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        for half in bytes.chunks_exact(2) {
            self.out.write_all(&widen(u16::from_le_bytes([half[0], half[1]])).to_le_bytes())?;
        }
        Ok(())
    }

    fn header(&mut self, name: &str, dims: &[u32], kind: u32) -> Result<(), Failure> {
        self.numbers(&[count(dims.len()), count(name.len()), kind])?;
        let fastest_first: Vec<u32> = dims.iter().rev().copied().collect();
        self.numbers(&fastest_first)?;
        Ok(self.out.write_all(name.as_bytes())?)
    }

    fn numbers(&mut self, numbers: &[u32]) -> Result<(), Failure> {
        numbers.iter().try_for_each(|number| self.out.write_all(&number.to_le_bytes()))?;
        Ok(())
    }

    fn dims<const N: usize>(&self, name: &str) -> Result<[u32; N], String> {
        let dims = self.variables.halves(name)?.dims;
        dims.try_into().map_err(|_| format!("{name} has {} dimensions instead of {N}", dims.len()))
    }

    fn rows(&self, name: &str, rows: Rows) -> Result<(Vec<u32>, &'a [u8]), String> {
        let Halves { dims, bytes } = self.variables.halves(name)?;
        let Rows::Block(index) = rows else { return Ok((dims.to_vec(), bytes)) };
        let [_, width] = self.dims("decoder/embeddings/weight")?;
        let row = dims.iter().skip(1).fold(2, |all, &dim| all * dim as usize);
        let block = width as usize * row;
        let part =
            bytes.get(index * block..(index + 1) * block).ok_or_else(|| format!("{name} is too short"))?;
        let mut shape = dims.to_vec();
        shape[0] = width;
        Ok((shape, part))
    }

    fn layers(&self, side: &str) -> u32 {
        let prefix = format!("{side}/layer_");
        let number = |name: &str| name.strip_prefix(&prefix)?.split('/').next()?.parse::<u32>().ok();
        count(self.variables.names().filter_map(number).collect::<BTreeSet<_>>().len())
    }
}

/// Lengths in this form are 32-bit; what is longer saturates, and the checksum of the result refuses it.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn widen(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(half >> 10 & 0x1f), u32::from(half & 0x3ff));
    match exponent {
        // Exact: the fraction has ten bits, and the step of subnormal halves is 2^-24.
        #[expect(clippy::cast_precision_loss, reason = "ten bits fit")]
        0 => f32::from_bits(sign | (fraction as f32 / 16_777_216.0).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// A block of 16-bit floats as a 16-bit scale and 8-bit numbers.
fn quantised(halves: &[u8]) -> [u8; BLOCK + 2] {
    let mut values = [0.0_f32; BLOCK];
    for (value, half) in values.iter_mut().zip(halves.chunks_exact(2)) {
        *value = widen(u16::from_le_bytes([half[0], half[1]]));
    }
    let scale = values.iter().fold(0.0_f32, |most, value| most.max(value.abs())) / 127.0;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let mut block = [0; BLOCK + 2];
    block[..2].copy_from_slice(&narrow(scale).to_le_bytes());
    for (byte, value) in block[2..].iter_mut().zip(values) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 by the choice of the scale")]
        let number = (value * inverse).round() as i8;
        *byte = number.to_le_bytes()[0];
    }
    block
}

/// The nearest 16-bit float, ties to even, of a number from 0 to 65504.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are in range for such a number"
)]
fn narrow(float: f32) -> u16 {
    const LEAST_NORMAL: f32 = 1.0 / 16_384.0;
    if float < LEAST_NORMAL {
        return (float * 16_777_216.0).round_ties_even() as u16;
    }
    let bits = float.to_bits() - (112 << 23);
    let (kept, dropped) = (bits >> 13, bits & 0x1fff);
    let up = dropped > 0x1000 || (dropped == 0x1000 && kept & 1 == 1);
    (kept + u32::from(up)) as u16
}

/// Triangles on Slaney's mel scale, each of unit area, over the 201 bins of a 400-sample transform at 16 kHz.
fn mel_filters(mels: u32) -> Vec<Vec<f32>> {
    const RATE: f64 = 16_000.0;
    const LENGTH: u32 = 400;
    let spacing = 200.0 / 3.0;
    let log_from = 1000.0 / spacing;
    let log_step = LN_6_4 / 27.0;
    let top = log_from + LN_8 / log_step;
    let step = top / f64::from(mels + 1);
    let edges: Vec<f64> = (0..mels + 2)
        .map(|index| if index == mels + 1 { top } else { f64::from(index) * step })
        .map(|mel| if mel >= log_from { 1000.0 * exp(log_step * (mel - log_from)) } else { spacing * mel })
        .collect();
    let bins: Vec<f64> = (0..=LENGTH / 2).map(|bin| f64::from(bin) * RATE / f64::from(LENGTH)).collect();
    edges
        .windows(3)
        .map(|edge| bins.iter().map(|&bin| triangle(edge[0], edge[1], edge[2], bin)).collect())
        .collect()
}

fn triangle(from: f64, peak: f64, to: f64, at: f64) -> f32 {
    let rising = -(from - at) / (peak - from);
    let falling = (to - at) / (to - peak);
    // A minus zero stays one, as in the file that others have made from the same weights.
    let height = if rising.min(falling) < 0.0 { 0.0 } else { rising.min(falling) };
    #[expect(clippy::cast_possible_truncation, reason = "the file holds 32-bit floats")]
    let weight = (height * (2.0 / (to - from))) as f32;
    weight
}

/// The exponential by its series, for arguments up to about two. The system's own differs in the last bit from
/// machine to machine, and the file has one checksum.
fn exp(argument: f64) -> f64 {
    const HALVINGS: u32 = 8;
    let small = argument / f64::from(1_u32 << HALVINGS);
    let mut term = 1.0;
    let mut sum = 1.0;
    for index in 1..12_u32 {
        term = term * small / f64::from(index);
        sum += term;
    }
    (0..HALVINGS).fold(sum, |power, _| power * power)
}

#[derive(Deserialize)]
struct Tokenizer {
    added_tokens: Vec<Added>,
    model: Bpe,
}

#[derive(Deserialize)]
struct Added {
    content: String,
}

#[derive(Deserialize)]
struct Bpe {
    vocab: BTreeMap<String, usize>,
}

/// The vocabulary without special tokens in the order of ids, each token as its bytes.
fn byte_vocabulary(json: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let tokenizer: Tokenizer = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let special: BTreeSet<&str> = tokenizer.added_tokens.iter().map(|added| added.content.as_str()).collect();
    let plain = tokenizer.model.vocab.iter().filter(|(token, _)| !special.contains(token.as_str()));
    let mut ordered: Vec<(usize, &str)> = plain.map(|(token, &id)| (id, token.as_str())).collect();
    ordered.sort_unstable();
    let bytes = byte_of_letter();
    let decode =
        |token: &str| token.chars().map(|letter| bytes.get(&letter).copied()).collect::<Option<Vec<u8>>>();
    let mut tokens = Vec::with_capacity(ordered.len());
    for (place, (id, token)) in ordered.into_iter().enumerate() {
        if place != id {
            return Err(format!("token {place} is missing"));
        }
        tokens.push(decode(token).ok_or_else(|| format!("token {id} is not in the byte alphabet"))?);
    }
    Ok(tokens)
}

/// The byte alphabet of GPT-2: printable Latin-1 stands for itself, the rest for the letters from U+0100 on.
fn byte_of_letter() -> BTreeMap<char, u8> {
    let printable = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256_u32;
    let mut letters = BTreeMap::new();
    for byte in 0..=255_u8 {
        let letter = if printable(byte) {
            char::from(byte)
        } else {
            next += 1;
            char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        letters.insert(letter, byte);
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_exactly() {
        let cases =
            [(0x0000, 0.0), (0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65_504.0), (0x0001, 5.960_464_5e-8)];
        for (half, float) in cases {
            assert_eq!(widen(half).to_bits(), f32::to_bits(float), "{half:#x}");
        }
        assert!(widen(0x7c00).is_infinite() && widen(0x7e00).is_nan());
    }

    #[test]
    fn halves_narrow_back_to_what_they_were_and_between_to_the_nearest() {
        for half in (0..0x7c00).step_by(7) {
            assert_eq!(narrow(widen(half)), half);
        }
        assert_eq!(narrow(1.0 + 1.0 / 2048.0), 0x3c00, "a tie goes to the even one");
        assert_eq!(narrow(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(narrow(1.0 + 1.1 / 2048.0), 0x3c01);
    }

    #[test]
    fn a_block_keeps_its_largest_number_and_a_block_of_nothing_is_nothing() {
        let mut halves = [0_u8; 2 * BLOCK];
        assert_eq!(quantised(&halves), [0; BLOCK + 2]);
        halves[..2].copy_from_slice(&0xbc00_u16.to_le_bytes());
        halves[2..4].copy_from_slice(&0x3800_u16.to_le_bytes());
        let block = quantised(&halves);
        assert_eq!((block[2].cast_signed(), block[3].cast_signed()), (-127, 64));
    }

    #[test]
    fn filters_cover_every_bin_above_the_first_once_or_twice() {
        let filters = mel_filters(80);
        assert_eq!((filters.len(), filters[0].len()), (80, 201));
        for bin in 2..200 {
            let covering = filters.iter().filter(|filter| filter[bin] > 0.0).count();
            assert!((1..=2).contains(&covering), "bin {bin}: {covering}");
        }
    }

    #[test]
    fn a_vocabulary_with_a_hole_is_refused() {
        let json = br#"{"added_tokens": [], "model": {"vocab": {"a": 0, "b": 2}}}"#;
        assert_eq!(byte_vocabulary(json), Err("token 1 is missing".to_owned()));
    }
}
