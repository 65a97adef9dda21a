//! PHP applications with a front controller: their document root, and what must not be public.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::evidence::Evidence;
use crate::found::{Candidate, FilesOnly, PhpPlan, Plan, Step};
use crate::private_paths::private_paths;
use crate::project::{Project, below};

/// The socket of Debian's php-fpm for the default version.
const USUAL_SOCKET: &str = "/run/php/php-fpm.sock";

/// Software with rules of its own.
struct Software {
    name: &'static str,
    root: &'static str,
    /// The files of which all must be there.
    marks: &'static [&'static str],
    /// Directories below the root whose files are never run.
    uploads: &'static [&'static str],
    /// Names below the root that are never served.
    denied: &'static [&'static str],
}

const KNOWN: [Software; 7] = [
    Software {
        name: "Laravel",
        root: "public",
        marks: &["public/index.php", "artisan"],
        uploads: &["/storage"],
        denied: &[],
    },
    Software {
        name: "Symfony",
        root: "public",
        marks: &["public/index.php", "bin/console"],
        uploads: &["/uploads"],
        denied: &[],
    },
    Software {
        name: "Drupal",
        root: "web",
        marks: &["web/index.php", "web/core/lib/Drupal.php"],
        uploads: &["/sites/default/files"],
        denied: &[],
    },
    Software {
        name: "Drupal",
        root: ".",
        marks: &["index.php", "core/lib/Drupal.php"],
        uploads: &["/sites/default/files"],
        denied: &[],
    },
    Software {
        name: "WordPress",
        root: ".",
        marks: &["index.php", "wp-load.php"],
        uploads: &["/wp-content/uploads"],
        denied: &["= /wp-content/debug.log"],
    },
    Software {
        name: "WordPress",
        root: ".",
        marks: &["index.php", "wp-config.php"],
        uploads: &["/wp-content/uploads"],
        denied: &["= /wp-content/debug.log"],
    },
    Software {
        name: "Nextcloud",
        root: ".",
        marks: &["index.php", "occ", "remote.php"],
        uploads: &[],
        denied: &["/data", "/config", "/lib", "/3rdparty", "/templates"],
    },
];

/// The roots of other front controllers.
const ROOTS: [&str; 6] = ["public", "web", "htdocs", "www", "webroot", "."];

/// Finds a PHP application. `sockets` is the directory in which php-fpm makes its sockets.
pub(crate) fn find(project: &Project, sockets: &Path) -> Option<Candidate> {
    let known = KNOWN.iter().find(|known| known.marks.iter().all(|mark| project.is_file(mark)));
    let root = match known {
        Some(known) => known.root,
        None => ROOTS.into_iter().find(|root| project.is_file(&below(root, "index.php")))?,
    };
    let index = below(root, "index.php");
    let mut evidence = vec![match known {
        Some(known) => {
            Evidence::of_file(&index, format!("is the front controller of {}", known.name))
        }
        None => Evidence::of_file(&index, "is a front controller in PHP"),
    }];
    if let Some(mark) = known.and_then(|known| known.marks.get(1)) {
        evidence.push(Evidence::of_file(mark, "shows which software it is"));
    }
    let rules = below(root, ".htaccess");
    if project.is_file(&rules) {
        let fact = "has rules of Apache, which Kirin does not read";
        project.note_problem(Evidence::of_file(&rules, fact));
    }
    let (socket, has_socket) = match newest_socket(sockets) {
        Some(socket) => (socket, true),
        None => (USUAL_SOCKET.to_owned(), false),
    };
    let mut steps = Vec::new();
    if has_socket {
        evidence.push(Evidence::of_file(&socket, "is the socket of php-fpm on this machine"));
    } else {
        let command = "apt install php-fpm".to_owned();
        steps.push(Step { purpose: "install what runs the scripts", command });
    }
    let plan = PhpPlan {
        root,
        socket,
        has_socket,
        files_only: files_only(project, root, known),
        denied: denied(project, root, known),
    };
    Some(Candidate { plan: Plan::Php(plan), evidence, steps })
}

/// Returns the paths to which visitors upload files. No file there may be run as a script.
fn files_only(project: &Project, root: &str, known: Option<&Software>) -> Vec<FilesOnly> {
    let own = known.map_or([].as_slice(), |known| known.uploads);
    let usual = ["/uploads", "/upload"].iter().filter(|path| !own.contains(path));
    let mut found = Vec::new();
    for path in own.iter().chain(usual) {
        let directory = below(root, path.trim_start_matches('/'));
        let is_link = project.is_link(&directory);
        // The directory of WordPress and of Drupal appears with the first upload.
        let appears = |known: &Software| known.root == "." || known.name == "Drupal";
        if (own.contains(path) && known.is_some_and(appears))
            || is_link
            || project.is_directory(&directory)
        {
            let made_below =
                (*path == "/sites/default/files").then_some("/sites/default/files/styles");
            found.push(FilesOnly { path, is_link, made_below });
        }
    }
    found
}

/// Returns the paths that are never served.
fn denied(project: &Project, root: &str, known: Option<&Software>) -> Vec<&'static str> {
    let mut denied = known.map_or(Vec::new(), |known| known.denied.to_vec());
    if root == "." {
        denied.extend(private_paths(project));
    }
    denied
}

/// Returns the socket of the newest php-fpm below `directory`.
fn newest_socket(directory: &Path) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?;
    let sockets = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())));
    let (_, newest): (_, PathBuf) = sockets.max()?;
    newest.to_str().map(String::from)
}

/// Returns the version in `php8.2-fpm.sock`. A socket without a version counts as the oldest.
fn version(name: &str) -> Option<(u32, u32)> {
    let version = name.strip_prefix("php")?.strip_suffix("-fpm.sock")?;
    if version.is_empty() {
        return Some((0, 0));
    }
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
