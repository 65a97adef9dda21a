//! The standard input of a program: the complete body of the request, in a file.
//!
//! A pipe would need a task that writes, and a program that does not read its input would make the
//! task fail.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::Stdio;

use bytes::Bytes;
use kirin_spool::SpooledBody;
use rustix::fs::{MemfdFlags, memfd_create};

/// Returns the input with this body. The bytes of `body` move into it; what counts them for the
/// client stays.
pub(crate) fn standard_input(body: &mut SpooledBody) -> io::Result<Stdio> {
    match body {
        SpooledBody::Memory { bytes, .. } if bytes.is_empty() => Ok(Stdio::null()),
        SpooledBody::Memory { bytes, .. } => {
            let mut file = File::from(memfd_create("kirin-cgi-input", MemfdFlags::CLOEXEC)?);
            file.write_all(&std::mem::replace(bytes, Bytes::new()))?;
            file.rewind()?;
            Ok(file.into())
        }
        SpooledBody::File { .. } => Ok(body.reopen()?.into()),
    }
}
