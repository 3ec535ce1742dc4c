//! JSON numbers: integers, floats, decimals, and skipped numbers.

use crate::cursor::{Cursor, Fit, Mismatch};
use crate::fast_number::{MOST, POWERS, fast_number};
use crate::simd16::{self, BLOCK};

/// Maximum number of digits of a skipped number.
const LONGEST: usize = 200;

#[inline(always)]
fn digit(cursor: &Cursor) -> Option<u8> {
    let value = cursor.peek().wrapping_sub(b'0');
    (value < 10).then_some(value)
}

/// Reads an integer of 64 bits; the caller checks what follows it.
#[inline(always)]
pub fn integer(cursor: &mut Cursor) -> Fit<i64> {
    let negative = cursor.peek() == b'-';
    cursor.at += usize::from(negative);
    let leads = cursor.peek() == b'0';
    let (value, count) = natural(cursor);
    if count == 0 || (leads && count > 1) || matches!(cursor.peek(), b'.' | b'e' | b'E') {
        return Err(Mismatch);
    }
    if negative {
        0i64.checked_sub_unsigned(value).ok_or(Mismatch)
    } else {
        i64::try_from(value).map_err(|_| Mismatch)
    }
}

/// Parses a text as a natural number of 63 bits; leading zeros are allowed.
pub fn natural_text(text: &[u8]) -> Fit<i64> {
    if text.is_empty() {
        return Err(Mismatch);
    }
    let mut value = 0i64;
    for byte in text {
        let next = byte.wrapping_sub(b'0');
        if next > 9 {
            return Err(Mismatch);
        }
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(i64::from(next)))
            .ok_or(Mismatch)?;
    }
    Ok(value)
}

/// Reads a natural number and its number of digits; None if there are too many.
#[inline(always)]
pub fn natural(cursor: &mut Cursor) -> (u64, usize) {
    if let Some(around) = cursor.around() {
        let (value, count) = simd16::natural(around);
        if count < BLOCK {
            cursor.at += count;
            return (value, count);
        }
    }
    cursor.lend(natural_slowly)
}

/// Skips an integer in its usual form: a few digits, followed by a comma or a brace.
#[inline(always)]
pub fn plain_integer(cursor: &mut Cursor) -> Option<i64> {
    let mut ahead = *cursor;
    let negative = ahead.peek() == b'-';
    ahead.at += usize::from(negative);
    let around = ahead.around()?;
    let (_, digits) = simd16::halves(around);
    let (value, count) = simd16::natural(around);
    if !(1..BLOCK).contains(&count)
        || (digits[0] == b'0' && count > 1)
        || !matches!(digits[count], b',' | b'}')
    {
        return None;
    }
    cursor.at = ahead.at + count;
    // Fifteen digits cannot overflow.
    Some(if negative {
        -(value as i64)
    } else {
        value as i64
    })
}

#[cold]
fn natural_slowly(cursor: &mut Cursor) -> (u64, usize) {
    let start = cursor.at;
    let mut value = 0u64;
    while let Some(next) = digit(cursor) {
        // Wraps only after more digits than are accepted below.
        value = value.wrapping_mul(10).wrapping_add(u64::from(next));
        cursor.at += 1;
    }
    // Nineteen digits are less than 2^64.
    let count = cursor.at - start;
    if count > 19 { (0, 0) } else { (value, count) }
}

/// The parts of a number.
struct Shape {
    is_integer: bool,
    length: usize,
}

/// Skips a number in the syntax of JSON.
#[inline(always)]
fn shape(cursor: &mut Cursor) -> Fit<Shape> {
    let start = cursor.at;
    cursor.at += usize::from(cursor.peek() == b'-');
    let first = digit(cursor).ok_or(Mismatch)?;
    cursor.at += 1;
    if first != 0 {
        digits(cursor);
    } else if digit(cursor).is_some() {
        return Err(Mismatch);
    }
    let mut is_integer = true;
    if cursor.peek() == b'.' {
        is_integer = false;
        cursor.at += 1;
        some_digits(cursor)?;
    }
    if matches!(cursor.peek(), b'e' | b'E') {
        is_integer = false;
        cursor.at += 1;
        cursor.at += usize::from(matches!(cursor.peek(), b'+' | b'-'));
        some_digits(cursor)?;
    }
    Ok(Shape {
        is_integer,
        length: cursor.at - start,
    })
}

#[inline(always)]
fn digits(cursor: &mut Cursor) {
    while let Some(block) = cursor.block() {
        let count = simd16::digits(block);
        cursor.at += count;
        if count < BLOCK {
            return;
        }
    }
    while digit(cursor).is_some() {
        cursor.at += 1;
    }
}

fn some_digits(cursor: &mut Cursor) -> Fit<()> {
    digit(cursor).ok_or(Mismatch)?;
    digits(cursor);
    Ok(())
}

/// Skips a number followed by a comma or a brace; false for any other value.
#[inline(always)]
pub fn passes_plain(cursor: &mut Cursor) -> bool {
    let Some(ahead) = cursor.block() else {
        return false;
    };
    let count = simd16::digits(ahead);
    if !(1..BLOCK).contains(&count) || (ahead[0] == b'0' && count > 1) {
        return false;
    }
    match ahead[count] {
        b',' | b'}' => {
            cursor.at += count;
            true
        }
        b'.' => passes_fraction(cursor, count + 1),
        _ => false,
    }
}

/// Skips the digits after a decimal point.
#[inline(always)]
fn passes_fraction(cursor: &mut Cursor, start: usize) -> bool {
    let mut decimals = *cursor;
    decimals.at += start;
    let Some(ahead) = decimals.block() else {
        return false;
    };
    let count = simd16::digits(ahead);
    let passes = (1..BLOCK).contains(&count) && matches!(ahead[count], b',' | b'}');
    if passes {
        cursor.at = decimals.at + count;
    }
    passes
}

/// Skips a number.
#[inline(always)]
pub fn skip(cursor: &mut Cursor) -> Fit<()> {
    if shape(cursor)?.length > LONGEST {
        Err(Mismatch)
    } else {
        Ok(())
    }
}

/// Returns the nearest double; a negative zero only for a number with a fraction.
pub fn float(cursor: &mut Cursor) -> Fit<f64> {
    match fast_float(cursor) {
        Some(value) => Ok(value),
        None => slow_float(cursor),
    }
}

/// Reads a number of few digits as a double; None, without moving, for any other number.
#[inline(always)]
pub fn fast_float(cursor: &mut Cursor) -> Option<f64> {
    let mut ahead = *cursor;
    let number = fast_number(&mut ahead)?;
    if matches!(ahead.peek(), b'e' | b'E') {
        return None;
    }
    *cursor = ahead;
    Some(number.as_float())
}

#[inline(never)]
fn slow_float(cursor: &mut Cursor) -> Fit<f64> {
    let start = cursor.at;
    let shape = shape(cursor)?;
    let text = std::str::from_utf8(cursor.since(start)).map_err(|_| Mismatch)?;
    let value: f64 = text.parse().map_err(|_| Mismatch)?;
    if shape.length > LONGEST || value.is_infinite() {
        return Err(Mismatch);
    }
    Ok(if shape.is_integer { value + 0.0 } else { value })
}

/// Reads a decimal as its value times 10^scale. Numbers that need rounding, or have more digits
/// than the precision as written, do not match.
#[inline(always)]
pub fn decimal(cursor: &mut Cursor, precision: u32, scale: u32) -> Fit<i128> {
    match fast_decimal(cursor, precision, scale) {
        Some(value) => Ok(value),
        None => cursor.lend(|lent| slow_decimal(lent, precision, scale)),
    }
}

/// Reads a number of few digits as a decimal; None, without moving, for any other number.
#[inline(always)]
pub fn fast_decimal(cursor: &mut Cursor, precision: u32, scale: u32) -> Option<i128> {
    let mut ahead = *cursor;
    let number = fast_number(&mut ahead)?;
    let missing = (scale as usize).checked_sub(number.fraction)?;
    if number.digits < POWERS[number.fraction]
        || missing > MOST
        || number.whole + number.fraction + missing > precision as usize
    {
        return None;
    }
    *cursor = ahead;
    let value = i128::from(number.digits) * i128::from(POWERS[missing]);
    Some(if number.negative { -value } else { value })
}

#[inline(never)]
fn slow_decimal(cursor: &mut Cursor, precision: u32, scale: u32) -> Fit<i128> {
    let negative = cursor.peek() == b'-';
    cursor.at += usize::from(negative);
    let mut value: i128 = 0;
    let mut count = 0u32;
    let first = digit(cursor).ok_or(Mismatch)?;
    let leading = cursor.at;
    while let Some(next) = digit(cursor) {
        push_digit(&mut value, &mut count, next)?;
        cursor.at += 1;
    }
    if first == 0 && cursor.at - leading > 1 {
        return Err(Mismatch);
    }
    let mut fraction = 0;
    if cursor.peek() == b'.' {
        cursor.at += 1;
        let start = cursor.at;
        digit(cursor).ok_or(Mismatch)?;
        while let Some(next) = digit(cursor) {
            push_digit(&mut value, &mut count, next)?;
            cursor.at += 1;
        }
        fraction = (cursor.at - start) as u32;
    }
    let missing = scale.checked_sub(fraction).ok_or(Mismatch)?;
    if count.max(fraction).max(1) + missing > precision {
        return Err(Mismatch);
    }
    value *= 10i128.pow(missing);
    Ok(if negative { -value } else { value })
}

/// Appends a digit; leading zeros do not count.
#[inline(always)]
fn push_digit(value: &mut i128, count: &mut u32, next: u8) -> Fit<()> {
    if *count > 0 || next != 0 {
        *count += 1;
        if *count > 38 {
            return Err(Mismatch);
        }
    }
    *value = if *count <= 18 {
        // Much faster in 64 bits.
        i128::from(*value as i64 * 10 + i64::from(next))
    } else {
        *value * 10 + i128::from(next)
    };
    Ok(())
}
