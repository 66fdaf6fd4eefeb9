"""Ends the thread of its own that a local model works in."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


async def end_thread(thread: ThreadPoolExecutor) -> None:
    """Calls that wait are cancelled, the one that runs is waited for, without holding the event loop up."""
    try:
        await asyncio.to_thread(thread.shutdown, cancel_futures=True)
    except RuntimeError:  # at the exit of the program, which has waited for all threads, none can begin any more
        thread.shutdown(cancel_futures=True)
