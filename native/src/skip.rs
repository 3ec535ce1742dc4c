//! Values that no one wants: looked over for being JSON, and left behind.

use crate::cursor::{Cursor, Fit, Misfit};
use crate::number;
use crate::text::{passes_plain, quoted};

/// How deep a value may be nested.
const DEEPEST: usize = 64;

/// Moves past the value that begins here.
#[inline(always)]
pub fn value(cursor: &mut Cursor) -> Fit<()> {
    cursor.lend(any_value)
}

/// Moves past a plain string or number; false if something else stands here.
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
        return Err(Misfit);
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
