//! Numbers: at every distance from the ends of a text, as the standard library parses them.

use proptest::prelude::*;

use super::cases;
use crate::cursor::Cursor;
use crate::number;

/// A text in the syntax of JSON numbers, or nearly.
fn digits() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "-?(0|[1-9][0-9]{0,14})",
        2 => "-?(0|[1-9][0-9]{0,25})",
        2 => "-?(0|[1-9][0-9]{0,20})\\.[0-9]{1,25}",
        2 => "-?(0|[1-9][0-9]{0,7})\\.[0-9]{1,7}",
        1 => "-?[0-9]{1,20}(\\.[0-9]{0,5})?([eE][+-]?[0-9]{0,3})?",
        1 => "[-+0-9.eE]{0,12}",
        1 => prop::sample::select(vec![
            "9223372036854775807", "-9223372036854775808", "9223372036854775808",
            "-9223372036854775809", "18446744073709551615", "18446744073709551616",
            "999999999999999", "1000000000000000", "99999999999999999999999999999999999999",
            "-0", "-0.0", "0e0", "1e308", "1e309", "4.9e-324", "2.2250738585072011e-308",
        ]).prop_map(str::to_owned),
    ]
}

/// A number within a text: blocks are read before and after it where there is space.
fn text() -> impl Strategy<Value = (String, usize, String)> {
    let after = prop_oneof![Just(String::new()), "[,}\\] \"][0-9a-z,\"]{0,40}"];
    ("[0-9a-z,\"]{0,40}", digits(), after).prop_map(|(before, number, after)| {
        (format!("{before}{number}{after}"), before.len(), number)
    })
}

fn is_json_integer(text: &str) -> bool {
    let natural = text.strip_prefix('-').unwrap_or(text);
    !natural.is_empty()
        && natural.bytes().all(|byte| byte.is_ascii_digit())
        && (natural == "0" || !natural.starts_with('0'))
}

fn is_json_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let natural = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = |text: &str| natural(text.strip_prefix(['+', '-']).unwrap_or(text));
    is_json_integer(whole) && fraction.is_none_or(natural) && exponent.is_none_or(unsigned)
}

/// The value times 10^scale of a decimal that fits the precision as it is written.
fn naive_decimal(text: &str, precision: u32, scale: u32) -> Option<i128> {
    if !is_json_number(text) || text.contains(['e', 'E']) {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let missing = scale.checked_sub(fraction.len() as u32)?;
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = digits
        .trim_start_matches('0')
        .len()
        .max(fraction.len())
        .max(1);
    if significant + missing as usize > precision as usize {
        return None;
    }
    let value: i128 = format!("{digits}{}", "0".repeat(missing as usize))
        .parse()
        .ok()?;
    Some(if whole.starts_with('-') {
        -value
    } else {
        value
    })
}

/// Whether a reader that ended at this position has read the whole number.
fn is_whole(cursor: &Cursor, start: usize, number: &str) -> bool {
    cursor.at == start + number.len()
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn integers_are_those_of_the_standard_library((text, start, number) in text()) {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.at = start;
        let read = number::integer(&mut cursor).ok().filter(|_| is_whole(&cursor, start, &number));
        let expected = number.parse::<i64>().ok().filter(|_| is_json_integer(&number));
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn the_fast_path_of_integers_agrees_or_declines((text, start, number) in text()) {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.at = start;
        if let Some(value) = number::plain_integer(&mut cursor) {
            prop_assert!(is_whole(&cursor, start, &number));
            prop_assert_eq!(Some(value), number.parse().ok());
        } else { prop_assert_eq!(cursor.at, start) }
    }

    #[test]
    fn floats_are_those_of_the_standard_library((text, start, number) in text()) {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.at = start;
        let read = number::float(&mut cursor).ok().filter(|_| is_whole(&cursor, start, &number));
        let expected = number.parse::<f64>().ok();
        let expected = expected.filter(|value| value.is_finite() && is_json_number(&number));
        // An integer -0 has no sign: it is one of Python's integers.
        let expected = expected.map(|value| if number == "-0" { 0.0 } else { value });
        prop_assert_eq!(read.map(f64::to_bits), expected.map(f64::to_bits));
    }

    #[test]
    fn decimals_are_exact_or_a_mismatch(
        (text, start, number) in text(), (precision, scale) in (1_u32..=38).prop_flat_map(
            |precision| (Just(precision), 0..=precision)),
    ) {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.at = start;
        let read = number::decimal(&mut cursor, precision, scale).ok();
        let read = read.filter(|_| is_whole(&cursor, start, &number));
        prop_assert_eq!(read, naive_decimal(&number, precision, scale));
    }

    #[test]
    fn skipped_numbers_are_in_the_syntax_of_json((text, start, number) in text()) {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.at = start;
        let skipped = number::skip(&mut cursor).is_ok() && is_whole(&cursor, start, &number);
        prop_assert_eq!(skipped, is_json_number(&number));
        cursor.at = start;
        if number::passes_plain(&mut cursor) {
            prop_assert!(is_json_number(&number) && is_whole(&cursor, start, &number));
        }
    }

    #[test]
    fn natural_numbers_may_have_leading_zeros(text in "[0-9]{0,22}|[0-9a/:]{1,4}") {
        let expected = text.parse::<i64>().ok();
        prop_assert_eq!(number::natural_text(text.as_bytes()).ok(), expected);
    }
}

#[test]
fn a_number_of_more_than_200_digits_is_left_to_python() {
    for (length, fits) in [(200, true), (201, false)] {
        let text = "1".repeat(length);
        assert_eq!(
            number::skip(&mut Cursor::new(text.as_bytes())).is_ok(),
            fits
        );
        assert_eq!(
            number::float(&mut Cursor::new(text.as_bytes())).is_ok(),
            fits
        );
    }
}
