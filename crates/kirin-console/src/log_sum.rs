//! `kirin log sum`: sums up access logs by site, method and URL pattern.

mod configured_logs;
mod duration_unit;
mod sites;
mod sources;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kirin_log_summary::filter::{Filter, Moment, StatusCondition, parse_moment};
use kirin_log_summary::input::{LogOptions, LogReport, has_format, read_log};
use kirin_log_summary::line::{LineFormat, LogRecord, TimeUnit};
use kirin_log_summary::report::{self, Order, Uncounted};
use kirin_log_summary::summary::Summary;
use kirin_url_patterns::ConfiguredPattern;

use crate::print::{print, print_line};
use duration_unit::{DurationUnit, duration_unit};
use sites::{ConfiguredSites, LogSites};
use sources::{LogSource, LogSources};

/// A command for access logs.
#[derive(Subcommand)]
pub enum LogCommand {
    /// Sum up access logs by method and URL pattern, sorted by the time that they took
    #[command(after_help = "Examples:
  kirin log sum                          all access logs of ./kirin.toml
  kirin log sum access.log               in the format of ./kirin.toml, or found out
  kirin log sum access.log.*.gz --status 5xx --sort count
  kirin log sum access.log --format '%h %l %u %t \"%r\" %>s %b %D'
  kirin log sum access.log --format '$remote_addr [$time_local] \"$request\" $status $request_time'
  kirin log sum access.log --format 'host:%h\\treq:%r\\tstatus:%>s\\ttaken:%D'
  kirin log sum access.log --pattern '/@{user}' --output markdown
  kirin log sum access.log --by-site
  kirin log sum --compare before.log after.log
  ssh www zcat /var/log/nginx/access.log.1.gz | kirin log sum -")]
    Sum(Sum),
}

/// The arguments of `kirin log sum`.
#[derive(Args)]
pub struct Sum {
    /// Access logs, plain or compressed with gzip or Zstandard; - is the standard input [default:
    /// the access logs of the configuration]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare two logs: the first FILE is before, the second one after. Rows are sorted by how
    /// much they changed
    #[arg(long)]
    compare: bool,
    /// The format of the lines: combined, common, ltsv, json, terminal, vhost_combined, combinedio,
    /// directives of Kirin and Apache such as '%h "%r" %>s %D', variables of nginx such as
    /// '"$request" $status $request_time', or a complete line `log_format …` of nginx or `LogFormat
    /// …` of Apache [default: that of the configuration, or found out for each file]
    #[arg(long, value_parser = LineFormat::from_text)]
    format: Option<LineFormat>,
    /// The configuration of the Kirin that has written the logs. It says the formats of their
    /// lines, and which host belongs to which site [default: kirin.toml of this directory, if a
    /// FILE is a log of it]
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    config: Option<PathBuf>,
    /// The unit of durations in the log, if the format does not say it [default: s]
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<DurationUnit>,
    /// A URL pattern, such as '/memo/{id}' or '/static/*'. Can be repeated; the first that matches
    /// has the request. Kirin finds patterns for all other paths
    #[arg(long = "pattern", short, value_name = "PATTERN", value_parser = ConfiguredPattern::parse)]
    patterns: Vec<ConfiguredPattern>,
    /// Tell sites apart by the hosts in the log. This is the default with a configuration that has
    /// sites
    #[arg(long)]
    by_site: bool,
    /// The figure by which rows are sorted, largest first
    #[arg(long, default_value = "sum")]
    sort: SortKey,
    /// Reverse the order
    #[arg(long, short)]
    reverse: bool,
    /// Print only the first rows
    #[arg(long, short = 'n', value_name = "ROWS")]
    limit: Option<usize>,
    /// The form of the report
    #[arg(long, short, default_value = "text")]
    output: OutputFormat,
    /// Count only requests with this status: 404 or 5xx. Can be repeated
    #[arg(long = "status", value_name = "STATUS")]
    statuses: Vec<StatusCondition>,
    /// Count only requests with this method. Can be repeated
    #[arg(long = "method", value_name = "METHOD")]
    methods: Vec<String>,
    /// Count only requests of this site: its name or a host of it in the configuration, and without
    /// one the host in the log; - means no site. Can be repeated
    #[arg(long = "site", value_name = "NAME")]
    sites: Vec<String>,
    /// Count only requests at this time or later: 2026-11-22T18:40 (UTC), or with an offset
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    since: Option<Moment>,
    /// Count only requests before this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Moment>,
}

#[derive(Clone, Copy, ValueEnum)]
enum SortKey {
    Sum,
    Count,
    Avg,
    P50,
    P95,
    P99,
    Max,
    Bytes,
    Pattern,
}

#[derive(Clone, Copy, ValueEnum)]
enum OutputFormat {
    Text,
    Markdown,
    Csv,
    Json,
}

/// Carries out the command.
pub fn run(command: &LogCommand) -> Result<(), String> {
    let LogCommand::Sum(sum) = command;
    if sum.compare && sum.files.len() != 2 {
        return Err(format!("--compare takes two files, not {}", sum.files.len()));
    }
    if sum.files.iter().filter(|file| is_stdin(file)).count() > 1 {
        return Err("the standard input can be read once only".into());
    }
    let mut summary = Summary::new(sum.patterns.clone(), if sum.compare { 2 } else { 1 });
    let mut sources = LogSources::find(&sum.files, sum.config.as_deref(), sum.format.is_some())?;
    if let Some(note) = &sources.note {
        print_line(&format!("kirin: {note}"));
    }
    let mut warnings = std::mem::take(&mut sources.warnings);
    let progress = progress_bar(&sources.logs);
    let uncounted = sum.read(sources, &mut summary, &progress, &mut warnings);
    progress.finish_and_clear();
    for warning in warnings {
        print_line(&format!("kirin: {warning}"));
    }
    let (uncounted, order, output) = (uncounted?, sum.order(), sum.output.into());
    print(&if sum.compare {
        report::compare(&summary, uncounted, order, output)
    } else {
        report::report(&summary, uncounted[0], order, output)
    })
}

impl Sum {
    /// Reads all logs. Returns the lines of each side that are not in the summary.
    fn read(
        &self,
        sources: LogSources,
        summary: &mut Summary,
        progress: &ProgressBar,
        warnings: &mut Vec<String>,
    ) -> Result<[Uncounted; 2], String> {
        let sites = self.sites(sources.sites)?;
        let mut uncounted = [Uncounted::default(); 2];
        for (at, source) in sources.logs.iter().enumerate() {
            let side = if self.compare { at } else { 0 };
            let file = &source.file;
            let name = name(file);
            let options = self.log_options(source, warnings)?;
            let site_of_log = sites.as_ref().and_then(|sites| sites.of_log(file));
            let (mut has_hosts, mut of_other_sites) = (site_of_log.is_some(), 0);
            let mut take = |record: &LogRecord<'_>| {
                let site = match (&sites, site_of_log, record.host.as_deref()) {
                    (_, Some(site), _) => Cow::Borrowed(site),
                    (Some(sites), None, Some(host)) => {
                        has_hosts = true;
                        sites.of_host(host)
                    }
                    (_, None, _) => Cow::Borrowed(""),
                };
                if sites.as_ref().is_none_or(|sites| sites.takes(&site)) {
                    summary.add(side, &site, record);
                } else {
                    of_other_sites += 1;
                }
            };
            let log = open(file)
                .and_then(|log| read_log(progress.wrap_read(log), &options, &mut take))
                .map_err(|error| format!("{name}: {error}"))?;
            if log.is_unreadable() {
                return Err(unreadable(&name, &log, options.format.is_some()));
            }
            if let Some((number, error)) = &log.first_malformed {
                let (malformed, lines) = (log.malformed, log.lines);
                warnings.push(format!(
                    "{name}: {malformed} of {lines} lines are malformed; the first is line \
                     {number}: {error}"
                ));
            }
            if !has_hosts && (self.by_site || !self.sites.is_empty()) {
                warnings.push(format!(
                    "{name}: no line has a host, so its requests are of no site; logs in JSON and \
                     LTSV have it in `vhost`, and other formats with `%v`"
                ));
            }
            uncounted[side].left_out += log.left_out + of_other_sites;
            uncounted[side].malformed += log.malformed;
        }
        Ok(uncounted)
    }

    /// Returns how sites are told apart. `None` if they are not.
    fn sites(&self, configured: Option<ConfiguredSites>) -> Result<Option<LogSites>, String> {
        if configured.is_none() && !self.by_site && self.sites.is_empty() {
            return Ok(None);
        }
        LogSites::new(configured, &self.sites).map(Some)
    }

    /// Returns how a log is read: in the format of the argument, or in that of the configuration if
    /// its first lines have it.
    fn log_options(
        &self,
        source: &LogSource,
        warnings: &mut Vec<String>,
    ) -> Result<LogOptions, String> {
        let name = name(&source.file);
        let mut configured = source.configured.as_ref();
        // What is read from a pipe is gone.
        if let Some(found) = configured.filter(|_| source.file.is_file()) {
            let has_format = open(&source.file).and_then(|log| has_format(log, &found.format));
            if !has_format.map_err(|error| format!("{name}: {error}"))? {
                warnings.push(format!(
                    "{name}: the first lines do not have the format {} of {}, so it is found out",
                    found.text, found.configuration
                ));
                configured = None;
            }
        }
        let format = configured.map(|found| &found.format).or(self.format.as_ref());
        let configuration = configured.map(|found| &*found.configuration);
        let unit = duration_unit(self.time_unit, format, configuration)
            .map_err(|error| format!("{name}: {error}"))?;
        Ok(self.options(format.cloned(), unit))
    }

    fn options(&self, format: Option<LineFormat>, unit: TimeUnit) -> LogOptions {
        LogOptions {
            format,
            unit,
            filter: Filter {
                methods: self.methods.clone(),
                statuses: self.statuses.clone(),
                since: self.since,
                until: self.until,
            },
        }
    }

    fn order(&self) -> Order {
        let sort = match self.sort {
            SortKey::Sum => report::Sort::Sum,
            SortKey::Count => report::Sort::Count,
            SortKey::Avg => report::Sort::Average,
            SortKey::P50 => report::Sort::P50,
            SortKey::P95 => report::Sort::P95,
            SortKey::P99 => report::Sort::P99,
            SortKey::Max => report::Sort::Max,
            SortKey::Bytes => report::Sort::Bytes,
            SortKey::Pattern => report::Sort::Pattern,
        };
        Order { sort, is_reversed: self.reverse, limit: self.limit.unwrap_or(usize::MAX) }
    }
}

impl From<OutputFormat> for report::ReportFormat {
    fn from(output: OutputFormat) -> Self {
        match output {
            OutputFormat::Text => Self::Text,
            OutputFormat::Markdown => Self::Markdown,
            OutputFormat::Csv => Self::Csv,
            OutputFormat::Json => Self::Json,
        }
    }
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

fn name(file: &Path) -> String {
    if is_stdin(file) { "standard input".into() } else { file.display().to_string() }
}

fn open(file: &Path) -> io::Result<Box<dyn Read>> {
    if is_stdin(file) {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(File::open(file)?))
}

fn unreadable(name: &str, log: &LogReport, is_format_given: bool) -> String {
    let (number, error) = match &log.first_malformed {
        Some((number, error)) => (*number, error.to_string()),
        None => (0, String::new()),
    };
    let hint = match is_format_given {
        true => "",
        false => "; give its --format, or the --config of the Kirin that has written it",
    };
    format!(
        "{name}: none of the first {} lines can be read; line {number}: {error}{hint}",
        log.lines
    )
}

/// Returns a progress bar over the bytes of the files. It is hidden unless standard error is a
/// terminal and all logs are files.
fn progress_bar(logs: &[LogSource]) -> ProgressBar {
    let length = |log: &LogSource| {
        let metadata = std::fs::metadata(&log.file).ok()?;
        metadata.is_file().then_some(metadata.len())
    };
    let Some(total) = logs.iter().map(length).sum::<Option<u64>>() else {
        return ProgressBar::hidden();
    };
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{percent:>3}% {wide_bar} {bytes} of {total_bytes}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
