//! Objects whose fields are known: which of them are columns, and what all others must be.

use std::collections::HashMap;

use crate::column::{Column, Finished};
use crate::cursor::{Cursor, Fit, Misfit, Piece};
use crate::rows::Rows;
use crate::skip;
use crate::text::unescaped;

/// What a field holds.
pub enum Node {
    /// This JSON text and no other.
    Literal(Piece),
    /// Null and nothing else.
    Null,
    Object(Box<Object>),
    Rows(Box<Rows>),
    Column(Box<Column>),
}

pub struct Field {
    pub name: Vec<u8>,
    pub required: bool,
    pub node: Node,
    /// One more than the latest row that had the field.
    seen: usize,
}

impl Field {
    pub fn new(name: Vec<u8>, required: bool, node: Node) -> Self {
        Field {
            name,
            required,
            node,
            seen: 0,
        }
    }
}

/// A field as it was written at one place of the latest object: `"name":`, and which it was.
struct Guess {
    token: Piece,
    field: Option<usize>,
}

pub struct Object {
    nullable: bool,
    /// Whether fields that are not known do not fit.
    closed: bool,
    pub fields: Vec<Field>,
    by_name: HashMap<Vec<u8>, usize>,
    required: usize,
    /// Texts of one origin have their fields in one order.
    order: Vec<Guess>,
    presence: Vec<u8>,
    seen: usize,
}

/// What is finished, by the names that lead to it.
pub type Outputs = Vec<(Vec<String>, Output)>;

pub enum Output {
    /// One byte a row: whether the object was there, and how often it was.
    Presence(Vec<u8>, usize),
    /// How many objects each text had, and all of them together.
    Counts(Vec<u32>, usize),
    Column(Finished),
}

impl Object {
    pub fn new(nullable: bool, closed: bool, fields: Vec<Field>) -> Self {
        let by_name = fields
            .iter()
            .enumerate()
            .map(|(i, f)| (f.name.clone(), i))
            .collect();
        let required = fields.iter().filter(|field| field.required).count();
        let (order, presence) = (Vec::new(), Vec::new());
        Object {
            nullable,
            closed,
            fields,
            by_name,
            required,
            order,
            presence,
            seen: 0,
        }
    }

    /// Forgets what was read, and makes room for so many rows.
    pub fn start(&mut self, rows: usize) {
        self.presence = Vec::with_capacity(rows);
        self.seen = 0;
        for field in &mut self.fields {
            field.seen = 0;
            match &mut field.node {
                Node::Object(object) => object.start(rows),
                Node::Rows(inner) => inner.start(rows),
                Node::Column(column) => column.start(rows),
                Node::Literal(_) | Node::Null => {}
            }
        }
    }

    /// Hands over what was read.
    pub fn finish(&mut self, rows: usize, path: &[String], outputs: &mut Outputs) -> Fit<()> {
        self.presence.resize(rows, 0);
        let presence = std::mem::take(&mut self.presence);
        outputs.push((path.to_vec(), Output::Presence(presence, self.seen)));
        self.finish_fields(rows, path, outputs)
    }

    /// Hands over what was read of the fields.
    pub fn finish_fields(
        &mut self,
        rows: usize,
        path: &[String],
        outputs: &mut Outputs,
    ) -> Fit<()> {
        for field in &mut self.fields {
            let mut path = path.to_vec();
            path.push(String::from_utf8_lossy(&field.name).into_owned());
            match &mut field.node {
                Node::Object(object) => object.finish(rows, &path, outputs)?,
                Node::Rows(inner) => inner.finish(rows, &path, outputs)?,
                Node::Column(column) => outputs.push((path, Output::Column(column.finish(rows)?))),
                Node::Literal(_) | Node::Null => {}
            }
        }
        Ok(())
    }

    /// Reads the object of a row.
    pub fn read(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        if self.nullable && cursor.null()? {
            return Ok(());
        }
        cursor.expect(b'{')?;
        if self.presence.len() < row {
            self.presence.resize(row, 0);
        }
        self.presence.push(1);
        self.seen += 1;
        cursor.blanks();
        let mut required = 0;
        if cursor.peek() == b'}' {
            cursor.at += 1;
        } else {
            required = cursor.lend(|lent| self.read_fields(lent, row))?;
        }
        if required == self.required {
            Ok(())
        } else {
            Err(Misfit)
        }
    }

    /// How many required fields there were.
    #[inline(never)]
    fn read_fields(&mut self, start: &mut Cursor, row: usize) -> Fit<usize> {
        let mut cursor = *start;
        let mut required = 0;
        let mut place = 0;
        loop {
            match self.name(&mut cursor, place)? {
                None => skip::value(&mut cursor)?,
                Some(index) => {
                    let field = &mut self.fields[index];
                    if field.seen == row + 1 {
                        return Err(Misfit);
                    }
                    field.seen = row + 1;
                    required += field.required as usize;
                    match &mut field.node {
                        Node::Column(column) => column.read(&mut cursor, row)?,
                        Node::Object(object) => cursor.lend(|lent| object.read(lent, row))?,
                        Node::Rows(inner) => cursor.lend(|lent| inner.read(lent, row))?,
                        Node::Literal(text) => {
                            if !cursor.passes(text) {
                                return Err(Misfit);
                            }
                        }
                        Node::Null => cursor.word(b"null")?,
                    }
                }
            }
            place += 1;
            if !cursor.more(b'}')? {
                *start = cursor;
                return Ok(required);
            }
        }
    }

    /// Moves behind a name and its colon; none if it is not known.
    #[inline(always)]
    fn name(&mut self, cursor: &mut Cursor, place: usize) -> Fit<Option<usize>> {
        if let Some(guess) = self.order.get(place)
            && cursor.passes(&guess.token)
        {
            cursor.blanks();
            return Ok(guess.field);
        }
        cursor.lend(|lent| self.unexpected_name(lent, place))
    }

    #[cold]
    fn unexpected_name(&mut self, cursor: &mut Cursor, place: usize) -> Fit<Option<usize>> {
        cursor.blanks();
        let start = cursor.at;
        let name = unescaped(cursor)?;
        let mut token = cursor.since(start).to_vec();
        cursor.blanks();
        cursor.expect(b':')?;
        cursor.blanks();
        let field = self.by_name.get(name).copied();
        if field.is_none() && self.closed {
            return Err(Misfit);
        }
        token.push(b':');
        let guess = Guess {
            token: Piece::new(token),
            field,
        };
        match self.order.get_mut(place) {
            Some(old) => *old = guess,
            None => self.order.push(guess),
        }
        Ok(field)
    }
}
