# Answers with the page that a redis-server has for the path, by a client in each worker (Debian's
# package libredis-fast-perl). POST /purge?TAG removes all items of a tag, which has a set of their
# keys. BENCH_REDIS is the server's address.
use v5.16;
use warnings;
use Redis::Fast;

my $keys_a_command = 1000;

# The connection of a worker. It is opened after the fork.
my $redis;

sub purge {
    my $set = "tag:$_[0]";
    my @keys = $redis->smembers($set);
    # A command with a callback does not wait for its reply.
    for (my $first = 0; $first < @keys; $first += $keys_a_command) {
        my $last = $first + $keys_a_command - 1;
        $last = $#keys if $last > $#keys;
        $redis->unlink(@keys[$first .. $last], sub { });
    }
    $redis->unlink($set, sub { });
    $redis->wait_all_responses;
    return scalar @keys;
}

sub {
    my $env = shift;
    $redis //= Redis::Fast->new(server => $ENV{BENCH_REDIS});
    my $body =
        $env->{PATH_INFO} eq '/purge'
        ? purge($env->{QUERY_STRING})
        : $redis->get("page:$env->{PATH_INFO}");
    return [404, ['Content-Type', 'text/plain', 'Content-Length', 0], []] if !defined $body;
    return [200, ['Content-Type', 'text/html', 'Content-Length', length $body], [$body]];
};
