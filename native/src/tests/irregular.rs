//! Irregular inputs: no bytes make the reader panic, and what it accepts does not depend on what
//! it has read before.

use proptest::prelude::*;

use super::cases;
use super::model::{ANY, Table, column, field, object, plan, read};
use crate::bitmap::Bitmap;
use crate::cells::{Cells, Pieces};
use crate::cursor::{Cursor, FixedText};
use crate::node::Node;
use crate::plan::Plan;
use crate::runs::Runs;
use crate::{base64, number, skip, text, values};

fn example() -> Plan {
    let choice = vec![
        FixedText::new(b"\"c\"".to_vec()),
        FixedText::new(b"\"u\"".to_vec()),
    ];
    let source = vec![
        field("db", true, column(Cells::Runs(Runs::default()))),
        field("pos", false, column(Cells::Int64(ANY, Vec::new()))),
    ];
    let after = vec![
        field("i", false, column(Cells::Int64(ANY, Vec::new()))),
        field("f", false, column(Cells::Float64(true, Vec::new()))),
        field("t", false, column(Cells::Text(Pieces::default()))),
        field("b", false, column(Cells::Boolean(Bitmap::default()))),
        field(
            "d",
            false,
            column(Cells::Decimal {
                precision: 9,
                scale: 2,
                values: Vec::new(),
            }),
        ),
        field("r", false, column(Cells::Raw(Pieces::default()))),
    ];
    plan(
        false,
        vec![
            field("op", true, column(Cells::Choice(choice, Vec::new()))),
            field("source", true, object(false, false, source)),
            field("after", true, object(true, false, after)),
            field(
                "v",
                false,
                Node::Literal(Box::new(FixedText::new(b"1".to_vec()))),
            ),
        ],
    )
}

fn message(row: usize) -> Vec<u8> {
    let op = if row.is_multiple_of(3) { "u" } else { "c" };
    format!(
        r#"{{"op":"{op}","source":{{"db":"shop","pos":{row},"x":[1,2]}},"after":{{"i":-{row},"f":{row}.25,"t":"name {row}","b":true,"d":"{row}.5","r":{{"a":[{row}]}}}},"v":1,"ts":17000000{row}}}"#
    )
    .into_bytes()
}

/// A change of a text: of a byte, or of its length.
#[derive(Clone, Debug)]
enum Damage {
    Set(u8),
    Insert(u8),
    Remove(usize),
    Repeat(usize),
    Cut,
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || {
        prop_oneof![
            prop::sample::select(b"\"\\{}[],:0-9.eEntf \n/u".to_vec()),
            any::<u8>()
        ]
    };
    prop_oneof![
        3 => byte().prop_map(Damage::Set),
        3 => byte().prop_map(Damage::Insert),
        2 => (1..40_usize).prop_map(Damage::Remove),
        1 => (1..60_usize).prop_map(Damage::Repeat),
        1 => Just(Damage::Cut),
    ]
}

fn damaged(mut text: Vec<u8>, at: prop::sample::Index, damage: &Damage) -> Vec<u8> {
    let at = at.index(text.len());
    match damage {
        Damage::Set(byte) => text[at] = *byte,
        Damage::Insert(byte) => text.insert(at, *byte),
        Damage::Remove(count) => drop(text.drain(at..text.len().min(at + count))),
        Damage::Repeat(count) => {
            let copy = text[at..text.len().min(at + count)].to_vec();
            text.splice(at..at, copy);
        }
        Damage::Cut => text.truncate(at),
    }
    text
}

/// Rows of several tables, one after another.
fn joined(tables: Vec<Table>) -> Table {
    let mut all = Table::new();
    for table in tables {
        if all.is_empty() {
            all = table;
        } else {
            for (column, more) in all.iter_mut().zip(table) {
                column.1.extend(more.1);
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn damaged_texts_are_read_as_each_alone_or_not_at_all(
        count in 1..12_usize,
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), damage()), 0..3),
    ) {
        let mut texts: Vec<Vec<u8>> = (0..count).map(message).collect();
        for (text, at, damage) in &damages {
            let text = text.index(count);
            if !texts[text].is_empty() {
                texts[text] = damaged(std::mem::take(&mut texts[text]), *at, damage);
            }
        }
        let alone: Option<Vec<Table>> = texts
            .iter()
            .map(|text| read(&mut example(), std::slice::from_ref(text), 1))
            .collect();
        prop_assert_eq!(read(&mut example(), &texts, 5), alone.map(joined));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            prop::collection::vec(prop::sample::select(b"\"\\{}[],:0123456789.-+eEntfu ".to_vec()), 0..80),
        ],
        at in 0..90_usize, precision in 0..=38_u32,
    ) {
        let cursor = || {
            let mut cursor = Cursor::new(&bytes);
            cursor.at = at;
            cursor
        };
        let _ = read(&mut example(), &[&bytes], 1);
        let _ = skip::value(&mut cursor());
        let _ = skip::passes(&mut cursor());
        let _ = number::integer(&mut cursor());
        let _ = number::float(&mut cursor());
        let _ = values::decimal(&mut cursor(), precision, precision / 2);
        let _ = values::plain_decimal(&mut cursor(), precision, precision / 2, &mut Vec::new());
        let _ = text::append(&mut cursor(), &mut Vec::new());
        let _ = text::quoted(&mut cursor());
        let _ = values::numbered(&bytes, Some(b':'), 18);
        let _ = base64::append(&bytes, &mut Vec::new());
        let _ = base64::unscaled(&bytes);
    }
}

#[test]
fn values_nested_deeper_than_64_are_left_to_python() {
    for (depth, fits) in [(64, true), (65, false), (100_000, false)] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(skip::value(&mut Cursor::new(text.as_bytes())).is_ok(), fits);
    }
}

#[test]
fn texts_that_are_not_utf8_are_a_mismatch() {
    let mut text = message(1);
    let at = text.iter().position(|&byte| byte == b'n').unwrap_or(0);
    text[at] = 0xFF;
    assert_eq!(read(&mut example(), &[text], 1), None);
}

#[test]
fn a_long_object_that_is_skipped_again_is_judged_as_for_the_first_time() {
    let long = |n: usize| format!(r#"{{"a":"{}","z":[{n}]}}"#, "x".repeat(300));
    let message = |schema: &str| {
        format!(r#"{{"schema":{schema},"op":"c","source":{{"db":"shop"}},"after":null}}"#)
    };
    let mut plan = example();
    let texts: Vec<String> = [1, 2, 1, 10, 2, 1].map(|n| message(&long(n))).to_vec();
    let first = read(&mut plan, &texts, 4);
    assert!(first.is_some());
    assert_eq!(read(&mut plan, &texts, 4), first);
    let whole = long(1);
    for broken in [
        whole[..whole.len() - 1].to_owned(),
        format!("{whole}}}"),
        format!("{whole}{whole}"),
        whole.replace("[1]", "[1"),
        whole.replace("\"a\"", "a"),
    ] {
        let texts = [message(&whole), message(&broken)];
        assert_eq!(read(&mut plan, &texts, 4), None, "{broken}");
        assert_eq!(read(&mut example(), &texts, 4), None, "{broken}");
    }
}
