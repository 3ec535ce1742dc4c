//! A consumer of Kafka, whose records are parallel columns.
//!
//! The client library is that of the Python client, called by the addresses of its functions. The
//! Python client makes six calls and one object for each record; here it is one loop.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_int};
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::librdkafka::{Client, Library, TokenFunction};
use super::records::{Batch, Records};

/// A consumer with assigned partitions; it neither joins a group nor commits.
#[pyclass(module = "ingestd_native")]
pub struct Consumer {
    client: Option<Arc<Client>>,
    /// Topics that were read before, whose brokers the client therefore knows.
    known: HashSet<String>,
}

#[pymethods]
impl Consumer {
    /// Creates a client with these properties. Raises ValueError that names an invalid property.
    ///
    /// `token` is called on a thread of the client with `sasl.oauthbearer.config`; it returns a token
    /// for OAUTHBEARER, its end in seconds since 1970, the principal, and extensions by name.
    #[new]
    #[pyo3(signature = (addresses, properties, token=None))]
    fn connect(
        addresses: HashMap<String, usize>,
        properties: HashMap<String, String>,
        token: Option<TokenFunction>,
    ) -> PyResult<Self> {
        let library = Library::at(&addresses).map_err(PyValueError::new_err)?;
        let client = Client::connect(library, &properties, token).map_err(PyValueError::new_err)?;
        Ok(Consumer {
            client: Some(Arc::new(client)),
            known: HashSet::new(),
        })
    }

    /// Reads only these topic partitions, each from its offset.
    ///
    /// The client looks up the brokers of new topics once a second; here they are requested at once.
    /// If no broker responds, reading reports it.
    fn assign(&mut self, py: Python, offsets: Vec<(String, i32, i64)>) -> PyResult<()> {
        let client = self.open()?.clone();
        let mut names = Vec::with_capacity(offsets.len());
        let mut is_new = false;
        for (topic, partition, offset) in offsets {
            names.push((CString::new(topic.as_str())?, partition, offset));
            is_new |= self.known.insert(topic);
        }
        let outcome = py.detach(|| {
            client.assign(&names)?;
            if is_new {
                client.look_up_brokers();
            }
            Ok(())
        });
        outcome.map_err(PyRuntimeError::new_err::<String>)
    }

    /// Reads no topic partition.
    fn unassign(&mut self) -> PyResult<()> {
        self.open()?.unassign().map_err(PyRuntimeError::new_err)
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
        let client = self.open()?;
        let messages = py
            .detach(|| client.consume(count, milliseconds))
            .ok_or_else(|| PyRuntimeError::new_err("the client's queue cannot be read"))?;
        Batch::split(client, messages)
            .into_iter()
            .map(|batch| Records::of(py, Arc::new(batch), keep))
            .collect()
    }

    /// Errors of the client as a whole since the last call: code and text.
    fn errors(&self) -> Vec<(c_int, String)> {
        let client = self.client.as_ref();
        client.map_or_else(Vec::new, |client| client.take_errors())
    }

    /// Closes the consumer; no other method may be called afterwards.
    ///
    /// The client itself is destroyed with the last of its texts.
    fn close(&mut self, py: Python) {
        if let Some(client) = self.client.take()
            && client.is_here()
        {
            py.detach(|| client.close());
        }
    }
}

impl Consumer {
    fn open(&self) -> PyResult<&Arc<Client>> {
        self.client
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("the consumer is closed"))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        Python::attach(|py| self.close(py));
    }
}
