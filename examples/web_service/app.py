"""A news service: FastAPI, async SQLAlchemy, and a store in the transaction of each request.

export DATABASE_URL=postgresql+psycopg://user:password@host/database
alembic upgrade head
pgsimhash collection create news
uvicorn app:app --workers 2
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from tables import Article

from pgsimhash import AsyncStore, connect_async
from pgsimhash.sqlalchemy import Collection, Page, clusters, near_pages

COLLECTION = "news"

engine = create_async_engine(os.environ["DATABASE_URL"])
# Each request has its own session, which its tasks inherit; the store uses that of the request.
current_request: ContextVar[object] = ContextVar("current_request", default=None)
sessions = async_scoped_session(
    async_sessionmaker(engine, expire_on_commit=False), scopefunc=current_request.get
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Open the store once for all requests."""
    app.state.store = await connect_async(sessions, collection=COLLECTION)
    await sessions.commit()
    await sessions.remove()
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.exception_handler(RequestValidationError)
async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
    """Answer without the invalid values, which may have surrogates that no answer can have."""
    return JSONResponse({"detail": [problem["msg"] for problem in error.errors()]}, 422)


async def request_session() -> AsyncGenerator[AsyncSession, None]:
    """Lend the session of this request, and commit at its end."""
    current_request.set(object())
    try:
        yield sessions()
        await sessions.commit()
    finally:
        await sessions.remove()


async def opened() -> AsyncStore:
    """Return the store."""
    store: AsyncStore = app.state.store
    return store


Session = Annotated[AsyncSession, Depends(request_session, scope="function")]
Store = Annotated[AsyncStore, Depends(opened)]


def storable(text: str) -> str:
    """Return a text that PostgreSQL can store; another one is answered with status 422."""
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("PostgreSQL cannot store NUL and surrogates")
    return text


Text = Annotated[str, AfterValidator(storable)]


class NewArticle(BaseModel):
    """A posted page."""

    url: Text
    html: str
    author: Text


@app.post("/articles")
async def post_article(new: NewArticle, session: Session, store: Store) -> dict[str, Any]:
    """Decide about a page and store it, with your own row, in one transaction."""
    # The store first: it takes the collection's lock, on which other requests wait.
    verdict = await store.ingest(new.url, new.html)
    if verdict.page_id is None:
        raise HTTPException(422, verdict.detail)
    row = insert(Article).values(
        url=new.url, page_id=verdict.page_id, author=new.author, title=verdict.title
    )
    await session.execute(
        row.on_conflict_do_update(
            index_elements=["url"],
            set_={name: row.excluded[name] for name in ("page_id", "author", "title")},
        )
    )
    return verdict.as_json() | {"title": verdict.title}


@app.put("/articles")
async def put_article(new: NewArticle, session: Session, store: Store) -> dict[str, Any]:
    """Do the same with your own row first: then the lock must be taken before it."""
    await session.execute(select(func.pgsimhash.lock_collection(COLLECTION)))
    article = await session.get(Article, new.url)
    if article is None:
        raise HTTPException(404)
    article.author = new.author
    await session.flush()
    verdict = await store.ingest(new.url, new.html)
    article.page_id = verdict.page_id or article.page_id
    return verdict.as_json() | {"title": verdict.title}


@app.get("/near")
async def near(url: Text, session: Session) -> list[dict[str, Any]]:
    """Return near-duplicates of a page, with your own columns."""
    if await session.get(Article, url) is None:
        raise HTTPException(404)
    page = near_pages(url, 8, COLLECTION)
    rows = await session.execute(
        select(page.c.url, page.c.distance, Article.author, Article.title)
        .select_from(page)
        .join(Article, Article.page_id == page.c.page_id)
        .order_by(page.c.distance, page.c.page_id)
    )
    return [dict(row) for row in rows.mappings()]


@app.delete("/articles")
async def delete_article(url: Text, session: Session, store: Store) -> list[str]:
    """Delete a page in both; a copy of it becomes the original."""
    deleted = await store.delete_page(url)
    await session.execute(delete(Article).where(Article.url.in_(deleted.gone)))
    return deleted.gone


@app.get("/stories")
async def stories(session: Session) -> list[list[str | None]]:
    """Return the clusters of the last night, the canonical page first."""
    of_page = (clusters.c.collection_id == Page.collection_id) & (
        clusters.c.page_id == Page.page_id
    )
    rows = await session.execute(
        select(func.array_agg(aggregate_order_by(Page.url, clusters.c.is_canonical.desc())))
        .join(Page.collection)
        .join(clusters, of_page)
        .where(Collection.name == COLLECTION)
        .group_by(clusters.c.cluster)
    )
    return [list(urls) for (urls,) in rows]
