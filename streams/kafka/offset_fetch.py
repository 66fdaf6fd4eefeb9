"""aiokafka's fetch of committed offsets, corrected: it overlooks an error of the whole answer."""

from typing import Any

from aiokafka.errors import NoError, for_code  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.protocol.commit import OffsetFetchRequest  # type: ignore[import-untyped] # as above


def raise_fetch_errors(consumer: Any) -> None:
    """Let a started consumer see these errors: it then tries again where that helps.

    Otherwise a group whose coordinator is still loading looks like one that has committed nothing.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 -- nothing public sits on this path
    send = coordinator._send_req  # noqa: SLF001 -- as above

    async def send_and_check(request: Any) -> Any:
        response = await send(request)
        if isinstance(request, OffsetFetchRequest):
            error = for_code(getattr(response, "error_code", NoError.errno))  # no field before version 2
            if error is not NoError:
                coordinator.coordinator_dead()  # asks again who it is
                raise error(f"committed offsets of group {coordinator.group_id}")
        return response

    coordinator._send_req = send_and_check  # noqa: SLF001 -- as above
