//! What a plan reads, as plain values: to compare with what was written, or with another reading.

use crate::cells::{Cells, Range};
use crate::column::{Column, Finished};
use crate::node::Node;
use crate::object::{Field, Object, Output};
use crate::plan::Plan;
use crate::runs::Runs;

/// A cell; texts and floats are their bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i128),
    Bytes(Vec<u8>),
    /// A text and a number.
    Numbered(Vec<u8>, i64),
}

/// Columns by the path of field names, presence and counts included.
pub type Table = Vec<(String, Vec<Value>)>;

pub const ANY: Range = Range {
    divisor: 1,
    low: i64::MIN,
    high: i64::MAX,
};

pub fn field(name: &str, is_required: bool, node: Node) -> Field {
    Field::new(name.as_bytes().to_vec(), is_required, node)
}

pub fn column(cells: Cells) -> Node {
    Node::Column(Box::new(Column::new(cells, Vec::new())))
}

pub fn object(is_nullable: bool, is_closed: bool, fields: Vec<Field>) -> Node {
    Node::Object(Box::new(Object::new(is_nullable, is_closed, fields)))
}

pub fn plan(is_closed: bool, fields: Vec<Field>) -> Plan {
    Plan::new(Object::new(false, is_closed, fields))
}

pub fn integer(value: impl Into<i128>) -> Value {
    Value::Integer(value.into())
}

pub fn bytes(text: impl AsRef<[u8]>) -> Value {
    Value::Bytes(text.as_ref().to_vec())
}

/// Reads texts in blocks of this many; None for a mismatch.
pub fn read<T: AsRef<[u8]>>(plan: &mut Plan, texts: &[T], block: usize) -> Option<Table> {
    let texts: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
    plan.start(texts.len());
    for (number, some) in texts.chunks(block).enumerate() {
        plan.read(number * block, some, b"", b"").ok()?;
    }
    let mut table = Table::new();
    let mut arrays: Vec<(Vec<String>, usize)> = Vec::new();
    for (path, output) in plan.finish(texts.len()).ok()? {
        let array = arrays
            .iter()
            .rev()
            .find(|(array, _)| path.starts_with(array));
        let rows = array.map_or(texts.len(), |(_, total)| *total);
        let values = match output {
            Output::Presence(presence, seen) => {
                assert_eq!(
                    presence
                        .iter()
                        .map(|&flag| usize::from(flag))
                        .sum::<usize>(),
                    seen
                );
                presence.into_iter().map(integer).collect()
            }
            Output::Counts(counts, total) => {
                arrays.push((path.clone(), total));
                counts.into_iter().map(integer).collect()
            }
            Output::Column(finished) => values(finished, rows),
        };
        table.push((path.join("."), values));
    }
    Some(table)
}

/// Returns the cells of a column, whose counts and ranges must agree with them.
fn values(column: Finished, rows: usize) -> Vec<Value> {
    let lacking = column
        .lacking
        .iter()
        .map(|[start, end]| (end - start) as usize);
    assert_eq!(column.seen, rows - lacking.sum::<usize>());
    let is_valid = |row: usize| match &column.validity {
        Some(bits) => bits[row / 8] >> (row % 8) & 1 == 1,
        None => true,
    };
    assert_eq!(
        (0..rows).filter(|&row| !is_valid(row)).count(),
        column.nulls
    );
    let cells = cells(column.cells, rows);
    assert_eq!(cells.len(), rows);
    let cells = cells.into_iter().enumerate();
    cells
        .map(|(row, cell)| if is_valid(row) { cell } else { Value::Null })
        .collect()
}

fn cells(cells: Cells, rows: usize) -> Vec<Value> {
    fn integers<T: Into<i128>>(values: Vec<T>) -> Vec<Value> {
        values.into_iter().map(integer).collect()
    }
    match cells {
        Cells::Int8(_, values) => integers(values),
        Cells::Int16(_, values) => integers(values),
        Cells::Int32(_, values) => integers(values),
        Cells::Int64(_, values) => integers(values),
        Cells::Float32(_, values) => values.iter().map(|it| bytes(it.to_le_bytes())).collect(),
        Cells::Float64(_, values) => values.iter().map(|it| bytes(it.to_le_bytes())).collect(),
        Cells::Boolean(bits) => (0..rows)
            .map(|row| integer(bits.bytes[row / 8] >> (row % 8) & 1))
            .collect(),
        Cells::Decimal { values, .. } | Cells::Unscaled(values) => integers(values),
        Cells::Choice(_, values) => integers(values),
        Cells::Text(pieces) | Cells::Base64(pieces) | Cells::Raw(pieces) => pieces
            .offsets
            .windows(2)
            .map(|range| bytes(&pieces.data[range[0] as usize..range[1] as usize]))
            .collect(),
        Cells::Runs(runs) => texts_of(&runs, rows)
            .into_iter()
            .map(|text| text.map_or(Value::Null, Value::Bytes))
            .collect(),
        Cells::Numbered { heads, numbers, .. } => texts_of(&heads, rows)
            .into_iter()
            .zip(numbers)
            .map(|(head, number)| head.map_or(Value::Null, |head| Value::Numbered(head, number)))
            .collect(),
    }
}

fn texts_of(runs: &Runs, rows: usize) -> Vec<Option<Vec<u8>>> {
    let run_of = |row| runs.runs.iter().rev().find(|(start, _)| *start <= row);
    (0..rows)
        .map(|row| run_of(row).and_then(|(_, text)| text.clone()))
        .collect()
}
