package Memo::StoreClient;
use v5.16;
use warnings;

use Cache::Memcached::Fast ();
use File::Spec ();

# The connection to the store. The address is unix:PATH or HOST:PORT. Undefined means that there is
# no store.
sub new {
    my ($class, $address) = @_;
    $address = File::Spec->rel2abs($1) if defined $address && $address =~ /\Aunix:(.+)\z/s;
    return bless { address => $address, pid => 0, undeleted => {} }, $class;
}

sub is_used { return defined $_[0]{address} }

# Returns the client of this process. A socket from before a fork belongs to the parent.
sub client {
    my ($self) = @_;
    return $self->{client} if $self->{pid} == $$;
    $self->{pid} = $$;
    return $self->{client} = Cache::Memcached::Fast->new(
        {
            servers         => [$self->{address}],
            connect_timeout => 0.25,
            io_timeout      => 0.5,
            # A dead store costs a request at most this time, and then nothing for two seconds.
            max_failures    => 2,
            failure_timeout => 2,
        }
    );
}

# Deletes items that must no longer be served. If the store is away, they are deleted before this
# process answers its next request (catch_up), unless they have ended by themselves after
# $lifetime_secs.
sub delete_surely {
    my ($self, $lifetime_secs, @keys) = @_;
    return if !$self->is_used;
    $self->{undeleted}{$_} = time + $lifetime_secs for @keys;
    $self->catch_up;
    return;
}

sub catch_up {
    my ($self) = @_;
    my $undeleted = $self->{undeleted};
    for my $key (keys %$undeleted) {
        # A connection that the store has closed fails once. False means "was not there", undefined
        # means "no answer".
        my $answer = $self->client->delete($key) // $self->client->delete($key);
        delete $undeleted->{$key} if defined $answer || time > $undeleted->{$key};
    }
    return;
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::StoreClient - the memcached client, one connection a process

=head1 SYNOPSIS

    my $store = Memo::StoreClient->new($ENV{KIRIN_STORE});
    $store->client->set('fragment/total', 17) if $store->is_used;

=cut
