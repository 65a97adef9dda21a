use v5.16;
use warnings;

sub {
    my $env = shift;
    sleep 1 if $env->{PATH_INFO} eq '/slow';
    [200, ['Content-Type' => 'text/plain'], ["Welcome to the shop\n"]];
};
