//! JSON strings: where they end, and what they say.

use crate::cursor::{Cursor, Fit, Misfit};
use crate::lane::{LANE, special};

/// What stands between the quotes.
pub struct Quoted<'a> {
    pub raw: &'a [u8],
    pub escaped: bool,
}

/// Moves past the string that begins here. The text is known to be UTF-8.
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
            _ => return Err(Misfit),
        }
    }
    let raw = cursor.since(start);
    cursor.at += 1;
    Ok(Quoted { raw, escaped })
}

/// Moves past the string that begins here, if it has no escapes; false if it is another value.
#[inline(always)]
pub fn passes_plain(cursor: &mut Cursor) -> bool {
    if cursor.peek() != b'"' {
        return false;
    }
    let mut ahead = *cursor;
    ahead.at += 1;
    while let Some(lane) = ahead.lane() {
        let found = special(lane);
        if found < LANE {
            let is_end = lane[found] == b'"';
            if is_end {
                cursor.at = ahead.at + found + 1;
            }
            return is_end;
        }
        ahead.at += LANE;
    }
    false
}

/// A string without escapes.
#[inline(always)]
pub fn unescaped<'a>(cursor: &mut Cursor<'a>) -> Fit<&'a [u8]> {
    let found = quoted(cursor)?;
    if found.escaped {
        Err(Misfit)
    } else {
        Ok(found.raw)
    }
}

/// How many bytes precede the first quote, backslash or control character.
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(lane) = bytes.get(at..at + LANE).and_then(<[u8]>::first_chunk) {
        let found = special(lane);
        if found < LANE {
            return at + found;
        }
        at += LANE;
    }
    at + bytes[at..]
        .iter()
        .position(|&b| b == b'"' || b == b'\\' || b < 0x20)
        .unwrap_or(bytes.len() - at)
}

/// Moves past an escape and says which character it stands for.
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
        _ => return Err(Misfit),
    })
}

fn unicode(cursor: &mut Cursor) -> Fit<char> {
    let first = four_digits(cursor)?;
    if !(0xD800..0xE000).contains(&first) {
        return char::from_u32(first).ok_or(Misfit);
    }
    cursor.word(b"\\u")?;
    let second = four_digits(cursor)?;
    if first >= 0xDC00 || !(0xDC00..0xE000).contains(&second) {
        return Err(Misfit);
    }
    char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or(Misfit)
}

fn four_digits(cursor: &mut Cursor) -> Fit<u32> {
    let mut code = 0;
    for _ in 0..4 {
        let digit = (cursor.peek() as char).to_digit(16).ok_or(Misfit)?;
        code = code << 4 | digit;
        cursor.at += 1;
    }
    Ok(code)
}

/// Moves past the string that begins here and appends what it says.
#[inline(always)]
pub fn append(cursor: &mut Cursor, data: &mut Vec<u8>) -> Fit<()> {
    cursor.expect(b'"')?;
    while let Some(lane) = cursor.lane() {
        // A whole lane is quicker copied than the part of it that is wanted.
        data.extend_from_slice(lane);
        let found = special(lane);
        if found < LANE {
            data.truncate(data.len() - (LANE - found));
            cursor.at += found;
            if cursor.peek() != b'"' {
                break;
            }
            cursor.at += 1;
            return Ok(());
        }
        cursor.at += LANE;
    }
    cursor.lend(|lent| append_slowly(lent, data))
}

/// The same for a string without escapes; false, and nothing is done, if this is another value.
#[inline(always)]
pub fn append_plain(cursor: &mut Cursor, data: &mut Vec<u8>) -> bool {
    if cursor.peek() != b'"' {
        return false;
    }
    let start = data.len();
    let mut ahead = *cursor;
    ahead.at += 1;
    while let Some(lane) = ahead.lane() {
        data.extend_from_slice(lane);
        let found = special(lane);
        if found < LANE {
            if lane[found] != b'"' {
                break;
            }
            data.truncate(data.len() - (LANE - found));
            cursor.at = ahead.at + found + 1;
            return true;
        }
        ahead.at += LANE;
    }
    data.truncate(start);
    false
}

/// The same for what is left of a string.
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
            _ => return Err(Misfit),
        }
    }
}
