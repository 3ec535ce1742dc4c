//! Read Avro messages that have one writer schema into Arrow arrays.

use crate::arrays::{Array, Values};
use crate::bitmap::Bitmap;
use crate::cells::Pieces;
use crate::cursor::Mismatch;

/// A type of the schema.
pub enum Node {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    /// The symbols.
    Enum(Vec<Vec<u8>>),
    /// A union of null, at this branch index, and one other type.
    Nullable(bool, Box<Node>),
    /// Any other union, which can only be skipped.
    Union(Vec<Node>),
    /// The types of the fields, each with whether it is requested.
    Record(Vec<(bool, Node)>),
    /// An array, or a map, whose items are records of a key and a value.
    Items(Box<Items>),
}

/// The items of an array or map.
pub struct Items {
    pub item: Node,
    /// The number of cells that each item takes from the budget.
    pub cells: i64,
    /// Whether items take no bytes.
    pub empty: bool,
}

/// Why a message cannot be read.
pub enum Failure {
    /// The message does not match the schema.
    Invalid,
    /// The message has more cells than its budget.
    Budget,
    /// The arrays become larger than Arrow allows.
    Size,
}

impl From<Mismatch> for Failure {
    fn from(_: Mismatch) -> Self {
        Failure::Size
    }
}

type Read<T> = Result<T, Failure>;

/// The unread bytes of a message, and its remaining cell budget.
pub struct Message<'a> {
    pub rest: &'a [u8],
    pub cells: i64,
}

impl<'a> Message<'a> {
    #[inline]
    fn take(&mut self, size: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(Failure::Invalid)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const SIZE: usize>(&mut self) -> Read<[u8; SIZE]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Failure::Invalid)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a zigzag-encoded integer.
    #[inline]
    fn varint(&mut self) -> Read<i64> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().enumerate().take(10) {
            if index == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Failure::Invalid)
    }

    #[inline]
    fn sized(&mut self) -> Read<&'a [u8]> {
        let size = usize::try_from(self.varint()?).map_err(|_| Failure::Invalid)?;
        self.take(size)
    }

    /// Reads the index of one of `count` symbols or branches.
    fn choice(&mut self, count: usize) -> Read<usize> {
        let index = usize::try_from(self.varint()?).map_err(|_| Failure::Invalid)?;
        if index < count {
            Ok(index)
        } else {
            Err(Failure::Invalid)
        }
    }

    /// Reads the number of items in the next block, zero after the last.
    fn block(&mut self, items: &Items) -> Read<i64> {
        let mut count = self.varint()?;
        if count < 0 {
            self.varint()?; // the size of the block in bytes
            count = count.checked_neg().ok_or(Failure::Invalid)?;
        }
        if !items.empty && count > self.rest.len() as i64 {
            return Err(Failure::Invalid);
        }
        if count > self.cells / items.cells {
            return Err(Failure::Budget);
        }
        self.cells -= count * items.cells;
        Ok(count)
    }
}

impl Node {
    /// Returns an empty array for the values of the node; None for a union.
    pub fn array(&self) -> Option<Array> {
        let values = match self {
            Node::Null => Values::Null,
            Node::Boolean => Values::Boolean(Bitmap::default()),
            Node::Int => Values::Int32(Vec::new()),
            Node::Long => Values::Int64(Vec::new()),
            Node::Float => Values::Float32(Vec::new()),
            Node::Double => Values::Float64(Vec::new()),
            Node::Bytes | Node::Text | Node::Fixed(_) | Node::Enum(_) => {
                Values::Bytes(Pieces::default())
            }
            Node::Nullable(_, inner) => return inner.array(),
            Node::Union(_) => return None,
            Node::Record(fields) => {
                let requested = fields.iter().filter(|(requested, _)| *requested);
                let children = requested.map(|(_, field)| field.array());
                return Some(Array::new(Values::Struct, children.collect::<Option<_>>()?));
            }
            Node::Items(items) => {
                return Some(Array::new(
                    Values::List(Vec::new()),
                    vec![items.item.array()?],
                ));
            }
        };
        Some(Array::new(values, Vec::new()))
    }

    /// Reads a value, and appends it to the array, if there is one.
    pub fn read(&self, message: &mut Message, array: Option<&mut Array>) -> Read<()> {
        match self {
            Node::Null => {
                if let Some(array) = array {
                    array.push_null()?;
                }
            }
            Node::Boolean => match message.array()? {
                [byte @ 0..=1] => {
                    if let Some((Values::Boolean(bits), length)) = parts(array) {
                        bits.push(byte == 1);
                        *length += 1;
                    }
                }
                _ => return Err(Failure::Invalid),
            },
            Node::Int => {
                let value = i32::try_from(message.varint()?).map_err(|_| Failure::Invalid)?;
                if let Some((Values::Int32(values), length)) = parts(array) {
                    values.push(value);
                    *length += 1;
                }
            }
            Node::Long => {
                let value = message.varint()?;
                if let Some((Values::Int64(values), length)) = parts(array) {
                    values.push(value);
                    *length += 1;
                }
            }
            Node::Float => {
                let value = f32::from_le_bytes(message.array()?);
                if let Some((Values::Float32(values), length)) = parts(array) {
                    values.push(value);
                    *length += 1;
                }
            }
            Node::Double => {
                let value = f64::from_le_bytes(message.array()?);
                if let Some((Values::Float64(values), length)) = parts(array) {
                    values.push(value);
                    *length += 1;
                }
            }
            Node::Bytes => append(array, message.sized()?)?,
            Node::Text => {
                let text = message.sized()?;
                simdutf8::basic::from_utf8(text).map_err(|_| Failure::Invalid)?;
                append(array, text)?;
            }
            Node::Fixed(size) => append(array, message.take(*size)?)?,
            Node::Enum(symbols) => append(array, &symbols[message.choice(symbols.len())?])?,
            Node::Nullable(null_first, inner) => {
                if (message.choice(2)? == 0) == *null_first {
                    if let Some(array) = array {
                        array.push_null()?;
                    }
                } else {
                    inner.read(message, array)?;
                }
            }
            Node::Union(branches) => {
                branches[message.choice(branches.len())?].read(message, None)?;
            }
            Node::Record(fields) => read_record(fields, message, array)?,
            Node::Items(items) => read_items(items, message, array)?,
        }
        Ok(())
    }
}

/// The parts of an array to which a value is appended.
#[inline]
fn parts(array: Option<&mut Array>) -> Option<(&mut Values, &mut usize)> {
    array.map(|array| (&mut array.values, &mut array.length))
}

#[inline]
fn append(array: Option<&mut Array>, bytes: &[u8]) -> Read<()> {
    if let Some(array) = array {
        array.push_bytes(bytes)?;
    }
    Ok(())
}

fn read_record(
    fields: &[(bool, Node)],
    message: &mut Message,
    array: Option<&mut Array>,
) -> Read<()> {
    let Some(array) = array else {
        return fields
            .iter()
            .try_for_each(|(_, field)| field.read(message, None));
    };
    let mut children = array.children.iter_mut();
    for (requested, field) in fields {
        field.read(message, if *requested { children.next() } else { None })?;
    }
    array.length += 1;
    Ok(())
}

fn read_items(items: &Items, message: &mut Message, mut array: Option<&mut Array>) -> Read<()> {
    loop {
        let count = message.block(items)?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let child = array.as_deref_mut().map(|array| &mut array.children[0]);
            items.item.read(message, child)?;
        }
    }
    if let Some(array) = array {
        array.close_list()?;
        array.length += 1;
    }
    Ok(())
}

/// A reader of messages, which are records.
pub struct Reader {
    root: Node,
    pub array: Array,
    /// For each message 0, or why it is invalid: 1 does not match the schema, 2 has too many cells.
    pub invalid: Vec<u8>,
}

impl Reader {
    /// Returns None if a requested field contains a union other than with null.
    pub fn new(root: Node) -> Option<Self> {
        let array = root.array()?;
        Some(Reader {
            root,
            array,
            invalid: Vec::new(),
        })
    }

    pub fn start(&mut self, rows: usize) {
        self.array.start(rows);
        self.invalid = Vec::with_capacity(rows);
    }

    /// Reads messages after their first `skip` bytes; values of invalid messages are null.
    ///
    /// The budget of a message is `least` cells, and `per_byte` cells for each byte.
    pub fn read(
        &mut self,
        texts: &[&[u8]],
        skip: usize,
        least: i64,
        per_byte: i64,
    ) -> Result<(), Mismatch> {
        for text in texts {
            let row = self.array.length;
            let mut message = Message {
                rest: &text[skip.min(text.len())..],
                cells: least + per_byte * text.len() as i64,
            };
            let read = self.root.read(&mut message, Some(&mut self.array));
            let failure = match read {
                Ok(()) if message.rest.is_empty() => 0,
                Ok(()) | Err(Failure::Invalid) => 1,
                Err(Failure::Budget) => 2,
                Err(Failure::Size) => return Err(Mismatch),
            };
            self.invalid.push(failure);
            if failure != 0 {
                self.array.truncate(row);
                self.array.push_null()?;
            }
        }
        Ok(())
    }
}
