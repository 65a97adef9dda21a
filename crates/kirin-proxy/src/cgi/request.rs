//! A request for servers that speak FastCGI, SCGI or uwsgi: made once by the place, encoded for each server that gets it.

use crate::address::Scheme;
use crate::config::{FastCgiConfig, UpstreamConfig};
use kirin_cgi::uwsgi::TooLong;
use kirin_cgi::{MetaVariables, RequestBlock, Script, fastcgi, uwsgi};
use kirin_http::{Body, Origin, Place, RequestHead, Response, StatusCode};
use std::path::Path;

/// A request in variables.
#[derive(Debug)]
pub(crate) struct CgiRequest {
    block: RequestBlock,
    /// What FastCGI servers are told besides.
    script: Vec<(&'static str, String)>,
    /// Whether they are asked to leave the connection open.
    keep: bool,
}

impl CgiRequest {
    /// Of `request`; none if the servers of the upstream speak HTTP. With FastCGI the path in `target` names the script; others
    /// get the path as applications do. What cannot be asked gives a response.
    pub(crate) fn of(
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        meta: &MetaVariables<'_>,
        config: &UpstreamConfig,
    ) -> Result<Option<Self>, Response> {
        let is_cgi = config.servers.first().is_some_and(|server| server.address.scheme.is_cgi());
        match &config.fastcgi {
            _ if !is_cgi => Ok(None),
            Some(fastcgi) => {
                let cgi = Self::of_script(request, target, origin, meta, fastcgi)?;
                Ok(Some(Self { keep: config.pool.idle > 0, ..cgi }))
            }
            None => {
                let block = RequestBlock::encode(request, origin, meta).map_err(bad_request)?;
                Ok(Some(Self { block, script: Vec::new(), keep: false }))
            }
        }
    }

    fn of_script(
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        meta: &MetaVariables<'_>,
        FastCgiConfig { root, index, extension }: &FastCgiConfig,
    ) -> Result<Self, Response> {
        let path = target.split('?').next().unwrap_or(target);
        // On another machine, or in a container of its own, scripts cannot be looked for.
        let is_here = Path::new(root).is_dir();
        let exists = |name: &str| !is_here || Path::new(&[root, name].concat()).is_file();
        let script = Script::find(path, extension, index, exists).ok_or_else(|| bad_request("path"))?;
        if is_here && !script.path_info.is_empty() && !path.ends_with('/') {
            // A directory with a script of its own: its links are relative to the path with a slash.
            let directory = script.path_info.trim_matches('/');
            if !directory.is_empty()
                && script.name == ["/", index].concat()
                && Path::new(root).join(directory).join(index).is_file()
            {
                return Err(with_slash(request));
            }
        }
        let path_info = script.encoded_path_info();
        let meta = MetaVariables { script_name: &script.name, path: Some(&path_info), ..*meta };
        let block = RequestBlock::encode(request, origin, &meta).map_err(bad_request)?;
        let script = vec![
            ("SCRIPT_FILENAME", script.file_name(root)),
            ("DOCUMENT_ROOT", root.clone()),
            ("SERVER_SOFTWARE", "kirin".into()),
            // Without it a PHP that is built with force-cgi-redirect runs nothing.
            ("REDIRECT_STATUS", "200".into()),
        ];
        Ok(Self { block, script, keep: false })
    }

    /// The bytes before the body, which is `content_length` long.
    pub(crate) fn encode(&mut self, scheme: Scheme, content_length: u64) -> Result<Vec<u8>, TooLong> {
        match scheme {
            Scheme::Scgi => {
                self.block.finish(content_length);
                Ok(self.block.as_bytes().to_vec())
            }
            Scheme::Uwsgi => uwsgi::encode(&self.block, content_length),
            Scheme::FastCgi | Scheme::Http | Scheme::Https | Scheme::H2c => {
                let script: Vec<_> =
                    self.script.iter().map(|(name, value)| (*name, value.as_str())).collect();
                Ok(fastcgi::begin(&self.block, content_length, &script, self.keep))
            }
        }
    }
}

fn bad_request<E>(_: E) -> Response {
    Response::error(StatusCode::BAD_REQUEST)
}

/// To the same path with a slash.
fn with_slash(request: &RequestHead<'_>) -> Response {
    let mut response = Response::new(Place::Proxy, StatusCode::PERMANENT_REDIRECT, Body::Empty);
    let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
    // Two slashes at the start would be another host.
    let path = request.path.trim_start_matches('/');
    response.fields.push("Location", format!("/{path}/{query}"));
    response
}
