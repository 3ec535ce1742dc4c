//! The expected value of a field, and the two ways to read it.

use crate::column::Column;
use crate::cursor::{Cursor, Fit, FixedText, Mismatch};
use crate::object::Object;
use crate::rows::Rows;

/// The expected value of a field.
pub enum Node {
    /// Exactly this JSON text.
    Literal(Box<FixedText>),
    /// Only null.
    Null,
    Object(Box<Object>),
    Rows(Box<Rows>),
    Column(Box<Column>),
}

impl Node {
    /// Reads the value of a row: usual forms on a fast path, all others in full.
    #[inline(always)]
    pub fn read(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        match self {
            #[expect(clippy::collapsible_match, reason = "a guard cannot borrow as mutable")]
            Node::Column(column) => {
                if column.passes(cursor, row) {
                    return Ok(());
                }
            }
            Node::Object(object) if cursor.peek() == b'{' => {
                return cursor.lend(|lent| object.read_present(lent, row));
            }
            _ => {}
        }
        cursor.lend(|lent| self.read_any(lent, row))
    }

    /// Reads a value of an object that differs from the template.
    #[inline(never)]
    pub fn read_unlike(&mut self, cursor: &mut Cursor, row: usize, at_length: bool) -> Fit<()> {
        if at_length {
            self.read_any(cursor, row)
        } else {
            self.read(cursor, row)
        }
    }

    /// Reads a value in full, after white space.
    #[inline(never)]
    fn read_any(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        cursor.blanks();
        match self {
            Node::Column(column) => column.read(cursor, row),
            Node::Object(object) => object.read(cursor, row),
            Node::Rows(inner) => inner.read(cursor, row),
            Node::Literal(text) if cursor.passes(text) => Ok(()),
            Node::Literal(_) => Err(Mismatch),
            Node::Null => cursor.word(b"null"),
        }
    }

    /// Whether an equal value in the next row need not be read.
    pub fn is_stable(&self) -> bool {
        match self {
            Node::Literal(_) | Node::Null => true,
            Node::Column(column) => column.is_stable(),
            Node::Object(_) | Node::Rows(_) => false,
        }
    }
}
