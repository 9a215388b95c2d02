"""The service's own tables."""

from sqlalchemy import BigInteger, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The tables that Alembic's autogenerate compares."""


class Article(Base):
    """What the service knows about a URL; ``page_id`` is its row in ``pgsimhash.pages``."""

    __tablename__ = "articles"

    url: Mapped[str] = mapped_column(Text, primary_key=True)
    page_id: Mapped[int] = mapped_column(BigInteger, index=True)
    author: Mapped[str] = mapped_column(Text)
    title: Mapped[str | None] = mapped_column(Text)
