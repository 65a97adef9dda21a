//! One listener with TLS, one without, and behind both the same routes on three sites and at the
//! top level. One site is a wildcard. All share an application, an upstream and a script.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use kirin_tests::{
    Authority, Backend, Client, Kirin, Memcached, ReceivedRequest, Reply, Site, TlsClient,
    TlsSetup, wait_limit,
};
use rustls::ProtocolVersion::TLSv1_3;

/// The hosts that have items of their own. Two of them belong to one wildcard, and the last to no
/// site.
pub const HOSTS: [&str; 5] =
    ["example.test", "shop.test", "a.wild.test", "b.wild.test", "other.test"];

/// The application does what the fields of a request say. `X-Value` is the body of its response,
/// and `X-Fields` are its fields. Under `/perl` it uses the store, and under `/session` sessions.
const APP: &str = r#"
use v5.16; use warnings;
use Kirin::Store; use Plack::Builder;
my $store = Kirin::Store->new;
my %perl = (
    get    => sub { $store->get('/k') },
    set    => sub { $store->set('/k', "text/html\r\n$_[0]", 3600, tags => ['t']); 'set' },
    page   => sub { $store->set_page('/k', "text/html", $_[0], ttl => 3600, tags => ['t']); 'set' },
    delete => sub { $store->delete('/k') },
    key    => sub { $store->purge('/k') },
    prefix => sub { $store->purge(prefixes => '/') },
    tag    => sub { $store->purge(tags => 't') },
);
my $app = sub {
    my $env = shift;
    my ($path, $value) = @$env{qw(PATH_INFO HTTP_X_VALUE)};
    my @fields = map { split /: /, $_, 2 } split /\|/, $env->{HTTP_X_FIELDS} // '';
    if ($path =~ m{\A/perl/(\w+)}) {
        $value = $perl{$1}->($value);
        die $store->error if defined $store->error;
    }
    elsif ($path eq '/session') {
        my $session = $env->{'psgix.session'};
        $session->{name} = $value if defined $value;
        $value = $session->{name};
    }
    elsif ($path eq '/env') { $value = join '', map { "$_=" . ($env->{$_} // '-') . "\n" } qw(HTTP_HOST KIRIN_SITE) }
    return [defined $value ? 200 : 404, ['Content-Type' => 'text/html', @fields], [$value // 'nothing']];
};
builder { enable 'Session::Kirin', cookie_name => 'sid', keep_empty => 0; $app };
"#;

const SCRIPT: &str = r#"
local store = kirin.store
local commands = {
  get = function(key) return store.get(key) end,
  piece = function(key) return store.piece(key) end,
  multi = function(key) return store.get_multi({ key })[key] end,
  fetch = function(key) local r = kirin.fetch(key); return r.status == 200 and r.body or nil end,
  set = function(key, value)
    return store.set(key, 'text/html\r\n' .. value, { ttl = 3600, tags = { 't' } }) and 'set'
  end,
  delete = function(key) return tostring(store.delete(key)) end,
  prefix = function(key) return tostring(store.invalidate_prefix(key)) end,
  tag = function(tag) return tostring(store.invalidate_tag(tag)) end,
  session = function(_, _, request) return request.session and request.session.name end,
}
return function(request)
  local command, headers = request.path:match('^/lua/(%w+)$'), request.headers
  local body = commands[command](headers['X-Key'] or '/k', headers['X-Value'], request)
  return { status = body and 200 or 404, body = body or 'nothing' }
end
"#;

const ROUTES: &str = r#"
[[ROUTE]]
path = "/"
try = ["store", "app:web"]
ssi = true
[[ROUTE]]
path = "/esi"
try = ["app:web"]
esi = true
[[ROUTE]]
path = "/cached"
try = ["app:web"]
cache = true
[[ROUTE]]
path = "/far"
try = ["proxy:far"]
cache = true
[[ROUTE]]
path = "/lua"
try = ["lua:script.lua"]
[[ROUTE]]
path = "/files"
try = ["files:FILES"]
ssi = true
"#;

/// Requests that wait for each other.
#[derive(Default)]
struct Gathering {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Gathering {
    /// Waits until there are as many as hosts. Returns whether that was in time.
    fn gather(&self) -> bool {
        let mut count = self.count.lock().expect("the count");
        *count += 1;
        self.changed.notify_all();
        let waited =
            self.changed.wait_timeout_while(count, wait_limit(), |count| *count < HOSTS.len());
        !waited.expect("the count").1.timed_out()
    }
}

/// The sites with a running Kirin.
pub struct World {
    pub kirin: Kirin,
    pub site: Site,
    setup: TlsSetup,
}

/// Returns a response of the upstream, which obeys the same fields as the application. A request
/// for `/far/all` waits until one of every host is there.
fn far(request: &ReceivedRequest, all: &Gathering) -> String {
    if request.target() == "/far/all" && !all.gather() {
        return "HTTP/1.1 500 Others are missing\r\nContent-Length: 0\r\n\r\n".into();
    }
    let fields = request.field("x-fields").unwrap_or_default().replace('|', "\r\n");
    let body = request.field("x-value").unwrap_or_default();
    let end = if fields.is_empty() { "" } else { "\r\n" };
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}{end}Content-Length: {length}\r\n\r\n{body}"
    )
}

impl World {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts the sites with more of `[store]`.
    pub fn start_with(store: &str) -> Self {
        let authority = Authority::new("Kirin test authority");
        let certificates = [
            ("example", vec!["example.test", "www.example.test"]),
            ("shop", vec!["shop.test"]),
            ("wild", vec!["*.wild.test"]),
            ("other", vec!["other.test"]),
        ];
        let mut site = Site::new().with("app.psgi", APP).with("script.lua", SCRIPT);
        let mut pairs = Vec::new();
        for (name, hosts) in &certificates {
            authority.issue(hosts).write(&site, name);
            pairs.push(format!("{{ chain = \"{name}.pem\", key = \"{name}.key\" }}"));
        }
        // The files have the same names, lengths and times, as after a deployment.
        for name in ["root", "example", "shop", "wild"] {
            let page = format!("files/{name}/files/page.html");
            let text = format!("{name:-<9}<!--# echo var=\"x\" default=\"!\" -->");
            site = site.with(&page, text);
            let file = std::fs::File::options().write(true).open(site.path(&page)).expect("a page");
            let time = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
            file.set_modified(time).expect("a time");
        }
        let all = Gathering::default();
        let backend = Backend::answering(move |request| far(request, &all));
        let mut config = format!(
            r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
tls.certificates = [{}]
[[listener]]
address = "127.0.0.1:0"
[admin]
address = "unix:admin.sock"
[store]
memory = "64MB"
memcached = ["unix:m.sock"]
session_cookie = "sid"
purge_from = ["127.0.0.0/8"]
{store}
[lua]
time_limit = "20s"
[[app]]
name = "web"
load = "app.psgi"
workers = 2
[[upstream]]
name = "far"
servers = ["{}"]
"#,
            pairs.join(", "),
            backend.address()
        );
        config.push_str(&ROUTES.replace("ROUTE", "route").replace("FILES", "files/root"));
        for (name, head) in [
            ("example", "hosts = [\"example.test\", \"www.example.test\"]"),
            ("shop", "name = \"shop\"\nhosts = [\"shop.test\"]"),
            ("wild", "hosts = [\"*.wild.test\"]"),
        ] {
            let routes =
                ROUTES.replace("ROUTE", "site.route").replace("FILES", &format!("files/{name}"));
            config.push_str(&format!("[[site]]\n{head}\n{routes}"));
        }
        let setup = TlsSetup::new(&authority, None, TLSv1_3);
        let kirin = Kirin::start(&site, &config);
        Self { kirin, site, setup }
    }

    /// Returns the prefix of all names of a host in the store.
    pub fn prefix(host: &str) -> &str {
        match host {
            "example.test" => "example.test:",
            "shop.test" => "shop:",
            "a.wild.test" => "a.wild.test:",
            "b.wild.test" => "b.wild.test:",
            _ => "",
        }
    }

    pub fn memcached(&self) -> Memcached {
        Memcached::connect(&self.site.path("m.sock"))
    }

    /// Opens a connection without TLS.
    pub fn connect_plain(&self) -> Client {
        Client::connect(self.kirin.address_of(1))
    }

    /// Sends a request by TLS. `fields` are lines that end in CR LF.
    pub fn ask(&self, host: &str, method: &str, target: &str, fields: &str) -> Reply {
        self.ask_by(host, host, method, target, fields)
    }

    /// Sends a request by TLS to the server `name`.
    pub fn ask_by(
        &self,
        name: &str,
        host: &str,
        method: &str,
        target: &str,
        fields: &str,
    ) -> Reply {
        let mut client = TlsClient::connect(self.kirin.address(), name, &self.setup)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        client.send(format!(
            "{method} {target} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n{fields}\r\n"
        ));
        let (received, _) = client.read_to_end();
        let end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("{host} {target}: {received:?}"));
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        let status = head.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        Reply { status, head, body: received[end + 4..].to_vec() }
    }

    /// Sends GET by TLS. Returns the body of a response with the status 200.
    pub fn get(&self, host: &str, target: &str, fields: &str) -> Option<String> {
        let reply = self.ask(host, "GET", target, fields);
        (reply.status == 200).then(|| reply.text())
    }
}
