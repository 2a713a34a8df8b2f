from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.create_season import CreateSeason
from ...models.problem import Problem
from ...models.season_response import SeasonResponse
from ...types import Response


def _get_kwargs(
    board: str,
    *,
    body: CreateSeason,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/boards/{board}/seasons".format(
            board=quote(str(board), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Problem | SeasonResponse | None:
    if response.status_code == 201:
        response_201 = SeasonResponse.from_dict(response.json())

        return response_201

    if response.status_code == 400:
        response_400 = Problem.from_dict(response.json())

        return response_400

    if response.status_code == 401:
        response_401 = Problem.from_dict(response.json())

        return response_401

    if response.status_code == 403:
        response_403 = Problem.from_dict(response.json())

        return response_403

    if response.status_code == 404:
        response_404 = Problem.from_dict(response.json())

        return response_404

    if response.status_code == 408:
        response_408 = Problem.from_dict(response.json())

        return response_408

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

    if response.status_code == 413:
        response_413 = Problem.from_dict(response.json())

        return response_413

    if response.status_code == 415:
        response_415 = Problem.from_dict(response.json())

        return response_415

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
) -> Response[Problem | SeasonResponse]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    board: str,
    *,
    client: AuthenticatedClient,
    body: CreateSeason,
) -> Response[Problem | SeasonResponse]:
    """Make a season

     Needs an admin key. A season has to be made before its first score; it may overlap other periods and
    seasons.

    Args:
        board (str):
        body (CreateSeason): A new season.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SeasonResponse]
    """

    kwargs = _get_kwargs(
        board=board,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    board: str,
    *,
    client: AuthenticatedClient,
    body: CreateSeason,
) -> Problem | SeasonResponse | None:
    """Make a season

     Needs an admin key. A season has to be made before its first score; it may overlap other periods and
    seasons.

    Args:
        board (str):
        body (CreateSeason): A new season.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SeasonResponse
    """

    return sync_detailed(
        board=board,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    board: str,
    *,
    client: AuthenticatedClient,
    body: CreateSeason,
) -> Response[Problem | SeasonResponse]:
    """Make a season

     Needs an admin key. A season has to be made before its first score; it may overlap other periods and
    seasons.

    Args:
        board (str):
        body (CreateSeason): A new season.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Problem | SeasonResponse]
    """

    kwargs = _get_kwargs(
        board=board,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    board: str,
    *,
    client: AuthenticatedClient,
    body: CreateSeason,
) -> Problem | SeasonResponse | None:
    """Make a season

     Needs an admin key. A season has to be made before its first score; it may overlap other periods and
    seasons.

    Args:
        board (str):
        body (CreateSeason): A new season.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Problem | SeasonResponse
    """

    return (
        await asyncio_detailed(
            board=board,
            client=client,
            body=body,
        )
    ).parsed
