#!/usr/bin/perl
# Prints a prime number. It takes the number from the store, or calculates and stores it.
#
#   perl prime.pl 20000        the 20,000th prime number
#
# prime.py is the same in Python, with the same keys. MEMCACHED is the address of the store.
use v5.16;
use warnings;

use Cache::Memcached::Fast ();

my $SECONDS_TO_LIVE = 3600;

my $nth = shift // '';
$nth =~ /\A[1-9][0-9]{0,4}\z/ or die "usage: perl prime.pl NUMBER    from 1 to 99999\n";

my $store = Cache::Memcached::Fast->new(
    { servers => [$ENV{MEMCACHED} || '127.0.0.1:11211'], namespace => 'prime/' });

# The counter lives for ever. `add` stores it only if it is not there, so that two scripts which
# start at the same time lose no count.
$store->add('asked', 0);
my $asked = $store->incr('asked') // die "the store does not answer\n";

my $prime = $store->get($nth);
my $source = defined $prime ? 'from the store' : 'calculated in Perl';
if (!defined $prime) {
    $prime = nth_prime($nth);
    $store->set($nth, $prime, $SECONDS_TO_LIVE);
}
say "prime $nth is $prime, $source; question $asked";

# The sieve of Eratosthenes, up to a bound for the nth prime.
sub nth_prime {
    my ($nth) = @_;
    my $bound = $nth < 6 ? 13 : int($nth * (log($nth) + log(log($nth))));
    my @composite;
    for my $number (2 .. $bound) {
        next if $composite[$number];
        return $number if --$nth == 0;
        for (my $multiple = $number * $number; $multiple <= $bound; $multiple += $number) {
            $composite[$multiple] = 1;
        }
    }
}
