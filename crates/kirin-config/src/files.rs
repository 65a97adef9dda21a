//! `[open_file_cache]`, and the keys of a route that are for its `files:` places.

use kirin_files::{CacheLimits, FilesConfig, MediaTypes};
use kirin_gateway::places::kind::PlaceConfig;
use kirin_http::percent::{self, NOT_IN_PATH};
use kirin_http::token::is_token;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::default::milliseconds;
use crate::route::RouteSection;
use crate::source::{ConfigSource, ErrorCollector};
use crate::units::{ByteSize, Milliseconds, Number};
use crate::written::Written;

/// The largest number of paths: 48 bits of memory hold no more.
const MAX_PATHS: u64 = 1 << 32;

/// The largest number of descriptors: more than Linux has for a process.
const MAX_DESCRIPTORS: u64 = 1 << 30;

/// The key of `mime_types` for all names without a known extension.
const ANY_OTHER: &str = "*";

/// What Kirin remembers of files between requests. Each event loop has one cache for all `files:`
/// places of all routes, and one of the same size for the files that applications hand back
/// ([files.md](files.md#the-open-file-cache)). A full cache takes a path at its second request, so
/// that a crawler that requests each name once does not empty it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OpenFileCacheSection {
    /// The most paths of files in memory, and apart from them the most paths that lead to no file.
    pub paths: Number<0, MAX_PATHS>,
    /// Memory for contents, heads and paths. An eighth of it is for paths that lead to no file.
    pub memory: ByteSize,
    /// The most descriptors of larger files. Default: the share of this cache in a sixteenth of the
    /// limit on open files (`ulimit -n`), but at most `paths`.
    pub descriptors: Option<Number<0, MAX_DESCRIPTORS>>,
    /// The size up to which the contents of a file are kept in memory. Larger files are kept open,
    /// and the kernel sends them.
    pub small_file: ByteSize,
    /// How long Kirin uses an entry without a look at the file system, such as `"1s"` or `"500ms"`.
    /// A change is seen at the first request after this time.
    pub validity: Milliseconds,
}

impl Default for OpenFileCacheSection {
    fn default() -> Self {
        let limits = CacheLimits::default();
        Self {
            paths: Number::new(limits.paths as u64),
            memory: ByteSize(limits.bytes as u64),
            descriptors: None,
            small_file: ByteSize(limits.small_file_bytes as u64),
            validity: milliseconds(limits.validity),
        }
    }
}

/// Returns the limits that `section` sets.
pub fn read_open_file_cache(section: &OpenFileCacheSection) -> CacheLimits {
    let default = CacheLimits::default();
    CacheLimits {
        paths: section.paths.length(),
        bytes: section.memory.length(),
        descriptors: section.descriptors.map_or(default.descriptors, Number::length),
        small_file_bytes: section.small_file.length(),
        validity: section.validity.into(),
    }
}

/// Returns the index names of a route.
pub fn check_index(
    names: Option<&[Written<String>]>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Vec<String> {
    let Some(names) = names else { return FilesConfig::new("").index };
    for name in names.iter().filter(|name| !FilesConfig::is_index_name(name)) {
        let message = format!(
            "index `{}` is not a file name: it must not be empty, contain `/` or start with `.`",
            name.as_str()
        );
        errors.push(source.error(name.span(), message));
    }
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

/// Returns the path of the page of `fallback`, percent-encoded. `places` are missing if they have
/// an error.
pub fn check_fallback(
    section: &RouteSection,
    places: Option<&[PlaceConfig]>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<String> {
    let name = section.fallback.as_ref()?;
    let mut refuse = |why: &str| {
        let message = format!("fallback `{}`: {why}", name.as_str());
        errors.push(source.error(name.span(), message));
    };
    if !name.split('/').all(FilesConfig::is_index_name) {
        refuse("it must be the name of a file below the directory, such as `index.html`");
    }
    let last = places.and_then(|places| places.last());
    if let Some(last) = last.filter(|place| place.answers_all()) {
        let why = "always answers, so no request would get the page";
        refuse(&format!("`{last}` {why}; give it a route of its own"));
    }
    if section.immutable {
        refuse("the page changes with each build; set `immutable` in a route for the other files");
    }
    Some(format!("/{}", percent::encode(name.as_bytes(), NOT_IN_PATH)))
}

/// Refuses names in `index` and `fallback` that are scripts, whose source must not be served.
/// `extensions` are those of all FastCGI upstreams.
pub fn check_index_scripts(
    section: &RouteSection,
    extensions: &[String],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    let index = section.index.iter().flatten().map(|name| ("index", name));
    let fallback = section.fallback.iter().map(|name| ("fallback", name));
    for (key, name) in index.chain(fallback) {
        let lower = name.to_ascii_lowercase();
        if let Some(extension) = extensions.iter().find(|end| lower.ends_with(end.as_str())) {
            let message = format!(
                "{key} `{}`: `{extension}` is a script of an upstream, and `files:` never serves \
                 scripts; it may be the `index` of the upstream",
                name.as_str()
            );
            errors.push(source.error(name.span(), message));
        }
    }
}

/// Returns the media types of a route.
pub fn check_media_types(
    section: &RouteSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> MediaTypes {
    let mut types = MediaTypes::default();
    for (extension, media_type) in &section.mime_types {
        if !is_media_type(media_type) {
            let message = format!(
                "`{}` is not a media type: write it as in \"text/plain\" or \"text/plain; \
                 charset=koi8-r\"",
                media_type.as_str()
            );
            errors.push(source.error(media_type.span(), message));
        } else if extension.as_str() == ANY_OTHER {
            types.set_other(media_type);
        } else if extension.is_empty() || extension.contains(['.', '/', '*']) {
            let message = format!(
                "`{}` is not an extension: write what follows the last dot of a name, such as \
                 `webc`, or `*` for all names without a known extension",
                extension.as_str()
            );
            errors.push(source.error(extension.span(), message));
        } else {
            types.set(extension, media_type);
        }
    }
    if let Some(charset) = &section.charset {
        if !charset.is_empty() && !is_token(charset.as_bytes()) {
            let message = format!(
                "`{}` is not a charset: write a name such as \"utf-8\", or \"\" for none",
                charset.as_str()
            );
            errors.push(source.error(charset.span(), message));
        }
        types.set_charset(charset);
    }
    types
}

/// Returns whether `text` is a type and a subtype, with parameters or without.
fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_type = essence
        .split_once('/')
        .is_some_and(|(main, sub)| is_token(main.as_bytes()) && is_token(sub.as_bytes()));
    is_type && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
