"""Turns that Celery workers publish: a request only queues what the user said.

export CELERY_BROKER_URL=redis://127.0.0.1:6379/0; cd examples
celery -A celery_tasks worker
python -c 'from celery_tasks import remember; remember.delay("alice", "I live in Bern.", "message-1")'

The worker's processes share this client: each connects by itself after the fork.
"""

from celery import Celery

from mnemolog import MemoryClient, PublishError, ServerUnavailableError

app = Celery("memory", task_acks_late=True)
memory = MemoryClient()


@app.task(autoretry_for=(PublishError, ServerUnavailableError), retry_backoff=True, max_retries=None)
def remember(user_id: str, text: str, message_id: str) -> None:
    """Publish a message; one that is delivered or retried again has the same turn_id, and does nothing."""
    memory.add(text, user_id=user_id, turn_id=message_id)
