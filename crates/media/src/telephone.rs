//! What a telephone line does to sound: its two companding laws (ITU-T G.711), its band, its noise.

use crate::filter::Cascade;
use crate::pcm;

/// The clip point and the bias that make μ-law segments start at powers of two, on the 16-bit scale.
const MULAW_BIAS: i32 = 0x84;
const MULAW_CLIP: i32 = 32_635;

/// One byte of μ-law as a 16-bit sample.
pub const fn mulaw_decode(byte: u8) -> i16 {
    let byte = !byte;
    let segment = (byte >> 4) & 7;
    let mantissa = (byte & 0x0f) as i32;
    let magnitude = (((mantissa << 3) + MULAW_BIAS) << segment) - MULAW_BIAS;
    if byte & 0x80 != 0 { -magnitude as i16 } else { magnitude as i16 }
}

/// One 16-bit sample as a byte of μ-law.
pub const fn mulaw_encode(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0 };
    let mut magnitude = (sample as i32).abs();
    if magnitude > MULAW_CLIP {
        magnitude = MULAW_CLIP;
    }
    let biased = magnitude + MULAW_BIAS;
    let segment = (31 - biased.leading_zeros() as i32) - 7;
    let mantissa = (biased >> (segment + 3)) & 0x0f;
    !(sign | ((segment as u8) << 4) | mantissa as u8)
}

/// One byte of A-law as a 16-bit sample.
pub const fn alaw_decode(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let segment = (byte >> 4) & 7;
    let mantissa = ((byte & 0x0f) as i32) << 4;
    let magnitude = if segment == 0 { mantissa + 8 } else { (mantissa + 0x108) << (segment - 1) };
    if byte & 0x80 != 0 { magnitude as i16 } else { -magnitude as i16 }
}

/// One 16-bit sample as a byte of A-law.
pub const fn alaw_encode(sample: i16) -> u8 {
    let sign = if sample < 0 { 0 } else { 0x80 };
    // Negative values are mirrored with the one's complement: -1 belongs to the same step as 0.
    let magnitude = if sample < 0 { !(sample as i32) } else { sample as i32 };
    let segment = if magnitude < 256 { 0 } else { (31 - magnitude.leading_zeros() as i32) - 7 };
    let shift = if segment == 0 { 4 } else { segment + 3 };
    let mantissa = (magnitude >> shift) & 0x0f;
    (sign | ((segment as u8) << 4) | mantissa as u8) ^ 0x55
}

/// A telephone's band: 300 to 3,400 Hz, Butterworth of order four on either side.
///
/// The returned filter is stateful: sound may be pushed through it in pieces.
pub fn band(rate: u32) -> Cascade {
    Cascade::band_pass(rate, 300.0, 3_400.0)
}

/// Sound as it comes out of a telephone line: band-limited and once through μ-law.
///
/// The rate stays what it is; at 8,000 Hz this is the very line.
pub fn over_the_line(samples: &[f32], rate: u32) -> Vec<f32> {
    let mut band = band(rate);
    let coded = |s: &f32| pcm::to_f32(mulaw_decode(mulaw_encode(pcm::to_i16(band.step(*s)))));
    samples.iter().map(coded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_either_law_survives_the_way_through_16_bits() {
        for byte in 0..=u8::MAX {
            assert_eq!(mulaw_decode(mulaw_encode(mulaw_decode(byte))), mulaw_decode(byte));
            assert_eq!(alaw_encode(alaw_decode(byte)), byte);
        }
    }

    #[test]
    fn the_laws_give_the_standards_landmarks() {
        assert_eq!((mulaw_decode(0xff), mulaw_decode(0x80), mulaw_decode(0x00)), (0, 32_124, -32_124));
        assert_eq!((alaw_decode(0xd5), alaw_decode(0x55)), (8, -8));
        assert_eq!((alaw_decode(0xaa), alaw_decode(0x2a)), (32_256, -32_256));
        assert_eq!((mulaw_encode(0), alaw_encode(0)), (0xff, 0xd5));
    }

    #[test]
    fn companding_errs_by_at_most_a_thirtieth() {
        for sample in (i16::MIN..=i16::MAX).step_by(7) {
            let allowed = (i32::from(sample).abs() / 30).max(16);
            for decoded in [mulaw_decode(mulaw_encode(sample)), alaw_decode(alaw_encode(sample))] {
                let error = (i32::from(decoded) - i32::from(sample)).abs();
                // μ-law clips the last 2 % of full scale.
                assert!(
                    error <= allowed.max(650 * i32::from(sample.unsigned_abs() > 32_100)),
                    "{sample} {decoded}"
                );
            }
        }
    }
}
