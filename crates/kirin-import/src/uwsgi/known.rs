//! Options that need no key of a `kirin.toml`, and options that Kirin lacks.

/// Options of which Kirin does the same by itself, with how.
const BY_ITSELF: &[(&str, &[&str])] = &[
    (
        "Kirin is the parent of its workers",
        &[
            "master",
            "no-orphans",
            "auto-procname",
            "procname",
            "procname-prefix",
            "procname-append",
            "procname-prefix-spaced",
            "procname-master",
            "single-interpreter",
            "thunder-lock",
            "enable-threads",
            "strict",
            "need-plugin",
            "plugin",
            "plugins",
            "vhost",
            "cpu-affinity",
        ],
    ),
    ("Kirin removes the sockets that it has made", &["vacuum"]),
    (
        "TERM ends Kirin, with time for responses in progress",
        &[
            "die-on-term",
            "exit-on-reload",
            "worker-reload-mercy",
            "reload-mercy",
            "mercy",
            "hook-master-start",
        ],
    ),
    ("the start fails if the application cannot be loaded", &["need-app", "no-default-app"]),
    ("the log has the stack of a request that takes too long", &["harakiri-verbose"]),
    (
        "Kirin reads a body before a worker sees the request",
        &[
            "post-buffering",
            "post-buffering-bufsize",
            "http-auto-chunked",
            "http-chunked-input",
            "http-raw-body",
            "chunked-input-limit",
            "chunked-input-timeout",
        ],
    ),
    (
        "connections are kept",
        &[
            "http-keepalive",
            "add-header-keepalive",
            "so-keepalive",
            "http-auto-gzip",
            "http-websockets",
            "http-buffer-size",
        ],
    ),
    ("the kernel's limit is taken", &["listen", "max-fd", "backlog"]),
    (
        "`kirin status` and `kirin top` show it",
        &[
            "stats",
            "stats-server",
            "stats-http",
            "memory-report",
            "stats-minified",
            "carbon",
            "log-5xx",
            "log-4xx",
            "log-slow",
        ],
    ),
    (
        "the log has the errors of applications",
        &[
            "log-master",
            "threaded-logger",
            "log-date",
            "logdate",
            "log-reopen",
            "log-truncate",
            "ignore-sigpipe",
            "ignore-write-errors",
            "disable-write-exception",
            "log-x-forwarded-for",
        ],
    ),
    (
        "variants beside a file are sent, and files are compressed",
        &["static-gzip", "static-gzip-all", "static-gzip-dir", "static-gzip-ext"],
    ),
    (
        "paths of files are remembered",
        &[
            "static-cache-paths",
            "static-cache-paths-name",
            "offload-threads",
            "file-serve-mode",
            "fileserve-mode",
        ],
    ),
    ("an application with `rewrite = \"/\"` gets its `SCRIPT_NAME`", &["manage-script-name"]),
    (
        "STDERR and streams of PSGI are there",
        &["psgi-enable-psgix-io", "perl-no-die-catch", "log-encoder", "perl-no-plack"],
    ),
];

/// Options that Kirin lacks, with what to do instead.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "run `kirin reload --apps` when the code has changed (docs/reload.md)",
        &[
            "touch-reload",
            "touch-workers-reload",
            "touch-chain-reload",
            "perl-auto-reload",
            "fs-reload",
            "perl-auto-reload-ignore",
            "py-autoreload",
            "py-auto-reload",
            "lazy-reload",
        ],
    ),
    (
        "Kirin has a store of its own (docs/store.md), and its cache is `cache = true` (docs/cache.md)",
        &["cache2", "cache", "cache-blocksize", "cache-store"],
    ),
    (
        "limit it in the unit of systemd, such as `LimitAS=` or `MemoryMax=` (docs/deploy.md)",
        &["limit-as", "limit-nproc", "cgroup", "cgroup-opt", "rlimit-as", "cpu-limit"],
    ),
    ("write `max_memory`, the resident memory of a worker", &["reload-on-as", "evil-reload-on-as"]),
    (
        "PROTECTION NOT CARRIED OVER: run Kirin in a unit of systemd with `RootDirectory=`",
        &["chroot", "pivot-root", "unshare", "cap", "jail"],
    ),
    ("Kirin takes the groups of the user", &["gid", "add-gid", "additional-gid"]),
    (
        "run it as a unit of systemd of its own",
        &[
            "attach-daemon",
            "smart-attach-daemon",
            "attach-daemon2",
            "mule",
            "mules",
            "farm",
            "spooler",
            "spooler-processes",
            "cron",
            "cron2",
            "unique-cron",
            "timer",
            "legion",
            "emperor",
            "vassals",
            "fastrouter",
            "rawrouter",
            "http-subscription-server",
            "subscribe-to",
            "subscribe2",
        ],
    ),
    (
        "a worker serves one request at a time: raise `workers`",
        &["threads", "async", "ugreen", "coroae", "gevent", "asyncio", "thread-stack-size"],
    ),
    (
        "Kirin always runs as many workers as `workers` says",
        &[
            "cheaper",
            "cheaper-initial",
            "cheaper-step",
            "cheaper-algo",
            "cheap",
            "idle",
            "die-on-idle",
            "cheaper-overload",
            "cheaper-busyness-max",
        ],
    ),
    ("`kirin serve --pid-file FILE` writes one", &["pidfile", "pidfile2", "safe-pidfile"]),
    (
        "Kirin makes its socket itself. Set the permissions of its directory",
        &["chmod-socket", "chmod", "chown-socket", "umask"],
    ),
    ("write `follow_links` of the route (docs/files.md)", &["static-safe"]),
    (
        "write `headers = { \"Cache-Control\" = \"max-age=3600\" }` in a route of these paths",
        &[
            "static-expires",
            "static-expires-mtime",
            "static-expires-uri",
            "static-expires-path-info",
            "static-expires-type",
        ],
    ),
    (
        "Kirin has its own list of media types. Write `mime_types` of a route",
        &["mimefile", "mime-file"],
    ),
    (
        "use the listener's `body_timeout` and `write_timeout`, and `deadline` of the application",
        &["socket-timeout", "http-timeout", "http-socket-timeout", "http-connect-timeout"],
    ),
    (
        "use the hooks of Kirin::Worker::Hooks (docs/perl.md)",
        &[
            "perl-exec",
            "perl-exec-post-fork",
            "perl-arg",
            "perl-args",
            "hook-as-user",
            "exec-asap",
            "exec-pre-app",
            "exec-as-user",
            "exec-as-root",
            "hook-post-fork",
            "exec-post-app",
        ],
    ),
    ("write `PERL5LIB` into `env` of the application", &["perl-local-lib"]),
];

/// Returns what an option is, and the text about it: `true` if Kirin does it by itself.
pub(crate) fn known(key: &str) -> Option<(bool, &'static str)> {
    let find = |table: &'static [(&str, &[&str])]| {
        table.iter().find(|(_, keys)| keys.contains(&key)).map(|(text, _)| *text)
    };
    find(BY_ITSELF).map(|text| (true, text)).or_else(|| find(LEFT_OUT).map(|text| (false, text)))
}
