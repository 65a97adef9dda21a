//! A request for servers that speak FastCGI, SCGI or uwsgi. It is built once, and encoded for each
//! server that gets it.

use kirin_cgi::uwsgi::TooLong;
use kirin_cgi::{CgiScript, MetaVariables, RequestBlock, fastcgi, uwsgi};
use kirin_http::{Body, Origin, RequestHead, Response, StatusCode};

use super::script_files::{ScriptFiles, ScriptLookup};
use crate::address::ServerScheme;
use crate::config::{FastCgiConfig, UpstreamConfig};

/// A request as CGI meta-variables.
#[derive(Debug)]
pub(crate) struct CgiRequest {
    block: RequestBlock,
    /// The path for which the FastCGI script is still to be found.
    path: Option<String>,
    /// Additional variables for FastCGI servers.
    script: Vec<(&'static str, String)>,
    /// Whether FastCGI servers are asked to keep the connection open.
    keep: bool,
}

/// Encodes the variables that applications get, and `REQUEST_SCHEME`. Other web servers send it
/// too, and PHP programs read it.
fn encode(
    request: &RequestHead<'_>,
    origin: Origin<'_>,
    meta: &MetaVariables<'_>,
) -> Result<RequestBlock, Box<Response>> {
    let mut block = RequestBlock::encode(request, origin, meta).map_err(bad_request)?;
    block.add("REQUEST_SCHEME", if origin.secure { "https" } else { "http" });
    Ok(block)
}

impl CgiRequest {
    /// Builds the variables of `request`. Returns `None` if the servers speak HTTP, and a response
    /// if the request cannot be expressed.
    ///
    /// With FastCGI, the path in `target` names the script, and [`CgiRequest::find_script`] looks
    /// for it. Other servers get the path as applications do.
    pub(crate) fn from_request(
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        meta: &MetaVariables<'_>,
        config: &UpstreamConfig,
    ) -> Result<Option<Self>, Box<Response>> {
        let is_cgi = config.servers.first().is_some_and(|server| server.address.scheme.is_cgi());
        if !is_cgi {
            return Ok(None);
        }
        let script = Vec::new();
        if config.fastcgi.is_none() {
            let block = encode(request, origin, meta)?;
            return Ok(Some(Self { block, path: None, script, keep: false }));
        }
        let path = target.split('?').next().unwrap_or(target);
        // The script's name and path are added when the script is known.
        let meta = MetaVariables { script_name: b"", path: Some(""), ..*meta };
        let block = encode(request, origin, &meta)?;
        Ok(Some(Self { block, path: Some(path.to_owned()), script, keep: config.pool.idle > 0 }))
    }

    /// Finds the script, if it is still to be found.
    pub(crate) async fn find_script(
        &mut self,
        config: &UpstreamConfig,
        files: &ScriptFiles,
    ) -> Result<(), Box<Response>> {
        let (Some(path), Some(fastcgi)) = (self.path.take(), &config.fastcgi) else {
            return Ok(());
        };
        let FastCgiConfig { root, index, .. } = fastcgi;
        let asked = named(&path, fastcgi, |_| true)?;
        let found = files.find(root, &asked.name).await;
        let script = match found {
            ScriptLookup::Script | ScriptLookup::NoRoot => asked,
            ScriptLookup::Missing => named(&path, fastcgi, |_| false)?,
        };
        if found != ScriptLookup::NoRoot
            && !path.ends_with('/')
            && script.name == ["/", index].concat()
        {
            // The directory has a script of its own. Relative links in its pages need the path with
            // a slash.
            let directory = script.path_info.trim_matches('/');
            let own = ["/", directory, "/", index].concat();
            if !directory.is_empty() && files.find(root, &own).await == ScriptLookup::Script {
                return Err(Box::new(self.with_slash()));
            }
        }
        self.script = vec![
            ("SCRIPT_FILENAME", script.file_name(root)),
            ("DOCUMENT_ROOT", root.clone()),
            ("SERVER_SOFTWARE", "kirin".into()),
            // A PHP that was built with force-cgi-redirect refuses to run without it.
            ("REDIRECT_STATUS", "200".into()),
            ("SCRIPT_NAME", script.name),
            ("PATH_INFO", script.path_info),
        ];
        Ok(())
    }

    /// Returns the redirect to the same path with a slash.
    fn with_slash(&self) -> Response {
        let mut response =
            Response::new(crate::ANSWERED_BY, StatusCode::PERMANENT_REDIRECT, Body::Empty);
        let uri = String::from_utf8_lossy(self.block.value("REQUEST_URI").unwrap_or_default())
            .into_owned();
        let (path, query) = match uri.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (uri.as_str(), String::new()),
        };
        // Two slashes at the start would name another host.
        let path = path.trim_start_matches('/');
        response.fields.push("Location", format!("/{path}/{query}"));
        response
    }

    /// Returns the bytes before the content, whose length is `content_length`.
    pub(crate) fn encode(
        &mut self,
        scheme: ServerScheme,
        content_length: u64,
    ) -> Result<Vec<u8>, TooLong> {
        match scheme {
            ServerScheme::Scgi => {
                self.block.finish(content_length);
                Ok(self.block.as_bytes().to_vec())
            }
            ServerScheme::Uwsgi => uwsgi::encode(&self.block, content_length),
            ServerScheme::FastCgi
            | ServerScheme::Http
            | ServerScheme::Https
            | ServerScheme::H2c => {
                let script: Vec<_> =
                    self.script.iter().map(|(name, value)| (*name, value.as_str())).collect();
                Ok(fastcgi::begin(&self.block, content_length, &script, self.keep))
            }
        }
    }
}

fn bad_request<E>(_: E) -> Box<Response> {
    Box::new(Response::error(StatusCode::BAD_REQUEST))
}

/// Returns the script that `path` means. `exists` tells whether a script with a name exists.
fn named(
    path: &str,
    config: &FastCgiConfig,
    exists: impl FnOnce(&str) -> bool,
) -> Result<CgiScript, Box<Response>> {
    let FastCgiConfig { extension, index, takes_path_info, .. } = config;
    CgiScript::find(path, extension, index, *takes_path_info, exists)
        .ok_or_else(|| bad_request("path"))
}
