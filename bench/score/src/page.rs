//! Reads the memo site's pages as far as a visitor needs: forms by their target, hidden tokens, and
//! links by their target. There is no I/O.

use memchr::memmem;

/// The name of the hidden field. It proves that the form is the site's own.
const TOKEN_FIELD: &[u8] = b"name=\"csrf_token\"";

/// Returns the part of the page above the content. It contains neither the text of a memo, which
/// any member may have written, nor the title.
pub fn top(body: &[u8]) -> &[u8] {
    let begin = memmem::find(body, b"<body").unwrap_or_default();
    let end = memmem::find(body, b"<main").unwrap_or(body.len());
    body.get(begin..end).unwrap_or_default()
}

/// Returns the token of the sign-out form. The page has this form only if the site regards its
/// reader as signed in.
pub fn token_of_session(body: &[u8]) -> Option<&str> {
    token_of_form(top(body), "/signout")
}

/// Returns the token of the form that sends to `action`.
pub fn token_of_form<'a>(html: &'a [u8], action: &str) -> Option<&'a str> {
    let form = memmem::find(html, format!("action=\"{action}\"").as_bytes())?;
    let form = html.get(form..)?;
    let form = form.get(..memmem::find(form, b"</form>")?)?;
    let field = form.get(memmem::find(form, TOKEN_FIELD)?..)?;
    attribute(field.get(memmem::find(field, b"value=")?..)?)
}

/// Returns whether the page links to this memo.
pub fn links_to_memo(body: &[u8], id: u64) -> bool {
    memmem::find(body, format!("\"/memo/{id}\"").as_bytes()).is_some()
}

/// Returns the number of links to memos.
pub fn memo_links(body: &[u8]) -> usize {
    memmem::find_iter(body, b"href=\"/memo/").count()
}

/// Returns the value of the first attribute, without its double quotes.
fn attribute(html: &[u8]) -> Option<&str> {
    let begin = memchr::memchr(b'"', html)? + 1;
    let value = html.get(begin..)?;
    std::str::from_utf8(value.get(..memchr::memchr(b'"', value)?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::{links_to_memo, memo_links, token_of_form, token_of_session, top};

    const SIGNED_IN: &[u8] = br#"<html><head><title>ann</title></head><body><header><strong>bob</strong>
        <form method="post" action="/signout"><input type="hidden" name="csrf_token" value="t0k"></form></header>
        <main><form action="/memo"><input name="csrf_token" type="hidden" value="other"></form></main></body>"#;

    #[test]
    fn a_form_has_its_own_token() {
        assert_eq!(token_of_session(SIGNED_IN), Some("t0k"));
        assert_eq!(token_of_form(SIGNED_IN, "/memo"), Some("other"));
        assert_eq!(token_of_form(SIGNED_IN, "/signin"), None);
    }

    #[test]
    fn the_top_has_neither_title_nor_content() {
        let top = String::from_utf8_lossy(top(SIGNED_IN));
        assert!(top.contains("bob") && !top.contains("ann") && !top.contains("other"), "{top}");
    }

    #[test]
    fn a_sign_out_form_that_a_memo_quotes_signs_nobody_in() {
        let body = br#"<body><main><form action="/signout">
            <input name="csrf_token" value="x"></form></main>"#;
        assert_eq!(token_of_session(body), None);
    }

    #[test]
    fn links_are_told_from_those_that_begin_alike() {
        let body = br#"<a href="/memo/17">a</a><a class="b" href="/memo/2">c</a>"#;
        assert!(links_to_memo(body, 17) && !links_to_memo(body, 1));
        assert_eq!(memo_links(body), 2);
    }

    #[test]
    fn nonsense_has_no_token() {
        for html in [
            "action=\"/a\"",
            "action=\"/a\" name=\"csrf_token\"",
            "action=\"/a\" name=\"csrf_token\" value=\"x</form>",
        ] {
            assert_eq!(token_of_form(html.as_bytes(), "/a"), None, "{html}");
        }
    }
}
