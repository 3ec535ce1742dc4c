//! Objects with known fields: some are columns, others must have given values.

use std::collections::HashMap;

use crate::column::Finished;
use crate::cursor::{Cursor, Fit, Mismatch};
use crate::node::Node;
use crate::skip::{self, SkippedObjects};
use crate::template::{FieldPosition, Template, Then};
use crate::text::unescaped;

pub struct Field {
    pub name: Vec<u8>,
    pub required: bool,
    pub node: Node,
    /// One more than the latest row with the field.
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

pub struct Object {
    nullable: bool,
    /// Whether unknown fields are a mismatch.
    closed: bool,
    pub fields: Vec<Field>,
    by_name: HashMap<Vec<u8>, usize>,
    required: usize,
    template: Template,
    presence: Vec<u8>,
    skipped: SkippedObjects,
    seen: usize,
}

/// Finished columns, by the path of field names.
pub type Outputs = Vec<(Vec<String>, Output)>;

pub enum Output {
    /// One byte a row: whether the object was present, and presence counts.
    Presence(Vec<u8>, usize),
    /// The number of objects in each text, and their total.
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
        let (template, presence) = (Template::default(), Vec::new());
        Object {
            nullable,
            closed,
            fields,
            by_name,
            required,
            template,
            presence,
            skipped: SkippedObjects::default(),
            seen: 0,
        }
    }

    /// Clears all columns and reserves space for this many rows.
    pub fn start(&mut self, rows: usize) {
        self.presence = Vec::with_capacity(rows);
        self.seen = 0;
        self.template.forget();
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

    /// Returns the finished columns.
    pub fn finish(&mut self, rows: usize, path: &[String], outputs: &mut Outputs) -> Fit<()> {
        self.presence.resize(rows, 0);
        let presence = std::mem::take(&mut self.presence);
        outputs.push((path.to_vec(), Output::Presence(presence, self.seen)));
        self.finish_fields(rows, path, outputs)
    }

    /// Returns the finished columns of the fields.
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
        self.read_present(cursor, row)
    }

    /// Reads an object that is not null.
    #[inline(always)]
    pub fn read_present(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        if self.presence.len() != row {
            self.presence.resize(row, 0);
        }
        self.presence.push(1);
        self.seen += 1;
        self.read_fields(cursor, row)
    }

    /// Reads an object along the template, up to the first difference.
    #[inline(never)]
    fn read_fields(&mut self, start: &mut Cursor, row: usize) -> Fit<()> {
        let mut cursor = *start;
        for (number, step) in self.template.steps.iter().enumerate() {
            if !cursor.passes(&step.text) {
                *start = cursor;
                return self.read_unlike(start, row, number);
            }
            for (field, value) in &step.repeated {
                if let Node::Column(column) = &mut self.fields[*field].node {
                    column.repeat(row, value, self.template.revision())?;
                }
            }
            match step.then {
                Then::Skip if skip::passes(&mut cursor) => {}
                Then::Skip => {
                    cursor.blanks();
                    cursor.lend(|lent| self.skipped.skip(lent))?;
                }
                Then::Field(index) => {
                    self.fields[index].node.read(&mut cursor, row)?;
                }
                Then::End => {
                    *start = cursor;
                    return Ok(());
                }
            }
        }
        *start = cursor;
        self.read_unlike(start, row, 0)
    }

    /// Reads an object field by field, from the template step where it differs.
    #[inline(never)]
    fn read_unlike(&mut self, start: &mut Cursor, row: usize, number: usize) -> Fit<()> {
        let mut required = 0;
        for step in &self.template.steps[..number] {
            for &index in &step.named {
                self.fields[index].seen = row + 1;
                required += usize::from(self.fields[index].required);
            }
        }
        let mut position = self.template.steps.get(number).map_or(0, |step| step.first);
        let mut cursor = *start;
        let mut lead = cursor.at;
        let learns = self.template.learns();
        // The first object is read in full: it is the template for the others.
        let is_first = self.template.revision() == 0;
        while Self::goes_on(&mut cursor, position)? {
            let field = self.name(&mut cursor, position)?;
            let value = cursor.at;
            let mut stable = true;
            match field {
                None if !is_first && skip::passes(&mut cursor) => {}
                None => cursor.lend(|lent| self.skipped.skip(lent))?,
                Some(index) => {
                    let field = &mut self.fields[index];
                    if field.seen == row + 1 {
                        return Err(Mismatch);
                    }
                    field.seen = row + 1;
                    required += usize::from(field.required);
                    cursor.lend(|lent| field.node.read_unlike(lent, row, is_first))?;
                    stable = field.node.is_stable();
                }
            }
            if learns {
                let (lead, value) = (cursor.between(lead, value), cursor.since(value));
                self.template.note(position, lead, value, stable);
            }
            lead = cursor.at;
            position += 1;
        }
        if required != self.required {
            return Err(Mismatch);
        }
        if learns {
            let fields = &self.fields;
            let is_cell = |index: usize| matches!(fields[index].node, Node::Column(_));
            self.template.learn(position, cursor.since(lead), is_cell);
        }
        *start = cursor;
        Ok(())
    }

    /// Moves to the name of the next field; false after the end of the object.
    #[inline(always)]
    fn goes_on(cursor: &mut Cursor, position: usize) -> Fit<bool> {
        if position > 0 {
            return cursor.more(b'}');
        }
        cursor.expect(b'{')?;
        cursor.blanks();
        let is_empty = cursor.peek() == b'}';
        cursor.at += usize::from(is_empty);
        Ok(!is_empty)
    }

    /// Skips a name and its colon; None if the name is unknown.
    #[inline(always)]
    fn name(&mut self, cursor: &mut Cursor, position: usize) -> Fit<Option<usize>> {
        cursor.blanks();
        if let Some(known) = self.template.positions.get(position)
            && cursor.passes(&known.token)
        {
            cursor.blanks();
            return Ok(known.field);
        }
        cursor.lend(|lent| self.unexpected_name(lent, position))
    }

    #[cold]
    fn unexpected_name(&mut self, cursor: &mut Cursor, position: usize) -> Fit<Option<usize>> {
        let start = cursor.at;
        let name = unescaped(cursor)?;
        let mut token = cursor.since(start).to_vec();
        cursor.blanks();
        cursor.expect(b':')?;
        cursor.blanks();
        let field = self.by_name.get(name).copied();
        if field.is_none() && self.closed {
            return Err(Mismatch);
        }
        token.push(b':');
        let renewed = FieldPosition::new(token, field);
        match self.template.positions.get_mut(position) {
            Some(old) => *old = renewed,
            None => self.template.positions.push(renewed),
        }
        Ok(field)
    }
}
