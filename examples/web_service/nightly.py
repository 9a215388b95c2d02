"""The nightly job: delete old pages, and compute the clusters again.

export DATABASE_URL=postgresql+psycopg://user:password@host/database
python nightly.py
"""

import os
from datetime import timedelta

from sqlalchemy import create_engine, delete, select
from sqlalchemy.orm import Session
from tables import Article

import pgsimhash
from pgsimhash.sqlalchemy import Collection, Page

engine = create_engine(os.environ["DATABASE_URL"])

with pgsimhash.connect(engine, collection="news") as store:
    gone = store.expire(timedelta(days=90)).gone
    # A page that was posted again meanwhile still exists.
    there = (
        select(Page)
        .join(Page.collection)
        .where(Collection.name == "news", Page.page_id == Article.page_id)
    )
    with Session(engine) as session, session.begin():
        session.execute(delete(Article).where(Article.url.in_(gone), ~there.exists()))
    print(len(gone), "expired,", store.save_clusters(), "stories")
engine.dispose()
