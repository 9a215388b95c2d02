"""Near-duplicates among the rows of your own table, with SQLAlchemy.

Run it in a clone after `./run setup`:

    .venv/bin/python examples/own_table.py

It uses a temporary table in the database of PGSIMHASH_DSN, else in the embedded PostgreSQL.
"""

from pathlib import Path

import psycopg
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, aliased, mapped_column

from pgsimhash import PageError, fingerprint
from pgsimhash.db.dsn import resolve_dsn
from pgsimhash.sqlalchemy import SIMHASH

PAGES = Path(__file__).parent / "pages"


class Base(DeclarativeBase):
    """The project's tables."""


class Article(Base):
    """Your own table with a searchable simhash."""

    __tablename__ = "articles"
    __table_args__ = {"prefixes": ["TEMPORARY"]}  # noqa: RUF012

    name: Mapped[str] = mapped_column(primary_key=True)
    simhash: Mapped[int] = mapped_column(SIMHASH("22+21+21"))


def main() -> None:
    """Store each page's simhash, and print every pair within 8 bits."""
    dsn = resolve_dsn()
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with engine.connect() as connection, Session(connection) as session:
        Base.metadata.create_all(connection)
        for path in sorted(PAGES.glob("*.html")):
            try:
                session.add(Article(name=path.stem, simhash=fingerprint(path.read_bytes()).simhash))
            except PageError as error:
                print(f"{path.stem}: {error}")
        session.flush()
        a, b = aliased(Article), aliased(Article)
        distance = a.simhash.hamming_distance(b.simhash)
        pairs = (
            select(distance, a.name, b.name)
            .join(b, a.simhash.within(b.simhash, 8))
            .where(a.name < b.name)
            .order_by(distance, a.name, b.name)
        )
        for bits, one, other in session.execute(pairs):
            print(bits, one, other)
    engine.dispose()


if __name__ == "__main__":
    main()
