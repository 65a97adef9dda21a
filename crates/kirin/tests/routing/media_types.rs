//! The media types of files, compared with those of nginx.

use std::collections::BTreeMap;
use std::fs;

use kirin_tests::{Kirin, Site};

/// The extensions for which Kirin has another type than nginx, with that type.
const DIFFERENCES: &[(&str, &str)] = &[
    // The registered type (IANA), or the one of the format's own standard.
    ("bmp", "image/bmp"),
    ("deb", "application/vnd.debian.binary-package"),
    ("js", "text/javascript"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("mml", "application/mathml+xml"),
    ("msm", "model/vnd.gdl"),
    ("pdb", "application/vnd.palm"),
    ("pem", "application/pem-certificate-chain"),
    ("prc", "model/prc"),
    ("rar", "application/vnd.rar"),
    ("swf", "application/vnd.adobe.flash.movie"),
    // Debian's name, where nginx has its own, or none.
    ("dll", "application/x-msdos-program"),
    ("dmg", "application/x-apple-diskimage"),
    ("exe", "application/x-msdos-program"),
    ("iso", "application/x-iso9660-image"),
    ("msi", "application/x-msi"),
    ("ra", "audio/x-pn-realaudio"),
    // Browsers show text, where nginx lets them save a file.
    ("pl", "text/x-perl"),
    ("pm", "text/x-perl"),
    ("tk", "text/x-tcl"),
];

/// Returns the extensions of nginx's list with their types.
fn types_of_nginx() -> BTreeMap<String, String> {
    let list = fs::read_to_string("/etc/nginx/mime.types").expect("the package nginx-common");
    let lines = list.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let types = lines.flat_map(|line| {
        let (media_type, extensions) = line.split_once(' ').expect("a type and its extensions");
        extensions.split_whitespace().map(|extension| (extension.into(), media_type.into()))
    });
    types.collect()
}

/// Starts the program with a file for each extension and returns their media types, without a
/// charset.
fn types_of_kirin<'a>(extensions: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let names = extensions.map(|extension| format!("a.{extension}"));
    let site = names
        .clone()
        .fold(Site::new(), |site, name| site.with(&format!("public/{name}"), "content"));
    let kirin = Kirin::start(
        &site,
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    let mut client = kirin.connect();
    let types = names.map(|name| {
        let reply = client.get(&format!("/{name}"));
        assert_eq!(reply.status, 200, "{name}: {}", reply.head);
        let media_type = reply.field("content-type").expect("a type");
        media_type.split(';').next().expect("a type").to_owned()
    });
    types.collect()
}

#[test]
fn files_have_the_media_types_of_nginx_but_for_those_listed_here() {
    let nginx = types_of_nginx();
    assert!(nginx.len() > 90, "{nginx:?}");
    let kirin = types_of_kirin(nginx.keys().map(String::as_str));
    let differences: BTreeMap<_, _> = nginx
        .iter()
        .zip(&kirin)
        .filter(|((_, nginx), kirin)| nginx != kirin)
        .map(|((extension, _), kirin)| (extension.as_str(), kirin.as_str()))
        .collect();
    assert_eq!(differences, DIFFERENCES.iter().copied().collect());
}

#[test]
fn files_have_the_media_types_that_the_web_knows_them_by() {
    let table = [
        ("woff", "font/woff"),
        ("otf", "font/otf"),
        ("M3U8", "application/vnd.apple.mpegurl"),
        ("ts", "video/mp2t"),
        ("mts", "video/mp2t"),
        ("rs", "text/x-rust"),
        ("rpm", "application/x-redhat-package-manager"),
        ("vcf", "text/vcard"),
        ("wav", "audio/wav"),
        ("mjs", "text/javascript"),
        ("md", "text/markdown"),
        ("yaml", "application/yaml"),
        ("toml", "application/toml"),
        ("log", "text/plain"),
        ("gpx", "application/gpx+xml"),
        ("psd", "image/vnd.adobe.photoshop"),
        ("sql", "application/sql"),
        ("php", "application/octet-stream"),
    ];
    let kirin = types_of_kirin(table.iter().map(|(extension, _)| *extension));
    for ((extension, expected), found) in table.iter().zip(kirin) {
        assert_eq!(found, *expected, "{extension}");
    }
}
