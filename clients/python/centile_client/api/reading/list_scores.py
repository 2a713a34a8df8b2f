from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.chosen_response import ChosenResponse
from ...models.page_response import PageResponse
from ...models.problem import Problem
from ...types import UNSET, Response, Unset


def _get_kwargs(
    board: str,
    *,
    period: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    from_: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    users: list[str] | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["period"] = period

    params["limit"] = limit

    params["from"] = from_

    params["cursor"] = cursor

    json_users: list[str] | Unset = UNSET
    if not isinstance(users, Unset):
        json_users = users

    params["users"] = json_users

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/boards/{board}/scores".format(
            board=quote(str(board), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ChosenResponse | PageResponse | Problem | None:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> ChosenResponse | PageResponse:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_list_response_type_0 = PageResponse.from_dict(data)

                return componentsschemas_list_response_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_list_response_type_1 = ChosenResponse.from_dict(data)

            return componentsschemas_list_response_type_1

        response_200 = _parse_response_200(response.json())

        return response_200

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

    if response.status_code == 400:
        response_400 = cast(Any, None)
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
) -> Response[Any | ChosenResponse | PageResponse | Problem]:
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
    limit: int | Unset = UNSET,
    from_: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    users: list[str] | Unset = UNSET,
) -> Response[Any | ChosenResponse | PageResponse | Problem]:
    """Read a ranking

     Without `from`, `cursor` and `users` this is the top, which is cached: it lags by at most 250 ms.
    While the database
    cannot be reached the top goes on being served, with `stale` and `stale_for_seconds` at the
    beginning of the body and
    the age in `Age`. Every other answer is exact for the version that it names.

    The top of a closed period is frozen, as far as its board has tops frozen (100 players as a rule):
    the same players
    under the names that they had when it closed. Every other answer about a closed period shows the
    names of now. What is
    asked for by name (`week:2024-01-15`) may be used for a minute once the period is closed; all else
    has to be asked for
    again, with `If-None-Match` where there is an `ETag`.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):
        from_ (int | Unset):
        cursor (str | Unset):
        users (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ChosenResponse | PageResponse | Problem]
    """

    kwargs = _get_kwargs(
        board=board,
        period=period,
        limit=limit,
        from_=from_,
        cursor=cursor,
        users=users,
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
    limit: int | Unset = UNSET,
    from_: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    users: list[str] | Unset = UNSET,
) -> Any | ChosenResponse | PageResponse | Problem | None:
    """Read a ranking

     Without `from`, `cursor` and `users` this is the top, which is cached: it lags by at most 250 ms.
    While the database
    cannot be reached the top goes on being served, with `stale` and `stale_for_seconds` at the
    beginning of the body and
    the age in `Age`. Every other answer is exact for the version that it names.

    The top of a closed period is frozen, as far as its board has tops frozen (100 players as a rule):
    the same players
    under the names that they had when it closed. Every other answer about a closed period shows the
    names of now. What is
    asked for by name (`week:2024-01-15`) may be used for a minute once the period is closed; all else
    has to be asked for
    again, with `If-None-Match` where there is an `ETag`.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):
        from_ (int | Unset):
        cursor (str | Unset):
        users (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ChosenResponse | PageResponse | Problem
    """

    return sync_detailed(
        board=board,
        client=client,
        period=period,
        limit=limit,
        from_=from_,
        cursor=cursor,
        users=users,
    ).parsed


async def asyncio_detailed(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    from_: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    users: list[str] | Unset = UNSET,
) -> Response[Any | ChosenResponse | PageResponse | Problem]:
    """Read a ranking

     Without `from`, `cursor` and `users` this is the top, which is cached: it lags by at most 250 ms.
    While the database
    cannot be reached the top goes on being served, with `stale` and `stale_for_seconds` at the
    beginning of the body and
    the age in `Age`. Every other answer is exact for the version that it names.

    The top of a closed period is frozen, as far as its board has tops frozen (100 players as a rule):
    the same players
    under the names that they had when it closed. Every other answer about a closed period shows the
    names of now. What is
    asked for by name (`week:2024-01-15`) may be used for a minute once the period is closed; all else
    has to be asked for
    again, with `If-None-Match` where there is an `ETag`.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):
        from_ (int | Unset):
        cursor (str | Unset):
        users (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ChosenResponse | PageResponse | Problem]
    """

    kwargs = _get_kwargs(
        board=board,
        period=period,
        limit=limit,
        from_=from_,
        cursor=cursor,
        users=users,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    from_: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    users: list[str] | Unset = UNSET,
) -> Any | ChosenResponse | PageResponse | Problem | None:
    """Read a ranking

     Without `from`, `cursor` and `users` this is the top, which is cached: it lags by at most 250 ms.
    While the database
    cannot be reached the top goes on being served, with `stale` and `stale_for_seconds` at the
    beginning of the body and
    the age in `Age`. Every other answer is exact for the version that it names.

    The top of a closed period is frozen, as far as its board has tops frozen (100 players as a rule):
    the same players
    under the names that they had when it closed. Every other answer about a closed period shows the
    names of now. What is
    asked for by name (`week:2024-01-15`) may be used for a minute once the period is closed; all else
    has to be asked for
    again, with `If-None-Match` where there is an `ETag`.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):
        from_ (int | Unset):
        cursor (str | Unset):
        users (list[str] | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ChosenResponse | PageResponse | Problem
    """

    return (
        await asyncio_detailed(
            board=board,
            client=client,
            period=period,
            limit=limit,
            from_=from_,
            cursor=cursor,
            users=users,
        )
    ).parsed
