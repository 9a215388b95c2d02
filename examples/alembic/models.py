from sqlalchemy import BigInteger, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from pgsimhash.sqlalchemy import SIMHASH


class Base(DeclarativeBase):
    pass


class Article(Base):
    __tablename__ = "articles"
    article_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    simhash: Mapped[int | None] = mapped_column(SIMHASH("22+21+21"))
