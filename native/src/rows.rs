//! Arrays of objects, each of which is one row.

use crate::cursor::{Cursor, Fit};
use crate::object::{Object, Output, Outputs};

pub struct Rows {
    object: Object,
    /// The number of objects in each text.
    counts: Vec<u32>,
    total: usize,
}

impl Rows {
    pub fn new(object: Object) -> Self {
        let counts = Vec::new();
        Rows {
            object,
            counts,
            total: 0,
        }
    }

    /// Clears all columns and reserves space for this many rows.
    pub fn start(&mut self, rows: usize) {
        self.counts = Vec::with_capacity(rows);
        self.total = 0;
        self.object.start(rows);
    }

    /// Returns the finished columns, with a cell for each object instead of each text.
    pub fn finish(&mut self, rows: usize, path: &[String], outputs: &mut Outputs) -> Fit<()> {
        self.counts.resize(rows, 0);
        let counts = std::mem::take(&mut self.counts);
        outputs.push((path.to_vec(), Output::Counts(counts, self.total)));
        self.object.finish_fields(self.total, path, outputs)
    }

    /// Reads the array of a text; null is an empty one.
    #[inline(never)]
    pub fn read(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        if cursor.null()? {
            return Ok(());
        }
        cursor.expect(b'[')?;
        cursor.blanks();
        if cursor.peek() == b']' {
            cursor.at += 1;
            return Ok(());
        }
        let before = self.total;
        loop {
            cursor.blanks();
            self.object.read(cursor, self.total)?;
            self.total += 1;
            if !cursor.more(b']')? {
                break;
            }
        }
        self.counts.resize(row, 0);
        self.counts.push((self.total - before) as u32);
        Ok(())
    }
}
