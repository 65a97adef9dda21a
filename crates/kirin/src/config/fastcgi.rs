//! What `[[upstream]]` says of servers that speak FastCGI, SCGI or uwsgi.

use kirin_proxy::{FastCgiConfig, Scheme, ServerConfig};
use serde_spanned::Spanned;

use super::check::absolute;
use super::load::{ConfigError, Source};
use super::upstream::{UpstreamConfig, is_written};

/// Checks that the servers can stand in for each other, and the keys of FastCGI; gives these if
/// they are needed.
pub fn fastcgi(
    config: &UpstreamConfig,
    servers: &[ServerConfig],
    source: &Source,
) -> Result<Option<FastCgiConfig>, ConfigError> {
    let schemes = || servers.iter().map(|server| server.address.scheme);
    let first = schemes().next().unwrap_or(Scheme::Http);
    let is_other = |scheme: Scheme| scheme != first && (scheme.is_cgi() || first.is_cgi());
    if let Some(index) = schemes().position(is_other)
        && let (Some(entry), Some(server)) = (config.servers.get(index), servers.get(index))
    {
        let message = format!(
            "`{}` and `{}` in one upstream: its servers all speak HTTP, or all FastCGI, SCGI or uwsgi",
            servers[0].address, server.address
        );
        return Err(source.error(entry.span(), message));
    }
    if first.is_cgi() {
        refuse_keys_of_http(config, first, source)?;
    }
    if first != Scheme::FastCgi {
        for (name, text) in
            [("root", &config.root), ("index", &config.index), ("extension", &config.extension)]
        {
            if let Some(text) = text {
                let message = format!("`{name}` of an upstream without a fastcgi:// server");
                return Err(source.error(text.span(), message));
            }
        }
        return Ok(None);
    }
    let Some(root) = &config.root else {
        let message = format!(
            "upstream `{}` needs `root`, the directory with the scripts of its servers",
            config.name.get_ref()
        );
        return Err(source.error(config.name.span(), message));
    };
    let directory = absolute(&source.directory.join(root.get_ref()));
    let Some(directory) = directory.to_str().filter(|path| !path.contains('\0')) else {
        return Err(source.error(root.span(), "`root` is not a path in UTF-8"));
    };
    let extension = match &config.extension {
        None => ".php",
        Some(text) => {
            let extension = text.get_ref().as_str();
            let is_one =
                extension.len() > 1 && extension.starts_with('.') && is_file_name(extension);
            if !is_one {
                let message =
                    format!("`extension` is `{extension}`: it is a dot with something behind it");
                return Err(source.error(text.span(), message));
            }
            extension
        }
    };
    let default = ["index", extension].concat();
    let index = match &config.index {
        None => default.as_str(),
        Some(text) => {
            let index = text.get_ref().as_str();
            // What ends in something else would be taken for a file that anybody may read.
            if !is_file_name(index) || !index.ends_with(extension) {
                let message =
                    format!("`index` is `{index}`: it is a file name that ends in `{extension}`");
                return Err(source.error(text.span(), message));
            }
            index
        }
    };
    Ok(Some(FastCgiConfig {
        root: directory.into(),
        index: index.into(),
        extension: extension.into(),
    }))
}

/// What would be ignored is a mistake, and perhaps one about who is let in where.
fn refuse_keys_of_http(
    config: &UpstreamConfig,
    scheme: Scheme,
    source: &Source,
) -> Result<(), ConfigError> {
    const HOST: &str = "get the client's `Host` as HTTP_HOST";
    const CLIENT: &str = "get the client's address as REMOTE_ADDR";
    const VIA: &str = "get no `Via`";
    const CONNECTION: &str = "get each request by a connection of its own, and none is kept";
    let of_http = [
        ("host", config.host.span(), HOST),
        ("forwarded", config.forwarded.span(), CLIENT),
        ("via", config.via.span(), VIA),
    ];
    let keep = config.keep_connections.as_ref().map(Spanned::span).unwrap_or_default();
    let max_age = config.max_age.as_ref().map(Spanned::span).unwrap_or_default();
    let of_connections = [
        ("keep_connections", keep, CONNECTION),
        ("keep_time", config.keep_time.span(), CONNECTION),
        ("max_requests", config.max_requests.span(), CONNECTION),
        ("max_age", max_age, CONNECTION),
    ];
    let has_kept = scheme == Scheme::FastCgi;
    let refused = of_http.into_iter().chain(of_connections.into_iter().filter(|_| !has_kept));
    match refused.into_iter().find(|(_, span, _)| is_written(span)) {
        None => Ok(()),
        Some((key, span, why)) => {
            let message = format!(
                "`{key}` is for servers that speak HTTP; those of `{}` {why}",
                config.name.get_ref()
            );
            Err(source.error(span, message))
        }
    }
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0'])
}
