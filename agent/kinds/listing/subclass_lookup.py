"""Fetches the subclasses and implementations of a type."""

from __future__ import annotations

from agent.evidence.retrieved import Retrieved
from agent.kinds.listing.narrowing import gather_entries, make_member_ref
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest


async def fetch_subclasses(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """List what inherits from the type that a question names, the direct ones first; nothing where it names none."""
    base = request.get("parts", {}).get("base", "").strip("`")
    found = await code.subclasses(base) if base else ()
    refs: list[EvidenceRef] = [
        {**make_member_ref(one.definition), "signature": "" if one.is_direct else one.base} for one in found
    ]
    gathered = await gather_entries(code, refs, whole=len(refs))
    direct = sum(not ref["signature"] for ref in gathered.refs[: gathered.totals["entries"]])
    return Retrieved(refs=gathered.refs, totals={**gathered.totals, "direct": direct}, facts={"base": base})
