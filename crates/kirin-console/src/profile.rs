//! `kirin profile`: asks a running Kirin for a profile, and writes it as folded stacks or as a
//! flame graph.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use inferno::flamegraph;
use kirin_observe::profile::{ProfileAnswer, Question};
use kirin_workers::{MAX_PROFILE_HZ, MAX_PROFILE_TIME};
use tempfile::NamedTempFile;

use crate::number::within;
use crate::print::{print, print_line};
use crate::running::RunningKirin;

/// The arguments of `kirin profile`.
#[derive(Args)]
pub struct ProfileArgs {
    /// The application [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// How long
    #[arg(long, default_value_t = 10, value_parser = within::<u64>(1, MAX_PROFILE_TIME.as_secs()))]
    pub seconds: u64,
    /// How often in a second
    #[arg(long, default_value_t = 100, value_parser = within(1, MAX_PROFILE_HZ))]
    pub hz: u32,
    /// Where to write the stacks: a flame graph if the name ends in .svg, or else folded stacks
    /// [default: folded stacks to standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The running Kirin.
    #[command(flatten)]
    pub at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &ProfileArgs) -> Result<(), String> {
    let target = arguments.at.find()?;
    // A profile must not be lost because its file cannot be written.
    let output = arguments.output.as_deref().map(ProfileFile::create).transpose()?;
    let question =
        Question { app: arguments.app.clone(), seconds: arguments.seconds, hz: arguments.hz };
    let question = serde_json::to_string(&question).map_err(|error| error.to_string())?;
    let answer =
        target.post_within("/profile", &question, Duration::from_secs(arguments.seconds))?;
    let profile: ProfileAnswer = serde_json::from_str(&answer)
        .map_err(|error| format!("what came is no profile of Kirin: {error}"))?;
    if profile.samples == 0 {
        return Err(format!(
            "app `{}` had no request in these {} s, so there is no profile",
            profile.app, arguments.seconds
        ));
    }
    match output {
        Some(output) => output.write(&profile)?,
        None => print(&folded(&profile))?,
    }
    print_line(&summary(&profile));
    Ok(())
}

/// Says how much the profile has seen.
fn summary(profile: &ProfileAnswer) -> String {
    let ProfileAnswer { app, ticks, samples, missed, workers, .. } = profile;
    let missed = match missed {
        0 => String::new(),
        missed => format!("; {missed} could not be read"),
    };
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "kirin: app `{app}`: {samples} samples of requests in {workers} worker{} at {ticks} ticks{missed}",
        plural(*workers)
    )
}

/// Returns one line for each stack: the calls, and the number of samples.
fn folded(profile: &ProfileAnswer) -> String {
    profile.stacks.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
}

/// The file that gets the profile. It has its name when it is complete.
struct ProfileFile<'a> {
    path: &'a Path,
    file: NamedTempFile,
}

impl<'a> ProfileFile<'a> {
    fn create(path: &'a Path) -> Result<Self, String> {
        let directory = match path.parent() {
            Some(directory) if directory != Path::new("") => directory,
            _ => Path::new("."),
        };
        if path.is_dir() {
            return Err(format!("{} is a directory", path.display()));
        }
        // The user's umask decides who may read the file.
        let mut builder = tempfile::Builder::new();
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let file =
            builder.prefix(".kirin-profile-").permissions(permissions).tempfile_in(directory);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path, file })
    }

    fn write(mut self, profile: &ProfileAnswer) -> Result<(), String> {
        let is_svg = self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
        let bytes = if is_svg { flame_graph(profile)? } else { folded(profile).into_bytes() };
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        self.file.write_all(&bytes).map_err(failed)?;
        self.file.persist(self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// Returns a flame graph as SVG.
fn flame_graph(profile: &ProfileAnswer) -> Result<Vec<u8>, String> {
    let mut options = flamegraph::Options::default();
    options.title = format!("kirin profile of {}", profile.app);
    let folded = folded(profile);
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut svg)
        .map_err(|error| format!("no flame graph: {error}"))?;
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> ProfileAnswer {
        ProfileAnswer {
            app: "web".into(),
            ticks: 100,
            samples: 5,
            missed: 0,
            workers: 1,
            stacks: vec![
                ("A::b (a.psgi:1);C::d (c <x>.pm:2)".into(), 4),
                ("A::b (a.psgi:3)".into(), 1),
            ],
        }
    }

    #[test]
    fn a_folded_line_ends_with_its_count() {
        assert_eq!(folded(&answer()), "A::b (a.psgi:1);C::d (c <x>.pm:2) 4\nA::b (a.psgi:3) 1\n");
    }

    #[test]
    fn a_flame_graph_has_each_call() {
        let svg = String::from_utf8(flame_graph(&answer()).unwrap()).unwrap();
        assert!(svg.contains("<svg") && svg.contains("kirin profile of web"), "{svg}");
        assert!(svg.contains("C::d (c &lt;x&gt;.pm:2) (4 samples, 80.00%)"), "{svg}");
        assert!(svg.contains("A::b (a.psgi:3)"), "{svg}");
    }

    #[test]
    fn the_summary_says_what_is_missing() {
        let mut profile = answer();
        assert_eq!(
            summary(&profile),
            "kirin: app `web`: 5 samples of requests in 1 worker at 100 ticks"
        );
        (profile.missed, profile.workers) = (3, 2);
        assert!(summary(&profile).ends_with("2 workers at 100 ticks; 3 could not be read"));
    }
}
