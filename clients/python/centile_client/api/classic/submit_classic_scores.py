from http import HTTPStatus
from typing import Any

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.accepted_response import AcceptedResponse
from ...models.classic_user_response import ClassicUserResponse
from ...models.event_request import EventRequest
from ...models.problem import Problem
from ...models.quarantined_response import QuarantinedResponse
from ...models.refused_response import RefusedResponse
from ...models.submit_response import SubmitResponse
from ...types import Response


def _get_kwargs(
    *,
    body: EventRequest | list[EventRequest],
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/scores",
    }

    if isinstance(body, EventRequest):
        _kwargs["json"] = body.to_dict()
    else:
        _kwargs["json"] = []
        for componentsschemas_event_list_item_data in body:
            componentsschemas_event_list_item = componentsschemas_event_list_item_data.to_dict()
            _kwargs["json"].append(componentsschemas_event_list_item)

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem | None:
    if response.status_code == 200:

        def _parse_response_200(data: object) -> ClassicUserResponse | SubmitResponse:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_classic_submit_answer_type_0 = ClassicUserResponse.from_dict(data)

                return componentsschemas_classic_submit_answer_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_classic_submit_answer_type_1 = SubmitResponse.from_dict(data)

            return componentsschemas_classic_submit_answer_type_1

        response_200 = _parse_response_200(response.json())

        return response_200

    if response.status_code == 202:

        def _parse_response_202(data: object) -> AcceptedResponse | QuarantinedResponse | RefusedResponse:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_result_type_0 = AcceptedResponse.from_dict(data)

                return componentsschemas_event_result_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_result_type_1 = QuarantinedResponse.from_dict(data)

                return componentsschemas_event_result_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_event_result_type_2 = RefusedResponse.from_dict(data)

            return componentsschemas_event_result_type_2

        response_202 = _parse_response_202(response.json())

        return response_202

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
) -> Response[
    AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem
]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
) -> Response[
    AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem
]:
    """Write scores on the default board

     Needs a server key for the board, or an admin key. Takes what the board's own path takes.

    Args:
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
) -> AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem | None:
    """Write scores on the default board

     Needs a server key for the board, or an admin key. Takes what the board's own path takes.

    Args:
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem
    """

    return sync_detailed(
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
) -> Response[
    AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem
]:
    """Write scores on the default board

     Needs a server key for the board, or an admin key. Takes what the board's own path takes.

    Args:
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem]
    """

    kwargs = _get_kwargs(
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
) -> AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem | None:
    """Write scores on the default board

     Needs a server key for the board, or an admin key. Takes what the board's own path takes.

    Args:
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AcceptedResponse | QuarantinedResponse | RefusedResponse | ClassicUserResponse | SubmitResponse | Problem
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
        )
    ).parsed
