//! Several `kirin serve` with one Redis server behind their stores: what one of them has stored or
//! purged holds for all.
//!
//! Each machine has an application of its own, which says the name of its machine and counts its
//! calls. So each response tells which machine has made it, and when.

mod away;
mod cached_responses;
mod cached_stampedes;
mod cut_off;
mod includes;
mod killed_owners;
mod machines;
mod page_races;
mod page_renewals;
mod purging;
mod pushed_pages;
mod scripts;
mod sessions;
mod shared_blocks;
mod shared_limits;
mod sites;
mod written_pages;

use std::fmt::from_fn;
use std::time::{Duration, Instant};

use kirin_tests::{Client, Kirin, Memcached, RedisServer, Reply, Site, patient, wait_for};

/// Settings with which a busy machine changes nothing.
const CALM: &str = "origin_timeout = \"10s\"\nstale_limit = \"60s\"\n";

const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[[app]]
name = "web"
load = "app.psgi"
workers = 2
env = { MACHINE = "NAME" }
[store]
memory = "16MB"
item_limit = "100KB"
memcached = ["unix:m.sock"]
session_cookie = "sid"
purge_from = ["127.0.0.0/8"]
"#;

/// The routes of the top level, and of each site.
const ROUTES: &str = r#"
[[ROUTE]]
path = "/"
try = ["store", "app:web"]
[[ROUTE]]
path = "/only"
try = ["store"]
[[ROUTE]]
path = "/direct"
try = ["app:web"]
[[ROUTE]]
path = "/ssi"
try = ["app:web"]
ssi = true
[[ROUTE]]
path = "/esi"
try = ["app:web"]
esi = true
[[ROUTE]]
path = "/files"
try = ["files:public"]
ssi = true
[[ROUTE]]
path = "/errors"
try = ["files:public"]
error_pages = { 404 = "/only/error" }
[[ROUTE]]
path = "/script"
try = ["lua:script.lua"]
[[ROUTE]]
path = "/cached"
try = ["app:web"]
cache = true
[[ROUTE]]
path = "/both"
try = ["store", "app:web"]
cache = true
[[ROUTE]]
path = "/members"
try = ["store", "app:web"]
basic_auth = "members"
rewrite = "/rewritten"
"#;

/// Who may see `/members`: bob with the password `opensesame`.
const MEMBERS: &str = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";

/// The application of a machine. `X-Fields` are fields of its response, `X-Value` is its body, and
/// otherwise it says its machine and the number of the call.
const APP: &str = r#"
use v5.16; use warnings;
use Kirin::Store; use Plack::Builder;
my $store = Kirin::Store->new(timeout => 20);
my %perl = (
    get      => sub { $store->get($_[0]) // 'nothing' },
    set_page => sub { $store->set_page($_[0], 'text/html', $_[1], ttl => 3600, tags => ['t']) ? 'stored' : 'refused' },
    delete   => sub { $store->delete($_[0]) ? 'deleted' : 'not found' },
    purge    => sub { my ($kind, @names) = split ' ', $_[0]; $store->purge($kind => \@names) },
    soften   => sub { my ($kind, @names) = split ' ', $_[0]; $store->purge($kind => \@names, soft => 1) },
);
sub ran { open my $runs, '>>', 'runs' or die $!; syswrite $runs, 'x'; return -s 'runs' }
sub wait_until_told {
    open my $begun, '>', 'begun' or die $!;
    select undef, undef, undef, 0.01 until -e 'go';
}
my $app = sub {
    my $env = shift;
    my ($path, $value) = @$env{qw(PATH_INFO HTTP_X_VALUE)};
    my @fields = ('Content-Type' => 'text/html', map { split /: /, $_, 2 } split /\|/, $env->{HTTP_X_FIELDS} // '');
    my $status = $env->{HTTP_X_STATUS} // 200;
    my $run = ran();
    if ($path =~ m{/perl/(\w+)\z}) {
        $value = $perl{$1}->($env->{HTTP_X_KEY}, $value);
        $value = 'error: ' . $store->error if defined $store->error;
    }
    elsif ($path =~ m{/session/(\w+)\z}) {
        my ($session, $options) = @$env{qw(psgix.session psgix.session.options)};
        $session->{name} = $value if $1 eq 'in';
        $options->{expire} = 1 if $1 eq 'out';
        $value = $session->{name} // 'a stranger';
    }
    elsif ($path =~ m{/value\z}) { open my $file, '<', $env->{HTTP_X_FILE} or die $!; $value = <$file> }
    elsif ($path =~ m{/echo\z}) { $env->{'psgi.input'}->read($value, 1000) }
    $value //= "$ENV{MACHINE} $run";
    wait_until_told() if $path =~ m{/wait\z};
    return sub {
        my $writer = shift->([$status, \@fields]);
        $writer->write("$value ");
        select undef, undef, undef, 0.05;
        kill KILL => $$ if $path =~ m{/cut\z};
        wait_until_told() if $path =~ m{/waiting\z};
        $writer->write('x' x ($path =~ m{/large\z} ? 100_000 : 5)) for 1 .. 2;
        $writer->close;
    } if $path =~ m{/stream/};
    return [$status, \@fields, [$value]];
};
builder {
    enable 'Session::Kirin', cookie_name => 'sid', keep_empty => 0, ttl => $ENV{SESSION_SECONDS} // 1000;
    $app;
};
"#;

/// The script of a machine: `/script/NAME?key=…&value=…` calls a function of `kirin.store`.
const SCRIPT: &str = r#"
local store = kirin.store
local calls = {
  set = function(key, value) return store.set(key, value, { ttl = 1000, tags = { "t" } }) end,
  guarded = function(key, value) return select(2, pcall(store.add, key, value)) end,
  many = function(key)
    local found = store.get_multi { key, "none", "other" }
    return found[key], found.other
  end,
  within = function(key) return coroutine.wrap(function() return store.get(key) end)() end,
  tag = function(tag) return store.invalidate_tag(tag) end,
  prefix = function(prefix) return store.invalidate_prefix(prefix, "soft") end,
  numbered = function(prefix, count)
    local keys = {}
    for number = 1, count do keys[number], keys[count + number] = prefix .. number, prefix .. 1 end
    local found, size = store.get_multi(keys), 0
    for _ in pairs(found) do size = size + 1 end
    return size
  end,
  count = function(key) return store.incr(key, 2, { initial = 5 }) end,
}
return function(request)
  local name = request.path:match("%w+$")
  local key, value = request.args.key, request.args.value
  if name == "session" then return { body = request.session and request.session.name or "nobody" } end
  if name == "piece" then return { body = store.piece(key) or "nil" } end
  local first, second = (calls[name] or store[name])(key, value)
  return { body = tostring(first) .. " " .. tostring(second) }
end
"#;

/// A Kirin with its own application.
struct Machine {
    site: Site,
    kirin: Kirin,
}

/// Two machines and the server between them.
struct Two {
    redis: RedisServer,
    a: Machine,
    b: Machine,
}

impl Two {
    /// Starts two machines that no busy moment disturbs.
    fn start() -> Self {
        let redis = RedisServer::start();
        let machine = |name| Machine::with_origin(name, &address_of(&redis), CALM).connected(1);
        let (a, b) = (machine("a"), machine("b"));
        Self { redis, a, b }
    }
}

impl Machine {
    /// Starts a machine without an origin.
    fn alone(name: &str) -> Self {
        Self::start(name, "", "")
    }

    /// Starts a machine with an origin. `store` has more lines of `[store]`.
    fn with_origin(name: &str, address: &str, store: &str) -> Self {
        Self::start(name, &format!("origin = {address:?}\n{store}"), "")
    }

    /// Starts a machine. `store` has more lines of `[store]`, and `more` has further tables.
    fn start(name: &str, store: &str, more: &str) -> Self {
        Self::start_with(name, store, more, |config| config)
    }

    /// Starts a machine whose configuration is changed before.
    fn start_with(name: &str, store: &str, more: &str, change: impl Fn(String) -> String) -> Self {
        let site = Site::new()
            .with("app.psgi", APP)
            .with("members", MEMBERS)
            .with("public/x", "")
            .with("script.lua", SCRIPT);
        let config = CONFIG.replace("NAME", name);
        let routes = ROUTES.replace("ROUTE", "route");
        let kirin = Kirin::start(&site, &change(format!("{config}{store}{routes}{more}")));
        Self { site, kirin }
    }

    /// Waits until it has connected this often.
    fn connected(self, times: usize) -> Self {
        self.wait_for_connections(times);
        self
    }

    fn wait_for_connections(&self, times: usize) {
        let missing = from_fn(|f| write!(f, "connection {times} in\n{}", self.kirin.log()));
        wait_for(&missing, || (self.count_in_log("origin connected") >= times).then_some(()));
    }

    fn count_in_log(&self, text: &str) -> usize {
        self.kirin.log().matches(text).count()
    }

    fn memcached(&self) -> Memcached {
        Memcached::connect(&self.site.path("m.sock"))
    }

    /// Returns how often the application was called.
    fn runs(&self) -> usize {
        std::fs::metadata(self.site.path("runs")).map_or(0, |file| file.len() as usize)
    }

    fn connect(&self) -> Client {
        self.kirin.connect()
    }

    /// Sends one GET on its own connection.
    fn reply(&self, target: &str) -> Reply {
        self.connect().get(target)
    }

    /// Sends a request on its own connection. `fields` are lines that end in CR LF.
    fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        self.connect().request(method, target, fields)
    }

    /// Sends a request to a host.
    fn ask_host(&self, host: &str, method: &str, target: &str, fields: &str) -> Reply {
        let mut client = self.connect();
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"));
        client.read_reply()
    }

    /// Returns the body of a GET.
    fn get(&self, target: &str) -> String {
        self.reply(target).text()
    }

    /// Returns the body of a GET whose response has `fields`, separated by `|`, if the application
    /// makes it.
    fn get_with(&self, target: &str, fields: &str) -> String {
        let reply = self.ask("GET", target, &format!("X-Fields: {fields}\r\n"));
        assert!(!reply.head.to_ascii_lowercase().contains("kirin-"), "{}", reply.head);
        reply.text()
    }

    /// Lets the application push a page with this body. Nothing may be under its target.
    fn push(&self, target: &str, body: &str, store: &str) {
        let fields = format!("X-Value: {body}\r\nX-Fields: Kirin-Store: {store}\r\n");
        let reply = self.ask("GET", target, &fields);
        assert_eq!((reply.status, reply.text().as_str()), (200, body), "{target}: {}", reply.head);
    }

    /// Lets the application purge. The answer is its response.
    fn purge(&self, names: &str) -> Reply {
        self.ask("GET", "/direct/purge", &format!("X-Fields: Kirin-Purge: {names}\r\n"))
    }

    /// Calls a method of Kirin::Store in the application.
    fn perl(&self, method: &str, key: &str, value: &str) -> String {
        let fields = format!("X-Key: {key}\r\nX-Value: {value}\r\n");
        let reply = self.ask("GET", &format!("/direct/perl/{method}"), &fields);
        assert_eq!(reply.status, 200, "{method} {key}: {}", reply.text());
        reply.text()
    }

    /// Waits until the application waits in a request.
    fn wait_until_begun(&self) {
        wait_for("the application to begin", || self.site.path("begun").exists().then_some(()));
    }

    /// Lets the application go on.
    fn go(&self) {
        std::fs::write(self.site.path("go"), "").expect("a file");
    }

    /// Waits until a GET has this body.
    fn wait_for_text(&self, target: &str, text: &str) {
        let missing = from_fn(|f| write!(f, "{text:?} at {target}, not {:?}", self.get(target)));
        wait_for(&missing, || (self.get(target) == text).then_some(()));
    }

    /// Waits until the store has this under a key, as a memcached client sees it.
    fn wait_for_item(&self, key: &str, value: Option<&[u8]>) {
        let mut memcached = self.memcached();
        let missing = format!("{key} to be {:?}", value.map(|value| value.escape_ascii()));
        wait_for(&missing, || (memcached.get(key).as_deref() == value).then_some(()));
    }
}

fn address_of(redis: &RedisServer) -> String {
    format!("redis://{}", redis.address())
}

/// Commands that prove that a connection is there, those about machines, and those of the tests.
const UPKEEP: [&str; 12] = [
    "time",
    "hello",
    "info",
    "client",
    "ping",
    "config",
    "zadd",
    "zremrangebyscore",
    "zrem",
    "zcount",
    "zrangebyscore",
    "expire",
];

/// Commands that change an item.
const WRITES: [&str; 8] =
    ["set", "del", "setrange", "pexpire", "pexpireat", "persist", "hset", "hdel"];

/// Returns how many commands the server has carried out for items, those in scripts too.
fn count_of_commands(redis: &RedisServer) -> u64 {
    count_of(redis, |name| !UPKEEP.contains(&name))
}

/// Returns how often the server has changed anything.
fn count_of_writes(redis: &RedisServer) -> u64 {
    count_of(redis, |name| WRITES.contains(&name))
}

fn count_of(redis: &RedisServer, counts: fn(&str) -> bool) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]);
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (name, _) = name.split_once('|').unwrap_or((name, ""));
        counts(name).then_some(rest.split(',').next()?.parse::<u64>().ok()?)
    });
    calls.sum()
}

/// Returns what `action` returns.
///
/// # Panics
/// Panics if it takes longer than `limit`.
fn within<T>(limit: Duration, what: &str, action: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = action();
    let (elapsed, limit) = (begun.elapsed(), patient(limit));
    assert!(elapsed < limit, "{what} took {elapsed:?}, allowed is {limit:?}");
    result
}
