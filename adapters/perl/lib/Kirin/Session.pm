package Kirin::Session;
use v5.16;
use warnings;

use Kirin::Session::Hash;
use Kirin::Session::Options;
use Scalar::Util ();

# Creates a session. $place has the methods fetch and generate_id of the session store. $cookie is
# the id from the client, if it is valid.
sub new {
    my ($class, $place, $cookie) = @_;
    return bless { place => $place, cookie => $cookie, options => {} }, $class;
}

# Returns the hashes that an application sees.
sub hash {
    my $self = shift;
    tie my %hash, 'Kirin::Session::Hash', $self;
    # The reference is weak, because the hash refers to the session.
    Scalar::Util::weaken($self->{hash} = \%hash);
    return \%hash;
}

sub options_hash {
    my $self = shift;
    tie my %options, 'Kirin::Session::Options', $self;
    return \%options;
}

# Returns the content, which is fetched at its first use.
sub content {
    my $self = shift;
    $self->load if !$self->{content};
    return $self->{content};
}

sub load {
    my $self = shift;
    my $found = defined $self->{cookie} ? $self->{place}->fetch($self, $self->{cookie}) : undef;
    # This is a copy, because a cache in memory may have returned the data that it keeps.
    $self->{content} = { $found ? %$found : () };
    if ($found) {
        $self->{id} = $self->{cookie};
        # Data behind a reference can change without a call to this hash. The text also shows which
        # members this request has changed.
        $self->{before} = fingerprints($found);
    }
    elsif ($self->{is_lost}) {
        $self->{id} = $self->{cookie};
    }
    else {
        # An id that the store does not know is never accepted. Otherwise an attacker could choose
        # the id of a session.
        $self->{id} = $self->{place}->generate_id if !defined $self->{id};
        $self->{is_new} = 1;
    }
}

# Returns the id that the session has, or will have when it is stored.
sub id {
    my $self = shift;
    $self->load if !$self->{content};
    return $self->{id};
}

sub change { $_[0]{changed} = 1 }

# An application may replace these hashes by its own.
sub take_replaced {
    my ($self, $hash, $options) = @_;
    if (is_hash($hash) && (!$self->{hash} || $hash != $self->{hash})) {
        $self->load if !$self->{content};
        $self->{content} = {%$hash};
        $self->change;
    }
    if (is_hash($options) && !tied %$options) {
        $self->{options} = { %{ $self->{options} }, %$options };
    }
}

sub is_hash { (Scalar::Util::reftype($_[0]) // '') eq 'HASH' }

# Returns whether the session or its id has been looked at.
sub is_touched { defined $_[0]{content} }

sub is_new { $_[0]{is_new} }

sub is_empty { !%{ $_[0]{content} } }

sub is_changed {
    my $self = shift;
    return 1 if $self->{changed};
    my ($before, $content) = @$self{qw(before content)};
    return !!grep {
        ref $content->{$_}
            && (!exists $before->{$_} || $before->{$_} ne fingerprint($content->{$_}))
    } keys %$content;
}

sub fingerprints {
    my $content = shift;
    return { map { $_ => fingerprint($content->{$_}) } keys %$content };
}

# Merges the changes of this request into the content that another request has stored, member by
# member of the top level. For a member that both have changed, this request's value stays.
sub merge_into {
    my ($self, $theirs) = @_;
    my ($before, $mine) = @$self{qw(before content)};
    my %merged = %$theirs;
    my $now = fingerprints($mine);
    for my $name (keys %{ { %$before, %$now } }) {
        next
            if exists $before->{$name} && exists $now->{$name} && $before->{$name} eq $now->{$name};
        if (exists $now->{$name}) { $merged{$name} = $mine->{$name} }
        else { delete $merged{$name} }
    }
    # From here on, the other content is the one that this request has read.
    $self->{before} = fingerprints($theirs);
    %$mine = %merged;
    return;
}

# Returns a text that is the same for the same data. It does not distinguish numbers and strings,
# because printing a number makes it both.
sub fingerprint {
    my ($data, $seen) = @_;
    return 'u' if !defined $data;
    my $type = ref $data or return length($data) . ":$data";
    my $address = Scalar::Util::refaddr($data);
    return "=$address" if $seen->{$address};
    local $seen->{$address} = 1;
    my $kind = Scalar::Util::reftype($data);
    return "$type\[" . join(',', map { fingerprint($_, $seen) } @$data) . ']' if $kind eq 'ARRAY';
    return
          "$type\{"
        . join(',', map { fingerprint($_) . fingerprint($data->{$_}, $seen) } sort keys %$data)
        . '}'
        if $kind eq 'HASH';
    return "$type\\" . fingerprint($$data, $seen) if $kind eq 'SCALAR' || $kind eq 'REF';
    return "$type=$address";
}

1;

__END__

=head1 NAME

Kirin::Session - the session of one request

=head1 SYNOPSIS

    my $session = Kirin::Session->new($middleware, $id_from_cookie);
    $env->{'psgix.session'}         = $session->hash;
    $env->{'psgix.session.options'} = $session->options_hash;

=head1 DESCRIPTION

L<Plack::Middleware::Session::Kirin> uses this module. It fetches nothing before the application
looks at the session or asks for its id. It notices changes at any depth. The hash itself reports
changes of its members. For data behind references, the module compares with the fetched content.

=cut
