"""Checks of tests/schemathesis.sh in addition to Schemathesis's own: valid requests that are refused.

A schema cannot express every rule of a call. A request that matches its schema may be answered with
422 for one of the reasons below and for no other, and with 400 if its address is too long.
"""

import re

import schemathesis
from schemathesis.openapi.checks import AllowHeaderMismatch, EnsureResourceAvailability

BEYOND_SCHEMAS = [
    # A schema counts characters.
    r"^\S+: has \d+ bytes; at most \d+ are allowed$",
    r"^metadata: at most \d+ bytes are allowed$",
    r"^title: must have 1 to 128 bytes$",
    # A schema does not restrict an object of any shape.
    r"^metadata: must not contain U\+0000$",
    # Values from an earlier answer.
    r"^cursor: (must be|is not) the `next_cursor` of an earlier page",
    # Rules of the calendar and of PostgreSQL.
    r"^period: .* is not a date such as 2024-01-15$",
    r"^period: weeks are named by their Monday",
    r"^time_zone: ",
    r"^(starts_at|ends_at): \".*\" must be a time such as",
    r"^(starts_at|ends_at): a season must lie between 2000 and 2071$",
    r"^expires_at: the time of expiry is in the past$",
    # A portable pattern cannot express exceptions.
    r"^period: .*has no name of a season",
    r"^name: .*not previous, current or next$",
    # Flags of the service decide whether http is allowed.
    r"^avatar_url: must be an https URL",
    # Combinations of fields.
    r"^from: cannot be combined with cursor$",
    r"^ties: a sum board has no tiebreak",
    r"^tiebreak_(order|sum): only a ",
    r"^points_min: must not be above points_max",
    r"^gain_max: must be a JSON object of the kinds of period that the board keeps",
    r"^first_layout\.bounds: must be 1 to 99 scores, strictly ascending$",
    r"^ends_at: a season must begin before it ends$",
    r"^boards: (must be absent: )?an admin key is for all boards$",
    r"^boards: must be absent if the key is for all boards$",
    r"^boards: must name the boards of the key; `all_boards` makes a key for all boards$",
    # Rules of the board, and flags of the service.
    r"^tiebreak: board \S+ does not use tiebreaks$",
    r"^tiebreak: must be -2048 to 2047$",
    r"^points: board \S+ allows ",
    r"^points: the player's score (or second number )?would leave the range of 64 bits$",
]


@schemathesis.check
def refused_beyond_schemas(ctx, response, case):
    """A request that matches its schema is refused only for reasons that no schema can express."""
    if response.status_code not in (400, 422) or case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if response.status_code == 400:
        # The maximum number of players can exceed the limit of an address.
        assert len(response.request.path_url) > 65_534, "a readable request is refused with 400"
        return
    detail = response.json()["detail"]
    assert any(re.search(reason, detail, re.DOTALL) for reason in BEYOND_SCHEMAS), f"the document does not cover: {detail}"


@schemathesis.check
def refused_in_the_list(ctx, response, case):
    """If an invalid list of events is answered with 200, at least one event is refused."""
    if response.status_code != 200 or case.meta is None or not case.meta.generation.mode.is_negative:
        return
    if "x-schemathesis-unknown-property" in case.headers:
        return
    if case.operation.label in ("POST /v1/scores", "POST /v1/boards/{board}/scores/batch"):
        results = response.json().get("results", [])
        assert any(result["state"] == "refused" for result in results), "no event of an invalid list is refused"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Tells whether a failure is one. A player may have the id `batch`: the document lists the reads of that path at
    `{user_id}`."""
    # A new board has no such period yet.
    if isinstance(failure, EnsureResourceAvailability) and response.json()["code"] == "period_not_found":
        return False
    others = {
        "/v1/boards/{board}/scores/batch": ["GET"],
    }
    return not (
        isinstance(failure, AllowHeaderMismatch)
        and not failure.missing_methods
        and failure.undocumented_methods == others.get(context.operation.path)
    )
