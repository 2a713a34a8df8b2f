"""The client against the service at CENTILE_URL, with a server key in CENTILE_KEY and two empty boards: `main`, for the README's lines, and `arena`."""

import os
import re
import subprocess
import sys
import threading
import unittest
from pathlib import Path

from centile_client import AuthenticatedClient, Client
from centile_client.api.boards import show_board
from centile_client.api.reading import list_chosen_scores, list_scores, query_scores, show_standing
from centile_client.api.writing import submit_batch, submit_score
from centile_client.models import (
    AcceptedResponse,
    BatchRequest,
    BatchResponse,
    ChosenRequest,
    ChosenResponse,
    EventRequest,
    Problem,
    RefusedResponse,
    StandingResponse,
)

URL = os.environ["CENTILE_URL"]


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.anyone = Client(base_url=URL, timeout=30)
        self.server = AuthenticatedClient(base_url=URL, token=os.environ["CENTILE_KEY"], timeout=30)

    def test_scores_are_written_and_read(self):
        event = EventRequest(user_id="ada", points=50, id="match-1")
        written = submit_score.sync("arena", client=self.server, body=event, ranks=True)
        self.assertIsInstance(written, AcceptedResponse)
        standing = written.periods["all_time"]
        self.assertEqual((standing.score, standing.rank), (50, 1))

        # Nothing is lost of a number of 64 bits.
        large = 2**53 - 1
        several = [EventRequest(user_id="bob/é", points=large), EventRequest(user_id="", points=1)]
        answer = submit_batch.sync("arena", client=self.server, body=BatchRequest(events=several))
        self.assertIsInstance(answer, BatchResponse)
        accepted, refused = answer.results
        self.assertIsInstance(accepted, AcceptedResponse)
        self.assertIsInstance(refused, RefusedResponse)
        self.assertEqual(refused.error.field, "events[1].user_id")

        top = list_scores.sync("arena", client=self.anyone, from_=1, limit=2)
        self.assertEqual([(row.rank, row.user_id, row.score) for row in top.data], [(1, "bob/é", large), (2, "ada", 50)])
        page = list_scores.sync("arena", client=self.anyone, limit=1)
        rest = list_scores.sync("arena", client=self.anyone, cursor=page.next_cursor)
        self.assertEqual([(row.rank, row.user_id) for row in rest.data], [(2, "ada")])
        wanted = ["ada", "nobody"]
        by_list = list_chosen_scores.sync("arena", client=self.anyone, user_id=wanted)
        by_query = query_scores.sync("arena", client=self.anyone, body=ChosenRequest(user_ids=wanted))
        for chosen in by_list, by_query:
            self.assertIsInstance(chosen, ChosenResponse)
            self.assertEqual((chosen.data[0].rank, chosen.missing), (2, ["nobody"]))
        rank = show_standing.sync("arena", "bob/é", client=self.anyone)
        self.assertIsInstance(rank, StandingResponse)
        self.assertEqual((rank.rank, rank.below[0].user_id), (1, "ada"))

    def test_errors_are_problem_documents(self):
        invalid = list_scores.sync_detailed("arena", client=self.anyone, limit=0)
        self.assertEqual((invalid.status_code, invalid.parsed.field), (422, "limit"))
        unknown = show_board.sync("none", client=self.anyone)
        self.assertIsInstance(unknown, Problem)
        self.assertEqual(unknown.code, "board_not_found")

    def test_the_lines_of_the_readme_run(self):
        readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
        lines = readme.split("```python\n")[1].split("```")[0]
        changed = re.compile("changed .*score=70, user_id='bob'.*score=50, user_id='ada'")
        said = ""
        with subprocess.Popen([sys.executable, "-u", "-c", lines], stdout=subprocess.PIPE, text=True) as running:
            deadline = threading.Timer(60, running.kill)
            deadline.start()
            for said in running.stdout:
                if said.startswith("started"):
                    submit_score.sync("main", client=self.server, body=EventRequest(user_id="bob", points=70))
                if changed.match(said):
                    break
            deadline.cancel()
            running.kill()
        self.assertRegex(said, changed)
