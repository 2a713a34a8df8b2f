"""What tests/schemathesis.sh checks beside Schemathesis's own: requests that keep to the document, and are refused all the same.

A schema cannot say everything that a call asks. What follows is all that it cannot: a request that keeps to its schema may be answered 422 for one of these
reasons, and for no other; and 400 where its address is too long to be read.
"""

import re

import schemathesis
from schemathesis.openapi.checks import AllowHeaderMismatch

BEYOND_SCHEMAS = [
    # A schema counts characters.
    r"^\S+: has \d+ bytes; at most \d+ are allowed$",
    r"^metadata: at most \d+ bytes are allowed$",
    r"^title: must have 1 to 128 bytes$",
    # Nor does it look into an object of any shape.
    r"^metadata: must not contain U\+0000$",
    # What an earlier answer gave.
    r"^cursor: must be the `next` value of an earlier page",
    # What the calendar and PostgreSQL know.
    r"^period: .* is not a date such as 2024-01-15$",
    r"^period: weeks are named by their Monday",
    r"^time_zone: ",
    r"^(starts_at|ends_at): a season lies between 2000 and 2071$",
    r"^expires_at: the key would have expired already$",
    # A pattern that all readers of patterns understand has no exceptions.
    r"^period: .*has no name of a season",
    r"^name: .*not 'previous'$",
    # Which fields go together.
    r"^(limit|from|cursor): cannot be combined with users$",
    r"^from: cannot be combined with cursor$",
    r"^ties: a sum board has no tiebreak",
    r"^points_min: must not be above points_max",
    r"^gain_max: must be a JSON object of the kinds of period that the board keeps",
    r"^first_layout\.bounds: must be 1 to 99 scores, strictly ascending$",
    r"^ends_at: a season begins before it ends$",
    r"^boards: an admin key is for all boards$",
    # The rules of the board in question, and how the service was started.
    r"^tiebreak: board \S+ does not use tiebreaks$",
    r"^points: board \S+ allows ",
    r"^points: the player's score would leave the range of 64 bits$",
    r"^signed: needs a master key",
]


@schemathesis.check
def refused_for_what_no_schema_says(ctx, response, case):
    """A request that keeps to its schema is refused for no reason that the schema could have given."""
    if response.status_code not in (400, 422) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if response.status_code == 400:
        # How long all players of a list are together.
        assert len(response.request.path_url) > 65_534, "the request is said not to be readable"
        return
    detail = response.json()["detail"]
    assert any(re.search(reason, detail, re.DOTALL) for reason in BEYOND_SCHEMAS), f"the document does not say: {detail}"


@schemathesis.check
def refused_in_the_list(ctx, response, case):
    """A list of events that breaks its schema is answered 200: then at least one of them is refused."""
    if response.status_code != 200 or case.meta is None or not case.meta.generation.mode.is_negative:
        return
    if case.operation.label in ("POST /v1/scores", "POST /v1/boards/{board}/scores"):
        results = response.json().get("results", [])
        assert any(result["status"] == "refused" for result in results), "no event of the list is refused"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """A player may be called `query`: what may be asked of the player at that path, the document tells at `{user_id}`."""
    return not (
        isinstance(failure, AllowHeaderMismatch)
        and context.operation.path == "/v1/boards/{board}/scores/query"
        and not failure.missing_methods
        and failure.undocumented_methods == ["DELETE", "GET"]
    )
