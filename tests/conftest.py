"""Shapes must be meant: rank promotion raises. Property tests do not race the machine's clock."""

import importlib.util
import os
import signal

os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import jax
import pytest
from _pytest.mark.expression import Expression

# Tests of other people's worlds need the extra `envs`, which `make test-all` installs.
NEEDED = {"test_mobile.py": "mobile_env", "test_rddl.py": "pyRDDLGym"}
collect_ignore = [file for file, name in NEEDED.items() if importlib.util.find_spec(name) is None]


def pytest_configure(config):
    if os.environ.get("CI") and collect_ignore and asks_for_thirdparty(config.option.markexpr):
        raise pytest.UsageError(
            f"{', '.join(collect_ignore)} would be left out: install the extra envs"
        )


def asks_for_thirdparty(expression):
    """Whether `-m expression` selects tests that have this mark alone."""
    asked = expression and Expression.compile(expression)
    return bool(asked) and asked.evaluate(lambda name, **_: name == "thirdparty")


# A shell without job control ignores Ctrl-C in what it starts in the background, and so would all
# that the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("steady", deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.load_profile("steady")


@pytest.fixture(autouse=True, scope="module")
def _compiled_code_is_let_go():
    """Hundreds of compiled programs of one file would stay in memory beside the next file's."""
    yield
    jax.clear_caches()
