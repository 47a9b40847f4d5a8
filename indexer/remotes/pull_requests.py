"""Under which refs hosts offer the newest commit of a pull request, and whether they do."""

from __future__ import annotations

from collections.abc import Sequence

from indexer.remotes.addresses import Address

_PULL = "refs/pull/{}/head"  # GitHub, Gitea, Forgejo
_MERGE_REQUEST = "refs/merge-requests/{}/head"  # GitLab
_FROM = "refs/pull-requests/{}/from"  # Bitbucket Server
_MERGE = "refs/pull/{}/merge"  # Azure DevOps has no other
# By the host's name, or a label of it as in `gitlab.example.org`.
_FORMS: dict[str, tuple[str, ...]] = {
    "bitbucket.org": (),
    "dev.azure.com": (_MERGE,),
    "visualstudio.com": (_MERGE,),
    "github": (_PULL,),
    "gitea": (_PULL,),
    "forgejo": (_PULL,),
    "codeberg": (_PULL,),
    "gitlab": (_MERGE_REQUEST,),
    "bitbucket": (_FROM,),
}


def list_pull_refs(address: Address, number: int) -> Sequence[str]:
    """Return the refs that may be a pull request's on a host, the likeliest first; none where it has no such refs."""
    labels = address.host.split(".")
    for name, forms in _FORMS.items():
        if address.host == name or address.host.endswith(f".{name}") or name in labels[:-1]:
            return [form.format(number) for form in forms]
    return [form.format(number) for form in (_PULL, _MERGE_REQUEST, _FROM)]
