//! Read single values of columns.

use crate::cells::Range;
use crate::cursor::{Cursor, Fit, FixedText, Mismatch};
use crate::number;
use crate::skip;
use crate::text::unescaped;

#[inline(always)]
pub fn raw<'a>(cursor: &mut Cursor<'a>) -> Fit<&'a [u8]> {
    let start = cursor.at;
    skip::value(cursor)?;
    Ok(cursor.since(start))
}

#[inline(always)]
pub fn integer(cursor: &mut Cursor, range: Range) -> Fit<i64> {
    within(number::integer(cursor)?, range).ok_or(Mismatch)
}

/// Returns a value in the unit of the column, if it can be converted.
#[inline(always)]
fn within(mut value: i64, range: Range) -> Option<i64> {
    if range.divisor != 1 {
        value = value.div_euclid(range.divisor);
    }
    (range.low..=range.high).contains(&value).then_some(value)
}

/// Reads an integer in its usual form; false for any other value.
#[inline(always)]
pub fn plain_integer(cursor: &mut Cursor, range: Range, push: impl FnOnce(i64)) -> bool {
    let mut ahead = *cursor;
    let integer = number::plain_integer(&mut ahead).and_then(|value| within(value, range));
    if let Some(value) = integer {
        *cursor = ahead;
        push(value);
    }
    integer.is_some()
}

/// Reads a double in its usual form; false for any other value.
#[inline(never)]
pub fn plain_double(cursor: &mut Cursor, values: &mut Vec<f64>) -> bool {
    match number::fast_float(cursor) {
        Some(value) => values.push(value),
        None => return false,
    }
    true
}

/// Reads a decimal in its usual form, quoted or not; false for any other value.
#[inline(never)]
pub fn plain_decimal(
    cursor: &mut Cursor,
    precision: u32,
    scale: u32,
    values: &mut Vec<i128>,
) -> bool {
    let mut ahead = *cursor;
    let quotes = usize::from(ahead.peek() == b'"');
    ahead.at += quotes;
    let Some(value) = number::fast_decimal(&mut ahead, precision, scale) else {
        return false;
    };
    let passes = match quotes {
        0 => !matches!(ahead.peek(), b'e' | b'E'),
        _ => ahead.peek() == b'"',
    };
    if passes {
        ahead.at += quotes;
        *cursor = ahead;
        values.push(value);
    }
    passes
}

/// Reads which of the texts is at this position, counted from one.
#[inline(never)]
pub fn choice(cursor: &mut Cursor, texts: &[FixedText]) -> Fit<u8> {
    for (number, text) in (1..).zip(texts) {
        if cursor.passes(text) {
            return Ok(number);
        }
    }
    Err(Mismatch)
}

/// Returns the text before the separator, and the number after it.
#[inline(always)]
pub fn numbered(text: &[u8], separator: Option<u8>, longest: usize) -> Fit<(&[u8], i64)> {
    let digits = text
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |last| last + 1);
    let head = match separator {
        None if digits == 0 => &text[..0],
        Some(mark) if digits > 0 && text[digits - 1] == mark => &text[..digits - 1],
        _ => return Err(Mismatch),
    };
    let digits = &text[digits..];
    if digits.len() > longest {
        return Err(Mismatch);
    }
    Ok((head, number::natural_text(digits)?))
}

#[inline(never)]
pub fn double(cursor: &mut Cursor, special: bool) -> Fit<f64> {
    if !special || cursor.peek() != b'"' {
        return number::float(cursor);
    }
    match unescaped(cursor)? {
        b"NaN" => Ok(f64::NAN),
        b"Infinity" => Ok(f64::INFINITY),
        b"-Infinity" => Ok(f64::NEG_INFINITY),
        _ => Err(Mismatch),
    }
}

#[inline(never)]
pub fn single(cursor: &mut Cursor, special: bool) -> Fit<f32> {
    let value = double(cursor, special)?;
    let narrow = value as f32;
    if narrow.is_infinite() && value.is_finite() {
        Err(Mismatch)
    } else {
        Ok(narrow)
    }
}

#[inline(always)]
pub fn boolean(cursor: &mut Cursor) -> Fit<bool> {
    let value = cursor.peek() == b't';
    if value {
        cursor.word(b"true")?;
    } else {
        cursor.word(b"false")?;
    }
    Ok(value)
}

/// Reads a decimal as a number, or as a number in quotes.
#[inline(never)]
pub fn decimal(cursor: &mut Cursor, precision: u32, scale: u32) -> Fit<i128> {
    if cursor.peek() != b'"' {
        let value = number::decimal(cursor, precision, scale)?;
        return if matches!(cursor.peek(), b'e' | b'E') {
            Err(Mismatch)
        } else {
            Ok(value)
        };
    }
    cursor.at += 1;
    let value = number::decimal(cursor, precision, scale)?;
    cursor.expect(b'"')?;
    Ok(value)
}
