"""Items of other clients: Perl's Kirin::Store, and anything that speaks memcached's protocol."""
import json
import os
import shutil
import socket
import subprocess
import unittest

from programs import PERL_LIBRARY, Memcached

from kirin.store import Store

PERL = r'''
use v5.16;
use warnings;
use Kirin::Store;
use JSON::PP;
binmode STDOUT, ':raw';
my $store = Kirin::Store->new(address => $ARGV[0]);
my $json = JSON::PP->new->utf8->canonical->allow_nonref;
if ($ARGV[1] eq 'write') {
    $store->set('text', "\xE9\x92\x92");
    $store->set('number', 5);
    $store->set('hash', { list => [1, undef, "\x{9E92}"] });
    $store->set('tagged', ['x'], 60, tags => ['t']);
    $store->set_page('/page', 'text/html', '<h1>');
}
else {
    my %found = map { $_ => $store->get($_) } qw(bytes text int list null);
    $found{text} = unpack 'H*', $found{text};
    $found{cas} = $store->cas('list', $store->gets('list')->[0], { changed => 1 }) ? 1 : 0;
    $found{purged} = $store->purge(tags => ['t']);
    print $json->encode(\%found);
}
'''


class OtherClientTests(unittest.TestCase):
    def setUp(self):
        self.memcached = Memcached().__enter__()
        self.addCleanup(self.memcached.__exit__)
        self.store = Store(self.memcached.address)

    def perl(self, action):
        if not shutil.which("perl"):
            self.skipTest("Perl is not installed")
        return subprocess.run(
            ["perl", "-I", PERL_LIBRARY, "-e", PERL, self.memcached.address, action],
            check=True, stdout=subprocess.PIPE,
        ).stdout

    def test_items_of_perl_are_read(self):
        self.perl("write")
        get = self.store.get
        self.assertEqual(get("text"), "钒".encode())
        self.assertEqual(get("number"), b"5")
        self.assertEqual(self.store.incr("number"), 6)
        self.assertEqual(get("hash"), {"list": [1, None, "\u9e92"]})
        self.assertEqual(get("/page"), b"text/html\r\n<h1>")
        self.assertEqual(self.store.purge(tags="t"), 1)
        self.assertIsNone(get("tagged"))

    def test_perl_reads_items_of_python(self):
        store = self.store
        store.set("bytes", b"raw")
        store.set("text", "钒")
        store.set("int", 42)
        store.set("list", [1, {"a": None}])
        store.set("null", None)
        store.set("tagged", 1, tags=["t"])
        self.assertEqual(json.loads(self.perl("read")), {
            "bytes": "raw", "text": "钒".encode().hex(), "int": 42, "list": [1, {"a": None}],
            "null": None, "cas": 1, "purged": 1,
        })
        self.assertEqual(store.get("list"), {"changed": 1})

    def test_items_with_flags_of_other_clients_are_bytes(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.memcached.path("store"))
            for flags in (0, 1, 2, 3, 16, 64, 4294967295):
                client.sendall(b"set k %d 0 3\r\n\x80abc\r\n".replace(b" 3", b" 4") % flags)
                self.assertEqual(client.recv(100), b"STORED\r\n")
                self.assertEqual(self.store.get("k"), b"\x80abc", self.store.error)
                self.assertEqual(self.store.get_or_set("k", self.fail), b"\x80abc")

    def test_a_program_without_frameworks_imports_none(self):
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]); import kirin.store.site\n"
            "assert 'kirin.store.client' not in sys.modules\n"
            "assert 'json' not in sys.modules and 'socket' not in sys.modules\n"
            "from kirin.store import Store; Store().get('k')\n"
            "import kirin.store.starlette\n"
            "found = {'django', 'flask', 'starlette', 'asgiref'} & set(sys.modules)\n"
            "assert not found, found"
        )
        import sys

        from programs import SOURCES

        # -S: some environments import modules at the start of every Python.
        subprocess.run([sys.executable, "-S", "-c", code, SOURCES], check=True, env={
            name: value for name, value in os.environ.items() if name != "KIRIN_STORE"
        })


if __name__ == "__main__":
    unittest.main()
