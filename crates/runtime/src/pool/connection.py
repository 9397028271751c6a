"""Connecting to a Ray cluster, with advice for the user when that fails."""

import contextlib
import os
import socket
import time
from urllib.parse import urlsplit

from warpsmith_pool_access import objection

# How long an address may take to accept a connection, in seconds.
REACH = 5

VERSION = "2.60.0"


class Unfit(Exception):
    """An error: the pool cannot be used. Its text says what the user can do."""


class Unready(Unfit):
    """An error: the pool cannot be used yet. Its head answers, but the process that the head starts for this client
    does not. Ray forks that process while threads of gRPC run, so it sometimes hangs."""


def connect(options):
    """Connects. Transient failures, such as a broken link, are retried until the pool's time to get ready is over."""
    deadline = time.monotonic() + options["start"]
    while True:
        try:
            return connect_once(options["address"])
        except Unfit as error:
            if time.monotonic() >= deadline or not (options["again"] or isinstance(error, Unready)):
                raise
            time.sleep(1)


def connect_once(address):
    # Ray reads these variables when it is imported. They disable its usage reports and the upload of the user's folder.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        import sys

        install = f"{sys.executable} -m pip install 'ray[client]==VERSION', in the version that the cluster has"
        raise Unfit(f"{sys.executable} cannot import ray ({error}): {install} (tested with {VERSION})") from None
    reach(address)
    try:
        ray.init(address, namespace="warpsmith", log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        # A half-open connection would make the next attempt fail.
        with contextlib.suppress(Exception):
            ray.shutdown()
        is_late = address.startswith("ray://") and isinstance(error, ConnectionError)
        raise (Unready if is_late else Unfit)(f"Ray does not connect to {address}: {ends(error)}{hint(error)}") from None


def reach(address):
    """Checks that the address accepts connections from us. Ray itself would wait for minutes before it fails."""
    if address == "auto":
        return
    place = urlsplit(address if "://" in address else f"//{address}")
    host, port = place.hostname, place.port or 10001
    try:
        socket.create_connection((host, port), REACH).close()
    except (OSError, ValueError) as error:
        raise Unfit(
            f"nothing answers at {address} ({error}): is `ray start --head` running there, and is the port open from here?"
        ) from None
    if why := objection(host, port, place.scheme == "ray"):
        raise Unfit(f"{address}: {why}")


def first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def ends(error):
    """The first line of an error, and also the last if the first ends in a colon: a traceback ends with its reason."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return f"{lines[0]} {lines[-1]}" if len(lines) > 1 and lines[0].endswith(":") else first_line(error)


def hint(error):
    text = str(error).lower()
    if "version" in text:
        return "; this Python and its ray must have the versions of the cluster's"
    if "token" in text or "auth" in text:
        return "; the cluster wants a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH as it does"
    if "could not find any running ray instance" in text:
        return "; start one with `ray start --head`, or set `evaluator.pool` to its address"
    return ""
