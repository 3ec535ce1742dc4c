"""Random changes of a database whose tables differ in all that a change stream can show of them.

Everything follows from the seed but the order in which the workers' statements meet.
"""

import random
import time
from collections import Counter
from collections.abc import Callable

from tests.live.workers import Workers
from tests.support.postgres_client import PostgresClient, SqlError
from tests.support.postgres_server import PostgresServer

SCHEMA = "bank"
KEYS = 120
"""The keys of `accounts` that the load changes; the rows of the next ten stay as they are."""
_PAUSE = 0.004
# What workers may meet while others work: a row that is there already, a deadlock, a column or
# table that was renamed a moment ago.
_EXPECTED_FAILURES = ("23505", "40P01", "42703", "42P01", "0A000")
SET_UP = f"""
CREATE SCHEMA bank;
SET search_path = bank;
CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy, very');
CREATE TABLE accounts (id bigint PRIMARY KEY, owner text NOT NULL, balance numeric(18,2) NOT NULL,
  opened date, flags text[], updated timestamptz, doc jsonb, feeling mood, score real,
  active boolean, alarm time, legacy text, gone text);
CREATE TABLE transfers (src bigint, seq bigint, dst bigint NOT NULL, amount numeric(18,2) NOT NULL,
  at timestamp(3), exact timestamp, memo varchar(80), PRIMARY KEY (src, seq));
ALTER TABLE transfers REPLICA IDENTITY FULL;
CREATE TABLE sessions (token uuid PRIMARY KEY, account bigint, big text, raw bytea, hits int,
  seen timestamptz, tags text[], extra jsonb);
ALTER TABLE sessions ALTER big SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL,
  ALTER tags SET STORAGE EXTERNAL, ALTER extra SET STORAGE EXTERNAL;
CREATE TABLE branches (code char(4), region varchar(10), n int, ratio double precision, parts int[],
  PRIMARY KEY (region, code));
CREATE TABLE staging (id int PRIMARY KEY, v numeric, at timestamp);
CREATE TABLE journal (at timestamptz, what text, amount bigint);
CREATE TABLE "Odd Names" ("Key %" int PRIMARY KEY, "Üml äut" text, "it's `odd`" text, "select" int,
  "when.at" timestamp);
CREATE TABLE readings (day date, sensor int, value double precision, PRIMARY KEY (day, sensor))
  PARTITION BY RANGE (day);
CREATE TABLE readings_old PARTITION OF readings FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
CREATE TABLE readings_new PARTITION OF readings FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
INSERT INTO accounts SELECT i, 'owner ' || i, 100, date '2020-01-01' + i, ARRAY['a', NULL, 'ü'],
  now(), jsonb_build_object('i', i), 'so so', i / 7.0, i % 2 = 0, '01:02:03.000004', 'old', 'gone'
  FROM generate_series(1, {KEYS + 10}) i;
INSERT INTO branches SELECT lpad(i::text, 4, '0'), 'r' || i % 3, 0, i / 7.0, ARRAY[i, i + 1]
  FROM generate_series(1, 12) i;
"""
# New columns with a default, and renamed ones, are unknown to the stream until a row is written.
CHANGES = (
    "ALTER TABLE bank.accounts ADD COLUMN tier smallint",
    "ALTER TABLE bank.transfers RENAME memo TO remark",
    "ALTER TABLE bank.accounts ALTER tier TYPE int;"
    " UPDATE bank.accounts SET tier = 100000 WHERE id % 3 = 0",
    "ALTER TABLE bank.sessions ALTER hits TYPE bigint;"
    " UPDATE bank.sessions SET hits = hits + 5000000000",
    "ALTER TABLE bank.accounts ADD COLUMN note varchar(10) NOT NULL DEFAULT 'none';"
    " UPDATE bank.accounts SET note = note",
    "CREATE TABLE bank.late (id int PRIMARY KEY, at timestamptz, price numeric(12,4));"
    " INSERT INTO bank.late SELECT i, now(), i / 3.0 FROM generate_series(1, 40) i",
    "ALTER TABLE bank.transfers ALTER amount TYPE numeric(24,2);"
    " UPDATE bank.transfers SET amount = amount + 1234567890123456789012",
    "ALTER TABLE bank.branches RENAME n TO visits; UPDATE bank.branches SET visits = visits",
    "ALTER TABLE bank.accounts DROP legacy, DROP gone",
    "ALTER TABLE bank.accounts ALTER note TYPE varchar(100);"
    " UPDATE bank.accounts SET note = repeat('ü', 60) WHERE id % 5 = 0",
    "ALTER TABLE bank.accounts ALTER score TYPE double precision;"
    " UPDATE bank.accounts SET score = score",
)


class Load:
    """Workers that change the tables from `start` to `stop`."""

    def __init__(self, server: PostgresServer, seed: int, workers: int = 2) -> None:
        self._server = server
        self._workers = Workers(self._work, seed, workers)
        self.outcomes: Counter[str] = Counter()
        self.surprises: list[str] = []

    def start(self) -> None:
        """Begin."""
        self._workers.start()

    def stop(self) -> None:
        """Let every worker end its statement."""
        self._workers.stop()

    @property
    def transactions(self) -> int:
        """The statements that succeeded."""
        return self.outcomes.total()

    def _work(self, seed: str) -> None:
        dice = random.Random(seed)
        with self._server.connect() as client:
            client.run(f"SET search_path = {SCHEMA}; SELECT setseed({dice.random()})")
            while not self._workers.stopped.is_set():
                self._run_one(client, dice)
                time.sleep(_PAUSE)

    def _run_one(self, client: PostgresClient, dice: random.Random) -> None:
        [make] = dice.choices(list(STATEMENTS), [*STATEMENTS.values()])
        sql = make(dice)
        try:
            client.run(sql)
            self.outcomes[make.__name__] += 1
        except SqlError as failure:
            client.run("ROLLBACK")
            if not str(failure).startswith(_EXPECTED_FAILURES):
                self.surprises.append(f"{sql}: {failure}")


def _transfer(dice: random.Random) -> str:
    one, other = sorted((dice.randint(1, KEYS), dice.randint(1, KEYS)))
    cents = dice.randint(-99999, 99999)
    return (
        f"BEGIN; UPDATE accounts SET balance = balance - {cents}.25, updated = clock_timestamp()"
        f" WHERE id = {one}; UPDATE accounts SET balance = balance + {cents}.25 WHERE id = {other};"
        f" INSERT INTO transfers SELECT {one}, coalesce(max(seq), 0) + 1, {other}, {cents}.25,"
        f" localtimestamp, clock_timestamp(), repeat('m', {dice.randint(0, 60)})"
        f" FROM transfers WHERE src = {one}; COMMIT"
    )


def _rolled_back(dice: random.Random) -> str:
    return (
        f"BEGIN; DELETE FROM accounts WHERE id = {dice.randint(1, KEYS)}; SAVEPOINT half;"
        " DELETE FROM branches; ROLLBACK TO half; DELETE FROM staging; ROLLBACK"
    )


def _account(dice: random.Random) -> str:
    key = dice.randint(1, KEYS)
    return dice.choice(
        [
            f"DELETE FROM accounts WHERE id = {key}",
            f"INSERT INTO accounts (id, owner, balance) VALUES ({key}, 'again', 0)",
            f"BEGIN; DELETE FROM accounts WHERE id = {key}; INSERT INTO accounts (id, owner,"
            f" balance, opened) VALUES ({key}, 'reopened', -1, '0044-03-15'); COMMIT",
            f"UPDATE accounts SET id = id + {KEYS * 10} WHERE id = {key}",
            f"UPDATE accounts SET id = {key} WHERE id = {key + KEYS * 10}",
            f"BEGIN; UPDATE accounts SET id = -id WHERE id = {key}; UPDATE accounts SET id = -id,"
            f" owner = 'there and back' WHERE id = -{key}; COMMIT",
            f"UPDATE accounts SET doc = NULL, flags = NULL, feeling = NULL WHERE id = {key}",
            f"""UPDATE accounts SET doc = '{{"a": [1, 2.50, "ü"], "b": null}}', flags = '{{}}',"""
            f" feeling = 'happy, very', score = 'Infinity', alarm = '23:59:59.999999',"
            f" owner = '__%\"\\{dice.randint(0, 9)}😀' WHERE id = {key}",
        ]
    )


def _session(dice: random.Random) -> str:
    token, other, third = (f"md5('{number}')::uuid" for number in dice.sample(range(80), 3))
    parts = "(SELECT {}(md5(random()::text){}) FROM generate_series(1, 120))"
    big, tags = parts.format("string_agg", ", ''"), parts.format("array_agg", "")
    extra = parts.format("jsonb_agg", "")
    move = "UPDATE sessions SET token = {1}, hits = hits + 1 WHERE token = {0}"
    return dice.choice(
        [
            f"INSERT INTO sessions VALUES ({token}, 1, {big}, {big}::bytea, 1, now(), {tags},"
            f" {extra}) ON CONFLICT (token) DO UPDATE SET hits = sessions.hits + 1",
            f"UPDATE sessions SET hits = hits + 1, seen = clock_timestamp() WHERE token = {token}",
            f"UPDATE sessions SET big = {big}, tags = NULL WHERE token = {token}",
            f"UPDATE sessions SET tags = {tags}, extra = {extra} WHERE token = {token}",
            f"DELETE FROM sessions WHERE token = {token}",
            # A change of the key leaves out the large values that it does not change.
            move.format(token, other),
            f"UPDATE sessions SET token = {other}, big = {big} WHERE token = {token}",
            f"BEGIN; {move.format(token, other)}; {move.format(other, third)}; COMMIT",
            f"BEGIN; UPDATE sessions SET raw = {big}::bytea WHERE token = {token};"
            f" {move.format(token, other)}; INSERT INTO sessions (token, big) VALUES ({token},"
            f" {big}); {move.format(other, third)}; COMMIT",
        ]
    )


def _branch(dice: random.Random) -> str:
    region = f"region = 'r{dice.randint(0, 2)}'"
    return dice.choice(
        [
            f"UPDATE branches SET ratio = ratio * 1.01, parts = parts || 1 WHERE {region}",
            f"UPDATE branches SET parts = '{{7}}' WHERE {region}",
            f"UPDATE branches SET n = n + 1 WHERE {region}",
            f"UPDATE branches SET visits = visits + 1 WHERE {region}",
            f"UPDATE branches SET region = 'r{dice.randint(0, 2)}'"
            f" WHERE code = '{dice.randint(1, 12):04}'",
        ]
    )


def _staged(dice: random.Random) -> str:
    if dice.random() < 0.1:
        return "TRUNCATE staging"
    first = dice.randint(1, 200)
    return (
        f"INSERT INTO staging SELECT i, random() * 1e{dice.randint(-9, 9)}, localtimestamp"
        f" FROM generate_series({first}, {first + dice.randint(0, 30)}) i"
        " ON CONFLICT (id) DO UPDATE SET v = excluded.v"
    )


def _noted(dice: random.Random) -> str:
    amount = dice.randint(-(2**62), 2**62)
    return f"INSERT INTO journal VALUES (clock_timestamp(), md5(random()::text), {amount})"


def _irregular(dice: random.Random) -> str:
    key = dice.randint(1, 30)
    table = '"Odd Names"'
    return dice.choice(
        [
            f"""INSERT INTO {table} VALUES ({key}, 'ä', '"', {key}, localtimestamp)""",
            f'UPDATE {table} SET "Key %" = {dice.randint(1, 30)} WHERE "Key %" = {key}',
            f"""UPDATE {table} SET "it's `odd`" = NULL, "Üml äut" = 'ß' WHERE "Key %" = {key}""",
            f'DELETE FROM {table} WHERE "Key %" = {key}',
            f"TRUNCATE {table}, staging" if key == 1 else f'UPDATE {table} SET "select" = 0',
        ]
    )


def _reading(dice: random.Random) -> str:
    day = f"date '2025-12-20' + {dice.randint(0, 24)}"
    return dice.choice(
        [
            f"INSERT INTO readings VALUES ({day}, {dice.randint(1, 5)}, random())",
            f"UPDATE readings SET value = value / 3 WHERE day = {day}",
            f"UPDATE readings SET day = {day} WHERE day = date '2025-12-20'"
            f" + {dice.randint(0, 24)} AND sensor = {dice.randint(1, 5)}",
            f"DELETE FROM readings WHERE day = {day} AND sensor = {dice.randint(1, 5)}",
        ]
    )


STATEMENTS: dict[Callable[[random.Random], str], int] = {
    _transfer: 30,
    _rolled_back: 2,
    _account: 15,
    _session: 25,
    _branch: 10,
    _staged: 10,
    _noted: 6,
    _irregular: 8,
    _reading: 12,
}
