use v5.16;
use warnings;
no warnings 'portable';
use lib 't/lib';
use FakeFront;
use Kirin::StackLayout;
use Test::More;

# The numbers are right if they lead to this program's own calls.
my @names = qw(
    cop stack_info info_contexts info_index info_previous context_bytes context_sub context_cop
    context_cv cop_line cop_file cop_file_is_glob cv_glob cv_stash glob_type glob_name glob_stash
    stash_name stash_name_is_in_buckets
);

sub bytes_at {
    my ($address, $length) = @_;
    open my $memory, '<:raw', '/proc/self/mem' or die $!;
    sysseek $memory, $address, 0 or die "$address: $!";
    my $count = sysread $memory, my ($bytes), $length;
    return $count ? $bytes : die "$address: $!";
}

sub word_at { unpack 'J', bytes_at($_[0], 8) }

# Returns the addresses of the called subs with the lines of their callers, the innermost first.
sub calls {
    my $at = shift;
    my @calls;
    for (
        my $info = word_at($at->{stack_info});
        $info;
        $info = word_at($info + $at->{info_previous})
        )
    {
        my $contexts = word_at($info + $at->{info_contexts});
        for my $index (reverse 0 .. unpack 'l', bytes_at($info + $at->{info_index}, 4)) {
            my $context = bytes_at($contexts + $index * $at->{context_bytes}, $at->{context_bytes});
            next if (ord($context) & 0xF) != $at->{context_sub};
            my $cop = unpack 'J', substr $context, $at->{context_cop}, 8;
            push @calls, [
                unpack('J', substr $context, $at->{context_cv}, 8),
                unpack('L', bytes_at($cop + $at->{cop_line}, 4)),
            ];
        }
    }
    return @calls;
}

sub inner { return calls(@_) }

sub sorted {
    my @calls;
    my @sorted = sort { @calls = inner(@_); 0 } 2, 1;
    return @calls;
}
sub outer { return sorted(@_) }

my ($word) = Kirin::StackLayout::greeting_word();
like $word, qr/\Astacks=perl:[0-9a-f]+(?:,[0-9a-f]+){18}\z/, 'the word of the greeting';
my %at;
@at{@names} = map { hex } split /,/, $word =~ s/\Astacks=perl://r;
my $line = __LINE__ + 1;
my @calls = outer(\%at);
is_deeply [map { $_->[0] } @calls[1 .. 3]], [map { 0 + $_ } \&inner, \&sorted, \&outer],
    'the calls, through the stack of a sort';
is $calls[3][1], $line, 'and the line of the first';
is $at{cop_line}, ($at{cop_line} & ~3), 'numbers are aligned';

subtest 'a worker says it in its greeting' => sub {
    my $front = FakeFront->start('sub { [200, [], ["hello"]] }', workers => 1);
    my $greeting = $front->connect;
    like $greeting, qr/ stacks=perl:[0-9a-f,]+\z/, 'greeting';
    cmp_ok length $greeting, '<', 256, 'which is not too long';
    is $front->request->{body}, 'hello', 'and serves';
};

subtest 'an unknown Perl' => sub {
    no warnings 'redefine';
    local *Kirin::StackLayout::word_at = sub { 0 };
    ok !eval { Kirin::StackLayout::find(); 1 }, 'nothing is found';
    like $@, qr/is not found\n\z/, 'and nothing else happens';
};

done_testing;
