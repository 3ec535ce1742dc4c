//! Base64 with padding, in the standard alphabet and canonical form.

use crate::cursor::{Fit, Mismatch};

const NONE: u8 = 0xFF;
const VALUES: [u8; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NONE; 256];
    let mut at = 0;
    while at < alphabet.len() {
        values[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    values
};

/// Appends the bytes that a text encodes.
pub fn append(text: &[u8], data: &mut Vec<u8>) -> Fit<()> {
    if !text.len().is_multiple_of(4) {
        return Err(Mismatch);
    }
    let padding = text
        .iter()
        .rev()
        .take(2)
        .take_while(|&&b| b == b'=')
        .count();
    let (whole, last) = text.split_at(text.len() - if padding > 0 { 4 } else { 0 });
    for four in whole.chunks_exact(4) {
        let word = word_of(four)?;
        data.extend_from_slice(&word.to_be_bytes()[1..]);
    }
    if padding > 0 {
        let mut four = [b'A'; 4];
        four[..4 - padding].copy_from_slice(&last[..4 - padding]);
        let bytes = word_of(&four)?.to_be_bytes();
        let kept = 3 - padding;
        if bytes[1 + kept..].iter().any(|&b| b != 0) {
            return Err(Mismatch);
        }
        data.extend_from_slice(&bytes[1..=kept]);
    }
    Ok(())
}

fn word_of(four: &[u8]) -> Fit<u32> {
    let mut word = 0;
    for &byte in four {
        let value = VALUES[byte as usize];
        if value == NONE {
            return Err(Mismatch);
        }
        word = word << 6 | u32::from(value);
    }
    Ok(word)
}

/// Decodes a big-endian two's complement integer of at most 38 digits, written in as few bytes as
/// possible, so that equal integers have equal texts.
pub fn unscaled(text: &[u8]) -> Fit<i128> {
    const LIMIT: i128 = 10i128.pow(38);
    // Sixteen bytes are 24 characters.
    if text.is_empty() || text.len() > 24 {
        return Err(Mismatch);
    }
    let mut bytes = Vec::with_capacity(18);
    append(text, &mut bytes)?;
    if bytes.is_empty() || bytes.len() > 16 {
        return Err(Mismatch);
    }
    let sign = if bytes[0] & 0x80 != 0 { 0xFF } else { 0 };
    if bytes.len() > 1 && bytes[0] == sign && (bytes[1] ^ sign) & 0x80 == 0 {
        return Err(Mismatch);
    }
    let mut whole = [sign; 16];
    whole[16 - bytes.len()..].copy_from_slice(&bytes);
    let value = i128::from_be_bytes(whole);
    if value.unsigned_abs() >= LIMIT as u128 {
        Err(Mismatch)
    } else {
        Ok(value)
    }
}
