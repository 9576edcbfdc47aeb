"""The journal's tables. A change raises VERSION and says how an older file is brought up to it."""

VERSION = 1
"""SQLite's `user_version` of the file."""

SCHEMA = """
CREATE TABLE kv (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL
);

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    subject TEXT NOT NULL,
    closure TEXT NOT NULL,
    tier TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'cancelled', 'interrupted', 'failed')),
    step TEXT NOT NULL DEFAULT ''
);
CREATE INDEX jobs_running ON jobs (state) WHERE state = 'running';

CREATE TABLE verdicts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    closure TEXT NOT NULL,
    candidate TEXT NOT NULL,
    workload TEXT NOT NULL,
    platform TEXT NOT NULL,
    tier TEXT NOT NULL,
    payload BLOB NOT NULL
);
CREATE INDEX verdicts_key ON verdicts (closure, candidate, workload, platform, tier, id);

CREATE TABLE traces (
    closure TEXT NOT NULL,
    workload TEXT NOT NULL,
    platform TEXT NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (closure, workload, platform)
) WITHOUT ROWID;

CREATE TABLE rejections (
    suggestion TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    skill TEXT NOT NULL,
    kernel TEXT NOT NULL,
    reason TEXT NOT NULL
) WITHOUT ROWID;
"""
