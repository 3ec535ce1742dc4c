//! A plan reads many texts, block by block, into columns.

use crate::cursor::{Cursor, Fit, Mismatch};
use crate::object::{Object, Outputs};

/// The fields to read from JSON texts, with their columns.
pub struct Plan {
    root: Object,
}

impl Plan {
    pub fn new(root: Object) -> Self {
        Plan { root }
    }

    /// Clears all columns and reserves space for this many texts.
    pub fn start(&mut self, rows: usize) {
        self.root.start(rows);
    }

    /// Reads the texts of the rows from `start` on, without `prefix` and `suffix` of each.
    pub fn read(&mut self, start: usize, texts: &[&[u8]], prefix: &[u8], suffix: &[u8]) -> Fit<()> {
        for (row, text) in (start..).zip(texts) {
            let inner = text
                .strip_prefix(prefix)
                .and_then(|text| text.strip_suffix(suffix));
            let inner = inner.ok_or(Mismatch)?;
            // From here on, the bytes between any two ASCII characters are valid UTF-8.
            simdutf8::basic::from_utf8(inner).map_err(|_| Mismatch)?;
            let mut cursor = Cursor::new(inner);
            cursor.blanks();
            self.root.read(&mut cursor, row)?;
            cursor.end()?;
        }
        Ok(())
    }

    /// Returns the finished columns of this many texts.
    pub fn finish(&mut self, rows: usize) -> Fit<Outputs> {
        let mut outputs = Outputs::new();
        self.root.finish(rows, &[], &mut outputs)?;
        Ok(outputs)
    }
}
