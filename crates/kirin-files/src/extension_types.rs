//! The media type that belongs to a file name extension.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Debian's list of media types. Each line is a type and its extensions.
const DEBIAN: &str = include_str!("mime.types");

/// Extensions that get another type than in Debian's list, and extensions that the list lacks.
const OVERRIDES: &[(&str, &str)] = &[
    // Debian means a translation file of Qt. The web means a piece of a video (HLS), as nginx does.
    ("ts", "video/mp2t"),
    // Debian means a 3D model. Cameras write video with this extension.
    ("mts", "video/mp2t"),
    ("m2ts", "video/mp2t"),
    // Debian means a resource list (+xml). A browser would parse source code in Rust as XML.
    ("rs", "text/x-rust"),
    // Feed readers look for this name. Debian has an experimental one (x-rss).
    ("rss", "application/rss+xml"),
    // Debian has a type for telephones (sp-midi).
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("kar", "audio/midi"),
    // The subtitles are not plain text for a player.
    ("srt", "application/x-subrip"),
    // The standard of MIME sniffing and nginx have this name. Debian has the registered one, which
    // older browsers do not know.
    ("ico", "image/x-icon"),
    // As in nginx. RFC 7303 makes text/xml and application/xml the same.
    ("xml", "text/xml"),
    ("xsd", "text/xml"),
    // Browsers know this name. Debian's is experimental (x-wav).
    ("wav", "audio/wav"),
    // Players know the names of nginx and Apache. Debian has one for both kinds.
    ("asf", "video/x-ms-asf"),
    ("asx", "video/x-ms-asf"),
    // RFC 9239 made text/javascript the only name.
    ("cjs", "text/javascript"),
    ("jsx", "text/javascript"),
    // Source maps.
    ("map", "application/json"),
    // Debian's list lacks the following extensions. First registered types.
    ("3g2", "video/3gpp2"),
    ("3gp", "video/3gpp"),
    ("3gpp", "video/3gpp"),
    ("gpx", "application/gpx+xml"),
    ("mathml", "application/mathml+xml"),
    ("mobi", "application/vnd.amazon.mobi8-ebook"),
    ("mp4v", "video/mp4"),
    ("musicxml", "application/vnd.recordare.musicxml+xml"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pkpass", "application/vnd.apple.pkpass"),
    ("toml", "application/toml"),
    // RFC 9512.
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    // Types that browsers and nginx's or Apache's list agree on.
    ("bz2", "application/x-bzip2"),
    ("caf", "audio/x-caf"),
    ("cco", "application/x-cocoa"),
    ("crx", "application/x-chrome-extension"),
    ("der", "application/x-x509-ca-cert"),
    ("ear", "application/java-archive"),
    ("war", "application/java-archive"),
    ("jardiff", "application/x-java-archive-diff"),
    ("mht", "message/rfc822"),
    ("mhtml", "message/rfc822"),
    ("mka", "audio/x-matroska"),
    ("ndjson", "application/x-ndjson"),
    ("opml", "text/x-opml"),
    ("run", "application/x-makeself"),
    ("sea", "application/x-sea"),
    ("tga", "image/x-tga"),
    ("weba", "audio/webm"),
    // Text that people read in a browser.
    ("cfg", "text/plain"),
    ("conf", "text/plain"),
    ("cs", "text/plain"),
    ("ini", "text/plain"),
    ("less", "text/less"),
    ("list", "text/plain"),
    ("log", "text/plain"),
    ("lua", "text/x-lua"),
    ("sass", "text/x-sass"),
    ("scss", "text/x-scss"),
];

/// The media types by extension in lower case.
static TYPES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = DEBIAN.lines().filter(|line| !line.starts_with('#'));
    let listed = lines.filter_map(|line| line.split_once(' ')).flat_map(|(media_type, rest)| {
        rest.split(' ').map(move |extension| (extension, media_type))
    });
    // The last one of an extension stays.
    listed.chain(OVERRIDES.iter().copied()).collect()
});

/// Returns the media type of files with this extension. Upper and lower case are the same.
pub(crate) fn of_extension(extension: &str) -> Option<&'static str> {
    if extension.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return TYPES.get(extension.to_ascii_lowercase().as_str()).copied();
    }
    TYPES.get(extension).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_extension_is_listed_once_and_in_lower_case() {
        let mut known = HashSet::new();
        for line in DEBIAN.lines().filter(|line| !line.starts_with('#')) {
            let (media_type, extensions) = line.split_once(' ').expect(line);
            assert_eq!(media_type.matches('/').count(), 1, "{line}");
            for extension in extensions.split(' ') {
                assert_eq!(extension, extension.to_ascii_lowercase(), "{line}");
                assert!(!extension.is_empty() && known.insert(extension), "{line}: {extension}");
            }
        }
        assert!(known.len() > 1500, "{} extensions", known.len());
        let mut overridden = HashSet::new();
        for (extension, media_type) in OVERRIDES {
            assert!(overridden.insert(extension), "{extension} twice");
            let debian =
                DEBIAN.lines().find(|line| line.split(' ').skip(1).any(|e| e == *extension));
            let same = debian.is_some_and(|line| line.split(' ').next() == Some(media_type));
            assert!(!same, "{extension} has this type in Debian's list, too");
        }
    }
}
