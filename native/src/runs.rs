//! A column whose cells are usually equal to the previous one.

/// A JSON text, or None where the field is missing, and the row where the run begins.
pub type Run = (usize, Option<Vec<u8>>);

#[derive(Default)]
pub struct Runs {
    pub runs: Vec<Run>,
}

impl Runs {
    #[inline(always)]
    pub fn push(&mut self, row: usize, text: Option<&[u8]>) {
        let latest = self.runs.last().map(|(_, latest)| latest.as_deref());
        if latest != Some(text) {
            self.runs.push((row, text.map(<[u8]>::to_vec)));
        }
    }
}
