"""Rights of the tail's role, checked before they are used: a refusal names those that are missing.

The right to replicate is not among them: hosted servers give it in ways of their own. A refusal to
replicate is translated in `postgres.py`.
"""

from collections.abc import Sequence

from ottla.cdc.catalogue import Catalogue, Found
from ottla.cdc.errors import NotPossible
from ottla.cdc.table import identifier

_ROLE = """
SELECT current_user::text, current_database()::text,
  has_database_privilege(current_database(), 'CREATE')
"""
_TABLES = """
SELECT c.oid, pg_get_userbyid(c.relowner)::text, pg_has_role(c.relowner, 'USAGE'),
  has_schema_privilege(c.relnamespace, 'USAGE'), has_table_privilege(c.oid, 'SELECT')
FROM pg_class c WHERE c.oid = ANY (%s)
"""


def check_reading(catalogue: Catalogue, tables: Sequence[Found]) -> None:
    """Refuse a role that cannot read the tables."""
    role, _, _ = catalogue.all(_ROLE)[0]
    if grants := _grants_to_read(catalogue, tables, role):
        raise NotPossible(_told(role, "read the tables", grants))


def check_publishing(catalogue: Catalogue, tables: Sequence[Found], statement: str) -> None:
    """Refuse a role that cannot read the tables, or not put them into a new publication."""
    role, database, may_create = catalogue.all(_ROLE)[0]
    grants = _grants_to_read(catalogue, tables, role)
    owners = {oid: owner for oid, owner, is_ours, *_ in _rights(catalogue, tables) if not is_ours}
    if owners:
        foreign = next(table.name for table in tables if table.oid in owners)
        others = ", ".join(sorted({identifier(owner) for owner in owners.values()}))
        also = f"; {role} also needs: {'; '.join(grants)}" if grants else ""
        raise NotPossible(
            f"{foreign} is owned by {others}, and only an owner may put a table into a "
            f"publication: as {others}, {statement}{also}"
        )
    if not may_create:
        grants.append(f"GRANT CREATE ON DATABASE {identifier(database)} TO {identifier(role)}")
    if grants:
        raise NotPossible(_told(role, "create the publication", grants))


def _grants_to_read(catalogue: Catalogue, tables: Sequence[Found], role: str) -> list[str]:
    found = {oid: rights for oid, _, _, *rights in _rights(catalogue, tables)}
    schemas = {table.name.schema for table in tables if not found[table.oid][0]}
    unread = [table.name.quoted for table in tables if not found[table.oid][1]]
    grants = [f"GRANT USAGE ON SCHEMA {identifier(name)}" for name in sorted(schemas)]
    if unread:
        grants.append(f"GRANT SELECT ON {', '.join(unread)}")
    return [f"{grant} TO {identifier(role)}" for grant in grants]


def _rights(
    catalogue: Catalogue, tables: Sequence[Found]
) -> list[tuple[int, str, bool, bool, bool]]:
    return catalogue.all(_TABLES, ([table.oid for table in tables],))


def _told(role: str, action: str, grants: Sequence[str]) -> str:
    return f"role {role!r} may not {action}: {'; '.join(grants)}"
