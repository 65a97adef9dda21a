# Prints the line that Apache::LogFormat::Compiler makes of each JSON object on standard input:
# format, env, status, headers, length, reqtime, time.
use v5.16;
use warnings;
use Apache::LogFormat::Compiler;
use JSON::PP;

while (my $case = <STDIN>) {
    $case = decode_json($case);
    my $env = $case->{env};
    # Fields have bytes, not characters.
    utf8::downgrade($_) for grep { defined } values %$env;
    my $log = Apache::LogFormat::Compiler->new($case->{format});
    my $response = [$case->{status}, $case->{headers}];
    print $log->log_line($env, $response, $case->{length}, $case->{reqtime}, $case->{time});
}
