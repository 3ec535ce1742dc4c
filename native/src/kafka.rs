//! Records of Kafka as parallel columns, read by the client library that Python has loaded.
//!
//! The library (librdkafka) is the one of the Python client, found by the addresses of its
//! functions. What the Python client does in six calls and one object a record is one loop here.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::Buffer;
use crate::librdkafka::{Handle, Library, Message, text_at};
use crate::texts::{Owner, Span, Texts};

const CONSUMER: c_int = 0x1;
const TEXT: usize = 512;
const KEPT_ERRORS: usize = 8;
const METADATA_MILLISECONDS: c_int = 2000;

type Errors = Mutex<VecDeque<(c_int, String)>>;

/// Records of one topic partition as parallel columns, and what the client said between them.
///
/// What the client says of no partition has the topic "". `offsets`, `timestamps` and `sizes` (bytes
/// of key and value) are 64-bit integers. An event is the code of an error, its text and the offset
/// at which it was met.
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

/// A consumer that is told what to read; it neither joins a group nor commits.
#[pyclass(module = "ingestd_native")]
pub struct Consumer {
    library: Library,
    client: Handle,
    queue: Handle,
    errors: Box<Errors>,
    /// The threads of the client live in this process only.
    process: u32,
    waiting: Vec<*mut Message>,
    /// Topics that were read before, so that the client knows where they lie.
    known: HashSet<String>,
}

// SAFETY: the library's handles may be used from any thread; pyo3 lets in one at a time.
unsafe impl Send for Consumer {}
unsafe impl Sync for Consumer {}

#[pymethods]
impl Consumer {
    /// A client with these properties. ValueError names a property that does not do.
    #[new]
    fn connect(
        addresses: HashMap<String, usize>,
        properties: HashMap<String, String>,
    ) -> PyResult<Self> {
        let library = Library::at(&addresses)?;
        let errors: Box<Errors> = Box::default();
        // SAFETY: a new client's configuration is given over to `rd_kafka_new`, or freed here.
        let (client, queue) = unsafe {
            let conf = (library.conf_new)();
            for (name, value) in &properties {
                if let Err(error) = set(&library, conf, name, value) {
                    (library.conf_destroy)(conf);
                    return Err(error);
                }
            }
            (library.conf_set_opaque)(conf, (&raw const *errors).cast_mut().cast());
            (library.conf_set_error_cb)(conf, note_error);
            (library.conf_set_log_cb)(conf, null());
            let mut text = [0 as c_char; TEXT];
            let client = (library.new)(CONSUMER, conf, text.as_mut_ptr(), TEXT);
            if client.is_null() {
                (library.conf_destroy)(conf);
                return Err(PyValueError::new_err(text_at(text.as_ptr())));
            }
            (library.poll_set_consumer)(client);
            (client, (library.queue_get_consumer)(client))
        };
        let process = std::process::id();
        Ok(Consumer {
            library,
            client,
            queue,
            errors,
            process,
            waiting: Vec::new(),
            known: HashSet::new(),
        })
    }

    /// Read these topic partitions, each from an offset on, and nothing else.
    ///
    /// The client looks for the brokers of new topics once a second; here they are asked for at
    /// once. If nobody answers, reading will say so.
    fn assign(&mut self, py: Python, places: Vec<(String, i32, i64)>) -> PyResult<()> {
        let client = self.open()? as usize;
        let library = self.library;
        let mut names = Vec::with_capacity(places.len());
        for (topic, partition, offset) in &places {
            names.push((CString::new(topic.as_str())?, *partition, *offset));
        }
        let is_new = places.iter().any(|(topic, ..)| !self.known.contains(topic));
        let error = py.detach(|| {
            // SAFETY: the list lives until it is destroyed below; the client copies it.
            let error = unsafe {
                let list = (library.list_new)(names.len() as c_int);
                for (topic, partition, offset) in &names {
                    (library.list_add)(list, topic.as_ptr(), *partition);
                    (library.list_set_offset)(list, topic.as_ptr(), *partition, *offset);
                }
                let error = (library.assign)(client as Handle, list);
                (library.list_destroy)(list);
                error
            };
            if error == 0 && is_new {
                let mut found = null();
                // SAFETY: without a topic the client asks for those it was told of; what it
                // answers is given back at once.
                unsafe {
                    let client = client as Handle;
                    let time = METADATA_MILLISECONDS;
                    if (library.metadata)(client, 0, null(), &raw mut found, time) == 0 {
                        (library.metadata_destroy)(found);
                    }
                }
            }
            error
        });
        self.known
            .extend(places.into_iter().map(|(topic, ..)| topic));
        self.checked(error)
    }

    /// Read nothing.
    fn unassign(&mut self) -> PyResult<()> {
        let client = self.open()?;
        // SAFETY: an absent list takes every partition away.
        let error = unsafe { (self.library.assign)(client, null()) };
        self.checked(error)
    }

    /// At most `count` records, those that come within some milliseconds; other threads run.
    ///
    /// Records of one topic partition that come one after the other are together.
    fn consume(&mut self, py: Python, count: usize, milliseconds: i32) -> PyResult<Vec<Records>> {
        self.open()?;
        let library = self.library;
        let queue = self.queue as usize;
        let mut found = std::mem::take(&mut self.waiting);
        found.resize(count, null_mut());
        let messages = found.as_mut_ptr() as usize;
        // SAFETY: the queue is open, and there is room for `count` pointers.
        let got = py.detach(|| unsafe {
            (library.consume)(
                queue as Handle,
                milliseconds,
                messages as *mut *mut Message,
                count,
            )
        });
        found.truncate(usize::try_from(got).unwrap_or(0));
        let keep = std::env::var("INGESTD_KEEP").is_ok();
        let records = runs(py, &library, &found, keep);
        if !keep {
        for &message in &found {
            // SAFETY: each was given over to this function and is not looked at again.
            unsafe { (library.message_destroy)(message) };
        }
        }
        found.clear();
        self.waiting = found;
        if got < 0 {
            return Err(PyRuntimeError::new_err("the client's queue cannot be read"));
        }
        records
    }

    /// Errors of the client as a whole since the last call: code and text.
    fn errors(&self) -> Vec<(c_int, String)> {
        self.errors
            .lock()
            .map(|mut errors| errors.drain(..).collect())
            .unwrap_or_default()
    }

    /// Let go of the brokers; nothing else may be called afterwards but this.
    fn close(&mut self, py: Python) {
        let (client, queue) = (self.client as usize, self.queue as usize);
        (self.client, self.queue) = (null_mut(), null_mut());
        if client == 0 || self.process != std::process::id() {
            return;
        }
        let library = self.library;
        // SAFETY: both were open until now and are forgotten.
        py.detach(|| unsafe {
            (library.close)(client as Handle);
            (library.queue_destroy)(queue as Handle);
            (library.destroy)(client as Handle);
        });
    }
}

impl Consumer {
    fn open(&self) -> PyResult<Handle> {
        match self.client.is_null() {
            true => Err(PyRuntimeError::new_err("the consumer is closed")),
            false => Ok(self.client),
        }
    }

    fn checked(&self, error: c_int) -> PyResult<()> {
        match error {
            0 => Ok(()),
            // SAFETY: the library has a text for every code.
            _ => Err(PyRuntimeError::new_err(unsafe {
                text_at((self.library.error_text)(error))
            })),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        Python::attach(|py| self.close(py));
    }
}

/// Messages that are destroyed once nobody reads their texts any more.
struct Kept {
    library: Library,
    messages: Vec<*mut Message>,
    process: u32,
}

// SAFETY: messages may be destroyed by any thread.
unsafe impl Send for Kept {}
unsafe impl Sync for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        for &message in &self.messages {
            // SAFETY: as above
            unsafe { (self.library.message_destroy)(message) };
        }
    }
}

/// The messages as runs of the same topic partition.
fn runs(py: Python, library: &Library, messages: &[*mut Message], keep: bool) -> PyResult<Vec<Records>> {
    // SAFETY: the library gave the messages, which live until they are destroyed.
    let place = |message: *mut Message| unsafe { ((*message).topic, (*message).partition) };
    messages
        .chunk_by(|&one, &next| place(one) == place(next))
        .map(|run| columns(py, library, run, keep))
        .collect()
}

/// The messages of a run, of which there is at least one.
fn columns(py: Python, library: &Library, messages: &[*mut Message], keep: bool) -> PyResult<Records> {
    let count = messages.len();
    // SAFETY: as above; a message that is about no topic has none.
    let (topic, partition) = unsafe {
        let first = &*messages[0];
        match first.topic.is_null() {
            true => (String::new(), -1),
            false => (text_at((library.topic_name)(first.topic)), first.partition),
        }
    };
    let mut offsets = Vec::with_capacity(count);
    let mut timestamps = Vec::with_capacity(count);
    let mut sizes = Vec::with_capacity(count);
    let mut events = Vec::new();
    let mut good = Vec::with_capacity(count);
    for &pointer in messages {
        // SAFETY: the library gave `count` messages, which live until they are destroyed.
        let message = unsafe { &*pointer };
        if message.error != 0 {
            // SAFETY: as above; the text lives as long as the message.
            let text = unsafe { text_at((library.message_errstr)(pointer)) };
            events.push((message.error, text, message.offset));
            continue;
        }
        good.push(message);
        offsets.push(message.offset);
        // SAFETY: as above; the kind of timestamp is not asked for.
        timestamps.push(unsafe { (library.message_timestamp)(pointer, null_mut()) });
        sizes.push((message.key_length + message.length) as i64);
    }
    let (keys, values) = if keep {
        let owner: Owner = Arc::new(Kept { library: *library, messages: messages.to_vec(), process: std::process::id() });
        let keys = good.iter().map(|m| Span::new(m.key, m.key_length)).collect();
        let values = good.iter().map(|m| Span::new(m.payload, m.length)).collect();
        (Texts::new(keys, owner.clone()), Texts::new(values, owner))
    } else {
        let value = |m: &&Message| (m.payload, m.length);
        let key = |m: &&Message| (m.key, m.key_length);
        (copied(good.iter().map(key)), copied(good.iter().map(value)))
    };
    Ok(Records {
        topic,
        partition,
        offsets: Py::new(py, Buffer::of::<i64>(offsets))?,
        timestamps: Py::new(py, Buffer::of::<i64>(timestamps))?,
        sizes: Py::new(py, Buffer::of::<i64>(sizes))?,
        keys: Py::new(py, keys)?,
        values: Py::new(py, values)?,
        events,
    })
}

/// Texts in memory of their own, one behind the other.
fn copied(parts: impl Iterator<Item = (*const u8, usize)> + Clone) -> Texts {
    let size = parts.clone().map(|(start, length)| if start.is_null() { 0 } else { length }).sum();
    let mut memory: Vec<u8> = Vec::with_capacity(size);
    let spans = parts
        .map(|(start, length)| {
            if start.is_null() {
                return Span::new(start, 0);
            }
            // SAFETY: there is room for all of them; no address changes from here on.
            let span = Span::new(unsafe { memory.as_ptr().add(memory.len()) }, length);
            // SAFETY: the library says that so much memory is there.
            memory.extend_from_slice(unsafe { std::slice::from_raw_parts(start, length) });
            span
        })
        .collect();
    Texts::new(spans, Arc::new(memory))
}

/// Sets one property; the configuration stays whose it was.
unsafe fn set(library: &Library, conf: Handle, name: &str, value: &str) -> PyResult<()> {
    let (name, value) = (CString::new(name)?, CString::new(value)?);
    let mut text = [0 as c_char; TEXT];
    // SAFETY: all texts end in zero and live through the call.
    let outcome =
        unsafe { (library.conf_set)(conf, name.as_ptr(), value.as_ptr(), text.as_mut_ptr(), TEXT) };
    match outcome {
        0 => Ok(()),
        // SAFETY: the library ends what it writes in zero.
        _ => Err(PyValueError::new_err(unsafe { text_at(text.as_ptr()) })),
    }
}

/// Called by the client while its queue is read.
unsafe extern "C" fn note_error(_: Handle, code: c_int, reason: *const c_char, errors: Handle) {
    // SAFETY: `connect` set the pointer, and the box lives longer than the client.
    let errors = unsafe { &*errors.cast::<Errors>() };
    // SAFETY: the library passes a text or nothing.
    let text = unsafe { text_at(reason) };
    if let Ok(mut errors) = errors.lock() {
        if errors.len() == KEPT_ERRORS {
            errors.pop_front();
        }
        errors.push_back((code, text));
    }
}
