"""Which tests a tier has: what cannot run where it was asked for is no silent pass."""

import conftest
import pytest


@pytest.mark.parametrize(
    ("expression", "asked"),
    [
        ("slow or browser or thirdparty", True),
        ("thirdparty and not slow", True),
        ("not (slow or browser or thirdparty)", False),
        ("slow", False),
        ("", False),
    ],
)
def test_other_peoples_worlds_are_asked_for_by_their_mark(expression: str, asked: bool) -> None:
    assert conftest.asks_for_thirdparty(expression) is asked


def test_without_their_packages_ci_fails_where_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.setattr(conftest, "collect_ignore", ["test_rddl.py"])
    monkeypatch.setattr(pytestconfig.option, "markexpr", "slow or thirdparty")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.UsageError, match=r"test_rddl\.py would be left out: install the"):
        conftest.pytest_configure(pytestconfig)
    monkeypatch.delenv("CI")
    conftest.pytest_configure(pytestconfig)
