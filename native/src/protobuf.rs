//! Read the simple fields of Protobuf messages of one type into Arrow arrays.
//!
//! Fields of other types are copied, undecoded, into one residual message for each message.

use crate::arrays::{Array, Values};
use crate::bitmap::Bitmap;
use crate::cells::Pieces;
use crate::cursor::{Fit, Mismatch};

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const SIZED: u64 = 2;
const FIXED32: u64 = 5;

/// The type of a value.
pub enum Kind {
    Int32,
    Int64,
    Uint32,
    /// Stored as a signed integer with the same bits.
    Uint64,
    Sint32,
    Sint64,
    Bool,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
    Text,
    Bytes,
    Message(Message),
}

pub struct Field {
    pub number: u64,
    pub kind: Kind,
    pub repeated: bool,
    /// Whether an absent value is null; otherwise it is zero or empty.
    pub presence: bool,
    /// The index of the oneof that contains the field.
    pub oneof: Option<usize>,
}

/// The fields of a message by number.
pub struct Message {
    fields: Vec<Field>,
    /// The numbers of fields that are copied into the residual message, with their oneofs.
    residual: Vec<(u64, Option<usize>)>,
    /// The number of oneofs.
    oneofs: usize,
}

/// An undecoded value.
#[derive(Clone, Copy)]
enum Raw<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Sized(&'a [u8]),
    Fixed32([u8; 4]),
}

struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    #[inline]
    fn varint(&mut self) -> Fit<u64> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7F) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(Mismatch)
    }

    fn array<const SIZE: usize>(&mut self) -> Fit<[u8; SIZE]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Mismatch)?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    fn raw(&mut self, wire: u64) -> Fit<Raw<'a>> {
        Ok(match wire {
            VARINT => Raw::Varint(self.varint()?),
            FIXED64 => Raw::Fixed64(self.array()?),
            FIXED32 => Raw::Fixed32(self.array()?),
            SIZED => {
                let size = usize::try_from(self.varint()?).map_err(|_| Mismatch)?;
                let (taken, rest) = self.rest.split_at_checked(size).ok_or(Mismatch)?;
                self.rest = rest;
                Raw::Sized(taken)
            }
            _ => return Err(Mismatch),
        })
    }
}

impl Kind {
    fn wire(&self) -> u64 {
        match self {
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => FIXED64,
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => FIXED32,
            Kind::Text | Kind::Bytes | Kind::Message(_) => SIZED,
            _ => VARINT,
        }
    }

    fn array(&self) -> Array {
        let values = match self {
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Values::Int32(Vec::new()),
            Kind::Bool => Values::Boolean(Bitmap::default()),
            Kind::Float => Values::Float32(Vec::new()),
            Kind::Double => Values::Float64(Vec::new()),
            Kind::Text | Kind::Bytes => Values::Bytes(Pieces::default()),
            Kind::Message(message) => return message.array(),
            _ => Values::Int64(Vec::new()),
        };
        Array::new(values, Vec::new())
    }

    /// Appends a value to its array.
    fn push(&self, raw: Raw, array: &mut Array) -> Fit<()> {
        match (self, raw, &mut array.values) {
            (Kind::Int32, Raw::Varint(value), Values::Int32(values)) => values.push(value as i32),
            (Kind::Sint32, Raw::Varint(value), Values::Int32(values)) => {
                values.push(unzigzag(value & 0xFFFF_FFFF) as i32);
            }
            (Kind::Int64 | Kind::Uint64, Raw::Varint(value), Values::Int64(values)) => {
                values.push(value as i64);
            }
            (Kind::Uint32, Raw::Varint(value), Values::Int64(values)) => {
                values.push(i64::from(value as u32));
            }
            (Kind::Sint64, Raw::Varint(value), Values::Int64(values)) => {
                values.push(unzigzag(value));
            }
            (Kind::Bool, Raw::Varint(value), Values::Boolean(bits)) => bits.push(value != 0),
            (Kind::Fixed32, Raw::Fixed32(bytes), Values::Int64(values)) => {
                values.push(i64::from(u32::from_le_bytes(bytes)));
            }
            (Kind::Sfixed32, Raw::Fixed32(bytes), Values::Int32(values)) => {
                values.push(i32::from_le_bytes(bytes));
            }
            (Kind::Fixed64 | Kind::Sfixed64, Raw::Fixed64(bytes), Values::Int64(values)) => {
                values.push(i64::from_le_bytes(bytes));
            }
            (Kind::Float, Raw::Fixed32(bytes), Values::Float32(values)) => {
                values.push(f32::from_le_bytes(bytes));
            }
            (Kind::Double, Raw::Fixed64(bytes), Values::Float64(values)) => {
                values.push(f64::from_le_bytes(bytes));
            }
            (Kind::Text, Raw::Sized(text), _) => {
                simdutf8::basic::from_utf8(text).map_err(|_| Mismatch)?;
                return array.push_bytes(text);
            }
            (Kind::Bytes, Raw::Sized(bytes), _) => return array.push_bytes(bytes),
            (Kind::Message(message), Raw::Sized(bytes), _) => {
                return message.read(bytes, array, None);
            }
            _ => return Err(Mismatch),
        }
        array.length += 1;
        Ok(())
    }

    /// Appends zero or an empty value.
    fn push_default(&self, array: &mut Array) -> Fit<()> {
        let zero = match self.wire() {
            VARINT => Raw::Varint(0),
            FIXED64 => Raw::Fixed64([0; 8]),
            FIXED32 => Raw::Fixed32([0; 4]),
            _ => Raw::Sized(&[]),
        };
        self.push(zero, array)
    }

    /// Appends the values of a packed field.
    fn push_packed(&self, bytes: &[u8], array: &mut Array) -> Fit<()> {
        let mut input = Input { rest: bytes };
        while !input.rest.is_empty() {
            self.push(input.raw(self.wire())?, array)?;
        }
        Ok(())
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl Message {
    pub fn new(mut fields: Vec<Field>, residual: Vec<(u64, Option<usize>)>) -> Self {
        fields.sort_by_key(|field| field.number);
        let simple = fields.iter().filter_map(|field| field.oneof);
        let others = residual.iter().filter_map(|(_, oneof)| *oneof);
        let oneofs = simple.chain(others).max().map_or(0, |last| last + 1);
        Message {
            fields,
            residual,
            oneofs,
        }
    }

    /// Returns an empty array of structs with the fields in the order of their numbers.
    pub fn array(&self) -> Array {
        let child = |field: &Field| {
            let array = field.kind.array();
            if field.repeated {
                Array::new(Values::List(Vec::new()), vec![array])
            } else {
                array
            }
        };
        Array::new(Values::Struct, self.fields.iter().map(child).collect())
    }

    /// Returns the index of the field with a number; `guess` is tried first.
    #[inline]
    fn find(&self, number: u64, guess: usize) -> Option<usize> {
        if self
            .fields
            .get(guess)
            .is_some_and(|field| field.number == number)
        {
            return Some(guess);
        }
        let found = self
            .fields
            .binary_search_by_key(&number, |field| field.number);
        found.ok()
    }

    /// Reads a message, and appends its values to the children of an array.
    ///
    /// Fields of `self.residual` are appended to `residual`. It is a mismatch if a value is invalid,
    /// or if a field with an inner message, or a oneof, occurs twice.
    fn read(&self, bytes: &[u8], array: &mut Array, residual: Option<&mut Vec<u8>>) -> Fit<()> {
        let mut input = Input { rest: bytes };
        let mut last: Vec<Option<Raw>> = vec![None; self.fields.len()];
        let mut chosen = vec![false; self.oneofs];
        let mut choose = |oneof: Option<usize>| match oneof {
            Some(index) if std::mem::replace(&mut chosen[index], true) => Err(Mismatch),
            _ => Ok(()),
        };
        let mut copied = residual;
        let mut guess = 0;
        while !input.rest.is_empty() {
            let start = input.rest;
            let tag = input.varint()?;
            let (number, wire) = (tag >> 3, tag & 7);
            let raw = input.raw(wire)?;
            if number == 0 || tag > u64::from(u32::MAX) {
                return Err(Mismatch);
            }
            let Some(index) = self.find(number, guess) else {
                if let Some(copied) = copied.as_deref_mut()
                    && let Some((_, oneof)) = self.residual.iter().find(|it| it.0 == number)
                {
                    choose(*oneof)?;
                    copied.extend_from_slice(&start[..start.len() - input.rest.len()]);
                }
                continue;
            };
            guess = index + 1;
            let field = &self.fields[index];
            let expected = field.kind.wire();
            choose(field.oneof)?;
            match (field.repeated, raw) {
                (true, Raw::Sized(packed)) if expected != SIZED => {
                    field
                        .kind
                        .push_packed(packed, &mut array.children[index].children[0])?;
                }
                (true, _) => field
                    .kind
                    .push(raw, &mut array.children[index].children[0])?,
                (false, _) if wire != expected => return Err(Mismatch),
                (false, _) => {
                    if last[index].is_some() && expected == SIZED {
                        return Err(Mismatch); // the earlier value must be valid, too
                    }
                    last[index] = Some(raw);
                }
            }
        }
        for ((field, raw), child) in self.fields.iter().zip(last).zip(&mut array.children) {
            match raw {
                _ if field.repeated => {
                    child.close_list()?;
                    child.length += 1;
                }
                Some(raw) => field.kind.push(raw, child)?,
                None if field.presence => child.push_null()?,
                None => field.kind.push_default(child)?,
            }
        }
        array.length += 1;
        Ok(())
    }
}

/// A reader of messages of one type.
pub struct Reader {
    root: Message,
    pub array: Array,
    /// The residual messages.
    pub residual: Array,
    /// For each message 0, or 1 if it must be read in another way.
    pub irregular: Vec<u8>,
}

impl Reader {
    pub fn new(root: Message) -> Self {
        let array = root.array();
        let residual = Array::new(Values::Bytes(Pieces::default()), Vec::new());
        Reader {
            root,
            array,
            residual,
            irregular: Vec::new(),
        }
    }

    pub fn start(&mut self, rows: usize) {
        self.array.start(rows);
        self.residual.start(rows);
        self.irregular = Vec::with_capacity(rows);
    }

    /// Reads messages after their first `skip` bytes; values of irregular messages are null.
    pub fn read(&mut self, texts: &[&[u8]], skip: usize) -> Fit<()> {
        let mut copied = Vec::new();
        for text in texts {
            let row = self.array.length;
            copied.clear();
            let bytes = &text[skip.min(text.len())..];
            let read = self.root.read(bytes, &mut self.array, Some(&mut copied));
            self.irregular.push(u8::from(read.is_err()));
            if read.is_err() {
                self.array.truncate(row);
                self.array.push_null()?;
                copied.clear();
            }
            self.residual.push_bytes(&copied)?;
        }
        Ok(())
    }
}
