//! The keys of an upstream whose servers speak FastCGI, SCGI or uwsgi.

use kirin_proxy::{FastCgiConfig, ServerConfig, ServerScheme};

use crate::source::{ConfigError, ConfigSource};
use crate::upstream::UpstreamSection;
use crate::written::Written;

/// Checks that the servers can replace each other, and the keys of FastCGI. Returns these keys if
/// the servers speak it.
pub fn check_fastcgi(
    section: &UpstreamSection,
    servers: &[ServerConfig],
    source: &ConfigSource,
) -> Result<Option<FastCgiConfig>, ConfigError> {
    let schemes = || servers.iter().map(|server| server.address.scheme);
    let first = schemes().next().unwrap_or(ServerScheme::Http);
    let is_other = |scheme: ServerScheme| scheme != first && (scheme.is_cgi() || first.is_cgi());
    if let Some(index) = schemes().position(is_other)
        && let (Some(entry), Some(server)) = (section.servers.get(index), servers.get(index))
    {
        let message = format!(
            "`{}` and `{}` in one upstream: its servers all speak HTTP, or all FastCGI, SCGI or \
             uwsgi",
            servers[0].address, server.address
        );
        return Err(source.error(entry.span(), message));
    }
    if first.is_cgi() {
        refuse_keys_of_http(section, first, source)?;
    }
    if first != ServerScheme::FastCgi {
        for (name, text) in
            [("root", &section.root), ("index", &section.index), ("extension", &section.extension)]
        {
            if let Some(text) = text {
                let message = format!("`{name}` of an upstream without a fastcgi:// server");
                return Err(source.error(text.span(), message));
            }
        }
        if let Some(path_info) = &section.path_info {
            let message = "`path_info` of an upstream without a fastcgi:// server";
            return Err(source.error(path_info.span(), message));
        }
        return Ok(None);
    }
    let Some(root) = &section.root else {
        let message = format!(
            "upstream `{}` needs `root`, the directory with the scripts of its servers",
            section.name.as_str()
        );
        return Err(source.error(section.name.span(), message));
    };
    let directory = source.path(root.as_str());
    let Some(directory) = directory.to_str().filter(|path| !path.contains('\0')) else {
        return Err(source.error(root.span(), "`root` is not a path in UTF-8"));
    };
    let extension = match &section.extension {
        None => ".php",
        Some(text) => {
            let extension = text.as_str();
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
    let index = match &section.index {
        None => default.as_str(),
        Some(text) => {
            let index = text.as_str();
            // Kirin would serve a script with another extension as a file, to every client.
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
        takes_path_info: section.path_info.as_deref().copied().unwrap_or(true),
    }))
}

/// Refuses keys that these servers ignore. Such a key may be a mistake about the clients that get
/// access.
fn refuse_keys_of_http(
    section: &UpstreamSection,
    scheme: ServerScheme,
    source: &ConfigSource,
) -> Result<(), ConfigError> {
    const HOST: &str = "get the client's `Host` as HTTP_HOST";
    const CLIENT: &str = "get the client's address as REMOTE_ADDR";
    const VIA: &str = "get no `Via`";
    const CONNECTION: &str = "get each request by a connection of its own, and none is kept";
    let of_http = [
        ("host", section.host.span(), HOST),
        ("forwarded", section.forwarded.span(), CLIENT),
        ("via", section.via.span(), VIA),
    ];
    let keep = section.keep_connections.as_ref().map(Written::span).unwrap_or_default();
    let max_age = section.max_age.as_ref().map(Written::span).unwrap_or_default();
    let of_connections = [
        ("keep_connections", keep, CONNECTION),
        ("keep_time", section.keep_time.span(), CONNECTION),
        ("max_requests", section.max_requests.span(), CONNECTION),
        ("max_age", max_age, CONNECTION),
    ];
    let has_kept = scheme == ServerScheme::FastCgi;
    let refused = of_http.into_iter().chain(of_connections.into_iter().filter(|_| !has_kept));
    match refused.into_iter().find(|(_, span, _)| !span.is_empty()) {
        None => Ok(()),
        Some((key, span, why)) => {
            let message = format!(
                "`{key}` is for servers that speak HTTP; those of `{}` {why}",
                section.name.as_str()
            );
            Err(source.error(span, message))
        }
    }
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0'])
}
