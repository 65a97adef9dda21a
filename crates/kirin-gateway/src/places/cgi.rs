//! The place `cgi:PROGRAM`: a CGI program, or the programs of a directory.
//!
//! A program is mounted at the path of its route: `SCRIPT_NAME` has this path, and `PATH_INFO` the
//! rest. Of a directory, the first segments of the rest name the program, which `SCRIPT_NAME` then
//! includes. If they name none, the next place is asked.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kirin_cgi_programs::{BODY_LIMIT_BYTES, CgiPrograms, ProgramRequest};
use kirin_files::{FilesError, FollowLinks, ProgramDirectory, is_executable};
use kirin_http::{Answer, RequestPath, Response, StatusCode};

use super::app::meta_variables;
use super::kind::{Arguments, OpenPlace, PlaceKind, ReadPlace};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::filters::advise::sampled_backend::SampledBackend;
use crate::filters::backend::{Backend, limit_body};
use crate::filters::chain::Filters;
use crate::filters::mirror::mirrored_backend::MirroredBackend;
use crate::request::context::Request;
use crate::routing::path_pattern::PathPattern;

/// The kind `cgi:PROGRAM`.
pub static KIND: PlaceKind = PlaceKind {
    name: "cgi",
    argument: Some("PROGRAM"),
    runs_code: true,
    answers_all: false,
    keys: &["cgi", "follow_links", "cache", "mirror"],
    read,
};

/// The place in `try`: the absolute path of a program or of a directory.
enum CgiPath {
    Program(PathBuf),
    Directory(PathBuf),
}

/// Reads the argument.
fn read(path: &str, named: &dyn Arguments) -> ReadPlace {
    if let Ok(directory) = named.directory(path) {
        return Ok(Arc::new(CgiPath::Directory(directory)));
    }
    let program = named.file(path).map_err(|_| format!("there is no program {path}"))?;
    match std::fs::metadata(&program) {
        Ok(metadata) if is_executable(&metadata) => Ok(Arc::new(CgiPath::Program(program))),
        Ok(_) => Err(format!("{} is not executable (chmod +x)", program.display())),
        Err(error) => Err(format!("{}: {error}", program.display())),
    }
}

impl OpenPlace for CgiPath {
    fn path(&self) -> Option<&Path> {
        let (Self::Program(path) | Self::Directory(path)) = self;
        Some(path)
    }

    fn answers_all(&self) -> bool {
        matches!(self, Self::Program(_))
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let (route, filters) = (opening.route, Rc::clone(opening.filters));
        let no_settings = || PlaceError::new(io::Error::other("no settings for CGI programs"));
        let settings = route.programs.clone().ok_or_else(no_settings)?;
        let source = match self {
            Self::Program(file) => ProgramSource::Program(file.clone()),
            Self::Directory(path) => {
                ProgramSource::directory(path, route.follow_links).map_err(PlaceError::new)?
            }
        };
        let mounted = Rc::new(MountedPrograms { source, pattern: route.path.clone() });
        let label = self.path().map(label).unwrap_or_default();
        let backend = CgiBackend {
            mounted: Rc::clone(&mounted),
            programs: Rc::new(CgiPrograms::new(settings, &label)),
            body_limit_bytes: route.body_limit_bytes.unwrap_or(BODY_LIMIT_BYTES),
        };
        let backend = MirroredBackend::new(opening.mirror, backend);
        let sampling = Arc::clone(&filters.sampling);
        let backend = SampledBackend::new(sampling, route, opening.number, backend);
        Ok(Box::new(CgiPlace { mounted, backend: filters.push_from(backend), filters }))
    }
}

/// Returns the name of a place in logs: that of the file or directory, in one word.
fn label(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    name.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
}

/// Where the programs of a place are.
pub enum ProgramSource {
    /// One program.
    Program(PathBuf),
    /// The programs of a directory.
    Directory(Box<ProgramDirectory>),
}

/// The program that answers a request.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedProgram<'p> {
    /// Its file.
    pub file: PathBuf,
    /// `SCRIPT_NAME`, decoded.
    pub script_name: Cow<'p, [u8]>,
    /// The percent-encoded path of which `PATH_INFO` is made.
    pub path_info: &'p str,
}

impl ProgramSource {
    /// Opens a directory.
    pub fn directory(path: &Path, follow_links: FollowLinks) -> Result<Self, FilesError> {
        ProgramDirectory::open(path, follow_links).map(|opened| Self::Directory(Box::new(opened)))
    }

    /// Returns the program for `path_info`, the percent-encoded path below `script_name`.
    pub fn find<'p>(&self, script_name: &'p [u8], path_info: &'p str) -> Option<NamedProgram<'p>> {
        match self {
            Self::Program(file) => {
                let (file, script_name) = (file.clone(), Cow::Borrowed(script_name));
                Some(NamedProgram { file, script_name, path_info })
            }
            Self::Directory(directory) => {
                let found = directory.find(path_info, Instant::now())?;
                let script_name = Cow::Owned([script_name, &found.name].concat());
                Some(NamedProgram { file: found.file, script_name, path_info: found.rest })
            }
        }
    }
}

/// Returns where a route without `rewrite` mounts its programs, as `rewrite = "/"` would:
/// `SCRIPT_NAME`, and the path for `PATH_INFO`.
pub fn mount<'p>(sent: &'p RequestPath<'_>, pattern: &PathPattern) -> (&'p [u8], Cow<'p, str>) {
    (pattern.matched(sent), pattern.rest(sent))
}

/// The programs of a route.
struct MountedPrograms {
    source: ProgramSource,
    pattern: PathPattern,
}

impl MountedPrograms {
    /// Calls `work` with the program for a request. Returns `None` if there is no program.
    fn with_program<R>(
        &self,
        request: &Request<'_>,
        work: impl FnOnce(NamedProgram<'_>) -> R,
    ) -> Option<R> {
        let (script_name, path_info) = match request.path_info {
            Some(path_info) => (request.script_name, Cow::Borrowed(path_info)),
            None => mount(request.sent_path, &self.pattern),
        };
        self.source.find(script_name, &path_info).map(work)
    }
}

/// The place of one route.
pub struct CgiPlace {
    mounted: Rc<MountedPrograms>,
    backend: Rc<dyn Backend>,
    filters: Rc<Filters>,
}

/// The programs of a route, behind the filters.
struct CgiBackend {
    mounted: Rc<MountedPrograms>,
    programs: Rc<CgiPrograms>,
    body_limit_bytes: u64,
}

impl Place for CgiPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        if matches!(self.mounted.source, ProgramSource::Directory(_)) {
            self.mounted.with_program(request, |_| ())?;
        }
        Some(self.filters.around(request, &self.backend))
    }
}

impl Backend for CgiBackend {
    fn answer(&self, request: &Request<'_>) -> Answer {
        // PATH_INFO has no empty segments, so REQUEST_URI has none either.
        let resolved = request.sent_path.if_resolved();
        let answer = self.mounted.with_program(request, |program| {
            let NamedProgram { file, script_name, path_info } = program;
            let mut meta = meta_variables(request, resolved.as_deref());
            meta.script_name = &script_name;
            meta.path = Some(path_info);
            self.programs.answer(ProgramRequest {
                head: request.head,
                origin: request.origin,
                meta,
                file,
            })
        });
        // The program was there a moment ago.
        let answer = answer.unwrap_or_else(|| Answer::Now(Response::error(StatusCode::NOT_FOUND)));
        limit_body(answer, Some(self.body_limit_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_mounted_at_the_path_of_its_route() {
        let source = ProgramSource::Program("/usr/lib/gitweb.cgi".into());
        for (route, sent, script_name, path_info) in [
            ("/gitweb", "/gitweb", "/gitweb", ""),
            ("/gitweb", "/gitweb/", "/gitweb", "/"),
            ("/gitweb", "/git%77eb/a%20b//c/../d", "/gitweb", "/a%20b/d"),
            ("/", "/a/b", "", "/a/b"),
            ("/", "/", "", "/"),
            ("= /x.cgi", "/x.cgi", "/x.cgi", ""),
            ("/u/{id}", "/u/7/a", "/u/7", "/a"),
        ] {
            let pattern = PathPattern::parse(route).unwrap();
            let sent = RequestPath::parse(sent).unwrap();
            let (name, rest) = mount(&sent, &pattern);
            let program = source.find(name, &rest).unwrap();
            assert_eq!(
                (&*program.script_name, program.path_info),
                (script_name.as_bytes(), path_info),
                "{route}"
            );
        }
    }

    #[test]
    fn the_label_of_a_place_is_one_word() {
        for (path, expected) in
            [("/usr/lib/cgi-bin", "cgi-bin"), ("/x/a b\n.cgi", "a_b_.cgi"), ("/", "/")]
        {
            assert_eq!(label(Path::new(path)), expected);
        }
    }
}
