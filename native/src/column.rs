//! One column as it grows: cells in the layout of Arrow, and which of them are there.

use crate::base64;
use crate::bitmap::{Bitmap, Validity};
use crate::cursor::{Cursor, Fit, Misfit, Piece};
use crate::number;
use crate::runs::Runs;
use crate::skip;
use crate::text::{self, unescaped};

/// Integers are divided, rounding down, and must then be from `low` to `high`.
#[derive(Clone, Copy)]
pub struct Range {
    pub divisor: i64,
    pub low: i64,
    pub high: i64,
}

/// Cells of any length, one behind the other.
#[derive(Default)]
pub struct Pieces {
    pub offsets: Vec<i32>,
    pub data: Vec<u8>,
}

impl Pieces {
    #[inline(always)]
    fn close(&mut self) -> Fit<()> {
        self.offsets
            .push(i32::try_from(self.data.len()).map_err(|_| Misfit)?);
        Ok(())
    }
}

/// The form of a column, with its cells.
pub enum Cells {
    Int8(Range, Vec<i8>),
    Int16(Range, Vec<i16>),
    Int32(Range, Vec<i32>),
    Int64(Range, Vec<i64>),
    /// The flag: NaN and the infinities come as text.
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
    /// Which of some JSON texts it is, counted from one; zero where the field did not come.
    Choice(Vec<Piece>, Vec<u8>),
    /// Strings that end in at most so many digits behind a separator, or are nothing but digits.
    Numbered {
        separator: Option<u8>,
        longest: usize,
        heads: Runs,
        numbers: Vec<i64>,
    },
    /// The JSON text as it came, null too.
    Raw(Pieces),
    /// As `Raw`, each run of equal texts once.
    Runs(Runs),
}

pub struct Column {
    pub cells: Cells,
    marks: Marks,
    validity: Validity,
    /// Rows so far, with those that were passed over.
    length: usize,
    /// Fields that came, null or not.
    seen: usize,
    left_out: Vec<u32>,
    lacking: Vec<[u32; 2]>,
    /// Bytes of all cells in the reading before, and of one of them, rounded up.
    before: usize,
    usual: usize,
}

/// A column that is done.
pub struct Finished {
    pub cells: Cells,
    pub validity: Option<Vec<u8>>,
    pub nulls: usize,
    pub seen: usize,
    pub left_out: Vec<u32>,
    /// First of some rows that did not have the field, and the row behind them.
    pub lacking: Vec<[u32; 2]>,
}

impl Column {
    pub fn new(cells: Cells, marks: Vec<Vec<u8>>) -> Self {
        let validity = Validity::default();
        let marks = Marks::new(marks);
        Column {
            cells,
            marks,
            validity,
            length: 0,
            seen: 0,
            left_out: Vec::new(),
            lacking: Vec::new(),
            before: 0,
            usual: 0,
        }
    }

    /// Empty again, with room for so many rows.
    pub fn start(&mut self, rows: usize) {
        self.take();
        // After one long cell many short ones may come: what came before bounds the guess.
        let bytes = (rows * self.usual).min(2 * self.before);
        reserve(&mut self.cells, rows, bytes);
    }

    /// The column of all rows.
    pub fn finish(&mut self, rows: usize) -> Fit<Finished> {
        self.pad(rows)?;
        if let Cells::Text(pieces) | Cells::Base64(pieces) | Cells::Raw(pieces) = &self.cells {
            self.before = pieces.data.len();
            self.usual = self.before.div_ceil(rows.max(1));
        }
        Ok(self.take())
    }

    fn take(&mut self) -> Finished {
        self.length = 0;
        let validity = std::mem::take(&mut self.validity);
        Finished {
            cells: emptied(&mut self.cells),
            nulls: validity.nulls,
            validity: validity.into_bytes(),
            seen: std::mem::take(&mut self.seen),
            left_out: std::mem::take(&mut self.left_out),
            lacking: std::mem::take(&mut self.lacking),
        }
    }

    /// Reads the value of a row.
    #[inline(always)]
    pub fn read(&mut self, cursor: &mut Cursor, row: usize) -> Fit<()> {
        if self.length < row {
            self.pad(row)?;
        }
        self.length += 1;
        self.seen += 1;
        let keeps_null = matches!(
            self.cells,
            Cells::Raw(_) | Cells::Runs(_) | Cells::Choice(..)
        );
        if !keeps_null && cursor.null()? {
            return self.absent(row, 1);
        }
        if self.read_cell(cursor, row)? {
            self.validity.present();
            return Ok(());
        }
        self.left_out.push(row as u32);
        self.absent(row, 1)
    }

    /// Whether `again` can take the place of reading the same text once more.
    pub fn is_steady(&self) -> bool {
        matches!(self.cells, Cells::Runs(_))
    }

    /// The value of a row, if it is known to be this text.
    #[inline(always)]
    pub fn again(&mut self, row: usize, text: &[u8]) -> Fit<()> {
        if self.length < row {
            self.pad(row)?;
        }
        self.length += 1;
        self.seen += 1;
        self.validity.present();
        if let Cells::Runs(runs) = &mut self.cells {
            runs.push(row, Some(text));
        }
        Ok(())
    }

    #[cold]
    fn pad(&mut self, rows: usize) -> Fit<()> {
        let count = rows - self.length;
        if count > 0 {
            self.lacking.push([self.length as u32, rows as u32]);
            self.absent(self.length, count)?;
            self.length = rows;
        }
        Ok(())
    }

    fn absent(&mut self, length: usize, count: usize) -> Fit<()> {
        self.validity.absent(length, count);
        match &mut self.cells {
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

    /// False if the value was left out.
    #[inline(always)]
    fn read_cell(&mut self, cursor: &mut Cursor, row: usize) -> Fit<bool> {
        match &mut self.cells {
            Cells::Int8(range, values) => values.push(integer(cursor, *range)? as i8),
            Cells::Int16(range, values) => values.push(integer(cursor, *range)? as i16),
            Cells::Int32(range, values) => values.push(integer(cursor, *range)? as i32),
            Cells::Int64(range, values) => values.push(integer(cursor, *range)?),
            Cells::Float32(special, values) => {
                values.push(cursor.lend(|lent| single(lent, *special))?)
            }
            Cells::Float64(special, values) => {
                values.push(cursor.lend(|lent| double(lent, *special))?)
            }
            Cells::Boolean(bits) => bits.push(boolean(cursor)?),
            Cells::Text(pieces) => {
                let start = pieces.data.len();
                text::append(cursor, &mut pieces.data)?;
                if self.marks.hold(&pieces.data[start..]) {
                    pieces.data.truncate(start);
                    return Ok(false);
                }
                pieces.close()?;
            }
            Cells::Base64(pieces) => {
                let found = unescaped(cursor)?;
                if self.marks.hold(found) {
                    return Ok(false);
                }
                base64::append(found, &mut pieces.data)?;
                pieces.close()?;
            }
            Cells::Decimal {
                precision,
                scale,
                values,
            } => {
                values.push(cursor.lend(|lent| decimal(lent, *precision, *scale))?);
            }
            Cells::Unscaled(values) => {
                let found = unescaped(cursor)?;
                if self.marks.hold(found) {
                    return Ok(false);
                }
                values.push(base64::unscaled(found)?);
            }
            Cells::Choice(texts, values) => values.push(choice(cursor, texts)?),
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
            Cells::Runs(runs) => {
                let found = raw(cursor)?;
                runs.push(row, Some(found));
            }
        }
        Ok(true)
    }
}

/// Texts that stand for a value that was left out.
struct Marks {
    texts: Vec<Vec<u8>>,
    /// A bit for each length that one of them has, modulo 64.
    lengths: u64,
}

impl Marks {
    fn new(texts: Vec<Vec<u8>>) -> Self {
        let lengths = texts
            .iter()
            .fold(0, |bits, text| bits | 1 << (text.len() % 64));
        Marks { texts, lengths }
    }

    #[inline(always)]
    fn hold(&self, found: &[u8]) -> bool {
        self.lengths >> (found.len() % 64) & 1 != 0 && self.texts.iter().any(|text| text == found)
    }
}

#[inline(always)]
fn raw<'a>(cursor: &mut Cursor<'a>) -> Fit<&'a [u8]> {
    let start = cursor.at;
    skip::value(cursor)?;
    Ok(cursor.since(start))
}

#[inline(always)]
fn integer(cursor: &mut Cursor, range: Range) -> Fit<i64> {
    let mut value = number::integer(cursor)?;
    if range.divisor != 1 {
        value = value.div_euclid(range.divisor);
    }
    if value < range.low || value > range.high {
        Err(Misfit)
    } else {
        Ok(value)
    }
}

/// Which text stands here, counted from one.
#[inline(always)]
fn choice(cursor: &mut Cursor, texts: &[Piece]) -> Fit<u8> {
    let found = texts.iter().position(|text| cursor.passes(text));
    found.map(|place| place as u8 + 1).ok_or(Misfit)
}

/// What stands before the separator, and the number behind it.
#[inline(always)]
fn numbered(text: &[u8], separator: Option<u8>, longest: usize) -> Fit<(&[u8], i64)> {
    let digits = text
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .map_or(0, |place| place + 1);
    let head = match separator {
        None if digits == 0 => &text[..0],
        Some(mark) if digits > 0 && text[digits - 1] == mark => &text[..digits - 1],
        _ => return Err(Misfit),
    };
    let digits = &text[digits..];
    if digits.len() > longest {
        return Err(Misfit);
    }
    Ok((head, number::natural_text(digits)?))
}

#[inline(never)]
fn double(cursor: &mut Cursor, special: bool) -> Fit<f64> {
    if !special || cursor.peek() != b'"' {
        return number::float(cursor);
    }
    match unescaped(cursor)? {
        b"NaN" => Ok(f64::NAN),
        b"Infinity" => Ok(f64::INFINITY),
        b"-Infinity" => Ok(f64::NEG_INFINITY),
        _ => Err(Misfit),
    }
}

#[inline(never)]
fn single(cursor: &mut Cursor, special: bool) -> Fit<f32> {
    let value = double(cursor, special)?;
    let narrow = value as f32;
    if narrow.is_infinite() && value.is_finite() {
        Err(Misfit)
    } else {
        Ok(narrow)
    }
}

#[inline(always)]
fn boolean(cursor: &mut Cursor) -> Fit<bool> {
    let value = cursor.peek() == b't';
    if value {
        cursor.word(b"true")?
    } else {
        cursor.word(b"false")?
    }
    Ok(value)
}

/// A decimal as a number, or as a number in quotes.
#[inline(never)]
fn decimal(cursor: &mut Cursor, precision: u32, scale: u32) -> Fit<i128> {
    if cursor.peek() != b'"' {
        let value = number::decimal(cursor, precision, scale)?;
        return if matches!(cursor.peek(), b'e' | b'E') {
            Err(Misfit)
        } else {
            Ok(value)
        };
    }
    cursor.at += 1;
    let value = number::decimal(cursor, precision, scale)?;
    cursor.expect(b'"')?;
    Ok(value)
}

fn reserve(cells: &mut Cells, rows: usize, bytes: usize) {
    match cells {
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

/// The cells so far; in their place come none, of the same form.
fn emptied(cells: &mut Cells) -> Cells {
    let empty = match cells {
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
    std::mem::replace(cells, empty)
}
