from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.problem import Problem
from ...models.standing_response import StandingResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    board: str,
    user_id: str,
    *,
    period: str | Unset = UNSET,
    around: int | Unset = 4,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["period"] = period

    params["around"] = around

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/boards/{board}/scores/{user_id}".format(
            board=quote(str(board), safe=""),
            user_id=quote(str(user_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | Problem | StandingResponse | None:
    if response.status_code == 200:
        response_200 = StandingResponse.from_dict(response.json())

        return response_200

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

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


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | Problem | StandingResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    board: str,
    user_id: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    around: int | Unset = 4,
) -> Response[Any | Problem | StandingResponse]:
    """Read a player's standing

     Score, rank, position and percentile, with the players just above and below.

    Args:
        board (str):
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        around (int | Unset):  Default: 4.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem | StandingResponse]
    """

    kwargs = _get_kwargs(
        board=board,
        user_id=user_id,
        period=period,
        around=around,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    board: str,
    user_id: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    around: int | Unset = 4,
) -> Any | Problem | StandingResponse | None:
    """Read a player's standing

     Score, rank, position and percentile, with the players just above and below.

    Args:
        board (str):
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        around (int | Unset):  Default: 4.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem | StandingResponse
    """

    return sync_detailed(
        board=board,
        user_id=user_id,
        client=client,
        period=period,
        around=around,
    ).parsed


async def asyncio_detailed(
    board: str,
    user_id: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    around: int | Unset = 4,
) -> Response[Any | Problem | StandingResponse]:
    """Read a player's standing

     Score, rank, position and percentile, with the players just above and below.

    Args:
        board (str):
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        around (int | Unset):  Default: 4.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | Problem | StandingResponse]
    """

    kwargs = _get_kwargs(
        board=board,
        user_id=user_id,
        period=period,
        around=around,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    board: str,
    user_id: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    around: int | Unset = 4,
) -> Any | Problem | StandingResponse | None:
    """Read a player's standing

     Score, rank, position and percentile, with the players just above and below.

    Args:
        board (str):
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        around (int | Unset):  Default: 4.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | Problem | StandingResponse
    """

    return (
        await asyncio_detailed(
            board=board,
            user_id=user_id,
            client=client,
            period=period,
            around=around,
        )
    ).parsed
