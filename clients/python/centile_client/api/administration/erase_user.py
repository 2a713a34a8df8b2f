from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.erased_response import ErasedResponse
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    user_id: str,
    *,
    id: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["id"] = id

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "delete",
        "url": "/v1/users/{user_id}".format(
            user_id=quote(str(user_id), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ErasedResponse | Problem | None:
    if response.status_code == 200:
        response_200 = ErasedResponse.from_dict(response.json())

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

    if response.status_code == 409:
        response_409 = Problem.from_dict(response.json())

        return response_409

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
) -> Response[ErasedResponse | Problem]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    user_id: str,
    *,
    client: AuthenticatedClient,
    id: str | Unset = UNSET,
) -> Response[ErasedResponse | Problem]:
    """Forget a player

     Needs an admin key. Id, name, avatar and metadata are replaced wherever they are kept, the frozen
    tops of closed periods included, and there
    is no way back. Scores stay under the new id. Whoever comes with the old id from now on is a new
    player: to be able to ask once more where an
    answer was lost, give the request an id.

    Args:
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErasedResponse | Problem]
    """

    kwargs = _get_kwargs(
        user_id=user_id,
        id=id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    user_id: str,
    *,
    client: AuthenticatedClient,
    id: str | Unset = UNSET,
) -> ErasedResponse | Problem | None:
    """Forget a player

     Needs an admin key. Id, name, avatar and metadata are replaced wherever they are kept, the frozen
    tops of closed periods included, and there
    is no way back. Scores stay under the new id. Whoever comes with the old id from now on is a new
    player: to be able to ask once more where an
    answer was lost, give the request an id.

    Args:
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErasedResponse | Problem
    """

    return sync_detailed(
        user_id=user_id,
        client=client,
        id=id,
    ).parsed


async def asyncio_detailed(
    user_id: str,
    *,
    client: AuthenticatedClient,
    id: str | Unset = UNSET,
) -> Response[ErasedResponse | Problem]:
    """Forget a player

     Needs an admin key. Id, name, avatar and metadata are replaced wherever they are kept, the frozen
    tops of closed periods included, and there
    is no way back. Scores stay under the new id. Whoever comes with the old id from now on is a new
    player: to be able to ask once more where an
    answer was lost, give the request an id.

    Args:
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ErasedResponse | Problem]
    """

    kwargs = _get_kwargs(
        user_id=user_id,
        id=id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    user_id: str,
    *,
    client: AuthenticatedClient,
    id: str | Unset = UNSET,
) -> ErasedResponse | Problem | None:
    """Forget a player

     Needs an admin key. Id, name, avatar and metadata are replaced wherever they are kept, the frozen
    tops of closed periods included, and there
    is no way back. Scores stay under the new id. Whoever comes with the old id from now on is a new
    player: to be able to ask once more where an
    answer was lost, give the request an id.

    Args:
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control
            characters. Example: ada.
        id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ErasedResponse | Problem
    """

    return (
        await asyncio_detailed(
            user_id=user_id,
            client=client,
            id=id,
        )
    ).parsed
