//! A column while it is read: its cells and their validity.

use crate::base64;
use crate::bitmap::Absent;
use crate::cells::Cells;
use crate::cursor::{Cursor, Fit, Mismatch};
use crate::text::{self, unescaped};
use crate::values::{
    boolean, choice, decimal, double, integer, numbered, plain_decimal, plain_double,
    plain_integer, raw, single,
};

pub struct Column {
    pub cells: Cells,
    placeholders: Placeholders,
    absent: Absent,
    /// Rows so far, including skipped ones.
    length: usize,
    /// The template revision that the latest value's text is part of, zero if the value was read.
    revision: usize,
    left_out: Vec<u32>,
    lacking: Vec<[u32; 2]>,
    /// Bytes of all cells in the previous reading, and of one of them, rounded up.
    before: usize,
    usual: usize,
}

/// A finished column.
pub struct Finished {
    pub cells: Cells,
    pub validity: Option<Vec<u8>>,
    pub nulls: usize,
    /// Fields that were present, null or not.
    pub seen: usize,
    pub left_out: Vec<u32>,
    /// Ranges of rows without the field: the first row, and the row after the last.
    pub lacking: Vec<[u32; 2]>,
}

/// The result of reading a value.
enum Outcome {
    Cell,
    Null,
    LeftOut,
}

impl Column {
    pub fn new(cells: Cells, placeholders: Vec<Vec<u8>>) -> Self {
        Column {
            cells,
            placeholders: Placeholders::new(placeholders),
            absent: Absent::default(),
            length: 0,
            revision: 0,
            left_out: Vec::new(),
            lacking: Vec::new(),
            before: 0,
            usual: 0,
        }
    }

    /// Clears the column and reserves space for this many rows.
    pub fn start(&mut self, rows: usize) {
        self.take();
        // One long cell may be followed by many short ones: the previous size bounds the estimate.
        let bytes = (rows * self.usual).min(2 * self.before);
        self.cells.reserve(rows, bytes);
    }

    /// Returns the column of all rows.
    pub fn finish(&mut self, rows: usize) -> Fit<Finished> {
        self.pad(rows)?;
        if let Cells::Text(pieces) | Cells::Base64(pieces) | Cells::Raw(pieces) = &self.cells {
            self.before = pieces.data.len();
            self.usual = self.before.div_ceil(rows.max(1));
        }
        Ok(self.take())
    }

    fn take(&mut self) -> Finished {
        let rows = std::mem::take(&mut self.length);
        self.revision = 0;
        let absent = std::mem::take(&mut self.absent);
        let lacking = std::mem::take(&mut self.lacking);
        let lacked: usize = lacking
            .iter()
            .map(|[start, end]| (end - start) as usize)
            .sum();
        Finished {
            cells: self.cells.emptied(),
            nulls: absent.count,
            validity: absent.validity(rows),
            seen: rows - lacked,
            left_out: std::mem::take(&mut self.left_out),
            lacking,
        }
    }

    /// Reads the value of a row in its usual form; false without effect for any other value.
    #[inline(always)]
    pub fn passes(&mut self, cursor: &mut Cursor, row: usize) -> bool {
        if self.length != row && self.pad(row).is_err() {
            return false;
        }
        let passed = match &mut self.cells {
            Cells::Int64(range, values) => plain_integer(cursor, *range, |v| values.push(v)),
            Cells::Int32(range, values) => plain_integer(cursor, *range, |v| values.push(v as i32)),
            Cells::Text(pieces) => {
                let start = pieces.data.len();
                let mut ahead = *cursor;
                let is_plain = text::append_plain(&mut ahead, &mut pieces.data);
                if !is_plain
                    || self.placeholders.contain(&pieces.data[start..])
                    || pieces.close().is_err()
                {
                    pieces.data.truncate(start);
                    return false;
                }
                *cursor = ahead;
                true
            }
            Cells::Decimal {
                precision,
                scale,
                values,
            } => cursor.lend(|lent| plain_decimal(lent, *precision, *scale, values)),
            Cells::Float64(_, values) => cursor.lend(|lent| plain_double(lent, values)),
            Cells::Choice(texts, values) => match cursor.lend(|lent| choice(lent, texts)) {
                Ok(choice) => {
                    values.push(choice);
                    true
                }
                Err(Mismatch) => false,
            },
            _ => false,
        };
        if passed {
            self.length = row + 1;
        }
        passed
    }

    /// Reads the value of a row.
    #[inline(never)]
    pub fn read(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        if self.length != row {
            self.pad(row)?;
        }
        self.length = row + 1;
        self.revision = 0;
        match self.read_cell(cursor, row)? {
            Outcome::Cell => Ok(()),
            Outcome::Null => self.add_absent(row, 1),
            Outcome::LeftOut => {
                self.left_out.push(row as u32);
                self.add_absent(row, 1)
            }
        }
    }

    /// Whether `repeat` may replace reading the same text once more.
    pub fn is_stable(&self) -> bool {
        matches!(self.cells, Cells::Runs(_))
    }

    /// Repeats a known text; the text for a `revision` is always the same.
    #[inline(always)]
    pub fn repeat(&mut self, row: usize, text: &[u8], revision: usize) -> Fit<()> {
        if self.length == row && self.revision == revision {
            self.length = row + 1;
            return Ok(());
        }
        self.repeat_at_last(row, text, revision)
    }

    #[inline(never)]
    fn repeat_at_last(&mut self, row: usize, text: &[u8], revision: usize) -> Fit<()> {
        self.pad(row)?;
        self.length = row + 1;
        self.revision = revision;
        if let Cells::Runs(runs) = &mut self.cells {
            runs.push(row, Some(text));
        }
        Ok(())
    }

    #[inline(never)]
    fn pad(&mut self, rows: usize) -> Fit<()> {
        let count = rows - self.length;
        if count > 0 {
            self.lacking.push([self.length as u32, rows as u32]);
            self.add_absent(self.length, count)?;
            self.length = rows;
            self.revision = 0;
        }
        Ok(())
    }

    #[inline(never)]
    fn add_absent(&mut self, start: usize, count: usize) -> Fit<()> {
        self.absent.add(start, count);
        self.cells.pad(start, count)
    }

    fn read_cell(&mut self, cursor: &mut Cursor, row: usize) -> Fit<Outcome> {
        let keeps_null = matches!(
            self.cells,
            Cells::Raw(_) | Cells::Runs(_) | Cells::Choice(..)
        );
        if !keeps_null && cursor.null()? {
            return Ok(Outcome::Null);
        }
        match &mut self.cells {
            Cells::Int8(range, values) => values.push(integer(cursor, *range)? as i8),
            Cells::Int16(range, values) => values.push(integer(cursor, *range)? as i16),
            Cells::Int32(range, values) => values.push(integer(cursor, *range)? as i32),
            Cells::Int64(range, values) => values.push(integer(cursor, *range)?),
            Cells::Text(pieces) => {
                let start = pieces.data.len();
                text::append(cursor, &mut pieces.data)?;
                if self.placeholders.contain(&pieces.data[start..]) {
                    pieces.data.truncate(start);
                    return Ok(Outcome::LeftOut);
                }
                pieces.close()?;
            }
            Cells::Choice(texts, values) => values.push(choice(cursor, texts)?),
            Cells::Float32(special, values) => values.push(single(cursor, *special)?),
            Cells::Float64(special, values) => values.push(double(cursor, *special)?),
            Cells::Boolean(bits) => bits.push(boolean(cursor)?),
            Cells::Base64(pieces) => {
                let text = unescaped(cursor)?;
                if self.placeholders.contain(text) {
                    return Ok(Outcome::LeftOut);
                }
                base64::append(text, &mut pieces.data)?;
                pieces.close()?;
            }
            Cells::Decimal {
                precision,
                scale,
                values,
            } => values.push(decimal(cursor, *precision, *scale)?),
            Cells::Unscaled(values) => {
                let text = unescaped(cursor)?;
                if self.placeholders.contain(text) {
                    return Ok(Outcome::LeftOut);
                }
                values.push(base64::unscaled(text)?);
            }
            Cells::Numbered {
                separator,
                longest,
                heads,
                numbers,
            } => {
                let (head, number) = numbered(unescaped(cursor)?, *separator, *longest)?;
                heads.push(row, Some(head));
                numbers.push(number);
            }
            Cells::Raw(pieces) => {
                pieces.data.extend_from_slice(raw(cursor)?);
                pieces.close()?;
            }
            Cells::Runs(runs) => runs.push(row, Some(raw(cursor)?)),
        }
        Ok(Outcome::Cell)
    }
}

/// Texts that are placeholders for a value left out by the source.
struct Placeholders {
    texts: Vec<Vec<u8>>,
    /// A bit for the length of each placeholder, modulo 64.
    lengths: u64,
}

impl Placeholders {
    fn new(texts: Vec<Vec<u8>>) -> Self {
        let lengths = texts
            .iter()
            .fold(0, |bits, text| bits | 1 << (text.len() % 64));
        Placeholders { texts, lengths }
    }

    #[inline(always)]
    fn contain(&self, text: &[u8]) -> bool {
        self.lengths >> (text.len() % 64) & 1 != 0 && self.texts.iter().any(|other| other == text)
    }
}
