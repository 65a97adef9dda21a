-- The memo site's tables. Memo::Database loads them into a database file without tables.

CREATE TABLE user (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE COLLATE NOCASE,
    password_hash TEXT NOT NULL,
    created_at    INTEGER NOT NULL              -- seconds since 1970
);

-- A memo without a public_number is private. The numbers of the public ones run 1, 2, 3 … without
-- a gap (memos are never deleted or changed). So one index answers three questions: how many are
-- there (the largest), which are on page N (a range), and which came after a page was made (the
-- larger ones).
CREATE TABLE memo (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    public_number INTEGER UNIQUE,
    user_id       INTEGER NOT NULL REFERENCES user (id),
    title         TEXT NOT NULL,
    excerpt       TEXT NOT NULL,
    content       TEXT NOT NULL,                -- Markdown as written
    created_at    INTEGER NOT NULL
);
CREATE INDEX memo_of_user ON memo (user_id, id);
CREATE INDEX public_memo_of_user ON memo (user_id, public_number) WHERE public_number IS NOT NULL;

-- Signed-in visitors. The cookie has the token, and the table only its digest. So nobody can use a
-- copy of the database to act as another visitor.
CREATE TABLE session (
    token_digest  TEXT PRIMARY KEY,
    user_id       INTEGER NOT NULL REFERENCES user (id),
    expires_at    INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_expiry ON session (expires_at);

CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
