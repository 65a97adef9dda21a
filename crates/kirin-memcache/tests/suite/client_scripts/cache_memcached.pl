# Talks to the server named on the command line with the pure-Perl Cache::Memcached.
use v5.16;
use warnings;

use Cache::Memcached;

my $client = Cache::Memcached->new({ servers => [$ARGV[0]], compress_threshold => 10_000 });

sub expect {
    my ($met, $what) = @_;
    return if $met;
    say $what;
    exit 1;
}

expect($client->flush_all, 'flush_all');
expect($client->set('a', 'one', 100), 'set');
expect($client->get('a') eq 'one', 'get');
expect(!$client->add('a', 'x'), 'add of what is there');
expect($client->set('hash', { list => [1, 'two'] }), 'set of a structure');
expect($client->get('hash')->{list}[1] eq 'two', 'get of a structure');
$client->set("key$_", $_ x 100) for 1 .. 100;
my $many = $client->get_multi(map { "key$_" } 1 .. 101);
expect(keys %$many == 100 && $many->{key7} eq '7' x 100, 'get_multi');
$client->set('n', 9);
expect($client->incr('n', 5) == 14, 'incr');
expect($client->decr('n', 100) == 0, 'decr');
expect($client->delete('a') && !defined $client->get('a'), 'delete');
my $stats = $client->stats(['misc']);
expect($stats->{total}{curr_items} > 0, 'stats');
say 'OK';
