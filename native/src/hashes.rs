//! SHA-2 hashes of the texts of a column, as lower-case hexadecimal text.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::text_columns::{ColumnError, TextColumn};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the hashes of `rows` texts one after the other, null ones included.
///
/// `bits` are 224, 256, 384 or 512; None for other lengths.
pub fn sha2_hex(
    column: &TextColumn,
    rows: usize,
    bits: usize,
) -> Option<Result<Vec<u8>, ColumnError>> {
    match bits {
        224 => Some(hex::<Sha224>(column, rows)),
        256 => Some(hex::<Sha256>(column, rows)),
        384 => Some(hex::<Sha384>(column, rows)),
        512 => Some(hex::<Sha512>(column, rows)),
        _ => None,
    }
}

fn hex<D: Digest>(column: &TextColumn, rows: usize) -> Result<Vec<u8>, ColumnError> {
    let size = 2 * <D as Digest>::output_size();
    let total = rows
        .checked_mul(size)
        .filter(|&total| i32::try_from(total).is_ok());
    let mut text = Vec::with_capacity(total.ok_or(ColumnError::Size)?);
    for row in 0..rows {
        let (start, end) = column.range(row).ok_or(ColumnError::Row)?;
        for byte in D::digest(&column.data[start..end]) {
            text.push(DIGITS[usize::from(byte >> 4)]);
            text.push(DIGITS[usize::from(byte & 15)]);
        }
    }
    Ok(text)
}
