//! Strings: what was encoded is decoded, wherever the text begins and ends.

use proptest::prelude::*;

use super::cases;
use crate::cursor::Cursor;
use crate::text;

/// Characters, each with whether it is written as an escape.
fn characters() -> impl Strategy<Value = Vec<(char, bool)>> {
    let character = prop_oneof![
        6 => prop::char::range(' ', '~'),
        1 => prop::sample::select(vec!['"', '\\', '\n', '\t', '\r', '\u{8}', '\u{c}', '/', '\0']),
        1 => any::<char>(),
    ];
    prop::collection::vec((character, prop::bool::weighted(0.1)), 0..60)
}

/// The JSON string without its quotes.
fn encoded(characters: &[(char, bool)]) -> String {
    let mut json = String::new();
    for &(character, is_escaped) in characters {
        let short = "\"\"\\\\//\u{8}b\u{c}f\nn\rr\tt"
            .chars()
            .collect::<Vec<_>>();
        let short = short.chunks(2).find(|pair| pair[0] == character);
        match short {
            Some(pair) if is_escaped || (character != '/') => json.extend(['\\', pair[1]]),
            _ if is_escaped || character < ' ' => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    json.extend(format!("\\u{unit:04x}").chars());
                }
            }
            _ => json.push(character),
        }
    }
    json
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_string_is_decoded_to_what_was_encoded(
        characters in characters(), before in "[a-z]{0,20}", after in "(,[a-z\"]{0,40})?",
    ) {
        let json = encoded(&characters);
        let expected: String = characters.iter().map(|(character, _)| character).collect();
        let whole = format!("{before}\"{json}\"{after}");
        let cursor = || {
            let mut cursor = Cursor::new(whole.as_bytes());
            cursor.at = before.len();
            cursor
        };
        let end = before.len() + json.len() + 2;
        let is_plain = !json.contains('\\');

        let (mut appended, mut data) = (cursor(), b"x".to_vec());
        prop_assert!(text::append(&mut appended, &mut data).is_ok());
        prop_assert_eq!(&data[1..], expected.as_bytes());
        prop_assert_eq!(appended.at, end);

        let mut skipped = cursor();
        let quoted = text::quoted(&mut skipped);
        prop_assert!(quoted.is_ok_and(|it| it.raw == json.as_bytes() && it.escaped != is_plain));
        prop_assert_eq!(skipped.at, end);
        let raw = text::unescaped(&mut cursor()).ok();
        prop_assert_eq!(raw, is_plain.then_some(json.as_bytes()));

        // The fast paths may decline, without effect; a string with an escape they must.
        let (mut fast, mut data) = (cursor(), b"x".to_vec());
        if text::append_plain(&mut fast, &mut data) {
            prop_assert!(is_plain && fast.at == end);
            prop_assert_eq!(&data[1..], expected.as_bytes());
        } else {
            prop_assert_eq!((fast.at, data), (before.len(), b"x".to_vec()));
        }
        let mut fast = cursor();
        let passes = text::passes_plain(&mut fast);
        prop_assert_eq!(fast.at, if passes { end } else { before.len() });
        prop_assert!(!passes || is_plain);
    }

    #[test]
    fn a_string_that_is_not_json_is_a_mismatch(
        start in "[a-z]{0,40}", end in "[a-z]{0,40}", wrong in prop::sample::select(vec![
            "\n", "\x1f", "\0", "\\x", "\\u12 ", "\\u12g4", "\\ud800", "\\ud800\\u0041", "\\udc00",
            "\\ud800x", "\\U0041",
        ]),
    ) {
        let whole = format!("\"{start}{wrong}{end}");
        for json in [format!("{whole}\","), whole] {
            let outcome = text::append(&mut Cursor::new(json.as_bytes()), &mut Vec::new());
            prop_assert!(outcome.is_err(), "{json:?}");
        }
    }
}
