//! Files that the servers of an upstream name in their responses, for Kirin to send as the body.
//!
//! `X-Sendfile` (lighttpd, Apache's mod_xsendfile) has the path of a file. `X-Accel-Redirect`
//! (nginx) has a path of the site, which the configuration maps to a directory. Both save the
//! server the work of sending. Neither field reaches a client.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use kirin_files::{AppFile, AppFiles, NotSent, SendfileRoots};
use kirin_http::{Answer, RequestFields, RequestPath, Response};
use kirin_proxy::NamedFilesConfig;
use kirin_proxy::upstream_response::FILE_FIELDS;

use super::opening::PlaceError;
use crate::request::context::Request;
use crate::request::field_changes::FieldChange;
use crate::request::given_names::GivenNames;

/// The files that the servers of one upstream may name.
pub struct NamedFiles {
    config: NamedFilesConfig,
    /// The directories of `X-Sendfile`.
    roots: SendfileRoots,
    /// The directories of `X-Accel-Redirect`, in the order of the configuration.
    locations: Vec<SendfileRoots>,
    files: Rc<AppFiles>,
    /// The fields that tell servers which field they may use.
    names: GivenNames,
    changes: Vec<FieldChange>,
}

impl NamedFiles {
    /// Opens the directories. Returns `None` if servers may name no files. `files` is the cache.
    pub fn open(
        config: &NamedFilesConfig,
        files: &Rc<AppFiles>,
    ) -> Result<Option<Rc<Self>>, PlaceError> {
        if config.is_empty() {
            return Ok(None);
        }
        let open =
            |directories: &[PathBuf]| SendfileRoots::open(directories).map_err(PlaceError::new);
        let locations = config.locations.iter();
        let locations = locations.map(|(_, directory)| open(std::slice::from_ref(directory)));
        Ok(Some(Rc::new(Self {
            roots: open(&config.roots)?,
            locations: locations.collect::<Result<_, _>>()?,
            names: [TYPE, MAPPING].into_iter().map(Arc::from).collect(),
            changes: announcement(config),
            config: config.clone(),
            files: Rc::clone(files),
        })))
    }

    /// Asks the upstream `name`, and sends the file that its response names.
    pub fn around(
        self: &Rc<Self>,
        name: &str,
        request: &Request<'_>,
        ask: impl FnOnce(&Request<'_>) -> Answer,
    ) -> Answer {
        match request.with_given(&self.names, &self.changes, ask) {
            Answer::Now(response) => Answer::Now(response),
            Answer::Later(later) => {
                let (named, kept, name) = (Rc::clone(self), request.keep(), name.to_owned());
                Answer::later(move |body| async move {
                    let response = later(body).await;
                    kept.with(|request| named.resolve(&name, response, request))
                })
            }
        }
    }

    /// Returns the response with the file that it names as its body, if it names one.
    fn resolve(&self, upstream: &str, mut response: Response, request: &Request<'_>) -> Response {
        let value = |name: &str| response.fields.get(name).map(<[u8]>::to_vec);
        let path = value("x-sendfile").or_else(|| value("x-lighttpd-send-file"));
        let found = match (path, value("x-accel-redirect")) {
            (Some(path), _) => {
                let path = Path::new(OsStr::from_bytes(&path));
                match path.is_absolute() {
                    true => self.roots.find(&self.files, path, Instant::now()),
                    false => Err(NotSent::Outside(path.to_owned())),
                }
            }
            (None, Some(location)) => self.find_location(&location),
            (None, None) => return response,
        };
        for name in FILE_FIELDS {
            response.fields.remove(name);
        }
        let file = match found {
            Ok(file) => file,
            Err(error) => {
                let request = request.head.target;
                tracing::error!(upstream, request, %error, "the file that a server names is not sent");
                // As other servers do, because visitors choose the file in many applications.
                return Response::error(match error.is_missing() {
                    true => StatusCode::NOT_FOUND,
                    false => error.status(),
                });
            }
        };
        let (is_get, is_head) =
            (request.head.method == Method::GET, request.head.method == Method::HEAD);
        let Response { status, fields, answered_by, .. } = response;
        let response = match status == StatusCode::OK && (is_get || is_head) {
            true => file.respond(fields, &RequestFields::from_head(request.head), is_head),
            false => file.whole(status, fields, is_head),
        };
        Response { answered_by, ..response }
    }

    /// Finds the file of a path of `X-Accel-Redirect`.
    fn find_location(&self, value: &[u8]) -> Result<Rc<AppFile>, NotSent> {
        let outside = || NotSent::Outside(OsStr::from_bytes(value).into());
        let path = value.split(|byte| *byte == b'?').next().unwrap_or_default();
        let path = std::str::from_utf8(path).map_err(|_| outside())?;
        let path = RequestPath::parse(path).map_err(|_| outside())?;
        let decoded = path.decoded();
        for ((prefix, directory), roots) in self.config.locations.iter().zip(&self.locations) {
            if let Some(rest) = decoded.strip_prefix(prefix.as_bytes()) {
                let file = directory.join(OsStr::from_bytes(rest));
                return roots.find(&self.files, &file, Instant::now());
            }
        }
        Err(outside())
    }
}

/// The field that names the field which the server may use, and the one that maps directories to
/// paths, as Rack::Sendfile, Plack::Middleware::XSendfile and Symfony read them.
const TYPE: &str = "X-Sendfile-Type";
const MAPPING: &str = "X-Accel-Mapping";

/// Returns the fields that tell servers what they may name.
fn announcement(config: &NamedFilesConfig) -> Vec<FieldChange> {
    let field = if config.roots.is_empty() { "X-Accel-Redirect" } else { "X-Sendfile" };
    let mapping = config.locations.iter().filter(|_| config.roots.is_empty());
    let mapping = mapping.map(|(path, directory)| format!("{}/={path}", directory.display()));
    let mapping = mapping.collect::<Vec<_>>().join(",");
    let mapping = if mapping.is_empty() { Vec::new() } else { vec![mapping.into_bytes()] };
    vec![
        FieldChange::Set(TYPE.into(), vec![field.into()]),
        FieldChange::Set(MAPPING.into(), mapping),
    ]
}
