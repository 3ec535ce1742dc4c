"""Tests of connections to source databases."""

import pytest

from ingestd.compare.drivers import mysql_parameters


def test_a_password_of_the_environment_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", "a%41b")
    assert mysql_parameters("mysql://reader@db/shop")["password"] == "a%41b"


def test_a_password_of_the_url_is_decoded_and_takes_precedence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MYSQL_PWD", "other")
    assert mysql_parameters("mysql://reader:a%41b@db/shop")["password"] == "aAb"
