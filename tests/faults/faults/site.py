"""The site that the program serves: each kind of place, with limits of seconds."""
import os
import stat
import subprocess
import sys

from .content import named

APP = r"""
use v5.16; use warnings;
use Digest::SHA 'sha256_hex';

sub content {
    my ($name, $length) = @_;
    my $line = sha256_hex($name) . "\n";
    return substr $line x ($length / length($line) + 1), 0, $length;
}

# A request that was carried out, with its number: once is right, twice is not.
sub note {
    open my $log, '>>', 'carried-out' or die "carried-out: $!";
    syswrite $log, "$_[0]\n";
}

sub {
    my $env = shift;
    my ($name, $length) = $env->{PATH_INFO} =~ m{/((?:\w+)-(\d+))\z} or return [404, [], []];
    if ($env->{REQUEST_METHOD} eq 'POST') {
        my ($body, $piece) = ('');
        $body .= $piece while $env->{'psgi.input'}->read($piece, 65536);
        return [400, [], ['short']] if length $body != $env->{CONTENT_LENGTH};
        note($name);
        return [200, ['Content-Type' => 'text/plain'], [$body]];
    }
    if ($env->{PATH_INFO} =~ m{/stream/}) {
        return sub {
            my $writer = $_[0]->([200, ['Content-Type' => 'text/plain']]);
            my $content = content($name, $length);
            $writer->write(substr $content, 0, 3000, '') while length $content;
            $writer->close;
        };
    }
    return [200, ['Content-Type' => 'text/plain'], [content($name, $length)]];
};
"""

PROGRAM = f"""#!{sys.executable} -BES
import hashlib, os, sys
name = os.environ["PATH_INFO"].rsplit("/", 1)[1]
length = int(name.rsplit("-", 1)[1])
line = hashlib.sha256(name.encode()).hexdigest() + "\\n"
sys.stdout.write("Content-Type: text/plain\\r\\n\\r\\n" + (line * (length // len(line) + 1))[:length])
"""

CONFIG = """
threads = {threads}
[admin]
address = "unix:admin.sock"
[[listener]]
address = "127.0.0.1:0"
access_log = "access.log"
head_timeout = "5s"
body_timeout = "5s"
[[listener]]
address = "unix:tls.sock"
access_log = "access.log"
tls = {{ certificates = [{{ chain = "chain.pem", key = "key.pem" }}] }}
[store]
memcached = ["unix:store.sock"]
memory = "64MB"
[[app]]
name = "web"
load = "app.psgi"
workers = 3
deadline = "5s"
queue_wait = "1m"
[[upstream]]
name = "api"
servers = ["unix:api.sock"]
connect_timeout = "2s"
first_byte_timeout = "5s"
idle_timeout = "5s"
[[route]]
path = "/files"
try = ["files:public"]
[[route]]
path = "/parts"
try = ["files:public"]
ssi = true
[[route]]
path = "/page"
try = ["store"]
[[route]]
path = "/socket"
try = ["proxy:api"]
[[route]]
path = "/api"
try = ["proxy:api"]
[[route]]
path = "/cached"
try = ["proxy:api"]
cache = true
[[route]]
path = "/program"
try = ["cgi:program"]
[[route]]
path = "/"
try = ["app:web"]
"""

# A page with parts, and its text between them.
PART_PATHS = ("/app/part-90", "/api/part-5000", "/files/file-700")
PARTS = "begin" + "|".join(f'<!--#include virtual="{path}" -->' for path in PART_PATHS) + "end"

# Files of `public`, by their sizes: in memory, and sent by the kernel.
FILES = [f"file-{length}" for length in (0, 1, 700, 30_000, 200_000, 1_500_000)]


def build(directory, threads):
    """Writes the site into a directory."""
    public = os.path.join(directory, "public", "files")
    os.makedirs(public)
    for name in FILES:
        with open(os.path.join(public, name), "wb") as file:
            file.write(named(name))
    for name, content in (
        ("app.psgi", APP),
        ("program", PROGRAM),
        ("kirin.toml", CONFIG.format(threads=threads)),
    ):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(content)
    parts = os.path.join(directory, "public", "parts")
    os.makedirs(parts)
    with open(os.path.join(parts, "page.html"), "w", encoding="ascii") as file:
        file.write(PARTS)
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=a"
    command += " -keyout key.pem -out chain.pem"
    subprocess.run(command.split(), cwd=directory, check=True, stderr=subprocess.DEVNULL)
    program = os.path.join(directory, "program")
    os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    open(os.path.join(directory, "carried-out"), "w", encoding="ascii").close()
    os.chmod(directory, 0o755)
