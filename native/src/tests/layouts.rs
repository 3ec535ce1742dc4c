//! Nested layouts: arrays of rows, objects that may be null, and texts read in blocks.

use proptest::prelude::*;

use super::cases;
use super::model::{ANY, Table, Value, bytes, column, field, integer, object, plan, read};
use crate::cells::{Cells, Pieces};
use crate::cursor::FixedText;
use crate::node::Node;
use crate::object::Object;
use crate::plan::Plan;
use crate::rows::Rows;

fn example() -> Plan {
    let row = || {
        vec![
            field("a", false, column(Cells::Int64(ANY, Vec::new()))),
            field("b", false, column(Cells::Text(Pieces::default()))),
        ]
    };
    let kinds = vec![
        FixedText::new(b"\"INSERT\"".to_vec()),
        FixedText::new(b"null".to_vec()),
    ];
    let rows = Rows::new(Object::new(false, true, row()));
    plan(
        true,
        vec![
            field("type", true, column(Cells::Choice(kinds, Vec::new()))),
            field("data", false, Node::Rows(Box::new(rows))),
            field("old", false, object(true, true, row())),
        ],
    )
}

type Cells2 = (Option<i64>, Option<String>);

fn row() -> impl Strategy<Value = Cells2> {
    prop::option::of(any::<i64>()).prop_flat_map(|a| (Just(a), prop::option::of("[a-z]{0,40}")))
}

fn row_json((a, b): &Cells2) -> String {
    let fields = [
        a.map(|a| format!("\"a\":{a}")),
        b.as_ref().map(|b| format!("\"b\":\"{b}\"")),
    ];
    let fields: Vec<String> = fields.into_iter().flatten().collect();
    format!("{{{}}}", fields.join(","))
}

/// Columns `a` and `b` of some rows, each a row's or a missing one.
fn row_columns<'a>(path: &str, rows: impl Iterator<Item = Option<&'a Cells2>> + Clone) -> Table {
    let a = |row: Option<&Cells2>| row.and_then(|row| row.0).map_or(Value::Null, integer);
    let b = |row: Option<&Cells2>| {
        row.and_then(|row| row.1.as_ref())
            .map_or(Value::Null, bytes)
    };
    vec![
        (format!("{path}.a"), rows.clone().map(a).collect()),
        (format!("{path}.b"), rows.map(b).collect()),
    ]
}

/// A value, None for null.
type OrNull<T> = Option<T>;

#[derive(Clone, Debug)]
struct Message {
    is_insert: bool,
    /// None without the field.
    data: Option<OrNull<Vec<Cells2>>>,
    old: Option<OrNull<Cells2>>,
}

fn message() -> impl Strategy<Value = Message> {
    let rows = prop::collection::vec(row(), 0..5);
    let data = prop::option::weighted(0.9, prop::option::weighted(0.9, rows));
    let old = prop::option::weighted(0.7, prop::option::weighted(0.7, row()));
    (any::<bool>(), data, old).prop_map(|(is_insert, data, old)| Message {
        is_insert,
        data,
        old,
    })
}

fn message_json(message: &Message) -> String {
    let kind = if message.is_insert {
        "\"INSERT\""
    } else {
        "null"
    };
    let mut json = format!("{{\"type\":{kind}");
    if let Some(data) = &message.data {
        let rows = data
            .as_ref()
            .map(|rows| rows.iter().map(row_json).collect::<Vec<_>>().join(","));
        json += &rows.map_or(",\"data\":null".to_owned(), |rows| {
            format!(",\"data\":[{rows}]")
        });
    }
    if let Some(old) = &message.old {
        json += ",\"old\":";
        json += &old.as_ref().map_or("null".to_owned(), row_json);
    }
    json + "}"
}

fn expected(messages: &[Message]) -> Table {
    let data = |message: &Message| message.data.clone().flatten().unwrap_or_default();
    let all: Vec<Cells2> = messages.iter().flat_map(data).collect();
    let old = messages
        .iter()
        .map(|message| message.old.as_ref().and_then(Option::as_ref));
    let mut table = vec![
        (String::new(), vec![integer(1_u8); messages.len()]),
        (
            "type".to_owned(),
            messages
                .iter()
                .map(|it| integer(if it.is_insert { 1_u8 } else { 2 }))
                .collect(),
        ),
        (
            "data".to_owned(),
            messages
                .iter()
                .map(|it| integer(data(it).len() as u64))
                .collect(),
        ),
    ];
    table.extend(row_columns("data", all.iter().map(Some)));
    table.push((
        "old".to_owned(),
        old.clone()
            .map(|it| integer(u8::from(it.is_some())))
            .collect(),
    ));
    table.extend(row_columns("old", old));
    table
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn rows_and_nested_objects_are_read_in_blocks_of_any_size(
        messages in prop::collection::vec(message(), 1..40), block in 1..45_usize,
    ) {
        let texts: Vec<String> = messages.iter().map(message_json).collect();
        prop_assert_eq!(read(&mut example(), &texts, block), Some(expected(&messages)));
    }

    #[test]
    fn prefix_and_suffix_surround_every_text(
        messages in prop::collection::vec(message(), 1..10), wrong in prop::option::of(0..10_usize),
    ) {
        let wrong = wrong.filter(|&at| at < messages.len());
        let texts: Vec<String> = messages
            .iter()
            .enumerate()
            .map(|(at, it)| format!("<{}{}", message_json(it), if wrong == Some(at) { ">" } else { "/>" }))
            .collect();
        let slices: Vec<&[u8]> = texts.iter().map(std::string::String::as_bytes).collect();
        let mut plan = example();
        plan.start(slices.len());
        prop_assert_eq!(plan.read(0, &slices, b"<", b"/>").is_err(), wrong.is_some());
    }
}
