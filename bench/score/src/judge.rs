//! The judge knows the right answers. There is no I/O: it takes an answer, and returns a fault or
//! what the visitor needs next.
//!
//! There are two kinds of fault. A *slip* costs points: no answer, an error, or wrong content. A
//! *breach* disqualifies: a visitor sees the data of another one, or data that is out of date.

use crate::answer::Answer;
use crate::facts::File;
use crate::page;

/// The start of the first word of each private memo that visitors write. No page for other visitors
/// may contain it.
pub const SEALED: &str = "sealed-";

/// The number of memos on a list page, unless it is the last page.
const MEMOS_ON_A_LIST: usize = 100;

/// A fault of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The fault costs points.
    Slip(String),
    /// The fault disqualifies.
    Breach(String),
}

/// The content that a page must have.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A full list of memos.
    List,
    /// All of these texts.
    Words(&'a [&'a str]),
}

/// Checks a public page for a visitor without a cookie.
pub fn for_stranger(answer: &Answer<'_>, content: Content<'_>) -> Result<(), Fault> {
    public(answer, content)?;
    match page::token_of_session(answer.body) {
        Some(_) => Err(Fault::Breach("a stranger is shown somebody's form to sign out".to_owned())),
        None => Ok(()),
    }
}

/// Checks a public page for a member who is signed in. Returns the token of the session from the
/// page.
pub fn for_member(answer: &Answer<'_>, content: Content<'_>, name: &str) -> Result<String, Fault> {
    public(answer, content)?;
    named(answer, name)
}

/// Checks a page that only the member may see: `/mypage` or a private memo. Returns the token of
/// the session.
pub fn own(answer: &Answer<'_>, content: Content<'_>, name: &str) -> Result<String, Fault> {
    page(answer, content)?;
    named(answer, name)
}

/// Checks a page that was requested after signing out, with or without the old cookie.
pub fn after_sign_out(answer: &Answer<'_>, content: Content<'_>, name: &str) -> Result<(), Fault> {
    public(answer, content)?;
    if page::token_of_session(answer.body).is_some() || says(page::top(answer.body), name) {
        return Err(Fault::Breach(format!("{name} has signed out and is still named")));
    }
    Ok(())
}

/// Checks that a private memo of another member is not found.
pub fn refused(answer: &Answer<'_>) -> Result<(), Fault> {
    if answer.status == 200 || answer.says(SEALED) {
        return Err(Fault::Breach("a private memo is shown to somebody else".to_owned()));
    }
    status(answer, 404)
}

/// Checks a redirect to a path that begins with `prefix`. Returns the path.
pub fn sees_other(answer: &Answer<'_>, prefix: &str) -> Result<String, Fault> {
    status(answer, 303)?;
    let location = answer.field("Location");
    // Servers may change the path to an absolute URI (RFC 9110 section 10.2.2).
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => location,
    };
    if path.starts_with(prefix) {
        Ok(path.to_owned())
    } else {
        Err(Fault::Slip(format!("sent on to {location:?} and not to {prefix}")))
    }
}

/// Checks a page with a form that sends to `action`. Returns the token of the form.
pub fn form(answer: &Answer<'_>, action: &str) -> Result<String, Fault> {
    page(answer, Content::Words(&[]))?;
    page::token_of_form(answer.body, action)
        .map(str::to_owned)
        .ok_or_else(|| Fault::Slip(format!("there is no form with a token that sends to {action}")))
}

/// Checks a file byte by byte.
pub fn file(answer: &Answer<'_>, file: &File) -> Result<(), Fault> {
    status(answer, 200)?;
    if !answer.field("Content-Type").starts_with(file.media_type) {
        return Err(Fault::Slip(format!(
            "{} is said to be {}",
            file.path,
            answer.field("Content-Type")
        )));
    }
    if answer.body != file.bytes {
        return Err(Fault::Slip(format!("{} is not the file", file.path)));
    }
    Ok(())
}

/// Checks the answer for a file that the visitor has already.
pub fn unchanged(answer: &Answer<'_>) -> Result<(), Fault> {
    status(answer, 304)
}

fn public(answer: &Answer<'_>, content: Content<'_>) -> Result<(), Fault> {
    if answer.says(SEALED) {
        return Err(Fault::Breach("a private memo is on a page for everybody".to_owned()));
    }
    page(answer, content)
}

fn page(answer: &Answer<'_>, content: Content<'_>) -> Result<(), Fault> {
    status(answer, 200)?;
    if !answer.field("Content-Type").starts_with("text/html") {
        return Err(slip("a page is no HTML", answer));
    }
    if !answer.body.starts_with(b"<!DOCTYPE html>")
        || !answer.body.trim_ascii_end().ends_with(b"</html>")
    {
        return Err(slip("a page is cut", answer));
    }
    match content {
        Content::List if page::memo_links(answer.body) < MEMOS_ON_A_LIST => {
            Err(slip("a list is short", answer))
        }
        Content::List => Ok(()),
        Content::Words(words) => match words.iter().find(|words| !answer.says(words)) {
            Some(missing) => Err(Fault::Slip(format!("a page does not say {missing:?}"))),
            None => Ok(()),
        },
    }
}

fn named(answer: &Answer<'_>, name: &str) -> Result<String, Fault> {
    match page::token_of_session(answer.body) {
        Some(token) if says(page::top(answer.body), name) => Ok(token.to_owned()),
        Some(_) => Err(Fault::Breach(format!("{name} is shown somebody else's form to sign out"))),
        None => Err(Fault::Slip(format!("{name} is signed in and not on the page"))),
    }
}

fn status(answer: &Answer<'_>, wanted: u16) -> Result<(), Fault> {
    if answer.status == wanted {
        Ok(())
    } else {
        Err(Fault::Slip(format!("status {} and not {wanted}", answer.status)))
    }
}

fn slip(what: &str, answer: &Answer<'_>) -> Fault {
    Fault::Slip(format!("{what}: {} bytes of {}", answer.body.len(), answer.field("Content-Type")))
}

fn says(html: &[u8], words: &str) -> bool {
    memchr::memmem::find(html, words.as_bytes()).is_some()
}

#[cfg(test)]
mod tests;
