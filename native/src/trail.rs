//! What an object looked like the latest time: the text between values that differ each time.
//!
//! Objects of one origin have their fields in one order, and many values never change. So an object
//! is mostly a few constant texts with values between them, and a text is quicker compared than
//! read. Where one differs, the object is read field by field from there on, and learnt again.

use crate::cursor::Piece;

/// How often an object may be learnt again in one reading.
const LESSONS: usize = 24;
/// Longer values are read each time.
const LONGEST_CONSTANT: usize = 64;

/// A field as it was written at one place of the latest object.
pub struct Place {
    /// `"name":`
    pub token: Piece,
    pub field: Option<usize>,
    /// All text from the value before to the value.
    lead: Vec<u8>,
    /// The value, if it was the same ever since the field was met here.
    constant: Option<Vec<u8>>,
}

impl Place {
    pub fn new(token: Vec<u8>, field: Option<usize>) -> Self {
        let token = Piece::new(token);
        Place {
            token,
            field,
            lead: Vec::new(),
            constant: None,
        }
    }

    /// Whether nothing is noted yet.
    fn is_new(&self) -> bool {
        self.lead.is_empty()
    }
}

/// What follows a constant text.
#[derive(Clone, Copy)]
pub enum Then {
    /// The value of a field.
    Field(usize),
    /// A value that no one wants.
    Skip,
    /// Nothing of the object.
    End,
}

/// A constant text, and what follows it.
pub struct Step {
    pub text: Piece,
    pub then: Then,
    /// The place of the first field that the text names.
    pub first: usize,
    /// Known fields that the text names.
    pub named: Vec<usize>,
    /// Fields whose constant value is a cell too, with the value.
    pub repeated: Vec<(usize, Vec<u8>)>,
}

#[derive(Default)]
pub struct Trail {
    /// The fields of the latest object that was read one by one.
    pub places: Vec<Place>,
    pub steps: Vec<Step>,
    lessons: usize,
}

impl Trail {
    pub fn forget(&mut self) {
        *self = Trail::default();
    }

    /// Whether it is still worth learning.
    pub fn learns(&self) -> bool {
        self.lessons < LESSONS
    }

    /// The number of the latest lesson, zero before the first.
    pub fn lesson(&self) -> usize {
        self.lessons
    }

    /// Notes what is at a place; `steady` says that the value may be the same each time.
    pub fn note(&mut self, place: usize, lead: &[u8], value: &[u8], steady: bool) {
        let Some(noted) = self.places.get_mut(place) else {
            return;
        };
        if noted.is_new() {
            let kept = steady && value.len() <= LONGEST_CONSTANT;
            noted.constant = kept.then(|| value.to_vec());
        } else if noted.constant.as_deref() != Some(value) {
            noted.constant = None;
        }
        noted.lead.clear();
        noted.lead.extend_from_slice(lead);
    }

    /// Makes the steps of an object that was read to its end: so many fields, and then `tail`.
    ///
    /// `is_cell` tells the fields whose constant value is a cell.
    pub fn learn(&mut self, count: usize, tail: &[u8], is_cell: impl Fn(usize) -> bool) {
        self.lessons += 1;
        self.places.truncate(count);
        self.steps.clear();
        let mut draft = Draft::default();
        for (place, noted) in self.places.iter().enumerate() {
            draft.text.extend_from_slice(&noted.lead);
            draft.named.extend(noted.field);
            match &noted.constant {
                Some(value) => {
                    draft.text.extend_from_slice(value);
                    let cell = noted.field.filter(|&field| is_cell(field));
                    draft
                        .repeated
                        .extend(cell.map(|field| (field, value.clone())));
                }
                None => {
                    let then = noted.field.map_or(Then::Skip, Then::Field);
                    self.steps.push(draft.step(then));
                    draft.first = place + 1;
                }
            }
        }
        draft.text.extend_from_slice(tail);
        self.steps.push(draft.step(Then::End));
    }
}

/// A step as it grows.
#[derive(Default)]
struct Draft {
    text: Vec<u8>,
    first: usize,
    named: Vec<usize>,
    repeated: Vec<(usize, Vec<u8>)>,
}

impl Draft {
    fn step(&mut self, then: Then) -> Step {
        Step {
            text: Piece::new(std::mem::take(&mut self.text)),
            then,
            first: self.first,
            named: std::mem::take(&mut self.named),
            repeated: std::mem::take(&mut self.repeated),
        }
    }
}
