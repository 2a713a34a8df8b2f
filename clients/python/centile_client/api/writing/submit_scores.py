from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ... import errors
from ...client import AuthenticatedClient, Client
from ...models.accepted_response import AcceptedResponse
from ...models.event_request import EventRequest
from ...models.problem import Problem
from ...models.quarantined_response import QuarantinedResponse
from ...models.refused_response import RefusedResponse
from ...models.submit_response import SubmitResponse
from ...types import UNSET, Response, Unset


def _get_kwargs(
    board: str,
    *,
    body: EventRequest | list[EventRequest],
    ranks: bool | Unset = False,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["ranks"] = ranks

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/boards/{board}/scores".format(
            board=quote(str(board), safe=""),
        ),
        "params": params,
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
) -> (
    AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | SubmitResponse
    | Problem
    | None
):
    if response.status_code == 200:

        def _parse_response_200(
            data: object,
        ) -> AcceptedResponse | QuarantinedResponse | RefusedResponse | SubmitResponse:
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
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_result_type_2 = RefusedResponse.from_dict(data)

                return componentsschemas_event_result_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_submit_answer_type_1 = SubmitResponse.from_dict(data)

            return componentsschemas_submit_answer_type_1

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
    AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | SubmitResponse
    | Problem
]:
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
    body: EventRequest | list[EventRequest],
    ranks: bool | Unset = False,
) -> Response[
    AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | SubmitResponse
    | Problem
]:
    """Write scores

     Needs a server key for the board, or an admin key. Answers once the scores are committed. One event
    that is refused
    is answered with the problem's status, and one that is put into quarantine with 202; in a list each
    event has its own
    result, and the answer is 200.

    Args:
        board (str):
        ranks (bool | Unset):  Default: False.
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AcceptedResponse | QuarantinedResponse | RefusedResponse | AcceptedResponse | QuarantinedResponse | RefusedResponse | SubmitResponse | Problem]
    """

    kwargs = _get_kwargs(
        board=board,
        body=body,
        ranks=ranks,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    board: str,
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
    ranks: bool | Unset = False,
) -> (
    AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | SubmitResponse
    | Problem
    | None
):
    """Write scores

     Needs a server key for the board, or an admin key. Answers once the scores are committed. One event
    that is refused
    is answered with the problem's status, and one that is put into quarantine with 202; in a list each
    event has its own
    result, and the answer is 200.

    Args:
        board (str):
        ranks (bool | Unset):  Default: False.
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AcceptedResponse | QuarantinedResponse | RefusedResponse | AcceptedResponse | QuarantinedResponse | RefusedResponse | SubmitResponse | Problem
    """

    return sync_detailed(
        board=board,
        client=client,
        body=body,
        ranks=ranks,
    ).parsed


async def asyncio_detailed(
    board: str,
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
    ranks: bool | Unset = False,
) -> Response[
    AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | SubmitResponse
    | Problem
]:
    """Write scores

     Needs a server key for the board, or an admin key. Answers once the scores are committed. One event
    that is refused
    is answered with the problem's status, and one that is put into quarantine with 202; in a list each
    event has its own
    result, and the answer is 200.

    Args:
        board (str):
        ranks (bool | Unset):  Default: False.
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AcceptedResponse | QuarantinedResponse | RefusedResponse | AcceptedResponse | QuarantinedResponse | RefusedResponse | SubmitResponse | Problem]
    """

    kwargs = _get_kwargs(
        board=board,
        body=body,
        ranks=ranks,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    board: str,
    *,
    client: AuthenticatedClient,
    body: EventRequest | list[EventRequest],
    ranks: bool | Unset = False,
) -> (
    AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | AcceptedResponse
    | QuarantinedResponse
    | RefusedResponse
    | SubmitResponse
    | Problem
    | None
):
    """Write scores

     Needs a server key for the board, or an admin key. Answers once the scores are committed. One event
    that is refused
    is answered with the problem's status, and one that is put into quarantine with 202; in a list each
    event has its own
    result, and the answer is 200.

    Args:
        board (str):
        ranks (bool | Unset):  Default: False.
        body (EventRequest | list[EventRequest]): One event, or a list of them. A refused event of
            a list does not touch the others. Example: {'id': 'match-7:ada', 'points': 50, 'reason':
            'boss defeated', 'user_id': 'ada'}.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AcceptedResponse | QuarantinedResponse | RefusedResponse | AcceptedResponse | QuarantinedResponse | RefusedResponse | SubmitResponse | Problem
    """

    return (
        await asyncio_detailed(
            board=board,
            client=client,
            body=body,
            ranks=ranks,
        )
    ).parsed
