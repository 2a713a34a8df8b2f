from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.changed_event import ChangedEvent
from ...models.overtaken_event import OvertakenEvent
from ...models.period_event import PeriodEvent
from ...models.problem import Problem
from ...models.ranking_response import RankingResponse
from ...models.stale_event import StaleEvent
from ...models.started_event import StartedEvent
from ...types import UNSET, Response, Unset


def _get_kwargs(
    board: str,
    *,
    period: str | Unset = UNSET,
    limit: int | Unset = 10,
    users: list[str] | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["Last-Event-ID"] = last_event_id

    params: dict[str, Any] = {}

    params["period"] = period

    params["limit"] = limit

    json_users: list[str] | Unset = UNSET
    if not isinstance(users, Unset):
        json_users = users

    params["users"] = json_users

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/boards/{board}/events".format(
            board=quote(str(board), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem | None:
    if response.status_code == 200:

        def _parse_response_200(
            data: object,
        ) -> ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_live_event_type_0 = StartedEvent.from_dict(data)

                return componentsschemas_live_event_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_live_event_type_1 = ChangedEvent.from_dict(data)

                return componentsschemas_live_event_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_live_event_type_2 = OvertakenEvent.from_dict(data)

                return componentsschemas_live_event_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_live_event_type_3 = PeriodEvent.from_dict(data)

                return componentsschemas_live_event_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_live_event_type_4 = RankingResponse.from_dict(data)

                return componentsschemas_live_event_type_4
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_live_event_type_5 = StaleEvent.from_dict(data)

            return componentsschemas_live_event_type_5

        response_200 = _parse_response_200(response.text)

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


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem]:
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
    limit: int | Unset = 10,
    users: list[str] | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Response[ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem]:
    """Follow a ranking

     Server-Sent Events: `started` with all there is to see, then `changed` whenever the top, one of the
    chosen players or the period's state is other than before,
    `overtaken` for chosen players who passed somebody or were passed, and `period` when the period
    ends. Each look at the ranking is at one
    state, whose version the data name. There are at most four looks a second, and at most four events
    in any second; where there would be
    more, the newest state is shown.

    The `id` of an event stands for all that was shown up to it. A browser that was cut off sends the
    last one as `Last-Event-ID`: where nothing
    has changed since, the stream begins with `continued`; else it begins anew, with `started` and
    `restarted: true`. Who passed whom
    meanwhile is not told. A comment every 15 seconds keeps proxies from closing the connection, and
    brings the id up to date.

    While the database cannot be reached there is one `stale`, and the stream goes on by itself. It ends
    when the key it was asked for with
    ceases to work, and when the instance stops.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):  Default: 10.
        users (list[str] | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem]
    """

    kwargs = _get_kwargs(
        board=board,
        period=period,
        limit=limit,
        users=users,
        last_event_id=last_event_id,
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
    limit: int | Unset = 10,
    users: list[str] | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem | None:
    """Follow a ranking

     Server-Sent Events: `started` with all there is to see, then `changed` whenever the top, one of the
    chosen players or the period's state is other than before,
    `overtaken` for chosen players who passed somebody or were passed, and `period` when the period
    ends. Each look at the ranking is at one
    state, whose version the data name. There are at most four looks a second, and at most four events
    in any second; where there would be
    more, the newest state is shown.

    The `id` of an event stands for all that was shown up to it. A browser that was cut off sends the
    last one as `Last-Event-ID`: where nothing
    has changed since, the stream begins with `continued`; else it begins anew, with `started` and
    `restarted: true`. Who passed whom
    meanwhile is not told. A comment every 15 seconds keeps proxies from closing the connection, and
    brings the id up to date.

    While the database cannot be reached there is one `stale`, and the stream goes on by itself. It ends
    when the key it was asked for with
    ceases to work, and when the instance stops.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):  Default: 10.
        users (list[str] | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem
    """

    return sync_detailed(
        board=board,
        client=client,
        period=period,
        limit=limit,
        users=users,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    limit: int | Unset = 10,
    users: list[str] | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Response[ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem]:
    """Follow a ranking

     Server-Sent Events: `started` with all there is to see, then `changed` whenever the top, one of the
    chosen players or the period's state is other than before,
    `overtaken` for chosen players who passed somebody or were passed, and `period` when the period
    ends. Each look at the ranking is at one
    state, whose version the data name. There are at most four looks a second, and at most four events
    in any second; where there would be
    more, the newest state is shown.

    The `id` of an event stands for all that was shown up to it. A browser that was cut off sends the
    last one as `Last-Event-ID`: where nothing
    has changed since, the stream begins with `continued`; else it begins anew, with `started` and
    `restarted: true`. Who passed whom
    meanwhile is not told. A comment every 15 seconds keeps proxies from closing the connection, and
    brings the id up to date.

    While the database cannot be reached there is one `stale`, and the stream goes on by itself. It ends
    when the key it was asked for with
    ceases to work, and when the instance stops.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):  Default: 10.
        users (list[str] | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem]
    """

    kwargs = _get_kwargs(
        board=board,
        period=period,
        limit=limit,
        users=users,
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    board: str,
    *,
    client: AuthenticatedClient | Client,
    period: str | Unset = UNSET,
    limit: int | Unset = 10,
    users: list[str] | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem | None:
    """Follow a ranking

     Server-Sent Events: `started` with all there is to see, then `changed` whenever the top, one of the
    chosen players or the period's state is other than before,
    `overtaken` for chosen players who passed somebody or were passed, and `period` when the period
    ends. Each look at the ranking is at one
    state, whose version the data name. There are at most four looks a second, and at most four events
    in any second; where there would be
    more, the newest state is shown.

    The `id` of an event stands for all that was shown up to it. A browser that was cut off sends the
    last one as `Last-Event-ID`: where nothing
    has changed since, the stream begins with `continued`; else it begins anew, with `started` and
    `restarted: true`. Who passed whom
    meanwhile is not told. A comment every 15 seconds keeps proxies from closing the connection, and
    brings the id up to date.

    While the database cannot be reached there is one `stale`, and the stream goes on by itself. It ends
    when the key it was asked for with
    ceases to work, and when the instance stops.

    Args:
        board (str):
        period (str | Unset): `all_time`, `day`, `week` or `month`; one of the past as
            `week:2024-01-15` (its Monday), `month:2024-01`, `day:2024-01-15`, or
            `week:previous`; a season as `season:spring`. Example: week.
        limit (int | Unset):  Default: 10.
        users (list[str] | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChangedEvent | OvertakenEvent | PeriodEvent | RankingResponse | StaleEvent | StartedEvent | Problem
    """

    return (
        await asyncio_detailed(
            board=board,
            client=client,
            period=period,
            limit=limit,
            users=users,
            last_event_id=last_event_id,
        )
    ).parsed
