"""What is behind the verdicts: why pages match, how one changed, a collection at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pgsimhash.bits import check_distance
from pgsimhash.boilerplate import own_text
from pgsimhash.clusters import Linkage, Score, check_linkage, scorer
from pgsimhash.errors import UnknownPageError
from pgsimhash.insight.drift import Version
from pgsimhash.insight.explanation import TOP, Explanation, explain
from pgsimhash.insight.recrawl import FetchAdvice, recrawl_hint
from pgsimhash.insight.reports import Limits, Report
from pgsimhash.insight.sides import Side
from pgsimhash.layout import DISTANCE_MAX, get_layout
from pgsimhash.schemes import Scheme, get_scheme
from pgsimhash.store import histories
from pgsimhash.store.part import Part
from pgsimhash.store.reporting import read_report
from pgsimhash.times import check_zone


class Insights(Part):
    """Explanations, histories and reports; nothing is written."""

    def explain(
        self, a: str | Side, b: str | Side, *, distance: int | None = None, top: int = TOP
    ) -> Explanation:
        """Explain why two pages match or do not, at which k, and what differs between them.

        Features and the difference of the texts need both texts. A known page has one where the
        collection keeps Markdown; its features are then computed of that, and the explanation
        says in how many bits their simhash differs from the page's.

        Args:
            a: the URL of a known page, of which the present version counts, or a page from
                elsewhere: ``pgsimhash.insight.sides.read_side`` makes one of HTML,
                ``Side(simhash)`` of a simhash.
            b: another one.
            distance: the k in question; by default the collection's.
            top: how many features of each page to list.

        Raises:
            UnknownPageError: the collection does not have the URL.
            InvalidDistanceError: the layout does not answer ``distance``.
            SchemeError: the collection's scheme is not registered in this process.
            StoreError: the database does not answer.
        """
        scheme = get_scheme(self._collection.scheme)
        return explain(
            self._side(a, scheme),
            self._side(b, scheme),
            scheme=scheme,
            layout=get_layout(self._collection.layout),
            distance=self._distance(distance),
            top=top,
        )

    def versions(self, url: str, *, markdown: bool = True) -> list[Version]:
        """Return all versions of a page in the order in which they came, the oldest first.

        Each has its distance to the previous and to the first, and what became of the page:
        ``same``, ``edited``, ``rewritten`` or ``redesign``. A page that was seen again with the
        same simhash added no version; ``seen_at`` of its version says when it last was.
        :func:`~pgsimhash.insight.recrawl.recrawl_hint` makes of them when to come again.

        Args:
            url: the page.
            markdown: whether to fetch the Markdown too, where the collection keeps it.

        Raises:
            UnknownPageError: the collection does not have the URL.
            StoreError: the database does not answer.
        """
        with self._session.read() as connection:
            return histories.versions(connection, self._collection, url, markdown=markdown)

    def should_fetch(self, url: str, *, now: datetime | None = None) -> bool:
        """Return whether to fetch a page: it is not known, or due again by its re-crawl hint.

        Raises:
            As for :meth:`advise_fetch`.
        """
        return self.advise_fetch(url, now=now).fetch

    def advise_fetch(self, url: str, *, now: datetime | None = None) -> FetchAdvice:
        """Return whether to fetch a page, with the hint that says so where it is known.

        The hint is that of :func:`~pgsimhash.insight.recrawl.recrawl_hint`, by when the page
        changed and when it was last met unchanged.

        Args:
            url: the page.
            now: the time to decide for, with a time zone; by default the present.

        Raises:
            InvalidTimeError: ``now`` names no zone.
            StoreError: the database does not answer.
        """
        moment = datetime.now(UTC) if now is None else check_zone(now)
        try:
            hint = recrawl_hint(self.versions(url, markdown=False))
        except UnknownPageError:
            return FetchAdvice(url, True, None)
        return FetchAdvice(url, hint.due_at <= moment, hint)

    def report(
        self,
        distance: int | None = None,
        *,
        linkage: Linkage = "single",
        canonical: str | Score | Sequence[str] = "earliest",
        limits: Limits | None = None,
    ) -> Report:
        """Return the collection at a glance: savings, clusters, distances, hosts, changes.

        ``pgsimhash.pictures.report_page`` makes an HTML page of it. Memory is that of
        :meth:`clusters` and of the biggest cluster; what the report holds is bounded by ``limits``.

        Args:
            distance: the largest distance of pairs in a cluster; by default the collection's.
            linkage: as for :meth:`clusters`.
            canonical: as for :meth:`clusters`.
            limits: how many clusters, pages, texts, hosts, URLs and versions to show.

        Raises:
            InvalidDistanceError: ``distance`` is not in 0..12.
            UnknownRuleError: there is no such rule or linkage.
            StoreError: the database does not answer.
        """
        check_linkage(linkage)
        wanted = self._collection.default_distance if distance is None else distance
        with self._session.transaction() as connection:
            return read_report(
                connection,
                self._collection,
                check_distance(wanted, DISTANCE_MAX),
                linkage,
                scorer(canonical),
                limits or Limits(),
            )

    def _side(self, given: str | Side, scheme: Scheme) -> Side:
        if isinstance(given, Side):
            return given
        with self._session.read() as connection:
            side = histories.side(connection, self._collection, given)
        if side.article is None:
            return side
        # The Markdown has the boilerplate that was not hashed.
        text = own_text(scheme, side.article.text, side.url)
        return replace(side, article=side.article.keep_lines(text))
