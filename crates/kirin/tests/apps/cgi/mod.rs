//! `cgi:PROGRAM`: CGI programs, through the built program.

mod directory;
mod gitweb;
mod limits;
mod requests;
mod responses;
mod safety;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kirin_tests::{ADMIN, Kirin, Reply, Site, wait_for};

/// A Perl program that does what the argument `do` of the query says.
const DO: &str = r#"#!/usr/bin/perl
use strict;
use warnings;
$| = 1;
my ($do) = ($ENV{QUERY_STRING} // '') =~ /do=([^&]*)/;
my %do = (
    env => sub {
        print "Content-Type: text/plain\n\n";
        print "$_=$ENV{$_}\n" for sort keys %ENV;
    },
    body => sub {
        local $/;
        my $body = <STDIN> // '';
        my $sum = unpack '%32C*', $body;
        print "Content-Type: text/plain\n\n";
        print length($body), " $sum ", $ENV{CONTENT_LENGTH} // 'none';
    },
    ignore => sub { print "Content-Type: text/plain\n\nignored" },
    status => sub { print "Status: 418 Teapot\r\nX-Many: a\r\nX-Many: b\r\nSet-Cookie: c=d\r\n\r\nteapot" },
    redirect => sub { print "Location: /elsewhere?a=b\n\n" },
    length => sub { print "Content-Type: a/b\nContent-Length: 5\n\nwhole" },
    long => sub { print "Content-Type: a/b\nContent-Length: 5\n\nwhole and more", 'x' x 200_000 },
    short => sub { print "Content-Type: a/b\nContent-Length: 50\n\nshort" },
    unchanged => sub { print "Status: 304\n\n" },
    large => sub { print "Content-Type: a/b\n\n"; print chr(97 + $_ % 26) x 4096 for 0 .. 1023 },
    stream => sub {
        print "Content-Type: text/plain\n\nfirst\n";
        wait_for('go');
        print "second\n";
    },
    wait => sub {
        touch('waits');
        wait_for('go');
        print "Content-Type: text/plain\n\nwaited";
    },
    after => sub {
        print "Content-Type: text/plain\nContent-Length: 5\n\nwhole";
        wait_for('go');
        touch('done');
    },
    nothing => sub {
        print "Content-Type: text/plain\nContent-Length: 0\n\n";
        wait_for('go');
        touch('done');
    },
    later => sub {
        print "Content-Type: text/plain\n\nsoon";
        close STDOUT;
        wait_for('go');
        touch('done');
    },
    background => sub {
        print "Content-Type: text/plain\n\nstarted";
        return if fork;
        close $_ for *STDOUT, *STDERR, *STDIN;
        wait_for('go');
        touch('done');
    },
    errors => sub {
        print STDERR "first line\n", 'x' x 5000, "\n", "line\n" x 100_000;
        print "Content-Type: text/plain\n\nlogged";
    },
    silent => sub { exit 3 },
    kill => sub { kill KILL => $$; sleep 1 while 1 },
    cut => sub { print "Content-Type: a/b\n\n", 'x' x 20_000; kill KILL => $$; sleep 1 while 1 },
    failing => sub { print "Content-Type: a/b\n\nbefore"; exit 3 },
    garbage => sub { print "<html>no head</html>\n\n" },
    nph => sub { print "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\nx" },
    endless => sub { print 'X-A: ', 'b' x 100_000; sleep 1 while 1 },
    fds => sub {
        print "Content-Type: text/plain\n\n";
        opendir my $own, '/proc/self/fd' or die $!;
        my @numbers = grep { $_ ne fileno $own } grep { /\d/ } readdir $own;
        print join ' ', sort @numbers;
    },
    family => sub {
        my $child = fork;
        $SIG{TERM} = 'IGNORE' if $ENV{QUERY_STRING} =~ /stubborn/;
        if (!$child) {
            touch("pid.$$");
            sleep 1 while 1;
        }
        touch("pid.$$");
        print "Content-Type: text/plain\n\nbegun\n" if $ENV{QUERY_STRING} =~ /begin/;
        while (1) {
            print "more\n" if $ENV{QUERY_STRING} =~ /more/;
            select undef, undef, undef, 0.01;
        }
    },
    polite => sub {
        $SIG{TERM} = sub { touch('term'); exit };
        touch("pid.$$");
        sleep 1 while 1;
    },
);

sub touch {
    open my $file, '>', shift or die $!;
}

sub wait_for {
    my $name = shift;
    select undef, undef, undef, 0.01 until -e $name;
}

($do{ $do // 'env' } // $do{env})->();
"#;

/// Returns a site with the program above as `cgi-bin/do`.
fn site() -> Site {
    with_program(Site::new(), "cgi-bin/do", DO)
}

/// Adds a program that everybody may execute.
fn with_program(site: Site, name: &str, content: &str) -> Site {
    let site = site.with(name, content);
    make_executable(&site.path(name));
    site
}

fn make_executable(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
}

/// Returns a configuration with the program at `/do`, and `rest` at its end.
fn config(rest: &str) -> String {
    format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}\
         [[route]]\npath = \"/do\"\ntry = [\"cgi:cgi-bin/do\"]\n{rest}"
    )
}

/// Returns a configuration without an admin listener on a port, so that commands find the default
/// one.
fn without_admin(config: &str) -> String {
    config.replacen(ADMIN, "", 1)
}

/// Starts Kirin with the program at `/do`.
fn start(rest: &str) -> (Site, Kirin) {
    let site = site();
    let kirin = Kirin::start(&site, &config(rest));
    (site, kirin)
}

/// Returns the variable `name` in the answer of `do=env`.
fn variable(reply: &Reply, name: &str) -> Option<String> {
    let text = reply.text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    Some(line.to_owned())
}

/// Waits until this many programs have written `cgi-bin/pid.PID`. Returns their process ids.
fn pids(site: &Site, count: usize) -> Vec<u32> {
    wait_for(&format!("{count} process ids"), || {
        let entries = fs::read_dir(site.path("cgi-bin")).expect("cgi-bin").flatten();
        let pid =
            |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix("pid.")?.parse().ok();
        let pids: Vec<u32> = entries.filter_map(pid).collect();
        (pids.len() == count).then_some(pids)
    })
}

/// Waits until none of these processes runs, and none is a zombie.
fn wait_until_gone(pids: &[u32]) {
    for pid in pids {
        let path = format!("/proc/{pid}");
        wait_for(&format!("the end of {pid}"), || (!Path::new(&path).exists()).then_some(()));
    }
}

/// Waits for a file beside the program.
fn wait_for_file(site: &Site, name: &str) {
    wait_for(name, || site.path("cgi-bin").join(name).exists().then_some(()));
}

/// Makes a file beside the program.
fn touch(site: &Site, name: &str) {
    fs::write(site.path("cgi-bin").join(name), "").expect("a file");
}
