//! The cells of columns by type, in the layout of Arrow.

use crate::bitmap::Bitmap;
use crate::cursor::{Fit, FixedText, Mismatch};
use crate::runs::Runs;

/// Integers are divided, rounding down, and must then be from `low` to `high`.
#[derive(Clone, Copy)]
pub struct Range {
    pub divisor: i64,
    pub low: i64,
    pub high: i64,
}

/// Cells of variable length, concatenated.
#[derive(Default)]
pub struct Pieces {
    pub offsets: Vec<i32>,
    pub data: Vec<u8>,
}

impl Pieces {
    #[inline(always)]
    pub fn close(&mut self) -> Fit<()> {
        self.offsets
            .push(i32::try_from(self.data.len()).map_err(|_| Mismatch)?);
        Ok(())
    }
}

/// The type of a column, with its cells.
#[repr(u8)] // an explicit tag is read faster than one encoded in a capacity
pub enum Cells {
    Int8(Range, Vec<i8>),
    Int16(Range, Vec<i16>),
    Int32(Range, Vec<i32>),
    Int64(Range, Vec<i64>),
    /// The flag: NaN and the infinities are written as texts.
    Float32(bool, Vec<f32>),
    Float64(bool, Vec<f64>),
    Boolean(Bitmap),
    Text(Pieces),
    Base64(Pieces),
    Decimal {
        precision: u32,
        scale: u32,
        values: Vec<i128>,
    },
    /// Base64 of big-endian integers.
    Unscaled(Vec<i128>),
    /// The number of one of some JSON texts, from one; zero where the field is missing.
    Choice(Vec<FixedText>, Vec<u8>),
    /// Strings that end in at most this many digits after a separator, or consist of digits.
    Numbered {
        separator: Option<u8>,
        longest: usize,
        heads: Runs,
        numbers: Vec<i64>,
    },
    /// The JSON text unchanged, including null.
    Raw(Pieces),
    /// As `Raw`, but each run of equal texts is stored once.
    Runs(Runs),
}

impl Cells {
    /// Reserves space for this many rows, and for this many bytes of texts.
    pub fn reserve(&mut self, rows: usize, bytes: usize) {
        match self {
            Cells::Int8(_, values) => values.reserve(rows),
            Cells::Int16(_, values) => values.reserve(rows),
            Cells::Int32(_, values) => values.reserve(rows),
            Cells::Int64(_, values) => values.reserve(rows),
            Cells::Float32(_, values) => values.reserve(rows),
            Cells::Float64(_, values) => values.reserve(rows),
            Cells::Boolean(bits) => bits.bytes.reserve(rows / 8 + 1),
            Cells::Decimal { values, .. } | Cells::Unscaled(values) => values.reserve(rows),
            Cells::Choice(_, values) => values.reserve(rows),
            Cells::Numbered { numbers, .. } => numbers.reserve(rows),
            Cells::Text(pieces) | Cells::Base64(pieces) | Cells::Raw(pieces) => {
                pieces.offsets.reserve(rows + 1);
                pieces.offsets.push(0);
                pieces.data.reserve(bytes);
            }
            Cells::Runs(_) => {}
        }
    }

    /// Takes the cells, and leaves empty ones of the same type.
    pub fn emptied(&mut self) -> Cells {
        let empty = match self {
            Cells::Int8(range, _) => Cells::Int8(*range, Vec::new()),
            Cells::Int16(range, _) => Cells::Int16(*range, Vec::new()),
            Cells::Int32(range, _) => Cells::Int32(*range, Vec::new()),
            Cells::Int64(range, _) => Cells::Int64(*range, Vec::new()),
            Cells::Float32(special, _) => Cells::Float32(*special, Vec::new()),
            Cells::Float64(special, _) => Cells::Float64(*special, Vec::new()),
            Cells::Boolean(_) => Cells::Boolean(Bitmap::default()),
            Cells::Decimal {
                precision, scale, ..
            } => Cells::Decimal {
                precision: *precision,
                scale: *scale,
                values: Vec::new(),
            },
            Cells::Unscaled(_) => Cells::Unscaled(Vec::new()),
            Cells::Choice(texts, _) => Cells::Choice(std::mem::take(texts), Vec::new()),
            Cells::Numbered {
                separator, longest, ..
            } => Cells::Numbered {
                separator: *separator,
                longest: *longest,
                heads: Runs::default(),
                numbers: Vec::new(),
            },
            Cells::Text(_) => Cells::Text(Pieces::default()),
            Cells::Base64(_) => Cells::Base64(Pieces::default()),
            Cells::Raw(_) => Cells::Raw(Pieces::default()),
            Cells::Runs(_) => Cells::Runs(Runs::default()),
        };
        std::mem::replace(self, empty)
    }

    /// Appends null cells up to this number of cells.
    pub fn pad(&mut self, length: usize, count: usize) -> Fit<()> {
        match self {
            Cells::Int8(_, values) => values.resize(length + count, 0),
            Cells::Int16(_, values) => values.resize(length + count, 0),
            Cells::Int32(_, values) => values.resize(length + count, 0),
            Cells::Int64(_, values) => values.resize(length + count, 0),
            Cells::Float32(_, values) => values.resize(length + count, 0.0),
            Cells::Float64(_, values) => values.resize(length + count, 0.0),
            Cells::Boolean(bits) => bits.extend(false, count),
            Cells::Decimal { values, .. } | Cells::Unscaled(values) => {
                values.resize(length + count, 0);
            }
            Cells::Choice(_, values) => values.resize(length + count, 0),
            Cells::Numbered { heads, numbers, .. } => {
                heads.push(length, None);
                numbers.resize(length + count, 0);
            }
            Cells::Text(pieces) | Cells::Base64(pieces) | Cells::Raw(pieces) => {
                for _ in 0..count {
                    pieces.close()?;
                }
            }
            Cells::Runs(runs) => runs.push(length, None),
        }
        Ok(())
    }
}
