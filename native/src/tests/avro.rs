//! Avro: what is written is read, a value that does not match costs its message only.

use proptest::prelude::*;

use super::cases;
use crate::arrays::{Array, Values};
use crate::avro::{Items, Node, Reader};

fn varint(value: i64) -> Vec<u8> {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    let mut bytes = Vec::new();
    while rest > 0x7F {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

/// A record of a long, a nullable text and an array of longs.
fn reader() -> Reader {
    let items = Items {
        item: Node::Long,
        cells: 1,
        empty: false,
    };
    let fields = vec![
        (true, Node::Long),
        (true, Node::Nullable(true, Box::new(Node::Text))),
        (true, Node::Items(Box::new(items))),
    ];
    Reader::new(Node::Record(fields)).expect("no union is requested")
}

type Row = (i64, Option<String>, Vec<i64>);

fn message((number, text, items): &Row) -> Vec<u8> {
    let mut bytes = varint(*number);
    match text {
        None => bytes.push(0),
        Some(text) => {
            bytes.push(2);
            bytes.extend(varint(text.len() as i64));
            bytes.extend(text.as_bytes());
        }
    }
    for item in items {
        bytes.push(2);
        bytes.extend(varint(*item));
    }
    bytes.push(0);
    bytes
}

fn longs(array: &Array) -> &[i64] {
    match &array.values {
        Values::Int64(values) => values,
        _ => panic!("not an array of longs"),
    }
}

fn rows(array: &Array) -> Vec<Row> {
    let [numbers, texts, lists] = &array.children[..] else {
        panic!("not three fields")
    };
    let (Values::Bytes(pieces), Values::List(bounds)) = (&texts.values, &lists.values) else {
        panic!("other types")
    };
    let valid = texts.validity().1;
    let row = |index: usize| {
        let there = valid
            .as_ref()
            .is_none_or(|bits| bits[index / 8] >> (index % 8) & 1 == 1);
        let text = &pieces.data[pieces.offsets[index] as usize..pieces.offsets[index + 1] as usize];
        let text = there.then(|| String::from_utf8(text.to_vec()).expect("UTF-8"));
        let items = bounds[index] as usize..bounds[index + 1] as usize;
        (
            longs(numbers)[index],
            text,
            longs(&lists.children[0])[items].to_vec(),
        )
    };
    (0..array.length).map(row).collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn messages_are_read_as_they_were_written(
        written in prop::collection::vec(
            (any::<i64>(), prop::option::of(".{0,9}"), prop::collection::vec(any::<i64>(), 0..4)),
            1..9,
        ),
        cuts in prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), 9),
    ) {
        let mut messages: Vec<Vec<u8>> = written.iter().map(message).collect();
        let mut wanted = written.clone();
        let mut invalid = vec![0; written.len()];
        for (index, cut) in cuts.iter().take(written.len()).enumerate() {
            if let Some(cut) = cut {
                let length = cut.index(messages[index].len());
                messages[index].truncate(length);
                wanted[index] = (0, None, vec![]);
                invalid[index] = 1;
            }
        }
        let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut reader = reader();
        for _ in 0..2 {
            reader.start(slices.len());
            reader.read(&slices, 0, 1000, 8).expect("small arrays");
            prop_assert_eq!(rows(&reader.array), wanted.clone());
            prop_assert_eq!(&reader.invalid, &invalid);
        }
    }

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut reader = reader();
        reader.start(1);
        reader.read(&[&bytes], 0, 10, 0).expect("small arrays");
        prop_assert_eq!(rows(&reader.array).len(), 1);
    }
}

#[test]
fn an_array_beyond_the_budget_is_not_read() {
    let fields = vec![(
        true,
        Node::Items(Box::new(Items {
            item: Node::Null,
            cells: 1,
            empty: true,
        })),
    )];
    let mut reader = Reader::new(Node::Record(fields)).expect("no union is requested");
    let mut long = varint(101);
    long.push(0);
    reader.start(2);
    reader
        .read(&[&long, &[0]], 0, 100, 0)
        .expect("small arrays");
    assert_eq!(reader.invalid, [2, 0]);
    assert_eq!(reader.array.children[0].children[0].length, 0);
}
