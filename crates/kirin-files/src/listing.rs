//! Lists of the files in a directory, for places with `listing`.
//!
//! [`crate::Files`] calls this when a directory has no index page. Every name is escaped. Hidden
//! files, and files that could not be served, are left out. No list is cached, so each list is as
//! new as its request.

use std::fmt::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, UNIX_EPOCH};

use kirin_http::percent::{self, RESERVED};
use kirin_http::{Body, RequestHead, Response, StatusCode, html};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use crate::file_name::FileName;
use crate::redirect::DirectoryRedirect;
use crate::root::{FilesRoot, OpenError, Opened};

/// The most files in a list. The event loop waits some microseconds for each of them.
const MAX_ENTRIES: usize = 5000;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DirectoryEntry {
    name: Vec<u8>,
    /// The size in bytes. None for a directory.
    size_bytes: Option<u64>,
    /// The last change, in seconds since the epoch.
    modified: i64,
}

/// Returns the list of the directory that `request` asks for, if it is a directory.
pub(crate) fn answer(root: &FilesRoot, request: &RequestHead<'_>) -> Option<Response> {
    let path = FileName::parse(request.path).ok().filter(|path| !path.is_hidden())?;
    let directory = match root.open_directory_beneath(&path.name) {
        Ok(directory) => directory,
        Err(OpenError::Absent) => return None,
        Err(error) => {
            tracing::warn!(root = %root.path().display(), path = request.path, ?error, "directory is not listed");
            return None;
        }
    };
    if !path.directory {
        return Some(DirectoryRedirect::to(&path).respond(request.query));
    }
    let (entries, is_whole) = read(root, &path, directory).ok()?;
    let text = page(&path, &entries, is_whole);
    let mut response =
        Response::new(crate::ANSWERED_BY, StatusCode::OK, Body::from(text.into_bytes()));
    response.fields.push("Content-Type", "text/html; charset=utf-8");
    Some(response)
}

/// Returns the entries in the order of the page, and whether these are all.
fn read(
    root: &FilesRoot,
    path: &FileName,
    directory: OwnedFd,
) -> rustix::io::Result<(Vec<DirectoryEntry>, bool)> {
    let mut entries = Vec::new();
    let mut is_whole = true;
    for found in Dir::read_from(&directory)? {
        let name = found?.file_name().to_bytes().to_vec();
        if !is_shown(path, &name) {
            continue;
        }
        if entries.len() == MAX_ENTRIES {
            is_whole = false;
            break;
        }
        entries.extend(look_at(root, path, directory.as_fd(), name));
    }
    entries
        .sort_by(|a, b| (a.size_bytes.is_some(), &a.name).cmp(&(b.size_bytes.is_some(), &b.name)));
    Ok((entries, is_whole))
}

/// Returns whether a request for this entry could be answered.
fn is_shown(path: &FileName, name: &[u8]) -> bool {
    let is_well_known = path.name.is_empty() && name == b".well-known";
    (!name.starts_with(b".") || is_well_known) && !name.iter().any(u8::is_ascii_control)
}

fn look_at(
    root: &FilesRoot,
    path: &FileName,
    directory: impl AsFd,
    name: Vec<u8>,
) -> Option<DirectoryEntry> {
    let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let modified = stat.st_mtime;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            Some(DirectoryEntry { name, size_bytes: u64::try_from(stat.st_size).ok(), modified })
        }
        FileType::Directory => Some(DirectoryEntry { name, size_bytes: None, modified }),
        FileType::Symlink => {
            // A link can be served only if it stays below the root. So only such a link shows its
            // target.
            let whole = [&path.name[..], b"/", &name].concat();
            match root.open_beneath(whole.strip_prefix(b"/").unwrap_or(&whole)).ok()? {
                Opened::File(file) => Some(DirectoryEntry {
                    name,
                    size_bytes: Some(file.state.size),
                    modified: file.state.modified.0,
                }),
                Opened::Directory => Some(DirectoryEntry { name, size_bytes: None, modified }),
                Opened::Special => None,
            }
        }
        _ => None,
    }
}

fn page(path: &FileName, entries: &[DirectoryEntry], is_whole: bool) -> String {
    let end: &[u8] = if path.name.is_empty() { b"" } else { b"/" };
    let shown_path = as_html(&[b"/", &path.name[..], end].concat());
    let mut page = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>Index of {shown_path}</title>\n\
         <style>td {{ padding-right: 2em }} td:nth-child(2) {{ text-align: right }}</style></head>\n\
         <body><h1>Index of {shown_path}</h1>\n<table>\n"
    );
    if !path.name.is_empty() {
        page.push_str("<tr><td><a href=\"../\">../</a></td></tr>\n");
    }
    for entry in entries {
        let slash = if entry.size_bytes.is_none() { "/" } else { "" };
        let size = entry.size_bytes.map_or("-".to_owned(), |size| size.to_string());
        // `./` prevents that a name with a colon is read as a scheme. Writing to a String cannot
        // fail.
        let _ = writeln!(
            page,
            "<tr><td><a href=\"./{}{slash}\">{}{slash}</a></td><td>{size}</td><td>{}</td></tr>",
            percent::encode(&entry.name, RESERVED),
            as_html(&entry.name),
            date(entry.modified)
        );
    }
    page.push_str("</table>\n");
    if !is_whole {
        let _ = writeln!(
            page,
            "<p>There are more than {MAX_ENTRIES} files; the others are not shown.</p>"
        );
    }
    page.push_str("</body></html>\n");
    page
}

/// Returns `text` as HTML. Bytes that are not UTF-8 become replacement characters.
fn as_html(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    String::from_utf8_lossy(&html::escape(text.as_bytes())).into_owned()
}

/// Formats a time in UTC: `06 Nov 1994 08:49`.
fn date(seconds: i64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    // httpdate knows the calendar up to the year 9999: `Sun, 06 Nov 1994 08:49:37 GMT`.
    match seconds {
        0..253_402_300_800 => httpdate::fmt_http_date(time).get(5..22).unwrap_or("-").to_owned(),
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
