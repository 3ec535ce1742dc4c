//! Protobuf: simple fields are read, others are copied, and any bytes are read to an end.

use proptest::prelude::*;

use super::cases;
use crate::arrays::Values;
use crate::protobuf::{Field, Kind, Message, Reader};

fn field(number: u64, kind: Kind, repeated: bool) -> Field {
    Field {
        number,
        kind,
        repeated,
        presence: false,
        oneof: None,
    }
}

fn reader() -> Reader {
    let inner = Message::new(vec![field(1, Kind::Int64, false)], Vec::new());
    let fields = vec![
        field(1, Kind::Sint64, false),
        field(2, Kind::Text, false),
        field(3, Kind::Int32, true),
        field(4, Kind::Message(inner), false),
    ];
    Reader::new(Message::new(fields, vec![(5, Some(0))]))
}

#[test]
fn fields_are_read_in_any_order() {
    let mut reader = reader();
    reader.start(4);
    let first = [
        0x12, 1, b'a', 0x08, 3, 0x1A, 2, 7, 8, 0x18, 9, 0x2A, 1, 0xFF,
    ];
    let twice = [0x22, 0, 0x22, 0];
    let chosen_twice = [0x2A, 0, 0x2A, 0];
    reader
        .read(&[&first, &[], &twice, &chosen_twice], 0)
        .expect("small arrays");
    assert_eq!(reader.irregular, [0, 0, 1, 1]);
    let [numbers, texts, lists, _] = &reader.array.children[..] else {
        panic!("not four fields")
    };
    let Values::Int64(numbers) = &numbers.values else {
        panic!("not integers")
    };
    assert_eq!(numbers, &[-2, 0, 0, 0]);
    let (Values::Bytes(texts), Values::List(bounds)) = (&texts.values, &lists.values) else {
        panic!("other types")
    };
    assert_eq!(texts.data, b"a");
    assert_eq!(bounds, &[0, 3, 3, 3, 3]);
    let Values::Bytes(residual) = &reader.residual.values else {
        panic!("not bytes")
    };
    assert_eq!(residual.data, [0x2A, 1, 0xFF]);
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut reader = reader();
        reader.start(2);
        reader.read(&[&bytes, &[8, 1]], 0).expect("small arrays");
        prop_assert_eq!(reader.array.length, 2);
        prop_assert_eq!(reader.irregular[1], 0);
        for child in &reader.array.children {
            prop_assert_eq!(child.length, 2);
        }
    }
}
