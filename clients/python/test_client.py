"""The client against the service at CENTILE_URL, with a server key in CENTILE_KEY: an empty board named arena."""

import os
import unittest

from centile_client import AuthenticatedClient, Client
from centile_client.api.boards import show_board
from centile_client.api.reading import list_scores, query_scores, show_standing
from centile_client.api.writing import submit_scores
from centile_client.models import (
    AcceptedResponse,
    ChangedEvent,
    ChosenRequest,
    ChosenResponse,
    EventRequest,
    Problem,
    RefusedResponse,
    StandingResponse,
    StartedEvent,
    SubmitResponse,
)
from httpx_sse import connect_sse

URL = os.environ["CENTILE_URL"]


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.anyone = Client(base_url=URL, timeout=30)
        self.server = AuthenticatedClient(base_url=URL, token=os.environ["CENTILE_KEY"], timeout=30)

    def test_scores_are_written_read_and_followed(self):
        with connect_sse(
            self.anyone.get_httpx_client(), "GET", "/v1/boards/arena/events", params={"users": ["bob"]}
        ) as stream:
            events = stream.iter_sse()
            first = next(events)
            started = StartedEvent.from_dict(first.json())
            self.assertEqual((first.event, started.scores, started.missing), ("started", [], ["bob"]))
            event = EventRequest(user_id="ada", points=50, id="match-1")
            written = submit_scores.sync("arena", client=self.server, body=event, ranks=True)
            self.assertIsInstance(written, AcceptedResponse)
            standing = written.periods["all_time"]
            self.assertEqual((standing.score, standing.rank), (50, 1))
            second = next(events)
            changed = ChangedEvent.from_dict(second.json())
            self.assertEqual(second.event, "changed")
            self.assertEqual([(row.user_id, row.score) for row in changed.scores], [("ada", 50)])

        # Nothing is lost of a number of 64 bits.
        large = 2**53 - 1
        several = [EventRequest(user_id="bob/é", points=large), EventRequest(user_id="", points=1)]
        answer = submit_scores.sync("arena", client=self.server, body=several)
        self.assertIsInstance(answer, SubmitResponse)
        accepted, refused = answer.results
        self.assertIsInstance(accepted, AcceptedResponse)
        self.assertIsInstance(refused, RefusedResponse)
        self.assertEqual(refused.error.field, "[1].user_id")

        top = list_scores.sync("arena", client=self.anyone, from_=1, limit=2)
        self.assertEqual([(row.rank, row.user_id, row.score) for row in top.scores], [(1, "bob/é", large), (2, "ada", 50)])
        page = list_scores.sync("arena", client=self.anyone, limit=1)
        rest = list_scores.sync("arena", client=self.anyone, cursor=page.next_)
        self.assertEqual([(row.rank, row.user_id) for row in rest.scores], [(2, "ada")])
        wanted = ["ada", "nobody"]
        by_list = list_scores.sync("arena", client=self.anyone, users=wanted)
        by_query = query_scores.sync("arena", client=self.anyone, body=ChosenRequest(users=wanted))
        for chosen in by_list, by_query:
            self.assertIsInstance(chosen, ChosenResponse)
            self.assertEqual((chosen.scores[0].rank, chosen.missing), (2, ["nobody"]))
        rank = show_standing.sync("arena", "bob/é", client=self.anyone)
        self.assertIsInstance(rank, StandingResponse)
        self.assertEqual((rank.rank, rank.below[0].user_id), (1, "ada"))

    def test_errors_are_problem_documents(self):
        invalid = list_scores.sync_detailed("arena", client=self.anyone, limit=0)
        self.assertEqual((invalid.status_code, invalid.parsed.field), (422, "limit"))
        unknown = show_board.sync("none", client=self.anyone)
        self.assertIsInstance(unknown, Problem)
        self.assertEqual(unknown.type_, "urn:centile:problem:not-found")
