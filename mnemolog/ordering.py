"""What a client orders: facts changed, settled or taken back, and policies set. Each order is one command."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack, overload

from mnemolog.commands import Draft, FactId, FactIds, composed, exact_scope, listed
from mnemolog.connected import Connected
from mnemolog.errors import InvalidOrderError
from mnemolog.projections.concerned import scopes_of
from mnemolog.projections.policies import SetPolicies, policies_for
from mnemolog.publishing import Letter
from mnemolog.schemas.command import POLICY_AGENT, Command, DeleteAll, Edit, Undo
from mnemolog.schemas.policy import Policy
from mnemolog.schemas.scope import Scope

Action = Literal["keep_both", "keep_old", "replace", "contradict", "merge"]
ANYBODY = Scope(user_id="anybody")


class Where(TypedDict, total=False):
    """Exactly one scope: an id that is not given is not set there."""

    tenant: str | None
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None


class Whose(Where, total=False):
    """Whose memory an order is about, and who gives it.

    `actor` says by whom, in words. An own `command_id` must be new for the user, among turns too; the same order under
    the same id is carried out once.
    """

    actor: str | None
    command_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """A command that the broker has. It will reach exactly one end; `wait` and `status` tell which."""

    command_id: str
    status: Literal["PENDING"] = "PENDING"


class Ordering(Connected):
    """Orders to the pipeline, in order with the turns of their owner.

    Every method returns once the broker has the command for good. It raises `InvalidOrderError` before anything is
    sent, and `PublishError` when no acknowledgement came in time: give the order again with the same `command_id`.
    What cannot be carried out ends as `rejected`, as a whole, with the reason; facts of other scopes are never touched.
    """

    async def update(
        self, fact_id: FactId, text: str, *, key: str | None = None, value: str | None = None, **whose: Unpack[Whose]
    ) -> Ordered:
        """Put `text` in the place of a fact, from now on. A human's fact is left to `correct`."""
        return await self.batch_update([{"fact_id": fact_id, "text": text, "key": key, "value": value}], **whose)

    async def batch_update(self, edits: Sequence[Edit | Mapping[str, Any]], **whose: Unpack[Whose]) -> Ordered:
        """Update up to 100 facts at once, all or none. An edit has fact_id, text, and perhaps key and value."""
        return await self._order("update", whose, edits=list(edits))

    async def delete(self, fact_id: FactId, **whose: Unpack[Whose]) -> Ordered:
        """Hold a fact no longer: it leaves what is believed, and stays in the history."""
        return await self.batch_delete([fact_id], **whose)

    async def batch_delete(self, fact_ids: Sequence[FactId], **whose: Unpack[Whose]) -> Ordered:
        """Delete up to 100 facts at once, all or none."""
        return await self._order("delete", whose, fact_ids=list(fact_ids))

    async def delete_all(
        self, *, key: str | None = None, category: str | None = None, **whose: Unpack[Whose]
    ) -> list[Ordered]:
        """Delete every active or pending fact of a scope, or those of a key or category.

        "*" stands for any value of an id: then there is one command for each scope that the tables know now, in the
        list that is returned; with an exact scope it has one.
        """
        return await self._order_all("delete_all", whose, key=key, category=category)

    async def confirm(self, fact_ids: FactIds, **whose: Unpack[Whose]) -> Ordered:
        """Let one or several pending facts stand, with all that they were held back from doing."""
        return await self._order("confirm", whose, fact_ids=listed(fact_ids))

    async def reject(self, fact_ids: FactIds, **whose: Unpack[Whose]) -> Ordered:
        """Close one or several pending facts; what they challenged stays."""
        return await self._order("reject", whose, fact_ids=listed(fact_ids))

    async def correct(
        self,
        fact_id: FactId,
        text: str,
        *,
        key: str | None = None,
        value: str | None = None,
        ended_at: datetime | None = None,
        **whose: Unpack[Whose],
    ) -> Ordered:
        """Put a human's word in the place of a fact: from then on only a human can change it.

        The old one never was true, or, where `ended_at` is given, was true until then.
        """
        edit = {"fact_id": fact_id, "text": text, "key": key, "value": value}
        return await self._order("correct", whose, edit=edit, ended_at=ended_at)

    async def resolve(
        self,
        fact_id: FactId,
        action: Action,
        *,
        targets: FactIds = (),
        text: str | None = None,
        **whose: Unpack[Whose],
    ) -> Ordered:
        """Settle an unresolved fact against `targets`, by default those that it was added beside.

        `text` is the merged text of a `merge`, and of nothing else.
        """
        return await self._order("resolve", whose, fact_id=fact_id, action=action, targets=listed(targets), text=text)

    @overload
    async def undo(self, *, event_id: FactId, cascade: bool = ..., **whose: Unpack[Whose]) -> Ordered: ...
    @overload
    async def undo(self, *, turn_id: str, cascade: bool = ..., **whose: Unpack[Whose]) -> Ordered: ...
    @overload
    async def undo(
        self,
        *,
        model: str | None = ...,
        prompt_version: str | None = ...,
        since: datetime,
        until: datetime,
        cascade: bool = ...,
        **whose: Unpack[Whose],
    ) -> list[Ordered]: ...
    async def undo(
        self,
        *,
        event_id: FactId | None = None,
        turn_id: str | None = None,
        model: str | None = None,
        prompt_version: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cascade: bool = False,
        **whose: Unpack[Whose],
    ) -> Ordered | list[Ordered]:
        """Take back an event, a turn (or a command, by its command_id), or all that a model or prompt version decided.

        The latter from `since` up to `until`; there "*" stands for any value of an id, as in `delete_all`, and a list
        is returned. Where later decisions build on it the undo is rejected with their list, or with `cascade` takes
        those back too. An undo is undone by the id of its command.
        """
        order = {
            "event_id": event_id,
            "source_id": turn_id,
            "model": model,
            "prompt_version": prompt_version,
            "since": since,
            "until": until,
            "cascade": cascade,
        }
        if event_id is None and turn_id is None:
            return await self._order_all("undo", whose, **order)
        return await self._order("undo", whose, **order)

    async def set_policy(self, policy: Policy | Mapping[str, Any], **whose: Unpack[Whose]) -> Ordered:
        """Let `policy` hold for a scope, or for the whole tenant where neither user nor agent is named.

        It takes the place of the one that held at this level: what it does not say is as the level above says.
        """
        level = "scope" if _names_somebody(whose) else "tenant"
        named: Whose = {**whose, "agent_id": _agent_of_policy(whose)}
        return await self._order("set_policy", named, level=level, policy=policy)

    async def policies(self, **where: Unpack[Where]) -> SetPolicies:
        """What has been set for a tenant, and for a scope where a user or an agent is named."""
        named: Where = {**where, "agent_id": _agent_of_policy(where)}
        scope = exact_scope(self._draft({}, **named).place)
        async with self._reading().connection() as connection:
            return await policies_for(connection, scope)

    async def _order(self, kind: str, whose: Whose, **fields: Any) -> Ordered:
        command = composed(self._draft({"kind": kind, **fields}, **whose))
        publisher = await self._publishing()
        await publisher.publish(Letter.of(command))
        return Ordered(command_id=command.command_id)

    async def _order_all(self, kind: str, whose: Whose, **fields: Any) -> list[Ordered]:
        draft = self._draft({"kind": kind, **fields}, **whose)
        commands = await self._for_each_scope(draft) if draft.is_wide else [composed(draft)]
        publisher = await self._publishing()
        names = await publisher.publish_every(map(Letter.of, commands))
        return [Ordered(command_id=name) for name in names]

    async def _for_each_scope(self, draft: Draft) -> list[Command]:
        order = composed(draft.within(ANYBODY)).order  # judged before the tables are asked whom it concerns
        if not isinstance(order, DeleteAll | Undo):
            raise InvalidOrderError(f"{order.kind} is for one exact scope")
        async with self._reading().connection() as connection:
            scopes = await scopes_of(connection, order, self._scope(**draft.place))
        return [composed(draft.within(scope)) for scope in scopes]

    def _draft(
        self,
        order: Mapping[str, Any],
        *,
        tenant: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        actor: str | None = None,
        command_id: str | None = None,
    ) -> Draft:
        place = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        return Draft(
            command_id=command_id or self._new_id(),
            place={"tenant": tenant or self._settings.tenant, **place},
            issued_at=self._now(),
            order=order,
            actor=actor,
        )


def _names_somebody(where: Where) -> bool:
    return where.get("user_id") is not None or where.get("agent_id") is not None


def _agent_of_policy(where: Where) -> str | None:
    """The agent in whose scope a policy is set: one of its own for that of a whole tenant."""
    if _names_somebody(where):
        return where.get("agent_id")
    if where.get("app_id") is not None or where.get("run_id") is not None:
        raise InvalidOrderError("a policy is for a tenant, or for a scope with a user_id or an agent_id: name one")
    return POLICY_AGENT
