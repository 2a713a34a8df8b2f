from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    board: str,
    *,
    period: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["period"] = period

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/boards/{board}/scores.csv".format(
            board=quote(str(board), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Problem | str | None:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

    if response.status_code == 422:
        response_422 = Problem.from_dict(response.json())

        return response_422

    if response.status_code == 429:
        response_429 = Problem.from_dict(response.json())

        return response_429

    if response.status_code == 500:
        response_500 = Problem.from_dict(response.json())

        return response_500

    if response.status_code == 503:
        response_503 = Problem.from_dict(response.json())

        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Problem | str]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
) -> Response[Problem | str]:
    """Read a whole period as CSV

     Every player, best first, in one state, as RFC 4180 has it: a line that names the columns, then
    `position`, `rank`, `user_id`, `user_name`,
    `score` and `reached_at` of each. An instance sends four files at a time (otherwise 503), at most
    two to
    one address (otherwise 429). Requests with a key may use two more. A download may take 30 minutes. A
    file that cannot be sent whole has no end: the connection is closed before the last chunk. Names are
    written as they are, also where a spreadsheet
    would take them for formulas.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        board=board,
        period=period,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
) -> Problem | str | None:
    """Read a whole period as CSV

     Every player, best first, in one state, as RFC 4180 has it: a line that names the columns, then
    `position`, `rank`, `user_id`, `user_name`,
    `score` and `reached_at` of each. An instance sends four files at a time (otherwise 503), at most
    two to
    one address (otherwise 429). Requests with a key may use two more. A download may take 30 minutes. A
    file that cannot be sent whole has no end: the connection is closed before the last chunk. Names are
    written as they are, also where a spreadsheet
    would take them for formulas.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return sync_detailed(
        board=board,
        client=client,
        period=period,
    ).parsed


async def asyncio_detailed(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
) -> Response[Problem | str]:
    """Read a whole period as CSV

     Every player, best first, in one state, as RFC 4180 has it: a line that names the columns, then
    `position`, `rank`, `user_id`, `user_name`,
    `score` and `reached_at` of each. An instance sends four files at a time (otherwise 503), at most
    two to
    one address (otherwise 429). Requests with a key may use two more. A download may take 30 minutes. A
    file that cannot be sent whole has no end: the connection is closed before the last chunk. Names are
    written as they are, also where a spreadsheet
    would take them for formulas.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | str]
    """

    kwargs = _get_kwargs(
        board=board,
        period=period,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
) -> Problem | str | None:
    """Read a whole period as CSV

     Every player, best first, in one state, as RFC 4180 has it: a line that names the columns, then
    `position`, `rank`, `user_id`, `user_name`,
    `score` and `reached_at` of each. An instance sends four files at a time (otherwise 503), at most
    two to
    one address (otherwise 429). Requests with a key may use two more. A download may take 30 minutes. A
    file that cannot be sent whole has no end: the connection is closed before the last chunk. Names are
    written as they are, also where a spreadsheet
    would take them for formulas.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | str
    """

    return (
        await asyncio_detailed(
            board=board,
            client=client,
            period=period,
        )
    ).parsed
