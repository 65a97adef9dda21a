package Kirin::StackLayout;
use v5.16;
use warnings;
no warnings 'portable';

use Config ();

# The bytes of an address. The interpreter's structures are built of words of this size.
use constant WORD => 8;

# The interpreter's variables are searched up to this distance from one of them, in bytes.
use constant WINDOW => 32 * 1024;

# The distances in words within which the second variable is searched around the first one. In an
# interpreter with threads both are fields of one structure.
use constant DISTANCES => (8, 512);

# The bits of a context's first byte that say what it is. The others are flags.
use constant TYPE_OF_CONTEXT => 0xF;

# How many bytes of a context stack and of other structures are searched.
use constant { CONTEXTS => 32 * 1024, STRUCTURE => 128, STACK_INFO => 64 };

# No process has memory at lower or higher addresses.
use constant { LOWEST => 4096, HIGHEST => 1 << 56 };

# A name is a hash value, its length and its bytes (struct hek).
use constant { NAME_LENGTH => 4, NAME_BYTES => 8 };

# The head of a value has the address of its body, its type, and the buckets if it is a hash
# (struct sv). The body of a hash has its highest bucket.
use constant { TYPE => 12, BUCKETS => 16, HIGHEST_BUCKET => 24 };

my ($memory, $numbers);

# Returns the word of the greeting that says where the front finds the Perl stack of this process.
# Returns nothing if this Perl is built in an unknown way. Forked processes have the same addresses,
# so the parent searches for all workers.
sub greeting_word {
    local ($@, $!);
    $numbers //= eval { find() } // '';
    return $numbers eq '' ? () : "stacks=perl:$numbers";
}

# Returns the numbers in the order of the worker protocol, or dies with what is not found.
sub find {
    $Config::Config{ptrsize} == WORD && length pack('J', 0) == WORD
        or die "addresses have other than 64 bits\n";
    open $memory, '<:raw', '/proc/self/mem' or die "/proc/self/mem: $!\n";
    my %at;
    find_cop(\%at);
    for my $words (DISTANCES) {
        outer(\%at, $words) if !defined $at{stack_info};
    }
    find_previous(\%at);
    find_names(\%at);
    close $memory;
    return join ',', map { sprintf '%x', $at{$_} // die "$_ is not found\n" } qw(
        cop stack_info
        info_contexts info_index info_previous
        context_bytes context_sub context_cop context_cv
        cop_line cop_file cop_file_is_glob
        cv_glob cv_stash glob_type glob_name glob_stash
        stash_name stash_name_is_in_buckets
    );
}

# Finds the variable with the address of the present statement (PL_curcop), and where a statement
# has its line. Three statements read all variables. Only this one has three times the address of a
# statement with the right line.
sub find_cop {
    my $at = shift;
    my ($from, $length) = variables();
    my (@seen, @lines);
    sysseek $memory, $from, 0;
    $lines[0] = __LINE__ + 1;
    sysread $memory, $seen[0], $length;
    sysseek $memory, $from, 0;
    $lines[1] = __LINE__ + 1;
    sysread $memory, $seen[1], $length;
    sysseek $memory, $from, 0;
    $lines[2] = __LINE__ + 1;
    sysread $memory, $seen[2], $length;
    my $changes = $seen[1] ^ $seen[2];
    while ($changes =~ /[^\0]/g) {
        my $offset = $-[0] - $-[0] % WORD;
        pos $changes = $offset + WORD;
        my @statements = map { unpack 'J', substr $_, $offset, WORD } @seen;
        my @fields = map { [unpack 'L*', bytes_at($_, STRUCTURE) // ''] } @statements;
        for my $field (0 .. $#{ $fields[0] }) {
            next if grep { ($fields[$_][$field] // 0) != $lines[$_] } 0 .. 2;
            @$at{qw(cop cop_line statement)} = ($from + $offset, $field * 4, $statements[2]);
            return;
        }
    }
    return;
}

# Returns the address and the number of bytes of the memory around the interpreter's variables. One
# of them is the undefined value.
sub variables {
    my $known = 0 + \undef;
    open my $maps, '<', '/proc/self/maps' or die "/proc/self/maps: $!\n";
    while (<$maps>) {
        my ($from, $to) = map { hex } /\A([0-9a-f]+)-([0-9a-f]+) /;
        next if $known < $from || $known >= $to;
        my $aligned = $known - $known % WORD;
        $from = $aligned - WINDOW if $from < $aligned - WINDOW;
        $to = $aligned + WINDOW if $to > $aligned + WINDOW;
        return ($from, $to - $from);
    }
    die "the interpreter's memory is not found\n";
}

# These three call each other, so that their calls are beside each other in the context stack.
my ($called_middle, $called_inner);

sub outer {
    my ($at, $distance) = @_;
    $called_middle = __LINE__ + 1;
    middle($at, $distance);
    return;
}

sub middle {
    my ($at, $distance) = @_;
    $called_inner = __LINE__ + 1;
    inner($at, $distance);
    return;
}

# Finds the variable with the address of the present stack (PL_curstackinfo), where that has its
# contexts, and where they have the called sub and the calling statement.
sub inner {
    my ($at, $distance) = @_;
    my @seen;
    # Each loop is one more context. Other fields of a stack count only subs.
    for my $found (possible_contexts($at, $distance)) {
        sysseek $memory, $found->{info}, 0;
        sysread $memory, $seen[0], STACK_INFO;
        for my $once (1) {
            sysseek $memory, $found->{info}, 0;
            sysread $memory, $seen[1], STACK_INFO;
        }
        my ($outside, $inside) = map { [unpack 'l*', $_] } @seen;
        my $index = delete $found->{index};
        ($found->{info_index}) = map { $_ * 4 }
            grep { $outside->[$_] == $index + 1 && $inside->[$_] == $index + 2 } 0 .. $#$outside;
        next if !defined $found->{info_index};
        %$at = (%$at, %$found);
        return;
    }
    return;
}

# Returns what may be the variable. The contexts of the three calls come soon after many addresses,
# but only the right one is that of the first context.
sub possible_contexts {
    my ($at, $distance) = @_;
    my @calls = map { pack 'J', 0 + $_ } \&outer, \&middle, \&inner;
    my @possible;
    for my $address (map { $at->{cop} + $_ * WORD } -$distance .. $distance) {
        my $info = word_at($address);
        my @info = words_at($info, STACK_INFO / WORD);
        for my $field (0 .. $#info) {
            my $contexts = bytes_at($info[$field], CONTEXTS) // next;
            my @found = map { index $contexts, $_ } @calls;
            my $bytes = $found[1] - $found[0];
            next if $found[0] < 0 || $bytes < WORD || $found[2] - $found[1] != $bytes;
            my $cv = $found[0] % $bytes;
            my (undef, $middle, $inner) = map { $_ - $cv } @found;
            my $calls = sub {
                my ($context, $offset, $line) = @_;
                return $line ==
                    line_at($at, unpack 'J', substr $contexts, $context + $offset, WORD);
            };
            my ($cop) = grep {
                $calls->($middle, $_, $called_middle) && $calls->($inner, $_, $called_inner)
            } map { $_ * WORD } 0 .. $bytes / WORD - 1;
            push @possible, {
                stack_info    => $address,
                info          => $info,
                info_contexts => $field * WORD,
                index         => $inner / $bytes,
                context_bytes => $bytes,
                context_cv    => $cv,
                context_cop   => $cop,
                context_sub   => ord(substr $contexts, $inner, 1) & TYPE_OF_CONTEXT,
            };
        }
    }
    return @possible;
}

# Finds where a stack has the address of the one below it. Code that sorts has a stack of its own.
sub find_previous {
    my $at = shift;
    my $below = word_at($at->{stack_info});
    my @sorted = sort {
        my @info = words_at(word_at($at->{stack_info}), STACK_INFO / WORD);
        ($at->{info_previous}) = map { $_ * WORD } grep { $info[$_] == $below } 0 .. $#info;
        0
    } 2, 1;
    return;
}

# Finds the names of files, subs and packages.
sub find_names {
    my $at = shift;
    my $glob = 0 + \*outer;
    my $stash = 0 + \%Kirin::StackLayout::;
    my $body = word_at($glob);
    $at->{glob_type} = unpack('L', bytes_at($glob + TYPE, 4)) & 0xFF;
    $at->{glob_name} = field(sub { is_name($_[0], 'outer') }, $body);
    $at->{glob_stash} = field(sub { $_[0] == $stash }, $body);
    my $code = word_at(0 + \&outer);
    $at->{cv_glob} = field(sub { $_[0] == $glob || is_name($_[0], 'outer') }, $code);
    $at->{cv_stash} = field(sub { $_[0] == $stash }, $code);

    my $file = __FILE__;
    $at->{cop_file} =
        field(sub { (bytes_at($_[0], 1 + length $file) // '') eq "$file\0" }, $at->{statement});
    $at->{cop_file_is_glob} = defined $at->{cop_file} ? 0 : 1;
    $at->{cop_file} //= field(
        sub {
            my $of_file = word_at(word_at($_[0]) + ($at->{glob_name} // return 0));
            return is_name($of_file, "_<$file");
        },
        $at->{statement}
    );

    my $is_ours = sub { is_name($_[0], __PACKAGE__) };
    $at->{stash_name} = field($is_ours, word_at($stash));
    $at->{stash_name_is_in_buckets} = defined $at->{stash_name} ? 0 : 1;
    $at->{stash_name} //= field(
        $is_ours,
        word_at($stash + BUCKETS) + WORD * (1 + word_at(word_at($stash) + HIGHEST_BUCKET))
    );
    return;
}

# Returns the offset of the first word of a structure for which $is_it is true.
sub field {
    my ($is_it, $address) = @_;
    my @words = words_at($address, STRUCTURE / WORD);
    for my $index (0 .. $#words) { return $index * WORD if $is_it->($words[$index]) }
    return;
}

sub is_name {
    my ($address, $name) = @_;
    my $found = bytes_at($address, NAME_BYTES + length $name) // return 0;
    return unpack('l', substr $found, NAME_LENGTH, 4) == length $name
        && substr($found, NAME_BYTES) eq $name;
}

# Returns the line of a statement; 0 if there is none at this address.
sub line_at {
    my ($at, $statement) = @_;
    return unpack 'L', bytes_at($statement + $at->{cop_line}, 4) // "\0" x 4;
}

sub word_at { return (words_at($_[0], 1))[0] // 0 }

sub words_at {
    my ($address, $count) = @_;
    return unpack 'J*', bytes_at($address, $count * WORD) // '';
}

# Returns what is at an address, or nothing if no memory is there.
sub bytes_at {
    my ($address, $length) = @_;
    # No process has memory at other addresses.
    return if $address < LOWEST || $address >= HIGHEST || !sysseek $memory, $address, 0;
    my $count = sysread $memory, my ($bytes), $length;
    return $count ? $bytes : undef;
}

1;

__END__

=head1 NAME

Kirin::StackLayout - where this Perl keeps the stack of its calls

=head1 SYNOPSIS

    my ($word) = Kirin::StackLayout::greeting_word();    # stacks=perl:55d0c8a2f370,...

=head1 DESCRIPTION

The front reads the stacks of its workers from outside, out of their memory. So a profile neither
interrupts an application nor slows it down. For that it must know the addresses of two variables of
the interpreter, C<PL_curcop> and C<PL_curstackinfo>, and the offsets of some fields. These differ
between versions and builds of Perl.

This module finds them by looking at the memory of its own process, F</proc/self/mem>: its subs call
each other, and it searches for their addresses, lines and names. It changes nothing. It takes some
milliseconds, once, in the app parent. If it does not find everything, the greeting has no such word,
and the application cannot be profiled.

F<docs/worker-protocol.md> describes the numbers.

=cut
