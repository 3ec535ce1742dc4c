//! Templates: objects that follow each other are read as each of them would be alone.

use proptest::prelude::*;

use super::cases;
use super::model::{ANY, Table, Value, bytes, column, field, integer, object, plan, read};
use crate::cells::{Cells, Pieces};
use crate::cursor::FixedText;
use crate::node::Node;
use crate::plan::Plan;
use crate::runs::Runs;

fn example(is_closed: bool) -> Plan {
    let inner = vec![field("c", true, column(Cells::Int64(ANY, Vec::new())))];
    let version = Node::Literal(Box::new(FixedText::new(b"\"1.0\"".to_vec())));
    plan(
        is_closed,
        vec![
            field("id", true, column(Cells::Int64(ANY, Vec::new()))),
            field("name", false, column(Cells::Text(Pieces::default()))),
            field("table", false, column(Cells::Runs(Runs::default()))),
            field("version", false, version),
            field("source", false, object(true, false, inner)),
            field("gone", false, Node::Null),
        ],
    )
}

/// A field as it is written, and what the columns of the plan get from it.
#[derive(Clone, Debug)]
struct Written {
    name: &'static str,
    json: String,
    value: Value,
}

fn written() -> impl Strategy<Value = Written> {
    let of = |name, json: String, value| Written { name, json, value };
    prop_oneof![
        "[a-z]{0,30}".prop_map(move |it| of("name", format!("\"{it}\""), bytes(it))),
        "[ab]{1}".prop_map(move |it| of("table", format!("\"{it}\""), bytes(format!("\"{it}\"")))),
        Just(of("version", "\"1.0\"".to_owned(), Value::Null)),
        any::<i32>().prop_map(move |it| of("source", format!("{{\"c\":{it}}}"), integer(it))),
        Just(of("source", "null".to_owned(), Value::Null)),
        Just(of("gone", "null".to_owned(), Value::Null)),
        prop::sample::select(vec![
            "1",
            "1.5e3",
            "\"x\"",
            "[1,{\"a\":[]}]",
            "{}",
            "true",
            "null"
        ])
        .prop_map(move |it| of("unknown", it.to_owned(), Value::Null)),
    ]
}

/// An object: its fields once each, in some order, and the space between them.
fn fields() -> impl Strategy<Value = Vec<Written>> {
    let id = any::<i64>().prop_map(|it| Written {
        name: "id",
        json: it.to_string(),
        value: integer(it),
    });
    (id, prop::collection::vec(written(), 0..6)).prop_map(|(id, mut others)| {
        let mut names = vec![];
        others.retain(|other| {
            let is_new = !names.contains(&other.name);
            names.push(other.name);
            is_new
        });
        let at = others.len() / 2;
        others.insert(at, id);
        others
    })
}

/// Objects of few layouts, most of which repeat the one before with other values.
fn objects() -> impl Strategy<Value = Vec<(Vec<Written>, &'static str)>> {
    let space = prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\n\t")];
    let few = prop::collection::vec(fields(), 1..4);
    let picks = prop::collection::vec((any::<prop::sample::Index>(), any::<i64>(), space), 1..60);
    (few, picks).prop_map(|(few, picks)| {
        let one_of = |(pick, id, space): (prop::sample::Index, i64, _)| {
            let mut fields = pick.get(&few).clone();
            for field in fields.iter_mut().filter(|field| field.name == "id") {
                (field.json, field.value) = (id.to_string(), integer(id));
            }
            (fields, space)
        };
        picks.into_iter().map(one_of).collect()
    })
}

fn json(fields: &[Written], space: &str) -> String {
    let pairs = fields
        .iter()
        .map(|it| format!("{space}\"{}\"{space}:{space}{}{space}", it.name, it.json));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

/// The columns that the plan should return.
fn expected(objects: &[(Vec<Written>, &str)]) -> Table {
    let cells = |name: &str| -> Vec<Value> {
        let cell = |fields: &[Written]| {
            fields
                .iter()
                .find(|it| it.name == name)
                .map(|it| it.value.clone())
        };
        objects
            .iter()
            .map(|(fields, _)| cell(fields).unwrap_or(Value::Null))
            .collect()
    };
    let source = cells("source");
    let presence = source
        .iter()
        .map(|it| integer(u8::from(*it != Value::Null)))
        .collect();
    vec![
        (String::new(), vec![integer(1_u8); objects.len()]),
        ("id".to_owned(), cells("id")),
        ("name".to_owned(), cells("name")),
        ("table".to_owned(), cells("table")),
        ("source".to_owned(), presence),
        ("source.c".to_owned(), source),
    ]
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn objects_are_read_along_a_template_as_they_are_alone(objects in objects(), block in 1..70_usize) {
        let texts: Vec<String> = objects.iter().map(|(fields, space)| json(fields, space)).collect();
        let mut plan = example(false);
        prop_assert_eq!(read(&mut plan, &texts, block), Some(expected(&objects)));
        // A plan is used again, and remembers nothing.
        prop_assert_eq!(read(&mut plan, &texts[..1], block), Some(expected(&objects[..1])));
    }

    #[test]
    fn an_object_unlike_the_plan_is_a_mismatch_after_any_others(
        objects in objects(), at in any::<prop::sample::Index>(),
        wrong in prop::sample::select(vec![
            ("id", "1.5"), ("id", "nulL"), ("id", "\"1\""), ("name", "1"), ("name", "\"\\ud800\""),
            ("version", "\"1.1\""), ("version", "\"1.0"), ("source", "{}"), ("source", "[]"),
            ("source", "{\"c\":1,\"c\":1}"), ("gone", "0"), ("gone", "nul"), ("unknown", "01"),
            ("unknown", "[1,]"), ("unknown", "{\"a\" 1}"), ("unknown", "tru"), ("unknown", ""),
        ]),
    ) {
        let mut objects = objects;
        let at = at.index(objects.len());
        let (fields, space) = &mut objects[at];
        fields.retain(|field| field.name != wrong.0);
        fields.insert(0, Written { name: wrong.0, json: wrong.1.to_owned(), value: Value::Null });
        let space = *space;
        let mut texts: Vec<String> = objects.iter().map(|(fields, space)| json(fields, space)).collect();
        let mut plan = example(false);
        prop_assert_eq!(read(&mut plan, &texts, 16), None);
        texts.remove(at);
        objects.remove(at);
        prop_assert_eq!(read(&mut plan, &texts, 16), Some(expected(&objects)), "{}", space);
    }

    #[test]
    fn a_repeated_a_missing_and_a_forbidden_field_are_mismatches(
        objects in objects(), at in any::<prop::sample::Index>(), twice in any::<prop::sample::Index>(),
    ) {
        let mut texts: Vec<String> = objects.iter().map(|(fields, space)| json(fields, space)).collect();
        let at = at.index(objects.len());
        let (fields, space) = &objects[at];
        let known: Vec<&Written> = fields.iter().filter(|field| field.name != "unknown").collect();
        let repeated = [&fields[..], &[(*twice.get(&known)).clone()]].concat();
        texts[at] = json(&repeated, space);
        prop_assert_eq!(read(&mut example(false), &texts, 16), None);
        let others: Vec<Written> = fields.iter().filter(|field| field.name != "id").cloned().collect();
        texts[at] = json(&others, space);
        prop_assert_eq!(read(&mut example(false), &texts, 16), None);
        texts[at] = json(fields, space);
        let is_closed_mismatch = objects.iter().any(|(fields, _)| fields.iter().any(|it| it.name == "unknown"));
        prop_assert_eq!(read(&mut example(true), &texts, 16).is_none(), is_closed_mismatch);
    }
}
