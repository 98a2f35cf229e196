"""The house rules that no linter knows. A rule is changed here, never bent elsewhere."""

import ast
import re
import runpy
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from ottla.broker.settings.topic_config import TopicConfig
from ottla.broker.wire.apis import APIS, Way
from ottla.metadata.configs.catalogue import BROKER_CONFIGS, TOPIC_CONFIGS, TOPIC_SYNONYMS
from ottla.metadata.configs.definition import Service

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "ottla"
UNIT = ROOT / "tests" / "unit"

FILE_LINES_MAX = 500
FILE_LINES_WARNED = 400  # A reason to look for a second subject.
FUNCTION_LINES_MAX = 50
FAN_OUT_MAX = 12
PUBLIC_METHODS_MAX = 25

# Not counted as fan-out: names for numbers and error codes, and the classes of wire messages.
# They have no behaviour to depend on, and a module that answers nine APIs has to name nine.
VOCABULARY = ("ottla.model.", "ottla.protocol.messages")

# Modules whose one task is to know many others: they construct them, or route to them, and have no
# logic of their own. Everything else receives what it uses.
COMPOSITION_ROOTS = {
    "broker/handlers/context.py": "one protocol that names the context of every room",
    "broker/node/broker.py": "constructs every part of a broker",
    "broker/node/process.py": "constructs the environment of a broker's process",
    "groups/coordinator.py": "routes each command of a group to its subject",
    "quorum/machine.py": "routes each event of the quorum to its subject",
    "metadata/configs/catalogue.py": "joins the tables of settings",
    "metadata/decisions/controller.py": "routes each request to the subject that decides it",
    "simulation/runs/run.py": "constructs a simulated world",
}

# Modules without a unit test of their own, and what tests them instead.
TESTED_ELSEWHERE = {
    "protocol/messages/*.py": "tests/unit/protocol/test_messages.py takes them all",
    "quorum/role_changes.py": "test_elections.py and test_follower_fetch.py go through it",
    "storage/producer_history.py": "test_loader.py, test_recovery.py and test_log.py go through it",
    "metadata/configs/*.py": "tests/unit/metadata/configs/test_catalogue.py takes every table",
    **{
        f"cdc/{name}.py": "tests/cdc has a real PostgreSQL"
        for name in (
            "catalogue",
            "rights",
            "rows",
            "setup",
            "slot_reader",
            "snapshot",
            "stream",
            "tail",
        )
    },
}

# Served settings that another attribute of Settings stands for, or that are only checked.
RESOLVED_BY_SETTINGS = {
    "broker.id",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "log.dir",
    "log.flush.scheduler.interval.ms",
    "log.retention.hours",
    "log.retention.minutes",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "process.roles",
    "security.inter.broker.protocol",
}

# Above a limit, with what they have: it may only go down.
WIDE_MODULES = {
    "broker/handlers/produce.py": 13,
    "broker/partitions/partitions.py": 13,
    "broker/wire/dispatch.py": 15,
    "cdc/slot_reader.py": 13,
    "cdc/tail.py": 14,
    "simulation/clients/group_workload.py": 16,
    "simulation/clients/workload.py": 15,
    "simulation/world/machine.py": 13,
}
WIDE_CLASSES = {
    "broker/partitions/replicated_partition.py ReplicatedPartition": 26,
    "simulation/world/disk.py SimulatedDisk": 29,
}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def project_files() -> list[Path]:
    """Every text file that belongs to the project."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listed.stdout.splitlines()
    if listed.returncode or not names:  # An unpacked archive has no repository.
        names = [relative(path) for path in (*SOURCE.rglob("*.py"), *UNIT.rglob("*.py"))]
    suffixes = {".py", ".md", ".toml", ".txt", ".in", ".yaml", ".yml", ".java", ".xml", ".c", ""}
    paths = [ROOT / name for name in names]
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the signature: a command's options and their help are a table, not code."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.filterwarnings("default")
def test_no_module_is_too_long() -> None:
    lines = {relative(path): len(path.read_text().splitlines()) for path in modules()}
    for path, count in lines.items():
        if count > FILE_LINES_WARNED:
            warnings.warn(f"{path}: {count} lines, a second subject?", stacklevel=1)
    long = [path for path, count in lines.items() if count > FILE_LINES_MAX]
    assert not long, f"split by subject: {long}"


def project_imports(path: Path, names: set[str]) -> set[str]:
    """Modules and packages of the project that a module names, wherever it imports them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {member if member in names else node.module for member in members}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("ottla.")}


def test_no_module_imports_too_many_others() -> None:
    paths = [*modules(), *SOURCE.rglob("__init__.py")]
    names = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in paths
    }
    wide = {}
    for path in modules():
        imported = project_imports(path, names)
        count = len([name for name in imported if not name.startswith(VOCABULARY)])
        if count > FAN_OUT_MAX:
            wide[path.relative_to(SOURCE).as_posix()] = count
    assert not set(COMPOSITION_ROOTS) - set(wide), "these are no longer wide: take them out"
    allowed = WIDE_MODULES | dict.fromkeys(COMPOSITION_ROOTS, 100)
    wide = {path: count for path, count in wide.items() if count > allowed.get(path, 0)}
    assert not wide, f"give these what they use, or split them by subject: {wide}"


def test_no_class_has_too_many_public_methods() -> None:
    wide = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                name = f"{path.relative_to(SOURCE).as_posix()} {node.name}"
                count = len(public_methods(node))
                if count > max(PUBLIC_METHODS_MAX, WIDE_CLASSES.get(name, 0)):
                    wide[name] = count
    assert not wide, f"split by subject: {wide}"


def public_methods(node: ast.ClassDef) -> set[str]:
    """Properties count: they are what a reader of the class has to know, too."""
    methods = (
        each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {method.name for method in methods if not method.name.startswith("_")}


def test_no_function_is_too_long() -> None:
    long = [
        f"{relative(path)}:{function.lineno} {function.name}"
        for path in modules()
        for function in functions(ast.parse(path.read_text()))
        if _body_lines(function) > FUNCTION_LINES_MAX
    ]
    assert not long, f"take steps out of: {long}"


def test_every_module_says_what_it_is() -> None:
    silent = [
        relative(path)
        for path in SOURCE.rglob("*.py")
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert not silent, f"begin with a sentence: {silent}"


DECISIONS_MIN = 6
DECIDING = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.Match, ast.comprehension)


def has_logic(path: Path) -> bool:
    """False for a module that takes few decisions: the tests of whoever uses it are its tests."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return sum(isinstance(node, DECIDING) for node in nodes) >= DECISIONS_MIN


def test_every_module_with_logic_has_its_unit_test() -> None:
    missing = []
    for path in filter(has_logic, modules()):
        module = path.relative_to(SOURCE)
        test = UNIT / module.parent / f"test_{module.name}"
        if not test.exists() and not any(module.match(pattern) for pattern in TESTED_ELSEWHERE):
            missing.append(relative(test))
    assert not missing, f"write these, or say in TESTED_ELSEWHERE why not: {missing}"


def test_every_unit_test_has_its_module() -> None:
    stray = []
    rows = {api.key.name.lower() for api in APIS.values()}  # An API may have no other module.
    for path in UNIT.rglob("test_*.py"):
        module = path.relative_to(UNIT)
        subject = SOURCE / module.parent / module.name.removeprefix("test_")
        is_row = module.stem.removeprefix("test_") in rows
        if not subject.exists() and not subject.with_suffix("").is_dir() and not is_row:
            stray.append(relative(path))
    assert not stray, f"mirror the source: {stray}"


def test_nothing_bears_a_name_that_says_nothing() -> None:
    vague = {"utils.py", "helpers.py", "common.py", "manager.py", "misc.py"}
    assert not [relative(path) for path in modules() if path.name in vague]


def test_every_handler_is_in_the_api_table() -> None:
    handlers = {path.stem for path in (SOURCE / "broker" / "handlers").glob("[!_]*.py")}
    named = {a.key.name.lower() for a in APIS.values() if Way.HANDLER in (a.broker, a.controller)}
    assert handlers - {"context"} == named


def test_the_page_of_settings_is_what_the_definitions_say() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "settings_page.py"))["page"]()
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert page == written, "run: python docs/settings_page.py"
    shown = [n for n, d in BROKER_CONFIGS.items() if not d.is_internal] + list(TOPIC_CONFIGS)
    assert not [name for name in shown if f"`{name}`" not in page]


METRICS = ("metrics/metrics", "metrics/cluster_gauges", "node/gauges")


def test_every_metric_is_documented() -> None:
    code = "".join((SOURCE / "broker" / f"{name}.py").read_text() for name in METRICS)
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    names = set(re.findall(r'"(ottla_\w+)"', code))
    assert names
    assert names == set(re.findall(r"`(ottla_\w+)", page))


def test_every_option_of_the_tools_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "tools.md").read_text()
    commands = (SOURCE / "cli" / "commands").glob("[!_]*.py")
    tools = [path for path in commands if path.stem not in ("up", "start", "format", "simulate")]
    shown = [
        option
        for path in (SOURCE / "cli" / "tasks" / "client_options.py", *tools)
        for option in re.findall(r'"(--?[a-zA-Z][a-z-]*)', path.read_text())
    ]
    assert len(shown) > 50
    assert not [option for option in shown if f"`{option}`" not in page]


def test_every_served_setting_is_served_by_someone() -> None:
    aside = {SOURCE / "broker" / "settings.py", SOURCE / "broker" / "listeners.py"}
    code = "\n".join(path.read_text() for path in modules() if path not in aside)
    words = set(re.findall(r"\w+", code))
    behind_topics = {
        broker_name
        for name, broker_name in TOPIC_SYNONYMS.items()
        if name.replace(".", "_") in {field.name for field in fields(TopicConfig)}
    }
    idle = [
        name
        for name, definition in BROKER_CONFIGS.items()
        if definition.service is Service.SERVED
        and name.replace(".", "_") not in words
        and name not in RESOLVED_BY_SETTINGS | behind_topics
    ]
    assert not idle, f"nothing reads these, so they are not served: {idle}"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(?<![\w.~])/(?:home|root|Users|work)/\w", "a path of somebody's machine"),
        (r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b", "work left undone"),
        (r"^(?:<{7}|>{7}) ", "a merge left undone"),
    ],
)
def test_no_file_holds(pattern: str, why: str) -> None:
    found = [
        f"{relative(path)}:{number}"
        for path in project_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert not found, f"{why}: {found}"
