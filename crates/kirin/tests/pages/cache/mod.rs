//! The cache of a route in front of an application that records each call.
//!
//! The query controls the application: `cc` is its `Cache-Control`, and other arguments are fields
//! with those names. No test waits for time to pass. A response that must be stale has an `Age`.

mod bodies;
mod collapse;
mod freshness;
mod purging;
mod room;
mod routes;
mod stale;
mod statuses;
mod validation;
mod variants;
mod visitors;

use std::thread;

use kirin_tests::{Kirin, Memcached, Reply, Site};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n[store]\n\
    memory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 8\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\ncache = true\n\
    [[route]]\npath = \"/zip\"\ntry = [\"app:web\"]\ncache = true\ncompress = true\n\
    [[route]]\npath = \"/ssi\"\ntry = [\"app:web\"]\ncache = true\nssi = true\n\
    [[route]]\npath = \"/reload\"\ntry = [\"app:web\"]\ncache = { reload = true }\n\
    [[route]]\npath = \"/anonymous\"\ntry = [\"app:web\"]\ncache = { cookies = \"ignore\" }\n\
    [[route]]\npath = \"/some\"\ntry = [\"app:web\"]\n\
    cache = { ttl = \"1h\", negative_ttl = \"10m\", stale_if_error = \"1h\", item_limit = \"10KB\", \
    bypass = [\"cookie:admin\", \"header:X-Preview\", \"query:preview\"], ignore_query = [\"utm_*\"] }\n\
    [[route]]\npath = \"/hasty\"\ntry = [\"app:web\"]\ncache = { wait = \"1s\" }\n\
    [[route]]\npath = \"/off\"\ntry = [\"app:web\"]\n";

const APP: &str = r#"
use v5.16; use warnings; use Fcntl ':flock'; use Plack::Request;
sub calls { my $path = shift; open my $in, '<', 'calls' or return 0; return scalar grep { (split ' ')[1] eq $path } <$in> }
sub until_there { my $file = shift; until (-e $file) { select undef, undef, undef, 0.01 } }
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my %said = map { $_ => $env->{"HTTP_$_"} // '-' } qw(IF_NONE_MATCH IF_MODIFIED_SINCE COOKIE RANGE);
    open my $out, '>>', 'calls' or die $!;
    flock $out, LOCK_EX;
    syswrite $out, "$env->{REQUEST_METHOD} $path $env->{QUERY_STRING} $said{IF_NONE_MATCH} $said{COOKIE} $said{RANGE}\n";
    my $call = calls($path);
    close $out;
    my $query = Plack::Request->new($env)->query_parameters;
    my @fields = ('Content-Type' => 'text/html', 'X-Call' => $call);
    my ($wait, $until, $status, $body, $bytes, $all) = (0, undef, 200, "call $call", 0, 0);
    $query->each(sub {
        my ($name, $value) = @_;
        if ($name eq 'cc') { push @fields, 'Cache-Control' => $value }
        elsif ($name eq 'wait') { $until = $value }
        elsif ($name eq 'status') { $status = $value }
        elsif ($name eq 'bytes') { $body = substr("$call " . ('0123456789 ' x ($value / 10 + 1)), 0, $value) }
        elsif ($name eq 'all') { $all = $value }
        elsif ($name eq 'text') { $body .= $value }
        elsif ($name =~ /^[A-Z]/) { push @fields, $name => $value }
    });
    until_there($until) if defined $until && $env->{REQUEST_METHOD} eq 'GET';
    if ($all && $call > 1) { until (calls($path) >= $all) { select undef, undef, undef, 0.01 } }
    return [500, ['Content-Type' => 'text/plain'], ['it has failed']] if -e 'fail';
    my %fields = @fields;
    return [304, \@fields, []] if $fields{ETag} && $said{IF_NONE_MATCH} eq $fields{ETag} && !-e 'changed';
    my $kind = $query->get('kind') // '';
    return sub {
        my $writer = shift->([$status, \@fields]);
        $writer->write("first ");
        until_there('go');
        die 'in the middle' if $kind eq 'cut';
        $writer->write($body) for 1 .. ($query->get('times') || 1);
        $writer->close;
    } if $kind eq 'stream' || $kind eq 'cut';
    return [$status, \@fields, [$env->{REQUEST_METHOD} eq 'HEAD' ? () : $body]];
};
"#;

struct Tested {
    site: Site,
    kirin: Kirin,
}

fn serve() -> Tested {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    Tested { site, kirin }
}

impl Tested {
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.site.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn count(&self, path: &str) -> usize {
        self.calls().iter().filter(|line| line.split(' ').nth(1) == Some(path)).count()
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.site.path(name), "").expect("a file");
    }

    fn memcached(&self) -> Memcached {
        Memcached::connect(&self.site.path("m.sock"))
    }
}

fn status(reply: &Reply) -> &str {
    reply.field("cache-status").unwrap_or_else(|| panic!("no Cache-Status: {}", reply.head))
}

fn is_hit(reply: &Reply) -> bool {
    status(reply).starts_with("Kirin; hit")
}

/// Returns the seconds in a parameter of `Cache-Status`.
fn ttl(reply: &Reply) -> i64 {
    let (_, rest) = status(reply).split_once("ttl=").expect("a ttl");
    rest.split(';').next().unwrap().parse().expect("a number")
}

/// Sends many GETs of `target` at the same time, each on its own connection.
fn at_once(tested: &Tested, count: usize, target: &str) -> Vec<thread::JoinHandle<Reply>> {
    (0..count)
        .map(|_| {
            let (mut client, target) = (tested.kirin.connect(), target.to_owned());
            thread::spawn(move || client.get(&target))
        })
        .collect()
}
