//! Parallel columns of records, from the messages of the client library.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::kafka::Client;
use crate::librdkafka::{Message, text_at};
use crate::texts::{Span, Texts};

/// Shorter texts are copied: the client's overhead for each message is about this large.
const LEAST_KEPT: i64 = 512;

/// Records of one topic partition as parallel columns, and the client's events between them.
///
/// Events of no partition have the topic "". `offsets`, `timestamps` and `sizes` (bytes of key and
/// value) are 64-bit integers. An event consists of an error code, its text and the offset at which
/// it occurred.
#[pyclass(frozen, get_all, module = "ingestd_native")]
pub struct Records {
    topic: String,
    partition: i32,
    offsets: Py<Buffer>,
    timestamps: Py<Buffer>,
    sizes: Py<Buffer>,
    keys: Py<Texts>,
    values: Py<Texts>,
    events: Vec<(c_int, String, i64)>,
}

impl Records {
    /// Returns the records of a batch. With `keep` texts are not copied.
    pub fn of(py: Python, batch: Arc<Batch>, keep: bool) -> PyResult<Records> {
        let (topic, partition) = batch.place();
        let columns = batch.columns();
        let events = batch.events();
        let least = LEAST_KEPT * columns.sizes.len() as i64;
        let (keys, values) = match keep && columns.sizes.iter().sum::<i64>() >= least {
            true => (
                Texts::new(columns.keys, batch.clone()),
                Texts::new(columns.values, batch),
            ),
            // SAFETY: the batch lives until the end of this function.
            false => unsafe { (Texts::copied(&columns.keys), Texts::copied(&columns.values)) },
        };
        Ok(Records {
            topic,
            partition,
            offsets: Py::new(py, Buffer::of::<i64>(columns.offsets))?,
            timestamps: Py::new(py, Buffer::of::<i64>(columns.timestamps))?,
            sizes: Py::new(py, Buffer::of::<i64>(columns.sizes))?,
            keys: Py::new(py, keys)?,
            values: Py::new(py, values)?,
            events,
        })
    }
}

/// The records among messages.
struct Columns {
    offsets: Vec<i64>,
    timestamps: Vec<i64>,
    sizes: Vec<i64>,
    keys: Vec<Span>,
    values: Vec<Span>,
}

/// Messages of one topic partition, destroyed with the last reader of their texts.
pub struct Batch {
    client: Arc<Client>,
    messages: Vec<*mut Message>,
}

// SAFETY: messages do not change, and any thread may destroy them.
unsafe impl Send for Batch {}
unsafe impl Sync for Batch {}

impl Batch {
    /// Takes ownership of messages, of which there is at least one.
    pub fn of(client: &Arc<Client>, messages: &[*mut Message]) -> Self {
        Batch {
            client: client.clone(),
            messages: messages.to_vec(),
        }
    }

    fn messages(&self) -> impl Iterator<Item = (*mut Message, &Message)> {
        // SAFETY: the library gave them, and they live as long as this does.
        self.messages.iter().map(|&one| (one, unsafe { &*one }))
    }

    /// Returns topic and partition; the topic is "" for messages of no partition.
    fn place(&self) -> (String, i32) {
        // SAFETY: as above; a message that is about no topic has none.
        unsafe {
            let first = &*self.messages[0];
            match first.topic.is_null() {
                true => (String::new(), -1),
                false => {
                    let name = (self.client.library.topic_name)(first.topic);
                    (text_at(name), first.partition)
                }
            }
        }
    }

    /// Returns columns of the messages that are records, in one pass.
    fn columns(&self) -> Columns {
        let count = self.messages.len();
        let mut columns = Columns {
            offsets: Vec::with_capacity(count),
            timestamps: Vec::with_capacity(count),
            sizes: Vec::with_capacity(count),
            keys: Vec::with_capacity(count),
            values: Vec::with_capacity(count),
        };
        let timestamp = self.client.library.message_timestamp;
        for (pointer, one) in self.messages().filter(|(_, one)| one.error == 0) {
            columns.offsets.push(one.offset);
            // SAFETY: the message lives; the kind of timestamp is not asked for.
            columns
                .timestamps
                .push(unsafe { timestamp(pointer, null_mut()) });
            columns.sizes.push((one.key_length + one.length) as i64);
            columns.keys.push(Span::new(one.key, one.key_length));
            columns.values.push(Span::new(one.payload, one.length));
        }
        columns
    }

    /// Returns the client's events between records: code, text, and offset.
    fn events(&self) -> Vec<(c_int, String, i64)> {
        let errstr = self.client.library.message_errstr;
        self.messages()
            .filter(|(_, message)| message.error != 0)
            // SAFETY: as above; the text lives as long as the message.
            .map(|(one, message)| {
                (
                    message.error,
                    unsafe { text_at(errstr(one)) },
                    message.offset,
                )
            })
            .collect()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if !self.client.is_here() {
            return;
        }
        for &message in &self.messages {
            // SAFETY: each was taken over and is not looked at again.
            unsafe { (self.client.library.message_destroy)(message) };
        }
    }
}
