# The shop, with sessions in Kirin's store.
use v5.16;
use warnings;

use FindBin ();
use lib "$FindBin::Bin/../lib";

use Plack::Builder;
use Shop ();

builder {
    # Visitors who only look get no session and no cookie.
    enable 'Session::Kirin',
        cookie_name => 'shop_session', keep_empty => 0, ttl => 7 * 86_400, expires => 7 * 86_400,
        httponly    => 1,
        samesite    => 'Lax';
    Shop->to_app;
};
