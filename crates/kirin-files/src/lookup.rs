//! Looks up a path in the file system.

use std::rc::Rc;

use kirin_compress::Coding;
use rustix::io::Errno;

use crate::config::FilesConfig;
use crate::file_name::FileName;
use crate::found::{Found, OpenedFile, StaticFile};
use crate::media_type::content_type;
use crate::redirect::Redirect;
use crate::root::{OpenError, OpenFile, Opened, Root};

/// Looks up `path`. Keeps the known result (`previous`) if the file has not changed.
pub(crate) fn look_up(
    root: &Root,
    config: &FilesConfig,
    path: &FileName,
    previous: Option<&Found>,
) -> Result<Found, OpenError> {
    if path.directory {
        return match open_index(root, config, path)? {
            Some((name, original)) => read(root, config, &name, original, previous),
            None => Ok(Found::Absent),
        };
    }
    match open(root, &path.name)? {
        Some(Opened::File(original)) => read(root, config, &path.name, original, previous),
        // Only a directory with an index page or a list belongs to this place, because a route of
        // an application may have the same name.
        Some(Opened::Directory) => Ok(match open_index(root, config, path)? {
            Some(_) => Found::Redirect(Rc::new(Redirect::to(path))),
            None => Found::Absent,
        }),
        Some(Opened::Special) => Err(OpenError::Refused(Errno::NXIO)),
        None => Ok(Found::Absent),
    }
}

/// Returns the first index file in the directory `path`, with its name.
fn open_index(
    root: &Root,
    config: &FilesConfig,
    path: &FileName,
) -> Result<Option<(Vec<u8>, OpenFile)>, OpenError> {
    for index in &config.index {
        let mut name = path.name.clone();
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(index.as_bytes());
        match open(root, &name)? {
            Some(Opened::File(file)) => return Ok(Some((name, file))),
            Some(Opened::Special) => return Err(OpenError::Refused(Errno::NXIO)),
            Some(Opened::Directory) | None => {}
        }
    }
    Ok(None)
}

/// Reads the file and the variants beside it.
fn read(
    root: &Root,
    config: &FilesConfig,
    name: &[u8],
    original: OpenFile,
    previous: Option<&Found>,
) -> Result<Found, OpenError> {
    let mut variants = [None, None, None];
    // A file that is requested by the name of a variant is an original, and seldom has its own
    // variants.
    if !Coding::ALL.iter().any(|coding| name.ends_with(file_suffix(*coding))) {
        for (variant, coding) in variants.iter_mut().zip(Coding::ALL) {
            *variant = open_variant(root, name, coding, &original)?;
        }
    }
    let opened = OpenedFile { content_type: content_type(name), original, variants };
    if let Some(Found::File(file)) = previous
        && file.is_unchanged(&opened)
    {
        return Ok(Found::File(Rc::clone(file)));
    }
    match StaticFile::read(opened, config) {
        Ok(file) => Ok(Found::File(Rc::new(file))),
        Err(error) => Err(OpenError::of_io(&error)),
    }
}

/// Returns the variant of `name` in `coding`, unless it is older than the file. An older one was
/// not updated when the file changed.
fn open_variant(
    root: &Root,
    name: &[u8],
    coding: Coding,
    original: &OpenFile,
) -> Result<Option<OpenFile>, OpenError> {
    let name = [name, file_suffix(coding)].concat();
    match root.open_beneath(&name) {
        Ok(Opened::File(variant)) if variant.state.modified >= original.state.modified => {
            Ok(Some(variant))
        }
        Err(error @ OpenError::Exhausted(_)) => Err(error),
        // Any other error is no reason not to send the original.
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Returns the extension of a variant's name.
fn file_suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

/// Returns `None` for a missing file.
fn open(root: &Root, name: &[u8]) -> Result<Option<Opened>, OpenError> {
    match root.open_beneath(name) {
        Ok(opened) => Ok(Some(opened)),
        Err(OpenError::Absent) => Ok(None),
        Err(error) => Err(error),
    }
}
