//! Arrow arrays under construction, of any nesting.

use crate::bitmap::{Absent, Bitmap};
use crate::cells::Pieces;
use crate::cursor::{Fit, Mismatch};

/// The values of an array by type, in the layout of Arrow.
pub enum Values {
    Null,
    Boolean(Bitmap),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    /// Bytes or UTF-8 text.
    Bytes(Pieces),
    /// The values are those of the children.
    Struct,
    /// The offsets of lists; their items are the only child.
    List(Vec<i32>),
}

pub struct Array {
    pub values: Values,
    pub children: Vec<Array>,
    pub length: usize,
    absent: Absent,
}

impl Array {
    pub fn new(values: Values, children: Vec<Array>) -> Self {
        Array {
            values,
            children,
            length: 0,
            absent: Absent::default(),
        }
    }

    /// Clears the array and reserves space for this many values.
    pub fn start(&mut self, rows: usize) {
        self.length = 0;
        self.absent = Absent::default();
        match &mut self.values {
            Values::Null | Values::Struct => {}
            Values::Boolean(bits) => *bits = Bitmap::default(),
            Values::Int32(values) => *values = Vec::with_capacity(rows),
            Values::Int64(values) => *values = Vec::with_capacity(rows),
            Values::Float32(values) => *values = Vec::with_capacity(rows),
            Values::Float64(values) => *values = Vec::with_capacity(rows),
            Values::Bytes(pieces) => {
                *pieces = Pieces::default();
                pieces.offsets.reserve(rows + 1);
                pieces.offsets.push(0);
            }
            Values::List(offsets) => {
                *offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
            }
        }
        for child in &mut self.children {
            child.start(rows);
        }
    }

    /// Appends a null.
    pub fn push_null(&mut self) -> Fit<()> {
        self.absent.add(self.length, 1);
        self.length += 1;
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(bits) => bits.push(false),
            Values::Int32(values) => values.push(0),
            Values::Int64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Bytes(pieces) => pieces.close()?,
            Values::List(_) => self.close_list()?,
            Values::Struct => {
                for child in &mut self.children {
                    child.push_null()?;
                }
            }
        }
        Ok(())
    }

    /// Appends bytes or a text.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Fit<()> {
        let Values::Bytes(pieces) = &mut self.values else {
            return Err(Mismatch);
        };
        pieces.data.extend_from_slice(bytes);
        self.length += 1;
        pieces.close()
    }

    /// Ends a list after the items that were appended to the child.
    pub fn close_list(&mut self) -> Fit<()> {
        let Values::List(offsets) = &mut self.values else {
            return Err(Mismatch);
        };
        let items = self.children[0].length;
        offsets.push(i32::try_from(items).map_err(|_| Mismatch)?);
        Ok(())
    }

    /// Removes all values from the index `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.length = length;
        self.absent.truncate(length);
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(bits) => bits.truncate(length),
            Values::Int32(values) => values.truncate(length),
            Values::Int64(values) => values.truncate(length),
            Values::Float32(values) => values.truncate(length),
            Values::Float64(values) => values.truncate(length),
            Values::Bytes(pieces) => {
                pieces.offsets.truncate(length + 1);
                pieces.data.truncate(pieces.offsets[length] as usize);
            }
            Values::List(offsets) => {
                offsets.truncate(length + 1);
                self.children[0].truncate(offsets[length] as usize);
            }
            Values::Struct => {
                for child in &mut self.children {
                    child.truncate(length);
                }
            }
        }
    }

    /// Returns the number of nulls, and the validity bits unless it is zero.
    pub fn validity(&self) -> (usize, Option<Vec<u8>>) {
        (self.absent.count, self.absent.validity(self.length))
    }
}
