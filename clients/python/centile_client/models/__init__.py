"""Contains all the data models used in inputs/outputs"""

from .accepted_event_response import AcceptedEventResponse
from .accepted_response import AcceptedResponse
from .accepted_response_periods import AcceptedResponsePeriods
from .accepted_status import AcceptedStatus
from .act_request import ActRequest
from .bar_response import BarResponse
from .board_response import BoardResponse
from .board_response_gain_max import BoardResponseGainMax
from .board_response_kept_archives import BoardResponseKeptArchives
from .boards_response import BoardsResponse
from .cache_state import CacheState
from .changed_event import ChangedEvent
from .chosen_request import ChosenRequest
from .chosen_response import ChosenResponse
from .chosen_row_response import ChosenRowResponse
from .classic_list_response import ClassicListResponse
from .classic_row import ClassicRow
from .classic_user import ClassicUser
from .classic_user_response import ClassicUserResponse
from .create_board import CreateBoard
from .create_board_gain_max import CreateBoardGainMax
from .create_board_kept_archives import CreateBoardKeptArchives
from .create_key import CreateKey
from .create_season import CreateSeason
from .distribution_response import DistributionResponse
from .erased_response import ErasedResponse
from .event_request import EventRequest
from .history_response import HistoryResponse
from .history_row_response import HistoryRowResponse
from .kept_period import KeptPeriod
from .key_response import KeyResponse
from .key_state import KeyState
from .keys_response import KeysResponse
from .layout_by_bounds import LayoutByBounds
from .layout_by_points import LayoutByPoints
from .live_standing_response import LiveStandingResponse
from .mode import Mode
from .named_player import NamedPlayer
from .new_key_response import NewKeyResponse
from .new_standing_response import NewStandingResponse
from .newcomer_response import NewcomerResponse
from .on_violation import OnViolation
from .openapi_response_200 import OpenapiResponse200
from .order import Order
from .overtaken_event import OvertakenEvent
from .overtaking_response import OvertakingResponse
from .page_response import PageResponse
from .percentile_response import PercentileResponse
from .period_event import PeriodEvent
from .period_kind import PeriodKind
from .period_response import PeriodResponse
from .period_state import PeriodState
from .periods_response import PeriodsResponse
from .problem import Problem
from .put_user import PutUser
from .put_user_metadata_type_0 import PutUserMetadataType0
from .quarantine_response import QuarantineResponse
from .quarantined_event_response import QuarantinedEventResponse
from .quarantined_response import QuarantinedResponse
from .quarantined_status import QuarantinedStatus
from .ranking_response import RankingResponse
from .reading import Reading
from .ready_response import ReadyResponse
from .ready_status import ReadyStatus
from .refused_response import RefusedResponse
from .refused_status import RefusedStatus
from .role import Role
from .row_response import RowResponse
from .schema_edition import SchemaEdition
from .season_response import SeasonResponse
from .stale_event import StaleEvent
from .standing_response import StandingResponse
from .started_event import StartedEvent
from .state import State
from .submit_response import SubmitResponse
from .ties import Ties
from .update_board import UpdateBoard
from .update_board_gain_max import UpdateBoardGainMax
from .update_board_kept_archives import UpdateBoardKeptArchives
from .user_response import UserResponse
from .user_response_metadata import UserResponseMetadata

__all__ = (
    "AcceptedEventResponse",
    "AcceptedResponse",
    "AcceptedResponsePeriods",
    "AcceptedStatus",
    "ActRequest",
    "BarResponse",
    "BoardResponse",
    "BoardResponseGainMax",
    "BoardResponseKeptArchives",
    "BoardsResponse",
    "CacheState",
    "ChangedEvent",
    "ChosenRequest",
    "ChosenResponse",
    "ChosenRowResponse",
    "ClassicListResponse",
    "ClassicRow",
    "ClassicUser",
    "ClassicUserResponse",
    "CreateBoard",
    "CreateBoardGainMax",
    "CreateBoardKeptArchives",
    "CreateKey",
    "CreateSeason",
    "DistributionResponse",
    "ErasedResponse",
    "EventRequest",
    "HistoryResponse",
    "HistoryRowResponse",
    "KeptPeriod",
    "KeyResponse",
    "KeysResponse",
    "KeyState",
    "LayoutByBounds",
    "LayoutByPoints",
    "LiveStandingResponse",
    "Mode",
    "NamedPlayer",
    "NewcomerResponse",
    "NewKeyResponse",
    "NewStandingResponse",
    "OnViolation",
    "OpenapiResponse200",
    "Order",
    "OvertakenEvent",
    "OvertakingResponse",
    "PageResponse",
    "PercentileResponse",
    "PeriodEvent",
    "PeriodKind",
    "PeriodResponse",
    "PeriodsResponse",
    "PeriodState",
    "Problem",
    "PutUser",
    "PutUserMetadataType0",
    "QuarantinedEventResponse",
    "QuarantinedResponse",
    "QuarantinedStatus",
    "QuarantineResponse",
    "RankingResponse",
    "Reading",
    "ReadyResponse",
    "ReadyStatus",
    "RefusedResponse",
    "RefusedStatus",
    "Role",
    "RowResponse",
    "SchemaEdition",
    "SeasonResponse",
    "StaleEvent",
    "StandingResponse",
    "StartedEvent",
    "State",
    "SubmitResponse",
    "Ties",
    "UpdateBoard",
    "UpdateBoardGainMax",
    "UpdateBoardKeptArchives",
    "UserResponse",
    "UserResponseMetadata",
)
