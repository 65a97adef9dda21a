//! Pages: how an item of the store is read as a response.
//!
//! Two formats have a head: `media/type CRLF body`, and a complete HTTP response (status line,
//! field lines, empty line, body). All other items are fragments. They can be included but not
//! requested, so that a session or a counter is never served by its key.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use kirin_cache::{storable, surrogate};
use kirin_compress::{AcceptEncoding, Coding, MIN_BYTES};
use kirin_http::FieldLines;
use kirin_http::date::parse_date;
use kirin_http::media_type::{is_html, is_well_formed};
use kirin_http::response_head::{self, Field, Framing};
use kirin_ssi::{Syntax, Template};
use xxhash_rust::xxh3::xxh3_128;

use crate::filters::coded_fields;
use crate::filters::push::store_field::{STORE, syntax_of};
use crate::pages::page_renewal::PageRenewal;
use crate::routing::protection::Protection;

/// The longest `media/type` line, in bytes.
const MAX_MEDIA_TYPE_BYTES: usize = 200;

/// An item, compiled.
pub struct Page {
    /// The head of its response. `None` for a fragment.
    pub head: Option<PageHead>,
    /// The body, cut at its directives. It is one literal if the media type has none.
    pub template: Arc<Template>,
    /// The body as it was stored.
    pub body: Bytes,
    /// The digest of the complete item.
    pub digest: u128,
    /// The conditions that a request must have passed to get it.
    pub protection: Protection,
    /// The requests that renew it when it is stale.
    pub renewal: PageRenewal,
    /// The page for routes with `esi`, if it differs there.
    edge: Option<Arc<Page>>,
}

/// The head of a page.
pub struct PageHead {
    /// 200, or the status of the stored response.
    pub status: StatusCode,
    /// The prepared field lines. They have the ETag if the page has no directives.
    pub fields: FieldLines,
    /// The fields for a route that compresses, if the page may be coded: `Vary` says so.
    pub varying: Option<FieldLines>,
    /// The value of the ETag, if the page has no directives.
    pub etag: Vec<u8>,
    /// `Last-Modified` in seconds since the epoch, when the page has no includes.
    pub last_modified: Option<u64>,
    /// Whether `Cache-Control`, `Expires` or `Vary` is among the fields. A page that includes this
    /// one needs them.
    pub says_cacheability: bool,
    /// The coding that the stored response has already.
    pub stored_coding: Option<StoredCoding>,
}

/// `Content-Encoding` of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredCoding {
    /// A coding that Kirin knows.
    Known(Coding),
    /// A coding that Kirin does not know, or several.
    Unknown,
}

impl StoredCoding {
    /// Returns whether a client with this `Accept-Encoding` accepts the coding. A client without
    /// the field accepts any coding (RFC 9110 section 12.5.3).
    pub fn is_taken_by(self, accept_encoding: Option<&[u8]>) -> bool {
        match (self, accept_encoding) {
            (_, None) | (StoredCoding::Unknown, _) => true,
            (StoredCoding::Known(coding), Some(value)) => {
                AcceptEncoding::parse(Some(value)).takes(coding)
            }
        }
    }
}

impl Page {
    /// Compiles the value of an item. The second part is the memory that the page takes beside the
    /// item, in bytes.
    pub fn compile(value: &Bytes) -> (Page, usize) {
        let (page, memory_bytes) = Page::compile_for(value, Syntax::SSI);
        if !may_be_dynamic(value, Syntax::ESI) && !page.has_surrogate_control() {
            return (page, memory_bytes);
        }
        let (edge, edge_bytes) = Page::compile_for(value, Syntax { ssi: true, esi: true });
        (Page { edge: Some(Arc::new(edge)), ..page }, memory_bytes + edge_bytes)
    }

    /// Returns the page as a route with this syntax reads it.
    pub fn read_with(self: Arc<Page>, syntax: Syntax) -> Arc<Page> {
        match &self.edge {
            Some(edge) if syntax.esi => Arc::clone(edge),
            _ => self,
        }
    }

    fn has_surrogate_control(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.fields.get("surrogate-control").is_some())
    }

    fn compile_for(value: &Bytes, syntax: Syntax) -> (Page, usize) {
        let digest = xxh3_128(value);
        let mut protection = Protection::default();
        let (head, body) = match split_head(value) {
            Some((status, mut fields, body)) => {
                protection = Protection::take(&mut fields);
                (Some((status, fields)), body)
            }
            None => (None, value.clone()),
        };
        let may_include = match &head {
            Some((_, fields)) => fields.get("content-type").is_some_and(is_html),
            None => true,
        };
        // A response that was stored while it was sent keeps as text what was text in the response.
        let allowed =
            head.as_ref().map_or(Syntax { ssi: true, esi: true }, |(_, fields)| syntax_of(fields));
        let counts = match may_include {
            true => Syntax { ssi: syntax.ssi && allowed.ssi, esi: syntax.esi && allowed.esi },
            false => Syntax::default(),
        };
        let template = Template::compile(&body, counts);
        let without_ours = |fields: FieldLines| {
            let fields = fields.without(STORE);
            // The field is for Kirin (Edge Architecture Specification section 2.3).
            if syntax.esi { fields.without("surrogate-control") } else { fields }
        };
        let head = head.map(|(status, fields)| (status, without_ours(fields)));
        let head = head
            .map(|(status, fields)| PageHead::new(status, fields, &template, digest, body.len()));
        let head_bytes = head.as_ref().map_or(0, PageHead::memory_bytes);
        let memory_bytes = size_of::<Page>() + template.memory_bytes() + head_bytes + 64;
        let renewal = PageRenewal::default();
        let template = Arc::new(template);
        (Page { head, template, body, digest, protection, renewal, edge: None }, memory_bytes)
    }

    /// Compiles a response of the cache, which is served as it is. The second part is whether it
    /// has a validator, the third the memory it takes in bytes. Returns `None` if it is no
    /// response.
    pub fn from_response(value: &Bytes) -> Option<(Page, bool, usize)> {
        let (status, mut fields, body) = split_response(value)?;
        let has_validator = storable::has_validator(&fields);
        surrogate::remove_consumed(&mut fields);
        let template = Template::default();
        let digest = xxh3_128(&body);
        let head = PageHead::new(status, fields, &template, digest, body.len());
        let memory_bytes = size_of::<Page>() + head.memory_bytes() + 64;
        let (template, renewal) = (Arc::new(template), PageRenewal::default());
        // The cache has rules of its own for responses to requests with a password.
        let protection = Protection::default();
        let page =
            Page { head: Some(head), template, edge: None, body, digest, protection, renewal };
        Some((page, has_validator, memory_bytes))
    }
}

impl PageHead {
    fn new(
        status: StatusCode,
        mut fields: FieldLines,
        template: &Template,
        digest: u128,
        body_bytes: usize,
    ) -> Self {
        let stored_coding = fields.get("content-encoding").map(<[u8]>::to_ascii_lowercase);
        let stored_coding = stored_coding.filter(|name| name != b"identity").map(|name| {
            Coding::from_name(&name).map_or(StoredCoding::Unknown, StoredCoding::Known)
        });
        if stored_coding.is_some() {
            // Clients that do not accept the coding get the answer of another place.
            fields = coded_fields::varying(&fields);
        }
        let mut etag = Vec::new();
        let mut last_modified = None;
        if template.is_dynamic() {
            // They are about the page without its parts.
            fields = fields.without("etag").without("last-modified");
        } else {
            etag = match fields.get("etag") {
                Some(own) => own.to_vec(),
                None => {
                    let made = format!("\"{digest:032x}\"");
                    fields.push("ETag", &made);
                    made.into_bytes()
                }
            };
            last_modified = fields.get("last-modified").and_then(parse_date);
            if status == StatusCode::OK && fields.get("accept-ranges").is_none() {
                fields.push("Accept-Ranges", "bytes");
            }
        }
        let is_long = template.is_dynamic() || body_bytes as u64 >= MIN_BYTES;
        let varying = (is_long && coded_fields::may_be_coded(status, &fields))
            .then(|| coded_fields::varying(&fields).prepare());
        let says_cacheability =
            ["cache-control", "expires", "vary"].iter().any(|name| fields.get(name).is_some());
        let fields = fields.prepare();
        PageHead { status, fields, varying, etag, last_modified, says_cacheability, stored_coding }
    }

    /// Returns the memory that the parts take, in bytes.
    fn memory_bytes(&self) -> usize {
        let varying = self.varying.as_ref().map_or(0, FieldLines::len_bytes);
        self.fields.len_bytes() + varying + self.etag.capacity()
    }
}

/// Returns whether there may be directives in `content`. The check is quick.
pub fn may_be_dynamic(content: &[u8], syntax: Syntax) -> bool {
    let has = |mark: &[u8]| memchr::memmem::find(content, mark).is_some();
    (syntax.ssi && has(b"<!--#"))
        || (syntax.esi && (has(b"<esi:") || has(b"</esi:") || has(b"<!--esi")))
}

/// Returns status, field lines and body of a value that is a page. It compiles nothing.
pub fn split_head(value: &Bytes) -> Option<(StatusCode, FieldLines, Bytes)> {
    if value.starts_with(b"HTTP/1.") {
        return split_response(value);
    }
    let window = &value[..value.len().min(MAX_MEDIA_TYPE_BYTES + 2)];
    let line_end = window.windows(2).position(|pair| pair == b"\r\n")?;
    let media_type = &value[..line_end];
    if !is_well_formed(media_type) {
        return None;
    }
    let mut fields = FieldLines::new();
    fields.try_push(b"Content-Type", media_type).ok()?;
    Some((StatusCode::OK, fields, value.slice(line_end + 2..)))
}

/// Returns the parts of a stored response. The item frames it, whatever its own fields say. A
/// length that contradicts the item shows that it was cut.
fn split_response(value: &Bytes) -> Option<(StatusCode, FieldLines, Bytes)> {
    let (head, length) = response_head::parse(value, |_, _| Field::Keep).ok()??;
    let body = value.slice(length..);
    let is_whole = match head.framing {
        Framing::Length(length) => length == body.len() as u64,
        Framing::UntilClose => true,
        Framing::Chunked => false,
    };
    let mut fields = head.fields;
    // The field is about parts only (RFC 9110 section 14.4).
    fields.remove("content-range");
    (is_whole && !head.status.is_informational()).then_some((head.status, fields, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(value: &'static str) -> Page {
        Page::compile(&Bytes::from_static(value.as_bytes())).0
    }

    #[test]
    fn a_media_type_line_makes_a_page() {
        for (value, media_type, body) in [
            ("text/html\r\n<p>", "text/html", "<p>"),
            ("text/html; charset=UTF-8\r\n", "text/html; charset=UTF-8", ""),
            ("application/vnd.api+json\r\n{}", "application/vnd.api+json", "{}"),
        ] {
            let page = compile(value);
            let head = page.head.expect(value);
            assert_eq!(head.fields.get("content-type"), Some(media_type.as_bytes()));
            assert_eq!(page.body, body);
            assert_eq!(head.status, StatusCode::OK);
        }
    }

    #[test]
    fn an_item_without_a_head_is_a_fragment() {
        for value in [
            "",
            "12",
            "{\"user\":1}",
            "text/html",
            "text/html\nbody",
            "<p>a/b\r\n",
            "/a\r\n",
            "a/\r\n",
            "a b/c\r\n",
        ] {
            assert!(compile(value).head.is_none(), "{value}");
        }
    }

    #[test]
    fn a_stored_response_keeps_status_and_fields_and_loses_framing() {
        let page = compile(
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nX-A: b\r\nConnection: close\r\n\r\ngone",
        );
        let head = page.head.unwrap();
        assert_eq!(head.status, StatusCode::NOT_FOUND);
        assert_eq!(head.fields.get("x-a"), Some(&b"b"[..]));
        assert_eq!(head.fields.get("connection"), None);
        assert_eq!(page.body, "gone");
    }

    #[test]
    fn a_stored_response_that_was_cut_is_not_served() {
        assert!(compile("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ngon").head.is_none());
        assert!(
            compile("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
                .head
                .is_none()
        );
        assert!(compile("HTTP/1.1 100 Continue\r\n\r\n").head.is_none());
    }

    #[test]
    fn only_html_and_fragments_have_includes() {
        assert!(compile("text/html\r\n<!--# include a -->").template.is_dynamic());
        assert!(compile("<b><!--# include a --></b>").template.is_dynamic());
        assert!(!compile("text/plain\r\n<!--# include a -->").template.is_dynamic());
    }

    #[test]
    fn a_stored_response_says_which_directives_count_in_it() {
        let both = "<!--# include a --><esi:include src=\"/a\"/>";
        for (says, ssi, edge) in [
            ("", true, true),
            ("Kirin-Store: ttl=3\r\n", true, true),
            ("Kirin-Store: ssi=?0\r\n", false, true),
            ("Kirin-Store: esi=?0\r\n", true, true),
            ("Kirin-Store: ssi=?0\r\nKirin-Store: esi=?0\r\n", false, false),
            ("Kirin-Store: ssi=?0, esi=?0\r\n", false, false),
        ] {
            let value = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{says}\r\n{both}");
            let page = Arc::new(Page::compile(&Bytes::from(value)).0);
            assert_eq!(page.head.as_ref().unwrap().fields.get("kirin-store"), None, "{says}");
            assert_eq!(page.template.is_dynamic(), ssi, "{says}");
            assert!(!page.template.is_empty(), "{says}");
            let page = page.read_with(Syntax { ssi: true, esi: true });
            assert_eq!(page.template.is_dynamic(), edge, "{says}");
        }
    }
}
