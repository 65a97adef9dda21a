//! `kirin advise`: has a running Kirin observe what its applications answer, and says which pages
//! could be in memory.

mod findings;
mod instructions;
mod lines;
mod text;
mod words;

use std::time::Duration;

use clap::Args;
use kirin_advice::report::{Report, ReportEntry};
use kirin_config::ConfigSource;
use kirin_observe::advise::{RunState, StartRun};
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::number::within;
use crate::print::print;
use crate::running::RunningKirin;
use crate::running::target::CommandTarget;
use lines::{ConfigLines, NoLines, lines};

/// How long the report may take after the end of the run.
const REPORT_LIMIT: Duration = Duration::from_secs(60);

/// How often the client asks for the report.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// The arguments of `kirin advise`.
#[derive(Args)]
pub struct Advise {
    /// How long to observe
    #[arg(long, short, value_name = "SECONDS", default_value_t = 60, value_parser = within::<u64>(1, 3600))]
    pub seconds: u64,
    /// Observe this application only. Can be repeated
    #[arg(long = "app", value_name = "NAME")]
    pub apps: Vec<String>,
    /// Observe this upstream only. Can be repeated
    #[arg(long = "upstream", value_name = "NAME")]
    pub upstreams: Vec<String>,
    /// Observe this site of the configuration only; - means the routes at the top level. Can be
    /// repeated
    #[arg(long = "site", value_name = "NAME")]
    pub sites: Vec<String>,
    /// A cookie that names sessions. Can be repeated [default: `session_cookie` of the
    /// configuration, or those that differ for nearly each visitor]
    #[arg(long = "session", value_name = "COOKIE")]
    pub sessions: Vec<String>,
    /// The fewest different visitors that an advice needs, 3 to 8
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub visitors: usize,
    /// The fewest client addresses that an advice needs. Use 1 only if all visitors come through a
    /// proxy that is not in `trusted`
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub addresses: usize,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// The running Kirin.
    #[command(flatten)]
    pub at: RunningKirin,
}

/// An entry with the lines for the configuration.
#[derive(Serialize)]
struct WithLines<'a> {
    #[serde(flatten)]
    entry: &'a ReportEntry,
    /// The lines, if the configuration alone can do it.
    lines: Option<String>,
    /// The site below which the lines belong.
    below_site: Option<String>,
}

/// Carries out the command.
pub fn run(arguments: &Advise) -> Result<(), String> {
    let target = arguments.at.find()?;
    let apps = arguments.apps.iter().map(|name| format!("app:{name}"));
    let upstreams = arguments.upstreams.iter().map(|name| format!("proxy:{name}"));
    let start = StartRun {
        seconds: arguments.seconds,
        places: apps.chain(upstreams).collect(),
        sites: arguments.sites.clone(),
        visitors: arguments.visitors,
        addresses: arguments.addresses,
        sessions: arguments.sessions.clone(),
    };
    let report = observe(&target, &start)?;
    let config = arguments.at.config_file().and_then(|path| ConfigSource::read(path).ok());
    let lines_of = |entry: &ReportEntry| checked_lines(config.as_ref(), entry);
    if !arguments.json {
        return print(&text::text(&report, lines_of));
    }
    let entries: Vec<WithLines<'_>> = report
        .entries
        .iter()
        .map(|entry| {
            let lines = lines_of(entry).ok();
            let below_site = match &lines {
                Some(ConfigLines::SiteRoute(site, _)) => Some(site.clone()),
                _ => None,
            };
            WithLines { entry, lines: lines.map(|lines| lines.text().to_owned()), below_site }
        })
        .collect();
    let mut json = serde_json::json!(report);
    json["entries"] = serde_json::json!(entries);
    print(&format!("{json:#}\n"))
}

/// Starts a run, and waits for its end or for Ctrl-C, which ends it.
fn observe(target: &CommandTarget, start: &StartRun) -> Result<Report, String> {
    let body = serde_json::to_string(start).map_err(|error| error.to_string())?;
    let cannot_wait = |error| format!("cannot wait: {error}");
    let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot_wait)?;
    runtime.block_on(async {
        // A Ctrl-C that comes when the run has just begun must end the run too.
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot_wait)?;
        target.post("/advise", &body)?;
        let end = Instant::now() + Duration::from_secs(start.seconds);
        let is_over = tokio::select! {
            () = sleep_until(end) => true,
            _ = interrupt.recv() => false,
        };
        let limit = Instant::now() + REPORT_LIMIT;
        let mut answer = if is_over { target.get("/advise")? } else { target.delete("/advise")? };
        loop {
            match serde_json::from_str(&answer) {
                Ok(RunState::Done { report }) => return Ok(*report),
                Ok(RunState::None) => {
                    return Err("the run was lost: Kirin was started again".into());
                }
                Ok(RunState::On { .. } | RunState::Ending) if Instant::now() < limit => {}
                Ok(_) => return Err("the run does not end".into()),
                Err(error) => return Err(format!("what came is no answer of Kirin: {error}")),
            }
            sleep_until(Instant::now() + ASK_INTERVAL).await;
            answer = target.get("/advise")?;
        }
    })
}

/// Returns the lines for an entry, if the configuration is good with them.
fn checked_lines(
    config: Option<&ConfigSource>,
    entry: &ReportEntry,
) -> Result<ConfigLines, NoLines> {
    let config = config.ok_or(NoLines::Route)?;
    let lines = lines_of_files(config, entry)?;
    // A table at the end of the file belongs to the top level only for routes of the top level.
    if let ConfigLines::Route(text) = &lines {
        let text = format!("{}\n{text}", config.text());
        let with_lines = ConfigSource::from_text(config.name(), &config.directory, text);
        kirin_config::read(&with_lines).map_err(|_| NoLines::Route)?;
    }
    Ok(lines)
}

/// Returns the lines for the only file of the configuration that has the route.
fn lines_of_files(config: &ConfigSource, entry: &ReportEntry) -> Result<ConfigLines, NoLines> {
    let mut of_files = config.files().iter().map(|file| lines(&file.text, entry));
    let has_route = |lines: &Result<_, _>| !matches!(lines, Err(NoLines::Route));
    match (of_files.find(has_route), of_files.find(has_route)) {
        (Some(lines), None) => lines,
        (Some(Err(error)), Some(_)) => Err(error),
        (None, _) | (Some(Ok(_)), Some(_)) => Err(NoLines::Route),
    }
}
