"""Deploy the package's schema from your own Alembic history.

In a revision::

    import pgsimhash.alembic

    def upgrade():
        pgsimhash.alembic.upgrade(op, revision="0001")

    def downgrade():
        pgsimhash.alembic.downgrade(op)

Both run on your connection and in your transaction, or write to the script of ``--sql``. The schema
records its own revision, as with ``pgsimhash migrate``, apart from your ``alembic_version``.

For your own tables there are :func:`add_simhash` and :func:`drop_simhash`.
"""

from pgsimhash.alembic.own_tables import Op, add_simhash, drop_simhash

__all__ = ["add_simhash", "downgrade", "drop_simhash", "upgrade"]


def upgrade(
    op: Op,
    revision: str = "0001",
    schema: str | None = None,
    *,
    since: str | None = None,
    citus: bool = False,
    layout: str | None = None,
) -> None:
    """Upgrade the schema to ``revision``; do nothing if it has that or a later revision.

    Name the revision, so that your history always does the same. ``since`` is the present one, for
    ``--sql``, which cannot ask the database; None means that the schema does not exist yet. The
    other arguments and errors are those of :func:`pgsimhash.schema.migrate.upgrade`.

    Raises:
        StoreError: the connection is not in a transaction (an ``autocommit_block``), or in one that
            failed or is read-only.
    """
    # Alembic is only half imported when it loads this package.
    from pgsimhash.schema.migrate import migrate_within

    migrate_within(op.get_context(), revision, schema, since=since, citus=citus, layout=layout)


def downgrade(
    op: Op,
    revision: str = "base",
    schema: str | None = None,
    *,
    since: str | None = None,
    layout: str | None = None,
) -> None:
    """Downgrade the schema to ``revision``; do nothing if it has that or an earlier revision.

    ``base`` leaves an empty schema. For ``--sql``, ``since`` is the present revision, by default
    the newest that this package knows, and ``layout`` that of the schema, by default 22+21+21.

    Raises:
        SchemaError: the schema has a revision of a newer package. Others as for :func:`upgrade`.
    """
    from pgsimhash.schema.migrate import migrate_within

    migrate_within(op.get_context(), revision, schema, since=since, up=False, layout=layout)
