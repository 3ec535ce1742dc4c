//! Known hashes of FIPS 180-4, and columns that are not whole.

use crate::hashes::sha2_hex;
use crate::text_columns::{ColumnError, TextColumn};

fn column<'a>(offsets: &'a [i32], data: &'a [u8], first: usize) -> TextColumn<'a> {
    TextColumn {
        offsets,
        data,
        validity: None,
        first,
    }
}

fn hashes(offsets: &[i32], data: &[u8], first: usize, rows: usize, bits: usize) -> String {
    let text = sha2_hex(&column(offsets, data, first), rows, bits);
    String::from_utf8(text.unwrap().unwrap()).unwrap()
}

#[test]
fn hashes_are_those_of_the_standard() {
    let abc_224 = "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7";
    let abc_256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let empty_256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(hashes(&[0, 3], b"abc", 0, 1, 224), abc_224);
    let both = format!("{abc_256}{empty_256}");
    assert_eq!(hashes(&[0, 1, 4, 4], b"xabc", 1, 2, 256), both);
    for (bits, start) in [(384, "cb00753f45a35e8b"), (512, "ddaf35a193617aba")] {
        let text = hashes(&[0, 3], b"abc", 0, 1, bits);
        assert!(text.starts_with(start) && text.len() == bits / 4);
    }
    assert_eq!(hashes(&[0], b"", 0, 0, 256), "");
}

#[test]
fn other_lengths_and_rows_that_a_column_lacks_are_refused() {
    assert!(sha2_hex(&column(&[0, 3], b"abc", 0), 1, 255).is_none());
    for broken in [
        column(&[0, 4], b"abc", 0),
        column(&[3, 0], b"abc", 0),
        column(&[-1, 3], b"abc", 0),
        column(&[0], b"abc", 0),
    ] {
        assert_eq!(sha2_hex(&broken, 1, 256), Some(Err(ColumnError::Row)));
    }
    let many = sha2_hex(&column(&[0, 3], b"abc", 0), usize::MAX, 512);
    assert_eq!(many, Some(Err(ColumnError::Size)));
}
