//! Base64: canonical texts are decoded, all others are a mismatch.

use proptest::prelude::*;

use super::cases;
use crate::base64::{append, unscaled};

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - three.len()));
        for digit in 0..4 {
            let is_padding = digit > three.len();
            let symbol = ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize];
            text.push(if is_padding { b'=' } else { symbol });
        }
    }
    text
}

/// The shortest two's complement form.
fn shortest(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let is_needless = |at: &usize| {
        let sign = if bytes[*at] & 0x80 == 0 { 0 } else { 0xFF };
        *at < 15 && bytes[*at] == sign && (bytes[*at + 1] ^ sign) & 0x80 == 0
    };
    let start = (0..16).find(|at| !is_needless(at)).unwrap_or(15);
    bytes[start..].to_vec()
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn bytes_are_those_that_were_encoded(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut data = b"x".to_vec();
        prop_assert!(append(&encoded(&bytes), &mut data).is_ok());
        prop_assert_eq!(&data[1..], &bytes);
    }

    #[test]
    fn what_is_accepted_is_canonical(text in "[A-Za-z0-9+/=]{0,12}|[ -~]{4}") {
        let mut data = Vec::new();
        if append(text.as_bytes(), &mut data).is_ok() {
            prop_assert_eq!(encoded(&data), text.as_bytes());
        }
    }

    #[test]
    fn an_integer_of_38_digits_has_one_text(value: i128, shift in 0_u32..127) {
        let value = value >> shift;
        let bytes = shortest(value);
        let fits = value.unsigned_abs() < 10_u128.pow(38);
        prop_assert_eq!(unscaled(&encoded(&bytes)).ok(), fits.then_some(value));
        let longer = [vec![if value < 0 { 0xFF } else { 0 }], bytes].concat();
        prop_assert!(unscaled(&encoded(&longer)).is_err());
    }
}
