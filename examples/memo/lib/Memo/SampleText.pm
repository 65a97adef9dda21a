package Memo::SampleText;
use v5.16;
use warnings;
use utf8;

# The names of the sample authors. "demo" is the one with a known password.
our @AUTHORS = qw(
    demo akira bea chika dario emi farid greta haruka ines jun kaito lena mari naoki oskar
    priya quentin rin sora tomas umeko vera wakana xenia yuki zoe anders midori pablo
);

my @WEEKDAYS = qw(Monday Tuesday Wednesday Thursday Friday Saturday Sunday);
my @PLACES = (
    'Kamakura', 'Lisbon', 'the harbour', 'Nikkō', 'the old library', 'Ghent', 'the night market',
    'Onomichi', 'the botanical garden', 'Trieste', 'the ferry to Naoshima', 'Tallinn'
);
my @DISHES = (
    'Miso soup', 'Lentil stew', 'Onigiri', 'Rye bread', 'Shakshuka', 'Pickled radish',
    'Pumpkin curry',
    'Cold soba', 'Leek tart', 'Tamagoyaki', 'Plum jam', 'Mushroom risotto'
);
my @INGREDIENTS = (
    '2 onions', 'a thumb of ginger', '300 g flour', '1 tbsp white miso', 'a bunch of parsley',
    '4 eggs',
    '200 g lentils', 'salt', 'a little sugar', '1 l stock', 'sesame oil', 'a lemon',
    '250 g mushrooms', 'rice vinegar'
);
my @STEPS = (
    'Chop everything small.', 'Let it rest for an hour.', 'Simmer on low heat, do not boil.',
    'Taste, then salt.', 'Fold, turn, fold again.', 'Cover and forget it for twenty minutes.',
    'Serve at once.', 'Even better the next day.'
);
my @BOOKS = (
    'The Pillow Book', 'Invisible Cities', 'The Makioka Sisters', 'Walden', 'The Summer Book',
    'Kokoro',
    'The Periodic Table', 'Snow Country', 'Pilgrim at Tinker Creek',
    'The Unix Programming Environment',
    'A Pattern Language', 'The Rings of Saturn'
);
my @THOUGHTS = (
    'It reads as if it had been written yesterday.',
    'The middle part drags, and that is the point of it.',
    'I underlined so much that the unmarked lines stand out now.',
    'Read slowly, one chapter a day, with tea.',
    'Lent it to a friend and already miss it.',
    'Nothing happens, and I could not put it down.',
);
my @QUOTES = (
    'What is written down need not be remembered.',
    'The palest ink is better than the best memory.',
    'First make it right, then see whether it is slow.',
    'Small things, done daily, add up to large ones.',
    'A place for everything, and a note saying where.',
);
my @SHELL = (
    [
        'Which process holds the port', 'ss -ltnp | grep :8080',
        'Needs root for other people’s processes.'
    ],
    [
        'Largest folders first', 'du -xh --max-depth=1 . | sort -hr | head',
        'The `-x` stays on one file system.'
    ],
    [
        'Follow a log through rotation', 'tail -F /var/log/syslog',
        'Capital `F`: it opens the new file by name.'
    ],
    ['Where the time goes', 'perf record -g -p $(pgrep -n perl) -- sleep 5', 'Then `perf report`.'],
    ['A quick look at headers', 'curl -sI http://127.0.0.1:8080/', 'Add `-v` to see both sides.'],
    [
        'Undo the last commit, keep the work', 'git reset --soft HEAD~1',
        'Only while nobody else has it.'
    ],
    [
        'What does this process wait for', 'strace -f -tt -p 4242',
        'Slow, so not for long in production.'
    ],
);
my @CHORES = (
    'water the plants', 'call the dentist', 'return the library books', 'fix the bicycle light',
    'back up the photos',
    'buy stamps', 'oil the door', 'sharpen the knives', 'sort the receipts',
    'write to grandmother', 'defrost the freezer'
);
my @PLANTS = (
    'tomatoes', 'basil', 'the fern', 'the lemon tree', 'peas', 'the moss', 'chrysanthemums',
    'radishes'
);
my @WEATHER = (
    'Rain since the morning.', 'First frost.', 'A clear, dry wind.', 'Fog until noon.',
    'Too warm for the month.',
    'Snow, gone by lunch.', 'Thunder far off.'
);
my @SIGHTS = (
    'a heron that did not move', 'an old man repairing a net', 'three cats on one wall',
    'a bakery with no sign',
    'the last ferry leaving', 'a bookshop in a boat', 'steam over the roofs',
    'a lantern shop, closed', 'children racing paper boats'
);
my @WORDS = (
    ['木漏れ日', 'komorebi', 'sunlight that comes through leaves'],
    ['麒麟', 'kirin', 'the unicorn of the East; appears when a good ruler does'],
    ['積ん読', 'tsundoku', 'to buy books and let them pile up'],
    ['朝凪', 'asanagi', 'the calm of the sea in the morning'],
    ['余白', 'yohaku', 'the space that is left empty'],
    ['改善', 'kaizen', 'a small improvement, again and again'],
);

my @KINDS =
    (\&_recipe, \&_book, \&_shell, \&_chores, \&_garden, \&_walk, \&_word, \&_idea, \&_meeting);

# Returns a memo in Markdown. It is the same after the same srand.
sub memo { return _one(@KINDS)->() }

sub _one { return $_[rand @_] }

sub _some {
    my ($count, @from) = @_;
    my @chosen;
    push @chosen, splice @from, rand @from, 1 while @chosen < $count && @from;
    return @chosen;
}

sub _between { my ($least, $most) = @_; return $least + int rand $most - $least + 1 }

sub _recipe {
    my $dish = _one(@DISHES);
    my $step = 0;
    my @steps = map { ++$step . ". $_" } _some(_between(2, 4), @STEPS);
    return join "\n", "# $dish, version " . _between(2, 9), '',
        _one(
        'Better than last time.', 'From the back of an envelope.',
        'For four, or for two and the next day.'
        ),
        '',
        (map { "- $_" } _some(_between(3, 6), @INGREDIENTS)), '', @steps;
}

sub _book {
    my $book = _one(@BOOKS);
    return join "\n", "# Reading: *$book*, page " . _between(9, 320), '',
        join(' ', _some(_between(1, 3), @THOUGHTS)), '',
        '> ' . _one(@QUOTES), '', '**' . _between(3, 5) . ' of 5** so far.';
}

sub _shell {
    my ($title, $command, $remark) = @{ _one(@SHELL) };
    return join "\n", "# $title", '',
        _one('I look this up every month:', 'For next time:', 'Short, and easy to forget:'), '',
        '```', $command, '```', '', $remark;
}

sub _chores {
    my $day = _one(@WEEKDAYS);
    return join "\n", "# To do before $day", '', (map { "- $_" } _some(_between(3, 6), @CHORES)),
        '',
        'If there is time: *' . _one(@CHORES) . '*.';
}

sub _garden {
    my $plant = _one(@PLANTS);
    return join "\n", ucfirst "$plant, week " . _between(1, 20), '', _one(@WEATHER) . ' ' . _one(
        'Moved them to the sill.', 'Two new leaves.', 'Cut back by a third, with regret.',
        'Something has been eating here.',
        'Flowers at last!', 'Watered, talked to, left alone.'
        ),
        '', 'Next look on ' . _one(@WEEKDAYS) . '.';
}

sub _walk {
    my $place = _one(@PLACES);
    my ($first, $second) = _some(2, @SIGHTS);
    return join "\n", '# ' . ucfirst("$place, " . _between(2, 19) . ' km on foot'), '',
        _one(@WEATHER) . " Saw $first, and later $second.", '',
        '## Keep', '', '- the path behind the station',
        '- ' . _one(@DISHES) . ' at the corner, ' . _between(4, 16) . ' €', '',
        '[Map of the way](https://www.openstreetmap.org/)';
}

sub _word {
    my ($written, $spoken, $meaning) = @{ _one(@WORDS) };
    return join "\n", "# Word of the day: $spoken", '', "**$written** (*$spoken*): $meaning.", '',
        _one(
        'Heard it on the train.', 'From a letter.',
        'There is no short way to say it in English.'
        );
}

sub _idea {
    return join "\n", '# ' . _one(
        'What if lists were shorter', 'A shelf for unfinished things', 'Less, but on time',
        'Names are the hard part', 'The second draft', 'Keep the boring solution',
        'One idea a page'
        )
        . ', part '
        . _between(1, 12),
        '', join(
        ' ',
        _some(
            2, 'Most of the work is deciding what to leave out.',
            'I should try this for a week before I believe it.',
            'It was simpler before I explained it.',
            'Whoever reads this later: it made sense at the time.',
            'The cheap version answers nine of ten questions.'
        )
        ),
        '', '> ' . _one(@QUOTES);
}

sub _meeting {
    my ($who, $other) = _some(2, @AUTHORS[1 .. $#AUTHORS]);
    return join "\n", "# Notes with \u$who and \u$other, " . _one(@WEEKDAYS), '',
        (
        map { "- $_" } _some(
            3, 'ship the small part first', 'no new dependency before June',
            "\u$who writes the summary",
            'measure, then talk about it again', 'the old page stays until the new one is linked',
            "\u$other asks the printer"
        )
        ),
        '', 'Next time at **' . _between(9, 17) . ':30**.';
}

1;

__END__

=encoding utf8

=head1 NAME

Memo::SampleText - plausible memos for a demonstration

=head1 SYNOPSIS

    srand 3;
    my $markdown = Memo::SampleText::memo();

=cut
