//! Errors of scripts as text: file, line, message.

use mlua::Error;

use crate::allowance::TIME_IS_UP;

/// The longest line that a script can write to the log, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 8 * 1024;

/// Formats text for one line of the log. Cuts it at [`MAX_LINE_BYTES`], and escapes control
/// characters, which could make one line look like two.
pub(crate) fn loggable(text: &[u8]) -> String {
    let shown = &text[..text.len().min(MAX_LINE_BYTES)];
    let mut line = String::with_capacity(shown.len());
    for c in String::from_utf8_lossy(shown).chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    if shown.len() < text.len() {
        line.push_str(&format!("... ({} bytes)", text.len()));
    }
    line
}

/// Formats an error in one line: `FILE:LINE: MESSAGE`.
pub(crate) fn describe(error: &Error) -> String {
    let (message, traceback) = parts(error);
    let message = message.lines().next().unwrap_or("unknown error");
    let message = without_prelude(message).to_owned();
    if has_place(&message) {
        return message;
    }
    match traceback.as_deref().and_then(place) {
        Some(place) => format!("{place}: {message}"),
        None => message,
    }
}

/// Removes `kirin:LINE: ` from a message. This is the place in the prelude where one of Lua's own
/// functions was called for the script.
fn without_prelude(message: &str) -> &str {
    let behind = message
        .strip_prefix("kirin:")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    behind.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message)
}

/// Returns the message and the traceback.
fn parts(error: &Error) -> (String, Option<String>) {
    match error {
        Error::CallbackError { traceback, cause } => {
            let (message, inner) = parts(cause);
            // The error happened at the innermost place.
            (message, inner.or_else(|| Some(traceback.clone())))
        }
        Error::RuntimeError(text) | Error::MemoryError(text) => {
            match text.split_once("\nstack traceback:") {
                Some((message, traceback)) => (message.to_owned(), Some(traceback.to_owned())),
                None => (text.clone(), None),
            }
        }
        Error::SyntaxError { message, .. } => (message.clone(), None),
        Error::WithContext { context, cause } => {
            let (message, traceback) = parts(cause);
            (format!("{context}: {message}"), traceback)
        }
        Error::BadArgument { to, pos, name: _, cause } => {
            let (message, traceback) = parts(cause);
            let to = to.as_deref().unwrap_or("a function");
            (format!("bad argument {pos} of {to}: {message}"), traceback)
        }
        other => (other.to_string(), None),
    }
}

/// Returns whether a message starts with `FILE:LINE:`.
pub(crate) fn has_place(message: &str) -> bool {
    let mut parts = message.splitn(3, ':');
    let (file, line) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    file.ends_with(".lua") && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the first place of a traceback that is in a script.
fn place(traceback: &str) -> Option<String> {
    traceback
        .lines()
        .map(str::trim)
        .find(|line| has_place(line))
        .map(|line| line.splitn(3, ':').take(2).collect::<Vec<_>>().join(":"))
}

/// Returns whether the time limit has ended the call.
pub(crate) fn is_time(error: &Error) -> bool {
    parts(error).0.contains(TIME_IS_UP)
}

/// Returns whether memory has run out.
pub(crate) fn is_memory(error: &Error) -> bool {
    match error {
        Error::MemoryError(_) => true,
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => is_memory(cause),
        other => parts(other).0.contains("not enough memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_a_place_in_the_script_and_not_in_the_prelude() {
        let traceback = "stack traceback:\n\t[C]: in function 'format'\n\tkirin:125: in function 'format'\n\tlib/page.lua:7: in function <page.lua:1>";
        for (message, shown) in [
            (
                "page.lua:2: attempt to index a nil value",
                "page.lua:2: attempt to index a nil value",
            ),
            (
                "kirin:125: bad argument #2 to 'format'",
                "lib/page.lua:7: bad argument #2 to 'format'",
            ),
            ("kirin: no such thing", "lib/page.lua:7: kirin: no such thing"),
        ] {
            let error = Error::RuntimeError(format!("{message}\n{traceback}"));
            assert_eq!(describe(&error), shown);
        }
    }
}
