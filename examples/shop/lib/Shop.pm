package Shop;
use v5.16;
use warnings;

use Dancer2;

use Shop::Basket ();
use Shop::Database ();

my $MOST_OF_ONE = 9;

# Kirin stores the pages of products, which are the same for all visitors. Directives in the layout
# and in the forms show what differs. The key leaves out a query, which a visitor may invent.

get '/' => sub {
    response_header 'Kirin-Store' => 'ttl=3600, key="/"';
    template index => { products => products() };
};

get '/product/:id[Int]' => sub {
    my $product = product(route_parameters->get('id')) or pass;
    my $id = $product->{id};
    response_header 'Kirin-Store' => qq(ttl=3600, key="/product/$id", tags="product-$id");
    template product => { product => $product, title => $product->{name} };
};

# A visitor's first step to a basket: a session with a token for the forms.
get '/basket/new' => sub {
    basket()->start;
    my $product = query_parameters->get('product') // '';
    redirect $product =~ /\A[0-9]{1,9}\z/a ? "/product/$product" : '/basket';
};

get '/basket' => sub { basket_page() };

post '/basket' => sub {
    refuse_forgeries();
    my $quantity = body_parameters->get('quantity') // '';
    send_error "Choose 0 to $MOST_OF_ONE.", 400 if $quantity !~ /\A[0-$MOST_OF_ONE]\z/a;
    basket()->set_quantity(posted_product()->{id}, $quantity);
    redirect '/basket', 303;
};

post '/basket/add' => sub {
    refuse_forgeries();
    my $id = posted_product()->{id};
    my $quantity = basket()->quantities->{$id} // 0;
    basket()->set_quantity($id, $quantity + 1) if $quantity < $MOST_OF_ONE;
    redirect '/basket', 303;
};

post '/order' => sub {
    refuse_forgeries();
    my %customer;
    for my $field (qw(name address)) {
        my $value = body_parameters->get($field) // '';
        $value =~ s/\A\s+|\s+\z//g;
        return basket_page(400, "Write your $field.") if $value !~ /\A[^\0]{1,200}\z/;
        $customer{$field} = $value;
    }
    my ($number, $problem) = place_order(%customer);
    return basket_page(409, $problem) if !defined $number;
    basket()->empty;
    basket()->remember_order($number);
    redirect '/thanks', 303;
};

get '/thanks' => sub {
    my $order = Shop::Database::handle()->selectrow_hashref(
        'SELECT number, name, cents FROM purchase WHERE number = ?',
        undef, basket()->last_order // ''
    ) or redirect '/';
    template thanks => { order => $order, title => 'Thank you' };
};

any qr{.*} => sub {
    status 404;
    template problem => { title => 'Not found', content => 'There is no such page.' };
};

hook before_template_render => sub {
    my ($variables) = @_;
    $variables->{euros} = sub { sprintf '%d.%02d €', $_[0] / 100, $_[0] % 100 };
    return;
};

sub basket { return Shop::Basket->new(request->env) }

sub refuse_forgeries {
    send_error 'This form is not from this site, or it is too old. Go back and reload the page.',
        403
        if !basket()->is_own_token(body_parameters->get('csrf_token'));
    return;
}

sub posted_product {
    return product(body_parameters->get('product')) // send_error 'There is no such product.', 400;
}

sub products {
    return Shop::Database::handle()
        ->selectall_arrayref('SELECT * FROM product ORDER BY name', { Slice => {} });
}

sub product {
    my ($id) = @_;
    return if ($id // '') !~ /\A[0-9]{1,9}\z/a;
    return Shop::Database::handle()
        ->selectrow_hashref('SELECT * FROM product WHERE id = ?', undef, $id);
}

# Returns the lines of the basket with today's prices, and their sum.
sub basket_lines {
    my $quantities = basket()->quantities;
    my @lines;
    my $sum = 0;
    for my $product (grep { $quantities->{ $_->{id} } } @{ products() }) {
        my $quantity = $quantities->{ $product->{id} };
        push @lines, { %$product, quantity => $quantity, sum => $quantity * $product->{cents} };
        $sum += $lines[-1]{sum};
    }
    return (\@lines, $sum);
}

sub basket_page {
    my ($status, $problem) = @_;
    my ($lines, $sum) = basket_lines();
    status $status if $status;
    return template basket => {
        title   => 'Basket', lines => $lines, sum => $sum, most => $MOST_OF_ONE,
        problem => $problem,
        map { $_ => body_parameters->get($_) } qw(name address)
    };
}

# Takes the products from the stock. Returns the number of the order, or nothing and the reason.
sub place_order {
    my (%customer) = @_;
    my ($lines, $sum);
    my $number = Shop::Basket::random();
    my $missing = Shop::Database::transaction(
        sub {
            my ($dbh) = @_;
            ($lines, $sum) = basket_lines();
            my ($short) = grep { $_->{stock} < $_->{quantity} } @$lines;
            return $short if $short || !@$lines;
            $dbh->do(
                'INSERT INTO purchase (number, name, address, cents) VALUES (?, ?, ?, ?)',
                undef, $number, @customer{qw(name address)}, $sum
            );
            my $purchase = $dbh->sqlite_last_insert_rowid;
            for my $line (@$lines) {
                $dbh->do(
                    'INSERT INTO purchase_line VALUES (?, ?, ?, ?)',
                    undef, $purchase, @$line{qw(id quantity cents)}
                );
                $dbh->do(
                    'UPDATE product SET stock = stock - ? WHERE id = ?',
                    undef, @$line{qw(quantity id)}
                );
            }
            return undef;
        }
    );
    return (undef, "There are only $missing->{stock} of “$missing->{name}” left.") if $missing;
    return (undef, 'The basket is empty.') if !@$lines;

    # The order is committed. Kirin purges these pages before the customer gets the response, so
    # nobody sees the old stock after it.
    my $tags = join ' ', map { "product-$_->{id}" } @$lines;
    response_header 'Kirin-Purge' => qq(tags="$tags", keys="/");
    return $number;
}

1;

__END__

=encoding utf8

=head1 NAME

Shop - a shop in Dancer2: products, a basket, orders

=head1 SYNOPSIS

    use Shop ();
    Shop->to_app;

=cut
