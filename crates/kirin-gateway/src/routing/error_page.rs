//! The `error_pages` of a route: which page replaces which error.
//!
//! Pure. The router (`router/error_pages.rs`) gets the page as it would for a GET of its path, and
//! calls [`with_error_page`].

use http::StatusCode;
use kirin_http::{AnsweredBy, FieldLines, Response};

use super::path_pattern::PathPattern;
use super::path_template::PathTemplate;
use super::variables::Variable;

/// The pages by status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    pages: Vec<(Errors, ErrorPage)>,
    /// Whether error responses of applications and of the store are replaced too.
    pub intercept: bool,
}

/// The path of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorPage {
    /// As the configuration has it.
    written: String,
    template: PathTemplate,
}

/// The statuses that share a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errors {
    One(u16),
    /// 4 for `4xx`.
    Class(u16),
}

impl ErrorPages {
    /// Adds a page for `404` or `5xx`. `path` is the path of the page, which may have variables.
    /// `pattern` is the path of the route. The error says what is allowed.
    pub fn add(&mut self, errors: &str, path: &str, pattern: &PathPattern) -> Result<(), String> {
        let errors = match errors {
            "4xx" => Errors::Class(4),
            "5xx" => Errors::Class(5),
            _ => errors
                .parse()
                .ok()
                .filter(|status| errors.len() == 3 && (400..600).contains(status))
                .map(Errors::One)
                .ok_or(format!("`{errors}` is no error; allowed are 400 to 599, 4xx and 5xx"))?,
        };
        check_path(path).map_err(|message| format!("error page {message}"))?;
        let template = PathTemplate::parse(path, pattern, str::to_owned)
            .map_err(|message| format!("error page `{path}`: {message}"))?;
        if template.has(&Variable::User) {
            return Err(format!(
                "error page `{path}`: `{{user}}` is not known, because most errors come before"
            ));
        }
        self.pages.push((errors, ErrorPage { written: path.to_owned(), template }));
        // Pages for one status come first.
        self.pages.sort_by_key(|(errors, _)| matches!(errors, Errors::Class(_)));
        Ok(())
    }

    /// Returns the pages as the configuration has them, such as `5xx = /sorry`.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.pages.iter().map(|(errors, page)| match errors {
            Errors::One(status) => format!("{status} = {}", page.written),
            Errors::Class(class) => format!("{class}xx = {}", page.written),
        })
    }

    /// Returns whether there are no pages.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns the paths of all pages.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.pages.iter().map(|(_, page)| page.written.as_str())
    }

    /// Returns the path of the page for `response`, if it must be replaced.
    pub fn page_for(&self, response: &Response) -> Option<&PathTemplate> {
        let status = response.status.as_u16();
        if status < 400 {
            return None;
        }
        // An error of Kirin itself or of a directory is no content. Those of other places are,
        // unless the configuration says otherwise.
        let is_content =
            !matches!(response.answered_by, AnsweredBy::SERVER | kirin_files::ANSWERED_BY);
        if !self.intercept && is_content {
            return None;
        }
        let is_for = |errors: &Errors| match errors {
            Errors::One(one) => *one == status,
            Errors::Class(class) => *class == status / 100,
        };
        self.pages.iter().find(|(errors, _)| is_for(errors)).map(|(_, page)| &page.template)
    }
}

/// Checks the path of a page. The error says what is allowed.
pub fn check_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/')
        || path.contains(['?', '#'])
        || !path.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(format!(
            "`{path}`: it must be a path as in a request, such as `/errors/404.html`"
        ));
    }
    Ok(())
}

/// Returns whether a field is about the body, and not about the response.
fn is_of_body(name: &[u8]) -> bool {
    let of_body = [
        "content-type",
        "content-encoding",
        "content-language",
        "content-location",
        "content-disposition",
        "content-range",
        "content-digest",
        "repr-digest",
        "digest",
        "content-md5",
        "vary",
    ];
    of_body.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// Returns whether a field is about the file of the page. With a validator the client would
/// revalidate the page in place of its target.
fn is_of_file(name: &[u8]) -> bool {
    let of_file = ["etag", "last-modified", "accept-ranges"];
    of_file.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// Returns the error with the body of `page`. Its status, its label and fields such as `Allow` and
/// `WWW-Authenticate` stay.
pub fn with_error_page(error: &Response, page: Response) -> Response {
    let mut fields = FieldLines::new();
    let kept = error.fields.iter().filter(|(name, _)| !is_of_body(name) && !is_of_file(name));
    for (name, value) in kept.chain(page.fields.iter().filter(|(name, _)| !is_of_file(name))) {
        // Both were field lines before.
        let _ = fields.try_push(name, value);
    }
    Response { status: error.status, fields, body: page.body, answered_by: error.answered_by }
}

/// Returns whether `page` can replace an error.
pub fn is_page(page: &Response) -> bool {
    page.status == StatusCode::OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::answered_by;
    use kirin_http::{Body, RequestPath};

    fn response(place: AnsweredBy, status: u16) -> Response {
        Response::new(place, StatusCode::from_u16(status).unwrap(), Body::Empty)
    }

    fn pages(intercept: bool) -> ErrorPages {
        let mut pages = ErrorPages { intercept, ..ErrorPages::default() };
        let root = PathPattern::parse("/").unwrap();
        pages.add("5xx", "/5xx.html", &root).unwrap();
        pages.add("404", "/404.html", &root).unwrap();
        pages.add("503", "/503.html", &root).unwrap();
        pages
    }

    fn page(pages: &ErrorPages, place: AnsweredBy, status: u16) -> Option<String> {
        let path = RequestPath::parse("/").unwrap();
        let template = pages.page_for(&response(place, status))?;
        template.fill_path(&path).map(std::borrow::Cow::into_owned)
    }

    #[test]
    fn a_single_status_goes_before_its_class() {
        let pages = pages(false);
        for (status, expected) in [
            (404, Some("/404.html")),
            (403, None),
            (500, Some("/5xx.html")),
            (503, Some("/503.html")),
            (200, None),
            (304, None),
        ] {
            for place in [AnsweredBy::SERVER, kirin_files::ANSWERED_BY] {
                assert_eq!(page(&pages, place, status).as_deref(), expected, "{status}");
            }
        }
    }

    #[test]
    fn an_application_error_is_replaced_only_with_intercept() {
        for place in [kirin_workers::ANSWERED_BY, answered_by::STORE] {
            assert_eq!(page(&pages(false), place, 404), None);
            assert_eq!(page(&pages(true), place, 404).as_deref(), Some("/404.html"));
            assert_eq!(page(&pages(true), place, 200), None);
        }
    }

    #[test]
    fn the_error_keeps_its_status_and_its_own_fields() {
        let mut error = response(kirin_files::ANSWERED_BY, 405);
        error.fields.push("Content-Type", "text/plain");
        error.fields.push("Allow", "GET");
        for (name, value) in [
            ("Repr-Digest", "sha-256=:AAAA:"),
            ("Content-Digest", "sha-256=:AAAA:"),
            ("Digest", "SHA-256=AAAA"),
            ("Content-MD5", "AAAA"),
            ("Content-Location", "/other"),
            ("Content-Range", "bytes */9"),
        ] {
            error.fields.push(name, value);
        }
        let mut page = response(kirin_files::ANSWERED_BY, 200);
        page.body = Body::from("sorry");
        page.fields.push("Content-Type", "text/html");
        page.fields.push("ETag", "\"x\"");
        page.fields.push("Last-Modified", "then");
        let response = with_error_page(&error, page);
        assert_eq!(response.status, 405);
        let names: Vec<_> = response.fields.iter().map(|(_, value)| value.to_vec()).collect();
        assert_eq!(names, [b"GET".to_vec(), b"text/html".to_vec()]);
        assert_eq!(response.body.length(), Some(5));
    }

    #[test]
    fn statuses_without_error_and_bad_paths_are_refused() {
        let root = PathPattern::parse("/").unwrap();
        for errors in ["200", "399", "600", "40", "0404", "6xx", "404 ", "", "+404"] {
            assert!(
                ErrorPages::default().add(errors, "/x", &root).unwrap_err().contains("4xx"),
                "{errors}"
            );
        }
        for path in ["", "x.html", "/a b", "/a?b", "/\r\n", "/\u{e9}"] {
            assert!(
                ErrorPages::default()
                    .add("404", path, &root)
                    .unwrap_err()
                    .contains("/errors/404.html"),
                "{path}"
            );
        }
    }
}
