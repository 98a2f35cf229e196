"""Errors that end or interrupt a tail of a database.

CdcError
├── NotPossible   something has to be changed first: a setting, a right, an option
├── Interrupted   the database went away, or another tail went ahead; it may pass
│   └── InUse     another tail has the slot
└── BadMessage    the database sent what its protocol does not allow
"""


class CdcError(Exception):
    """The root of this tree."""


class NotPossible(CdcError):
    pass


class Interrupted(CdcError):
    pass


class InUse(Interrupted):
    pass


class BadMessage(CdcError):
    pass
