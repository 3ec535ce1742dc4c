//! Columns of every type: cells that were written as JSON are read, whichever fields lack them.

use proptest::prelude::*;

use super::cases;
use super::model::{ANY, Value, bytes, column, field, integer, plan, read};
use crate::bitmap::Bitmap;
use crate::cells::{Cells, Pieces, Range};
use crate::column::Column;
use crate::cursor::FixedText;
use crate::node::Node;
use crate::runs::Runs;

/// A text of JSON, and the cell of it.
type Cell = (String, Value);

const HOURS: Range = Range {
    divisor: 3600,
    low: -100,
    high: 100,
};

fn text_cell() -> impl Strategy<Value = Cell> {
    "[a-z é]{0,40}".prop_map(|text| (format!("\"{text}\""), bytes(text)))
}

/// Returns a column without cells.
type Make = fn() -> Cells;

/// A type of column: empty cells, and values for them.
struct Kind {
    cells: Make,
    values: BoxedStrategy<Cell>,
}

fn kind(cells: Make, values: impl Strategy<Value = Cell> + 'static) -> Kind {
    let values = values.boxed();
    Kind { cells, values }
}

fn small() -> Cells {
    let range = Range {
        low: -128,
        high: 127,
        ..ANY
    };
    Cells::Int8(range, Vec::new())
}

fn decimal() -> Cells {
    Cells::Decimal {
        precision: 20,
        scale: 2,
        values: Vec::new(),
    }
}

fn numbered() -> Cells {
    Cells::Numbered {
        separator: Some(b':'),
        longest: 9,
        heads: Runs::default(),
        numbers: Vec::new(),
    }
}

fn choice() -> Cells {
    let texts = ["\"c\"", "\"update\""];
    let texts = texts.map(|text| FixedText::new(text.as_bytes().to_vec()));
    Cells::Choice(texts.into(), Vec::new())
}

fn number_kinds() -> Vec<Kind> {
    let whole = |value: i64| (value.to_string(), integer(value));
    let cents = |value: i64| {
        let sign = if value < 0 { "-" } else { "" };
        let (whole, rest) = (value.unsigned_abs() / 100, value.unsigned_abs() % 100);
        (format!("{sign}{whole}.{rest:02}"), integer(value))
    };
    let wide = (any::<i64>(), 0..60).prop_map(|(value, shift)| value >> shift);
    let hours = |seconds: i64| (seconds.to_string(), integer(seconds.div_euclid(3600)));
    let double = |value: f64| (format!("{value:?}"), bytes(value.to_le_bytes()));
    let single = |value: f32| (format!("{value:?}"), bytes(value.to_le_bytes()));
    let doubles = prop_oneof![-1e6..1e6, prop::num::f64::NORMAL];
    vec![
        kind(small, (-128..=127_i64).prop_map(whole)),
        kind(
            || Cells::Int16(HOURS, Vec::new()),
            (-360_000..=363_599_i64).prop_map(hours),
        ),
        kind(
            || Cells::Int32(HOURS, Vec::new()),
            (-360_000..=363_599_i64).prop_map(hours),
        ),
        kind(|| Cells::Int64(ANY, Vec::new()), wide.prop_map(whole)),
        kind(
            || Cells::Float64(false, Vec::new()),
            doubles.prop_map(double),
        ),
        kind(
            || Cells::Float32(false, Vec::new()),
            prop::num::f32::NORMAL.prop_map(single),
        ),
        kind(decimal, any::<i64>().prop_map(cents)),
        kind(
            || Cells::Boolean(Bitmap::default()),
            any::<bool>().prop_map(|flag| (flag.to_string(), integer(u8::from(flag)))),
        ),
    ]
}

fn text_kinds() -> Vec<Kind> {
    let encoded = vec![("", ""), ("QQ==", "A"), ("QUI=", "AB"), ("QUJD", "ABC")];
    let encoded = prop::sample::select(encoded);
    let base64 = encoded.prop_map(|(json, text)| (format!("\"{json}\""), bytes(text)));
    let raw = text_cell().prop_map(|(json, _)| (json.clone(), bytes(json)));
    let repeated = "[1-3]{1}".prop_map(|json| (json.clone(), bytes(json)));
    let chosen = prop::sample::select(vec![("\"c\"", 1_u8), ("\"update\"", 2)]);
    let chosen = chosen.prop_map(|(json, number)| (json.to_owned(), integer(number)));
    let numbers = ("[a-b]{0,3}", 0..1_000_000_i64).prop_map(|(head, number)| {
        let json = format!("\"{head}:{number:06}\"");
        (json, Value::Numbered(head.into_bytes(), number))
    });
    vec![
        kind(|| Cells::Text(Pieces::default()), text_cell()),
        kind(|| Cells::Raw(Pieces::default()), raw),
        kind(|| Cells::Runs(Runs::default()), repeated),
        kind(|| Cells::Base64(Pieces::default()), base64),
        kind(choice, chosen),
        kind(numbered, numbers),
    ]
}

fn kinds() -> Vec<Kind> {
    number_kinds().into_iter().chain(text_kinds()).collect()
}

/// A row: a cell, null, or no field at all.
#[derive(Clone, Debug)]
enum Row {
    Cell(Cell),
    Null,
    Lacking,
}

fn rows(cells: BoxedStrategy<Cell>) -> impl Strategy<Value = Vec<Row>> {
    let row = prop_oneof![
        6 => cells.prop_map(Row::Cell), 1 => Just(Row::Null), 1 => Just(Row::Lacking),
    ];
    prop::collection::vec(row, 1..40)
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn the_cells_of_a_column_are_those_that_were_written(
        tables in kinds().into_iter().map(|kind| rows(kind.values)).collect::<Vec<_>>(),
        block in 1..50_usize, tail in prop::bool::ANY,
    ) {
        for (kind, rows) in kinds().into_iter().zip(tables) {
            let make = kind.cells;
            // Null is a cell of its own in a choice only if it is one of the texts.
            let keeps_null = matches!(make(), Cells::Raw(_) | Cells::Runs(_));
            let is_choice = matches!(make(), Cells::Choice(..));
            let rows: Vec<Row> = rows
                .into_iter()
                .map(|row| if is_choice && matches!(row, Row::Null) { Row::Lacking } else { row })
                .collect();
            // Something after the field makes room for whole blocks.
            let tail = if tail { r#","z":"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz""# } else { "" };
            let texts: Vec<String> = rows
                .iter()
                .map(|row| match row {
                    Row::Cell((json, _)) => format!(r#"{{"k":0,"v":{json}{tail}}}"#),
                    Row::Null => format!(r#"{{"k":0,"v":null{tail}}}"#),
                    Row::Lacking => format!(r#"{{"k":0{tail}}}"#),
                })
                .collect();
            let expected: Vec<Value> = rows
                .iter()
                .map(|row| match row {
                    Row::Cell((_, value)) => value.clone(),
                    Row::Null if keeps_null => bytes("null"),
                    Row::Null | Row::Lacking => Value::Null,
                })
                .collect();
            let mut plan = plan(false, vec![field("v", false, column(make()))]);
            let table = read(&mut plan, &texts, block);
            prop_assert_eq!(table.map(|table| table[1].clone()), Some(("v".to_owned(), expected)));
        }
    }

    #[test]
    fn placeholders_are_left_out(
        values in prop::collection::vec(
            prop_oneof![Just("__omitted"), Just("__omitteD"), Just(""), Just("other")], 1..30),
    ) {
        let texts: Vec<String> =
            values.iter().map(|text| format!("{{\"v\":\"{text}\",\"z\":\"{}\"}}", "z".repeat(32))).collect();
        let cells = Cells::Text(Pieces::default());
        let column = Column::new(cells, vec![b"__omitted".to_vec()]);
        let mut plan = plan(false, vec![field("v", true, Node::Column(Box::new(column)))]);
        let expected: Vec<Value> = values
            .iter()
            .map(|&text| if text == "__omitted" { Value::Null } else { bytes(text) })
            .collect();
        let table = read(&mut plan, &texts, 7);
        prop_assert_eq!(table.map(|table| table[1].1.clone()), Some(expected));
    }
}

#[test]
fn values_beyond_the_type_of_a_column_are_a_mismatch() {
    let wrong: [(Make, &[&str]); 5] = [
        (
            small,
            &["128", "-129", "1.0", "1e2", "\"1\"", "true", "01", "-", ""],
        ),
        (
            || Cells::Float64(false, Vec::new()),
            &["1e309", "\"NaN\"", "NaN", "1.", ".5", "+1", "00.1"],
        ),
        (
            || Cells::Float32(true, Vec::new()),
            &["1e39", "\"nan\"", "\"Infinity \""],
        ),
        (
            decimal,
            &["1.234", "1e1", "\"1.0", "\"1,0\"", "1000000000000000000.0"],
        ),
        (
            || Cells::Boolean(Bitmap::default()),
            &["1", "\"true\"", "tru", "truee", "False"],
        ),
    ];
    for (make, values) in wrong {
        for value in values {
            for tail in ["", r#","z":"zzzzzzzzzzzzzzzzzzzzzzzzzzzzz""#] {
                let text = format!("{{\"v\":{value}{tail}}}");
                let mut plan = plan(false, vec![field("v", true, column(make()))]);
                assert!(read(&mut plan, &[&text], 1).is_none(), "{text}");
            }
        }
    }
}
