# Talks to the server named on the command line with Cache::Memcached::Fast.
use v5.16;
use warnings;

use Cache::Memcached::Fast;

my $client = Cache::Memcached::Fast->new(
    {
        servers => [$ARGV[0]], utf8 => 1, max_size => 4 << 20, compress_threshold => -1,
        nowait  => 1,
    }
);

sub expect {
    my ($met, $what) = @_;
    return if $met;
    say $what;
    exit 1;
}

my ($version) = values %{ $client->server_versions };
expect($version =~ /^1\.6\./, "version $version");
$client->flush_all;
expect($client->set('a', 'one', 100), 'set');
expect($client->get('a') eq 'one', 'get');
my $pair = $client->gets('a');
expect($pair->[1] eq 'one', 'gets');
expect($client->cas('a', $pair->[0], 'two'), 'cas');
expect(!$client->cas('a', $pair->[0], 'three'), 'a second cas with the same token');
expect(!$client->add('a', 'x'), 'add of what is there');
expect(!$client->replace('b', 'x'), 'replace of what is not there');
expect($client->append('a', '!') && $client->prepend('a', '?'), 'append and prepend');
expect($client->get('a') eq '?two!', 'get after append');

my @pairs = map { ["key$_", "$_ " x 1000] } 1 .. 200;
$client->set_multi(@pairs);
my $many = $client->get_multi((map { $_->[0] } @pairs), 'missing');
expect(keys %$many == 200, keys(%$many) . ' of 200 values');
expect($many->{key42} eq '42 ' x 1000, 'key42');
expect(keys %{ $client->gets_multi('key1', 'key2') } == 2, 'gets_multi');
$client->delete_multi(map { $_->[0] } @pairs);
expect(!%{ $client->get_multi(map { $_->[0] } @pairs) }, 'get after delete_multi');

$client->set('n', 9);
expect($client->incr('n', 5) == 14, 'incr');
expect($client->decr('n', 100) == 0, 'decr');
expect($client->touch('n', 50), 'touch');
expect($client->gat(60, 'n') =~ /^0/, 'gat');
expect($client->set('hash', { list => [1, 'two', undef] }), 'set of a structure');
expect($client->get('hash')->{list}[1] eq 'two', 'get of a structure');
expect($client->set('text', "\x{9e92}\x{9e9f}"), 'set of Unicode');
expect($client->get('text') eq "\x{9e92}\x{9e9f}", 'get of Unicode');
my $large = join '', map { chr($_ % 128) } 1 .. 900_000;
expect($client->set('large', $large) && $client->get('large') eq $large, 'a large value');
$client->set("quiet$_", $_) for 1 .. 1000;    # void context: noreply
$client->nowait_push;
expect($client->get('quiet1000') == 1000, 'quiet commands');
expect($client->delete('a') && !defined $client->get('a'), 'delete');
say 'OK';
