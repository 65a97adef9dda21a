CREATE TABLE product (
    id    INTEGER PRIMARY KEY,
    name  TEXT    NOT NULL,
    text  TEXT    NOT NULL,
    cents INTEGER NOT NULL,
    stock INTEGER NOT NULL CHECK (stock >= 0)
);

-- `number` is what a customer sees. It cannot be guessed.
CREATE TABLE purchase (
    id      INTEGER PRIMARY KEY,
    number  TEXT    NOT NULL UNIQUE,
    name    TEXT    NOT NULL,
    address TEXT    NOT NULL,
    cents   INTEGER NOT NULL
);

CREATE TABLE purchase_line (
    purchase INTEGER NOT NULL REFERENCES purchase (id),
    product  INTEGER NOT NULL REFERENCES product (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    cents    INTEGER NOT NULL,
    PRIMARY KEY (purchase, product)
) WITHOUT ROWID;
