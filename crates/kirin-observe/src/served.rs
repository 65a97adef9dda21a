//! What a Kirin was told to serve: a configuration file, a target of the command line, or an
//! application that another program has loaded.
//!
//! The name of the default admin socket comes from it. So `kirin status` finds the socket of
//! `kirin serve app.psgi` without a configuration.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The most bytes of a path that are readable in the name of a socket. A path of a socket has at
/// most 107 bytes (unix(7)), and its directory needs up to 43 of them.
const READABLE_BYTES: usize = 40;

/// The target that a Kirin serves. Paths are absolute. Symbolic links in them are not resolved, so
/// that the name of the socket stays when a deployment changes a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// A configuration file.
    Config(PathBuf),
    /// A PSGI file or a directory.
    Target(PathBuf),
    /// Another HTTP server, by its address.
    Server(String),
    /// An application that the program with this command has loaded (`Plack::Handler::Kirin`).
    Program {
        /// The directory in which the program was started.
        directory: PathBuf,
        /// The command.
        command: String,
        /// The addresses of its listeners.
        addresses: Vec<String>,
    },
}

impl Served {
    /// Returns the target that `--config PATH` stands for.
    pub fn from_config(path: &Path) -> Self {
        Self::Config(absolute(path))
    }

    /// Returns what the target of `kirin serve TARGET` stands for.
    pub fn from_target(target: &str) -> Self {
        match target.contains("://") {
            true => Self::Server(target.trim_end_matches('/').to_owned()),
            false => Self::Target(absolute(Path::new(target))),
        }
    }

    /// Returns the name of the socket: a part that people can read, and a hash of the whole. The
    /// client and the server may be of different versions, so this must never change.
    pub fn socket_name(&self) -> String {
        let (readable, key) = match self {
            Self::Config(path) => (readable_end(path), key("config", path.as_os_str().as_bytes())),
            Self::Target(path) => (readable_end(path), key("target", path.as_os_str().as_bytes())),
            Self::Server(url) => {
                let address = url.split_once("://").map_or(url.as_str(), |(_, address)| address);
                (readable(address), key("target", url.as_bytes()))
            }
            Self::Program { directory, addresses, .. } => {
                let mut all = directory.as_os_str().as_bytes().to_vec();
                addresses
                    .iter()
                    .for_each(|address| all.extend([b"\0", address.as_bytes()].concat()));
                (readable_end(&directory.join("plack")), key("program", &all))
            }
        };
        format!("{readable}-{:016x}.sock", xxh3_64(&key))
    }

    /// Returns the part of the status from which clients learn what this Kirin serves. `started_in`
    /// is the working directory.
    pub fn status(&self, started_in: Option<&Path>) -> Value {
        let (key, name, directory) = match self {
            Self::Config(path) => ("config", path.display().to_string(), path.parent()),
            Self::Target(path) if path.is_dir() => {
                ("target", path.display().to_string(), Some(path.as_path()))
            }
            Self::Target(path) => ("target", path.display().to_string(), path.parent()),
            Self::Server(url) => ("target", url.clone(), None),
            Self::Program { directory, command, .. } => {
                ("program", command.clone(), Some(directory.as_path()))
            }
        };
        let directories = directory.into_iter().chain(started_in);
        // A path that is not UTF-8 has no place in JSON.
        let mut directories: Vec<_> = directories.map(|path| path.display().to_string()).collect();
        directories.dedup();
        json!({ key: name, "directories": directories })
    }
}

/// Returns a short text that differs if the files of two configurations do. People compare it.
pub fn configuration_digest<'a>(files: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Xxh3::new();
    files.for_each(|text| {
        hasher.update(text.as_bytes());
        hasher.update(&[0]);
    });
    format!("{:08x}", hasher.digest() as u32)
}

fn key(kind: &str, name: &[u8]) -> Vec<u8> {
    [kind.as_bytes(), name].join(&0)
}

/// Returns the absolute form of a path without `.` and without a slash at the end.
fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}

/// Returns the last two components of a path, in characters that a shell takes as they are.
fn readable_end(path: &Path) -> String {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let names: Vec<_> = names.collect();
    readable(&names[names.len().saturating_sub(2)..].join("-"))
}

fn readable(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain: String = text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let end = &plain[plain.len().saturating_sub(READABLE_BYTES)..];
    // `ls` does not show a name that begins with a dot.
    match end.trim_start_matches(['.', '-']) {
        "" => "kirin".into(),
        end => end.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_socket_can_be_read_and_is_short() {
        let long = format!("/{}/{}", "a".repeat(200), "é".repeat(99));
        for (served, start) in [
            (Served::from_config(Path::new("/etc/kirin/kirin.toml")), "kirin-kirin.toml-"),
            (Served::from_target("/srv/shop/app.psgi"), "shop-app.psgi-"),
            (Served::from_target("/srv/my shop/public/"), "my-shop-public-"),
            (Served::from_target("/"), "kirin-"),
            (Served::from_target("/.x"), "x-"),
            (Served::from_target("http://127.0.0.1:3000"), "127.0.0.1-3000-"),
            (Served::from_target(&long), "kirin-"),
        ] {
            let name = served.socket_name();
            assert!(name.starts_with(start) && name.ends_with(".sock"), "{served:?}: {name}");
            assert!(name.len() <= READABLE_BYTES + 22, "{served:?}: {name}");
        }
    }

    #[test]
    fn the_name_of_a_socket_is_the_same_in_all_versions() {
        for (served, name) in [
            (
                Served::from_config(Path::new("/etc/kirin/kirin.toml")),
                "kirin-kirin.toml-851f1043251fd289.sock",
            ),
            (Served::from_target("http://127.0.0.1:3000/"), "127.0.0.1-3000-ba194d3c630dc1bc.sock"),
        ] {
            assert_eq!(served.socket_name(), name);
        }
    }

    #[test]
    fn configurations_with_other_files_have_another_digest() {
        let digests = [&["a"][..], &["a", "b"], &["ab"], &["b", "a"], &[]];
        let digests = digests.map(|files| configuration_digest(files.iter().copied()));
        for (index, digest) in digests.iter().enumerate() {
            assert!(digest.len() == 8 && !digests[..index].contains(digest), "{digests:?}");
        }
    }

    #[test]
    fn all_spellings_of_a_path_give_the_same_socket_name() {
        let name = |target: &str| Served::from_target(target).socket_name();
        assert_eq!(name("/srv/./public/"), name("/srv/public"));
        assert_eq!(name("http://a:1/"), name("http://a:1"));
        let config = Served::from_config(Path::new("/srv/public")).socket_name();
        let program = |address: &str| {
            let addresses = vec![address.to_owned()];
            let (directory, command) = ("/srv".into(), "plackup".into());
            Served::Program { directory, command, addresses }.socket_name()
        };
        let names = [
            name("/srv/public"),
            name("/srv/a/public"),
            name("http://a:1"),
            name("https://a:1"),
            config,
            program("*:1"),
            program("*:2"),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} of {names:?}");
        }
    }
}
