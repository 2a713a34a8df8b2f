from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.chosen_request import ChosenRequest
from ...models.chosen_response import ChosenResponse
from ...models.problem import Problem
from ...types import Response


def _get_kwargs(
    board: str,
    *,
    body: ChosenRequest,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/boards/{board}/scores/query".format(
            board=quote(str(board), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ChosenResponse | Problem | None:
    if response.status_code == 200:
        response_200 = ChosenResponse.from_dict(response.json())

        return response_200

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
) -> Response[ChosenResponse | Problem]:
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
    body: ChosenRequest,
) -> Response[ChosenResponse | Problem]:
    """Read chosen players

     What a list with `users` answers, for more ids than fit a URL.

    Args:
        board (str):
        body (ChosenRequest): Just these players.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChosenResponse | Problem]
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
    client: AuthenticatedClient | Client,
    body: ChosenRequest,
) -> ChosenResponse | Problem | None:
    """Read chosen players

     What a list with `users` answers, for more ids than fit a URL.

    Args:
        board (str):
        body (ChosenRequest): Just these players.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChosenResponse | Problem
    """

    return sync_detailed(
        board=board,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    body: ChosenRequest,
) -> Response[ChosenResponse | Problem]:
    """Read chosen players

     What a list with `users` answers, for more ids than fit a URL.

    Args:
        board (str):
        body (ChosenRequest): Just these players.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChosenResponse | Problem]
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
    client: AuthenticatedClient | Client,
    body: ChosenRequest,
) -> ChosenResponse | Problem | None:
    """Read chosen players

     What a list with `users` answers, for more ids than fit a URL.

    Args:
        board (str):
        body (ChosenRequest): Just these players.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChosenResponse | Problem
    """

    return (
        await asyncio_detailed(
            board=board,
            client=client,
            body=body,
        )
    ).parsed
