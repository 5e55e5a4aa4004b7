"""A branch of a table: a table of its own with the rows of one version, which can be written and read as any other.

It has the files of that version under the same names, as links, so that nothing is copied. A store has no links: there
its log names the files where they are, by their URLs, as that of a shallow clone does. What was done to it becomes the
actions of one commit to the table that it is a branch of; new files go there as links, too, or as copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import quote, unquote

from penstock.errors import NotSupportedError
from penstock.storage.commits import actions_of
from penstock.storage.data_files import is_elsewhere
from penstock.storage.deletion_vectors import stored_at, unique_id
from penstock.storage.delta_log import Snapshot, snapshot_of
from penstock.storage.files import files_of
from penstock.storage.locations import store_of
from penstock.storage.log_listing import LOG
from penstock.storage.log_replay import Action
from penstock.storage.log_writer import put, removed, said
from penstock.storage.runs import RUN

_FEATURES = {
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors",
    "generatedColumns", "identityColumns", "invariants", "timestampNtz", "typeWidening", "v2Checkpoint",
    "vacuumProtocolCheck",
}  # fmt: skip
"""What a branch says of itself as its table does, by metadata and files alone."""


def check_can_branch(table: Snapshot, name: str) -> None:
    """An error for a table whose commits must say more than a branch can tell."""
    unknown = sorted(table.writer_features - _FEATURES)
    if unknown:
        raise NotSupportedError(
            f"table {name!r} has Delta's feature {unknown[0]!r}, and such tables cannot be written in a transaction or "
            "read by IMMEDIATE views. Write it by single statements, or make a table without it."
        )
    if any(is_elsewhere(path) for path in table.state.adds):
        raise NotSupportedError(
            f"table {name!r} has files outside of the warehouse's own directory, and cannot be written in a "
            "transaction. Copy it into a table made by CREATE TABLE .. AS SELECT."
        )


def make_branch(table: Snapshot, path: str) -> None:
    """Make a branch of a version in a new directory; nothing is left there if that fails."""
    files = files_of(path)
    own = (
        table.state.adds.values() if files.local else [_from_outside(table.path, a) for a in table.state.adds.values()]
    )
    adds = [{"add": {**add, "dataChange": True}} for add in own]
    actions = [said("CLONE"), {"protocol": table.state.protocol}, {"metaData": table.state.metadata}, *adds]
    try:
        files.begin(LOG)
        if files.local:
            files.take(table.path, _files_of(own))
        put(path, 0, actions)
    except BaseException:
        with suppress(OSError):
            files.delete_folder()
        raise


def change_of(table: Snapshot, path: str) -> list[Action]:
    """What was done to a branch, as actions on its table; empty if nothing was. No file is moved yet.

    One commit is repeated word for word. Of several, only what came of them is told: a file that came and went again is
    not in it, and a row that was updated has gone and come.
    """
    branch = snapshot_of(path)
    if branch.version == 0:
        return []
    own = {f"{table.path}/{unquote(name)}": add for name, add in table.state.adds.items()}
    if branch.version == 1:
        return [_from_inside(own, action) for action in actions_of(path, 1) if "commitInfo" not in action]
    now = [_from_inside(own, {"add": add})["add"] for add in branch.state.adds.values()]
    before, after = _logical(table.state.adds), _logical({add["path"]: add for add in now})
    told: list[Action] = []
    if branch.state.protocol != table.state.protocol:
        told.append({"protocol": branch.state.protocol})
    if branch.state.metadata != table.state.metadata:
        told.append({"metaData": branch.state.metadata})
    told += [removed(add) for file, add in before.items() if file not in after]
    return told + [{"add": {**add, "dataChange": True}} for file, add in after.items() if file not in before]


def take_files(table: Snapshot, path: str, actions: Iterable[Action]) -> None:
    """Have the new files that some actions add in the table's directory too."""
    named = [action[kind] for action in actions for kind in ("add", "cdc") if kind in action]
    files_of(table.path).take(path, _files_of(named) - _files_of(table.state.adds.values()))


def _from_outside(root: str, add: Action) -> Action:
    """What the log of a table says of a file, as that of another table in the same store says it."""
    store = store_of(root)
    place = store + quote(root[len(store) :])
    vector = add.get("deletionVector")
    if vector is not None and vector["storageType"] == "u":
        vector = {**vector, "storageType": "p", "pathOrInlineDv": f"{place}/{quote(str(stored_at(vector)))}"}
    return {**add, "path": f"{place}/{add['path']}", **({} if vector is None else {"deletionVector": vector})}


def _from_inside(own: Mapping[str, Action], action: Action) -> Action:
    """The reverse: an action of a branch as the log of its table says it; ``own``: the table's files by their URLs."""
    kind = next(iter(action))
    told = action[kind]
    add = own.get(unquote(told.get("path", "")))
    if add is None:
        return action
    vector = told.get("deletionVector")
    same = vector is not None and vector["storageType"] == "p"
    return {kind: {**told, "path": add["path"], **({"deletionVector": add["deletionVector"]} if same else {})}}


def undo(path: str, base: int, run: str, *, sealing: bool) -> int:
    """Take back what a run has committed after a version, if it has; gives the version from which that is sure.

    ``sealing``: where it has not, it can no longer, since the version that it would make is taken, in the run's name:
    until its intent is closed nobody reads that, either. Raises ``VersionTaken`` if another writer is faster.
    """
    head, following = snapshot_of(path), base + 1
    if head.version == base and not sealing:
        return base
    if head.version == base:
        put(path, following, [said("UNDO", **{RUN: run})])
        return following
    if run_of(path, following) != run:
        return head.version
    commit = actions_of(path, following)
    before, now = snapshot_of(path, base), _logical(head.state.adds)
    came = _logical({a["add"]["path"]: a["add"] for a in commit if "add" in a})
    went = {a["remove"]["path"] for a in commit if "remove" in a}
    going = [file for file in came if file in now]
    staying = {path for path, _ in now.keys() - set(going)}
    back = [add for (file, _), add in _logical(before.state.adds).items() if file in went and file not in staying]
    metadata = [{"metaData": before.state.metadata}] if before.state.metadata != head.state.metadata else []
    told = [*metadata, *[removed(now[f]) for f in going], *[{"add": {**add, "dataChange": True}} for add in back]]
    if told:
        put(path, head.version + 1, [said("RESTORE", operationParameters={"version": str(base)}), *told])
    return head.version + bool(told)


def run_of(path: str, version: int) -> str | None:
    """The run that made a commit, if one did."""
    return next((a["commitInfo"].get(RUN) for a in actions_of(path, version) if "commitInfo" in a), None)


def same_rows(one: Snapshot, other: Snapshot) -> bool:
    """Whether two versions of a table are made of the same files, and are of the same kind."""
    alike = (one.state.metadata, one.state.protocol) == (other.state.metadata, other.state.protocol)
    return alike and _logical(one.state.adds).keys() == _logical(other.state.adds).keys()


def _logical(adds: Mapping[str, Action]) -> dict[tuple[str, str], Action]:
    """A file with another vector is another file."""
    return {(path, unique_id(add.get("deletionVector"))): add for path, add in adds.items()}


def _files_of(actions: Iterable[Action]) -> set[str]:
    """The files that some actions name, with those of their vectors, relative to the table."""
    found = set()
    for action in actions:
        found.add(unquote(action["path"]))
        vector = action.get("deletionVector")
        if vector is not None and vector["storageType"] == "u":
            found.add(str(stored_at(vector)))
    return found
