//! Operations on sixteen bytes: both implementations, and code that looks at each byte.

use proptest::prelude::*;

use super::cases;
use crate::cursor::{Cursor, FixedText};
use crate::simd16::{self, BLOCK, Block, portable};

/// A block with many of the bytes that matter, and their neighbours.
fn block() -> impl Strategy<Value = Block> {
    let near = prop::sample::select(b"\"\\/0919:\x1f\x20\x21\x00\x7f\x80\xff!#[]".to_vec());
    prop::array::uniform16(prop_oneof![3 => b'0'..=b'9', 2 => near, 1 => any::<u8>()])
}

fn first(block: &Block, wanted: impl Fn(u8) -> bool) -> usize {
    let position = block.iter().position(|&byte| wanted(byte));
    position.unwrap_or(BLOCK)
}

fn naive_value(digits: &[u8]) -> u64 {
    digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn the_first_special_byte_is_the_same_in_every_implementation(block in block()) {
        let expected = first(&block, |byte| byte < 0x20 || byte == b'"' || byte == b'\\');
        prop_assert_eq!(simd16::special(&block).min(BLOCK), expected);
        prop_assert_eq!(portable::special(&block).min(BLOCK), expected);
    }

    #[test]
    fn the_count_of_digits_is_the_same_in_every_implementation(block in block()) {
        let expected = first(&block, |byte| !byte.is_ascii_digit());
        prop_assert_eq!(simd16::digits(&block), expected);
        prop_assert_eq!(portable::digits(&block), expected);
    }

    #[test]
    fn the_last_digits_of_a_block_are_a_number(
        digits in prop::array::uniform16(b'0'..=b'9'), junk in block(), count in 0..=BLOCK,
    ) {
        let mut block = junk;
        block[BLOCK - count..].copy_from_slice(&digits[BLOCK - count..]);
        let expected = naive_value(&digits[BLOCK - count..]);
        prop_assert_eq!(simd16::value(&block, count), expected);
        let mut mask = [0; BLOCK];
        mask[BLOCK - count..].fill(0x0F);
        let eights = portable::eights(&block, &mask);
        prop_assert_eq!((eights & 0xFFFF_FFFF) * 100_000_000 + (eights >> 32), expected);
    }

    #[test]
    fn a_number_after_sixteen_bytes_is_read_with_its_length(before in block(), ahead in block()) {
        let mut around = [0; 2 * BLOCK];
        around[..BLOCK].copy_from_slice(&before);
        around[BLOCK..].copy_from_slice(&ahead);
        let count = first(&ahead, |byte| !byte.is_ascii_digit());
        let (value, length) = simd16::natural(&around);
        prop_assert_eq!(length, count);
        // A number of sixteen digits may go on: its value means nothing.
        prop_assert!(count == BLOCK || value == naive_value(&ahead[..count]));
    }

    #[test]
    fn a_fixed_text_is_skipped_only_where_it_is(
        text in "[ab]{0,40}", other in "[ab]{0,40}", after in "[ab]{0,40}", is_equal: bool,
    ) {
        let start = if is_equal { &text } else { &other };
        let whole = format!("{start}{after}");
        let mut cursor = Cursor::new(whole.as_bytes());
        let fixed = FixedText::new(text.clone().into_bytes());
        let expected = whole.starts_with(&text);
        prop_assert_eq!(cursor.passes(&fixed), expected);
        prop_assert_eq!(cursor.at, if expected { text.len() } else { 0 });
    }
}
