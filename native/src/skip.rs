//! Skip unwanted values, checking that they are valid JSON.

use crate::cursor::{Cursor, Fit, Mismatch};
use crate::number;
use crate::text::{passes_plain, quoted};

/// Maximum nesting depth of a value.
const DEEPEST: usize = 64;
/// Shorter objects are always parsed.
const SHORTEST_KEPT: usize = 256;
/// Maximum size of all objects of `SkippedObjects`.
const MOST_KEPT: usize = 1 << 20;

/// Objects that were skipped, and are skipped again without being parsed.
///
/// Most of them are schemas, which all messages of a table repeat.
#[derive(Default)]
pub struct SkippedObjects {
    /// In order; none is the start of another.
    sorted: Vec<Vec<u8>>,
    bytes: usize,
}

impl SkippedObjects {
    /// Skips the value at this position.
    #[inline(never)]
    pub fn skip(&mut self, cursor: &mut Cursor) -> Fit<()> {
        if cursor.peek() != b'{' {
            return any_value(cursor);
        }
        let rest = cursor.rest();
        let found = self
            .sorted
            .binary_search_by(|text| text.as_slice().cmp(&rest[..text.len().min(rest.len())]));
        match found {
            Ok(index) => cursor.at += self.sorted[index].len(),
            Err(index) => {
                let start = cursor.at;
                any_value(cursor)?;
                let text = cursor.since(start);
                if text.len() >= SHORTEST_KEPT && self.bytes + text.len() <= MOST_KEPT {
                    self.bytes += text.len();
                    self.sorted.insert(index, text.to_vec());
                }
            }
        }
        Ok(())
    }
}

/// Skips the value at this position.
#[inline(always)]
pub fn value(cursor: &mut Cursor) -> Fit<()> {
    cursor.lend(any_value)
}

/// Skips a plain string or number; false for any other value.
#[inline(always)]
pub fn passes(cursor: &mut Cursor) -> bool {
    passes_plain(cursor) || number::passes_plain(cursor)
}

#[inline(never)]
fn any_value(cursor: &mut Cursor) -> Fit<()> {
    match cursor.peek() {
        b'"' => quoted(cursor).map(|_| ()),
        b'n' => cursor.word(b"null"),
        b't' => cursor.word(b"true"),
        b'f' => cursor.word(b"false"),
        b'{' | b'[' => nested(cursor, 0),
        _ => number::skip(cursor),
    }
}

fn nested(cursor: &mut Cursor, depth: usize) -> Fit<()> {
    if depth >= DEEPEST {
        return Err(Mismatch);
    }
    let is_object = cursor.peek() == b'{';
    let closing = if is_object { b'}' } else { b']' };
    cursor.at += 1;
    cursor.blanks();
    if cursor.peek() == closing {
        cursor.at += 1;
        return Ok(());
    }
    loop {
        cursor.blanks();
        if is_object {
            quoted(cursor)?;
            cursor.blanks();
            cursor.expect(b':')?;
            cursor.blanks();
        }
        match cursor.peek() {
            b'{' | b'[' => nested(cursor, depth + 1)?,
            _ => value(cursor)?,
        }
        if !cursor.more(closing)? {
            return Ok(());
        }
    }
}
