//! JSON strings: find their end, and decode them.

use crate::cursor::{Cursor, Fit, Mismatch};
use crate::simd16::{BLOCK, special};

/// The bytes between the quotes.
pub struct Quoted<'a> {
    pub raw: &'a [u8],
    pub escaped: bool,
}

/// Skips the string at this position. The text is known to be UTF-8.
#[inline(always)]
pub fn quoted<'a>(cursor: &mut Cursor<'a>) -> Fit<Quoted<'a>> {
    cursor.expect(b'"')?;
    let start = cursor.at;
    let mut escaped = false;
    loop {
        cursor.at += plain_length(cursor.rest());
        match cursor.peek() {
            b'"' => break,
            b'\\' => {
                escaped = true;
                cursor.lend(escape)?;
            }
            _ => return Err(Mismatch),
        }
    }
    let raw = cursor.since(start);
    cursor.at += 1;
    Ok(Quoted { raw, escaped })
}

/// Skips the string at this position, if it has no escapes; false for any other value.
#[inline(always)]
pub fn passes_plain(cursor: &mut Cursor) -> bool {
    if cursor.peek() != b'"' {
        return false;
    }
    let mut ahead = *cursor;
    ahead.at += 1;
    while let Some(block) = ahead.block() {
        let end = special(block);
        if end < BLOCK {
            let is_end = block[end] == b'"';
            if is_end {
                cursor.at = ahead.at + end + 1;
            }
            return is_end;
        }
        ahead.at += BLOCK;
    }
    false
}

/// Reads a string without escapes.
#[inline(always)]
pub fn unescaped<'a>(cursor: &mut Cursor<'a>) -> Fit<&'a [u8]> {
    let text = quoted(cursor)?;
    if text.escaped {
        Err(Mismatch)
    } else {
        Ok(text.raw)
    }
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = bytes.get(at..at + BLOCK).and_then(<[u8]>::first_chunk) {
        let end = special(block);
        if end < BLOCK {
            return at + end;
        }
        at += BLOCK;
    }
    at + bytes[at..]
        .iter()
        .position(|&b| b == b'"' || b == b'\\' || b < 0x20)
        .unwrap_or(bytes.len() - at)
}

/// Skips an escape and returns its character.
fn escape(cursor: &mut Cursor) -> Fit<char> {
    cursor.expect(b'\\')?;
    let kind = cursor.peek();
    cursor.at += 1;
    Ok(match kind {
        b'"' | b'\\' | b'/' => kind as char,
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => unicode(cursor)?,
        _ => return Err(Mismatch),
    })
}

fn unicode(cursor: &mut Cursor) -> Fit<char> {
    let first = four_digits(cursor)?;
    if !(0xD800..0xE000).contains(&first) {
        return char::from_u32(first).ok_or(Mismatch);
    }
    cursor.word(b"\\u")?;
    let second = four_digits(cursor)?;
    if first >= 0xDC00 || !(0xDC00..0xE000).contains(&second) {
        return Err(Mismatch);
    }
    char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or(Mismatch)
}

fn four_digits(cursor: &mut Cursor) -> Fit<u32> {
    let mut code = 0;
    for _ in 0..4 {
        let digit = (cursor.peek() as char).to_digit(16).ok_or(Mismatch)?;
        code = code << 4 | digit;
        cursor.at += 1;
    }
    Ok(code)
}

/// Skips the string at this position and appends its decoded bytes.
#[inline(always)]
pub fn append(cursor: &mut Cursor, data: &mut Vec<u8>) -> Fit<()> {
    cursor.expect(b'"')?;
    while let Some(block) = cursor.block() {
        // Copying a whole block is faster than a part of it.
        data.extend_from_slice(block);
        let end = special(block);
        if end < BLOCK {
            data.truncate(data.len() - (BLOCK - end));
            cursor.at += end;
            if cursor.peek() != b'"' {
                break;
            }
            cursor.at += 1;
            return Ok(());
        }
        cursor.at += BLOCK;
    }
    cursor.lend(|lent| append_slowly(lent, data))
}

/// Reads a string without escapes; false, without effect, for any other value.
#[inline(always)]
pub fn append_plain(cursor: &mut Cursor, data: &mut Vec<u8>) -> bool {
    if cursor.peek() != b'"' {
        return false;
    }
    let start = data.len();
    let mut ahead = *cursor;
    ahead.at += 1;
    while let Some(block) = ahead.block() {
        data.extend_from_slice(block);
        let end = special(block);
        if end < BLOCK {
            if block[end] != b'"' {
                break;
            }
            data.truncate(data.len() - (BLOCK - end));
            cursor.at = ahead.at + end + 1;
            return true;
        }
        ahead.at += BLOCK;
    }
    data.truncate(start);
    false
}

/// Reads the rest of a string.
#[inline(never)]
fn append_slowly(cursor: &mut Cursor, data: &mut Vec<u8>) -> Fit<()> {
    loop {
        let rest = cursor.rest();
        let plain = plain_length(rest);
        data.extend_from_slice(&rest[..plain]);
        cursor.at += plain;
        match cursor.peek() {
            b'"' => {
                cursor.at += 1;
                return Ok(());
            }
            b'\\' => {
                let mut utf8 = [0; 4];
                data.extend_from_slice(escape(cursor)?.encode_utf8(&mut utf8).as_bytes());
            }
            _ => return Err(Mismatch),
        }
    }
}
