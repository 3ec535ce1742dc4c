"""Random changes of a MariaDB database with columns of every type that is compared."""

import random
import time
from contextlib import closing

from tests.live.workers import Workers
from tests.support.mariadb_server import MariaDbServer, pymysql

KEYS = 120
"""The keys of `accounts` that the load changes; the rows of the next ten stay as they are."""
_PAUSE = 0.02
_EXPECTED_FAILURES = (1062, 1205, 1213, 1412)
"""A row that exists already, a lock, a deadlock, a table that was altered a moment ago."""
_BEYOND = 2**64 - 1_000_000
SET_UP = (
    "SET GLOBAL sql_mode = ''",
    "SET GLOBAL time_zone = '+00:00'",
    "SET sql_mode = ''",
    "CREATE TABLE shop.accounts (id bigint unsigned PRIMARY KEY, owner varchar(40) NOT NULL,"
    " balance decimal(18,2) NOT NULL, opened date, flag tinyint(1), b1 bit(1), b9 bit(9), yr year,"
    " f float, d double, doc json, mood enum('sad','so so','a,b'), s set('x','y','z'),"
    " raw varbinary(20), bin4 binary(4), tm time(3), t6 time(6), dt datetime(6), d3 datetime(3),"
    " ts timestamp(3) NULL, zd date NOT NULL, legacy text)",
    "CREATE TABLE shop.transfers (src int, seq int, amount decimal(18,2), memo varchar(80),"
    " at datetime(6), PRIMARY KEY (src, seq))",
    "CREATE TABLE shop.words (word varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n int,"
    " note text CHARACTER SET latin1)",
    "INSERT INTO shop.accounts SELECT seq, concat('owner ', seq), 100,"
    " '2020-01-01' + INTERVAL seq DAY, seq % 2, seq % 2, seq, 2000 + seq % 50, seq / 8, seq / 7,"
    """ concat('{"i":', seq, ', "u": 1.50}'), elt(1 + seq % 3, 'sad', 'so so', 'a,b'),"""
    " elt(1 + seq % 3, 'x', 'x,z', ''), unhex(md5(seq)),"
    " unhex(elt(1 + seq % 2, '01020304', '01000000')), '-01:02:03.004', '800:00:00.000005',"
    " '2026-01-01 00:00:00.000001', '1969-12-31 23:59:59.999', '2026-01-01 00:00:00.5',"
    f" elt(1 + seq % 2, '0000-00-00', '2020-02-03'), 'old' FROM shop.seq_1_to_{KEYS + 10}",
)
CHANGES = (
    "ALTER TABLE shop.accounts ADD COLUMN tier smallint",
    "ALTER TABLE shop.transfers MODIFY amount decimal(24,2)",
    "ALTER TABLE shop.accounts ADD COLUMN note varchar(10)",
    "ALTER TABLE shop.accounts MODIFY note varchar(100)",
    "CREATE TABLE shop.late (id int PRIMARY KEY, price decimal(12,4))",
    "ALTER TABLE shop.words ADD COLUMN big bigint unsigned",
)


class MariaDbLoad:
    """Workers that change the tables from `start` to `stop`."""

    def __init__(self, server: MariaDbServer, seed: int, workers: int = 2) -> None:
        self._server = server
        self._workers = Workers(self._work, seed, workers)
        self.transactions = 0
        self.surprises: list[str] = []

    def start(self) -> None:
        """Begin."""
        self._workers.start()

    def stop(self) -> None:
        """Let every worker end its transaction."""
        self._workers.stop()

    def _work(self, seed: str) -> None:
        dice = random.Random(seed)
        with closing(self._server.connect()) as connection, connection.cursor() as cursor:
            while not self._workers.stopped.is_set():
                statements = _transaction(dice)
                try:
                    cursor.execute("BEGIN")
                    for statement in statements:
                        cursor.execute(statement)
                    cursor.execute("ROLLBACK" if dice.random() < 0.1 else "COMMIT")
                    self.transactions += 1
                except pymysql.Error as error:
                    cursor.execute("ROLLBACK")
                    if error.args[0] not in _EXPECTED_FAILURES:
                        self.surprises.append(f"{statements}: {error}")
                time.sleep(_PAUSE)


def _transaction(dice: random.Random) -> list[str]:
    key, other, cents = dice.randint(1, KEYS), dice.randint(1, KEYS), dice.randint(-9999, 9999)
    word = dice.choice("abcdefgh") + dice.choice("abAB")
    accounts, words = "shop.accounts", "shop.words"
    return dice.choice(
        [
            [
                f"UPDATE {accounts} SET balance = balance - {cents}.25, f = rand() * {cents},"
                f" d = rand() * {cents}, dt = now(6), ts = now(3) WHERE id = {key}",
                f"UPDATE {accounts} SET balance = balance + {cents}.25 WHERE id = {other}",
                f"INSERT IGNORE INTO shop.transfers SELECT {key}, coalesce(max(seq), 0) + 1,"
                f" {cents}.5, repeat('m', {cents % 50}), now(6) FROM shop.transfers"
                f" WHERE src = {key}",
            ],
            [f"DELETE FROM {accounts} WHERE id = {key}"],
            [
                f"INSERT IGNORE INTO {accounts} (id, owner, balance, b9, f, raw, bin4, mood, zd)"
                f" VALUES ({key}, 'again ü', 0, b'100000001', 0.1, unhex('00ff'),"
                " unhex('0a000000'), 'a,b', '0000-00-00')"
            ],
            [f"UPDATE IGNORE {accounts} SET id = id + {_BEYOND} WHERE id = {key}"],
            [f"UPDATE IGNORE {accounts} SET id = {key} WHERE id = {key} + {_BEYOND}"],
            [
                f"UPDATE {accounts} SET opened = NULL, flag = NULL, b1 = NULL, doc = NULL,"
                " s = 'y,z', tm = '23:59:59.999', yr = NULL, legacy = repeat('ü😀', 9)"
                f" WHERE id = {key}"
            ],
            [f"REPLACE INTO {words} (word, n, note) VALUES ('{word}', {cents}, 'é{cents}')"],
            [f"DELETE FROM {words} WHERE word = '{word}'"],
            [f"UPDATE IGNORE {words} SET word = upper(word), n = n + 1 WHERE word = '{word}'"],
            [f"DELETE FROM shop.transfers WHERE src = {key} ORDER BY seq LIMIT 2"],
        ]
    )
