//! Read Kafka records as parallel columns, by the client library that Python has loaded.
//!
//! The library (librdkafka) is that of the Python client, called by the addresses of its functions.
//! The Python client makes six calls and one object for each record; here it is one loop.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::librdkafka::{Handle, Library, Message, text_at};
use crate::records::{Batch, Records};

const CONSUMER: c_int = 0x1;
const TEXT: usize = 512;
const KEPT_ERRORS: usize = 8;
const METADATA_MILLISECONDS: c_int = 2000;

type Errors = Mutex<VecDeque<(c_int, String)>>;

/// A client of the brokers. Holders of its messages also hold the client, which must outlive them.
pub struct Client {
    pub library: Library,
    handle: Handle,
    queue: Handle,
    errors: Box<Errors>,
    /// The process of the client's threads.
    process: u32,
}

// SAFETY: the library's handles may be used from any thread.
unsafe impl Send for Client {}
unsafe impl Sync for Client {}

impl Client {
    /// Whether this process created the client, rather than a fork of it.
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        let (library, handle, queue) = (self.library, self.handle as usize, self.queue as usize);
        // SAFETY: no other process holds the client, nor any message of it.
        Python::attach(|py| {
            py.detach(|| unsafe {
                (library.queue_destroy)(queue as Handle);
                (library.destroy)(handle as Handle);
            });
        });
    }
}

/// A consumer with assigned partitions; it neither joins a group nor commits.
#[pyclass(module = "ingestd_native")]
pub struct Consumer {
    library: Library,
    client: Option<Arc<Client>>,
    waiting: Vec<*mut Message>,
    /// Topics that were read before, whose brokers the client therefore knows.
    known: HashSet<String>,
}

// SAFETY: pyo3 admits one thread at a time, and no other process uses the buffered messages.
unsafe impl Send for Consumer {}
unsafe impl Sync for Consumer {}

#[pymethods]
impl Consumer {
    /// Creates a client with these properties. Raises ValueError that names an invalid property.
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
        let client = Client {
            library,
            handle: client,
            queue,
            errors,
            process: std::process::id(),
        };
        Ok(Consumer {
            library,
            client: Some(Arc::new(client)),
            waiting: Vec::new(),
            known: HashSet::new(),
        })
    }

    /// Reads only these topic partitions, each from its offset.
    ///
    /// The client looks up the brokers of new topics once a second; here they are requested at once.
    /// If no broker answers, reading reports it.
    fn assign(&mut self, py: Python, places: Vec<(String, i32, i64)>) -> PyResult<()> {
        let client = self.open()?.handle as usize;
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
                // SAFETY: without a topic the client requests all assigned ones; the result is freed
                // immediately.
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

    /// Reads no topic partition.
    fn unassign(&mut self) -> PyResult<()> {
        let client = self.open()?.handle;
        // SAFETY: a null list unassigns all partitions.
        let error = unsafe { (self.library.assign)(client, null()) };
        self.checked(error)
    }

    /// Returns at most `count` records that arrive within some milliseconds; releases the GIL.
    ///
    /// Successive records of one topic partition are grouped. With `keep` their texts stay in the
    /// memory of the client, together with everything fetched with them; otherwise they are copied, as
    /// are short ones.
    fn consume(
        &mut self,
        py: Python,
        count: usize,
        milliseconds: i32,
        keep: bool,
    ) -> PyResult<Vec<Records>> {
        let client = self.open()?.clone();
        let library = self.library;
        let queue = client.queue as usize;
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
        // SAFETY: the library gave the messages, which live until they are destroyed.
        let place = |message: *mut Message| unsafe { ((*message).topic, (*message).partition) };
        let records = found
            .chunk_by(|&one, &next| place(one) == place(next))
            .map(|run| Batch::of(&client, run))
            .map(|batch| Records::of(py, Arc::new(batch), keep))
            .collect();
        found.clear();
        self.waiting = found;
        if got < 0 {
            return Err(PyRuntimeError::new_err("the client's queue cannot be read"));
        }
        records
    }

    /// Errors of the client as a whole since the last call: code and text.
    fn errors(&self) -> Vec<(c_int, String)> {
        let Some(client) = &self.client else {
            return Vec::new();
        };
        client
            .errors
            .lock()
            .map(|mut errors| errors.drain(..).collect())
            .unwrap_or_default()
    }

    /// Closes the consumer; no other method may be called afterwards.
    ///
    /// The client itself is destroyed with the last of its texts.
    fn close(&mut self, py: Python) {
        let Some(client) = self.client.take().filter(|client| client.is_here()) else {
            return;
        };
        let library = self.library;
        let handle = client.handle as usize;
        // SAFETY: the client is open until now.
        py.detach(|| unsafe {
            (library.close)(handle as Handle);
        });
    }
}

impl Consumer {
    fn open(&self) -> PyResult<&Arc<Client>> {
        self.client
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("the consumer is closed"))
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

/// Sets one property; the caller keeps the configuration.
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
