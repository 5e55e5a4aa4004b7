"""Roles, and which of them a statement takes. A kind of statement that is not listed here is nobody's."""

from __future__ import annotations

from enum import IntEnum

from penstock.sql import statements as s


class Role(IntEnum):
    """Each may do all that the ones before it may.

    >>> Role.of("read") < Role.of("admin"), Role.REFRESH.word
    (True, 'refresh')
    """

    READ = 1
    """Look at everything, and run queries."""
    REFRESH = 2
    """Also refresh, suspend and resume views."""
    ADMIN = 3
    """Also change data, tables, views and settings."""

    @classmethod
    def of(cls, word: str) -> Role:
        return cls[word.upper()]

    @property
    def word(self) -> str:
        return self.name.lower()


_LOOKING = (
    s.Query, s.ShowTables, s.ShowViews, s.ShowCheckpoints, s.ShowGroups, s.ShowWatermarks, s.ShowAlerts,
    s.ShowDependencies, s.ShowHistory, s.DescribeView, s.ShowCreate, s.ExplainView, s.ExplainCreate, s.ExplainQuery,
    s.ShowPlainViews, s.ShowModels, s.ShowSchemas,
)  # fmt: skip
_REFRESHING = (s.RefreshView, s.ReplayLate, s.SuspendView)
_CHANGING = (
    s.CreateTable, s.SetWatermark, s.AdvanceWatermark, s.SetSetting, s.DropTable, s.CreateView, s.AlterView, s.DropView,
    s.MakeCheckpoint, s.RestoreCheckpoint, s.DropCheckpoint, s.Vacuum, s.ShowSettings,
    s.CreatePlainView, s.DropPlainView, s.CreateSchema, s.DropSchema,
)  # fmt: skip
"""SHOW SETTINGS is among them because the URL of a webhook may be a secret."""

ROLES: dict[type[s.Statement], Role] = {
    **dict.fromkeys(_LOOKING, Role.READ),
    **dict.fromkeys(_REFRESHING, Role.REFRESH),
    **dict.fromkeys(_CHANGING, Role.ADMIN),
}


def role_for(statement: s.Statement) -> Role | None:
    """The least role that may run a statement; None for one that is not run over HTTP."""
    if isinstance(statement, s.TableStatement):
        return Role.ADMIN if statement.writes else Role.READ
    return ROLES.get(type(statement))
