//! What a field may hold, and the two ways to read it.

use crate::column::Column;
use crate::cursor::{Cursor, Fit, Misfit, Piece};
use crate::object::Object;
use crate::rows::Rows;

/// What a field holds.
pub enum Node {
    /// This JSON text and no other.
    Literal(Box<Piece>),
    /// Null and nothing else.
    Null,
    Object(Box<Object>),
    Rows(Box<Rows>),
    Column(Box<Column>),
}

impl Node {
    /// Reads the value of a row: as most are at once, all others at length.
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

    /// Reads the value of an object that is not as the latest one.
    #[inline(never)]
    pub fn read_unlike(&mut self, cursor: &mut Cursor, row: usize, at_length: bool) -> Fit<()> {
        if at_length {
            self.read_any(cursor, row)
        } else {
            self.read(cursor, row)
        }
    }

    /// The same at length, after blanks.
    #[inline(never)]
    fn read_any(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        cursor.blanks();
        match self {
            Node::Column(column) => column.read(cursor, row),
            Node::Object(object) => object.read(cursor, row),
            Node::Rows(inner) => inner.read(cursor, row),
            Node::Literal(text) if cursor.passes(text) => Ok(()),
            Node::Literal(_) => Err(Misfit),
            Node::Null => cursor.word(b"null"),
        }
    }

    /// Whether the same value in the next row needs no reading.
    pub fn is_steady(&self) -> bool {
        match self {
            Node::Literal(_) | Node::Null => true,
            Node::Column(column) => column.is_steady(),
            Node::Object(_) | Node::Rows(_) => false,
        }
    }
}
